"""CPU that observing a LlamaIndex retrieval of 10 nodes adds, beside OpenInference's.

    python benchmarks/speed/observe_llama_index.py [--quick] [--output FILE]

The retriever does nothing, so that everything measured is LlamaIndex and the observation. CPU is
that of the whole process, the queue's thread included. All variants run in turns within each
round; the figures are medians over rounds of the difference to the bare retriever, after 25,000
retrievals.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.instrumentation.span_handlers import BaseSpanHandler
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, TextNode
from openinference.instrumentation.llama_index import LlamaIndexInstrumentor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from rag_sourcebias.adapters import instrument
from rag_sourcebias.audit.environment import environment
from rag_sourcebias.instrument import ExposureObserver, Recorder

N_NODES = 10
TARGET_US = 20.0
TARGET_SHARE = 0.1


class Still(BaseRetriever):
    """Returns the same nodes at once."""

    def __init__(self) -> None:
        super().__init__()
        self.nodes = [
            NodeWithScore(
                node=TextNode(
                    id_=f"doc-{i}",
                    text=f"Passage {i} about rivers and meadows. " * 20,
                    metadata={"file": f"{i}.md", "rsb_source": "human" if i % 2 else "llm:x"},
                ),
                score=1 - i / 20,
            )
            for i in range(N_NODES)
        ]

    def _retrieve(self, query_bundle: object) -> list[NodeWithScore]:  # noqa: ARG002
        return self.nodes


class NoEvents(BaseEventHandler):
    def handle(self, event: object, **kwargs: object) -> None:
        pass


class NoSpans(BaseSpanHandler):
    def new_span(self, *args: object, **kwargs: object) -> None:
        pass

    def prepare_to_exit_span(self, *args: object, **kwargs: object) -> None:
        pass

    def prepare_to_drop_span(self, *args: object, **kwargs: object) -> None:
        pass


Flush = Callable[[], object]


@contextmanager
def bare(_: Still) -> Iterator[Flush]:
    yield lambda: None


@contextmanager
def no_op(_: Still) -> Iterator[Flush]:
    root = get_dispatcher()
    events, spans = root.event_handlers, root.span_handlers
    root.event_handlers, root.span_handlers = [*events, NoEvents()], [*spans, NoSpans()]
    yield lambda: None
    root.event_handlers, root.span_handlers = events, spans


def ours(target: Callable[[Still], object]) -> Callable[[Still], Iterator[Flush]]:
    observer = ExposureObserver()
    kept = Recorder(observer)  # as in an application that runs for long: queue and tables stay

    @contextmanager
    def attached(retriever: Still) -> Iterator[Flush]:
        before = observer.counts().n_retrievals
        with instrument(target(retriever), observer) as handle:
            yield handle.flush
            if kept.dropped.total or observer.counts().n_retrievals == before:
                raise SystemExit(f"events were lost: {dict(kept.dropped.by_reason)}")

    return attached


@contextmanager
def openinference(_: Still) -> Iterator[Flush]:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    instrumentor = LlamaIndexInstrumentor()
    instrumentor.instrument(tracer_provider=provider)
    yield lambda: None
    instrumentor.uninstrument()
    if not exporter.get_finished_spans():
        raise SystemExit("OpenInference exported nothing")


VARIANTS = {
    "bare": bare,
    "no-op handlers": no_op,
    "process": ours(lambda _: "llama-index"),
    "object": ours(lambda retriever: retriever),
    "openinference": openinference,
}


def cpu_us(variant: Callable, retriever: Still, n: int) -> tuple[float, float]:
    """CPU microseconds per retrieval, of the process and of the calling thread."""
    with variant(retriever) as flush:
        for _ in range(20):
            retriever.retrieve("which river floods the meadow")
        flush()
        start, start_thread = time.process_time(), time.thread_time()
        for _ in range(n):
            retriever.retrieve("which river floods the meadow")
        thread = time.thread_time() - start_thread
        flush()
        return 1e6 * (time.process_time() - start) / n, 1e6 * thread / n


def measure(*, rounds: int, n: int, before: int) -> dict[str, float]:
    retriever = Still()
    for name in ("process", "object"):  # until every bounded table is full
        cpu_us(VARIANTS[name], retriever, before)
    whole: dict[str, list[float]] = {name: [] for name in VARIANTS}
    caller: dict[str, list[float]] = {name: [] for name in VARIANTS}
    for _ in range(rounds):
        for name, variant in VARIANTS.items():
            process, thread = cpu_us(variant, retriever, n)
            whole[name].append(process)
            caller[name].append(thread)

    def added(times: dict[str, list[float]], name: str, base: str = "bare") -> float:
        pairs = zip(times[name], times[base], strict=True)
        return round(statistics.median(one - other for one, other in pairs), 2)

    share = [
        (a - base) / (b - base)
        for a, b, base in zip(whole["process"], whole["openinference"], whole["bare"], strict=True)
    ]
    return {
        "bare_us": round(statistics.median(whole["bare"]), 2),
        "no_op_handlers_added_us": added(whole, "no-op handlers"),
        "added_us": added(whole, "process"),
        "added_us_quietest": round(min(whole["process"]) - min(whole["bare"]), 2),
        "added_in_the_calling_thread_us": added(caller, "process"),
        "added_beyond_no_op_handlers_us": added(whole, "process", "no-op handlers"),
        "added_for_one_object_us": added(whole, "object"),
        "openinference_added_us": added(whole, "openinference"),
        "share_of_openinference": round(statistics.median(share), 4),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    default = Path(__file__).parents[1] / "results" / "observe_llama_index.json"
    parser.add_argument("--output", type=Path, default=default)
    options = parser.parse_args()
    rounds, n, before = (3, 200, 200) if options.quick else (15, 1000, 25_000)
    found = measure(rounds=rounds, n=n, before=before)
    met = found["added_us"] <= TARGET_US and found["share_of_openinference"] <= TARGET_SHARE
    for name, value in found.items():
        print(f"{name:36s} {value:10.4g}")
    print(
        f"targets (≤ {TARGET_US:.0f} µs and ≤ 1/10 of OpenInference): {'met' if met else 'missed'}"
    )
    if options.quick:
        return 0
    packages = (
        "llama-index-core",
        "llama-index-instrumentation",
        "openinference-instrumentation-llama-index",
        "opentelemetry-sdk",
    )
    record = {
        "what": f"CPU added to one retrieval of {N_NODES} nodes, whole process, µs",
        "rounds": rounds,
        "retrievals_per_round": n,
        "retrievals_before": before,
        "targets": {"added_us": TARGET_US, "share_of_openinference": TARGET_SHARE},
        "met": met,
        **found,
        "environment": {**environment(), **{name: version(name) for name in packages}},
    }
    options.output.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return 0 if met else 1


if __name__ == "__main__":
    raise SystemExit(main())
