"""The application of the demo: LangChain over Chroma, under load, with two lines for the monitor.

Started by demo.py, in a process of its own; runs until the time is up or it is told to stop.

People look for passages with the sample's questions and with half-remembered bits of them. The
corpus starts with all passages that people wrote and every fourth rewrite by an LLM; half-way the
other rewrites are added, as corpora fill up in life. A monitor has to notice.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np
from chromadb.config import Settings
from langchain_chroma import Chroma
from langchain_core.documents import Document
from prometheus_client import CollectorRegistry, start_http_server

from rag_sourcebias.intake.samples import load_sample
from rag_sourcebias.monitor.monitor import SkewMonitor
from rag_sourcebias.monitor.settings import ReferenceWindow
from rag_sourcebias.neural.loading import SentenceEncoder
from rag_sourcebias.observe.log.event_log import EventLog
from rag_sourcebias.observe.observers import ObserverGroup
from rag_sourcebias.observe.recorder import instrument
from rag_sourcebias.tagging.rules import IdTagger
from rag_sourcebias_integrations.langchain.embeddings import EncoderEmbeddings
from rag_sourcebias_integrations.langchain.vectorstore import SourceTagger
from rag_sourcebias_integrations.prometheus.collector import SkewCollector

_WORDS = 6


def searches(rng: np.random.Generator, questions: list[str], texts: list[str]) -> str:
    """What somebody types: a question of the sample, or a few words of some passage."""
    if rng.random() < 0.2:
        return questions[rng.integers(len(questions))]
    words = texts[rng.integers(len(texts))].split()
    start = rng.integers(max(len(words) - _WORDS, 1))
    return " ".join(words[start : start + _WORDS])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--log", type=Path, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--rate", type=float, required=True, help="searches a second")
    parser.add_argument("--reference", type=int, required=True)
    parser.add_argument("--metrics-port", type=int, required=True)
    parser.add_argument("--figures", type=Path, required=True)
    options = parser.parse_args()

    sample = load_sample()
    tagged = SourceTagger([IdTagger()]).transform_documents(
        [
            Document(id=doc_id, page_content=text)
            for doc_id, text in zip(sample.corpus.doc_ids, sample.corpus.texts, strict=True)
        ]
    )
    human = [doc for doc in tagged if doc.id.endswith("human")]
    rewritten = [doc for doc in tagged if not doc.id.endswith("human")]
    store = Chroma(
        collection_name="sample",
        embedding_function=EncoderEmbeddings(SentenceEncoder("all-MiniLM-L6-v2")),
        collection_metadata={"hnsw:space": "cosine"},
        client_settings=Settings(anonymized_telemetry=False),
    )
    store.add_documents([*human, *rewritten[::4]])
    late = [doc for i, doc in enumerate(rewritten) if i % 4]
    # Both sources are asked after alike: what is typed comes from passages by people only.
    texts, questions = [doc.page_content for doc in human], [q.text for q in sample.queries]

    retriever = store.as_retriever(search_kwargs={"k": 10})
    monitor = SkewMonitor(baseline=ReferenceWindow(options.reference))
    log = EventLog(options.log, documents="plain")
    registry = CollectorRegistry()
    SkewCollector(monitor.snapshot, registry=registry)
    server, _ = start_http_server(options.metrics_port, addr="127.0.0.1", registry=registry)

    rng = np.random.default_rng(0)
    taken: list[float] = []
    with instrument("langchain", ObserverGroup(log, monitor), labels={"collection": "sample"}) as h:
        print("ready", flush=True)
        began, at = time.monotonic(), 0.0
        filled: int | None = None
        while (now := time.monotonic() - began) < options.seconds:
            if filled is None and now > options.seconds / 2:
                store.add_documents(late)
                filled = len(taken)
                print(f"rewrites added after {filled} searches", flush=True)
            if now < at:
                time.sleep(at - now)
            at = max(at + 1 / options.rate, now - 1.0)  # no burst after a pause
            before = time.perf_counter()
            retriever.invoke(searches(rng, questions, texts))
            taken.append(time.perf_counter() - before)
        lost = h.dropped.total
    log.flush(10.0)
    (state,) = monitor.snapshot()
    found = {
        "searches": len(taken),
        "rewrites_added_after": filled,
        "seconds_each": {f"p{q}": float(np.percentile(taken, q)) for q in (50, 90, 99)},
        "cpu_seconds": time.process_time(),
        "lost": {"adapter": lost, "log": log.dropped.total, "monitor": monitor.dropped.total},
        "observed_by_monitor": state.n_retrievals,
        "exposure": {g.group: g.share for g in state.groups if g.measure == "exposure"},
        "alarms_in_the_application": [alarm.to_dict() for alarm in monitor.alarms],
    }
    options.figures.write_text(json.dumps(found), encoding="utf-8")
    print("done", flush=True)
    sys.stdin.readline()  # the last scrape comes first
    log.close()
    server.shutdown()


if __name__ == "__main__":
    main()
