"""Instruments and spans read by the real SDK, by none, and inside instrumented frameworks."""

import asyncio
import math
import subprocess
import sys
from collections.abc import Iterator

import pytest

pytest.importorskip("opentelemetry.sdk.metrics")
pytest.importorskip("opentelemetry.sdk.trace")

from monitor_states import alarm, share, snapshot
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import Gauge, InMemoryMetricReader, Sum
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace import SpanKind

from rag_sourcebias.core.data import DocTags, RankedList
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.monitor.data import MonitorSnapshot
from rag_sourcebias.monitor.metrics import METRICS
from rag_sourcebias.monitor.sinks import Sink
from rag_sourcebias.observe.events import RetrievalEvent
from rag_sourcebias.observe.observers import CountingObserver, ExposureObserver, ObserverGroup
from rag_sourcebias.observe.recorder import Recorder, instrument
from rag_sourcebias_integrations.opentelemetry.instruments import SkewInstruments, SkewSpanObserver

pytestmark = pytest.mark.frameworks


class Monitor:
    def __init__(self) -> None:
        self.n, self.asked = 100, 0

    def snapshot(self) -> tuple[MonitorSnapshot, ...]:
        self.asked += 1
        return (snapshot(self.n), snapshot(self.n, by="style", groups=(share("news", 0.5),)))


@pytest.fixture
def reader() -> InMemoryMetricReader:
    return InMemoryMetricReader()


@pytest.fixture
def provider(reader: InMemoryMetricReader) -> Iterator[MeterProvider]:
    made = MeterProvider([reader], shutdown_on_exit=False)
    yield made
    made.shutdown()


def metrics(reader: InMemoryMetricReader) -> dict:
    data = reader.get_metrics_data()
    if data is None:
        return {}
    return {
        metric.name: metric
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }


def values(reader: InMemoryMetricReader) -> dict[str, dict[tuple, float]]:
    return {
        name: {tuple(sorted(p.attributes.items())): p.value for p in metric.data.data_points}
        for name, metric in metrics(reader).items()
    }


def test_a_collection(reader: InMemoryMetricReader, provider: MeterProvider) -> None:
    SkewInstruments(Monitor().snapshot, meter=provider.get_meter("test"))
    found = values(reader)
    docs = ("collection", "docs")
    assert found.keys() == {f"rag_sourcebias.{metric.name}" for metric in METRICS}
    assert found["rag_sourcebias.retrievals"] == {(docs,): 100}
    assert found["rag_sourcebias.exposure"][("by", "style"), docs, ("group", "news")] == 0.5


def test_kinds_and_units(reader: InMemoryMetricReader, provider: MeterProvider) -> None:
    SkewInstruments(Monitor().snapshot, meter=provider.get_meter("test"))
    found = metrics(reader)
    for metric in METRICS:
        read = found[f"rag_sourcebias.{metric.name}"]
        assert (read.unit, read.description) == (metric.unit, metric.about)
        if metric.kind != "gauge":
            assert isinstance(read.data, Sum)
            assert read.data.is_monotonic
        else:
            assert isinstance(read.data, Gauge)


def test_each_collection_reads_the_monitor_once(
    reader: InMemoryMetricReader, provider: MeterProvider
) -> None:
    monitor = Monitor()
    instruments = SkewInstruments(monitor.snapshot, meter=provider.get_meter("test"))
    assert monitor.asked == 0
    for n in (100, 150, 225):
        monitor.n = n
        instruments.alarm(alarm(rule="change"))
        found = values(reader)
        assert found["rag_sourcebias.retrievals"] == {(("collection", "docs"),): n}
    assert monitor.asked == 3
    changes = (("collection", "docs"), ("rule", "change"))
    assert found["rag_sourcebias.alarms"][changes] == 3


def test_closed_instruments_read_no_more(
    reader: InMemoryMetricReader, provider: MeterProvider
) -> None:
    monitor = Monitor()
    instruments = SkewInstruments(monitor.snapshot, meter=provider.get_meter("test"))
    assert isinstance(instruments, Sink)
    instruments.snapshots([snapshot()])
    instruments.close()
    assert not any(values(reader).values())
    assert monitor.asked == 0


