"""Means and differences when most labels come from a judge: one function per question."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, NamedTuple, Unpack, get_args

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.data import Float32Array, FloatArray, IntArray
from rag_sourcebias.core.errors import (
    DataError,
    InsufficientDataError,
    as_generator,
    check_level,
    require_one_of,
)
from rag_sourcebias.core.finding import Finding, Interval
from rag_sourcebias.infer.findings import InferCode
from rag_sourcebias.infer.means import (
    beta_quantile,
    group_codes,
    t_around,
    t_quantile,
    wilson_ends,
)
from rag_sourcebias.infer.samples import (
    Design,
    JudgedSample,
    Target,
    bootstrap_interval,
    check_target,
    combine_judges,
    has_spread,
    judge_correlation,
    spread_values,
    t_interval,
)

# What a regression estimate would lose without each item or cluster.


CONSTANT = 1e-10  # spread relative to size below which a judge column is constant
_EXACT = 1e-12  # relative to the largest value
_ALONE = 1e-9  # 1 − leverage below which an item fixes its own fitted value


def _left_out_residuals(
    sample: JudgedSample, residuals: FloatArray, free: FloatArray, power: float
) -> FloatArray:
    """Return each item's residual from a fit without it; shape (n, k).

    It is divided by 1 − leverage (the jackknife; HC3), or by its root with ``power`` 0.5 (HC2 of
    MacKinnon & White 1985: unbiased where residuals vary alike).
    """
    alone = free < _ALONE
    left_out = residuals / (np.where(alone, 1.0, free) ** power)[:, None]
    if alone.any():
        # The item alone decides a direction of the fit, so its own residual is 0. Without it that
        # direction has no slope, and the mean of the other items is what would predict it.
        others = (sample.y.sum(axis=0) - sample.y[alone]) / max(sample.n_labeled - 1, 1)
        left_out[alone] = sample.y[alone] - others
    # What rounding leaves of a perfect fit is no residual.
    left_out[np.abs(left_out) <= _EXACT * np.abs(sample.y).max(initial=0.0)] = 0.0
    return left_out


# Regression on the judge: the estimator behind the default interval.
# Human values are regressed on judge values over the labelled items; the estimate is the mean of
# the fitted values over the target plus the mean residual (which ordinary least squares makes
# zero). The slope this learns is the optimal power of PPI++ (Angelopoulos et al. 2023), sign
# included. Its sampling error is read off residuals that are as large as without their item (HC2 of
# MacKinnon & White 1985) and for clusters off the delete-one jackknife (CR3), so that the
# error of the slope itself is counted; tuned PPI leaves it out and under-covers below about 40
# labels.


class RegressionFit(NamedTuple):
    """Estimates of k means and their covariance.

    Parameters
    ----------
    estimate : float64 array of shape (k,)
    covariance : float64 array of shape (k, k)
    degrees : float
        Degrees of freedom for a t quantile.
    skewness : float
        Of the first estimate.
    drawn : float
        Part of the variance of the first estimate that comes from drawing the judged items.
    residuals : float64 array of shape (n,)
        Of the labels of the first.
    """

    estimate: FloatArray
    covariance: FloatArray
    degrees: float
    skewness: float
    drawn: float
    residuals: FloatArray


def fit_regression(sample: JudgedSample, target: Target, *, leverage: float = 1.0) -> RegressionFit:
    """Estimate the mean human values of the target.

    Parameters
    ----------
    leverage : float
        Residuals of single items are divided by 1 − leverage to this power: 1 for HC3, 0.5 for
        HC2.

    Returns
    -------
    RegressionFit
        The variance of the estimated means is the jackknife variance of the labelled part, plus,
        for the population, the variance of the fitted values over the pool, divided by its size.
        For the pool the labelled part shrinks by 1 − n/(n + N); for the unlabelled items it grows
        by 1 + n/N.
    """
    # 1 and the centred, scaled judge columns, of both sets
    scale = sample.x.std(axis=0)
    size = np.maximum(np.abs(sample.x).max(axis=0, initial=0.0), np.finfo(float).tiny)
    scale = np.where(scale > CONSTANT * size, scale, 0.0)
    usable = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0)
    design, pool = (
        np.column_stack([np.ones(len(x)), (x - sample.x.mean(axis=0)) * usable])
        for x in (sample.x, sample.x_unlabeled)
    )
    gram = design.T @ design
    if sample.penalty is not None:  # of a column of spread 1
        gram += np.diag(np.append(0.0, sample.penalty / np.where(scale > 0, scale, 1.0) ** 2))
    values, vectors = np.linalg.eigh(gram)
    kept = values > CONSTANT * values[-1]
    inverse = (vectors[:, kept] / values[kept]) @ vectors[:, kept].T
    moments = design.T @ sample.y
    coefficients = inverse @ moments
    everything = pool
    if target != "unlabeled" or not len(pool):
        everything = np.concatenate([design, pool])
    towards = everything.mean(axis=0)
    estimate = towards @ coefficients
    residuals = sample.y - design @ coefficients
    if sample.cluster is None:
        free = 1 - np.einsum("ij,ij->i", design @ inverse, design)
        left_out = _left_out_residuals(sample, residuals, free, leverage)
        influence = (design @ (inverse @ towards))[:, None] * left_out
        # a slope under a penalty is a part of a parameter
        degrees = max(float(free.sum()), 1.0)
    else:
        order = np.argsort(sample.cluster, kind="stable")
        lost = []
        for inside in np.split(order, np.flatnonzero(np.diff(sample.cluster[order])) + 1):
            rows = design[inside]
            without = np.linalg.pinv(gram - rows.T @ rows, rcond=CONSTANT, hermitian=True)
            lost.append(estimate - towards @ without @ (moments - rows.T @ sample.y[inside]))
        influence = np.array(lost)
        degrees = float(max(sample.n_units - 1, 1))
    influence = influence * math.sqrt(sampling_reach(sample, target))
    covariance = influence.T @ influence
    drawn = np.zeros_like(covariance)
    if target == "population":
        drawn = _fitted_covariance(sample, everything @ coefficients)
    covariance += drawn
    return RegressionFit(
        estimate=estimate,
        covariance=covariance,
        degrees=degrees,
        skewness=_skewness(influence[:, 0], float(covariance[0, 0])),
        drawn=float(drawn[0, 0]),
        residuals=residuals[:, 0],
    )


def _skewness(influence: FloatArray, variance: float) -> float:
    """Skewness of the estimate from what each unit contributes to it; small-sample corrected."""
    n = len(influence)
    if n < 3 or variance <= 0:
        return 0.0
    third = ((influence - influence.mean()) ** 3).sum()
    return float(third / variance**1.5 * np.sqrt(n * (n - 1)) / (n - 2))


def sampling_reach(sample: JudgedSample, target: Target) -> float:
    """How sampling a finite target shrinks or stretches the variance of the labelled part."""
    n, pool = sample.n_labeled, sample.n_unlabeled
    if target == "pool":
        return pool / (n + pool)
    if target == "unlabeled" and pool:
        return 1 + n / pool
    return 1.0


def _fitted_covariance(sample: JudgedSample, fitted: FloatArray) -> FloatArray:
    """Covariance of the mean fitted value, from drawing the items out of their population."""
    size = len(fitted)
    if size < 2:
        return np.zeros((fitted.shape[1], fitted.shape[1]))
    centred = fitted - fitted.mean(axis=0)
    if sample.cluster is not None and sample.cluster_unlabeled is not None:
        codes = np.concatenate([sample.cluster, sample.cluster_unlabeled])
        centred = np.stack([np.bincount(codes, weights=column) for column in centred.T], axis=1)
        centred = centred[np.bincount(codes) > 0]
    units = len(centred)
    return np.asarray(centred.T @ centred / size**2 * (units / max(units - 1, 1)))


# Score intervals for means of bounded values, from a regression on the judge.


SCORE_ITEMS = 4.0  # two at each end of the range (Agresti & Coull 1998)
JUDGED_SCORE_ITEMS = 2.0  # one at each end, for a population mean with a judge


def score_form(
    sample: JudgedSample,
    fit: RegressionFit,
    target: Target,
    quantile: float,
    bounds: tuple[float, float],
) -> tuple[float, float, float]:
    """Wilson's interval on the number of items that would give this variance.

    Pseudo-items at both ends of the range enter the variance: labels that all agree, with the judge
    or with each other, do not make it zero.
    """
    low, high = bounds
    width = high - low
    share = min(max((float(fit.estimate[0]) - low) / width, 0.0), 1.0)
    n = _effective_units(sample)
    variance = max(float(fit.covariance[0, 0]), 0.0) / width**2
    judged = sample.x.shape[1] and target == "population"
    seen = JUDGED_SCORE_ITEMS if judged else SCORE_ITEMS
    if judged and sample.penalty is not None:  # the mean of several judges parts from people less
        seen /= 2
    pseudo = seen / 2 * ((1 - share) ** 2 + share**2)
    smoothed = (n * variance + sampling_reach(sample, target) * pseudo / n) / (n + seen)
    if smoothed <= 0:
        estimate = low + width * share
        return estimate, estimate, estimate
    pulled = (n * share + seen / 2) / (n + seen)
    lower, upper = wilson_ends(share, pulled * (1 - pulled) / smoothed, quantile)
    if target != "population":
        # What is left to estimate are the items where people and judge part: rare, and not pulled
        # towards the middle as Wilson's form pulls.
        half = quantile * smoothed**0.5
        lower, upper = min(lower, max(share - half, 0.0)), max(upper, min(share + half, 1.0))
    return low + width * share, low + width * lower, low + width * upper


def _effective_units(sample: JudgedSample) -> float:
    """Independent items that the labels are worth: between clusters and items.

    Items over the design effect of the labels (Kish 1965); labels that all agree tell none, and
    count as clusters.
    """
    n, y = sample.n_labeled, sample.y[:, 0]
    if sample.cluster is None or sample.n_units == 1 or not has_spread(y):
        return float(sample.n_units)
    if y.var() == 0:  # of values near the smallest there are
        return float(sample.n_units)
    apart = np.bincount(group_codes(sample.cluster), weights=y - y.mean())
    effect = (apart @ apart) * sample.n_units / (sample.n_units - 1) / (n * y.var())
    return float(np.clip(n / max(effect, 1e-9), sample.n_units, n))


# Which interval to draw around a regression estimate: score, or t.


_MOST_GRADES = 20  # values; means of three people's grades 1 to 5 have 13
_FAR = 0.5  # of the way from the mean to an end of the scale
_LONG_SKEW = 1.25  # of labels; of 15 to 50 normal ones in at most 2 draws of 100 so large
SAME_SCALE = 15.0  # ratio of ranges above which judge and people use different scales


class Form(NamedTuple):
    """The form of an interval.

    Parameters
    ----------
    bounds : tuple of float or None
        Range for a score interval; None for t.
    clip : tuple of float or None
        Range that a t interval is cut to.
    notes : tuple of Finding
        What the reader must know about the range.
    span : tuple of float or None
        Range of grades, of which a t interval may have seen too few.
    """

    bounds: tuple[float, float] | None
    clip: tuple[float, float] | None = None
    notes: tuple[Finding, ...] = ()
    span: tuple[float, float] | None = None


def choose_form(sample: JudgedSample, bounds: tuple[float, float] | None) -> Form:
    """Choose by what the labels look like, never by how wide an interval comes out.

    Raises
    ------
    DataError
        If a label is outside the bounds.
    """
    y = sample.y[:, 0]
    if bounds is None:
        if np.isin(y, (0.0, 1.0)).all():
            return Form((0.0, 1.0), (0.0, 1.0))
        # a few labels lie so far from the rest that others may lie further
        centred = y - y.mean()
        skewed = abs((centred**3).mean()) > _LONG_SKEW * (centred**2).mean() ** 1.5
        notes = (InferCode.LONG_TAIL(),) if has_spread(y) and skewed else ()
        return Form(None, notes=notes, span=_shared_scale(sample) if graded(y) else None)
    low, high = bounds
    if not low < high:
        raise DataError(f"bounds {bounds}: the first must be below the second")
    outside = np.flatnonzero((y < low) | (y > high))
    if len(outside):
        raise DataError(
            f"{len(outside)} human value(s) outside the scale [{low:g}, {high:g}], first "
            f"{y[outside[0]]:g} at position {outside[0]}"
        )
    score = bool(np.isin(y, bounds).all()) or not has_spread(y)
    return Form(bounds if score else None, bounds, span=bounds if graded(y) else None)


def graded(y: FloatArray) -> bool:
    """Whether labels are of few values, on average each twice or more."""
    return len(np.unique(y)) <= min(_MOST_GRADES, len(y) / 2)


def _shared_scale(sample: JudgedSample) -> tuple[float, float]:
    """Range of human values, and of a judge's who grades these items on their scale."""
    y, judge = sample.y[:, 0], sample.x[:, :1]
    low, high = float(y.min()), float(y.max())
    slack = (high - low) / 2
    if sample.x.shape[1] == 1 and low - slack <= judge.min() and judge.max() <= high + slack:
        others = np.concatenate([judge, sample.x_unlabeled])
        low, high = min(low, float(others.min())), max(high, float(others.max()))
    return low, high


