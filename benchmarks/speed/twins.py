"""What twin smoothing costs: finding groups, keeping them, rescoring, and queries to Chroma.

    python benchmarks/speed/twins.py [--documents 100000]

Each figure is a ratio of two times of this run. Groups: against one exhaustive product of the
matrix with itself in blocks. Updates: one document more in an index against ten times as large.
Rescoring: against the exact search that it follows. Chroma: 10 results for a vector near a document
drawn at random, against the collection itself, in time of the processor, query by query; beside it
what only the documents that are asked for beyond 10 cost, and the collection against itself.
Writes benchmarks/results/twins_speed.json.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from rag_sourcebias.core.values import environment
from rag_sourcebias.debias.copies import alike_pairs
from rag_sourcebias.debias.twins import TwinGroups, TwinRescorer, TwinSettings, write_twins

RESULT = Path(__file__).resolve().parents[1] / "results" / "twins_speed.json"
SETTINGS = TwinSettings(space="simulated", threshold=0.9, chosen="given")
WIDTH, BLOCK = 384, 4096


def seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def vectors_of(n: int) -> np.ndarray:
    """Half of the documents have a copy."""
    rng = np.random.default_rng(0)
    base = rng.normal(size=(n // 4 * 3, WIDTH)).astype(np.float32)
    copies = base[: n - len(base)] + 0.3 * rng.normal(size=(n - len(base), WIDTH))
    found = np.concatenate((base, copies)).astype(np.float32)
    return found / np.linalg.norm(found, axis=1, keepdims=True)


def product(vectors: np.ndarray) -> None:
    for start in range(0, len(vectors), BLOCK):
        for left in range(0, len(vectors), BLOCK):
            vectors[start : start + BLOCK] @ vectors[left : left + BLOCK].T


def grouping(n: int) -> dict:
    vectors = vectors_of(n)
    whole = seconds(lambda: product(vectors))
    exact = seconds(lambda: alike_pairs(vectors, 0.9))
    return {
        "documents": n,
        "product_s": round(whole, 2),
        "exact": round(exact / whole, 2),
    }


def groups_of(n: int) -> TwinGroups:
    pairs = [(f"d{i}", f"d{i + 1}", 0.95) for i in range(0, n, 2)]
    return TwinGroups(SETTINGS, [f"d{i}" for i in range(n)], pairs)


def updating() -> dict:
    """One document added and removed, in indexes of two sizes."""

    def one(groups: TwinGroups) -> float:
        def change() -> None:
            groups.add(["new"], [("new", "d0", 0.99)])
            groups.remove(["new"])

        return min(seconds(change) for _ in range(200))

    small, large = one(groups_of(10_000)), one(groups_of(100_000))
    return {"ten_times_the_documents": round(large / small, 2)}


def rescoring(n: int) -> dict:
    """100 retrieved documents of an index of n, half of them with a copy among them."""
    vectors, groups = vectors_of(n), groups_of(n)
    rescorer, ratios = TwinRescorer(groups), []
    for query in range(30):
        asked = vectors[query]

        def search(asked: np.ndarray = asked) -> np.ndarray:
            scores = vectors @ asked
            best = np.argpartition(-scores, 100)[:100]
            return best[np.argsort(-scores[best])]

        taken = min(seconds(search) for _ in range(3))
        ids = [f"d{i}" for i in range(50)] + [f"d{2 * i}" for i in range(100, 150)]
        scores = np.linspace(1, 0, 100).tolist()
        after = min(
            seconds(
                lambda: rescorer(str(query), doc_ids=ids, texts=ids, tags=[], scores=scores)  # noqa: B023
            )
            for _ in range(3)
        )
        ratios.append(after / taken)
    return {"of_the_search": round(float(np.median(ratios)), 4), "documents": n}


def chroma(n: int = 10_000, queries: int = 1_000) -> dict:
    """10 results of a collection, and of the same with copies sharing their place."""
    import chromadb

    from rag_sourcebias_integrations.chroma.twins import TwinCollection

    client = chromadb.EphemeralClient()
    collection = client.create_collection("twins", configuration={"hnsw": {"space": "cosine"}})
    vectors, rng = vectors_of(n), np.random.default_rng(1)
    for start in range(0, n, 2_000):
        part = range(start, min(start + 2_000, n))
        collection.add(
            ids=[f"d{i}" for i in part],
            embeddings=vectors[part.start : part.stop].tolist(),
            documents=[f"text {i} " * 100 for i in part],
            metadatas=[{"source": f"file{i % 100}.pdf", "page": i} for i in part],
        )
    quarter = n // 4
    pairs = [(f"d{i}", f"d{n - quarter + i}", 0.95) for i in range(quarter)]
    settings = TwinSettings(space="c", threshold=0.9, collection=str(collection.id))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.sqlite"
        write_twins(TwinGroups(settings, [f"d{i}" for i in range(n)], pairs), path)
        sides = {
            "plain": (collection, 10),
            "plain_again": (collection, 10),
            "more_results": (collection, 13),
            "smoothed": (TwinCollection(collection, path), 10),
        }
        times: dict[str, list[float]] = {name: [] for name in sides}
        for near in rng.choice(n, queries):
            asked = [(vectors[near] + 0.03 * rng.normal(size=WIDTH)).tolist()]
            for name in rng.permutation([*sides]):
                target, n_results = sides[name]
                before = time.process_time()
                target.query(query_embeddings=asked, n_results=n_results)
                times[name].append(time.process_time() - before)
    plain = np.array(times.pop("plain"))
    found = {name: round(float(np.median(t / plain)), 3) for name, t in times.items()}
    return {"documents": n, "plain_ms": round(1e3 * float(np.median(plain)), 2), **found}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=100_000)
    options = parser.parse_args()
    record = {
        "environment": dict(environment()),
        "groups": grouping(options.documents),
        "updates": updating(),
        "rescoring": rescoring(options.documents),
        "chroma": chroma(),
    }
    print(json.dumps(record, indent=1))
    RESULT.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
