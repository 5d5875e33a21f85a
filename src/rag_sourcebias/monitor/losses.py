"""What a monitor lost: noted while locks are held, told to the log when they are not."""

from __future__ import annotations

import threading
from collections.abc import Mapping

from rag_sourcebias.instrument.dropped import DroppedEvents

__all__ = ["Losses"]


class Losses:
    """Counts by reason, handed on to a ``DroppedEvents`` later.

    Counting there may log a line, and a log handler may ask the monitor for a snapshot: that
    must not happen inside the monitor's locks.

    Parameters
    ----------
    dropped : DroppedEvents
    """

    def __init__(self, dropped: DroppedEvents) -> None:
        self._dropped = dropped
        self._counts: dict[str, int] = {}
        self.renew()

    def renew(self) -> None:
        """Forget what was not told yet, and take a new lock."""
        self._untold: dict[str, tuple[int, BaseException | None]] = {}
        self._lock = threading.Lock()

    def note(self, reason: str, *, n: int = 1, error: BaseException | None = None) -> None:
        """Count lost events without logging anything."""
        with self._lock:
            before, first = self._untold.get(reason, (0, None))
            self._untold[reason] = (before + n, first or error)
            self._counts[reason] = self._counts.get(reason, 0) + n

    def tell(self) -> None:
        """Log what was noted; to be called outside of all locks."""
        with self._lock:
            untold, self._untold = self._untold, {}
        for reason, (n, error) in untold.items():
            self._dropped.add(reason, n=n, error=error)

    def restore(self, counts: Mapping[str, int]) -> None:
        """Go on from earlier counts, of which the log was told before."""
        for reason, n in counts.items():
            self.note(reason, n=n)
        self.tell()

    @property
    def by_reason(self) -> dict[str, int]:
        """Events lost for each reason; what was noted is counted before it is told."""
        found = dict(self._dropped.by_reason)
        with self._lock:
            for reason, n in self._counts.items():
                found[reason] = max(n, found.get(reason, 0))
        return found
