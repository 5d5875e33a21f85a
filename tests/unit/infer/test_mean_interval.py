"""The default method against its literal definition, and what it does at the edges."""

import numpy as np
import pytest

from rag_sourcebias.core.errors import DataError, InsufficientDataError
from rag_sourcebias.infer.findings import InferCode
from rag_sourcebias.infer.judged import mean_interval
from rag_sourcebias.infer.means import t_quantile
from rag_sourcebias.infer.samples import t_interval


def sample(seed=0, n=30, n_pool=200, noise=2.0):
    rng = np.random.default_rng(seed)
    truth = rng.gamma(2.0, 3.0, n + n_pool)
    judge = 1.3 * truth + 2 + rng.normal(0, noise, n + n_pool)
    return truth[:n], judge[:n], judge[n:]


def literal(y, f, pool, target, keep=None):
    """Regression estimate by explicit least squares, on the items of ``keep``."""
    keep = np.arange(len(y)) if keep is None else keep
    design = np.stack([np.ones(len(keep)), f[keep]], axis=1)
    a, b = np.linalg.lstsq(design, y[keep], rcond=None)[0]
    towards = pool if target == "unlabeled" else np.concatenate([f, pool])
    return a + b * towards.mean(), b


def shifted(estimate, error, q, skewness):
    """Johnson (1978): both ends move with the skewness of the estimate, of .25 at most."""
    shift = error * np.clip(skewness, -0.25, 0.25) * (2 * q**2 + 1) / 6
    return estimate - q * error + shift, estimate + q * error + shift


def literal_variance(y, f, pool, target, power):
    """Variance by leaving out every item, with residuals over (1 − leverage)^power."""
    n, m = len(y), len(pool)
    estimate, slope = literal(y, f, pool, target)
    left_out = [literal(y, f, pool, target, np.delete(np.arange(n), i))[0] for i in range(n)]
    share = {"population": 1, "pool": m / (n + m), "unlabeled": 1 + n / m}[target]
    design = np.stack([np.ones(n), f], axis=1)
    leverage = np.diag(design @ np.linalg.inv(design.T @ design) @ design.T)
    influence = (estimate - np.array(left_out)) * np.sqrt(share) * (1 - leverage) ** (1 - power)
    variance = np.sum(influence**2)
    if target == "population":
        variance += slope**2 * np.concatenate([f, pool]).var(ddof=1) / (n + m)
    skewness = np.sum((influence - influence.mean()) ** 3) / variance**1.5
    return estimate, variance, skewness * np.sqrt(n * (n - 1)) / (n - 2)


def literal_ends(y, f, pool, target, power=0.5):
    estimate, variance, skewness = literal_variance(y, f, pool, target, power)
    return estimate, *shifted(estimate, np.sqrt(variance), t_quantile(0.975, len(y) - 2), skewness)


@pytest.mark.parametrize("n", [10, 15, 40, 100])
@pytest.mark.parametrize("target", ["population", "pool", "unlabeled"])
@pytest.mark.parametrize("noise", [0.3, 20.0])
def test_regression_is_least_squares_with_hc2(target, noise, n):
    y, f, pool = sample(noise=noise, n=n)
    estimate, lower, upper = literal_ends(y, f, pool, target)
    if target == "pool":
        _, low, high = literal_ends(y, f, pool, "population")
        lower, upper = max(lower, low), min(upper, high)
    found = mean_interval(y, f, pool, target=target)
    assert found.estimate == pytest.approx(estimate, abs=1e-10)
    assert found.lower == pytest.approx(lower)
    assert found.upper == pytest.approx(upper)
    assert found.correlation == pytest.approx(np.corrcoef(y, f)[0, 1])
    if noise == 20.0:  # and not the jackknife, which is wider
        _, low, high = literal_ends(y, f, pool, target, 1.0)
        assert high - low > 1.005 * (found.upper - found.lower)


def test_clusters_are_left_out_as_a_whole():
    y, f, pool = sample(n=40, n_pool=100)
    labeled, unlabeled = np.arange(40) // 4, 100 + np.arange(100) // 4
    found = mean_interval(y, f, pool, target="pool", clusters=labeled, clusters_unlabeled=unlabeled)
    estimate, _ = literal(y, f, pool, "pool")
    left_out = [literal(y, f, pool, "pool", np.flatnonzero(labeled != g))[0] for g in range(10)]
    influence = (estimate - np.array(left_out)) * np.sqrt(100 / 140)
    error, q = np.sqrt(np.sum(influence**2)), t_quantile(0.975, 9)
    skewness = np.sum((influence - influence.mean()) ** 3) / error**3 * np.sqrt(90) / 8
    assert found.estimate == pytest.approx(estimate)
    assert (found.lower, found.upper) == pytest.approx(shifted(estimate, error, q, skewness))
    assert InferCode.CLUSTERS_INDEPENDENT() in found.assumptions


