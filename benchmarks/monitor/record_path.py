"""CPU that recording adds to one LangChain retrieval, beside OpenInference and Langfuse.

    python benchmarks/monitor/record_path.py [--quick] [--output FILE]

A retriever that does nothing returns 10 tagged documents out of 100, in one of 200 orders. Given
to it are our callback handler in front of an event log, a monitor, or both; the handler that
OpenInference's instrumentation adds; and Langfuse's (``pip install langfuse``; without it that
row is skipped). Both rivals make real spans. These go to an exporter that throws them away or
keeps them in memory: sending them would cost more.

CPU time is counted twice: of the calls on the thread that makes them (``time.thread_time``), and
of other threads: our writer and the monitor's, their exporters (``time.process_time`` less the
former). Rounds are short and interleaved, with the garbage collector off. Work of other processes
makes the same code cost more CPU time (shared caches and cores): the figure is the lowest decile
of the rounds less that of the bare retriever, as ``timeit`` prefers the least, with the median of
the differences beside it; ratios are medians over rounds. The target is held by the calls, and
that of the rivals also by the whole process beside the whole process.

Latency is wall time of the two callbacks of a retrieval, back to back while the writer works.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import os
import random
import statistics
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from openinference.instrumentation.langchain import LangChainInstrumentor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import (
    SimpleSpanProcessor,
    SpanExporter,
    SpanExportResult,
)
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from rag_sourcebias.monitor.log.event_log import EventLog
from rag_sourcebias.monitor.monitor import SkewMonitor
from rag_sourcebias.monitor.settings import CorpusShare
from rag_sourcebias.observe.events import RetrievalEvent
from rag_sourcebias.observe.observers import ObserverGroup
from rag_sourcebias_integrations.langchain.observe import SourceBiasCallbackHandler

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "speed"))
from rounds import finish, ratio, row

SOURCES = ("human", "llm:x", "llm:y", "")
N_DOCUMENTS, SEGMENT = 10, 250
MOST_MICROSECONDS, MOST_SHARE, MOST_TAIL = 20.0, 0.1, 10.0
ASKED = ("event log", "monitor", "event log and monitor")
QUERY = "which river floods"
Spent = tuple[float, float]
"""CPU µs of a retrieval: calls, batches, other threads."""


def lists() -> list[list[Document]]:
    documents = [
        Document(
            id=f"doc-{i}",
            page_content=f"{i} " + "a sentence of some words " * 20,
            metadata={"source": f"https://example.org/{i}"}
            | ({"rsb_source": SOURCES[i % 4]} if SOURCES[i % 4] else {}),
        )
        for i in range(100)
    ]
    draw = random.Random(0)
    return [draw.sample(documents, N_DOCUMENTS) for _ in range(200)]


class Still(BaseRetriever):
    """Returns one of 200 lists at once, in turns."""

    found: Iterator[list[Document]]

    def _get_relevant_documents(self, query, *, run_manager) -> list[Document]:  # noqa: ARG002
        return next(self.found)


class NullExporter(SpanExporter):
    """Throws spans away."""

    def export(self, spans: object) -> SpanExportResult:  # noqa: ARG002
        return SpanExportResult.SUCCESS


class Nothing:
    """An observer that records nothing."""

    inline = True

    def observe(self, event: RetrievalEvent) -> None:
        pass


class Case:
    """One way of watching: what it takes in each round.

    ``after`` waits for other threads.
    """

    def __init__(
        self,
        *,
        handler: BaseCallbackHandler | None = None,
        around: Callable[[], AbstractContextManager] | None = None,
        after: Callable[[], object] = lambda: None,
    ) -> None:
        self.config = None if handler is None else {"callbacks": [handler]}
        self.around, self.after = around, after
        self.rounds: list[Spent] = []

    def measure(self, retriever: Still, n: int) -> None:
        if self.around is None:
            self._measure(retriever, n)
        else:
            with self.around():
                self._measure(retriever, n)

    def _measure(self, retriever: Still, n: int) -> None:
        for _ in range(20):
            retriever.invoke(QUERY, self.config)
        self.after()
        gc.collect()
        gc.disable()
        process, start = time.process_time(), time.thread_time()
        for _ in range(n):
            retriever.invoke(QUERY, self.config)
        self.after()
        calls = time.thread_time() - start
        others = max(time.process_time() - process - calls, 0.0)
        gc.enable()
        self.rounds.append((1e6 * calls / n, 1e6 * others / n))


def added(case: Case, bare: Case, *parts: int) -> float:
    """What a quiet moment costs more than the bare retriever; the first round is no round."""
    return lowest(case, *parts) - lowest(bare, *parts)


def lowest(case: Case, *parts: int) -> float:
    return float(np.quantile([sum(one[i] for i in parts) for one in case.rounds[1:]], 0.1))


def differences(case: Case, bare: Case, *parts: int) -> list[float]:
    pairs = zip(case.rounds[1:], bare.rounds[1:], strict=True)
    return [sum(a[i] - b[i] for i in parts) for a, b in pairs]


OWN_THREAD, PROCESS = (0,), (0, 1)


@contextmanager
def openinference(exporter: SpanExporter) -> Iterator[None]:
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    instrumentor = LangChainInstrumentor()
    instrumentor.instrument(tracer_provider=provider)
    try:
        yield
    finally:
        instrumentor.uninstrument()
        if isinstance(exporter, InMemorySpanExporter):
            if not exporter.get_finished_spans():
                raise SystemExit("OpenInference exported nothing")
            exporter.clear()


class Counting(NullExporter):
    """Counts spans, and throws them away."""

    n = 0

    def export(self, spans: object) -> SpanExportResult:
        self.n += len(spans)
        return SpanExportResult.SUCCESS


def langfuse() -> tuple[Case, Counting] | str:
    """Langfuse's handler with its own batching processor, or why there is none."""
    try:
        from langfuse import Langfuse
        from langfuse.langchain import CallbackHandler
    except ImportError as error:
        return f"{error.name} is not installed"
    exporter = Counting()
    client = Langfuse(
        public_key="pk-lf-none",
        secret_key="sk-lf-none",
        base_url="http://127.0.0.1:9",  # never connected to: the exporter is our own
        tracing_enabled=True,
        tracer_provider=TracerProvider(shutdown_on_exit=False),
        span_exporter=exporter,
    )
    return Case(handler=CallbackHandler(public_key="pk-lf-none"), after=client.flush), exporter


