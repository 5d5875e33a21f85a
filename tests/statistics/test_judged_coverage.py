"""Coverage for judged rankings, on the simulator of the benchmark: fewer cells, fewer runs.

The bound is the binomial tolerance of ``simulation.acceptable``: 1 chance in 1,000 to fail at a
true coverage of exactly the floor.
"""

from __future__ import annotations

import numpy as np
import pytest
from benchmark_modules import load
from simulation import FLOOR, acceptable

from rag_sourcebias.infer.judged import mean_interval
from rag_sourcebias.judged.crc import recalibration
from rag_sourcebias.judged.plan import design_document_sample, document_interval

pytestmark = pytest.mark.slow
RUNS = 500

(sim,) = load("coverage", "simulator")
TRUTH = {
    name: float(sim.draw(300_000, np.random.default_rng(0), preset=name).human().mean())
    for name in ("TREC-DL", "Robust04")
}
TRUTH["2x-biased"] = TRUTH["over-confident"] = TRUTH["TREC-DL"]
# [R] Table 1: mean DCG@10 of BM25 by human and by judge labels
TABLE_1 = {"TREC-DL": (8.25, 12.93), "Robust04": (2.71, 4.32)}


@pytest.mark.parametrize("preset", TABLE_1)
def test_presets_meet_table_1(preset):
    queries = sim.draw(50_000, np.random.default_rng(1), preset=preset)
    found = queries.human().mean(), queries.judge().mean()
    assert found == pytest.approx(TABLE_1[preset], rel=0.05)


@pytest.mark.parametrize("target", ["population", "pool"])
@pytest.mark.parametrize("n", [15, 50])
@pytest.mark.parametrize("preset", ["TREC-DL", "2x-biased", "over-confident", "Robust04"])
def test_default_method(preset, n, target):
    rng = np.random.default_rng([n, *preset.encode()])
    hits = 0
    for _ in range(RUNS):
        queries = sim.draw(n + 112, rng, preset=preset)
        y, yhat = queries.human(), queries.judge()
        truth = TRUTH[preset] if target == "population" else y.mean()
        hits += not mean_interval(y[:n], yhat[:n], yhat[n:], target=target).excludes(truth)
    assert hits / RUNS >= acceptable(0.935, RUNS)


def test_narrower_than_the_ppi_of_the_paper():
    rng = np.random.default_rng(3)
    ours, theirs = 0.0, 0.0
    for _ in range(200):
        queries = sim.draw(1100, rng)
        y, yhat = queries.human(), queries.judge()
        sample = y[:100], yhat[:100], yhat[100:]
        ours += mean_interval(*sample).half_width
        theirs += mean_interval(*sample, method="ppi-paper").half_width
    assert ours / theirs <= 0.86


@pytest.mark.parametrize("judge", ["one_hot", "votes 1", "votes 5", "constant", "inverted"])
def test_judges_that_say_little(judge):
    name, _, n_votes = judge.partition(" ")
    rng = np.random.default_rng(list(judge.encode()))
    hits = {"population": 0, "pool": 0, "recalibrated": 0}
    runs = 150
    for _ in range(runs):
        queries = sim.draw(30 + 112, rng)
        queries = getattr(sim, name)(queries, *((int(n_votes), rng) if n_votes else ()))
        y, yhat = queries.human(), queries.judge()
        labels = queries.labels()
        lam = recalibration(labels.take(np.arange(30)), y[:30])
        moved = labels.utilities_at(lam)
        for key, values, target in (
            ("population", yhat, "population"),
            ("pool", yhat, "pool"),
            ("recalibrated", moved, "population"),
        ):
            truth = y.mean() if target == "pool" else TRUTH["TREC-DL"]
            found = mean_interval(y[:30], values[:30], values[30:], target=target)
            assert np.isfinite([found.lower, found.upper]).all()
            hits[key] += not found.excludes(truth)
    assert min(hits.values()) / runs >= acceptable(FLOOR, runs)


@pytest.mark.parametrize("target", ["population", "pool"])
def test_labels_spread_over_documents(target):
    rng = np.random.default_rng(5)
    hits, ours, theirs, runs = 0, 0.0, 0.0, 200
    for _ in range(runs):
        queries = sim.draw(1000, rng)
        labels, y, yhat = queries.labels(), queries.human(), queries.judge()
        sample = design_document_sample(labels, 500, seed=int(rng.integers(2**53)))
        gains = queries.gains[queries.grades].ravel()[sample.rows]
        found = document_interval(labels, sample, gains, target=target)
        hits += not found.excludes(TRUTH["TREC-DL"] if target == "population" else y.mean())
        ours += found.half_width
        theirs += mean_interval(y[:50], yhat[:50], yhat[50:], method="ppi-paper").half_width
    assert hits / runs >= acceptable(FLOOR, runs)
    assert ours / theirs <= 0.5
