"""The outermost of nested direct calls, for wrappers that see no run ids."""

from __future__ import annotations

import math
import time
from collections.abc import Hashable
from contextvars import ContextVar
from types import TracebackType

__all__ = ["began_inside", "outermost"]

_innermost: ContextVar[outermost | None] = ContextVar("rag_sourcebias_outermost", default=None)


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
    run_id : hashable, optional
        Of the run this block stands around, see :func:`began_inside`.

    Examples
    --------
    >>> with outermost() as first:
    ...     with outermost() as second:
    ...         print(first, second)
    True False
    """

    __slots__ = ("_deadline", "_lasts", "_open", "_outer", "_owner", "_run_id")

    def __init__(
        self, owner: object = None, *, lasts: float = math.inf, run_id: Hashable | None = None
    ) -> None:
        self._owner = owner
        self._lasts = lasts
        self._run_id = run_id
        self._open = False

    def __enter__(self) -> bool:
        scope = _innermost.get()
        if scope is not None:
            scope = _still_open(scope)
        self._outer = scope
        self._open = True
        now = time.monotonic()
        self._deadline = now + self._lasts
        _innermost.set(self)
        while scope is not None:
            if scope._open and scope._owner is self._owner and now < scope._deadline:
                return False
            scope = scope._outer
        return True

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._open = False
        # Not by token: a generator may be closed in another context than the one it was started
        # in, or after blocks that were entered later.
        if _innermost.get() is self:
            outer = self._outer
            _innermost.set(None if outer is None else _still_open(outer))


def _still_open(scope: outermost | None) -> outermost | None:
    """Skip blocks that ended before those inside them did, or they would pile up."""
    while scope is not None and not scope._open:
        scope = scope._outer
    return scope


def began_inside(owner: object, run_id: Hashable) -> bool:
    """Return whether this context comes from inside the block of a run, ended or not."""
    scope = _innermost.get()
    while scope is not None:
        if scope._owner is owner and scope._run_id == run_id:
            return True
        scope = scope._outer
    return False
