"""Simultaneous comparisons against their literal definition, and what is refused."""

import math
from itertools import combinations

import numpy as np
import pytest
from scipy.stats import kendalltau

from rag_sourcebias.core.errors import InsufficientDataError
from rag_sourcebias.infer.judged import compare_systems


def world(m=4, n=200, *, binary=False, seed=0, noise=0.5):
    """Human and judge values of n items for m systems, the later the better."""
    rng = np.random.default_rng(seed)
    y = rng.normal(0, 1, (n, 1)) + rng.normal(0, 0.7, (n, m)) + 0.4 * np.arange(m)
    if binary:
        y = (y > 0.5).astype(float)
    return y, 2 * y + rng.normal(0, noise, (n, m))


def parts(y, f, n=30):
    return y[:n], f[:n], f[n:]


def literal(y, f, n):
    """Estimate and variance of each difference, one item and one pair at a time."""
    m = y.shape[1]
    dy, df = y[:n] - y[:n].mean(0), f[:n] - f[:n].mean(0)
    own = df
    dy, df = dy - dy.mean(1, keepdims=True), df - df.mean(1, keepdims=True)
    slope = sum(df[i, a] * dy[i, a] for i in range(n) for a in range(m)) / (df**2).sum()
    estimate = [y[:n, a].mean() + slope * (f[:, a].mean() - f[:n, a].mean()) for a in range(m)]
    shift = f.mean(0) - f[:n].mean(0)
    found = {}
    for a, b in combinations(range(m), 2):
        total = 0.0
        for i in range(n):
            free = math.sqrt(1 - 1 / n - (df[i] ** 2).sum() / (df**2).sum())
            left = (dy[i] - slope * df[i]) / free
            tilt = sum(df[i] * left) / (df**2).sum() * (shift[a] - shift[b])
            seen = slope * (own[i, a] - own[i, b]) / len(f)  # it is one of all items, too
            total += ((left[a] - left[b]) / n + tilt + seen) ** 2 - seen**2
        total += slope**2 * np.var(f[:, a] - f[:, b], ddof=1) / len(f)
        found[a, b] = (estimate[a] - estimate[b], total)
    return found


@pytest.mark.parametrize("binary", [False, True])
def test_estimates_and_errors_are_those_of_the_definition(binary):
    y, f = world(binary=binary)
    found = compare_systems(*parts(y, f))
    for place, (pair, (gap, variance)) in enumerate(literal(y, f, 30).items()):
        assert (found.first[place], found.second[place]) == pair
        assert found.difference[place] == pytest.approx(gap)
        # half a pseudo-item at +1 and half at −1
        centre, square = (
            (gap * 30 / 31, (30 * variance + 1 / 30) / 31) if binary else (gap, variance)
        )
        half = found.quantile * math.sqrt(square)
        assert found.lower[place] == pytest.approx(min(centre - half, gap))
        assert found.upper[place] == pytest.approx(max(centre + half, gap))
    wrong = literal(y[::-1], f[::-1], 30)[0, 1]
    assert wrong[0] != pytest.approx(found.difference[0])


def test_grades_that_are_mostly_equal_get_two_pseudo_items():
    """Of half the scale, where two differences of three are equal; the others none."""
    rng = np.random.default_rng(2)
    y = np.full((230, 3), 5.0) - (rng.random((230, 3)) < [0.05, 0.1, 0.6])
    f = rng.normal(size=y.shape)  # says nothing
    found = compare_systems(*parts(y, f), bounds=(1, 5))
    for place, (gap, variance) in enumerate(literal(y, f, 30).values()):
        apart = y[:30, found.first[place]] - y[:30, found.second[place]]
        equal = max((apart == value).mean() for value in (-1, 0, 1)) >= 2 / 3
        assert equal == (place == 0)
        square = (30 * variance + 2 * 2**2 / 30) / 32 if equal else variance
        assert found.upper[place] - gap == pytest.approx(found.quantile * math.sqrt(square))


