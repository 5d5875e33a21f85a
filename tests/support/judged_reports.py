"""Judged reports whose every number the library computed, from simulated people and judges."""

from __future__ import annotations

import functools

import numpy as np

from rag_sourcebias.core.completions import JudgedItems
from rag_sourcebias.core.data import DocTags, LabelDistributions, Qrels, Run, TagTable
from rag_sourcebias.judged.audit import judge_items_with_intervals, judge_ranking_with_intervals
from rag_sourcebias.judged.data import JudgedConfig

FAST = JudgedConfig()


def items_of(truth, judge, *, n_labeled, **columns):
    """Label the first items of each group."""
    groups = columns.get("groups", ("",) * len(truth))
    seen: dict[str, int] = {}
    human = np.full(len(truth), np.nan)
    for i, group in enumerate(groups):
        seen[group] = seen.get(group, 0) + 1
        if seen[group] <= n_labeled:
            human[i] = truth[i]
    ids = tuple(map(str, range(len(truth))))
    return JudgedItems(ids=ids, human=human, judge=np.asarray(judge, dtype=float), **columns)


@functools.cache
def single(kind="good", n_labeled=60, *, method="regression", target="population", n=600):
    """Return a report of one mean."""
    rng = np.random.default_rng(7)
    truth = rng.normal(3, 1, n)
    judge = {
        "good": truth + 0.6 + rng.normal(0, 0.4, n),
        "noise": rng.normal(3, 1, n),
        "constant": np.full(n, 4.0),
        "perfect": truth.copy(),
        "scale": 100 * truth + rng.normal(0, 40, n),
    }[kind]
    config = JudgedConfig(method=method, target=target)
    items = items_of(truth, judge, n_labeled=n_labeled)
    bounds = (-3.0, 9.0) if n_labeled < 10 else None  # so few labels do not tell their scale
    return judge_items_with_intervals(
        items, measure="helpfulness", name=kind, config=config, bounds=bounds
    )


@functools.cache
def answers():
    """Three systems answered 300 questions; the judge is kinder to one, and blind for another."""
    rng = np.random.default_rng(1)
    n, systems = 300, ("plain", "fluent", "terse")
    right = rng.random((n, 3)) < (0.55, 0.6, 0.75)
    seen = np.where(right, rng.random((n, 3)) < 0.95, rng.random((n, 3)) < (0.1, 0.6, 0.1))
    seen[:, 2] = rng.random(n) < 0.5
    items = items_of(
        right.ravel(),
        seen.ravel(),
        n_labeled=80,
        groups=systems * n,
        clusters=tuple(f"q{i // 3}" for i in range(3 * n)),
    )
    return judge_items_with_intervals(
        items, measure="correctness", name="answers", config=JudgedConfig()
    )


@functools.cache
def rankings():
    """Two runs on 100 queries, 40 labelled; half the documents are LLM text the judge likes."""
    rng = np.random.default_rng(0)
    n, depth = 100, 14
    grades = rng.integers(0, 4, (n, depth))
    llm = np.arange(depth) % 2 == 1
    seen = np.clip(grades + rng.normal(0.2 + 0.8 * llm, 0.8, grades.shape), 0, 3)
    names = [[f"q{q}d{d}" for d in range(depth)] for q in range(n)]
    rows = []
    for q in range(n):
        for d in range(depth):
            probs = np.exp(-2 * np.abs(np.arange(4) - seen[q, d]))
            rows.append((f"q{q}", names[q][d], probs / probs.sum()))
    human = Qrels.from_rows(
        (f"q{q}", names[q][d], int(grades[q, d])) for q in range(40) for d in range(depth)
    )
    runs = [
        Run.from_dict(
            {
                f"q{q}": dict(zip(names[q], grades[q] + rng.normal(0, noise, depth), strict=True))
                for q in range(n)
            },
            name=name,
        )
        for name, noise in (("good", 1.0), ("poor", 6.0))
    ]
    tags = TagTable.from_tags(
        (name, DocTags(source="llm:x" if llm[d] else "human"))
        for row in names
        for d, name in enumerate(row)
    )
    return judge_ranking_with_intervals(
        runs,
        human,
        {"judge": LabelDistributions.from_rows(rows)},
        measures=("NDCG@5", "DCG@5"),
        tags=tags,
        name="rankings",
        config=JudgedConfig(),
    )