def test_three_labels_within_bounds_have_a_shift():
    y = np.array([1.0, 2.0, 6.0])
    centred = (y - y.mean()) / 3 / np.sqrt(2 / 3)  # what the mean owes each label, HC2
    error = np.sqrt(centred @ centred)
    skewness = (centred**3).sum() / error**3 * np.sqrt(6)
    found = mean_interval(y, y, [], method="labels", bounds=(-100, 100))
    expected = shifted(3.0, error, t_quantile(0.975, 2), skewness)
    assert (found.lower, found.upper) == pytest.approx(expected)


@pytest.mark.parametrize("method", ["regression", "labels"])
def test_few_labels_on_an_unknown_scale_are_refused(method):
    y, f, pool = sample(n=9)
    with pytest.raises(InsufficientDataError, match=r"9 human labels on an unknown.*or label 10"):
        mean_interval(y, f, pool, method=method)
    assert mean_interval(y, f, pool, method=method, bounds=(0, 100)).lower >= 0
    right = np.array([1.0, 0, 1, 1, 0, 1, 0, 1, 1])
    assert 0 < mean_interval(right, right, np.ones(50), method=method).lower < 1


@pytest.mark.parametrize("n", [2, 5, 9])
def test_few_labels_give_labels_alone_and_say_so(n):
    y, f, pool = sample(n=n)
    found = mean_interval(y, f, pool, bounds=(-1000, 1000))
    alone = mean_interval(y, f, pool, bounds=(-1000, 1000), method="labels")
    assert (found.lower, found.upper) == (alone.lower, alone.upper)
    assert found.notes == (InferCode.JUDGE_FEW(),)


def test_constant_judge_gives_labels_alone_and_says_so():
    y, _, _ = sample()
    found = mean_interval(y, np.full(30, 3.0), np.full(100, 3.0))
    assert found.estimate == pytest.approx(y.mean())
    assert found.half_width == pytest.approx(t_interval(y).half_width, rel=0.1)
    assert found.method.code is InferCode.LABELS
    assert "the judge is constant" in str(found)
    assert found.notes == (InferCode.JUDGE_CONSTANT(),)


def test_useless_judge_is_called_useless():
    rng = np.random.default_rng(12)
    y = rng.normal(size=40)
    judge = rng.normal(size=40)
    judge -= np.polyval(np.polyfit(y, judge, 1), y)  # exactly uncorrelated
    found = mean_interval(y, judge, rng.normal(size=400))
    assert "labels alone are as good" in str(found)
    assert found.notes[0] == InferCode.JUDGE_WEAK()


@pytest.mark.parametrize(
    "judge",
    [
        lambda y, rng: y,
        lambda y, rng: -y,
        lambda y, rng: (y > 6).astype(float),
        lambda y, rng: np.r_[1.0, np.zeros(len(y) - 1)],  # one labelled item decides the slope
        lambda y, rng: 1e12 + y,
        lambda y, rng: 1e-12 * y,
    ],
    ids=["perfect", "inverted", "one-hot", "alone", "large", "small"],
)
@pytest.mark.parametrize("target", ["population", "pool", "unlabeled"])
def test_finite_for_any_judge(judge, target):
    rng = np.random.default_rng(0)
    y = rng.gamma(2, 3, 300)
    f = judge(y, rng)
    found = mean_interval(y[:50], f[:50], f[50:], target=target)
    assert np.isfinite([found.lower, found.estimate, found.upper]).all()
    assert found.half_width < 5


@pytest.mark.parametrize("sign", [1, -1])
def test_perfect_judge_of_the_pool_has_width_zero(sign):
    rng = np.random.default_rng(0)
    y = rng.gamma(2, 3, 300)
    f = sign * 2 * y + 7
    found = mean_interval(y[:50], f[:50], f[50:], target="pool")
    assert found.half_width == 0
    assert found.estimate == pytest.approx(y.mean())


