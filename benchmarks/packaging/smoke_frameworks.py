"""One real thing with each framework; see smoke.py."""

from __future__ import annotations

import os
import threading
import urllib.request
from pathlib import Path

from smoke_models import TEXTS, HashedWords, check, judged_answers

from rag_sourcebias.answers.measure import fit_similarity_adjustment
from rag_sourcebias.observe.observers import CollectingObserver
from rag_sourcebias.observe.recorder import instrument
from rag_sourcebias.retrieval.rerank import engine_factory, metrics_factory

IDS = [f"d{i}" for i in range(len(TEXTS))]
TAGS = [{"rsb_source": source} for source in ("human", "llm:x", "human", "llm:x")]


def check_seen(observer: CollectingObserver) -> None:
    """One retrieval was observed, its best document first."""
    (event,) = observer.events
    check(event.ranked.doc_ids[0] == IDS[0], f"observed {event}")


def chroma(folder: Path) -> str:
    import chromadb

    from rag_sourcebias_integrations.chroma.embeddings import EncoderEmbeddingFunction

    client = chromadb.PersistentClient(path=str(folder))
    collection = client.create_collection(
        "docs", embedding_function=EncoderEmbeddingFunction(HashedWords())
    )
    collection.add(ids=IDS, documents=list(TEXTS), metadatas=[{"origin": "web"}] * len(IDS))
    observer = CollectingObserver()
    with instrument(collection, observer):
        collection.query(query_texts=[TEXTS[0]], n_results=2)
    check_seen(observer)
    return "queries of a collection with our encoder, observed"


def langchain(_folder: Path) -> str:
    from langchain_core.documents import Document
    from langchain_core.vectorstores import InMemoryVectorStore

    from rag_sourcebias_integrations.langchain.embeddings import EncoderEmbeddings

    store = InMemoryVectorStore(EncoderEmbeddings(HashedWords()))
    store.add_documents(
        [
            Document(id=i, page_content=t, metadata=m)
            for i, t, m in zip(IDS, TEXTS, TAGS, strict=True)
        ]
    )
    observer = CollectingObserver()
    with instrument(store.as_retriever(), observer) as handle:
        handle.target.invoke(TEXTS[0])
    check_seen(observer)
    return "a retriever with our encoder, observed"


def langchain_classic(_folder: Path) -> str:
    from rag_sourcebias_integrations.langchain.similarity import StyleAdjustedDistance

    encoder = HashedWords()
    adjustment = fit_similarity_adjustment(judged_answers(), encoder)
    found = StyleAdjustedDistance(encoder, adjustment).evaluate_strings(
        prediction="it is river3", reference="river3"
    )
    check(0 <= found["score"] <= 2, f"the distance is {found}")
    return "an embedding distance without what style adds"


def llama_index(_folder: Path) -> str:
    from llama_index.core import VectorStoreIndex
    from llama_index.core.schema import TextNode

    from rag_sourcebias_integrations.llama_index.embeddings import EncoderEmbedding

    nodes = [TextNode(id_=i, text=t, metadata=m) for i, t, m in zip(IDS, TEXTS, TAGS, strict=True)]
    for node in nodes:
        node.excluded_embed_metadata_keys = ["rsb_source"]
    index = VectorStoreIndex(nodes, embed_model=EncoderEmbedding(HashedWords()))
    observer = CollectingObserver()
    with instrument(index.as_retriever(), observer) as handle:
        handle.target.retrieve(TEXTS[0])
    check_seen(observer)
    return "a retriever with our encoder, observed"


def ragas(_folder: Path) -> str:
    os.environ["RAGAS_DO_NOT_TRACK"] = "true"
    from rag_sourcebias_integrations.ragas.metrics import EncoderEmbedding, StyleAdjustedSimilarity

    encoder = HashedWords()
    adjustment = fit_similarity_adjustment(judged_answers(), encoder)
    metric = StyleAdjustedSimilarity(EncoderEmbedding(encoder), adjustment)
    found = metric.score(response="it is river3", reference="river3")
    check(-1 <= found.value <= 1, f"the score is {found}")
    return "a similarity without what style adds"


def monitor(folder: Path) -> str:
    from rag_sourcebias.monitor.dashboard.server import DashboardServer
    from rag_sourcebias.monitor.dashboard.source import DashboardSource
    from rag_sourcebias.observe.log.event_log import EventLog

    path = folder / "log.db"
    with EventLog(path):
        pass
    server = DashboardServer(DashboardSource(path))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/", timeout=60) as answer:
            page = answer.read().decode("utf-8")
    finally:
        server.stop()
        thread.join(60)
    check("<html" in page, "no page was served")
    return "the dashboard serves its page"


def prometheus(_folder: Path) -> str:
    make = metrics_factory("prometheus")
    check(make, "the factory is not found")
    check(b"rag_sourcebias" in make(lambda: ()).text(), "no metrics were written")
    return "metrics as Prometheus reads them"


def otel(_folder: Path) -> str:
    from rag_sourcebias_integrations.opentelemetry.instruments import (
        SkewInstruments,
        SkewSpanObserver,
    )

    SkewInstruments(lambda: ())
    check(SkewSpanObserver(), "no span observer")
    return "instruments without an SDK"


def ray(_folder: Path) -> str:
    with engine_factory("ray")(workers=1, address=None) as engine:
        found = engine.map(lambda: lambda item: item * 2, [1, 2, 3])
    check(found == [2, 4, 6], f"the results are {found}")
    return "three items by a worker on this machine"
