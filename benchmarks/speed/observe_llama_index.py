"""CPU that observing a LlamaIndex retrieval of 10 nodes adds, beside OpenInference's.

    python benchmarks/speed/observe_llama_index.py [--quick] [--output FILE]

The retriever does nothing, so that everything measured is LlamaIndex and the observation. CPU is
that of the whole process, the queue's thread included. Variants run in turns within each round,
with the garbage collector off; the figures are medians over rounds of the difference to the bare
retriever, after 5,000 retrievals. OpenInference has rounds of its own, in which ours runs as
well: it leaves the process slower for whatever runs next, and its neighbours would pay for it.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import json
import random
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, TextNode
from openinference.instrumentation.llama_index import LlamaIndexInstrumentor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from rag_sourcebias.core.codec import environment
from rag_sourcebias.observe.observers import ExposureObserver
from rag_sourcebias.observe.recorder import Recorder, instrument

N_NODES = 10
MOST_OF_OPENINFERENCE = 0.3


SOURCES = ("human", "llm:x", "llm:y", None)


class Still(BaseRetriever):
    """Returns one of 200 lists at once, in turns; sources and order differ."""

    def __init__(self) -> None:
        super().__init__()
        nodes = [
            TextNode(
                id_=f"doc-{i}",
                text=f"Passage {i} about rivers and meadows. " * 20,
                metadata={"file": f"{i}.md"}
                | ({} if SOURCES[i % 4] is None else {"rsb_source": SOURCES[i % 4]}),
            )
            for i in range(100)
        ]
        draw = random.Random(0)
        self.lists = itertools.cycle(
            [
                [
                    NodeWithScore(node=node, score=1 - rank / 20)
                    for rank, node in enumerate(draw.sample(nodes, N_NODES))
                ]
                for _ in range(200)
            ]
        )

    def _retrieve(self, query_bundle: object) -> list[NodeWithScore]:  # noqa: ARG002
        return next(self.lists)


Flush = Callable[[], object]


@contextmanager
def bare(_: Still) -> Iterator[Flush]:
    yield lambda: None


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
    "process": ours(lambda _: "llama-index"),
    "object": ours(lambda retriever: retriever),
    "openinference": openinference,
}


def cpu_us(variant: Callable, retriever: Still, n: int) -> float:
    """CPU microseconds of the process per retrieval."""
    with variant(retriever) as flush:
        for _ in range(20):
            retriever.retrieve("which river floods the meadow")
        flush()
        gc.collect()
        gc.disable()  # as timeit does: whose retrieval a collection falls into is chance
        start = time.process_time()
        for _ in range(n):
            retriever.retrieve("which river floods the meadow")
        flush()
        spent = time.process_time() - start
        gc.enable()
        return 1e6 * spent / n


def measure(*, rounds: int, n: int, before: int) -> dict[str, float]:
    retriever = Still()
    for name in ("process", "object"):  # until every bounded table is full
        cpu_us(VARIANTS[name], retriever, before)
    alone = in_turns(["bare", "process", "object"], retriever, rounds, n)
    beside = in_turns(["bare", "process", "openinference"], retriever, rounds, n)
    ours, theirs = added(beside, "process"), added(beside, "openinference")
    return {
        "bare_us": round(statistics.median(alone["bare"]), 2),
        "added_us": round(statistics.median(added(alone, "process")), 2),
        "added_for_one_object_us": round(statistics.median(added(alone, "object")), 2),
        "openinference_added_us": round(statistics.median(theirs), 2),
        "share_of_openinference": round(
            statistics.median(a / b for a, b in zip(ours, theirs, strict=True)), 4
        ),
    }


def in_turns(names: list[str], retriever: Still, rounds: int, n: int) -> dict[str, list[float]]:
    """CPU per retrieval of each variant in each round."""
    times: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(rounds):
        for name in names:
            times[name].append(cpu_us(VARIANTS[name], retriever, n))
    return times


def added(times: dict[str, list[float]], name: str) -> list[float]:
    return [a - b for a, b in zip(times[name], times["bare"], strict=True)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    default = Path(__file__).parents[1] / "results" / "observe_llama_index.json"
    parser.add_argument("--output", type=Path, default=default)
    options = parser.parse_args()
    rounds, n, before = (3, 200, 200) if options.quick else (20, 300, 5_000)
    found = measure(rounds=rounds, n=n, before=before)
    most = max(found["added_us"], found["added_for_one_object_us"])
    met = (
        most <= MOST_OF_OPENINFERENCE * found["openinference_added_us"]
        and found["share_of_openinference"] <= MOST_OF_OPENINFERENCE
    )
    for name, value in found.items():
        print(f"{name:36s} {value}")
    print(f"target (≤ {MOST_OF_OPENINFERENCE:g} of OpenInference): {'met' if met else 'missed'}")
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
        "targets": {"share_of_openinference": MOST_OF_OPENINFERENCE},
        "met": met,
        **found,
        "environment": {**environment(), **{name: version(name) for name in packages}},
    }
    options.output.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return 0 if met else 1


if __name__ == "__main__":
    raise SystemExit(main())
