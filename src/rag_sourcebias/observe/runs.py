"""Which retrievals are outermost ones."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from contextvars import ContextVar
from types import TracebackType
from typing import Any

from rag_sourcebias.observe.unobserved import suppressed

# Retrievals nest through the context of their calls.


_innermost: ContextVar[outermost | None] = ContextVar("rag_sourcebias_outermost", default=None)


class outermost:  # noqa: N801 - used as a statement, as contextlib.suppress is
    """Tell whether this block is the outermost one of its owner, and to be observed.

    Blocks nest through calls, awaits, tasks started inside, threads into which the context is
    copied, and thread pools (see :func:`carried`). Once a block has ended it hides nothing, also
    from a task that outlives it or when a generator holding it was abandoned.

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

    __slots__ = ("_around", "_open", "_owner")

    _around: outermost | None
    _open: bool

    def __init__(self, owner: object = None) -> None:
        self._owner = owner

    def __enter__(self) -> bool:
        block = self._around = _open_here()
        self._open = True
        _innermost.set(self)
        while block is not None:
            if block._open and block._owner is self._owner:
                return False
            block = block._around
        return not suppressed.get()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._open = False
        # Not by token: a generator may be closed in another context than the one it was started in,
        # or after blocks that were entered later.
        if _innermost.get() is self:
            _innermost.set(_open_here())  # not the next one, which may have ended before this one


def _open_here() -> outermost | None:
    """Return the innermost block of this context that has not ended."""
    block = _innermost.get()
    while block is not None and not block._open:
        block = block._around
    return block


def carried(
    submit: Callable[..., Any],
    pool: object,  # noqa: ARG001 - as wrapt calls it
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:  # noqa: ANN401
    """Stand for ``ThreadPoolExecutor.submit``: what is submitted inside a block runs inside it.

    A retriever that asks others in a pool of its own is then still one retrieval. Nothing else of
    the context is carried: the application's part of it stays as the application left it.
    """
    block = _open_here()
    if block is None:
        return submit(*args, **kwargs)
    return submit(_inside, block, *args, **kwargs)


def _inside(
    block: outermost,
    function: Callable[..., Any],
    /,
    *args: Any,  # noqa: ANN401
    **kwargs: Any,  # noqa: ANN401
) -> Any:  # noqa: ANN401
    token = _innermost.set(block)
    try:
        return function(*args, **kwargs)
    finally:
        _innermost.reset(token)


# Retrievals that a framework announces by an id, at their start and at their end.


class RunTable:
    """Retrievals that began and have not ended; tells which of them are outermost.

    Composite retrievers (ensembles, fusion, wrappers) announce each inner retrieval as well;
    counting those would count one user query two or three times. Runs may end in any order and on
    any thread, and be announced twice (a handler registered twice). No id is used for two runs,
    and the end of each is announced, however it ends.

    No lock, and nothing to renew in a forked child: each change of the table is one call of a
    dict with keys that hash in C, which no other thread and no signal interrupts.

    Parameters
    ----------
    owner : object
        Whose retrievals these are, see :class:`outermost`.

    Examples
    --------
    >>> runs = RunTable(object())
    >>> runs.begin("ensemble")
    >>> runs.begin("bm25")
    >>> runs.end("bm25"), runs.end("ensemble"), runs.end("ensemble")
    (False, True, False)
    """

    def __init__(self, owner: object) -> None:
        self._owner = owner
        self._open: dict[Hashable, tuple[outermost, bool]] = {}

    def begin(self, run_id: Hashable) -> None:
        """Note that a retrieval began, in the context it runs in."""
        if run_id not in self._open:
            block = outermost(self._owner)
            self._open[run_id] = block, block.__enter__()

    def end(self, run_id: Hashable) -> bool:
        """Note that a retrieval ended, also when it failed.

        Returns
        -------
        bool
            Whether it was an outermost one that is to be recorded: True at most once for each.
        """
        block, first = self._open.pop(run_id, (None, False))
        if block is not None:
            block.__exit__(None, None, None)
        return first
