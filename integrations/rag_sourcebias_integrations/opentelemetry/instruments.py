"""What a monitor knows as instruments, and what a retrieval was as attributes of its span."""

import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import Literal, get_args

from opentelemetry.metrics import CallbackOptions, Meter, Observation, get_meter
from opentelemetry.trace import (
    Span,
    SpanKind,
    Tracer,
    get_current_span,
    get_tracer,
    set_span_in_context,
)

from rag_sourcebias._version import __version__
from rag_sourcebias.core.errors import DataError, require_at_least, require_one_of
from rag_sourcebias.monitor.data import Alarm, MonitorSnapshot
from rag_sourcebias.monitor.metrics import (
    METRICS,
    UNTAGGED,
    LostEvents,
    MonitorReader,
    Values,
)
from rag_sourcebias.observe.events import DroppedEvents, Locked, RetrievalEvent
from rag_sourcebias.observe.labels import OTHER, short_text
from rag_sourcebias.observe.log.reading import LogSummary
from rag_sourcebias.observe.observers import exposure_of

# Offer a monitor's state to OpenTelemetry, by its API alone.


class SkewInstruments(Locked):
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
    lost, log : callable or None
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
        self._reader = MonitorReader(snapshots, lost=lost, log=log)
        self.dropped = self._reader.dropped
        self._served = {metric.name for metric in METRICS}
        self._reading: Mapping[str, Values] = {}
        self._closed = False
        super().__init__()
        used = meter or get_meter("rag_sourcebias", __version__)
        for metric in METRICS:
            create = (
                used.create_observable_gauge
                if metric.kind == "gauge"
                else used.create_observable_counter
            )
            create(
                f"{prefix}.{metric.name}",
                callbacks=[partial(self._observe, metric.name)],
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

    def _observe(self, name: str, options: CallbackOptions) -> Iterable[Observation]:  # noqa: ARG002
        """Give one instrument its values; one reading serves all of one collection.

        The SDK asks each instrument on its own and does not say where a collection begins: it is
        where an instrument asks for the second time.
        """
        if self._closed:
            return []
        with self._lock:
            if name in self._served:
                self._reading = self._reader.read()
                self._served = set()
            self._served.add(name)
            values = self._reading[name]
        return [Observation(value, dict(labels)) for labels, value in values.items()]


# Attributes of a span that tell who got the ranks of one retrieval.


_MOST_DOCUMENTS = 1_000  # that are weighed: an observer called inline must be quick


def _name(group: str | None) -> str:
    return UNTAGGED if group is None else short_text(group)


# Put who got the ranks of one retrieval on an OpenTelemetry span, by the API alone.


Where = Literal["attributes", "event", "span"]


class SkewSpanObserver:
    """Write the shares of one retrieval on the span that is current; an observer.

    ==================================== ================================================
    ``rag_sourcebias.documents``         documents retrieved
    ``rag_sourcebias.source.names``      sources, the largest exposure first; "other" last
    ``rag_sourcebias.source.exposure``   share of each: weights 1/log2(rank + 1); sums to 1
    ``rag_sourcebias.source.top1``       source of the first document
    ``rag_sourcebias.source.untagged``   documents without a source
    ==================================== ================================================

    With ``by="style"`` the names have ``style`` instead of ``source``. Untagged documents are a
    group "untagged". An empty retrieval has the first attribute only. No attribute holds a query,
    a document or an id. Without a recording span nothing is computed or written.

    ``where`` these go depends on what stands around the handler:

    - "attributes" of the current span: right where that is the span of the retrieval, as with
      OpenInference's instrumentation of LlamaIndex. A later retrieval under the same span takes
      the place of an earlier one.
    - "event": an event ``rag_sourcebias.retrieval`` of the current span, one for each retrieval.
    - "span": a span of its own inside the current one, or a trace of its own where there is none;
      for LangChain, in whose callbacks the span of the retriever is never current. Name
      (``retrieval {collection}``), kind and ``gen_ai.*`` attributes are those of OpenTelemetry's
      conventions for generative AI. It begins when the retrieval ended, and has no duration:
      observers are not told when a retrieval began, nor how many documents it was asked for.

    Spans are those of the application's thread: an observer on the thread of a queue sees none.
    Tags out of a ``TagStore``, and members of an ``ObserverGroup`` that are not ``inline``, bring
    such a thread; give this observer an instrumentation of its own there.

    Parameters
    ----------
    by : {"source", "style"}
    where : {"attributes", "event", "span"}
    current : callable or None
        Returns the span to write on or below, or None. By default OpenTelemetry's
        ``get_current_span``. In LangChain with OpenInference
        ``openinference.instrumentation.langchain.get_current_span`` is the span of the chain
        around the retriever.
    tracer : opentelemetry.trace.Tracer or None
        Makes the spans of ``where="span"``; one of the global provider by default.
    max_groups : int
        Groups told apart in one retrieval, at least 1; the others are "other".

    Attributes
    ----------
    dropped : DroppedEvents
        Retrievals that could not be written.

    Raises
    ------
    DataError
        If ``by``, ``where`` or ``max_groups`` is not one of these.
    """

    inline = True  # see Delivery: the current span is that of the application's thread

    def __init__(
        self,
        *,
        by: Literal["source", "style"] = "source",
        where: Where = "attributes",
        current: Callable[[], Span | None] | None = None,
        tracer: Tracer | None = None,
        max_groups: int = 10,
    ) -> None:
        require_one_of("by", by, ("source", "style"))
        require_one_of("where", where, get_args(Where))
        require_at_least(1, max_groups=max_groups)
        self._by, self._where, self._max_groups = by, where, max_groups
        self._group_of = attrgetter(by)
        self._current = current or get_current_span
        self._tracer = tracer or get_tracer("rag_sourcebias", __version__)
        self.dropped = DroppedEvents()

    def observe(self, event: RetrievalEvent) -> None:
        """Write one retrieval; raises nothing."""
        try:
            self._write(event)
        except Exception as error:  # noqa: BLE001 - nothing may reach the application
            self.dropped.add("span could not be written", error=error)

    def _write(self, event: RetrievalEvent) -> None:
        span = self._current()
        if self._where == "span":
            self._own_span(event, below=span)
        elif span is None or not span.is_recording():
            return
        elif self._where == "event":
            span.add_event("rag_sourcebias.retrieval", self._facts(event))
        else:
            span.set_attributes(self._facts(event))

    def _own_span(self, event: RetrievalEvent, *, below: Span | None) -> None:
        collection = event.labels.get("collection", "")[:200]
        source = {"gen_ai.data_source.id": collection} if collection else {}
        ended = time.time_ns() - int(1e9 * (time.monotonic() - event.monotonic))
        span = self._tracer.start_span(
            f"retrieval {collection}".rstrip(),
            context=None if below is None else set_span_in_context(below),
            kind=SpanKind.CLIENT,
            attributes={"gen_ai.operation.name": "retrieval", **source},
            start_time=ended,
        )
        if span.is_recording():
            span.set_attributes(self._facts(event))
        span.end(end_time=ended)

    def _facts(
        self, event: RetrievalEvent
    ) -> Mapping[str, int | str | Sequence[str] | Sequence[float]]:
        """Return the attributes of a retrieval; groups of the largest exposure are told apart."""
        groups, by, most = list(map(self._group_of, event.tags)), self._by, self._max_groups
        if not groups:
            return {"rag_sourcebias.documents": 0}
        weights = exposure_of(groups[:_MOST_DOCUMENTS])
        ranking = sorted(weights, key=lambda group: (-weights[group], group or ""))
        whole = sum(weights.values())
        names = [_name(group) for group in ranking[:most]]
        shares = [weights[group] / whole for group in ranking[:most]]
        if len(ranking) > most:
            names.append(OTHER)
            shares.append(max(1.0 - sum(shares), 0.0))
        return {
            "rag_sourcebias.documents": len(groups),
            f"rag_sourcebias.{by}.names": names,
            f"rag_sourcebias.{by}.exposure": shares,
            f"rag_sourcebias.{by}.top1": _name(groups[0]),
            f"rag_sourcebias.{by}.untagged": sum(group is None for group in groups),
        }