def test_the_quantile_is_that_of_a_plain_joint_bootstrap():
    y, f = world(m=3)
    n, f = 40, f[:40]  # every item labelled: the influence of an item is its centred value
    found = compare_systems(y[:n], f, f[:0], target="pool", rng=3)
    assert (found.upper - found.lower).max() == 0  # nothing is left to estimate
    y, f = y[:n], np.zeros((n, 3))  # a judge that says nothing
    found = compare_systems(y, f, np.zeros((400, 3)), n_resamples=20_000, rng=3)
    rng, largest = np.random.default_rng(4), []
    for _ in range(4_000):
        drawn = y[rng.integers(0, n, n)]
        t = []
        for a, b in combinations(range(3), 2):
            d, full = drawn[:, a] - drawn[:, b], y[:, a] - y[:, b]
            t.append(abs(d.mean() - full.mean()) / (d.std() / math.sqrt(n - 1)))
        largest.append(max(t))
    assert found.quantile == pytest.approx(np.quantile(largest, 0.95), abs=0.12)
    assert found.quantile > 2.2  # one difference alone would have 2.02


def test_resamples_of_values_at_two_ends_have_the_pseudo_item_too():
    """Half of it at +1 and half at −1, so that no resample has a variance of 0."""
    n, rng = 20, np.random.default_rng(20)
    y = (rng.random((n, 3)) < [0.05, 0.1, 0.2]).astype(float)
    found = compare_systems(y, np.zeros((n, 3)), np.zeros((300, 3)), n_resamples=20_000)
    drawn = y[rng.integers(0, n, (20_000, n))]
    largest = np.zeros(20_000)
    for a, b in combinations(range(3), 2):
        gaps = drawn[:, :, a] - drawn[:, :, b]
        variance = (gaps.var(axis=1) / (n - 1) + 1 / n**2) / (1 + 1 / n)
        away = np.abs(gaps.mean(axis=1) - (y[:, a] - y[:, b]).mean()) * math.sqrt(n / (n - 1))
        largest = np.maximum(largest, away / np.sqrt(variance))
    assert found.quantile == pytest.approx(np.quantile(largest, 0.95), abs=0.04)


@pytest.mark.parametrize("order", [[0, 1, 2, 3, 4], [2, 4, 0, 3, 1]])
def test_ranks_and_tau_follow_from_the_differences(order):
    y, f = (values[:, order] for values in world(m=5, n=400, seed=2))
    found = compare_systems(*parts(y, f, 60))
    clear = {}
    for a, b, low, high in zip(found.first, found.second, found.lower, found.upper, strict=True):
        clear[a, b], clear[b, a] = low > 0, high < 0
    for a in range(5):
        others = [b for b in range(5) if b != a]
        assert found.best[a] == 1 + sum(clear[b, a] for b in others)
        assert found.worst[a] == 5 - sum(clear[a, b] for b in others)
    best = order.index(4)
    assert found.best[best] == found.worst[best] == 1
    now, low, high = found.tau
    means = np.zeros(5)  # the corrected means, up to a constant
    means[1:] = -found.difference[:4]
    assert now == pytest.approx(kendalltau(f.mean(0), means)[0])
    assert low <= now <= high
    unsure = compare_systems(*parts(y[:, 2:] - y[:, 2:].mean(0), f[:, 2:] * 0, 10))
    assert unsure.tau[1:] == (0.0, 0.0)  # a judge that ties all systems orders no pair


@pytest.mark.parametrize("n", [10, 12])
def test_pairs_that_may_be_chance_leave_tau_open_in_both_directions(n):
    y, f = world(m=5, n=400, seed=2)
    found = compare_systems(*parts(y, f, n))
    says = np.sign(f.mean(0)[found.first] - f.mean(0)[found.second])
    sure = (found.lower > 0) * 1 - (found.upper < 0)
    now, low, high = found.tau
    assert low == pytest.approx(min(np.where(sure, says * sure, -1).mean(), now))
    assert high == pytest.approx(max(np.where(sure, says * sure, 1).mean(), now))
    assert 0 < np.count_nonzero(sure) < 10


