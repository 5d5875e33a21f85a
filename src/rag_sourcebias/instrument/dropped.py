"""The count of events that observation lost, and why."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Mapping
from types import TracebackType

from rag_sourcebias.errors import DataError
from rag_sourcebias.instrument.process import renews_after_fork

__all__ = ["DroppedEvents"]

_logger = logging.getLogger("rag_sourcebias.instrument")


class DroppedEvents:
    """Thread-safe count of events that were lost, by reason.

    The first event of a reason is logged as a WARNING of ``rag_sourcebias.instrument``; after
    that one more line each time its count has grown tenfold. The line names the type of the
    error and where it was raised, never its message: that may hold a query or a document. The
    traceback is added when the logger is enabled for DEBUG.
    """

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._next_line: dict[str, int] = {}
        self._lock = threading.RLock()
        renews_after_fork(self)

    @property
    def total(self) -> int:
        """Events lost for any reason."""
        with self._lock:
            return sum(self._counts.values())

    @property
    def by_reason(self) -> Mapping[str, int]:
        """Events lost for each reason (a copy)."""
        with self._lock:
            return dict(self._counts)

    def add(self, reason: str, *, n: int = 1, error: BaseException | None = None) -> None:
        """Count ``n`` lost events.

        Parameters
        ----------
        reason : str
            What failed. One of a few fixed texts, never text of a user.
        n : int
            At least 1.
        error : BaseException or None
            The exception that lost them.

        Raises
        ------
        DataError
            If ``n`` is below 1.
        """
        if n < 1:
            raise DataError(f"n must be at least 1, got {n}")
        with self._lock:
            count = self._counts.get(reason, 0) + n
            self._counts[reason] = count
            due = count >= self._next_line.get(reason, 1)
            if due:
                self._next_line[reason] = 10 ** len(str(count))
        if due:  # outside the lock: a log handler may itself lose events
            _log(reason, count, error)

    def _after_fork(self) -> None:
        self._lock = threading.RLock()


def _log(reason: str, count: int, error: BaseException | None) -> None:
    cause = "" if error is None else f" ({type(error).__name__} at {_place(error.__traceback__)})"
    with contextlib.suppress(Exception):  # a broken log handler must not reach the host either
        _logger.warning(
            "%s%s: %d event(s) dropped so far; results of the application are not affected",
            reason,
            cause,
            count,
            exc_info=error if _logger.isEnabledFor(logging.DEBUG) else None,
        )


def _place(trace: TracebackType | None) -> str:
    """Return file and line of the innermost frame."""
    if trace is None:
        return "unknown place"
    while trace.tb_next is not None:
        trace = trace.tb_next
    return f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"