_MOST_SKEW = 0.25  # of an estimate; more than a few labels can show


def draw_interval(
    sample: JudgedSample, fit: RegressionFit, target: Target, quantile: float, form: Form
) -> tuple[float, float, float]:
    """Return estimate, lower and upper end.

    A t interval is shifted by the skewness of the estimate (Johnson 1978).
    """
    if form.bounds is not None:
        return score_form(sample, fit, target, quantile, form.bounds)
    estimate = float(fit.estimate[0])
    error = math.sqrt(max(fit.covariance[0, 0], 0.0))
    shift = skew_shift(error, fit.skewness, quantile)
    lower, upper = estimate - error * quantile + shift, estimate + error * quantile + shift
    if form.span is not None:
        below, above = _far_errors(sample, fit, target, quantile, form.span)
        lower, upper = min(lower, estimate - below), max(upper, estimate + above)
    if form.clip is not None:
        lower, estimate, upper = (float(np.clip(v, *form.clip)) for v in (lower, estimate, upper))
    return estimate, min(lower, estimate), max(upper, estimate)


def skew_shift(error: float, skewness: float, quantile: float) -> float:
    """Return how far both ends of an interval move with the skewness of the estimate."""
    skewness = min(max(skewness, -_MOST_SKEW), _MOST_SKEW)
    return error * skewness * (2 * quantile**2 + 1) / 6


def _far_errors(
    sample: JudgedSample,
    fit: RegressionFit,
    target: Target,
    quantile: float,
    span: tuple[float, float],
) -> tuple[float, float]:
    """How far below and above the estimate its mean may lie for rare errors of the judge.

    Labels of a few grades may show few or none of those that a judge misses by far, and t knows
    none but those. Their share may be as large as Jeffreys' interval says, and each moves the mean
    by as much as the largest seen or, where none was, as the scale allows.
    """
    from scipy.special import stdtr

    probability, estimate = float(stdtr(fit.degrees, quantile)), float(fit.estimate[0])
    worth = _effective_units(sample)
    shrink, other = sampling_reach(sample, target) ** 0.5, quantile * max(fit.drawn, 0.0) ** 0.5
    reach = []
    for side, end in ((-1, span[0]), (1, span[1])):
        room = max(side * (end - estimate), 0.0)
        errors = side * fit.residuals
        share = (errors > _FAR * room).mean()
        size = min(room, float(errors.max())) if share else room
        most = 1.0
        if share < 1:
            most = beta_quantile(probability, share * worth + 0.5, worth - share * worth + 0.5)
        unseen = most - share
        reach.append(math.hypot(shrink * unseen * size, other))
    return reach[0], reach[1]


