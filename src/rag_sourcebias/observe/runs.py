"""Which retrievals are outermost ones."""

import math
from collections.abc import Callable, Hashable
from contextvars import ContextVar
from functools import partial
from sys import modules
from threading import get_ident
from time import monotonic
from types import TracebackType
from typing import Any, TypeAlias
from weakref import ref

from rag_sourcebias.observe.events import DroppedEvents
from rag_sourcebias.observe.unobserved import suppressed

# The outermost of nested direct calls, for wrappers that see no run ids.


#: Whether it is open, its owner, when it hides nothing any more, the block around it, and its run.
#: A list, because one is made for every retrieval: an object of a class costs as much again.
#: Of a run of a :class:`RunTable`, further: what ``end`` returns; a reference to what lives as
#: long as the run; the task or thread it is in; what finds it on the stack.
Block: TypeAlias = list[Any]
_OPEN, _OWNER, _DEADLINE, _OUTER, _RUN, _NOTE, _LIVES, _PLACE, _ON_STACK = range(9)

_innermost: ContextVar[Block | None] = ContextVar("rag_sourcebias_outermost", default=None)


def _open_around() -> Block | None:
    """Return the innermost block that has not ended."""
    block = _innermost.get()
    while block is not None and not block[_OPEN]:
        block = block[_OUTER]
    return block


def _hidden(owner: object, block: Block | None) -> bool:
    """Return whether this block, or one around it, is one of the owner that is still running.

    The block of a run of which it shows here that it was interrupted is closed.
    """
    now = monotonic()
    while block is not None:
        if block[_OPEN] and block[_OWNER] is owner and now < block[_DEADLINE]:
            began, on_stack = block[_PLACE:] or (0, None)
            if on_stack is None or began != place() or on_stack(block[_RUN]):
                return True
            block[_OPEN] = False
        block = block[_OUTER]
    return False


def leave(block: Block) -> None:
    """End a block; in any context, and as often as one likes."""
    block[_OPEN] = False
    # Not by token: a generator may be closed in another context than the one it was started in,
    # or after blocks that were entered later.
    if _innermost.get() is block:
        _innermost.set(_open_around())  # not the next one, which may have ended before this one


class outermost:  # noqa: N801 - used as a statement, as contextlib.suppress is
    """Tell whether this block is the outermost one of its owner, and to be observed.

    Blocks nest through calls, awaits, tasks started inside, and threads into which the context
    is copied. Once a block has ended it hides nothing, also from a task that outlives it or when
    a generator holding it was abandoned.

    Parameters
    ----------
    owner : object
        Blocks of different owners (compared by identity) do not nest: give the observer, so that
        two observers at different levels of one application both see their retrievals.

    Examples
    --------
    >>> with outermost() as first:
    ...     with outermost() as second:
    ...         print(first, second)
    True False
    """

    __slots__ = ("_block", "_owner")

    _block: Block

    def __init__(self, owner: object = None) -> None:
        self._owner = owner

    def __enter__(self) -> bool:
        around = _open_around()
        self._block = [True, self._owner, math.inf, around, None]
        _innermost.set(self._block)
        return not _hidden(self._owner, around) and not suppressed.get()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        leave(self._block)


# The outermost of nested retrievals, for frameworks that give every run an id.


