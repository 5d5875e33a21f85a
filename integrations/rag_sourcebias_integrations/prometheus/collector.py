"""Metrics as the text that Prometheus reads, for a server that is not the application's own."""

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator

from prometheus_client import REGISTRY, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from rag_sourcebias.core.errors import DataError
from rag_sourcebias.monitor import metrics
from rag_sourcebias.monitor.data import Alarm, MonitorSnapshot
from rag_sourcebias.monitor.metrics import LostEvents, MonitorReader, Values
from rag_sourcebias.observe.log.reading import LogSummary

# Offer a monitor's state to Prometheus.


_ENDINGS = {"1": "_ratio", "s": "_seconds"}


class SkewCollector(Collector):
    """Metrics of one monitor, read when they are scraped and kept nowhere else.

    Labels of the monitor, such as ``collection``, stand on all but the last:

    - ``…_retrievals_total``, ``…_empty_retrievals_total``, ``…_retrieved_documents_total``
    - ``…_group_documents_total``: documents, by ``by`` (source or style) and ``group``
    - ``…_retrieved_rank_bucket``: of these, how many at ranks up to ``le``, cumulative;
      ``histogram_quantile`` gives the median rank of a group, ``le="1.0"`` its first ranks. There
      is no ``_sum`` of ranks, and therefore no ``_count``: that is ``le="+Inf"``
    - ``…_exposure_ratio``: rank-weighted share in [0, 1], by ``by`` and ``group``; the groups of
      one ``by`` sum to 1. With ``…_exposure_lower_ratio``, ``…_exposure_upper_ratio`` and
      ``…_exposure_baseline_ratio``
    - ``…_top1_ratio`` and the same three: share of first ranks
    - ``…_corrected_share_ratio``: exposure corrected for errors of the tags, where the monitor
      knows how often they are wrong
    - ``…_alarm_active``: 0 or 1, by ``rule`` ("baseline")
    - ``…_group_alarm_active``: 0 or 1, by ``by``, ``group`` and ``measure``
    - ``…_alarms_total``: by ``rule``, see below
    - ``…_dropped_events_total``: by ``part`` and ``reason``
    - ``…_label_overflow_total``: retrievals whose value of a ``label`` is counted as "other", by
      ``part`` ("monitor", "log")
    - ``…_bad_tags_total``: tags that could not be read, and ``…_odd_source_documents_total``:
      documents whose source is neither "human" nor "llm:<model>", by ``part``

    Sums over ``group`` make sense, sums over ``by`` do not: a document has a source and a style.
    No label holds a query or a document. How many values labels and groups have is limited by the
    monitor. A reading that fails shows no values, and counts as a dropped event; the scrape of the
    application's own metrics goes on. No server is started.

    The collector is a sink, too: told of alarms (``on_alarm`` of the monitor) it counts those of
    any rule, which snapshots do not hold. Otherwise ``…_alarms_total`` stays 0.

    Parameters
    ----------
    snapshots : callable
        ``monitor.snapshot``; or a function that joins those of several monitors.
    lost : callable or None
        Returns events lost elsewhere, such as
        ``lambda: {"langchain": handler.dropped.by_reason, "log": log.dropped.by_reason}``.
    log : callable or None
        Returns the summary of an event log, such as ``lambda: log_summary("retrievals.db")``.
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
        lost: Callable[[], LostEvents] | None = None,
        log: Callable[[], LogSummary | None] | None = None,
        registry: CollectorRegistry | None = None,
        prefix: str = "rag_sourcebias",
    ) -> None:
        if not re.fullmatch(r"[a-zA-Z][a-zA-Z0-9_]*", prefix):
            raise DataError(
                f"prefix of metrics must be letters, digits and _, from a letter on: {prefix!r}"
            )
        self._prefix = prefix
        self._reader = MonitorReader(snapshots, lost=lost, log=log)
        self.dropped = self._reader.dropped
        self._registry = registry or REGISTRY
        try:
            self._registry.register(self)
        except ValueError as error:
            raise DataError(
                f"the registry has metrics named {prefix}_… already; close the collector that "
                "registered them, or give another prefix or registry"
            ) from error

    def describe(self) -> Iterator[Metric]:
        """Return every metric without values, so that registering does not read the monitor."""
        return (self._family(metric, {}) for metric in metrics.METRICS)

    def collect(self) -> Iterator[Metric]:
        """Yield every metric, from one reading of the monitor."""
        read = self._reader.read()
        for metric in metrics.METRICS:
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

    def _family(self, metric: metrics.Metric, values: Values) -> Metric:
        name = f"{self._prefix}_{metric.name.replace('.', '_')}"
        if metric.kind == "buckets":
            return _histogram(Metric(name, metric.about, "histogram"), values)
        kind = CounterMetricFamily
        ending = ""
        if metric.kind != "counter":
            kind = GaugeMetricFamily
            ending = _ENDINGS.get(metric.unit, "")
        labels = [key for key, _ in next(iter(values), ())]
        family = kind(name + ending, metric.about, labels=labels)
        for at, value in sorted(values.items()):
            family.add_metric([text for _, text in at], value)
        return family


def _histogram(family: Metric, values: Values) -> Metric:
    """Add buckets in the order that Prometheus asks for: by series, then by limit."""
    ordered = [(dict(at), value) for at, value in values.items()]
    ordered.sort(key=lambda one: (sorted({**one[0], "le": ""}.items()), float(one[0]["le"])))
    for labels, value in ordered:
        family.add_sample(f"{family.name}_bucket", labels, value)
    return family


# Metrics as the text that Prometheus reads, for a server that is not the application's own.


class SkewExposition(SkewCollector):
    """A :class:`SkewCollector` in a registry of its own.

    Parameters
    ----------
    snapshots, lost, log
        As of :class:`SkewCollector`.
    """

    def __init__(
        self,
        snapshots: Callable[[], Iterable[MonitorSnapshot]],
        *,
        lost: Callable[[], LostEvents] | None = None,
        log: Callable[[], LogSummary | None] | None = None,
    ) -> None:
        registry = CollectorRegistry(auto_describe=False)
        super().__init__(snapshots, lost=lost, log=log, registry=registry)

    def close(self) -> None:
        """Nothing waits."""

    def text(self) -> bytes:
        """Return the metrics as they are now."""
        return bytes(generate_latest(self._registry))
