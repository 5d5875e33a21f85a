import numpy as np
import pytest

from rag_sourcebias.core.errors import InsufficientDataError
from rag_sourcebias.infer.findings import InferCode
from rag_sourcebias.infer.judged import (
    difference_interval,
    judged_relative_delta_interval,
    mean_interval,
    unpaired_difference_interval,
)


def two_systems(seed=0, n=40, n_pool=300, bias=(0.0, 0.3)):
    """Human scores of two systems; the judge flatters the second."""
    rng = np.random.default_rng(seed)
    level = rng.beta(2, 2, n + n_pool)
    truth = np.clip(
        np.stack([level + 0.05, level - 0.05], 1) + rng.normal(0, 0.1, (n + n_pool, 2)), 0, 1
    )
    judge = truth + np.array(bias) + rng.normal(0, 0.05, truth.shape)
    return truth, judge


def parts(truth, judge, n=40):
    return truth[:n], judge[:n], judge[n:]


def test_difference_is_regression_on_the_judges_difference():
    """Estimate by least squares; variance by leaving items out, plus that of the pool."""
    from rag_sourcebias.infer.means import t_quantile

    truth, judge = two_systems(3, n=15)
    y, f, pool = (values[:, 0] - values[:, 1] for values in parts(truth, judge, 15))

    def estimate(kept):
        design = np.column_stack([np.ones(len(kept)), f[kept]])
        coefficients = np.linalg.lstsq(design, y[kept], rcond=None)[0]
        return np.array([1.0, np.concatenate([f, pool]).mean()]) @ coefficients, coefficients[1]

    everything = np.arange(15)
    middle, slope = estimate(everything)
    lost = np.array([middle - estimate(np.delete(everything, i))[0] for i in everything])
    variance = lost @ lost + (slope * np.concatenate([f, pool])).var(ddof=1) / 315
    third = ((lost - lost.mean()) ** 3).sum() * np.sqrt(15 * 14) / 13
    skewness = np.clip(third / variance**1.5, -0.25, 0.25)
    q = t_quantile(0.975, 13)
    shift = skewness * (2 * q**2 + 1) / 6  # Johnson 1978
    found = difference_interval(*parts(truth, judge, 15))
    assert found.estimate == pytest.approx(middle)
    # a correction for skewness may only widen: of few rankings it is wrong
    assert middle - found.lower == pytest.approx(np.sqrt(variance) * (q + max(-shift, 0)))
    assert found.upper - middle == pytest.approx(np.sqrt(variance) * (q + max(shift, 0)))
    assert abs(shift) > 0.01


def ends(gaps, rank, *items):
    """Ends by HC2 (times a factor) averaged with pseudo-items, by their number and difference."""
    from rag_sourcebias.infer.means import t_quantile

    n = len(gaps)
    residuals = (gaps - gaps.mean()) / np.sqrt(1 - 1 / n)
    error = max(
        (residuals @ residuals / n * counted + k * size**2 / n) / (n + k)
        for counted, k, size in items
    )
    half = t_quantile(0.975, n - rank) * np.sqrt(error)
    return gaps.mean() - half, gaps.mean() + half


def test_values_at_two_ends_get_two_pseudo_items():
    y = np.array([[1, 0], [0, 1], [1, 0], *[[1, 1]] * 9, *[[0, 0]] * 3], dtype=float)
    n = len(y)
    constant = np.zeros((n + 50, 2))
    found = difference_interval(y, constant[:n], constant[n:])
    assert (found.lower, found.upper) == pytest.approx(ends(y[:, 0] - y[:, 1], 1, (1, 2, 1)))


@pytest.mark.parametrize(("first", "n"), [(4, 10), (6, 10), (8, 20), (30, 120)])
def test_an_end_that_excludes_0_needs_less(first, n):
    """One alone, or of one beside the labels 1 − 10/n: whichever is more."""
    y = np.zeros((n, 2))
    y[:first, 0] = 1.0
    constant = np.zeros((n + 50, 2))
    found = difference_interval(y, constant[:n], constant[n:])
    gaps = y[:, 0] - y[:, 1]
    lower, _ = ends(gaps, 1, (1, 1 - 10 / n, 1), (0, 1, 1))
    assert found.lower == pytest.approx(lower)
    assert found.lower > 0
    assert found.upper == pytest.approx(min(ends(gaps, 1, (1, 2, 1))[1], 1))
    mirrored = difference_interval(y[:, ::-1], constant[:n], constant[n:])
    assert (mirrored.lower, mirrored.upper) == pytest.approx((-found.upper, -found.lower))


