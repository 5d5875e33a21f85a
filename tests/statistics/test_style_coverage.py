"""Worlds of known truth for style audits, read off the public verb; small, with fixed seeds.

The full ones are in ``benchmarks/validity/style.py``.
"""

from __future__ import annotations

import numpy as np
import pytest
from benchmark_modules import load
from simulation import FLOOR, acceptable

from rag_sourcebias.infer.means import bootstrap_means
from rag_sourcebias.style.measure import rank_versions, unfairness, unfairness_score

(worlds,) = load("validity", "style")

pytestmark = pytest.mark.slow
RUNS = 140


@pytest.mark.parametrize("k", [2, 10])
@pytest.mark.parametrize("world", ["alike", "one style", "gradient, ties", "nearly one order"])
def test_intervals_hold(world, k):
    found = worlds.counts(world, 20, k, False, RUNS, 900)["counts"]
    least = acceptable(FLOOR, RUNS)
    assert found["unfairness"] / RUNS >= least
    assert found["means"] / RUNS >= least
    assert found["refused"] == 0


def test_the_former_interval_is_rejected():
    """Basic ends of a percentile bootstrap (its tails were .02 at 20)."""
    rng, hits = np.random.default_rng(3), 0
    unfair = float(unfairness_score(worlds.truth("one style", 2)))
    for run in range(RUNS):
        scores = worlds.draw("one style", 20, 2, rng, faded=False)
        ranks = rank_versions(scores)
        drawn = bootstrap_means(ranks, resamples=400, rng=run)
        seen = float(unfairness_score(ranks.mean(axis=0)))
        low, high = 2 * seen - np.quantile(unfairness_score(drawn), [0.98, 0.02])
        hits += min(max(low, 0), seen) <= unfair <= max(high, seen)
    assert hits / RUNS < acceptable(FLOOR, RUNS)


@pytest.mark.parametrize(("world", "k", "n"), [
    ("alike", 2, 30), ("alike", 10, 10), ("alike, two camps", 10, 30), ("alike, unsteady", 4, 30),
])  # fmt: skip
def test_styles_alike_are_rarely_called_favoured(world, k, n):
    found = worlds.counts(world, n, k, False, RUNS, 901)["counts"]
    most = 1 - acceptable(0.95, RUNS)
    assert found["favours"] / RUNS <= most
    assert found["too_few"] == 0


@pytest.mark.parametrize("k", [2, 10])
def test_a_planted_preference_is_found_nearly_as_often_as_an_oracle_finds_it(k):
    null = worlds.counts("alike", 30, k, False, 2 * RUNS, 902)
    planted = worlds.counts("one style", 30, k, True, RUNS, 903)
    critical = np.sort(null["sums"])[int(np.ceil(0.95 * 2 * RUNS)) - 1] + 1e-9
    oracle = np.mean(np.array(planted["sums"]) > critical)
    assert oracle > 0.6
    assert planted["counts"]["favours"] / RUNS >= 0.9 * oracle - 0.05


def test_corrected_score_is_unbiased_without_preferences_and_low_by_less_than_the_null_with():
    rng = np.random.default_rng(5)
    styles = np.array([0.6, 0.5, 0.9, 0.3, -0.3, 0.5, -0.1, -0.6, -0.9, -1.4])

    def draw(n, effect):
        return rank_versions(rng.normal(effect * styles, 1, (n, 10)))

    for effect in (0.0, 0.25, 1.0):
        truth = unfairness_score(draw(300_000, effect).mean(axis=0)) if effect else 0.0
        found = [unfairness(draw(30, effect)) for _ in range(2000)]
        bias = np.mean([f.corrected for f in found]) - truth
        error = np.std([f.corrected for f in found]) / np.sqrt(len(found))
        assert abs(bias) < 4 * error if effect == 0 else bias > -found[0].null_expectation
        assert bias < 4 * error
