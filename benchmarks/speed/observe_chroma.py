"""CPU time that observing adds to a Chroma query.

    python benchmarks/speed/observe_chroma.py [--quick] [--output FILE]

Time of the whole process, the observer's thread included, with and without observation in turns.
Prints a Markdown table and writes JSON. Exit status 1 when a target is missed (never with
``--quick``): seven tenths of the query.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import chromadb
import numpy as np

from rag_sourcebias.core.data import DocTags
from rag_sourcebias.core.values import environment
from rag_sourcebias.observe.observers import ExposureObserver
from rag_sourcebias.observe.recorder import Instrumentation, instrument
from rag_sourcebias.tagging.stores import MemoryTagStore

MOST_OF_BARE = 0.7
N_DOCUMENTS = 1_000
DEPTH = 10


def cpu_microseconds(call: Callable[[], object], n_calls: int, handle: Instrumentation) -> float:
    start = time.process_time()
    for _ in range(n_calls):
        call()
    handle.flush()
    return (time.process_time() - start) / n_calls * 1e6


def row(
    what: str,
    call: Callable[[object], Callable[[], object]],
    target: object,
    *,
    n_calls: int,
    rounds: int,
    **options: object,
) -> dict:
    """Median over rounds of observed minus bare, and the quartiles of that difference."""
    bare, added = [], []
    observer = ExposureObserver()
    for turn in range(rounds + 1):
        handle = instrument(target, observer, **options)
        observed = cpu_microseconds(call(handle.target), n_calls, handle)
        handle.close()
        without = cpu_microseconds(call(target), n_calls, handle)
        if turn:  # the first one warms up
            bare.append(without)
            added.append(observed - without)
        if handle.dropped.total:
            raise SystemExit(f"{what}: {handle.dropped.by_reason}")
    if observer.counts().n_retrievals != n_calls * (rounds + 1):
        raise SystemExit(f"{what}: {observer.counts().n_retrievals} retrievals were observed")
    low, middle, high = statistics.quantiles(added, n=4)
    base = statistics.median(bare)
    return {
        "what": what,
        "bare_us": round(base, 1),
        "added_us": round(middle, 1),
        "added_quartiles_us": [round(low, 1), round(high, 1)],
        "target": f"≤ {MOST_OF_BARE:g} of it",
        "met": middle <= MOST_OF_BARE * base,
    }


def chroma_rows(*, n_calls: int, rounds: int) -> list[dict]:
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(N_DOCUMENTS, 384)).astype(np.float32)
    sources = ["human" if n % 2 else "llm:x" for n in range(N_DOCUMENTS)]
    client = chromadb.EphemeralClient()
    collection = client.create_collection("observed", embedding_function=None)
    collection.add(
        ids=[f"d{n}" for n in range(N_DOCUMENTS)],
        embeddings=vectors,
        documents=[f"text number {n} " * 20 for n in range(N_DOCUMENTS)],
        metadatas=[
            {"url": f"https://example.org/{n}", "rsb_source": s} for n, s in enumerate(sources)
        ],
    )
    store = MemoryTagStore()
    store.put([(f"d{n}", DocTags(source=source)) for n, source in enumerate(sources)])
    query = [(vectors[0] + 0.1).tolist()]

    def ask(**arguments: object) -> Callable[[chromadb.Collection], Callable[[], object]]:
        return lambda target: (
            lambda: target.query(query_embeddings=query, n_results=DEPTH, **arguments)
        )

    size = {"n_calls": n_calls, "rounds": rounds}
    embedded = f"embedded Chroma, {DEPTH} of {N_DOCUMENTS:,} documents"
    texts = ask(include=["documents"])
    return [
        row(f"{embedded}, default include", ask(), collection, **size),
        row(f"{embedded}, include=['documents'], tags from metadata", texts, collection, **size),
        row(
            f"{embedded}, include=['documents'], tags from a store",
            texts,
            collection,
            tags=store,
            **size,
        ),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    size = {"n_calls": 20, "rounds": 3} if options.quick else {"n_calls": 200, "rounds": 31}
    rows = chroma_rows(**size)
    print("| what | without | added CPU (quartiles) | target | met |\n|---|---|---|---|---|")
    for r in rows:
        low, high = r["added_quartiles_us"]
        print(
            f"| {r['what']} | {r['bare_us']} µs | {r['added_us']} µs ({low} to {high}) "
            f"| {r['target']} | {'yes' if r['met'] else 'no'} |"
        )
    if options.output:
        found = {
            "environment": {**environment(), "chromadb": version("chromadb")},
            "quick": options.quick,
            "load_average": round(os.getloadavg()[0], 2),
            "most_of_query": round(max(r["added_us"] / r["bare_us"] for r in rows), 3),
            "rows": rows,
        }
        options.output.write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n", "utf-8")
    return 0 if options.quick or all(r["met"] for r in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
