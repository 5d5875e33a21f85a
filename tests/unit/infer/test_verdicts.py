"""Codes: their order of precedence, and the queries that a verdict would take."""

from __future__ import annotations

import math

import numpy as np
import pytest
from intervals import between
from scipy import optimize, stats

from rag_sourcebias.infer.means import SkewCode, queries_for_verdict, queries_to_tell, skew_code


@pytest.mark.parametrize(
    ("ends", "p", "code"),
    [
        ((-4, 4), 0.9, SkewCode.ALIKE),
        ((-5, 5), 0.9, SkewCode.ALIKE),
        ((1, 4), 0.001, SkewCode.ALIKE),  # not 0, and yet inside the margin: alike comes first
        ((-4, -1), 0.001, SkewCode.ALIKE),
        ((1, 6), 0.001, SkewCode.FAVOURS_BASELINE),
        ((-6, -1), 0.001, SkewCode.FAVOURS_OTHER),
        ((20, 60), 0.001, SkewCode.FAVOURS_BASELINE),
        ((1, 6), 0.2, SkewCode.CANNOT_TELL),  # lost by the correction for several tests
        ((-1, 6), 0.001, SkewCode.CANNOT_TELL),  # an interval with 0 is never a preference
        ((-50, 50), 0.9, SkewCode.CANNOT_TELL),
    ],
)
def test_precedence(ends, p, code):
    assert skew_code(between(*ends), p, margin=5.0) is code


def test_without_interval_or_test_there_is_no_verdict():
    assert skew_code(None, 0.001, margin=5.0) is SkewCode.REFUSED
    assert skew_code(between(20, 60), None, margin=5.0) is SkewCode.REFUSED


def test_a_margin_of_zero_never_says_alike_of_an_interval_with_width():
    assert skew_code(between(-1e-9, 1e-9), 1.0, margin=0.0) is SkewCode.CANNOT_TELL
    assert skew_code(between(0, 0), 1.0, margin=0.0) is SkewCode.ALIKE


def assurance(found, size, margin):
    """Chance that so many queries end in a verdict, over 99 truths the interval leaves open.

    Of the two verdicts the likelier counts.
    """
    z = stats.norm.ppf(0.975)
    error = (found.upper - found.lower) / 2 / z
    later = error * math.sqrt(found.n_labeled / size)
    chances = []
    for q in range(1, 100):
        truth = found.estimate + error * stats.t.ppf(q / 100, found.n_labeled - 1)
        inside = stats.norm.cdf(margin - z * later, truth, later) - stats.norm.cdf(
            -margin + z * later, truth, later
        )
        apart = stats.norm.sf(z * later, abs(truth), later)
        chances.append(max(inside, apart))
    return np.mean(chances)


@pytest.mark.parametrize("ends", [(-2, 6), (-7, 1), (-9, 3), (-20, 40)])
def test_queries_needed_are_the_first_number_that_reaches_a_verdict_in_four_of_five(ends):
    found = between(*ends)
    needed = queries_for_verdict(found, margin=5.0)
    assert assurance(found, needed, 5.0) >= 0.8 - 1e-3
    assert assurance(found, 0.99 * needed, 5.0) < 0.8


class TestQueriesNeeded:
    def test_scales_with_the_queries_of_the_pilot(self):
        """Ends at 10 times the queries are bought with 10 times as many, up to t(n − 1)."""
        few = queries_for_verdict(between(-20, 40, n=200), margin=5.0)
        many = queries_for_verdict(between(-20, 40, n=2000), margin=5.0)
        assert many == pytest.approx(10 * few, rel=0.03)

    def test_a_point_or_an_endless_search_has_no_number(self):
        assert queries_for_verdict(between(7, 7), margin=5.0) is None
        wide = between(-200, 200, n=10**7)
        assert queries_for_verdict(wide, margin=0.0) is None
        assert math.isfinite(queries_for_verdict(between(-200, 200, n=6), margin=5.0))


def never(found, queries, contrast):
    """No two columns are called alike."""
    return np.zeros(found.shape[:-1], dtype=bool)


@pytest.mark.parametrize("z", [1.5, 1.8])
def test_two_columns_need_the_queries_of_a_paired_test(z: float) -> None:
    """Of what the data leave plausible, 8 of 10 distances must be told with power .8.

    With two columns the distance is normal around the truth, with the standard error seen. Truths
    are those at which the distance seen is a quantile of what would be seen.
    """
    rng = np.random.default_rng(2)
    n = 400
    difference = rng.normal(size=n)
    difference = (difference - difference.mean()) / difference.std(ddof=1)
    difference += z / math.sqrt(n)
    columns = rng.normal(size=n)[:, None] + np.stack([difference / 2, -difference / 2], axis=1)
    needed = [queries_to_tell(columns, alpha=0.05, alike=never, rng=seed) for seed in range(8)]

    def folded(t: float, probability: float) -> float:
        return stats.foldnorm.cdf(z, t) - probability

    truth = optimize.brentq(lambda t: folded(t, 0.75), 0, z)
    expected = n * ((stats.norm.ppf(0.975) + stats.norm.ppf(0.8)) / truth) ** 2
    assert np.mean(needed) == pytest.approx(expected, rel=0.1)


def test_a_contrast_of_length_1_has_the_mean_variance_of_the_directions_within_rows():
    """Of k = 4 columns: (total variance of what is left without the row's mean) / 3."""
    columns = np.random.default_rng(0).normal(size=(50, 4)) * [1, 2, 3, 1]
    contrasts = []

    def keep(found, queries, contrast):
        contrasts.append(contrast)
        return never(found, queries, contrast)

    queries_to_tell(columns, alpha=0.05, alike=keep)
    centred = columns - columns.mean(axis=1, keepdims=True)
    expected = math.sqrt(centred.var(axis=0, ddof=1).sum() / 3)
    assert contrasts == pytest.approx([expected] * len(contrasts))
