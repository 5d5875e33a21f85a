"""CPU that observing adds to one LangChain retrieval, beside OpenInference's instrumentation.

    python benchmarks/speed/observe_langchain.py [--quick] [--output FILE]

A retriever that does nothing returns the same 10 documents. Counted is the CPU of the whole
process (``time.process_time``): our thread that observes is in it, and the export of the spans on
the other side. Everything runs in turns within one process, with the garbage collector off while
a round runs, as ``timeit`` does. The figure is the median over many short rounds of the difference
to the bare retriever in the same round. Exit status 1 when a target is missed (never with
``--quick``): three tenths of what OpenInference adds to the same kind of call, in memory or with
its spans dropped, whichever is less.
"""

from __future__ import annotations

import argparse
import asyncio
import functools
import gc
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib.metadata import version
from pathlib import Path

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from openinference.instrumentation.langchain import LangChainInstrumentor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from rag_sourcebias.core.codec import environment
from rag_sourcebias.observe.observers import ExposureObserver
from rag_sourcebias.observe.recorder import instrument
from rag_sourcebias_integrations.langchain.observe import SourceBiasCallbackHandler

HERE = Path(__file__).parent
N_DOCUMENTS = 10
MOST_OF_OPENINFERENCE = 0.3


class Fixed(BaseRetriever):
    """Returns what it was given."""

    found: list[Document]

    def _get_relevant_documents(self, query, *, run_manager) -> list[Document]:  # noqa: ARG002
        return self.found

    async def _aget_relevant_documents(self, query, *, run_manager) -> list[Document]:  # noqa: ARG002
        return self.found


def documents() -> list[Document]:
    tags = {"rsb_source": "human", "rsb_style": "plain", "rsb_origin": "declared"}
    return [
        Document(
            id=f"doc-{i}",
            page_content=f"{i} " + "a sentence of some words " * 20,
            metadata={"source": f"https://example.org/{i}", **tags},
        )
        for i in range(N_DOCUMENTS)
    ]


@contextmanager
def openinference(kind: str):
    """OpenInference with spans kept in memory, or thrown away at once."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    if kind == "memory":
        provider.add_span_processor(SimpleSpanProcessor(exporter))
    instrumentor = LangChainInstrumentor()
    instrumentor.instrument(tracer_provider=provider)
    try:
        yield
    finally:
        instrumentor.uninstrument()


class Case:
    """One way of retrieving, and what it cost in each round."""

    def __init__(
        self,
        what: str,
        retriever: Fixed,
        *,
        handler: BaseCallbackHandler | None = None,
        around: Callable[[], AbstractContextManager] = nullcontext,
        use_async: bool = False,
    ) -> None:
        self.what = what
        self.retriever = retriever
        self.handler = handler
        self.around = around
        self.use_async = use_async
        self.rounds: list[float] = []

    def measure(self, n: int) -> None:
        config = None if self.handler is None else {"callbacks": [self.handler]}
        gc.collect()
        gc.disable()
        with self.around() as handle:
            start = time.process_time()
            if self.use_async:
                asyncio.run(self._ask(n, config))
            else:
                for _ in range(n):
                    self.retriever.invoke("which river floods", config)
            for queue in (self.handler, handle):
                if hasattr(queue, "flush"):
                    queue.flush()
            spent = time.process_time() - start
        gc.enable()
        self.rounds.append(1e6 * spent / n)

    async def _ask(self, n: int, config: dict | None) -> None:
        for _ in range(n):
            await self.retriever.ainvoke("which river floods", config)


def added(case: Case, bare: Case) -> float:
    """Median difference of the rounds after the first one, in microseconds."""
    return statistics.median(a - b for a, b in zip(case.rounds[1:], bare.rounds[1:], strict=True))


def row(case: Case, bare: Case, rivals: Sequence[Case]) -> dict:
    """One line of the table; with rivals, there is a target."""
    ours, base = added(case, bare), statistics.median(bare.rounds[1:])
    line = {
        "what": case.what,
        "ours": f"{ours:.1f} µs",
        "reference": f"bare: {base:.1f} µs",
        "value": round(ours, 2),
        "of_bare": round(ours / base, 3),
        "target": "",
        "met": None,
    }
    if rivals:
        rival = min(added(other, bare) for other in rivals)
        line["reference"] += f"; OpenInference adds {rival:.0f} µs"
        line["of_openinference"] = round(ours / rival, 4)
        line["target"] = f"≤ {MOST_OF_OPENINFERENCE:g} of OpenInference"
        line["met"] = ours <= MOST_OF_OPENINFERENCE * rival
    return line


def measure(*, n: int, rounds: int) -> list[dict]:
    retriever = Fixed(found=documents())
    observer = ExposureObserver()
    handler = SourceBiasCallbackHandler(observer)
    bare, abare = Case("bare", retriever), Case("bare, async", retriever, use_async=True)

    def observed(target: object) -> Callable[[], AbstractContextManager]:
        return lambda: instrument(target, ExposureObserver())

    ours = [
        Case("callback handler, 10 documents, tags in the metadata", retriever, handler=handler),
        Case("… async", retriever, handler=handler, use_async=True),
        Case("global hook", retriever, around=observed("langchain")),
        Case("retriever in place", retriever, around=observed(retriever)),
        Case("… in place, async", retriever, around=observed(retriever), use_async=True),
    ]
    rivals = [
        Case(
            f"OpenInference, {what}{', async' if use_async else ''}",
            retriever,
            around=functools.partial(openinference, kind),
            use_async=use_async,
        )
        for use_async in (False, True)
        for kind, what in (("memory", "in-memory exporter"), ("none", "spans dropped"))
    ]
    for _ in range(rounds + 1):
        for case in (bare, abare, *ours, *rivals):
            case.measure(n if case not in rivals else max(n // 10, 1))
    handler.close()
    counts = observer.counts()
    expected = (rounds + 1) * n * 2
    if counts.n_retrievals != expected or handler.dropped.total:
        raise SystemExit(
            f"{counts.n_retrievals} retrievals were observed of {expected}, "
            f"{handler.dropped.total} dropped"
        )
    beside = {use_async: [r for r in rivals if r.use_async == use_async] for use_async in (0, 1)}
    return [
        *(row(c, abare if c.use_async else bare, beside[c.use_async]) for c in ours),
        *(row(c, abare if c.use_async else bare, ()) for c in rivals),
    ]


def table(rows: list[dict]) -> str:
    mark = {True: "yes", False: "NO", None: ""}
    lines = ["| what | added | reference | target | met |", "|---|---|---|---|---|"]
    lines += [
        f"| {r['what']} | {r['ours']} | {r['reference']} | {r['target']} | {mark[r['met']]} |"
        for r in rows
    ]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description="CPU added to one LangChain retrieval.")
    parser.add_argument("--quick", action="store_true", help="small sizes, no verdict")
    parser.add_argument(
        "--output", type=Path, help="default: benchmarks/results/observe_langchain.json"
    )
    options = parser.parse_args()
    rows = measure(n=200, rounds=2 if options.quick else 30)
    output = options.output
    if output is None and not options.quick:
        output = HERE.parent / "results" / "observe_langchain.json"
    packages = ("openinference-instrumentation-langchain", "opentelemetry-sdk")
    if output is not None:
        record = {
            "environment": {**environment(), **{name: version(name) for name in packages}},
            "quick": options.quick,
            "load_average": round(os.getloadavg()[0], 2),
            "rows": rows,
        }
        output.write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    print(table(rows))
    return int(not options.quick and not all(r["met"] is not False for r in rows))


if __name__ == "__main__":
    sys.exit(main())
