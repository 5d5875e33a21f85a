"""Correction for detected tags."""

from __future__ import annotations

import pytest

from rag_sourcebias.core.errors import DataError, InsufficientDataError
from rag_sourcebias.core.values import Interval
from rag_sourcebias.stats.ranking import relative_delta
from rag_sourcebias.stats.ratio import DetectorQuality, correct_relative_delta


def observed(estimate, half=10.0, level=0.95):
    return Interval(
        estimate=estimate,
        lower=estimate - half,
        upper=estimate + half,
        confidence_level=level,
        method="delta",
        n_labeled=300,
    )


def detector(sens, spec, n=10_000):
    return DetectorQuality(
        n_other=n,
        n_other_detected=round(sens * n),
        n_baseline=n,
        n_baseline_kept=round(spec * n),
    )


@pytest.mark.parametrize(("h", "low"), [(0.5, 0.3), (0.1, 0.4), (0.2, 0.0)])
@pytest.mark.parametrize(("sens", "spec"), [(0.9, 0.9), (0.8, 0.95), (0.99, 0.7)])
def test_undoes_misclassification_of_additive_measures(h, low, sens, spec):
    seen_h, seen_low = spec * h + (1 - sens) * low, sens * low + (1 - spec) * h
    corrected = correct_relative_delta(
        observed(relative_delta(seen_h, seen_low)), detector(sens, spec)
    )
    assert corrected.estimate == pytest.approx(relative_delta(h, low), abs=1e-9)


def test_variance_of_the_delta_method():
    sens, spec, n = 0.8, 0.9, 400
    found = correct_relative_delta(observed(-20.0, half=19.6), detector(sens, spec, n))
    j = sens + spec - 1
    delta = (-20 - 200 * (spec - sens)) / j

    def smoothed(share):
        p = (share * n + 2) / (n + 4)
        return p * (1 - p) / (n + 4)

    variance = (
        100 + (200 + delta) ** 2 * smoothed(spec) + (200 - delta) ** 2 * smoothed(sens)
    ) / j**2
    assert found.estimate == pytest.approx(delta)
    assert found.half_width == pytest.approx(1.96 * variance**0.5, rel=1e-3)
    assert found.method == "delta, corrected for tag errors"
    assert "the detector errs independently of rank and of relevance" in found.assumptions


def test_perfect_detector_changes_little_and_a_larger_sample_narrows():
    perfect = correct_relative_delta(observed(30.0), detector(1, 1))
    assert perfect.estimate == 30.0
    assert 10 < perfect.half_width < 10.5
    widths = [
        correct_relative_delta(observed(30.0), detector(0.9, 0.9, n)).half_width
        for n in (100, 400, 10_000)
    ]
    assert widths[0] > widths[1] > widths[2] > 10


def test_stays_within_bounds():
    found = correct_relative_delta(observed(150.0, half=40), detector(0.7, 0.8))
    assert found.estimate == found.upper == 200.0


def test_weak_detectors_are_refused():
    with pytest.raises(InsufficientDataError, match=r"is 0\.30 ± 0\.10, which reaches below 0\.3"):
        correct_relative_delta(observed(10.0), detector(0.6, 0.7, 170))
    with pytest.raises(InsufficientDataError):  # good, but hardly any labels
        correct_relative_delta(observed(10.0), detector(0.8, 0.8, 10))


@pytest.mark.parametrize("counts", [(0, 0, 5, 5), (5, 6, 5, 5), (5, -1, 5, 5), (5, 5, 5, 6)])
def test_impossible_counts(counts):
    names = ("n_other", "n_other_detected", "n_baseline", "n_baseline_kept")
    with pytest.raises(DataError, match="impossible"):
        DetectorQuality(**dict(zip(names, counts, strict=True)))
