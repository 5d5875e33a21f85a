"""CPU that observing adds to one LangChain retrieval, beside OpenInference's instrumentation.

    python benchmarks/speed/observe_langchain.py [--quick] [--output FILE]

A retriever that does nothing returns the same 10 documents. Counted is the CPU of the whole
process (``time.process_time``): our thread that observes is in it, and the export of the spans on
the other side. Everything runs in turns within one process, with the garbage collector off while
a round runs, as ``timeit`` does. The figure is the median over many short rounds of the difference
to the bare retriever in the same round. Exit status 1 when a target is missed (never with
``--quick``): a twentieth of what OpenInference adds to the same kind of call, in memory or with its
spans dropped, whichever is less, and seven tenths of the bare call.
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
from collections.abc import Callable
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

from rag_sourcebias.core.values import environment
from rag_sourcebias.observe.observers import CollectingObserver, ExposureObserver
from rag_sourcebias.observe.recorder import instrument
from rag_sourcebias_integrations.langchain.observe import SourceBiasCallbackHandler

HERE = Path(__file__).parent
N_DOCUMENTS = 10
MOST_OF_OPENINFERENCE, MOST_OF_BARE = 0.05, 0.7


class Fixed(BaseRetriever):
    """Returns what it was given."""

    found: list[Document]

    def _get_relevant_documents(self, query, *, run_manager) -> list[Document]:  # noqa: ARG002
        return self.found

    async def _aget_relevant_documents(self, query, *, run_manager) -> list[Document]:  # noqa: ARG002
        return self.found


class Nothing(BaseCallbackHandler):
    """What LangChain itself takes for any handler."""

    run_inline = True


class Least(Nothing):
    """The least that anybody can do who looks at a tag of each document."""

    n_human = 0

    def on_retriever_end(self, documents, **_: object) -> None:
        for document in documents:
            if document.metadata.get("rsb_source") == "human":
                self.n_human += 1


def documents(*, tagged: bool, named: bool) -> list[Document]:
    tags = {"rsb_source": "human", "rsb_style": "plain", "rsb_origin": "declared"}
    return [
        Document(
            id=f"doc-{i}" if named else None,
            page_content=f"{i} " + "a sentence of some words " * 20,
            metadata={"source": f"https://example.org/{i}", **(tags if tagged else {})},
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


def row(case: Case, bare: Case, rivals: list[Case] = []) -> dict:  # noqa: B006 - not changed
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
        line["target"] = (
            f"≤ {MOST_OF_OPENINFERENCE:g} of OpenInference and ≤ {MOST_OF_BARE:g} of bare"
        )
        line["met"] = ours <= min(MOST_OF_OPENINFERENCE * rival, MOST_OF_BARE * base)
    return line


def measure(*, n: int, rounds: int) -> list[dict]:
    named = Fixed(found=documents(tagged=True, named=True))
    nameless = Fixed(found=documents(tagged=True, named=False))
    untagged = Fixed(found=documents(tagged=False, named=True))
    observer = ExposureObserver()
    handler, nothing, least = SourceBiasCallbackHandler(observer), Nothing(), Least()
    bare, abare = Case("bare", named), Case("bare, async", named, use_async=True)
    ours = [
        (
            Case("callback handler, 10 documents, tags in the metadata", named, handler=handler),
            bare,
        ),
        (Case("… without tags", untagged, handler=handler), bare),
    ]

    def observed(target: object, by: object = None) -> Callable[[], AbstractContextManager]:
        return lambda: instrument(target, by or ExposureObserver())

    nowhere = "documents without ids"
    ours += [
        (Case("… async", named, handler=handler, use_async=True), abare),
        (Case(f"… {nowhere}", nameless, handler=handler), bare),
        (Case("global hook", named, around=observed("langchain")), bare),
        (Case("retriever in place", named, around=observed(named)), bare),
        (Case("… async", named, around=observed(named), use_async=True), abare),
        (Case(f"… {nowhere}", nameless, around=observed(nameless)), bare),
    ]
    # Who counts sources looks at no id; a log that is to keep them does.
    kept = CollectingObserver(capacity=1)
    keeper = SourceBiasCallbackHandler(kept)
    looking = [
        (Case("callback handler, whose observer looks at ids", named, handler=keeper), bare),
        (Case("… documents without ids (their texts are hashed)", nameless, handler=keeper), bare),
        (
            Case("retriever in place, observer looks at ids", named, around=observed(named, kept)),
            bare,
        ),
        (
            Case(
                "… documents without ids (their texts are hashed)",
                nameless,
                around=observed(nameless, kept),
            ),
            bare,
        ),
    ]
    langchain = [
        (Case("LangChain's own part: an empty handler", named, handler=nothing), bare),
        (Case("… async", named, handler=nothing, use_async=True), abare),
        (Case("… that reads one tag of each document", named, handler=least), bare),
        (
            Case(
                "… that reads one tag of each document, async", named, handler=least, use_async=True
            ),
            abare,
        ),
    ]
    rivals = [
        Case(
            f"OpenInference, {what}{', async' * use_async}",
            named,
            around=functools.partial(openinference, kind),
            use_async=use_async,
        )
        for use_async in (False, True)
        for kind, what in (("memory", "in-memory exporter"), ("none", "spans dropped"))
    ]
    everything = [bare, abare, *(case for case, _ in (*ours, *looking, *langchain)), *rivals]
    for _ in range(rounds + 1):
        for case in everything:
            case.measure(n if case not in rivals else max(n // 10, 1))
    handler.close()
    counts = observer.counts()
    expected = (rounds + 1) * n * 4
    if counts.n_retrievals != expected or handler.dropped.total:
        raise SystemExit(
            f"{counts.n_retrievals} retrievals were observed of {expected}, "
            f"{handler.dropped.total} dropped"
        )
    return [
        *(row(case, b, [r for r in rivals if r.use_async == case.use_async]) for case, b in ours),
        *(row(case, base) for case, base in (*looking, *langchain)),
        *(row(case, abare if case.use_async else bare) for case in rivals),
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
    rows = measure(n=200, rounds=2 if options.quick else 110)
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
