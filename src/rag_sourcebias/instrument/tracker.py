"""The outermost of nested retrievals, for frameworks that give every run an id and a parent."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable

from rag_sourcebias.errors import DataError
from rag_sourcebias.instrument.dropped import DroppedEvents
from rag_sourcebias.instrument.process import renews_after_fork

__all__ = ["OutermostTracker"]

_RETRIEVAL = 1  # the run is a retrieval
_NESTED = 2  # some ancestor of the run is a retrieval


class OutermostTracker:
    """Find the outermost retrieval among runs that name their parents.

    Composite retrievers (ensembles, fusion, wrappers) announce each inner retrieval as well;
    counting those would count one user query two or three times. Ids are LangChain's ``run_id``
    and ``parent_run_id`` or LlamaIndex's span ids; none is ever used for two runs. Runs may end
    in any order and on any thread, and may be announced twice (a handler registered twice).

    Parameters
    ----------
    dropped : DroppedEvents
        Counts retrievals forgotten before they ended.
    capacity : int
        Runs remembered while open, and as many again after their end (so that a repeated end
        and a late child are recognised); at least 1. Beyond it the oldest are forgotten.

    Raises
    ------
    DataError
        If ``capacity`` is below 1.

    Examples
    --------
    >>> tracker = OutermostTracker(DroppedEvents())
    >>> tracker.start("ensemble", None, is_retrieval=True)
    >>> tracker.start("bm25", "ensemble", is_retrieval=True)
    >>> tracker.end("bm25"), tracker.end("ensemble"), tracker.end("ensemble")
    (False, True, False)
    """

    def __init__(self, dropped: DroppedEvents, *, capacity: int = 10_000) -> None:
        if capacity < 1:
            raise DataError(f"capacity must be at least 1, got {capacity}")
        self._dropped = dropped
        self._capacity = capacity
        # Ordered: a plain dict searches the gaps at its front each time the oldest is removed.
        self._open: OrderedDict[Hashable, int] = OrderedDict()
        self._ended: OrderedDict[Hashable, int] = OrderedDict()
        self._lock = threading.RLock()
        renews_after_fork(self)

    @property
    def n_open(self) -> int:
        """Runs that started and have not ended."""
        return len(self._open)

    def start(
        self,
        run_id: Hashable,
        parent_id: Hashable | None,
        *,
        is_retrieval: bool = True,
        nested: bool = False,
    ) -> None:
        """Note that a run started.

        Runs that are no retrievals need to be announced only where they may lie between an
        outer and an inner retrieval. Announcing an open run again changes nothing, except that
        ``is_retrieval=True`` makes it a retrieval (LlamaIndex announces the span first, then the
        retrieval inside it). ``nested`` says that the run is known to lie inside a retrieval
        which it does not name as its parent.
        """
        lost = 0
        with self._lock:
            if run_id in self._ended:
                return
            flags = self._open.get(run_id)
            if flags is None:
                if not nested and parent_id is not None:
                    nested = bool(self._open.get(parent_id) or self._ended.get(parent_id))
                flags = _NESTED if nested else 0
                if len(self._open) >= self._capacity:
                    lost = self._open.popitem(last=False)[1] == _RETRIEVAL
            self._open[run_id] = flags | (_RETRIEVAL if is_retrieval else 0)
        if lost:
            self._dropped.add("retrieval never ended", n=lost)

    def end(self, run_id: Hashable) -> bool:
        """Note that a run ended, also when it failed.

        Returns
        -------
        bool
            True for an outermost retrieval, once. False for every other run, among them those
            never announced or forgotten.
        """
        with self._lock:
            flags = self._open.pop(run_id, None)
            if flags is None:
                return False
            if len(self._ended) >= self._capacity:
                self._ended.popitem(last=False)
            self._ended[run_id] = flags
        return flags == _RETRIEVAL

    def _after_fork(self) -> None:
        self._lock = threading.RLock()