def elsewhere(*flush: Callable[[], object]) -> Callable[[], None]:
    """Flush on another thread, as what is flushed here would be counted as a call."""

    def run() -> None:
        thread = threading.Thread(target=lambda: [one() for one in flush])
        thread.start()
        thread.join()

    return run


def monitor(**settings: float) -> SkewMonitor:
    shares = {"human": 0.25, "llm:x": 0.25, "llm:y": 0.25, "": 0.25}
    return SkewMonitor(baseline=CorpusShare(shares=shares), **settings)


class Ours:
    """Our cases, each with observers and a handler of its own."""

    def __init__(self, folder: Path) -> None:
        self.logs = [EventLog(folder / f"{i}.sqlite") for i in range(2)]
        monitors = [monitor(), monitor()]
        group = ObserverGroup(self.logs[1], monitors[1])
        observers = (Nothing(), self.logs[0], monitors[0], group)
        self.handlers = [SourceBiasCallbackHandler(one) for one in observers]
        log, alone, both = self.logs[0], monitors[0], monitors[1]
        work = (
            ("handler, nothing recorded", {}),
            ("event log", {"after": log.flush}),
            ("monitor", {"after": elsewhere(alone.flush)}),
            ("event log and monitor", {"after": elsewhere(both.flush, self.logs[1].flush)}),
        )
        self.cases = {
            name: Case(handler=handler, **settings)
            for handler, (name, settings) in zip(self.handlers, work, strict=True)
        }
        self.dropped = [one.dropped for one in (*self.handlers, *self.logs, *monitors, group)]

    def close(self) -> None:
        for handler in self.handlers:
            handler.close()
        for log in self.logs:
            log.close()
        lost = [dict(one.by_reason) for one in self.dropped if one.total]
        if lost:
            raise SystemExit(f"events were lost: {lost}")


def latency(log: EventLog, *, n: int, watch: bool) -> np.ndarray:
    """Wall time in µs of the callbacks of each retrieval, while the log is being written."""
    observer = ObserverGroup(log, monitor()) if watch else log
    handler = SourceBiasCallbackHandler(observer)
    found = itertools.cycle(lists())
    runs = [uuid.uuid4() for _ in range(n)]
    took = np.empty(n)
    clock = time.perf_counter_ns
    gc.collect()
    gc.disable()
    for i, run in enumerate(runs):
        documents = next(found)
        start = clock()
        handler.on_retriever_start(None, QUERY, run_id=run, name="Still")
        handler.on_retriever_end(documents, run_id=run)
        took[i] = clock() - start
    gc.enable()
    handler.close()
    lost = [one.by_reason for one in (handler.dropped, log.dropped) if one.total]
    if lost:
        raise SystemExit(f"events were lost: {lost}")
    return took / 1_000