_LONGEST_RUN = 600.0  # seconds; a retrieval that was interrupted never ends
_MOST_OPEN = 10_000


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

    LangChain calls neither end nor error for a run that was cancelled or interrupted. Left open,
    it would make the next retrieval of its task look nested. Two things tell: what lives in the
    frame of the run is gone; or another run begins in the same task (or thread) and the frame of
    the first is not below it (a task keeps the frames of what was cancelled until its next step,
    so that a fallback after a timeout comes too early for the first sign).

    Beyond 10,000 open runs the oldest are forgotten.

    No lock, and nothing to renew in a forked child: each change of the table is one call of a
    dict with keys that hash in C, which no other thread and no signal interrupts.

    Parameters
    ----------
    owner : object
        Whose retrievals these are; the owner of their blocks, see
        :class:`~rag_sourcebias.observe.recorder.outermost`.
    dropped : DroppedEvents
        Counts outermost retrievals forgotten before they ended.

    Attributes
    ----------
    open : dict
        The open runs, by id.

    Examples
    --------
    >>> runs = RunTable(object(), DroppedEvents())
    >>> runs.begin("ensemble")
    >>> runs.begin("bm25", "ensemble")
    >>> runs.end("bm25"), runs.end("ensemble"), runs.end("ensemble")
    (False, True, False)
    """

    __slots__ = ("_dropped", "_gone", "_owner", "open")

    def __init__(self, owner: object, dropped: DroppedEvents) -> None:
        self._owner = owner
        self._dropped = dropped
        self.open: dict[Hashable, Block] = {}
        self._gone = partial(_close_gone, self.open)  # not a method, which would hold the owner

    def begin(  # noqa: PLR0917 - by position, on the hot path
        self,
        run_id: Hashable,
        parent_id: Hashable | None = None,
        note: object = True,
        alive: object = None,
        on_stack: Callable[[Any], bool] | None = None,
        place: int = 0,
    ) -> None:
        """Note that a retrieval began, in the context it runs in.

        Announcing an open run again changes nothing.

        Parameters
        ----------
        note : object
            What :meth:`end` returns for an outermost retrieval.
        alive : object, optional
            Something that lives as long as the run: a run that loses it has ended.
        on_stack : callable, optional
            Whether the run of an id is among the callers, where its framework may never say that
            it ended. Needs ``place``.
        place : int
            Where it runs, as :func:`place` says.
        """
        try:
            runs = self.open
            if run_id in runs or suppressed.get():
                return
            lives = None if alive is None else ref(alive, self._gone)
            around = _open_around()
            # A task that outlives the run it names has the block of that run in its context.
            named = parent_id is not None and (parent_id in runs or self._began_inside(parent_id))
            if named or _hidden(self._owner, around):
                note = False
            ends = monotonic() + _LONGEST_RUN
            block = [True, self._owner, ends, around, run_id, note, lives, place, on_stack]
            if runs.setdefault(run_id, block) is block:  # otherwise another thread was first
                _innermost.set(block)
            if len(runs) > _MOST_OPEN:
                self._forget()
        except Exception as error:  # noqa: BLE001 - as guarded, which costs more on this hot path
            self._dropped.add("start could not be read", error=error)

    def begin_other(self, run_id: Hashable, parent_id: Hashable, alive: object = None) -> None:
        """Note that a run began that is no retrieval; kept only where it lies inside one.

        A retrieval inside it is then known to be nested.
        """
        try:
            runs = self.open
            if parent_id in runs and run_id not in runs:
                lives = None if alive is None else ref(alive, self._gone)
                runs[run_id] = [False, None, 0.0, None, run_id, False, lives, 0, None]
        except Exception as error:  # noqa: BLE001 - as in begin
            self._dropped.add("start could not be read", error=error)

    def end(self, run_id: Hashable) -> Any:  # noqa: ANN401
        """Note that a run ended, also when it failed.

        Returns
        -------
        object
            The note of an outermost retrieval (True where none was given), once. False for every
            other run, among them those never announced or forgotten.
        """
        try:
            block = self.open.pop(run_id, None)
            if block is None:
                return False
            note = block[_NOTE]
            del block[_NOTE:]  # a context may keep the block
            leave(block)
        except Exception as error:  # noqa: BLE001 - as in begin
            self._dropped.add("end could not be read", error=error)
            return False
        return note

    def _began_inside(self, run_id: Hashable) -> bool:
        """Return whether this context comes from inside the block of a run, ended or not."""
        block = _innermost.get()
        while block is not None:
            if block[_OWNER] is self._owner and block[_RUN] == run_id:
                return True
            block = block[_OUTER]
        return False

    def _forget(self) -> None:
        """Forget the oldest runs, which were interrupted: their end was never announced."""
        runs = self.open
        while len(runs) > _MOST_OPEN:
            try:
                block = runs.pop(next(iter(runs)))
            except (RuntimeError, StopIteration, KeyError):  # another thread changed the table
                return
            if block[_NOTE]:
                self._dropped.add("retrieval never ended")


def place() -> int:
    """Return what tells the running task, or the thread where none runs, from others."""
    asyncio = modules.get("asyncio")  # importing it takes half of a command's start
    loop = None if asyncio is None else asyncio._get_running_loop()
    task = None if loop is None else asyncio.current_task(loop)  # type: ignore[union-attr]
    return get_ident() if task is None else id(task)


def _close_gone(runs: dict[Hashable, Block], reference: object) -> None:
    """Close the run of which only a reference is left: its end will not be announced."""
    for run_id, block in list(runs.items()):
        if reference in block[_LIVES:] and runs.pop(run_id, None) is not None:
            leave(block)