# What all forms of prediction-powered inference share.


def _require_two(human: FloatArray, pool: FloatArray) -> None:
    for name, size in (("labelled", len(human)), ("judged", len(pool))):
        if size < 2:
            raise InsufficientDataError(
                f"{size} {name} item(s): PPI needs at least 2", n=size, n_needed=2
            )


def ppi_result(
    estimate: float,
    variance: float,
    degrees: float,
    *,
    level: float,
    method: Finding,
    human: FloatArray,
    judge: FloatArray,
    n_pool: int,
    assumptions: tuple[InferCode, ...],
    target: str = "population",
    notes: tuple[Finding, ...] = (),
) -> Interval:
    """Build the interval around an estimate."""
    return t_around(
        estimate,
        math.sqrt(variance),
        degrees,
        level=level,
        method=method,
        target=target,
        n_labeled=len(human),
        n_unlabeled=n_pool,
        assumptions=tuple(code() for code in (InferCode.LABELS_SAMPLED, *assumptions)),
        correlation=judge_correlation(human, judge),
        notes=notes,
    )


# Prediction-powered inference for a mean: fixed, tuned and cross-fitted power, and [R]'s form.
# The default method of this library is the regression; these are offered by name, for comparison
# and where the power λ was fixed before seeing labels.


def ppi_interval(
    human: FloatArray,
    judge: FloatArray,
    pool: FloatArray,
    *,
    lam: float | None = 1.0,
    target: Target = "population",
    confidence_level: float = 0.95,
    normal: bool = False,
) -> Interval:
    """PPI interval with power ``lam``, fixed (PPI) or tuned on the same labels (PPI++).

    Parameters
    ----------
    human, judge : float64 arrays of shape (n,)
        Values of the labelled items.
    pool : float64 array of shape (N,)
        Judge values of other items.
    lam : float or None
        Weight of the judge; None tunes it in [0, 1] (Angelopoulos, Duchi & Zrnic 2023), which
        under-covers with few labels (.83–.89 at 10–20) because its own error is not counted.
    normal : bool
        Use 1.96-like quantiles and divide variances by n, as the package ``ppi_py`` does, rather
        than t(n − 1) and n − 1.

    Returns
    -------
    Interval
        Population: Var(y − λf)/n + λ²Var(f)/N. Pool: Var(y − λf)(1/n − 1/(n + N)).
        Unlabelled items: Var(y − λf)(1/n + 1/N).
    """
    _require_two(human, pool)
    tuned = lam is None
    power = tuned_power(human, judge, pool) if lam is None else float(lam)
    n, n_pool = len(human), len(pool)
    ddof = 0 if normal else 1
    residual = human - power * judge
    spread = float(residual.var(ddof=ddof))
    reference = np.concatenate([judge, pool]) if target == "pool" else pool
    estimate = power * float(reference.mean()) + float(residual.mean())
    if target == "population":
        variance = spread / n + power**2 * float(pool.var(ddof=ddof)) / n_pool
    elif target == "pool":
        variance = spread * (1 / n - 1 / (n + n_pool))
    else:
        variance = spread * (1 / n + 1 / n_pool)
    return ppi_result(
        estimate,
        variance,
        math.inf if normal else n - 1,
        level=confidence_level,
        method=InferCode.PPI_TUNED(power=power) if tuned else InferCode.PPI(power=power),
        target=target,
        human=human,
        judge=judge,
        n_pool=n_pool,
        assumptions=(
            InferCode.LABELS_APART,
            InferCode.POWER_AS_FIXED if tuned else InferCode.POWER_FIXED,
        ),
        notes=(InferCode.POWER_FEW(),) if tuned and n < 40 else (),
    )


def tuned_power(y: FloatArray, yhat: FloatArray, yhat_unlabeled: FloatArray) -> float:
    """Return λ minimising the estimated variance, in [0, 1]; 0 for a constant judge."""
    spread = float(np.concatenate([yhat, yhat_unlabeled]).var(ddof=1))
    if spread == 0.0:
        return 0.0
    together = float(((y - y.mean()) * (yhat - yhat.mean())).mean())
    return min(max(together / ((1 + len(y) / len(yhat_unlabeled)) * spread), 0.0), 1.0)


# Prediction-powered inference with a cross-fitted power.


_FOLDS = 10


def crossfit_ppi_interval(
    human: FloatArray,
    judge: FloatArray,
    pool: FloatArray,
    *,
    confidence_level: float = 0.95,
    rng: np.random.Generator | int = 0,
) -> Interval:
    """PPI for the population, with λ for each fold tuned on the other folds.

    The power is not clipped, so an inverted judge helps too. The residuals that give the variance
    were not used to choose the power they are formed with.

    Parameters
    ----------
    human, judge : float64 arrays of shape (n,)
        Values of the labelled items.
    pool : float64 array of shape (N,)
        Judge values of other items.
    """
    _require_two(human, pool)
    n, n_pool = len(human), len(pool)
    folds = min(_FOLDS, n)
    code = as_generator(rng).permutation(n) % folds
    spread = (1 + n / n_pool) * float(np.concatenate([judge, pool]).var(ddof=1))
    power = np.zeros(folds)
    for fold in range(folds if spread > 0 else 0):
        rest = code != fold
        apart = (human[rest] - human[rest].mean()) @ (judge[rest] - judge[rest].mean())
        power[fold] = apart / max(rest.sum() - 1, 1) / spread
    sizes = np.bincount(code, minlength=folds)
    residual = human - power[code] * judge
    weight = float((power * sizes).sum() / n)
    estimate = weight * float(pool.mean()) + float(residual.mean())
    # The residuals of different folds have different centres when λ differs; remove the shift.
    level = residual + (power[code] - weight) * float(pool.mean())
    variance = float(level.var(ddof=1)) / n + weight**2 * float(pool.var(ddof=1)) / n_pool
    return ppi_result(
        estimate,
        variance,
        n - 1,
        level=confidence_level,
        method=InferCode.PPI_CROSSFIT(power=weight),
        human=human,
        judge=judge,
        n_pool=n_pool,
        assumptions=(InferCode.LABELS_APART,),
    )


# Prediction-powered inference exactly as in Oosterhuis et al. (KDD 2024).


def paper_ppi_interval(
    human: FloatArray,
    judge: FloatArray,
    everything: FloatArray,
    *,
    confidence_level: float = 0.95,
) -> Interval:
    """PPI exactly as in [R] Eq. 8–11.

    Parameters
    ----------
    human, judge : float64 arrays of shape (n,)
    everything : float64 array of shape (N,)
        Judge values of all items, the labelled ones among them.

    Returns
    -------
    Interval
        Mean prediction over N plus mean error over n, ± 1.96 √(σ²_err/n + σ²_pred/N). As the
        labelled items are among the N, the formula leaves out a covariance.
    """
    _require_two(human, everything)
    error = human - judge
    variance = error.var(ddof=1) / len(error) + everything.var(ddof=1) / len(everything)
    return ppi_result(
        float(everything.mean() + error.mean()),
        float(variance),
        math.inf,
        level=confidence_level,
        method=InferCode.PPI_PAPER(),
        human=human,
        judge=judge,
        n_pool=len(everything) - len(human),
        assumptions=(InferCode.OVERLAP_IGNORED,),
    )


# The default method, and labels alone, for one mean.


