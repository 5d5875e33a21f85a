"""CPU that observing adds to one retrieval of 10 documents, beside OpenInference's.

    python benchmarks/speed/observe.py [--quick] [--only langchain] [--output FILE]

The retrievers do nothing, so that everything measured is the framework and the observation. CPU is
that of the whole process, our thread that observes and the export of spans included. Ways run in
turns within each round, with the garbage collector off, as ``timeit`` does; figures are medians
over rounds of the difference to the bare retriever, after 5,000 retrievals. OpenInference, with its
spans dropped, has rounds of its own, in which ours run as well: it leaves the process slower for
whatever runs next. Exit status 1 when a way adds more than three tenths of what it adds.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import importlib
import itertools
import json
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from opentelemetry.sdk.trace import TracerProvider

from rag_sourcebias.core.codec import environment
from rag_sourcebias.observe.observers import ExposureObserver
from rag_sourcebias.observe.recorder import Recorder, instrument

RESULT = Path(__file__).parents[1] / "results" / "observe.json"
MOST_OF_OPENINFERENCE = 0.3
QUERY = "which river floods the meadow"
SOURCES = ("human", "llm:x", "llm:y", None)
Asked = Callable[[int], object]
"""Retrieves so many times."""
Way = Callable[[], AbstractContextManager[tuple[Asked, Callable[[], object]]]]
"""Gives a way to ask, observed, and what waits until everything was observed."""


@dataclass(frozen=True)
class Framework:
    """How a framework is asked, observed by us, and observed by OpenInference."""

    bare: Mapping[str, Asked]
    ours: Mapping[str, tuple[str, Way]]  # beside which bare one each runs
    instrumentor: str
    packages: Sequence[str]

    def ways(self) -> dict[str, Way]:
        plain = {name: unobserved(ask) for name, ask in self.bare.items()}
        rivals = {f"OpenInference, {name}": self.rival(ask) for name, ask in self.bare.items()}
        return plain | {name: way for name, (_, way) in self.ours.items()} | rivals

    def rival(self, ask: Asked) -> Way:
        module, name = self.instrumentor.split(":")

        @contextmanager
        def observed() -> Iterator[tuple[Asked, Callable[[], object]]]:
            instrumentor = getattr(importlib.import_module(module), name)()
            instrumentor.instrument(tracer_provider=TracerProvider())
            yield ask, lambda: None
            instrumentor.uninstrument()

        return observed


def unobserved(ask: Asked) -> Way:
    @contextmanager
    def bare() -> Iterator[tuple[Asked, Callable[[], object]]]:
        yield ask, lambda: None

    return bare


def attached(target: object, ask: Asked) -> Way:
    observer = ExposureObserver()
    kept = Recorder(observer)  # as in an application that runs for long: queue and tables stay

    @contextmanager
    def observed() -> Iterator[tuple[Asked, Callable[[], object]]]:
        before = observer.counts().n_retrievals
        with instrument(target, observer) as handle:
            yield ask, handle.flush
            if kept.dropped.total or observer.counts().n_retrievals == before:
                raise SystemExit(f"events were lost: {dict(kept.dropped.by_reason)}")

    return observed


def contents() -> list[tuple[str, str, dict[str, Any]]]:
    """Ids, texts and metadata of 100 documents."""
    found = []
    for i in range(100):
        metadata: dict[str, Any] = {"file": f"{i}.md"}
        source = SOURCES[i % 4]
        if source is not None:
            metadata["rsb_source"] = source
        found.append((f"doc-{i}", f"Passage {i} about rivers and meadows. " * 20, metadata))
    return found


def lists(documents: Sequence[Any]) -> Iterator[list[Any]]:
    """200 lists of 10 documents in turns; sources and order differ."""
    draw = random.Random(0)
    return itertools.cycle([draw.sample(documents, 10) for _ in range(200)])


def with_handler(asked: Callable[[int, Any], object]) -> Way:
    from rag_sourcebias_integrations.langchain.observe import SourceBiasCallbackHandler

    handler = SourceBiasCallbackHandler(ExposureObserver())

    @contextmanager
    def observed() -> Iterator[tuple[Asked, Callable[[], object]]]:
        yield lambda n: asked(n, {"callbacks": [handler]}), handler.flush
        if handler.dropped.total:
            raise SystemExit("events were lost")

    return observed


def langchain() -> Framework:
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever

    found = lists([Document(id=i, page_content=t, metadata=m) for i, t, m in contents()])

    class Still(BaseRetriever):
        def _get_relevant_documents(self, query, *, run_manager):  # noqa: ARG002
            return next(found)

        async def _aget_relevant_documents(self, query, *, run_manager):  # noqa: ARG002
            return next(found)

    retriever = Still()

    def ask(n: int, config: Any = None) -> None:
        for _ in range(n):
            retriever.invoke(QUERY, config)

    async def ask_n(n: int, config: Any = None) -> None:
        for _ in range(n):
            await retriever.ainvoke(QUERY, config)

    def ask_async(n: int, config: Any = None) -> None:
        asyncio.run(ask_n(n, config))

    return Framework(
        {"sync": ask, "async": ask_async},
        {
            "callback handler": ("sync", with_handler(ask)),
            "callback handler, async": ("async", with_handler(ask_async)),
            "whole process": ("sync", attached("langchain", ask)),
            "one retriever": ("sync", attached(retriever, ask)),
            "one retriever, async": ("async", attached(retriever, ask_async)),
        },
        "openinference.instrumentation.langchain:LangChainInstrumentor",
        ("langchain-core", "openinference-instrumentation-langchain", "opentelemetry-sdk"),
    )


def llama_index() -> Framework:
    from llama_index.core.retrievers import BaseRetriever
    from llama_index.core.schema import NodeWithScore, TextNode

    nodes = [TextNode(id_=i, text=t, metadata=m) for i, t, m in contents()]
    found = lists([NodeWithScore(node=node, score=0.5) for node in nodes])

    class Still(BaseRetriever):
        def _retrieve(self, query_bundle: object) -> list[NodeWithScore]:  # noqa: ARG002
            return next(found)

    retriever = Still()

    def ask(n: int) -> None:
        for _ in range(n):
            retriever.retrieve(QUERY)

    return Framework(
        {"sync": ask},
        {
            "whole process": ("sync", attached("llama-index", ask)),
            "one retriever": ("sync", attached(retriever, ask)),
        },
        "openinference.instrumentation.llama_index:LlamaIndexInstrumentor",
        ("llama-index-core", "openinference-instrumentation-llama-index", "opentelemetry-sdk"),
    )


FRAMEWORKS = {"langchain": langchain, "llama-index": llama_index}


def cpu_us(way: Way, n: int) -> float:
    """CPU microseconds of the process per retrieval."""
    with way() as (ask, flush):
        ask(20)
        flush()
        gc.collect()
        gc.disable()  # whose retrieval a collection falls into is chance
        start = time.process_time()
        ask(n)
        flush()
        spent = time.process_time() - start
        gc.enable()
    return 1e6 * spent / n


def measure(framework: Framework, *, rounds: int, n: int, before: int) -> dict[str, Any]:
    """Return what each way adds, alone and as a share of what OpenInference adds."""
    ways = framework.ways()
    for name in framework.ours:  # until every bounded table is full
        cpu_us(ways[name], before)
    alone = in_turns({k: ways[k] for k in (*framework.bare, *framework.ours)}, rounds, n)
    beside = in_turns(ways, rounds, n)
    found = {}
    for name, (bare, _) in framework.ours.items():
        rival = differences(beside, f"OpenInference, {bare}", bare)
        shares = [a / b for a, b in zip(differences(beside, name, bare), rival, strict=True)]
        found[name] = {
            "bare_us": round(statistics.median(alone[bare]), 2),
            "added_us": round(statistics.median(differences(alone, name, bare)), 2),
            "openinference_added_us": round(statistics.median(rival), 2),
            "share_of_openinference": round(statistics.median(shares), 4),
        }
    return found


def in_turns(ways: Mapping[str, Way], rounds: int, n: int) -> dict[str, list[float]]:
    """CPU per retrieval of each way in each round."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            times[name].append(cpu_us(way, n))
    return times


def differences(times: Mapping[str, list[float]], name: str, bare: str) -> list[float]:
    return [a - b for a, b in zip(times[name], times[bare], strict=True)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="few rounds, nothing is written")
    parser.add_argument("--only", choices=FRAMEWORKS, nargs="*", default=list(FRAMEWORKS))
    parser.add_argument("--output", type=Path, default=RESULT)
    options = parser.parse_args()
    rounds, n, before = (3, 200, 200) if options.quick else (20, 300, 5_000)
    kept: dict[str, Any] = {}
    if options.output.is_file():
        kept = json.loads(options.output.read_text(encoding="utf-8"))
    missed = 0
    for name in options.only:
        framework = FRAMEWORKS[name]()
        found = measure(framework, rounds=rounds, n=n, before=before)
        for way, row in found.items():
            met = row["share_of_openinference"] <= MOST_OF_OPENINFERENCE
            missed += not met
            print(f"{name}, {way}: {row} {'met' if met else 'MISSED'}", flush=True)
        versions = {package: version(package) for package in framework.packages}
        kept[name] = {"ways": found, "environment": {**environment(), **versions}}
    if options.quick:
        return 0
    options.output.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
