"""Read a monitor for a metric system, whatever the monitor does."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping

from rag_sourcebias.instrument.dropped import DroppedEvents
from rag_sourcebias.instrument.guard import guarded
from rag_sourcebias.instrument.process import renews_after_fork
from rag_sourcebias.monitor.log.reading import LogSummary
from rag_sourcebias.monitor.readings import Labels, Readings, label_values, read_snapshots
from rag_sourcebias.types.canary import CanaryPoint
from rag_sourcebias.types.monitor import Alarm, MonitorSnapshot

__all__ = ["LostEvents", "MonitorReader"]

_RULES = ("baseline", "change")
LostEvents = Mapping[str, Mapping[str, int]]
"""Events lost by reason, for each part of an application: ``{"log": log.dropped.by_reason}``."""


class MonitorReader:
    """Current values of every metric, and a count of the alarms it was told of.

    Parameters
    ----------
    snapshots : callable
        Returns the monitor's state for every set of labels; called once a reading.
    canary : callable or None
        Returns canary points, of which the latest of each comparison count.
    lost : callable or None
        Returns what other parts of the application lost.
    log : callable or None
        Returns the summary of an event log: what it lost, and what is not as it should be in its
        labels and tags.

    Attributes
    ----------
    dropped : DroppedEvents
        Readings that failed; they are read under ``dropped_events`` themselves.
    """

    def __init__(
        self,
        snapshots: Callable[[], Iterable[MonitorSnapshot]],
        *,
        canary: Callable[[], Iterable[CanaryPoint]] | None = None,
        lost: Callable[[], LostEvents] | None = None,
        log: Callable[[], LogSummary | None] | None = None,
    ) -> None:
        self._snapshots, self._canary, self._lost, self._log = snapshots, canary, lost, log
        self._alarms: dict[tuple[tuple[tuple[str, str], ...], str], int] = {}
        self._lock = threading.Lock()
        self.dropped = DroppedEvents()
        self._reading = guarded(self.dropped, "monitor could not be read")
        self._reading_canary = guarded(self.dropped, "canary points could not be read")
        self._reading_lost = guarded(self.dropped, "lost events could not be read")
        renews_after_fork(self)

    def alarm(self, alarm: Alarm) -> None:
        """Count one alarm."""
        key = (tuple(sorted(label_values(alarm.labels).items())), alarm.rule)
        with self._lock:
            self._alarms[key] = self._alarms.get(key, 0) + 1

    def read(self) -> Readings:
        """Return all values; never raises.

        ``alarms`` is 0 for each rule before the first, so that the first is seen as a rise.
        """
        points: tuple[CanaryPoint, ...] = ()
        with self._reading_canary:
            given = () if self._canary is None else tuple(self._canary())
            read_snapshots((), canary=given)  # broken points must not cost the snapshots
            points = given
        read: Readings = read_snapshots((), canary=points)
        with self._reading:
            read = read_snapshots(self._snapshots(), canary=points)
        found = {name: dict(values) for name, values in read.items()}
        with self._reading_lost:
            for part, reasons in ({} if self._lost is None else self._lost()).items():
                found["dropped_events"] |= {_lost(part, r): float(n) for r, n in reasons.items()}
        with self._reading_lost:
            summary = None if self._log is None else self._log()
            for name, values in ({} if summary is None else _of_log(summary)).items():
                found[name] |= values
        for reason, n in self.dropped.by_reason.items():
            found["dropped_events"][_lost("monitor", reason)] = float(n)
        found["alarms"] = self._counted(found["retrievals"])
        return found

    def _counted(self, places: Iterable[Labels]) -> dict[Labels, float]:
        with self._lock:
            counts = dict(self._alarms)
        known = [dict(place) for place in places]
        names = {name for place in known for name in place} | {
            name for place, _ in counts for name, _ in place
        }
        empty = dict.fromkeys(names, "")
        found = {
            tuple(sorted({**empty, **place, "rule": rule}.items())): 0.0
            for place in known
            for rule in _RULES
        }
        for (place, rule), count in counts.items():
            at = tuple(sorted({**empty, **dict(place), "rule": rule}.items()))
            found[at] = found.get(at, 0.0) + count
        return found

    def _after_fork(self) -> None:
        self._lock = threading.Lock()


def _of_log(summary: LogSummary) -> dict[str, dict[Labels, float]]:
    part = ("part", "log")
    return {
        "dropped_events": {_lost("log", reason): float(n) for reason, n in summary.dropped.items()},
        "label_overflow": {
            (("label", name), part): float(n) for name, n in summary.overflowed.items()
        },
        "bad_tags": {(part,): float(summary.bad_tags)},
        "odd_source_documents": {(part,): float(sum(summary.odd_sources.values()))},
    }


def _lost(part: str, reason: str) -> Labels:
    return (("part", str(part)), ("reason", str(reason)))