MIN_LABELED = 10  # below, no method with a judge covers and beats labels alone
MIN_CLUSTERS = 5


def default_interval(
    sample: JudgedSample,
    method: str,
    target: Target,
    level: float,
    bounds: tuple[float, float] | None,
) -> Interval:
    """Regression on the judge or, with no judge columns, labels alone."""
    human, judge = sample.y[:, 0], sample.x[:, 0]
    n = sample.n_labeled
    form = choose_form(sample, bounds)
    _check_enough(sample, form.bounds, given=bounds)
    correlation = judge_correlation(human, judge)
    doubt = None if method == "labels" else _doubt(sample, correlation)
    notes = form.notes if doubt is None else (doubt(), *form.notes)
    alone = method == "labels" or doubt in {InferCode.JUDGE_FEW, InferCode.JUDGE_CONSTANT}
    if alone:
        sample = replace(
            sample, x=sample.x[:, :0], x_unlabeled=sample.x_unlabeled[:, :0], penalty=None
        )
    few = method == "labels" or n < MIN_LABELED
    if few and sample.cluster is None and form.bounds is None and form.clip is None:
        found = t_interval(human, confidence_level=level)
        half = found.half_width * math.sqrt(sampling_reach(sample, target))
        return replace(
            found,
            lower=found.estimate - half,
            upper=found.estimate + half,
            n_unlabeled=sample.n_unlabeled,
            correlation=correlation,
            notes=notes,
            target=target,
        )
    code = InferCode.LABELS if alone else InferCode.REGRESSION
    if form.bounds is not None:
        code = InferCode.LABELS_SCORE if alone else InferCode.REGRESSION_SCORE
    estimate, lower, upper = _ends(sample, target, level, form)
    if target == "pool":  # these items are less uncertain than the population they came from
        _, low, high = _ends(sample, "population", level, form)
        lower, upper = max(lower, low), min(upper, high)
    return Interval(
        estimate=estimate,
        lower=lower,
        upper=upper,
        confidence_level=level,
        method=code(),
        target=target,
        n_labeled=n,
        n_unlabeled=sample.n_unlabeled,
        assumptions=assumptions_of(sample),
        correlation=correlation,
        notes=notes,
    )


def _ends(
    sample: JudgedSample, target: Target, level: float, form: Form
) -> tuple[float, float, float]:
    """Return estimate, lower and upper end."""
    fit = fit_regression(sample, target, leverage=0.5)
    return draw_interval(sample, fit, target, t_quantile(0.5 + level / 2, fit.degrees), form)


def _check_enough(
    sample: JudgedSample, bounds: tuple[float, float] | None, *, given: tuple[float, float] | None
) -> None:
    y = sample.y[:, 0]
    if sample.n_labeled < 2:
        raise InsufficientDataError(
            f"{sample.n_labeled} human label(s): an interval needs at least 2 and the judge helps "
            f"from {MIN_LABELED} on",
            n=sample.n_labeled,
            n_needed=MIN_LABELED,
        )
    if sample.cluster is not None and sample.n_units < MIN_CLUSTERS:
        raise InsufficientDataError(
            f"{sample.n_units} labelled cluster(s): an interval needs at least {MIN_CLUSTERS}",
            n=sample.n_units,
            n_needed=MIN_CLUSTERS,
        )
    if bounds is None:
        spread_values(y)  # raises, with the remedy
    if given is None and len(y) < MIN_LABELED and not np.isin(y, (0.0, 1.0)).all():
        raise InsufficientDataError(
            f"{len(y)} human labels on an unknown scale: the range of so few is shorter "
            "than the scale; give the range of the values as bounds=(low, high), or label "
            f"{MIN_LABELED}",
            n=sample.n_labeled,
            n_needed=MIN_LABELED,
        )


def _doubt(sample: JudgedSample, correlation: float) -> InferCode | None:
    """Return why labels alone must be used, or that the judge is of no use."""
    units = sample.n_units
    if units < MIN_LABELED:
        return InferCode.JUDGE_FEW
    if not any(has_spread(column) for column in sample.x.T):
        return InferCode.JUDGE_CONSTANT
    return InferCode.JUDGE_WEAK if abs(correlation) <= 1 / math.sqrt(units - 2) else None


def assumptions_of(sample: JudgedSample) -> tuple[Finding, ...]:
    """What must hold for an interval from this sample."""
    alone = sample.cluster is None
    independent = InferCode.ITEMS_INDEPENDENT if alone else InferCode.CLUSTERS_INDEPENDENT
    return InferCode.LABELS_SAMPLED(), independent(), InferCode.JUDGE_CONSISTENT()


# One function for the mean of human values: the default method and the others by name.


Method = Literal["regression", "labels", "ppi", "ppi++", "ppi-crossfit", "ppi-paper", "bootstrap"]


def mean_interval(
    y: npt.ArrayLike,
    yhat: npt.ArrayLike,
    yhat_unlabeled: npt.ArrayLike,
    *,
    method: Method = "regression",
    target: Target = "population",
    confidence_level: float = 0.95,
    bounds: tuple[float, float] | None = None,
    lam: float = 1.0,
    rng: np.random.Generator | int = 0,
    **design: Unpack[Design],
) -> Interval:
    """Interval for the mean human value, from a few human and many judge values.

    Parameters
    ----------
    y, yhat : array-like of shape (n,)
        Human and judge values of the labelled items, in the same order and any units.
    yhat_unlabeled : array-like of shape (N,)
        Judge values of the other items. Both of shape (n, p) and (N, p) for several judges, NaN
        where one failed: their mean counts, from 21 labels on also what they say beyond it
        (:func:`~rag_sourcebias.infer.samples.combine_judges`).
    method : str
        ``"regression"`` (default): regression on the judge, variance from left-out residuals
        (HC2), t(n − 2), shifted for skewness (Johnson 1978). Below 10 labels it returns labels
        alone and says so.
        ``"labels"``: human labels alone (t). ``"ppi"``: fixed power ``lam``. ``"ppi++"``: tuned
        power. ``"ppi-crossfit"``. ``"ppi-paper"``: Eq. 8–11 of Oosterhuis et al. (KDD 2024).
        ``"bootstrap"``: their baseline, percentiles of the labels alone.
    target : {"population", "pool", "unlabeled"}
        The mean over the population the items were drawn from, over these n + N items, or over
        the N unlabelled ones.
    bounds : tuple of float, optional
        Range of the human values; the interval stays within it. Where every human value is 0 or 1,
        or at an end of the range, the interval is a score interval on the effective number of
        items, which stays honest near the ends of the range and when all labels agree. Of grades it
        reaches as far as errors of the judge that few labels or none showed may move the mean.
        Grades without bounds are taken to lie in the range that labels and a judge on their scale
        show.
    rng : numpy.random.Generator or int
        For ``"ppi-crossfit"`` and ``"bootstrap"``.
    **design
        How the labelled items were drawn; nothing means at random, one by one. ``clusters``,
        ``clusters_unlabeled``: labels of length n and N of items that
        belong together, such as answers to one question; drawn as a whole.

    Raises
    ------
    InsufficientDataError
        With fewer than 2 labels or 5 labelled clusters, when all human values
        are equal and no bounds are known, or with fewer than 10 that are not all 0 or 1 and
        without bounds.
    DataError
        If values are missing or not finite, or options do not go together.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> truth = rng.normal(5, 2, 1050)
    >>> judge = truth + rng.normal(1, 1, 1050)
    >>> print(mean_interval(truth[:50], judge[:50], judge[50:]))
    4.985 [4.725, 5.246] (95%, regression on the judge, n = 50 + 1000 unlabelled, judge r = 0.89)
    """
    check_level(confidence_level)
    check_target(target)
    require_one_of("method", method, get_args(Method))
    sample = _combined(y, yhat, yhat_unlabeled, design)
    if method in ("regression", "labels"):
        return default_interval(sample, method, target, confidence_level, bounds)
    extra = [name for name, value in design.items() if value is not None]
    if extra or bounds is not None:
        raise DataError(
            f"method {method!r} does not take {', '.join(extra) or 'bounds'}; use 'regression'"
        )
    human, judge, pool = sample.y[:, 0], sample.x[:, 0], sample.x_unlabeled[:, 0]
    if method in ("ppi", "ppi++"):
        power = lam if method == "ppi" else None
        return ppi_interval(
            human, judge, pool, lam=power, target=target, confidence_level=confidence_level
        )
    if target != "population":
        raise DataError(f"method {method!r} is defined for target 'population', not {target!r}")
    if method == "ppi-crossfit":
        return crossfit_ppi_interval(human, judge, pool, confidence_level=confidence_level, rng=rng)
    if method == "ppi-paper":
        return paper_ppi_interval(
            human, judge, np.concatenate([judge, pool]), confidence_level=confidence_level
        )
    found = bootstrap_interval(human, confidence_level=confidence_level, rng=rng)
    return replace(found, n_unlabeled=len(pool))


