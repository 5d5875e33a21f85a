"""The data of every view, in plain values; knows nothing of HTTP."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rag_sourcebias._version import __version__
from rag_sourcebias.monitor.dashboard.about_log import about_log
from rag_sourcebias.monitor.dashboard.plain import finite
from rag_sourcebias.monitor.dashboard.retrievals import RetrievalQuery, read_retrievals
from rag_sourcebias.monitor.dashboard.series import SeriesQuery, read_series
from rag_sourcebias.monitor.follow import LogFollower
from rag_sourcebias.types.monitor import MonitorSnapshot

__all__ = ["DashboardSource"]

_FRESH_SECONDS = 1.0  # for which the state of the monitor is not asked for again
_LEVEL = 0.95


class DashboardSource:
    """What a dashboard shows: an event log, what follows it, and canary queries.

    Every method may be called from several threads at once, reads and never writes, and raises
    ``DataError`` or ``UnsupportedVersionError`` where the log cannot be read now.

    Parameters
    ----------
    log : str or Path
        An event log, which need not exist yet.
    follower : LogFollower or None
        Whose monitor is shown; None shows the log alone.
    canary : str, Path or None
        File of canary points, which need not exist yet.
    metrics : callable or None
        Returns Prometheus text, such as ``prometheus_client.generate_latest`` of a registry with
        a ``SkewCollector``; None where there is none.
    """

    def __init__(
        self,
        log: str | Path,
        *,
        follower: LogFollower | None = None,
        canary: str | Path | None = None,
        metrics: Callable[[], bytes] | None = None,
    ) -> None:
        self.log, self.follower = Path(log), follower
        self.canary_file = None if canary is None else Path(canary)
        self.metrics = metrics
        self._lock = threading.Lock()
        self._snapshots: tuple[MonitorSnapshot, ...] = ()
        self._fresh_until = -1.0

    def snapshots(self) -> tuple[MonitorSnapshot, ...]:
        """Return the state of the monitor, at most a second old."""
        if self.follower is None:
            return ()
        with self._lock:
            if time.monotonic() >= self._fresh_until:
                self._snapshots = self.follower.monitor.snapshot()
                self._fresh_until = time.monotonic() + _FRESH_SECONDS
            return self._snapshots

    @property
    def confidence_level(self) -> float:
        """That of the monitor, 0.95 without one."""
        return _LEVEL if self.follower is None else self.follower.settings["confidence_level"]

    def overview(self) -> dict[str, Any]:
        """Return the state of log, follower and monitor."""
        snapshots, follower = self.snapshots(), self.follower
        log, label_sets, document_ids = about_log(self.log)
        return {
            "version": __version__,
            "generated_at": time.time(),
            "log": log,
            "follower": self._about_follower(int(log["n_written"])),
            "monitor": {
                "by": "source" if follower is None else follower.settings["by"],
                "baseline": snapshots[0].baseline if snapshots else "",
                "confidence_level": self.confidence_level,
                "snapshots": [finite(snapshot.to_dict()) for snapshot in snapshots],
            },
            "alarms_active": sum(g.alarm for snapshot in snapshots for g in snapshot.groups),
            "label_sets": label_sets,
            "has_canary": self.canary_file is not None,
            "text_recorded": False,
            "document_ids": document_ids,
        }

    def _about_follower(self, n_written: int) -> dict[str, Any]:
        follower = self.follower
        if follower is None:
            error = "this log is not followed: shares over time only, no alarms"
            return {"n_read": 0, "behind": n_written, "error": error, "dropped": {}}
        dropped = dict(follower.dropped.by_reason)
        for reason, n in follower.monitor.dropped.by_reason.items():
            dropped[reason] = dropped.get(reason, 0) + n
        return {
            "n_read": follower.n_read,
            "behind": follower.behind_of(n_written),
            "error": follower.error,
            "dropped": dropped,
        }

    def series(self, query: SeriesQuery) -> dict[str, Any]:
        """Return shares over time; errors as of :func:`read_series`."""
        found = read_series(self.log, query, confidence_level=self.confidence_level)
        return {**found, "baseline": self._baseline(query)}

    def _baseline(self, query: SeriesQuery) -> Mapping[str, float] | None:
        """Return baselines by group, where all label sets that are asked for have the same."""
        wanted = (query.labels or {}).items()
        found: dict[str, set[float]] = {}
        for snapshot in self.snapshots():
            known = snapshot.labels
            if snapshot.by != query.by or any(known.get(k, v) != v for k, v in wanted):
                continue
            for group in snapshot.groups:
                if group.measure == query.measure and group.baseline is not None:
                    found.setdefault(group.group, set()).add(group.baseline)
        alike = {group: next(iter(values)) for group, values in found.items() if len(values) == 1}
        return alike or None

    def alarms(self, limit: int) -> dict[str, Any]:
        """Return the latest alarms, newest first."""
        alarms = () if self.follower is None else self.follower.monitor.alarms
        latest = [finite(alarm.to_dict()) for alarm in alarms[::-1][:limit]]
        return {"alarms": latest, "n": len(alarms)}

    def retrievals(self, query: RetrievalQuery) -> dict[str, Any]:
        """Return single retrievals; errors as of :func:`read_retrievals`."""
        return read_retrievals(self.log, query)

    def canary(self, limit: int) -> dict[str, Any]:
        """Return the latest canary points, oldest first."""
        if self.canary_file is None or not self.canary_file.is_file():
            return {"points": []}
        from rag_sourcebias.monitor.canary.points import read_points

        points = read_points(self.canary_file, limit)
        return {"points": [finite(point.to_dict()) for point in points]}