def test_of_values_at_two_ends_a_useless_judge_is_left_out():
    rng = np.random.default_rng(4)
    y = (rng.random((15, 2)) < [0.8, 0.4]).astype(float)
    useless = rng.random((515, 2))
    left, kept = (useless * size for size in (0, 1))
    without, found = (difference_interval(y, f[:15], f[15:]) for f in (left, kept))
    assert abs(found.correlation) < 1 / np.sqrt(13)
    assert (found.lower, found.upper) == (without.lower, without.upper)
    assert found.method == InferCode.DIFFERENCE(method=InferCode.LABELS())
    useless[:15] += 0.5 * y
    judged = difference_interval(y, useless[:15], useless[15:])
    assert judged.method == InferCode.DIFFERENCE(method=InferCode.REGRESSION())


@pytest.mark.parametrize("target", ["population", "pool", "unlabeled"])
@pytest.mark.parametrize("unit", [1.0, 0.2])
def test_a_judge_who_is_right_about_all_labels_leaves_a_width(target, unit):
    """By the errors of one grade that labels may have missed."""
    grades = np.random.default_rng(1).integers(1, 6, (520, 2)).astype(float)
    judge = unit * grades
    found = difference_interval(grades[:20], judge[:20], judge[20:], target=target)
    assert found.upper - found.lower > 0.2


@pytest.mark.parametrize("scale", [(0.0, 1.0), (1.0, 5.0)])
def test_labels_that_all_agree_leave_a_width_while_an_item_is_unlabelled(scale):
    values = np.array(scale)[np.arange(200) % 2]
    both = np.stack([values, values], axis=1)
    widths = [
        float(np.subtract(found.upper, found.lower))
        for n in (10, 20, 100)
        for found in [difference_interval(both[:n], both[:n], both[n:], bounds=scale)]
    ]
    assert min(widths) > 0
    assert widths == sorted(widths, reverse=True)
    done = difference_interval(both, both, both[:0], bounds=scale, target="pool")
    assert done.lower == done.upper == 0


def test_relative_delta_ends_solve_fiellers_equation():
    """At each end the contrast a − ρb is exactly t standard errors from 0."""
    from rag_sourcebias.infer.judged import fit_regression
    from rag_sourcebias.infer.means import t_quantile
    from rag_sourcebias.infer.samples import JudgedSample

    truth, judge = two_systems(9)
    fit = fit_regression(JudgedSample.build(*parts(truth, judge)), "population")
    found = judged_relative_delta_interval(*parts(truth, judge))
    for end in (found.lower, found.upper):
        ratio = (200 + end) / (200 - end)
        contrast = np.array([1, -ratio])
        error = np.sqrt(contrast @ fit.covariance @ contrast)
        assert abs(contrast @ fit.estimate) == pytest.approx(t_quantile(0.975, fit.degrees) * error)


def test_a_source_that_never_appears_is_at_the_end_of_the_scale():
    truth, judge = two_systems(2)
    truth[:, 1] = 0.0
    found = judged_relative_delta_interval(*parts(truth, judge))
    assert found.estimate == pytest.approx(200)
    assert found.upper == pytest.approx(200)


def test_unpaired_difference_is_welch_without_a_judge():
    from scipy import stats

    rng = np.random.default_rng(1)
    a, b = rng.normal(1, 1, 30), rng.normal(0, 3, 20)
    intervals = [
        mean_interval(v, rng.normal(size=len(v)), rng.normal(size=50), method="labels")
        for v in (a, b)
    ]
    found = unpaired_difference_interval(*intervals)
    expected = stats.ttest_ind(a, b, equal_var=False).confidence_interval()
    assert (found.lower, found.upper) == pytest.approx(tuple(expected), rel=0.03)


def test_refusals():
    truth, judge = two_systems()
    with pytest.raises(InsufficientDataError, match=r"9 labelled item.*at least 10"):
        difference_interval(truth[:9], judge[:9], judge[9:])
    same = np.repeat(truth[:, :1], 2, axis=1)
    with pytest.raises(InsufficientDataError, match="differ by 0 on each of the 40"):
        difference_interval(same[:40], judge[:40], judge[40:])
    with pytest.raises(InsufficientDataError, match="all 40 labelled queries score 0"):
        judged_relative_delta_interval(0 * truth[:40], judge[:40], judge[40:])


def test_sources_that_score_alike_differ_by_nothing():
    rng = np.random.default_rng(2)
    score, judge = rng.random((30, 1)) * [1, 1], rng.random((230, 1)) * [1, 1]
    found = judged_relative_delta_interval(score, judge[:30], judge[30:])
    assert (found.lower, found.estimate, found.upper) == (0, 0, 0)


@pytest.mark.parametrize(("least", "wide"), [(-13.0, True), (-13.01, False)])
def test_a_judge_is_on_the_scale_of_people_up_to_15_times_their_range(least, wide):
    """People grade 1 or 2, and mostly both systems alike: ends reach for half the scale."""
    y, judge = np.ones((30, 2)), np.ones((330, 2))
    y[:8, 0] = y[15:20] = 2
    judge[:30], judge[-1] = y, least
    found = difference_interval(y, judge[:30], judge[30:])
    assert (found.upper - found.lower > 1) == wide
