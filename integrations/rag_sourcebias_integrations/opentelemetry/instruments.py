"""Offer a monitor's state to OpenTelemetry, by its API alone."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable

from opentelemetry.metrics import CallbackOptions, Meter, Observation, get_meter

from rag_sourcebias._version import __version__
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.instrument.events import renews_after_fork
from rag_sourcebias.monitor.data import Alarm, CanaryPoint, MonitorSnapshot
from rag_sourcebias.monitor.log.reading import LogSummary
from rag_sourcebias.monitor.metrics import METRICS, LostEvents, Metric, MonitorReader, Readings


class SkewInstruments:
    """Observable counters and gauges of one monitor, read when the SDK collects.

    Names and attributes are those of
    :class:`~rag_sourcebias_integrations.prometheus.SkewCollector` as OpenTelemetry writes them:
    ``rag_sourcebias.exposure`` with unit 1 becomes ``rag_sourcebias_exposure_ratio`` in
    Prometheus, and ``rag_sourcebias.retrievals`` becomes ``rag_sourcebias_retrievals_total``.
    Buckets of ranks are counters with the attribute ``le``, for there are no observable
    histograms. Without an SDK nothing is ever read. No attribute holds a query or a document.

    This is a sink, too: told of alarms (``on_alarm`` of the monitor) it counts those of any rule,
    which snapshots do not hold. Otherwise ``rag_sourcebias.alarms`` stays 0.

    Parameters
    ----------
    snapshots : callable
        ``monitor.snapshot``; or a function that joins those of several monitors.
    canary, lost, log : callable or None
        As of ``SkewCollector``.
    meter : opentelemetry.metrics.Meter or None
        One of the global provider by default. Instruments of one name belong to one meter once.
    prefix : str

    Raises
    ------
    DataError
        If the prefix cannot start a name.
    """

    def __init__(
        self,
        snapshots: Callable[[], Iterable[MonitorSnapshot]],
        *,
        canary: Callable[[], Iterable[CanaryPoint]] | None = None,
        lost: Callable[[], LostEvents] | None = None,
        log: Callable[[], LogSummary | None] | None = None,
        meter: Meter | None = None,
        prefix: str = "rag_sourcebias",
    ) -> None:
        if not re.fullmatch(r"[a-zA-Z][a-zA-Z0-9_.-]{0,99}", prefix):
            raise DataError(
                f"prefix of metrics must be letters, digits, _, . and -, from a letter on, "
                f"100 at most: {prefix!r}"
            )
        self._reader = MonitorReader(snapshots, canary=canary, lost=lost, log=log)
        self.dropped = self._reader.dropped
        self._pass = _Pass(self._reader.read)
        self._closed = False
        used = get_meter("rag_sourcebias", __version__) if meter is None else meter
        for metric in METRICS:
            create = (
                used.create_observable_gauge
                if metric.kind == "gauge"
                else used.create_observable_counter
            )
            create(
                f"{prefix}.{metric.name}",
                callbacks=[self._callback(metric)],
                unit=metric.unit,
                description=metric.about,
            )

    def alarm(self, alarm: Alarm) -> None:
        """Count one alarm."""
        self._reader.alarm(alarm)

    def snapshots(self, snapshots: Iterable[MonitorSnapshot]) -> None:
        """Do nothing: states are read when the SDK collects."""

    def close(self) -> None:
        """Read the monitor no more; OpenTelemetry has no way to take an instrument back."""
        self._closed = True

    def _callback(self, metric: Metric) -> Callable[[CallbackOptions], Iterable[Observation]]:
        def observe(options: CallbackOptions) -> Iterable[Observation]:  # noqa: ARG001 - the API's
            if self._closed:
                return []
            values = self._pass.reading_for(metric.name)[metric.name]
            return [Observation(value, dict(labels)) for labels, value in values.items()]

        return observe


class _Pass:
    """One reading for all instruments of one collection.

    The SDK asks each instrument on its own and does not say where a collection begins: it is where
    an instrument asks for the second time.
    """

    def __init__(self, read: Callable[[], Readings]) -> None:
        self._read = read
        self._served = {metric.name for metric in METRICS}
        self._reading: Readings = {}
        self._lock = threading.Lock()
        renews_after_fork(self)

    def reading_for(self, name: str) -> Readings:
        with self._lock:
            if name in self._served:
                self._reading, self._served = self._read(), set()
            self._served.add(name)
            return self._reading

    def _after_fork(self) -> None:
        self._lock = threading.Lock()