def residuals(y, f, n):
    """What the judge does not see of each labelled item and system, as errors of the means."""
    dy, df = (values[:n] - values[:n].mean(0) for values in (y, f))
    dy, df = (values - values.mean(1, keepdims=True) for values in (dy, df))
    slope, shift = (df * dy).sum() / (df**2).sum(), f.mean(0) - f[:n].mean(0)
    free = 1 - 1 / n - (df**2).sum(1) / (df**2).sum()
    left = (dy - slope * df) / np.sqrt(free)[:, None]
    tilt = (df * left).sum(1) / (df**2).sum()
    return slope, left / n + tilt[:, None] * (shift - shift.mean())


@pytest.mark.parametrize("lean", [0.0, 0.3])
def test_scores_keep_what_chance_does_not_explain_of_the_offsets(lean):
    """James and Stein (1961), for what follows a line in the judge's means and for what is left."""
    y, f = world(m=6, noise=0.8)
    f += lean * np.array([2.0, -1.0, 0.0, 1.0, -2.0, 0.5])
    n = 30
    found = compare_systems(*parts(y, f, n))
    slope, errors = residuals(y, f, n)
    estimate = y[:n].mean(0) + slope * (f.mean(0) - f[:n].mean(0))
    offset = y[:n].mean(0) - slope * f[:n].mean(0)
    offset -= offset.mean()
    errors -= errors.mean(1, keepdims=True)
    chance = (errors**2).sum() / 5
    apart = f.mean(0) - f.mean()
    tilt = apart @ offset / (apart @ apart)
    left = offset - tilt * apart
    line = tilt * apart * max(1 - chance / (tilt**2 * (apart @ apart)), 0)
    rest = left * max(1 - 4 * chance / (left @ left), 0)
    assert found.score == pytest.approx(estimate - offset + line + rest)
    assert not np.allclose(found.score, estimate)


def test_a_baseline_compares_each_other_system_with_it():
    y, f = world(m=5)
    every, one = (compare_systems(*parts(y, f), baseline=b) for b in (None, 2))
    assert one.first.tolist() == [0, 1, 3, 4]
    assert set(one.second.tolist()) == {2}
    assert one.difference[2] == pytest.approx(-every.difference[7])  # 3 − 2 against 2 − 3
    assert one.quantile < every.quantile
    assert one.best.tolist() == [1] * 5
    assert one.worst.tolist() == [5] * 5


def test_no_width_is_zero_while_an_item_is_unlabelled():
    same = np.ones((200, 3))
    found = compare_systems(same[:20], same[:20], same[20:])
    assert (found.upper - found.lower).min() > 0.15
    graded = 3 * same
    with pytest.raises(InsufficientDataError, match="give the range"):
        compare_systems(graded[:20], graded[:20], graded[20:])
    found = compare_systems(graded[:20], graded[:20], graded[20:], bounds=(0, 5))
    assert (found.upper - found.lower).min() > 0.7
    grades = np.random.default_rng(0).integers(1, 6, (200, 3)).astype(float)
    for judge in (grades, grades / 5):  # right about every label, on its scale or another
        found = compare_systems(grades[:20], judge[:20], judge[20:], target="pool")
        assert (found.upper - found.lower).min() > 0.2


@pytest.mark.parametrize(("scale", "bounds"), [((0, 1), None), ((1, 5), (1, 5))])
def test_differences_stay_within_what_the_scale_allows(scale, bounds):
    y = np.array(scale)[[[1, 0, 0]] * 200].astype(float)
    y[:2] = scale[1]  # a few items tell nothing apart
    found = compare_systems(y[:15], y[:15], y[15:], bounds=bounds)
    assert found.upper[0] == found.upper[1] == scale[1] - scale[0]
    assert found.difference.max() < found.upper[0]


@pytest.mark.parametrize(
    ("n", "m", "baseline", "needed"),
    [(9, 3, None, 10), (9, 9, None, 10), (29, 10, None, 30), (29, 38, 0, 30)],
)
def test_too_few_labels_are_refused(n, m, baseline, needed):
    y, f = world(m=m)
    with pytest.raises(InsufficientDataError, match=f"at least {needed}") as error:
        compare_systems(*parts(y, f, n), baseline=baseline)
    assert error.value.n_needed == needed
    compare_systems(*parts(y, f, needed), baseline=baseline, n_resamples=100)