def latency_row(log: EventLog, *, n: int, watch: bool) -> dict:
    what = "latency: event log and monitor" if watch else "latency: event log"
    latency(log, n=n // 10, watch=watch)
    p50, p99, p999, worst = np.percentile(latency(log, n=n, watch=watch), [50, 99, 99.9, 100])
    log.flush()
    return row(
        f"{what}, writer thread running",
        f"p50 {p50:.1f} µs, p99 {p99:.1f} µs, p99.9 {p999:.0f} µs, worst {worst / 1e3:.1f} ms",
        "",
        p99 / p50,
        f"p99 ≤ {MOST_TAIL:g} × p50",
        p99 <= MOST_TAIL * p50,
    )


def split(case: Case, bare: Case) -> str:
    calls, others = (added(case, bare, i) for i in range(2))
    return f"{calls:.1f} µs (other threads {others:.1f})"


def our_row(name: str, case: Case, bare: Case, rivals: dict[str, Case]) -> dict:
    own = added(case, bare, *OWN_THREAD)
    middle = statistics.median(differences(case, bare, *OWN_THREAD))
    # Each against its like; where the rival leaves work to a thread, that counts on both sides.
    shares = {
        rival: max(
            ratio(differences(case, bare, *parts), differences(it, bare, *parts))
            for parts in (OWN_THREAD, PROCESS)
        )
        for rival, it in rivals.items()
    }
    told = ", ".join(f"{share:.3f} of {rival}" for rival, share in shares.items())
    asked = name in ASKED
    return row(
        f"added: {name}",
        split(case, bare),
        f"{own:.1f} µs on the thread of the call (median {middle:.1f}), {told}",
        own,
        f"≤ {MOST_MICROSECONDS:g} µs and ≤ {MOST_SHARE:g} of each rival" if asked else "",
        own <= MOST_MICROSECONDS and max(shares.values()) <= MOST_SHARE if asked else None,
    )


def measure(*, n: int, rounds: int, quick: bool) -> list[dict]:
    retriever = Still(found=itertools.cycle(lists()))
    bare = Case()
    rivals = {
        "OpenInference (spans in memory)": Case(
            around=lambda: openinference(InMemorySpanExporter())
        ),
        "OpenInference (spans thrown away)": Case(around=lambda: openinference(NullExporter())),
    }
    found = langfuse()
    if not isinstance(found, str):
        rivals["Langfuse (spans thrown away)"] = found[0]
    with tempfile.TemporaryDirectory() as folder, closing(Ours(Path(folder))) as ours:
        for number in range(rounds + 1):
            if number == 1:
                gc.collect()
                gc.freeze()  # what the packages hold makes each collection slow
            for case in (bare, *ours.cases.values()):
                case.measure(retriever, n)
            for case in rivals.values():
                case.measure(retriever, SEGMENT)
        tails = [latency_row(ours.logs[2], n=100 * n, watch=watch) for watch in (False, True)]
    if not isinstance(found, str) and not found[1].n:
        raise SystemExit("Langfuse exported nothing")
    base = lowest(bare, *PROCESS)
    rows = [row("bare retriever", f"{base:.1f} µs", "", base, "", None)]
    rows += [our_row(name, case, bare, rivals) for name, case in ours.cases.items()]
    rows += [
        row(f"added: {name}", split(case, bare), "", added(case, bare, *OWN_THREAD), "", None)
        for name, case in rivals.items()
    ]
    if isinstance(found, str):
        rows.append(row("Langfuse", "skipped", found, 0.0, "", None))
    if quick:
        tails = [{**one, "met": None} for one in tails]
    return rows + tails


def versions() -> dict[str, str]:
    found = {}
    for name in ("openinference-instrumentation-langchain", "opentelemetry-sdk", "langfuse"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description="CPU added to one LangChain retrieval.")
    parser.add_argument("--quick", action="store_true", help="small sizes, no verdict")
    parser.add_argument("--output", type=Path, help="default: benchmarks/results/record_path.json")
    options = parser.parse_args()
    os.environ.pop("LANGFUSE_TRACING_ENABLED", None)
    size = {"n": 250, "rounds": 2} if options.quick else {"n": 1_000, "rounds": 40}
    rows = measure(**size, quick=options.quick)
    return finish(
        "record_path", rows, quick=options.quick, output=options.output, packages=versions()
    )


if __name__ == "__main__":
    sys.exit(main())
