"""Does Relative Δ corrected by verified documents cover the truth, where tags err at the top?"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from rag_sourcebias.core.data import DocTags, Qrels, Run, TagTable
from rag_sourcebias.infer.verified import (
    Verification,
    draw_chances,
    draw_rows,
    relevant_slots,
    verified_delta,
)
from rag_sourcebias.source.audit import measure_source_bias
from rag_sourcebias.source.findings import AuditConfig

pytestmark = pytest.mark.slow

CONFIG = AuditConfig(measures=("NDCG",), cutoffs=(5,), resamples=200)
NAMES = {1: "human", -1: "llm:any"}
RUNS = 250
KEYS = ("n_queries", "n_pairs", "skew", "sensitivity", "drop")
WORLDS = {
    name: dict(zip(KEYS, values, strict=True))
    for name, values in {
        "one pair a query": (150, 1, -0.4, 0.9, 0.25),
        "four pairs a query": (60, 4, 0.4, 0.92, 0.3),
        "hardly an error": (100, 2, 0.3, 0.99, 0.01),
    }.items()
}


def world(
    rng: np.random.Generator,
    *,
    n_queries: int,
    n_pairs: int,
    skew: float,
    sensitivity: float,
    drop: float,
) -> tuple[Run, Qrels, dict[str, int], dict[str, int]]:
    """Draw queries with pairs of which the LLM copies at the top are taken for human."""
    run, qrels, truth, tags = {}, {}, {}, {}
    for q in range(n_queries):
        scores = {f"x{q}-{i}": float(rng.normal(0.3, 1)) for i in range(5)}
        common = rng.normal(0, 1, n_pairs)
        for i in range(n_pairs):
            for side in (1, -1):
                doc = f"q{q}-{i}{'h' if side > 0 else 'l'}"
                scores[doc] = float(common[i] + rng.normal(0, 0.7) + side * skew / 2)
                truth[doc] = side
        order = sorted(scores, key=scores.__getitem__, reverse=True)
        for place, doc in enumerate(order):
            if doc in truth:
                right = sensitivity - (drop if place < 3 and truth[doc] < 0 else 0)
                tags[doc] = truth[doc] if rng.random() < right else -truth[doc]
        run[f"q{q}"] = scores
        qrels[f"q{q}"] = {doc: 1 for doc in scores if doc in truth}
    return Run.from_dict(run, name="r"), Qrels.from_dict(qrels), truth, tags


def verification(
    run: Run, qrels: Qrels, truth: dict[str, int], tags: dict[str, int], rng: np.random.Generator,
    n: int = 200,
) -> Verification:  # fmt: skip
    ids = qrels.doc_ids
    chance = draw_chances([relevant_slots(run, qrels, "NDCG", 5)], np.ones(len(ids), bool), n)
    drawn = [ids[i] for i in draw_rows(chance, rng)]
    return Verification(
        kind="slots",
        detector="d",
        tags={doc: NAMES[side] for doc, side in tags.items()},
        chance=dict(zip(ids, chance.tolist(), strict=True)),
        truth={doc: NAMES[truth[doc]] for doc in drawn},
        score={},
        decided=frozenset(),
        n_drawn=len(drawn),
    )


def true_delta(settings: dict[str, float]) -> float:
    run, qrels, truth, _ = world(np.random.default_rng(99), **{**settings, "n_queries": 12_000})  # type: ignore[arg-type]
    slots = relevant_slots(run, qrels, "NDCG", 5)
    sides = np.array([truth[qrels.doc_ids[d]] for d in slots.doc])
    return 200 * float((slots.centred * sides).sum() / slots.plain.sum())


@pytest.mark.parametrize("name", WORLDS)
def test_corrected_delta_covers_with_200_verified_documents(name: str) -> None:
    rng = np.random.default_rng(1)
    true, held, plain_held = true_delta(WORLDS[name]), 0, 0
    for _ in range(RUNS):
        run, qrels, truth, tags = world(rng, **WORLDS[name])  # type: ignore[arg-type]
        found = verification(run, qrels, truth, tags, rng)
        slots = relevant_slots(run, qrels, "NDCG", 5)
        units = np.arange(len(qrels.query_ids))
        for centred in (True, False):
            one = verified_delta(slots, qrels.doc_ids, found, centred=centred, units=units)
            held += centred and one.lower <= true <= one.upper
            plain_held += not centred and one.lower <= true <= one.upper
    # a coverage of .93 or more is rejected once in a thousand
    least = binom.ppf(0.001, RUNS, 0.93)
    assert held >= least, held / RUNS
    assert plain_held >= least, plain_held / RUNS


def test_the_public_verb_covers_and_uncorrected_tags_do_not() -> None:
    rng = np.random.default_rng(2)
    settings = WORLDS["one pair a query"]
    true, runs, held, naive = true_delta(settings), 60, 0, 0
    for _ in range(runs):
        run, qrels, truth, tags = world(rng, **settings)  # type: ignore[arg-type]
        table = TagTable.from_tags((doc, DocTags(source=NAMES[tags[doc]])) for doc in tags)
        found = verification(run, qrels, truth, tags, rng)
        report = measure_source_bias(run, qrels, table, config=CONFIG, verified=found)
        (verdict,) = report.system("r").verdicts
        assert verdict.interval is not None
        held += verdict.interval.lower <= true <= verdict.interval.upper
        slots = relevant_slots(run, qrels, "NDCG", 5)
        raw = np.array([tags[qrels.doc_ids[d]] for d in slots.doc])
        terms = 200 * np.bincount(slots.query, weights=slots.centred * raw) / slots.plain.sum()
        width = 1.96 * float(np.sqrt(len(terms)) * terms.std(ddof=1))
        naive += abs(float(terms.sum()) - true) <= width
    assert held >= binom.ppf(0.001, runs, 0.93), held / runs
    assert naive < binom.ppf(0.001, runs, 0.93), naive / runs  # the check can fail
