"""``ties="expected"`` is the mean over every order of tied documents."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from measure_oracles import build, expected, literal, pytrec, random_case

from rag_sourcebias.measure.relevance import MEASURES, score_run

CUTOFFS = (1, 2, 3, 4, 5, 6, 9)


def test_the_oracle_itself_agrees_with_trec_eval():
    rng = np.random.default_rng(0)
    for _ in range(60):
        run, qrels = random_case(rng, "distinct", n_docs=8)
        theirs = pytrec(run, qrels, CUTOFFS)
        for query, row in qrels.items():
            order = sorted(run.get(query, {}), key=lambda d: -run[query][d])
            for measure, k in product(("NDCG", "MAP", "P", "Recall"), CUTOFFS):
                mine = literal(order, row, measure, k, "linear")
                assert mine == pytest.approx(theirs[query][f"{measure}@{k}"], abs=1e-12)
            mine = literal(order, row, "MRR", 99, "linear")
            assert mine == pytest.approx(theirs[query]["MRR"], abs=1e-12)


@pytest.mark.parametrize("gain", ["linear", "exponential"])
@pytest.mark.parametrize("seed", range(12))
def test_equals_the_mean_over_all_orders(seed, gain):
    """Blocks of up to 5, cutoffs inside and outside of them, grades −1 … 4, unjudged documents."""
    rng = np.random.default_rng(seed)
    blocks = [int(b) for b in rng.integers(1, 6, size=rng.integers(1, 4))]
    blocks = blocks[: max(1, int(np.searchsorted(np.cumsum(blocks), 8)))]
    ids = [f"d{i}" for i in rng.permutation(sum(blocks))]
    scores = np.repeat(-np.arange(len(blocks), dtype=float), blocks)
    run = dict(zip(ids, scores.tolist(), strict=True))
    grades = {d: int(rng.integers(-1, 5)) for d in [*ids, "missed"] if rng.random() < 0.7}
    grades["missed2"] = 1
    ours = score_run(
        *build({"q": run}, {"q": grades}), measures=MEASURES, cutoffs=CUTOFFS, gain=gain
    )
    for measure, k in product(MEASURES, CUTOFFS):
        brute = expected(run, grades, measure=measure, k=k, gain=gain)
        assert ours.of(f"{measure}@{k}", "all")[0] == pytest.approx(brute, abs=1e-12)


@pytest.mark.parametrize(
    ("size", "n_relevant"), [(s, r) for s in range(1, 8) for r in range(1, 5) if r <= s]
)
def test_one_block(size, n_relevant):
    """Every number of relevant documents in one block below two leading documents."""
    for lead_relevant in (False, True):
        run = {"x": 9.0, "y": 8.0} | {f"d{i}": 1.0 for i in range(size)}
        grades = {f"d{i}": 1 for i in range(n_relevant)} | ({"y": 1} if lead_relevant else {})
        ours = score_run(*build({"q": run}, {"q": grades}), measures=MEASURES, cutoffs=CUTOFFS)
        for measure, k in product(MEASURES, CUTOFFS):
            brute = expected(run, grades, measure=measure, k=k, gain="linear")
            assert ours.of(f"{measure}@{k}", "all")[0] == pytest.approx(brute, abs=1e-12)
