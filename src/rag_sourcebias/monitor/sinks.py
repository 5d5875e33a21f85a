"""Where a monitor's alarms and states go: what a sink is, and the one that writes log lines."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Protocol, runtime_checkable

from rag_sourcebias.instrument.dropped import DroppedEvents
from rag_sourcebias.instrument.guard import guarded
from rag_sourcebias.types.monitor import Alarm, GroupShare, MonitorSnapshot
from rag_sourcebias.types.names import visible

__all__ = ["LoggingSink", "Sink", "SinkGroup"]

_MEASURES = {"exposure": "exposure", "first": "share of first ranks"}


@runtime_checkable
class Sink(Protocol):
    """Something that is told of alarms and of states.

    No method raises or waits for anything outside the process, except that :meth:`close` may
    wait for what was taken before. All may be called from several threads at once.
    """

    def alarm(self, alarm: Alarm) -> None:
        """Take one alarm, when it is raised."""
        ...

    def snapshots(self, snapshots: Iterable[MonitorSnapshot]) -> None:
        """Take the state of every set of labels, as often as the owner of the monitor likes."""
        ...

    def close(self) -> None:
        """Deliver what was taken, as far as that is possible, and take nothing more."""
        ...


class LoggingSink:
    """Log an alarm as a WARNING and a state as an INFO, one line each.

    A line holds labels, names of groups and numbers; no query, no document, no id. Characters
    that would break the line are replaced.

    Parameters
    ----------
    logger : logging.Logger or None
        ``rag_sourcebias.monitor`` by default.

    Attributes
    ----------
    dropped : DroppedEvents
        Lines that a handler of the application failed to take.
    """

    def __init__(self, *, logger: logging.Logger | None = None) -> None:
        self._logger = logging.getLogger("rag_sourcebias.monitor") if logger is None else logger
        self.dropped = DroppedEvents()
        self._logging = guarded(self.dropped, "log handler raised")

    def alarm(self, alarm: Alarm) -> None:
        """Log one alarm."""
        with self._logging:
            self._logger.warning("%s", visible(_alarm_text(alarm)))

    def snapshots(self, snapshots: Iterable[MonitorSnapshot]) -> None:
        """Log each state."""
        with self._logging:
            if self._logger.isEnabledFor(logging.INFO):
                for snapshot in snapshots:
                    self._logger.info("%s", visible(_snapshot_text(snapshot)))

    def close(self) -> None:
        """Nothing waits."""


class SinkGroup:
    """Several sinks as one; what one of them raises keeps nothing from the others.

    A monitor has one ``on_alarm``: give it ``group.alarm``, and add sinks that need the monitor
    later.

    Parameters
    ----------
    *sinks : Sink

    Attributes
    ----------
    dropped : DroppedEvents
        Calls in which a sink raised.
    """

    def __init__(self, *sinks: Sink) -> None:
        self._sinks = sinks
        self.dropped = DroppedEvents()
        self._telling = guarded(self.dropped, "sink raised")

    def add(self, sink: Sink) -> None:
        """Tell ``sink`` too, from now on."""
        self._sinks = (*self._sinks, sink)

    def alarm(self, alarm: Alarm) -> None:
        """Tell every sink of one alarm."""
        for sink in self._sinks:
            with self._telling:
                sink.alarm(alarm)

    def snapshots(self, snapshots: Iterable[MonitorSnapshot]) -> None:
        """Tell every sink of the states."""
        given = tuple(snapshots)
        for sink in self._sinks:
            with self._telling:
                sink.snapshots(given)

    def close(self) -> None:
        """Close every sink."""
        for sink in self._sinks:
            with self._telling:
                sink.close()


def _alarm_text(alarm: Alarm) -> str:
    return (
        f"retrieval skew alarm ({alarm.rule}): {alarm.by} {alarm.group or 'untagged'}: "
        f"{_MEASURES.get(alarm.measure, alarm.measure)} {alarm.share:.3f} "
        f"[{alarm.lower:.3f}, {alarm.upper:.3f}], baseline {alarm.baseline:.3f}, "
        f"log evidence {alarm.evidence:.1f} after {alarm.n} observation(s){_where(alarm.labels)}"
    )


def _snapshot_text(snapshot: MonitorSnapshot) -> str:
    shares = "; ".join(_share_text(group, snapshot.corrected) for group in snapshot.groups)
    lost = sum(snapshot.dropped.values())
    return (
        f"retrieval skew by {snapshot.by}: {snapshot.n_retrievals} retrieval(s), "
        f"{snapshot.n_documents} document(s), {snapshot.n_empty} empty, {lost} event(s) dropped"
        f"{_where(snapshot.labels)}{': ' if shares else ''}{shares}"
    )


def _share_text(group: GroupShare, corrected: Mapping[str, float]) -> str:
    baseline = "" if group.baseline is None else f", baseline {group.baseline:.3f}"
    if group.measure == "exposure" and group.group in corrected:
        baseline = f", corrected for tag errors {corrected[group.group]:.3f}{baseline}"
    return (
        f"{group.group or 'untagged'} {_MEASURES.get(group.measure, group.measure)} "
        f"{group.share:.3f} [{group.lower:.3f}, {group.upper:.3f}]{baseline}"
        f"{', ALARM' if group.alarm else ''}"
    )


def _where(labels: Mapping[str, str]) -> str:
    if not labels:
        return ""
    return " (" + ", ".join(f"{key}={value}" for key, value in sorted(labels.items())) + ")"
