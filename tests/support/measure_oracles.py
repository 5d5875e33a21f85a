"""Independent definitions: pytrec_eval for one order, every order of tied documents for means."""

from __future__ import annotations

import math
from itertools import groupby, permutations, product
from typing import Any

import numpy as np
import pytrec_eval

from rag_sourcebias.core.data import Qrels, Run

PYTREC = {"NDCG": "ndcg_cut", "MAP": "map_cut", "P": "P", "Recall": "recall"}
RunDict = dict[str, dict[str, float]]
QrelsDict = dict[str, dict[str, int]]


def pytrec(run: RunDict, qrels: QrelsDict, cutoffs: tuple[int, ...]) -> dict[str, dict[str, float]]:
    """Return ``{query: {"NDCG@5": value}}``, for every query of the qrels.

    Queries without results, which trec_eval leaves out, have 0. MRR stands under ``"MRR"``:
    trec_eval's recip_rank has no cutoff.
    """
    cuts = ",".join(map(str, cutoffs))
    wanted = {f"{name}.{cuts}" for name in PYTREC.values()} | {"recip_rank"}
    found = pytrec_eval.RelevanceEvaluator(qrels, wanted).evaluate(run)
    names = {f"{m}@{k}": f"{t}_{k}" for m, t in PYTREC.items() for k in cutoffs}
    names["MRR"] = "recip_rank"
    return {
        query: {ours: found.get(query, {}).get(theirs, 0.0) for ours, theirs in names.items()}
        for query in qrels
    }


def literal(order: list[str], grades: dict[str, int], measure: str, k: int, gain: str) -> float:
    """One measure of one order of documents, spelled out from its definition."""
    relevant = {d: g for d, g in grades.items() if g > 0}
    if not relevant:
        return 0.0
    top = order[:k]
    hits = [d in relevant for d in top]
    if measure == "P":
        return sum(hits) / k
    if measure == "Recall":
        return sum(hits) / len(relevant)
    if measure == "MRR":
        return 1 / (hits.index(True) + 1) if any(hits) else 0.0
    if measure == "MAP":
        return sum(sum(hits[: i + 1]) / (i + 1) for i, hit in enumerate(hits) if hit) / len(
            relevant
        )

    def worth(grade: int) -> float:
        return 2.0**grade - 1 if gain == "exponential" else float(grade)

    ideal = sorted(map(worth, relevant.values()), reverse=True)[:k]
    dcg = sum(worth(relevant.get(d, 0)) / math.log2(i + 2) for i, d in enumerate(top))
    return dcg / sum(g / math.log2(i + 2) for i, g in enumerate(ideal))


def expected(scored: dict[str, float], grades: dict[str, int], **what: Any) -> float:
    """Mean of :func:`literal` over every order of every block of equal scores."""
    ranked = sorted(scored.items(), key=lambda item: -item[1])
    blocks = [[d for d, _ in block] for _, block in groupby(ranked, key=lambda item: item[1])]
    values = [
        literal([d for block in order for d in block], grades, **what)
        for order in product(*(permutations(block) for block in blocks))
    ]
    return sum(values) / len(values)


def random_case(
    rng: np.random.Generator, kind: str, *, n_queries: int = 3, n_docs: int = 14, depth: float = 0.7
) -> tuple[RunDict, QrelsDict]:
    """Draw a run and qrels that share most but not all queries and documents."""
    docs = [f"d{i}" if i % 3 else f"Dé{i}" for i in range(n_docs)] + ["日本", "z\U0001f600", "-"]
    score = {
        "few values": lambda: float(rng.integers(0, 3)),
        "float32 collisions": lambda: 1 + 3e-8 * float(rng.integers(0, 6)),
        "distinct": lambda: float(rng.normal()),
        "extreme": lambda: float(rng.choice([0.0, -0.0, 1e30, -1e30, 1e-45, 3e38, 1e300])),
        "all tied": lambda: 0.5,
    }[kind]
    qrels = {
        f"q{i}": {d: int(rng.integers(-2, 4)) for d in docs if rng.random() < 0.6}
        for i in range(n_queries)
    }
    if rng.random() < 0.2:
        qrels["q0"] = dict.fromkeys(docs, 0)
    run = {
        f"q{i}": {d: score() for d in rng.permutation(docs).tolist() if rng.random() < depth}
        for i in rng.permutation(np.arange(1, n_queries + 2)).tolist()
    }
    if rng.random() < 0.2:
        run["q1"] = {}
    return run, {query: row for query, row in qrels.items() if row}


def build(run: RunDict, qrels: QrelsDict) -> tuple[Run, Qrels]:
    return Run.from_dict(run), Qrels.from_dict(qrels)
