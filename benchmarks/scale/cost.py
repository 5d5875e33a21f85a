"""What each step costs on one core here, and from that what a billion documents would cost."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from corpus import DIMENSION, write

from rag_sourcebias.io.samples import load_sample
from rag_sourcebias.io.shards import open_sharded
from rag_sourcebias.neural.loading import SentenceEncoder
from rag_sourcebias.retrieval.search import best_documents, merge_best, parts_of, tie_order
from rag_sourcebias.source.shards.facts import WorkFolder, gather, scan
from rag_sourcebias.source.shards.work import LocalEngine

__all__ = ["cost_model", "step_times"]

_DEPTH = 100
_QUERIES = 1_000
_SHARD = 1_000_000  # documents of a shard in the model
_VIEWS = 3  # the mixed corpus and two sources alone; the latter see half of it each


def step_times() -> dict[str, float]:
    """Measure every step with one thread; seconds per document, or per query and shard."""
    import torch
    from threadpoolctl import threadpool_limits

    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name, threadpool_limits(1):
        folder = Path(name) / "data"
        write(folder, 40_000)
        data = open_sharded(folder)
        work = WorkFolder.opened(Path(name) / "work")
        scanned = _seconds(lambda: scan(data.corpus, work, LocalEngine()))
        facts = gather(data.corpus, scan(data.corpus, work, LocalEngine()))
        vectors = np.load(folder / "documents.npy")
        queries = np.load(folder / "queries.npy")[:_QUERIES]
        priority = tie_order(len(facts))
        searched = _seconds(
            lambda: best_documents(queries, parts_of(vectors, priority), depth=_DEPTH)
        )
        half = len(facts) // 2
        found = [
            best_documents(queries, parts_of(vectors[rows], priority[rows]), depth=_DEPTH)
            for rows in (slice(0, half), slice(half, None))
        ]
        merged = _seconds(lambda: merge_best(found, depth=_DEPTH))
        columns = (facts.source_codes, facts.words, facts.doc, facts.judged, facts.pair, facts.text)
    texts = list(load_sample().corpus.texts)[:128]
    encoder = SentenceEncoder("all-MiniLM-L6-v2")
    encoder.encode_documents(texts[:8])
    encoded = _seconds(lambda: encoder.encode_documents(texts))
    return {
        "read_s_per_document": scanned / 40_000,
        "encode_s_per_document": encoded / len(texts),
        "encode_mean_words": float(np.mean([len(text.split()) for text in texts])),
        "search_s_per_document_and_query": searched / 40_000 / _QUERIES,
        "merge_s_per_query_and_shard": merged / _QUERIES / 2,
        "driver_bytes_per_document": sum(c.nbytes for c in columns) / len(facts) + 8 * _VIEWS,
        "stored_bytes_per_document": 4.0 * DIMENSION + 50,
    }


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def cost_model(steps: dict[str, float], *, n_documents: int = 10**9) -> dict[str, Any]:
    """Multiply: work of the workers divides by their number, that of the driver does not."""
    shards = n_documents // _SHARD
    read = steps["read_s_per_document"] * n_documents
    encode = steps["encode_s_per_document"] * n_documents
    search = steps["search_s_per_document_and_query"] * n_documents * _QUERIES * 2
    merge = steps["merge_s_per_query_and_shard"] * _QUERIES * shards * _VIEWS
    hours = {
        "reading": read / 3600,
        "encoding": encode / 3600,
        f"searching, {_QUERIES:,} queries": search / 3600,
    }
    return {
        "documents": n_documents,
        "shards": shards,
        "core_hours": {name: round(value) for name, value in hours.items()},
        "driver_minutes_of_merging": round(merge / 60, 1),
        "driver_memory_gb": round(steps["driver_bytes_per_document"] * n_documents / 1e9),
        "shared_storage_gb": round(steps["stored_bytes_per_document"] * n_documents / 1e9),
        "minutes_with_given_vectors_on_1000_cores": round((read + search) / 6e4 + merge / 60, 1),
        "hours_with_encoding_on_1000_cores": round(
            (read + encode + search) / 3.6e6 + merge / 3600, 1
        ),
    }
