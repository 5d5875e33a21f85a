"""Watch in production which sources, or styles, get the ranks."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

from rag_sourcebias.errors import DataError
from rag_sourcebias.instrument.dropped import DroppedEvents
from rag_sourcebias.instrument.events import RetrievalEvent
from rag_sourcebias.instrument.exposure import ExposureCounts
from rag_sourcebias.instrument.process import renews_after_fork
from rag_sourcebias.monitor.aggregate import Aggregation
from rag_sourcebias.monitor.baselines import Baseline, ReferenceWindow
from rag_sourcebias.monitor.intake import Intake, Waiting
from rag_sourcebias.monitor.skew_settings import SkewSettings
from rag_sourcebias.monitor.skew_state import SkewState
from rag_sourcebias.types.monitor import Alarm, Measure, MonitorSnapshot

__all__ = ["SkewMonitor"]

_MOST_ALARMS = 1_000


class SkewMonitor:
    """Hold the shares of the ranks against a baseline; an observer for production.

    ``observe`` appends to a buffer; every 256 events, or with the first one that comes a second
    after the oldest, the thread that brought it processes what gathered. ``snapshot`` and
    ``flush`` process at once. Memory is bounded, and nothing is raised into the application. A
    forked child starts empty: each process counts its own retrievals. Every retrieval that
    returned something is one observation of each group: its share of the rank weights
    ("exposure"), and whether its document came first ("first").

    Alarms hold under continuous looking: within a set of labels the error is split evenly over
    tested groups × measures (union bound), so that a false alarm of rule "baseline" ever comes
    with probability at most ``1 - confidence_level`` *per set of labels*; m sets have up to m
    times that. Intervals are of single shares at that level, for a share that stays the same;
    they are wider than the evidence needs. Retrievals must not repeat: ``aggregate`` those that do.

    Parameters
    ----------
    by : {"source", "style"}
    groups : sequence of str or None
        Groups told apart and tested; further ones are "other", documents without a tag "".
        None takes those of a :class:`CorpusShare`, or else the first ``max_groups`` that come:
        the error is then split over that many tests, and each event costs as many.
    baseline : CorpusShare, PoolShare, ReferenceWindow or None
        None watches without alarms. A reference window is evaluated at once when it is full,
        which takes some 0.1 ms per observation: such a monitor has ``inline`` False and is
        called from the thread of an event queue, as is one that aggregates.
    browsing : str
        Weights of ranks: "dcg", "top-<k>" or "rbp-<p>".
    measures : sequence of {"exposure", "first"}
    confidence_level : float
    labels : sequence of str
        Labels whose values are watched separately.
    max_label_sets, max_groups : int
        Told apart; further ones are counted as "other".
    max_documents : int
        Documents of a retrieval that are counted, from rank 1.
    aggregate : Aggregation or None
    change_run_length : float or None
        Watch for changes, too: observations between false alarms on average, per set of labels.
    on_alarm : callable or None
        Told about each alarm, on the thread that processed it; what it raises is counted.
    clock : callable
        Seconds since 1970.

    Attributes
    ----------
    dropped : DroppedEvents
        Events and calls of ``on_alarm`` lost, by reason.

    Raises
    ------
    DataError
        If a setting is out of its range.
    """

    def __init__(
        self,
        *,
        by: Literal["source", "style"] = "source",
        groups: Sequence[str] | None = None,
        baseline: Baseline | None = None,
        browsing: str = "dcg",
        measures: Sequence[Measure] = ("exposure", "first"),
        confidence_level: float = 0.95,
        labels: Sequence[str] = ("collection",),
        max_label_sets: int = 100,
        max_groups: int = 20,
        max_documents: int = 1_000,
        aggregate: Aggregation | None = None,
        change_run_length: float | None = None,
        on_alarm: Callable[[Alarm], object] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if isinstance(labels, str) or isinstance(groups, str):
            raise DataError(f"labels and groups are sequences of names, got {labels!r}, {groups!r}")
        settings = SkewSettings(
            by=by,
            groups=None if groups is None else tuple(groups),
            baseline=baseline,
            browsing=browsing,
            measures=tuple(measures),
            confidence_level=confidence_level,
            labels=tuple(labels),
            max_label_sets=max_label_sets,
            max_groups=max_groups,
            max_documents=max_documents,
            aggregate=aggregate,
            change_run_length=change_run_length,
        )
        self._on_alarm, self._clock = on_alarm, clock
        self.dropped = DroppedEvents()
        self._go_on(SkewState(settings, self.dropped))
        self._alarms: deque[Alarm] = deque(maxlen=_MOST_ALARMS)
        self._intake = Intake(self._process, self._tell, self.dropped)
        renews_after_fork(self)

    def _go_on(self, state: SkewState) -> None:
        self._state, settings = state, state.settings
        # see Delivery: long work must not be done on the application's thread
        self.inline = settings.aggregate is None and not isinstance(
            settings.baseline, ReferenceWindow
        )

    def _after_fork(self) -> None:
        self._intake.renew()
        self._state = SkewState(self._state.settings, self.dropped)
        self._alarms.clear()

    def observe(self, event: RetrievalEvent) -> None:
        """Take one retrieval; raises nothing."""
        self._intake.put(event, None)

    def record(self, event: RetrievalEvent, *, at: float | None = None) -> None:
        """Take one retrieval, of Unix time ``at`` (None: the event's own); raises nothing."""
        self._intake.put(event, at)

    def observe_many(self, events: Iterable[RetrievalEvent]) -> None:
        """Take retrievals, in order."""
        for event in events:
            self._intake.put(event, None)

    def flush(self, *, finish: bool = False) -> None:
        """Process what waits; with ``finish`` also what is still being aggregated."""
        self._intake.flush(finish=finish)

    def _process(self, batch: list[Waiting], finish: bool) -> list[Alarm]:
        raised = self._state.add(batch, offset=self._clock() - time.monotonic())
        if finish:
            raised += self._state.finish()
        self._alarms.extend(raised)
        return raised

    def _tell(self, alarms: list[Alarm]) -> None:
        if self._on_alarm is None:
            return
        for alarm in alarms:
            try:
                self._on_alarm(alarm)
            except Exception as error:  # noqa: BLE001 - nothing may reach the application
                self.dropped.add("on_alarm raised", error=error)

    @property
    def alarms(self) -> tuple[Alarm, ...]:
        """The latest alarms, oldest first, at most 1,000; what waits is processed first."""
        self.flush()
        return tuple(self._alarms.copy())

    def snapshot(self) -> tuple[MonitorSnapshot, ...]:
        """Return the state of each set of labels, in alphabetical order."""
        with self._intake.stopped():
            return self._state.snapshots()

    def counts(self, labels: Mapping[str, str]) -> ExposureCounts:
        """Return what groups got in a set of labels, as an ``ExposureObserver`` counts.

        Raises
        ------
        DataError
            If there was no retrieval with these labels.
        """
        with self._intake.stopped():
            return self._state.counts(labels)

    def reset(self, labels: Mapping[str, str] | None = None) -> None:
        """Start anew, with all or one set of labels; the list of alarms stays.

        After an alarm this arms the test again; a reference window is taken anew.

        Raises
        ------
        DataError
            If there was no retrieval with these labels.
        """
        with self._intake.stopped():
            self._state.reset(labels)

    def to_dict(self) -> dict[str, Any]:
        """Return settings and state as plain JSON values; not alarms and losses of the past."""
        with self._intake.stopped():
            return self._state.to_dict()

    @classmethod
    def from_dict(
        cls,
        data: Mapping[str, Any],
        *,
        on_alarm: Callable[[Alarm], object] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> SkewMonitor:
        """Go on from what :meth:`to_dict` returned.

        Raises
        ------
        DataError
            If it is not the state of a monitor.
        UnsupportedVersionError
            If another release wrote it.
        """
        monitor = cls(on_alarm=on_alarm, clock=clock)
        monitor._go_on(SkewState.from_dict(data, monitor.dropped))
        return monitor