def test_without_an_sdk_nothing_is_read_or_imported() -> None:
    code = (
        "import sys\n"
        "from rag_sourcebias_integrations.opentelemetry import SkewInstruments\n"
        "def never():\n"
        "    raise SystemExit('read')\n"
        "SkewInstruments(never).close()\n"
        "assert 'opentelemetry.sdk' not in sys.modules\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("prefix", ["", "9", "a b", "_x", "é", "a" * 101])
def test_a_prefix_that_starts_no_name(prefix: str) -> None:
    with pytest.raises(DataError, match="prefix of metrics must be letters, digits, _, "):
        SkewInstruments(Monitor().snapshot, prefix=prefix)


# Facts of a retrieval on spans of the real SDK, also inside real instrumented frameworks


SOURCES = ("human", "llm:gpt", None, "llm:gpt")
PREFIX = "rag_sourcebias."


@pytest.fixture
def exporter() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def tracing(exporter: InMemorySpanExporter) -> Iterator[TracerProvider]:
    made = TracerProvider(shutdown_on_exit=False)
    made.add_span_processor(SimpleSpanProcessor(exporter))
    yield made
    made.shutdown()


def event(*sources: str | None, style: str | None = None, **labels: str) -> RetrievalEvent:
    return RetrievalEvent(
        ranked=RankedList(
            query_id="hash-of-query", doc_ids=tuple(f"id{i}" for i in range(len(sources)))
        ),
        tags=tuple(DocTags(source=source, style=style) for source in sources),
        labels=labels,
    )


def ours(attributes: object) -> dict[str, object]:
    return {k: v for k, v in dict(attributes).items() if k.startswith(PREFIX)}


def shares(attributes: object, by: str = "source") -> dict[str, float]:
    found = dict(attributes)
    return dict(zip(found[f"{PREFIX}{by}.names"], found[f"{PREFIX}{by}.exposure"], strict=True))


def with_facts(exporter: InMemorySpanExporter) -> list[ReadableSpan]:
    return [span for span in exporter.get_finished_spans() if ours(span.attributes)]


def test_attributes_of_the_current_span(
    exporter: InMemorySpanExporter, tracing: TracerProvider
) -> None:
    observer, exposure = SkewSpanObserver(), ExposureObserver()
    with tracing.get_tracer("app").start_as_current_span("retrieve"):
        for one in (observer, exposure):
            one.observe(event(*SOURCES))
    (span,) = exporter.get_finished_spans()
    assert ours(span.attributes).keys() == {
        *(f"{PREFIX}source.{name}" for name in ("names", "exposure", "top1", "untagged")),
        "rag_sourcebias.documents",
    }
    assert span.attributes["rag_sourcebias.documents"] == 4
    assert span.attributes["rag_sourcebias.source.top1"] == "human"
    assert span.attributes["rag_sourcebias.source.untagged"] == 1
    assert span.attributes["rag_sourcebias.source.names"] == ("llm:gpt", "human", "untagged")
    counted = {name or "untagged": share for name, share in exposure.counts().shares().items()}
    assert shares(span.attributes) == pytest.approx(counted)
    assert "hash-of-query" not in str(span.to_json())
    assert "id0" not in str(span.to_json())


def test_styles_and_many_groups(exporter: InMemorySpanExporter, tracing: TracerProvider) -> None:
    capped = SkewSpanObserver(max_groups=2)
    styles = SkewSpanObserver(by="style")
    with tracing.get_tracer("app").start_as_current_span("retrieve"):
        capped.observe(event(*(f"llm:{i}" for i in range(8))))
        styles.observe(event("human", None, style="news"))
    (span,) = exporter.get_finished_spans()
    weights = [1 / math.log2(rank + 1) for rank in range(1, 9)]
    assert list(shares(span.attributes)) == ["llm:0", "llm:1", "other"]
    assert shares(span.attributes)["other"] == pytest.approx(sum(weights[2:]) / sum(weights))
    assert shares(span.attributes, "style") == {"news": 1.0}
    assert span.attributes["rag_sourcebias.style.untagged"] == 0


def test_without_a_recording_span_nothing_is_computed(exporter: InMemorySpanExporter) -> None:
    class Untouchable:
        labels: dict[str, str] = {}  # noqa: RUF012

    observer = SkewSpanObserver()
    observer.observe(Untouchable())
    off = TracerProvider(sampler=ALWAYS_OFF, shutdown_on_exit=False)
    off.add_span_processor(SimpleSpanProcessor(exporter))
    with off.get_tracer("app").start_as_current_span("retrieve"):
        observer.observe(Untouchable())
    SkewSpanObserver(current=lambda: None).observe(Untouchable())
    assert observer.dropped.total == 0
    assert not exporter.get_finished_spans()


def test_a_span_of_its_own(exporter: InMemorySpanExporter, tracing: TracerProvider) -> None:
    tracer = tracing.get_tracer("app")
    observer = SkewSpanObserver(where="span", tracer=tracer)
    with tracer.start_as_current_span("request"):
        observer.observe(event("human", collection="docs"))
    observer.observe(event("human"))
    inside, request, alone = exporter.get_finished_spans()
    assert (inside.name, alone.name) == ("retrieval docs", "retrieval")
    assert inside.kind is alone.kind is SpanKind.CLIENT
    assert inside.attributes["gen_ai.operation.name"] == "retrieval"
    assert inside.attributes["gen_ai.data_source.id"] == "docs"
    assert "gen_ai.data_source.id" not in alone.attributes
    assert shares(inside.attributes) == {"human": 1.0}
    assert inside.parent.span_id == request.context.span_id
    assert alone.parent is None
    assert inside.start_time == inside.end_time
    assert abs(inside.end_time - request.end_time) < 60e9


def test_what_fails_is_counted(tracing: TracerProvider) -> None:
    def broken() -> None:
        raise RuntimeError("text of a user")

    observer = SkewSpanObserver(current=broken)
    observer.observe(event("human"))
    assert observer.dropped.by_reason == {"span could not be written": 1}
    group = ObserverGroup(observer, CountingObserver())
    assert group.inline is True
    with tracing.get_tracer("app").start_as_current_span("retrieve"):
        Recorder(group).record(["a"])
    assert group.observers[1].n_events == 1
    assert group.dropped.total == 0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"by": "colour"}, "by 'colour' is not one of source, style"),
        ({"where": "log"}, "where 'log' is not one of attributes, event, span"),
        ({"max_groups": 0}, "max_groups must be at least 1, got 0"),
    ],
)
def test_settings_out_of_range(settings: dict, message: str) -> None:
    with pytest.raises(DataError, match=message):
        SkewSpanObserver(**settings)


