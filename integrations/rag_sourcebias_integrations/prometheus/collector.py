"""Offer a monitor's state to Prometheus."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator

from prometheus_client import REGISTRY, CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from rag_sourcebias.errors import DataError
from rag_sourcebias.monitor import readings
from rag_sourcebias.monitor.reader import MonitorReader
from rag_sourcebias.types.monitor import Alarm, MonitorSnapshot

__all__ = ["SkewCollector"]


class SkewCollector(Collector):
    """Metrics of one monitor, read when they are scraped and kept nowhere else.

    Labels of the monitor, such as ``collection``, stand on all but the last:

    - ``…_retrievals_total``, ``…_empty_retrievals_total``, ``…_retrieved_documents_total``
    - ``…_exposure_ratio``: rank-weighted share in [0, 1], by ``by`` (source or style) and
      ``group``; the groups of one ``by`` sum to 1. With ``…_exposure_lower_ratio``,
      ``…_exposure_upper_ratio`` (a confidence sequence) and ``…_exposure_baseline_ratio``
    - ``…_top1_ratio`` and the same three: share of first ranks
    - ``…_alarm_active``: 0 or 1, by ``rule``
    - ``…_group_alarm_active``: 0 or 1, by ``by``, ``group`` and ``measure``
    - ``…_alarms_total``: by ``rule``, see below
    - ``…_dropped_events_total``: by ``reason``

    No label holds a query or a document. How many values labels and groups have is limited by the
    monitor. A reading that fails shows no values, and counts as a dropped event; the scrape of the
    application's own metrics goes on. No server is started.

    The collector is a sink, too: told of alarms (``on_alarm`` of the monitor) it counts those of
    any rule, which snapshots do not hold. Otherwise ``…_alarms_total`` stays 0.

    Parameters
    ----------
    snapshots : callable
        ``monitor.snapshot``; or a function that joins those of several monitors.
    registry : prometheus_client.CollectorRegistry or None
        Where to register; prometheus_client's own by default.
    prefix : str
        The shipped alert rules and dashboard ask for the default.

    Raises
    ------
    DataError
        If the prefix cannot start a name, or the registry has these names already.
    """

    def __init__(
        self,
        snapshots: Callable[[], Iterable[MonitorSnapshot]],
        *,
        registry: CollectorRegistry | None = None,
        prefix: str = "rag_sourcebias",
    ) -> None:
        if not re.fullmatch(r"[a-zA-Z][a-zA-Z0-9_]*", prefix):
            raise DataError(
                f"prefix of metrics must be letters, digits and _, from a letter on: {prefix!r}"
            )
        self._prefix, self._reader = prefix, MonitorReader(snapshots)
        self.dropped = self._reader.dropped
        self._registry = REGISTRY if registry is None else registry
        try:
            self._registry.register(self)
        except ValueError as error:
            raise DataError(
                f"the registry has metrics named {prefix}_… already; close the collector that "
                "registered them, or give another prefix or registry"
            ) from error

    def describe(self) -> Iterator[Metric]:
        """Yield every metric without values, so that registering does not read the monitor."""
        for metric in readings.METRICS:
            yield self._family(metric, {})

    def collect(self) -> Iterator[Metric]:
        """Yield every metric, from one reading of the monitor."""
        read = self._reader.read()
        for metric in readings.METRICS:
            yield self._family(metric, read[metric.name])

    def alarm(self, alarm: Alarm) -> None:
        """Count one alarm."""
        self._reader.alarm(alarm)

    def snapshots(self, snapshots: Iterable[MonitorSnapshot]) -> None:
        """Do nothing: states are read when they are scraped."""

    def close(self) -> None:
        """Take the metrics out of the registry."""
        with contextlib.suppress(KeyError):  # closed before
            self._registry.unregister(self)

    def _family(
        self, metric: readings.Metric, values: readings.Values
    ) -> CounterMetricFamily | GaugeMetricFamily:
        name = f"{self._prefix}_{metric.name.replace('.', '_')}"
        labels = [key for key, _ in next(iter(values), ())]
        family: CounterMetricFamily | GaugeMetricFamily
        if metric.kind == "counter":
            family = CounterMetricFamily(name, metric.about, labels=labels)
        else:
            name += "_ratio" if metric.unit == "1" else ""
            family = GaugeMetricFamily(name, metric.about, labels=labels)
        for at, value in sorted(values.items()):
            family.add_metric([text for _, text in at], value)
        return family
