"""Labels spread over documents: coverage, and the width against whole queries and PPI."""

from __future__ import annotations

import numpy as np
import pytest
from simulation import FLOOR, acceptable

from rag_sourcebias.judged.crc import RankedLabels, dcg_weights
from rag_sourcebias.judged.plan import design_document_sample, document_interval

pytestmark = pytest.mark.slow
RUNS = 250
GAINS = np.array([0.0, 1.0, 3.0, 7.0])
CUTS = np.array([0.0, 1.0, 2.0])
RANKS = np.arange(1, 11)
OMEGA = dcg_weights(RANKS, 10)


def draw(n_queries, rng):
    """Relevance that falls with rank, differs by query, and is graded by thresholds.

    The judge sees a generous, noisy version with an error shared by the documents of a query, and
    answers with an ordinal-logit distribution.
    """
    shape = (n_queries, len(RANKS))
    truth = 1.0 + rng.normal(0, 0.9, (n_queries, 1)) - 0.5 * np.log(RANKS) + rng.normal(size=shape)
    seen = 0.6 * truth + 1.0 + rng.normal(0, 0.7, (n_queries, 1)) + rng.normal(0, 0.6, shape)
    above = 1 / (1 + np.exp(-(seen[..., None] - CUTS) / 0.35))
    full = np.concatenate([np.ones((*shape, 1)), above, np.zeros((*shape, 1))], axis=-1)
    return full[..., :-1] - full[..., 1:], np.digitize(truth, CUTS)


def judge(kind, probs, grade, rng):
    return {
        "distribution": lambda: probs,
        "one-hot": lambda: np.eye(4)[probs.argmax(-1)],
        "five votes": lambda: rng.multinomial(5, probs) / 5,
        "one vote": lambda: rng.multinomial(1, probs).astype(float),
        "constant": lambda: np.full_like(probs, 0.25),
        "inverted": lambda: probs[..., ::-1],
        "perfect": lambda: np.eye(4)[grade],
    }[kind]()


TRUTH = float(
    np.mean([GAINS[draw(20_000, np.random.default_rng(9000 + i))[1]] @ OMEGA for i in range(20)])
)


def simulate(kind, n_labels, *, n_queries=400, runs=RUNS, seed=0, n_pilot=0):
    rng = np.random.default_rng((seed, n_labels, n_queries))
    rows = []
    for _ in range(runs):
        probs, grade = draw(n_queries, rng)
        labels = RankedLabels.from_grid(judge(kind, probs, grade, rng), OMEGA, GAINS)
        y = GAINS[grade].ravel()
        known = np.arange(n_pilot)
        pilot = np.where(np.isin(np.arange(len(y)), known), y, np.nan) if n_pilot else None
        sample = design_document_sample(
            labels, n_labels, seed=int(rng.integers(2**53)), pilot=pilot
        )
        human = y[sample.rows]
        pool = document_interval(labels, sample, human, target="pool")
        population = document_interval(labels, sample, human)
        utility = labels.total(y)
        rows.append(
            (
                pool.lower - 1e-9 <= utility.mean() <= pool.upper + 1e-9,
                population.lower <= TRUTH <= population.upper,
                2 * pool.half_width,
                2 * population.half_width,
                ppi_width(utility, labels.utilities(), n_labels // len(RANKS)),
            )
        )
    return np.mean(rows, axis=0)


def ppi_width(utility, judged, n):
    """[R] Eq. 11: n queries labelled, the others judged."""
    n = max(n, 2)
    error = (utility - judged)[:n]
    return 2 * 1.96 * np.sqrt(error.var(ddof=1) / n + judged[n:].var(ddof=1) / len(judged[n:]))


@pytest.mark.parametrize("n_labels", [50, 500])
@pytest.mark.parametrize(
    "kind", ["distribution", "one-hot", "five votes", "one vote", "constant", "inverted"]
)
def test_covers_both_targets(kind, n_labels):
    pool, population, *_ = simulate(kind, n_labels)
    assert pool >= acceptable(FLOOR, RUNS)
    assert population >= acceptable(FLOOR, RUNS)


@pytest.mark.parametrize("n_labels", [100, 800])
def test_covers_with_few_queries(n_labels):
    """The variance between queries has few degrees of freedom, and many chances are 1."""
    pool, population, *_ = simulate("distribution", n_labels, n_queries=100, seed=1)
    assert pool >= acceptable(FLOOR, RUNS)
    assert population >= acceptable(FLOOR, RUNS)