def _combined(
    y: npt.ArrayLike, yhat: npt.ArrayLike, yhat_unlabeled: npt.ArrayLike, design: Design
) -> JudgedSample:
    """Check and code a sample; of several judges their mean and what they know beyond it."""
    if np.ndim(yhat) < 2 or np.shape(yhat)[1] < 2 or np.shape(yhat)[0] != np.size(y):
        return JudgedSample.build(y, yhat, yhat_unlabeled, **design)
    first, other = (np.asarray(v, dtype=np.float64) for v in (yhat, yhat_unlabeled))
    if other.size and other.shape[1:] != first.shape[1:]:
        raise DataError(f"yhat has {first.shape[1]} columns, yhat_unlabeled shape {other.shape}")
    n = len(first)
    judges = np.concatenate([first, other.reshape(-1, first.shape[1])])
    if np.isinf(judges).any():
        raise DataError("a judge value is infinite; use NaN where a judge failed")
    silent = np.flatnonzero(np.isnan(judges).all(axis=0))
    if len(silent):
        raise DataError(f"judge column {silent[0]} (counted from 0) has no value; leave it out")
    clusters = design.get("clusters")
    x, penalty = combine_judges(judges, n, n if clusters is None else len(np.unique(clusters)))
    return replace(JudgedSample.build(y, x[:n], x[n:], **design), penalty=penalty)


# Comparisons from judged values: two systems, win rates, Relative Δ.
# The judge is corrected for each system or source by its own human labels. Judges over-rate LLM
# text and LLM rankers, so one correction for all would hide exactly what is compared.


PSEUDO_ITEMS = 1.0  # half at each end of what a difference can be
UNSEEN_ITEMS = 2.0  # of n labels that show no departure, up to 2.8 in n may depart: 2 with t


def difference_interval(
    y: npt.ArrayLike,
    yhat: npt.ArrayLike,
    yhat_unlabeled: npt.ArrayLike,
    *,
    target: Target = "population",
    confidence_level: float = 0.95,
    bounds: tuple[float, float] | None = None,
    **design: Unpack[Design],
) -> Interval:
    """Interval for the mean difference of two systems on the same items (first minus second).

    Parameters
    ----------
    y, yhat : array-like of shape (n, 2)
        Human and judge values of the labelled items, one column per system.
    yhat_unlabeled : array-like of shape (N, 2)
    bounds : tuple of float, optional
        Range of the human values; without it, what they and a judge on their scale show.
    **design
        As for :func:`~rag_sourcebias.mean_interval`.

    Returns
    -------
    Interval
        The human difference is regressed on the judge's, so that each system has its own
        correction; of values 0 or 1 a judge no better than none (r at most 1/√(n − 2)) is left out.
        Two pseudo-items enter the variance where labels may have missed rare departures: where
        values are 0 or 1, or two differences of three are equal, or the judge is right about most.
        An end that excludes 0, of values that repeat, needs less: as much as one pseudo-item alone,
        and with n labels 1 − 10/n of one. No width is 0 while an item is unlabelled.
        ``correlation`` is that of the differences.

    Raises
    ------
    InsufficientDataError
        With fewer than 10 labelled items, or where all differences are equal and the scale of the
        values is not known.
    """
    sample = two_columns(y, yhat, yhat_unlabeled, design)
    check_target(target)
    columns = {name: getattr(sample, name) for name in ("y", "x", "x_unlabeled")}
    # first minus second
    gaps = replace(sample, **{name: np.diff(both[:, ::-1]) for name, both in columns.items()})
    correlation = judge_correlation(gaps.y[:, 0], gaps.x[:, 0])
    if two_ends(sample.y, bounds) and _doubt(gaps, correlation):
        # its slope would cost more than it tells
        gaps = replace(gaps, x=gaps.x[:, :0], x_unlabeled=gaps.x_unlabeled[:, :0])
    estimate, lower, upper = _ends_of_difference(sample, gaps, target, confidence_level, bounds)
    if target == "pool":  # as for means
        _, low, high = _ends_of_difference(sample, gaps, "population", confidence_level, bounds)
        lower, upper = max(lower, low), min(upper, high)
    if scale := bounds or two_ends(sample.y, bounds):
        most = scale[1] - scale[0]
        estimate, lower, upper = (float(np.clip(v, -most, most)) for v in (estimate, lower, upper))
    method = InferCode.REGRESSION() if gaps.x.size else InferCode.LABELS()
    return Interval(
        estimate=estimate,
        lower=lower,
        upper=upper,
        confidence_level=confidence_level,
        method=InferCode.DIFFERENCE(method=method),
        target=target,
        n_labeled=sample.n_labeled,
        n_unlabeled=sample.n_unlabeled,
        assumptions=assumptions_of(sample),
        correlation=correlation,
    )


def _ends_of_difference(
    sample: JudgedSample,
    gaps: JudgedSample,
    target: Target,
    level: float,
    bounds: tuple[float, float] | None,
) -> tuple[float, float, float]:
    """Return estimate, lower and upper end.

    Whether systems differ is decided with HC2, and few pseudo-items: with more, differences are
    found too rarely. Nothing is gained by an end that claims nothing, so that it is drawn with two
    and, but for two values, HC3 and the correction for skewness that means have.
    """
    fit = fit_regression(gaps, target, leverage=0.5)
    errors = gaps.y - gaps.x.sum(axis=1, keepdims=True)
    reach = reach_of_differences(sample, gaps.y, (errors, fit.residuals[:, None]), bounds)
    found, unseen = float(reach.found[0]), float(reach.unseen[0])
    n, stretch = float(gaps.n_units), sampling_reach(gaps, target) / gaps.n_units

    def seen(variance: float, items: float, size: float) -> float:
        """Average in so many pseudo-items of this difference."""
        if not size:
            return variance
        return (n * variance + items * size**2 * stretch) / (n + items)

    estimate, variance = float(fit.estimate[0]), max(float(fit.covariance[0, 0]), 0.0)
    quantile = t_quantile(0.5 + level / 2, fit.degrees)
    least = max(
        seen(variance, max(1 - MIN_LABELED / n, 0.0), found), seen(0.0, PSEUDO_ITEMS, found)
    )
    if not reach.two_values:
        fit = fit_regression(gaps, target)
        variance = max(float(fit.covariance[0, 0]), 0.0)
    careful = max(seen(variance, UNSEEN_ITEMS, unseen), least)
    half, shift = quantile * math.sqrt(careful), 0.0
    if not reach.two_values and careful:
        skewness = fit.skewness * (variance / careful) ** 1.5
        shift = skew_shift(math.sqrt(careful), skewness, quantile)
    lower, upper = estimate - half + min(shift, 0.0), estimate + half + max(shift, 0.0)
    half = quantile * math.sqrt(least)
    if reach.few_values and estimate - half > 0:
        lower = estimate - half
    if reach.few_values and estimate + half < 0:
        upper = estimate + half
    return estimate, lower, upper


