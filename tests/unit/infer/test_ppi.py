import numpy as np
import pytest
from scipy import stats

from rag_sourcebias.core.errors import InsufficientDataError
from rag_sourcebias.infer.findings import InferCode
from rag_sourcebias.infer.judged import (
    crossfit_ppi_interval,
    mean_interval,
    paper_ppi_interval,
    ppi_interval,
    tuned_power,
)

ppi_py = pytest.importorskip("ppi_py", reason="ppi-python is the oracle")


def sample(seed, n=60, n_pool=400, noise=1.0):
    rng = np.random.default_rng(seed)
    truth = rng.gamma(2.0, 3.0, n + n_pool)
    judge = 1.3 * truth + 2 + rng.normal(0, noise, n + n_pool)
    return truth[:n], judge[:n], judge[n:]


@pytest.mark.parametrize("lam", [0.0, 0.37, 1.0, None])
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("noise", [0.1, 5.0, 60.0])
def test_equal_to_ppi_py(lam, seed, noise):
    y, yhat, pool = sample(seed, noise=noise)
    found = ppi_interval(y, yhat, pool, lam=lam, normal=True)
    lower, upper = ppi_py.ppi_mean_ci(y, yhat, pool, alpha=0.05, lam=lam)
    assert found.lower == pytest.approx(float(np.squeeze(lower)), abs=1e-9)
    assert found.upper == pytest.approx(float(np.squeeze(upper)), abs=1e-9)
    point = ppi_py.ppi_mean_pointestimate(y, yhat, pool, lam=lam)
    assert found.estimate == pytest.approx(float(np.squeeze(point)), abs=1e-9)


def test_constant_judge_has_power_zero_where_ppi_py_has_nan():
    y = np.array([1.0, 2.0, 4.0])
    assert tuned_power(y, np.full(3, 2.0), np.full(9, 2.0)) == 0.0
    found = ppi_interval(y, np.full(3, 2.0), np.full(9, 2.0), lam=None)
    assert found.estimate == pytest.approx(y.mean())


def test_paper_mode_is_equations_8_to_11():
    y, yhat, pool = sample(7, n=35)
    everything = np.concatenate([yhat, pool])
    n, total = len(y), len(everything)
    error = y - yhat
    estimate = everything.sum() / total + error.sum() / n  # Eq. 8
    variance_error = ((error - error.mean()) ** 2).sum() / (n - 1)
    variance_pred = ((everything - everything.mean()) ** 2).sum() / (total - 1)
    half = 1.96 * np.sqrt(variance_error / n + variance_pred / total)  # Eq. 11
    found = paper_ppi_interval(y, yhat, everything)
    assert found.estimate == pytest.approx(estimate, abs=1e-12)
    assert found.half_width == pytest.approx(half, rel=2e-5)  # 1.95996…, not 1.96
    assert found.n_unlabeled == len(pool)
    assert found == mean_interval(y, yhat, pool, method="ppi-paper")


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("population", lambda s, p, n, m: s / n + p / m),
        ("pool", lambda s, p, n, m: s * (1 / n - 1 / (n + m))),
        ("unlabeled", lambda s, p, n, m: s * (1 / n + 1 / m)),
    ],
)
def test_variance_by_target(target, expected):
    from rag_sourcebias.infer.means import t_quantile

    y, yhat, pool = sample(9)
    found = ppi_interval(y, yhat, pool, lam=0.6, target=target)
    spread = (y - 0.6 * yhat).var(ddof=1)
    variance = expected(spread, 0.36 * pool.var(ddof=1), len(y), len(pool))
    assert found.half_width == pytest.approx(t_quantile(0.975, len(y) - 1) * np.sqrt(variance))


def test_crossfit_is_its_definition():
    y, yhat, pool = sample(2, n=30)
    found = crossfit_ppi_interval(y, yhat, pool, rng=4)
    fold = np.random.default_rng(4).permutation(30) % 10
    spread = np.concatenate([yhat, pool]).var(ddof=1)
    powers = np.array(
        [
            np.cov(y[fold != k], yhat[fold != k])[0, 1] / ((1 + 30 / len(pool)) * spread)
            for k in range(10)
        ]
    )
    by_item = powers[fold]
    assert found.estimate == pytest.approx(np.mean(y - by_item * (yhat - pool.mean())))
    level, power = y - by_item * (yhat - pool.mean()), by_item.mean()
    variance = level.var(ddof=1) / 30 + power**2 * pool.var(ddof=1) / len(pool)
    assert found.half_width == pytest.approx(stats.t.ppf(0.975, 29) * np.sqrt(variance))


@pytest.mark.parametrize(
    ("n", "lam", "told"), [(39, None, True), (40, None, False), (39, 0.5, False)]
)
def test_a_power_tuned_on_few_labels_is_told(n, lam, told):
    y, yhat, pool = sample(3, n=n)
    assert (InferCode.POWER_FEW() in ppi_interval(y, yhat, pool, lam=lam).notes) == told


def test_methods_by_name_are_these():
    y, yhat, pool = sample(3)
    fixed = mean_interval(y, yhat, pool, method="ppi", lam=0.4)
    assert fixed == ppi_interval(y, yhat, pool, lam=0.4)
    tuned = mean_interval(y, yhat, pool, method="ppi++", lam=0.4)
    assert tuned == ppi_interval(y, yhat, pool, lam=None)
    assert fixed.estimate != tuned.estimate
    crossed = mean_interval(y, yhat, pool, method="ppi-crossfit", rng=3)
    assert crossed == crossfit_ppi_interval(y, yhat, pool, rng=3)


def test_refusals():
    y, yhat, pool = sample(1)
    with pytest.raises(InsufficientDataError, match="1 labelled item"):
        ppi_interval(y[:1], yhat[:1], pool)
    with pytest.raises(InsufficientDataError, match="0 judged item"):
        ppi_interval(y, yhat, [])
