"""Errors of observation stay away from the host application and are counted instead."""

from __future__ import annotations

from types import TracebackType

from rag_sourcebias.instrument.dropped import DroppedEvents

__all__ = ["guarded"]


class guarded:  # noqa: N801 - used as a statement, as contextlib.suppress is
    """Run observation code so that no exception of it reaches the host.

    Every :class:`Exception` is swallowed and counted; what must end a program or a task passes
    (``KeyboardInterrupt``, ``SystemExit``, ``asyncio.CancelledError``). One object may stand
    around any number of blocks, also at once.

    Parameters
    ----------
    dropped : DroppedEvents
    what : str
        Reason under which an exception is counted; a fixed text.

    Examples
    --------
    >>> dropped = DroppedEvents()
    >>> import logging
    >>> logging.getLogger("rag_sourcebias.instrument").addHandler(logging.NullHandler())
    >>> with guarded(dropped, "observer raised"):
    ...     _ = 1 / 0
    >>> dropped.by_reason
    {'observer raised': 1}
    """

    __slots__ = ("_dropped", "_what")

    def __init__(self, dropped: DroppedEvents, what: str) -> None:
        self._dropped = dropped
        self._what = what

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        if error is None or not isinstance(error, Exception):
            return False
        self._dropped.add(self._what, error=error)
        return True
