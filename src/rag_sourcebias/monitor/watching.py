"""What every monitor does with events: gather, process, tell, remember, store."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from rag_sourcebias.errors import DataError
from rag_sourcebias.instrument.dropped import DroppedEvents
from rag_sourcebias.instrument.events import RetrievalEvent
from rag_sourcebias.instrument.exposure import ExposureCounts
from rag_sourcebias.instrument.process import renews_after_fork
from rag_sourcebias.monitor.intake import Closing, Intake, Waiting
from rag_sourcebias.monitor.losses import Losses
from rag_sourcebias.monitor.skew_settings import SkewSettings
from rag_sourcebias.monitor.skew_state import SkewState
from rag_sourcebias.types.monitor import Alarm, MonitorSnapshot
from rag_sourcebias.types.serial import from_plain

__all__ = ["Watching"]

_MOST_ALARMS = 1_000
_AT_ONCE = 4_096  # events before it waits: what cannot be kept up with is dropped


class Watching:
    """Base of :class:`~rag_sourcebias.monitor.skew_monitor.SkewMonitor`, which says what it does.

    Parameters
    ----------
    settings : SkewSettings
    on_alarm, clock
        As of ``SkewMonitor``.
    """

    inline = True  # see Delivery: observing appends to a buffer

    def __init__(
        self,
        settings: SkewSettings,
        *,
        on_alarm: Callable[[Alarm], object] | None,
        clock: Callable[[], float],
    ) -> None:
        self._on_alarm, self._clock = on_alarm, clock
        self.dropped = DroppedEvents()
        self._losses = Losses(self.dropped)
        self._state = SkewState(settings, self._losses)
        self._alarms: deque[Alarm] = deque(maxlen=_MOST_ALARMS)
        self._intake = Intake(self._process, self._tell, self._losses)
        renews_after_fork(self)

    def _after_fork(self) -> None:
        self._intake.renew()
        self._losses.renew()
        self._state = SkewState(self._state.settings, self._losses)
        self._alarms.clear()

    def observe(self, event: RetrievalEvent) -> None:
        """Take one retrieval; raises nothing."""
        self._intake.put(event, None)

    def record(self, event: RetrievalEvent, *, at: float | None = None) -> None:
        """Take one retrieval, of Unix time ``at`` (None: the event's own); raises nothing."""
        self._intake.put(event, at)

    def observe_many(self, events: Iterable[RetrievalEvent]) -> None:
        """Take retrievals, in order, and process them; waits, and so loses none."""
        self.record_many((event, None) for event in events)

    def record_many(self, events: Iterable[Waiting]) -> int:
        """Take retrievals with their Unix times; waits, and so loses none.

        Parameters
        ----------
        events : iterable of (RetrievalEvent, float or None)
            In order; None stands for the time of the event itself.

        Returns
        -------
        int
            How many there were.
        """
        n = 0
        for event, at in events:
            self._intake.put(event, at)
            n += 1
            if n % _AT_ONCE == 0:
                self.flush()
        self.flush()
        return n

    def flush(self, *, finish: bool = False) -> None:
        """Process what waits; with ``finish`` also what is still being aggregated."""
        self._intake.flush("all" if finish else "nothing")

    def tick(self) -> None:
        """Process what waits, and test aggregated retrievals whose time is over by the clock.

        For a monitor that aggregates and has little traffic: call it now and then. Not for
        replays, whose times are long past.
        """
        self._intake.flush("due")

    def _process(self, batch: list[Waiting], closing: Closing) -> list[Alarm]:
        now = self._clock()
        raised = self._state.add(batch, offset=now - time.monotonic())
        if closing != "nothing":
            raised += self._state.close(None if closing == "all" else now)
        self._alarms.extend(raised)
        return raised

    def _tell(self, alarms: list[Alarm]) -> None:
        if self._on_alarm is None:
            return
        for alarm in alarms:
            try:
                self._on_alarm(alarm)
            except Exception as error:  # noqa: BLE001 - nothing may reach the application
                self._losses.note("on_alarm raised", error=error)

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
        """Return settings, state, the latest alarms and losses as plain JSON values."""
        with self._intake.stopped():
            data = self._state.to_dict()
            data["state"]["alarms"] = [alarm.to_dict() for alarm in self._alarms]
            data["state"]["dropped"] = self._losses.by_reason
            return data

    def _restore(self, data: Mapping[str, Any]) -> None:
        self._state = SkewState.from_dict(data, self._losses)
        state = data["state"]
        try:
            self._alarms.extend(map(_alarm_of, state["alarms"]))
            lost = {str(reason): int(n) for reason, n in state["dropped"].items()}
            self._losses.restore({reason: n for reason, n in lost.items() if n > 0})
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            if isinstance(error, DataError):
                raise
            raise DataError(f"stored alarms of a monitor: {error!r:.80}") from None


def _alarm_of(data: Mapping[str, Any]) -> Alarm:
    # A number that is not finite is stored as null.
    names = ("share", "lower", "upper", "baseline")
    return from_plain(Alarm, {**data} | {k: math.nan for k in names if data[k] is None})