class Reach(NamedTuple):
    """How far items may part of which labels show none, for each of p differences.

    Parameters
    ----------
    found, unseen : float64 array of shape (p,)
        Size of the difference of a pseudo-item, for an end that excludes 0 and for others; 0 where
        labels show what there is.
    two_values, few_values : bool
        Whether human values are at two ends; or so few that they repeat.
    """

    found: FloatArray
    unseen: FloatArray
    two_values: bool
    few_values: bool


def reach_of_differences(
    sample: JudgedSample,
    gaps: FloatArray,
    errors: Sequence[FloatArray],
    bounds: tuple[float, float] | None,
) -> Reach:
    """Look at what labels show: values at two ends, equal differences, a judge who is right.

    Parameters
    ----------
    sample : JudgedSample
        One column per system.
    gaps : float64 array of shape (n, p)
        Differences of human values.
    errors : sequence of float64 array of shape (n, p)
        What the judge does not see of them, in one or more ways.

    Raises
    ------
    InsufficientDataError
        If all differences are equal and the scale of the values is not known.
    """
    two = two_ends(sample.y, bounds)
    if two:
        full = np.full(gaps.shape[1], two[1] - two[0])
        return Reach(full, full, True, True)
    low, high = bounds or _shown_range(sample)
    size = 1e-9 * max(abs(low), abs(high))
    if bounds is None and np.ptp(gaps) <= size:
        raise InsufficientDataError(
            f"the systems differ by {gaps[0, 0]:g} on each of the {len(gaps)} labelled items; the "
            "spread of their difference cannot be estimated from these labels: label more, or give "
            "the range of the values",
            n=len(gaps),
        )
    few, half = graded(sample.y.ravel()), (high - low) / 2
    found = unseen = np.where(_equal(gaps, size)[0] >= 2 / 3, half, 0.0)
    steps = np.diff(np.unique(sample.y))
    step = steps[steps > 1e-6 * half].min(initial=half) if few else half
    for error in errors:
        equal, worst = _equal(error, size)
        right = equal > 1 / 2
        found = np.where(right, np.maximum(found, step), found)
        unseen = np.where(right, np.maximum(half, worst), unseen)
    return Reach(found, unseen, False, few)


def _shown_range(sample: JudgedSample) -> tuple[float, float]:
    """Return the range of human values and, where it can be of their scale, of the judge's."""
    low, high = float(sample.y.min()), float(sample.y.max())
    spread, judge = high - low, np.concatenate([sample.x, sample.x_unlabeled])
    least, most = float(judge.min()), float(judge.max())
    wide = (
        min(low, least) if most <= high + spread else low,
        max(high, most) if least >= low - spread else high,
    )
    return wide if wide[1] - wide[0] <= SAME_SCALE * spread else (low, high)


def two_ends(human: FloatArray, bounds: tuple[float, float] | None) -> tuple[float, float] | None:
    """Return the ends of the scale where all human values are at one of them."""
    ends = bounds or (0.0, 1.0)
    return ends if np.isin(human, ends).all() else None