def metadata(source: str | None) -> dict[str, str]:
    return {} if source is None else {"rsb_source": source}


@pytest.fixture
def llama_index_traced(tracing: TracerProvider) -> Iterator[None]:
    pytest.importorskip("llama_index.core")
    module = pytest.importorskip("openinference.instrumentation.llama_index")
    instrumentor = module.LlamaIndexInstrumentor()
    instrumentor.instrument(tracer_provider=tracing)
    yield
    instrumentor.uninstrument()


@pytest.fixture
def langchain_traced(tracing: TracerProvider) -> Iterator[None]:
    pytest.importorskip("langchain_core")
    module = pytest.importorskip("openinference.instrumentation.langchain")
    instrumentor = module.LangChainInstrumentor()
    instrumentor.instrument(tracer_provider=tracing)
    yield
    instrumentor.uninstrument()


@pytest.mark.usefixtures("llama_index_traced")
@pytest.mark.parametrize("use_async", [False, True])
def test_llama_index_with_openinference(exporter: InMemorySpanExporter, *, use_async: bool) -> None:
    from llama_index.core.base.base_retriever import BaseRetriever
    from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

    class Fixed(BaseRetriever):
        def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
            return [
                NodeWithScore(node=TextNode(id_=f"n{i}", text="t", metadata=metadata(source)))
                for i, source in enumerate(SOURCES)
            ]

    retriever = Fixed()
    with instrument("llama-index", SkewSpanObserver()):
        if use_async:
            asyncio.run(retriever.aretrieve("which river floods"))
        else:
            retriever.retrieve("which river floods")
    (span,) = with_facts(exporter)  # of two spans of one retrieval
    assert span.attributes["openinference.span.kind"] == "RETRIEVER"
    assert span.attributes["retrieval.documents.0.document.id"] == "n0"
    assert list(shares(span.attributes)) == ["llm:gpt", "human", "untagged"]


@pytest.mark.usefixtures("langchain_traced")
@pytest.mark.parametrize("use_async", [False, True])
def test_langchain_with_openinference(
    exporter: InMemorySpanExporter, tracing: TracerProvider, *, use_async: bool
) -> None:
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.runnables import RunnableLambda
    from openinference.instrumentation.langchain import get_current_span

    class Fixed(BaseRetriever):
        def _get_relevant_documents(self, query, *, run_manager) -> list[Document]:
            return [
                Document(id=f"n{i}", page_content="t", metadata=metadata(source))
                for i, source in enumerate(SOURCES)
            ]

    own = SkewSpanObserver(where="span", current=get_current_span, tracer=tracing.get_tracer("app"))
    around = SkewSpanObserver(where="attributes", current=get_current_span)
    chain = Fixed() | RunnableLambda(len)
    with instrument("langchain", ObserverGroup(own, around)):
        if use_async:
            assert asyncio.run(chain.ainvoke("which river floods")) == 4
        else:
            assert chain.invoke("which river floods") == 4
        Fixed().invoke("which river floods")  # no chain around it
    inside, sequence, alone = with_facts(exporter)
    assert (inside.name, alone.name) == ("retrieval", "retrieval")
    assert sequence.attributes["openinference.span.kind"] == "CHAIN"
    assert inside.parent.span_id == sequence.context.span_id
    assert alone.parent is None
    for span in (inside, sequence, alone):
        assert list(shares(span.attributes)) == ["llm:gpt", "human", "untagged"]
    kinds = [s.attributes.get("openinference.span.kind") for s in exporter.get_finished_spans()]
    assert kinds.count("RETRIEVER") == 2
