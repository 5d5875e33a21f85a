"""Intervals for average ranks and unfairness on simulated retrievers with known preferences."""

from __future__ import annotations

import numpy as np
import pytest
from simulation import FLOOR, acceptable

from rag_sourcebias.audit.style_intervals import style_matrix_intervals
from rag_sourcebias.measures.style import unfairness, unfairness_score
from rag_sourcebias.measures.style_matrix import StyleMatrix
from rag_sourcebias.measures.style_ranks import rank_versions

pytestmark = pytest.mark.slow
RUNS = 400
K = 10
NAMES = tuple("abcdefghij")
STYLES = np.array([0.6, 0.5, 0.9, 0.3, -0.3, 0.5, -0.1, -0.6, -0.9, -1.4])


def draw(rng, n, effect):
    return rng.normal(effect * STYLES, 1, (n, K))


@pytest.mark.parametrize("effect", [0.0, 0.1, 0.25, 1.0])
@pytest.mark.parametrize("n", [20, 80])
def test_coverage(n, effect):
    rng = np.random.default_rng(n)
    truth = (
        rank_versions(draw(rng, 300_000, effect)).mean(axis=0)
        if effect
        else np.full(K, (K + 1) / 2)
    )
    unfair = float(unfairness_score(truth))
    cells = score = 0
    for run in range(RUNS):
        matrix = StyleMatrix.from_scores(
            draw(rng, n, effect)[:, None], query_styles=["q"], doc_styles=NAMES
        )
        found = style_matrix_intervals(matrix, resamples=1000, rng=run)
        cell = found.average_ranks[0][run % K]
        cells += cell.lower <= truth[run % K] <= cell.upper
        score += found.unfairness[0].lower - 1e-9 <= unfair <= found.unfairness[0].upper
    assert cells / RUNS >= acceptable(FLOOR, RUNS)
    assert score / RUNS >= acceptable(0.90, RUNS)


def test_corrected_score_is_unbiased_without_preferences_and_low_by_less_than_the_null_with():
    rng = np.random.default_rng(5)
    for effect in (0.0, 0.25, 1.0):
        truth = unfairness_score(rank_versions(draw(rng, 300_000, effect)).mean(axis=0))
        found = [unfairness(rank_versions(draw(rng, 30, effect))) for _ in range(2000)]
        bias = np.mean([f.corrected for f in found]) - (truth if effect else 0.0)
        error = np.std([f.corrected for f in found]) / np.sqrt(len(found))
        assert abs(bias) < 4 * error if effect == 0 else bias > -found[0].null_expectation
        assert bias < 4 * error