def test_binary_labels_that_all_agree_still_have_an_interval():
    found = mean_interval(np.ones(20), np.ones(20), np.ones(500))
    assert found.estimate == 1.0
    assert 0.75 < found.lower < 0.9
    assert found.upper == 1.0
    assert found.method.code is InferCode.LABELS_SCORE
    with pytest.raises(InsufficientDataError, match="all 20 human values equal 3"):
        mean_interval(np.full(20, 3.0), np.arange(20.0), np.arange(9.0))
    bounded = mean_interval(np.full(20, 3.0), np.arange(20.0), np.arange(9.0), bounds=(1, 5))
    assert 1 <= bounded.lower < 3 < bounded.upper <= 5


@pytest.mark.parametrize("target", ["population", "pool", "unlabeled"])
@pytest.mark.parametrize("scale", [(0.0, 1.0), (-1.0, 3.0)])
def test_two_values_have_wilsons_interval_on_the_items_that_give_this_variance(target, scale):
    """Wilson: (p̂ − p)² = q² p(1 − p)/m, with pseudo-items at both ends in variance and centre."""
    rng = np.random.default_rng(4)
    y = (rng.random(340) < 0.8).astype(float)
    f = np.where(rng.random(340) < 0.85, y, 1 - y) + rng.normal(0, 0.1, 340)
    n, low, width = 40, scale[0], scale[1] - scale[0]

    def ends(target):
        share, variance, _ = literal_variance(y[:n], f[:n], f[n:], target, 0.5)
        seen = 2.0 if target == "population" else 4.0
        reach = {"population": 1, "pool": 300 / 340, "unlabeled": 1 + 40 / 300}[target]
        away = seen / 2 * ((1 - share) ** 2 + share**2)
        smoothed = (n * variance + reach * away / n) / (n + seen)
        centre = (n * share + seen / 2) / (n + seen)
        m, q = centre * (1 - centre) / smoothed, t_quantile(0.975, n - 2)
        wilson = np.sort(np.roots([1 + q**2 / m, -2 * share - q**2 / m, share**2]))
        if target != "population":
            half = q * np.sqrt(smoothed)
            wilson = min(wilson[0], share - half), max(wilson[1], min(share + half, 1))
        return share, *wilson

    estimate, lower, upper = ends(target)
    if target == "pool":
        lower, upper = max(lower, ends("population")[1]), min(upper, ends("population")[2])
    found = mean_interval(low + width * y[:n], f[:n], f[n:], target=target, bounds=scale)
    assert (found.estimate, found.lower, found.upper) == pytest.approx(
        (low + width * estimate, low + width * lower, low + width * upper)
    )


def test_refusals_name_what_is_wrong():
    y, f, pool = sample()
    with pytest.raises(InsufficientDataError, match=r"1 human label.*from 10 on"):
        mean_interval(y[:1], f[:1], pool)
    with pytest.raises(DataError, match="30 human values and 29 judge values"):
        mean_interval(y, f[1:], pool)
    with pytest.raises(DataError, match="method 'magic' is not one of"):
        mean_interval(y, f, pool, method="magic")
    with pytest.raises(DataError, match=r"bounds \(5, 5\): the first must be below the second"):
        mean_interval(y, f, pool, bounds=(5, 5))
    with pytest.raises(DataError, match=r"outside the scale \[0, 5\], first"):
        mean_interval(y, f, pool, bounds=(0, 5))
    with pytest.raises(InsufficientDataError, match="3 labelled cluster"):
        mean_interval(y, f, pool, clusters=np.arange(30) % 3, clusters_unlabeled=np.arange(200) % 3)
    with pytest.raises(DataError, match="'ppi' does not take clusters"):
        mean_interval(y, f, pool, method="ppi", clusters=range(30), clusters_unlabeled=range(200))
    with pytest.raises(DataError, match="clusters of the unlabelled items are missing"):
        mean_interval(y, f, pool, clusters=range(30))


def test_long_tails_without_known_ends_are_told() -> None:
    rng = np.random.default_rng(4)
    z = rng.normal(size=430)
    for method in ("regression", "labels"):
        long = mean_interval(50 + np.exp(z[:30] * 1.5), z[:30], z[30:], method=method)
        assert InferCode.LONG_TAIL() in long.notes
        even = mean_interval(z[:30], z[:30] ** 3, z[30:] ** 3, method=method)
        assert InferCode.LONG_TAIL() not in even.notes
        known = mean_interval(
            np.exp(z[:30] * 1.5), z[:30], z[30:], method=method, bounds=(0.0, 1e3)
        )
        assert InferCode.LONG_TAIL() not in known.notes
