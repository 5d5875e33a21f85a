"""The outermost of nested retrievals, for frameworks that give every run an id."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TypeAlias

from rag_sourcebias.errors import DataError
from rag_sourcebias.instrument.dropped import DroppedEvents
from rag_sourcebias.instrument.scope import Block, began_inside, enter, leave
from rag_sourcebias.instrument.suppression import suppressed

__all__ = ["RunTable"]

_LONGEST_RUN = 600.0  # seconds; a retrieval that was interrupted never ends
_MOST_OPEN = 10_000

#: The block of a retrieval (None for other runs), and whether the retrieval is an outermost one.
_Entry: TypeAlias = tuple[Block | None, bool]
_STEP: _Entry = (None, False)


class RunTable:
    """Runs that began and have not ended; tells which of them are outermost retrievals.

    Composite retrievers (ensembles, fusion, wrappers) announce each inner retrieval as well;
    counting those would count one user query two or three times. A retrieval is nested if it
    begins inside another one, seen by the context (calls, tasks, threads with the context) or by
    the parent it names (also through other runs between them). Ids are LangChain's run ids or
    LlamaIndex's span ids; none is ever used for two runs. Runs may end in any order and on any
    thread, and be announced twice (a handler registered twice). All retrievals are in the table,
    other runs only where they lie inside a retrieval: so whatever has its parent here is nested.
    Nothing here raises into the application: what cannot be read is counted.

    No lock, and nothing to renew in a forked child: each change of the table is one call of a
    dict with keys that hash in C, which no other thread and no signal interrupts.

    Parameters
    ----------
    owner : object
        Whose retrievals these are; the owner of their blocks, see
        :class:`~rag_sourcebias.instrument.outermost`.
    dropped : DroppedEvents
        Counts outermost retrievals forgotten before they ended.
    capacity : int
        Open runs remembered, at least 1. Beyond it the oldest are forgotten.

    Raises
    ------
    DataError
        If ``capacity`` is below 1.

    Examples
    --------
    >>> runs = RunTable(object(), DroppedEvents())
    >>> runs.begin("ensemble")
    >>> runs.begin("bm25", "ensemble")
    >>> runs.end("bm25"), runs.end("ensemble"), runs.end("ensemble")
    (False, True, False)
    """

    __slots__ = ("_capacity", "_dropped", "_open", "_owner")

    def __init__(
        self, owner: object, dropped: DroppedEvents, *, capacity: int = _MOST_OPEN
    ) -> None:
        if capacity < 1:
            raise DataError(f"capacity must be at least 1, got {capacity}")
        self._owner = owner
        self._dropped = dropped
        self._capacity = capacity
        self._open: dict[Hashable, _Entry] = {}

    def __len__(self) -> int:
        return len(self._open)

    def begin(
        self, run_id: Hashable, parent_id: Hashable | None = None, *, is_retrieval: bool = True
    ) -> None:
        """Note that a run began, in the context it runs in.

        Announcing an open run again changes nothing. Runs that are no retrievals need to be
        announced only where they may lie between an outer and an inner retrieval.
        """
        try:
            runs = self._open
            if run_id in runs:
                return
            if not is_retrieval:
                if parent_id not in runs:
                    return
                runs[run_id] = _STEP
            elif suppressed.get():
                return
            else:
                # A task that outlives the run it names has the block of that run in its context.
                nested = parent_id is not None and (
                    parent_id in runs or began_inside(self._owner, parent_id)
                )
                block, first = enter(self._owner, _LONGEST_RUN, run_id)
                entry = (block, first and not nested)
                if runs.setdefault(run_id, entry) is not entry:  # another thread was first
                    leave(block)
            if len(runs) > self._capacity:
                self._forget()
        except Exception as error:  # noqa: BLE001 - as guarded, which costs more on this hot path
            self._dropped.add("start could not be read", error=error)

    def end(self, run_id: Hashable) -> bool:
        """Note that a run ended, also when it failed.

        Returns
        -------
        bool
            True for an outermost retrieval, once. False for every other run, among them those
            never announced or forgotten.
        """
        try:
            block, first = self._open.pop(run_id, _STEP)
            if block is not None:
                leave(block)
        except Exception as error:  # noqa: BLE001 - as in begin
            self._dropped.add("end could not be read", error=error)
            return False
        return first

    def _forget(self) -> None:
        """Forget the oldest runs, which were interrupted: their end was never announced."""
        runs = self._open
        while len(runs) > self._capacity:
            try:
                _, first = runs.pop(next(iter(runs)), _STEP)
            except (RuntimeError, StopIteration):  # another thread changed the table in between
                return
            if first:
                self._dropped.add("retrieval never ended")