def _equal(values: FloatArray, rounding: float) -> tuple[FloatArray, FloatArray]:
    """Share of each column that equals its middle value, and how far the rest is from that."""
    apart = np.abs(values - np.sort(values, axis=0)[len(values) // 2])
    return (apart <= rounding).mean(axis=0), apart.max(axis=0)


def unpaired_difference_interval(first: Interval, second: Interval, *, family: int = 1) -> Interval:
    """Interval for the difference of two independent estimates (first minus second).

    For systems judged on different items. Degrees of freedom after Welch and Satterthwaite; of a
    ``family`` of differences all hold at once (Bonferroni).
    """
    level = first.confidence_level
    degrees = [float(max(interval.n_labeled - 2, 1)) for interval in (first, second)]
    errors = [
        interval.half_width / t_quantile(0.5 + level / 2, free)
        for interval, free in zip((first, second), degrees, strict=True)
    ]
    variance = errors[0] ** 2 + errors[1] ** 2
    spread = sum(e**4 / d for e, d in zip(errors, degrees, strict=True))
    free = variance**2 / spread if spread > 0 else min(degrees)
    half = t_quantile(1 - (0.5 - level / 2) / family, free) * math.sqrt(variance)
    estimate = first.estimate - second.estimate
    return Interval(
        estimate=estimate,
        lower=estimate - half,
        upper=estimate + half,
        confidence_level=level,
        method=InferCode.UNPAIRED(method=first.method),
        target=first.target,
        n_labeled=first.n_labeled + second.n_labeled,
        n_unlabeled=first.n_unlabeled + second.n_unlabeled,
        assumptions=(*first.assumptions, InferCode.SETS_INDEPENDENT()),
    )


def two_columns(
    y: npt.ArrayLike, yhat: npt.ArrayLike, yhat_unlabeled: npt.ArrayLike, design: Design
) -> JudgedSample:
    """Check and code a sample with one column per system or source."""
    sample = JudgedSample.build(y, yhat, yhat_unlabeled, **design)
    if sample.n_units < MIN_LABELED:
        raise InsufficientDataError(
            f"{sample.n_units} labelled item(s): a comparison needs at least {MIN_LABELED}",
            n=sample.n_units,
            n_needed=MIN_LABELED,
        )
    return sample


# Relative Δ between two sources when most labels come from a judge.


_ROUNDING = 1e-9  # of a double root, where nothing of the two means is uncertain


def judged_relative_delta_interval(
    y: npt.ArrayLike,
    yhat: npt.ArrayLike,
    yhat_unlabeled: npt.ArrayLike,
    *,
    target: Target = "population",
    confidence_level: float = 0.95,
    **design: Unpack[Design],
) -> Interval:
    """Interval for Relative Δ between two sources when most labels come from a judge.

    Parameters
    ----------
    y, yhat : array-like of shape (n, 2)
        Per-query scores of the two sources (baseline first) from human and from judge labels.
    yhat_unlabeled : array-like of shape (N, 2)

    Returns
    -------
    Interval
        In percent, within [−200, 200]. Fieller's set for the ratio of the two regression
        estimates, mapped to Relative Δ; its hull where it is not an interval.

    Raises
    ------
    InsufficientDataError
        With fewer than 10 labelled queries, or no human-judged relevant document at all.
    """
    sample = two_columns(y, yhat, yhat_unlabeled, design)
    check_target(target)
    if not sample.y.any():
        raise InsufficientDataError(
            f"all {sample.n_labeled} labelled queries score 0 for both sources; label more queries",
            n=sample.n_labeled,
        )
    estimate, lower, upper = _fieller(fit_regression(sample, target), confidence_level)
    human, judge = (values[:, 0] - values[:, 1] for values in (sample.y, sample.x))
    return Interval(
        estimate=estimate,
        lower=lower,
        upper=upper,
        confidence_level=confidence_level,
        method=InferCode.JUDGED_DELTA(),
        target=target,
        n_labeled=sample.n_labeled,
        n_unlabeled=sample.n_unlabeled,
        assumptions=assumptions_of(sample),
        correlation=judge_correlation(human, judge),
    )


def _fieller(fit: RegressionFit, level: float) -> tuple[float, float, float]:
    """Return Relative Δ and the ends of Fieller's set for the ratio of difference and sum.

    With D and S the difference and the sum of the two means, it holds the x = D/S, half of Relative
    Δ, with (D − xS)² ≤ q²·Var(D − xS); of a set in two parts the one around the estimate.
    """
    first, second = np.maximum(fit.estimate, 0.0).tolist()
    if first + second == 0:
        raise InsufficientDataError(
            "both means are estimated at 0 or below; label more queries before comparing sources"
        )
    gap, total = first - second, first + second
    (own, together), (_, other) = fit.covariance.tolist()
    square = t_quantile(0.5 + level / 2, fit.degrees) ** 2
    roots = np.roots([
        total**2 - square * (own + other + 2 * together),
        -2 * (gap * total - square * (own - other)),
        gap**2 - square * (own + other - 2 * together),
    ])  # fmt: skip
    ends = roots.real[np.abs(roots.imag) <= _ROUNDING]
    ends = ends[np.abs(ends) <= 1 + _ROUNDING]
    estimate = gap / total
    lower = float(ends[ends <= estimate].max(initial=-1.0))
    upper = float(ends[ends >= estimate].min(initial=1.0))
    return 200 * estimate, 200 * lower, 200 * upper


# Several systems on the same items at once: simultaneous differences, ranks, and who is best.


MAX_PAIRS_OF_FEW = 36  # all pairs of 9 systems: more are compared from 30 labels on only
MIN_LABELED_OF_MANY = 30
_RESAMPLES_AT_ONCE = 64  # so that what is held of them fits a processor's cache
_FEWEST_SHRUNK = 4  # systems whose spread can be told from chance
_MOST_LEVERAGE = 0.9  # an item that decides the slope alone is not blown up without limit


class SystemComparison(NamedTuple):
    """What human labels of some items and a judge's of all say of m systems.

    Parameters
    ----------
    score : float64 array of shape (m,)
        Estimated mean of each system, from which they are ranked: what a system differs in from
        what the judge predicts is shrunk towards 0 as far as chance explains it.
    first, second : int64 arrays of shape (p,)
        The systems compared.
    difference, lower, upper : float64 arrays of shape (p,)
        First minus second; all p intervals hold at once, with the confidence level.
    best, worst : int64 arrays of shape (m,)
        Lowest and highest rank that the differences leave each system, 1 being the best. All m
        hold at once. Without all pairs, 1 and m.
    tau : tuple of float
        Kendall's τ between the judge's means and the corrected ones, before scores are shrunk; and
        the lowest and highest value that the differences leave it.
    quantile : float
        Standard errors to each side.
    n_labeled, n_unlabeled : int
    """

    score: FloatArray
    first: IntArray
    second: IntArray
    difference: FloatArray
    lower: FloatArray
    upper: FloatArray
    best: IntArray
    worst: IntArray
    tau: tuple[float, float, float]
    quantile: float
    n_labeled: int
    n_unlabeled: int


def compare_systems(
    y: npt.ArrayLike,
    yhat: npt.ArrayLike,
    yhat_unlabeled: npt.ArrayLike,
    *,
    baseline: int | None = None,
    target: Target = "population",
    confidence_level: float = 0.95,
    bounds: tuple[float, float] | None = None,
    n_resamples: int = 10_000,
    rng: np.random.Generator | int = 0,
) -> SystemComparison:
    """Compare systems on items they share, with intervals that hold all at once.

    Parameters
    ----------
    y, yhat : array-like of shape (n, m)
        Human and judge values of the labelled items, one column per system.
    yhat_unlabeled : array-like of shape (N, m)
    baseline : int, optional
        Column that every other one is compared with; all pairs without it.
    bounds : tuple of float, optional
        Range of the human values.
    n_resamples : int
        Joint resamples of the items.

    Returns
    -------
    SystemComparison
        What people see between systems is regressed on what the judge sees between them, with one
        slope for all; each system keeps its own offset. The differences are widened by the larger
        of two quantiles of the largest |t| over all of them: of a joint bootstrap of the labelled
        items, studentised (Romano & Wolf 2005), and of the multivariate t. A pseudo-item
        enters each variance where values are 0 or 1, and two where labels may have missed rare
        departures, as for :func:`difference_interval`.

    Raises
    ------
    InsufficientDataError
        With fewer than 10 labelled items; with more than 36 comparisons (all pairs of 9 systems)
        below 30: of that many, some would be wrong too often.
    """
    sample = JudgedSample.build(y, yhat, yhat_unlabeled)
    check_target(target)
    first, second = _pairs(sample, baseline)
    fit = _fit(sample, target)
    human, judge, residual = (
        values[:, first] - values[:, second] for values in (sample.y, sample.x, fit.residual)
    )
    reach = reach_of_differences(sample, human, (human - judge, residual), bounds)
    n = float(sample.n_labeled)
    among = fit.influence[:, first] - fit.influence[:, second]
    variance = np.einsum("ij,ij->j", among, among) + _of_pairs(fit.pool, first, second)
    items = PSEUDO_ITEMS if reach.two_values else UNSEEN_ITEMS
    weight = np.where(reach.found > 0, items, 0.0)
    unseen = weight * reach.found**2 * sampling_reach(sample, target) / n
    error = np.sqrt((n * variance + unseen) / (n + weight))
    quantile = _largest(
        fit,
        first,
        second,
        weight=weight / n,
        unseen=unseen / n,
        error=error,
        level=confidence_level,
        n_resamples=n_resamples,
        rng=as_generator(rng),
    )
    gap = fit.estimate[first] - fit.estimate[second]
    centre = gap * n / (n + weight) if reach.two_values else gap
    lower = np.minimum(centre - quantile * error, gap)
    upper = np.maximum(centre + quantile * error, gap)
    if scale := bounds or two_ends(sample.y, bounds):
        most = scale[1] - scale[0]
        gap, lower, upper = (np.clip(values, -most, most) for values in (gap, lower, upper))
    best, worst = _ranks(first, second, lower, upper, sample.y.shape[1], all_pairs=baseline is None)
    judge = np.concatenate([sample.x, sample.x_unlabeled]).mean(axis=0)
    # Kendall's τ with the corrected means, and what the differences leave it; scores are drawn
    # towards the judge, and agree with it by construction
    says = np.sign(judge[first] - judge[second])
    now = float((says * np.sign(gap)).mean())
    known = np.where(lower > 0, 1, np.where(upper < 0, -1, 0))
    certain, left = float((says * known).mean()), float((np.abs(says) * (known == 0)).mean())
    return SystemComparison(
        score=_shrunk(sample, fit, judge),
        first=first,
        second=second,
        difference=gap,
        lower=lower,
        upper=upper,
        best=best,
        worst=worst,
        tau=(now, min(certain - left, now), max(certain + left, now)),
        quantile=quantile,
        n_labeled=sample.n_labeled,
        n_unlabeled=sample.n_unlabeled,
    )


def _pairs(sample: JudgedSample, baseline: int | None) -> tuple[IntArray, IntArray]:
    """Return the columns compared, or say why they cannot be."""
    n, m = sample.y.shape
    if baseline is None:
        first, second = np.triu_indices(m, 1)
    else:
        first = np.delete(np.arange(m), baseline)
        second = np.full(m - 1, baseline)
    needed = labels_for(len(first))
    if n < needed:
        more = "; compare 9 or fewer, or each with one baseline" if needed > MIN_LABELED else ""
        raise InsufficientDataError(
            f"{n} labelled item(s): {len(first)} comparisons of {m} systems at once need at least "
            f"{needed}{more}",
            n=n,
            n_needed=needed,
        )
    return first.astype(np.int64), second.astype(np.int64)


def labels_for(n_pairs: int) -> int:
    """Return the labelled items from which so many differences can be compared at once."""
    return MIN_LABELED_OF_MANY if n_pairs > MAX_PAIRS_OF_FEW else MIN_LABELED


class _Fit(NamedTuple):
    """Estimates of m systems, and what each labelled item and the pool contribute to their error.

    Parameters
    ----------
    estimate : float64 array of shape (m,)
    influence : float64 array of shape (n, m)
        What each labelled item contributes to the error.
    residual : float64 array of shape (n, m)
        … and what of it the judge does not see.
    pool : float64 array of shape (m, m)
        Covariance from drawing the other items out of their population.
    offset : float64 array of shape (m,)
        Mean human value less what the judge predicts, over the labelled items.
    """

    estimate: FloatArray
    influence: FloatArray
    residual: FloatArray
    pool: FloatArray
    offset: FloatArray


def _fit(sample: JudgedSample, target: Target) -> _Fit:
    """Regress what people see between systems on what the judge sees, with one slope.

    The slope is that of least squares after the means of items and systems are taken out. An item
    is a cluster of m values: its residuals are divided by the root of 1 − leverage (HC2).
    """
    n, m = sample.y.shape
    everything = np.concatenate([sample.x, sample.x_unlabeled])
    means = [values.mean(axis=0) for values in (sample.y, sample.x)]
    centred = sample.y - means[0], sample.x - means[1]
    y, x = (values - values.mean(axis=1, keepdims=True) for values in centred)
    power = float((x * x).sum())
    size = np.abs(everything).max(initial=0.0)
    slope = float((x * y).sum()) / power if power > (1e-10 * max(size, 1e-300)) ** 2 else 0.0
    shift = (everything if target != "unlabeled" else sample.x_unlabeled).mean(axis=0) - means[1]
    leverage = np.full(n, 1 / n)
    if slope:
        leverage += (x * x).sum(axis=1) / power
    residual = (y - slope * x) / np.sqrt(1 - np.minimum(leverage, _MOST_LEVERAGE))[:, None]
    along = (x * residual).sum(axis=1) / power if slope else np.zeros(n)
    unseen = residual / n + along[:, None] * (shift - shift.mean())
    unseen = unseen * math.sqrt(sampling_reach(sample, target))
    influence, pool = unseen, np.zeros((m, m))
    if target == "population" and len(everything) > 1:
        # A labelled item is also one of those drawn. With one slope for all, what the judge does
        # not see of a system goes with what it sees, so the two parts are added before squaring.
        seen = slope * centred[1] / len(everything)
        influence = unseen + seen
        pool = slope**2 * np.atleast_2d(np.cov(everything, rowvar=False)) / len(everything)
        pool -= seen.T @ seen
    return _Fit(means[0] + slope * shift, influence, unseen, pool, means[0] - slope * means[1])


def _of_pairs(covariance: FloatArray, first: IntArray, second: IntArray) -> FloatArray:
    """Variance of each difference under a covariance of systems."""
    own = np.diag(covariance)
    return np.maximum(own[first] + own[second] - 2 * covariance[first, second], 0.0)


def _largest(
    fit: _Fit,
    first: IntArray,
    second: IntArray,
    *,
    weight: FloatArray,
    unseen: FloatArray,
    error: FloatArray,
    level: float,
    n_resamples: int,
    rng: np.random.Generator,
) -> float:
    """Return a quantile of the largest |t| over all pairs, and never less than that of one.

    The larger of that by a joint bootstrap and of that under the multivariate t. ``weight`` is that
    of the pseudo-item against one label, per pair; ``unseen`` its variance, before it is averaged
    in. The bootstrap follows skewness, and is short where few labels are resampled; the t knows
    how few they are, and no skewness. Where no label shows a difference neither knows more
    than the pseudo-items.
    """
    size = float(error.max(initial=0.0)) or 1.0  # 32 bits suffice for values around 1
    influence = fit.influence / size
    n, m = influence.shape
    among = influence[:, first] - influence[:, second]
    squares = (among * among).astype(np.float32)
    units = influence.astype(np.float32)
    values, vectors = np.linalg.eigh(fit.pool)
    # a root: its product with its transpose is the covariance
    root = (vectors * np.sqrt(np.maximum(values, 0.0))).T
    systems = (root / size).astype(np.float32)
    drawn, normal = np.empty(n_resamples, np.float32), np.empty(n_resamples, np.float32)
    fixed = ((unseen + _of_pairs(fit.pool, first, second)) / size**2).astype(np.float32)
    scaled = (1 / (1 + weight)).astype(np.float32)
    error = error / size
    precision = np.where(error > 1e-9, 1 / np.maximum(error, 1e-9) ** 2, 0).astype(np.float32)
    degrees = max(n - 2, 1)

    def squared(values: Float32Array) -> Float32Array:
        """Squared difference of first and second, for every pair; shape (k, p)."""
        return np.asarray(np.square(values[:, first] - values[:, second]))

    for start in range(0, n_resamples, _RESAMPLES_AT_ONCE):
        stop = min(start + _RESAMPLES_AT_ONCE, n_resamples)
        k = stop - start
        # how often each item is drawn
        places = (rng.random((k, n)) * n).astype(np.int64) + n * np.arange(k)[:, None]
        counts = np.bincount(places.ravel(), minlength=k * n).reshape(k, n).astype(np.float32)
        # Σ w·u² − (Σ w·u)²/n, with u what one item adds to the difference
        total = counts @ units
        spread = counts @ squares - squared(total) * np.float32(1 / n)
        spread = np.maximum((np.maximum(spread, 0) + fixed) * scaled, np.float32(1e-30))
        noise = rng.standard_normal((k, m), dtype=np.float32) @ systems
        drawn[start:stop] = (squared(total + noise) / spread).max(axis=1)
        normals = rng.standard_normal((k, n), dtype=np.float32) @ units
        noise = rng.standard_normal((k, m), dtype=np.float32) @ systems
        normal[start:stop] = (squared(normals + noise) * precision).max(axis=1)
    normal /= (rng.chisquare(degrees, n_resamples) / degrees).astype(np.float32)
    joint = max(float(np.quantile(values, level)) for values in (drawn, normal))
    return max(math.sqrt(joint), t_quantile(0.5 + level / 2, float(degrees)))


def _ranks(
    first: IntArray,
    second: IntArray,
    lower: FloatArray,
    upper: FloatArray,
    m: int,
    *,
    all_pairs: bool,
) -> tuple[IntArray, IntArray]:
    """Count for each system those surely above and surely below it."""
    if not all_pairs:
        return np.ones(m, dtype=np.int64), np.full(m, m, dtype=np.int64)
    higher, smaller = lower > 0, upper < 0
    return (
        1 + np.bincount(second[higher], minlength=m) + np.bincount(first[smaller], minlength=m),
        m - np.bincount(first[higher], minlength=m) - np.bincount(second[smaller], minlength=m),
    )


def _shrunk(sample: JudgedSample, fit: _Fit, judge: FloatArray) -> FloatArray:
    """Scores whose offsets from the judge are shrunk (James & Stein 1961).

    An offset is how far people put a system above what the judge predicts. What follows a line in
    the judge's means (a judge that sees less, or more, between systems than within an item) and
    what is left are both kept as far as chance does not explain them.
    """
    m = sample.y.shape[1]
    offset = fit.offset - fit.offset.mean()
    if m < _FEWEST_SHRUNK or not offset.any():
        return fit.estimate
    centred = fit.residual - fit.residual.mean(axis=1, keepdims=True)
    chance = (centred * centred).sum() / (m - 1)  # of one offset
    apart = judge - judge.mean()
    power = apart @ apart
    tilt = (apart @ offset) / power if power > 0 else 0.0
    line = tilt * max(1 - chance / (power * tilt**2), 0.0) * apart if tilt else np.zeros(m)
    left = offset - tilt * apart
    spread = left @ left
    kept = max(1 - (m - 2) * chance / spread, 0.0) if spread > 0 else 0.0
    return np.asarray(fit.estimate - offset + line + kept * left)
