"""What twin smoothing costs: finding groups, and rescoring.

    python benchmarks/speed/twins.py [--documents 100000]

Each figure is a ratio of two times of this run. Groups: against one exhaustive product of the
matrix with itself in blocks. Rescoring: against the exact search that it follows. Writes
benchmarks/results/twins_speed.json.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from rag_sourcebias.core.codec import environment
from rag_sourcebias.debias.copies import alike_pairs
from rag_sourcebias.debias.twins import TwinGroups, TwinRescorer, TwinSettings

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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=100_000)
    options = parser.parse_args()
    record = {
        "environment": dict(environment()),
        "groups": grouping(options.documents),
        "rescoring": rescoring(options.documents),
    }
    print(json.dumps(record, indent=1))
    RESULT.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
