"""Correcting Relative Δ for a detector's errors covers the value under the true tags."""

from __future__ import annotations

import numpy as np
import pytest
from simulation import FLOOR, acceptable

from rag_sourcebias.core.errors import InsufficientDataError
from rag_sourcebias.stats.ratio import (
    DetectorQuality,
    correct_relative_delta,
    relative_delta_interval,
)

pytestmark = pytest.mark.slow
RUNS = 1000


def simulate(h, low, sensitivity, specificity, *, labelled, n, runs=RUNS):
    rng = np.random.default_rng((labelled, n))
    truth = 200 * (h - low) / (h + low)
    returned = covered = naive = 0
    for _ in range(runs):
        place, luck = rng.random(n), rng.random(n)
        human, llm = place < h, (place >= h) & (place < h + low)
        seen_llm = (llm & (luck < sensitivity)) | (human & (luck >= specificity))
        seen_human = (human | llm) & ~seen_llm
        detector = DetectorQuality(
            n_other=labelled,
            n_other_detected=int(rng.binomial(labelled, sensitivity)),
            n_baseline=labelled,
            n_baseline_kept=int(rng.binomial(labelled, specificity)),
        )
        observed = relative_delta_interval(seen_human * 1.0, seen_llm * 1.0)
        naive += observed.lower <= truth <= observed.upper
        try:
            interval = correct_relative_delta(observed, detector)
        except InsufficientDataError:
            continue
        returned += 1
        covered += interval.lower <= truth <= interval.upper
    return returned / runs, covered / max(returned, 1), naive / runs


@pytest.mark.parametrize("labelled", [100, 400])
@pytest.mark.parametrize("n", [300, 2000])
@pytest.mark.parametrize("detector", [(0.95, 0.98), (0.8, 0.9), (0.7, 0.75)])
@pytest.mark.parametrize("truth", [(0.28, 0.46), (0.05, 0.12), (0.6, 0.3)])
def test_coverage(truth, detector, n, labelled):
    returned, covered, _ = simulate(*truth, *detector, labelled=labelled, n=n)
    assert returned > (0.5 if detector == (0.7, 0.75) else 0.99)
    assert covered >= acceptable(FLOOR, int(returned * RUNS))


def test_without_correction_the_interval_is_wrong():
    _, covered, naive = simulate(0.28, 0.46, 0.8, 0.9, labelled=400, n=2000)
    assert covered >= acceptable(FLOOR, RUNS)
    assert naive < 0.5


def test_a_weak_detector_is_refused():
    returned, _, _ = simulate(0.28, 0.46, 0.6, 0.65, labelled=200, n=300, runs=200)
    assert returned < 0.1
