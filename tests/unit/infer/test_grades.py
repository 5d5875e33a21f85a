"""Intervals for grades: how far judge errors that few labels show may move the mean."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from rag_sourcebias.core.finding import Interval
from rag_sourcebias.infer.findings import InferCode
from rag_sourcebias.infer.judged import mean_interval

LEVEL = 0.9
PROBABILITY = 0.5 + LEVEL / 2


def literal(y, f, pool, span=None):
    """Ends that t gives or that unseen errors of the judge allow, whichever lie further out.

    Of n labels k may be errors of more than half the way to an end of the scale, and Jeffreys'
    upper end for k in n says how many there may be besides.
    """
    n, m = len(y), len(pool)
    design = np.stack([np.ones(n), f], axis=1)
    inverse = np.linalg.inv(design.T @ design)
    start, slope = inverse @ design.T @ y
    judge = np.concatenate([f, pool])
    estimate, residuals = start + slope * judge.mean(), y - design @ [start, slope]
    leverage = np.diag(design @ inverse @ design.T)
    influence = (design @ inverse @ [1, judge.mean()]) * residuals / np.sqrt(1 - leverage)
    drawn = slope**2 * judge.var(ddof=1) / (n + m)
    error = np.sqrt(np.sum(influence**2) + drawn)
    q = stats.t.ppf(PROBABILITY, n - 2)
    skewness = np.sum((influence - influence.mean()) ** 3) / error**3
    skewness = np.clip(skewness * np.sqrt(n * (n - 1)) / (n - 2), -0.25, 0.25)
    shift = error * skewness * (2 * q**2 + 1) / 6
    if span is None:
        return estimate - q * error + shift, estimate + q * error + shift
    reach = []
    for room, errors in ((estimate - span[0], -residuals), (span[1] - estimate, residuals)):
        k = np.count_nonzero(errors > room / 2)
        size = min(room, errors.max()) if k else room
        unseen = stats.beta.ppf(PROBABILITY, k + 0.5, n - k + 0.5) - k / n
        reach.append(np.hypot(unseen * size, q * np.sqrt(drawn)))
    return min(estimate - q * error + shift, estimate - reach[0]), max(
        estimate + q * error + shift, estimate + reach[1]
    )


def grades(errors: dict[int, float]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """People grade 2 to 4; a judge from 1 to 5, alike but for the errors by position."""
    rng = np.random.default_rng(7)
    y = np.resize([2.0, 3.0, 4.0, 3.0], 36)
    f = y.copy()
    f[[0, 2]] = 1, 5
    for at, error in errors.items():
        f[at] -= error
    return y, f, rng.integers(1, 6, 150).astype(float)


def ends(found: Interval) -> tuple[float, float]:
    return found.lower, found.upper


@pytest.mark.parametrize("errors", [{}, {6: 3.0}, {6: 3.0, 10: 2.5}, {4: -3.0, 8: -2.5, 12: -3}])
@pytest.mark.parametrize("bounds", [None, (0.0, 6.0)])
def test_errors_that_labels_did_not_show_widen_the_interval(errors, bounds):
    y, f, pool = grades(errors)
    found = mean_interval(y, f, pool, confidence_level=LEVEL, bounds=bounds)
    assert ends(found) == pytest.approx(literal(y, f, pool, bounds or (1.0, 5.0)))


@pytest.mark.parametrize(
    ("least", "most", "span"),
    [
        (1.0, 5.0, (1.0, 5.0)),
        (1.0, 4.5, (1.0, 5.0)),
        (0.9, 5.0, (2.0, 4.0)),
        (1.0, 5.1, (2.0, 4.0)),
        (-1.0, 7.0, (2.0, 4.0)),
    ],
)
def test_a_judge_within_half_the_range_of_the_grades_is_on_their_scale(least, most, span):
    y, f, pool = grades({})
    f[[0, 2]] = least, most
    found = mean_interval(y, f, pool, confidence_level=LEVEL)
    assert ends(found) == pytest.approx(literal(y, f, pool, span))


@pytest.mark.parametrize(("first", "span"), [(0.0, (0.0, 17.0)), (0.5, None)])
def test_grades_come_twice_each_on_average(first, span):
    """18 values of 36 labels, or 19."""
    y = np.repeat(np.arange(18.0), 2)
    y[0] = first
    pool = np.linspace(0, 17, 400)
    found = mean_interval(y, y, pool, confidence_level=LEVEL)
    assert ends(found) == pytest.approx(literal(y, y, pool, span))


def test_a_judge_on_another_scale_changes_nothing():
    y, f, pool = grades({})
    found = mean_interval(y, 20 * f + 100, 20 * pool + 100, confidence_level=LEVEL)
    assert ends(found) == pytest.approx(literal(y, f, pool, (2.0, 4.0)))


def test_labels_in_clusters_are_worth_their_number_over_the_design_effect():
    """Kish (1965): n Var(y) over the variance of cluster sums, of 12 clusters of 2 to 4 items."""
    clusters = np.repeat(np.arange(12), np.resize([2, 3, 4], 12))
    rng = np.random.default_rng(3)
    y = (rng.random(36) < np.repeat(rng.uniform(0.2, 1.0, 12), np.resize([2, 3, 4], 12))) * 1.0
    found = mean_interval(y, y, [], method="labels", clusters=clusters, confidence_level=LEVEL)
    share, sizes = y.mean(), np.bincount(clusters)
    hits = np.bincount(clusters, weights=y)
    effect = np.sum((hits - sizes * share) ** 2) * 12 / 11 / (36 * share * (1 - share))
    n = 36 / effect
    assert 12 < n < 36
    left_out = (36 * share - hits) / (36 - sizes)
    variance = np.sum((share - left_out) ** 2)
    smoothed = (n * variance + 2 * ((1 - share) ** 2 + share**2) / n) / (n + 4)
    centre = (n * share + 2) / (n + 4)
    m, q = centre * (1 - centre) / smoothed, stats.t.ppf(PROBABILITY, 11)
    wilson = np.sort(np.roots([1 + q**2 / m, -2 * share - q**2 / m, share**2]))
    assert ends(found) == pytest.approx(tuple(wilson))


@pytest.mark.parametrize(
    ("r", "weak"), [(0.30, True), (-0.30, True), (0.33, False), (-0.33, False)]
)
def test_a_judge_is_weak_up_to_one_over_the_root_of_the_labels_less_two(r, weak):
    """Of 12 labels: 1/√10 = .316."""
    rng = np.random.default_rng(0)
    y, other = rng.normal(size=(2, 12))
    y -= y.mean()
    other -= other.mean() + y * (other @ y) / (y @ y)
    judge = r * y / np.linalg.norm(y) + np.sqrt(1 - r**2) * (other - other.mean()) / np.linalg.norm(
        other - other.mean()
    )
    found = mean_interval(y, judge, rng.normal(size=50))
    assert found.correlation == pytest.approx(r)
    assert (InferCode.JUDGE_WEAK() in found.notes) == weak
