"""The outermost of nested direct calls, for wrappers that see no run ids."""

from __future__ import annotations

import math
from collections.abc import Hashable
from contextvars import ContextVar
from time import monotonic
from types import TracebackType
from typing import Any, TypeAlias

__all__ = ["Block", "began_inside", "enter", "leave", "outermost"]

#: Whether it is open, its owner, when it hides nothing any more, the block around it, and its run.
#: A list, because one is made for every retrieval: an object of a class costs as much again.
Block: TypeAlias = list[Any]
_OPEN, _OWNER, _DEADLINE, _OUTER, _RUN = range(5)

_innermost: ContextVar[Block | None] = ContextVar("rag_sourcebias_outermost", default=None)


def enter(
    owner: object, lasts: float = math.inf, run_id: Hashable | None = None
) -> tuple[Block, bool]:
    """Begin a block, see :class:`outermost`; return it, and whether it is an outermost one."""
    around = _innermost.get()
    while around is not None and not around[_OPEN]:
        around = around[_OUTER]
    now = monotonic()
    block: Block = [True, owner, now + lasts, around, run_id]
    _innermost.set(block)
    while around is not None:
        if around[_OPEN] and around[_OWNER] is owner and now < around[_DEADLINE]:
            return block, False
        around = around[_OUTER]
    return block, True


def leave(block: Block) -> None:
    """End a block; in any context, and as often as one likes."""
    block[_OPEN] = False
    # Not by token: a generator may be closed in another context than the one it was started in,
    # or after blocks that were entered later.
    if _innermost.get() is block:
        outer = block[_OUTER]
        while outer is not None and not outer[_OPEN]:  # ended before this one: they would pile up
            outer = outer[_OUTER]
        _innermost.set(outer)


class outermost:  # noqa: N801 - used as a statement, as contextlib.suppress is
    """Tell whether this block is the outermost one of its owner.

    Blocks nest through calls, awaits, tasks started inside, and threads into which the context
    is copied. Once a block has ended it hides nothing, also from a task that outlives it or when
    a generator holding it was abandoned.

    Parameters
    ----------
    owner : object
        Blocks of different owners (compared by identity) do not nest: give the observer, so that
        two observers at different levels of one application both see their retrievals.
    lasts : float
        Seconds after which a block that has not ended hides nothing any more. For blocks that
        begin and end in callbacks: an interrupted application never calls the second one.

    Examples
    --------
    >>> with outermost() as first:
    ...     with outermost() as second:
    ...         print(first, second)
    True False
    """

    __slots__ = ("_block", "_lasts", "_owner")

    _block: Block

    def __init__(self, owner: object = None, *, lasts: float = math.inf) -> None:
        self._owner = owner
        self._lasts = lasts

    def __enter__(self) -> bool:
        self._block, first = enter(self._owner, self._lasts)
        return first

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        leave(self._block)


def began_inside(owner: object, run_id: Hashable) -> bool:
    """Return whether this context comes from inside the block of a run, ended or not."""
    block = _innermost.get()
    while block is not None:
        if block[_OWNER] is owner and block[_RUN] == run_id:
            return True
        block = block[_OUTER]
    return False
