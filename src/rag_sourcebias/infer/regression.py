"""Intervals for a mean by regression of human labels on a judge."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rag_sourcebias.core.data import FloatArray
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.core.finding import Finding
from rag_sourcebias.infer.decide import beta_quantile
from rag_sourcebias.infer.dependence import group_codes
from rag_sourcebias.infer.findings import InferCode
from rag_sourcebias.infer.means import wilson_ends
from rag_sourcebias.infer.samples import JudgedSample, Target, has_spread

# What a regression estimate would lose without each item or cluster.


CONSTANT = 1e-10  # spread relative to size below which a judge column is constant
_ROUNDING = 1e-12  # relative to the largest value
_ALONE = 1e-9  # 1 − leverage below which an item fixes its own fitted value


def item_influence(
    sample: JudgedSample,
    design: FloatArray,
    inverse: FloatArray,
    coefficients: FloatArray,
    towards: FloatArray,
    *,
    power: float,
) -> FloatArray:
    """What the estimate would lose without each item; shape (n, k).

    A residual is divided by 1 − leverage (the jackknife; HC3), or by its root with ``power`` 0.5
    (HC2 of MacKinnon & White 1985: unbiased where residuals vary alike).
    """
    residuals = sample.y - design @ coefficients
    free = 1 - np.einsum("ij,ij->i", design @ inverse, design)
    alone = free < _ALONE
    left_out = residuals / (np.where(alone, 1.0, free) ** power)[:, None]
    if alone.any():
        # The item alone decides a direction of the fit, so its own residual is 0. Without it that
        # direction has no slope, and the mean of the other items is what would predict it.
        others = (sample.y.sum(axis=0) - sample.y[alone]) / max(sample.n_labeled - 1, 1)
        left_out[alone] = sample.y[alone] - others
    # What rounding leaves of a perfect fit is no residual.
    left_out[np.abs(left_out) <= _ROUNDING * np.abs(sample.y).max(initial=0.0)] = 0.0
    return (design @ (inverse @ towards))[:, None] * left_out


def cluster_influence(
    sample: JudgedSample,
    design: FloatArray,
    normal_equations: tuple[FloatArray, FloatArray],
    estimate: FloatArray,
    towards: FloatArray,
) -> FloatArray:
    """What the estimate would lose without each cluster; shape (G, k)."""
    gram, moments = normal_equations
    codes = np.asarray(sample.cluster)
    order = np.argsort(codes, kind="stable")
    lost = []
    for inside in np.split(order, np.flatnonzero(np.diff(codes[order])) + 1):
        rows = design[inside]
        without = np.linalg.pinv(gram - rows.T @ rows, rcond=CONSTANT, hermitian=True)
        left_out = without @ (moments - rows.T @ sample.y[inside])
        lost.append(estimate - towards @ left_out)
    return np.array(lost)


# Regression on the judge: the estimator behind the default interval.
# Human values are regressed on judge values over the labelled items; the estimate is the mean of
# the fitted values over the target plus the mean residual (which ordinary least squares makes
# zero). The slope this learns is the optimal power of PPI++ (Angelopoulos et al. 2023), sign
# included. Its sampling error is read off residuals that are as large as without their item (HC2 of
# MacKinnon & White 1985) and for clusters off the delete-one jackknife (CR3), so that the
# error of the slope itself is counted; tuned PPI leaves it out and under-covers below about 40
# labels.


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RegressionFit:
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
    design, pool, scale = _design(sample)
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
    if sample.cluster is None:
        influence = item_influence(sample, design, inverse, coefficients, towards, power=leverage)
        # a slope under a penalty is a part of a parameter
        spent = float(np.einsum("ij,jk,ik->", design, inverse, design))
        degrees = max(sample.n_labeled - spent, 1.0)
    else:
        influence = cluster_influence(sample, design, (gram, moments), estimate, towards)
        degrees = float(max(sample.n_units - 1, 1))
    influence = influence * math.sqrt(sampling_reach(sample, target))
    covariance = influence.T @ influence
    drawn = np.zeros_like(covariance)
    if target == "population":
        drawn = _fitted_covariance(sample, everything @ coefficients)
    return RegressionFit(
        estimate=estimate,
        covariance=covariance + drawn,
        degrees=degrees,
        skewness=_skewness(influence[:, 0], float(covariance[0, 0] + drawn[0, 0])),
        drawn=float(drawn[0, 0]),
        residuals=sample.y[:, 0] - design @ coefficients[:, 0],
    )


def _skewness(influence: FloatArray, variance: float) -> float:
    """Skewness of the estimate from what each unit contributes to it; small-sample corrected."""
    n = len(influence)
    if n < 3 or variance <= 0:
        return 0.0
    third = float(((influence - influence.mean()) ** 3).sum())
    return float(third / variance**1.5 * np.sqrt(n * (n - 1)) / (n - 2))


def _design(sample: JudgedSample) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return 1 and the centred, scaled judge columns, of both sets; and the scales."""
    scale = sample.x.std(axis=0)
    size = np.maximum(np.abs(sample.x).max(axis=0, initial=0.0), np.finfo(float).tiny)
    scale = np.where(scale > CONSTANT * size, scale, 0.0)
    usable = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0)
    design, pool = (
        np.column_stack([np.ones(len(x)), (x - sample.x.mean(axis=0)) * usable])
        for x in (sample.x, sample.x_unlabeled)
    )
    return design, pool, scale


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


PSEUDO_ITEMS = 4.0  # two at each end of the range (Agresti & Coull 1998)
JUDGED_ITEMS = 2.0  # one at each end, for a population mean with a judge


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
    seen = JUDGED_ITEMS if judged else PSEUDO_ITEMS
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


def _jeffreys_upper(share: float, n: float, probability: float) -> float:
    """Upper end for a share, a quantile of Beta(k + ½, n − k + ½); 1 where it is 1."""
    return beta_quantile(probability, share * n + 0.5, n - share * n + 0.5) if share < 1 else 1.0


def _effective_units(sample: JudgedSample) -> float:
    """Independent items that the labels are worth: between clusters and items.

    Items over the design effect of the labels (Kish 1965); labels that all agree tell none, and
    count as clusters.
    """
    n, y = sample.n_labeled, sample.y[:, 0]
    if sample.cluster is None or not has_spread(y):
        return float(sample.n_units)
    apart = np.bincount(group_codes(sample.cluster), weights=y - y.mean())
    effect = float(apart @ apart) * sample.n_units / (sample.n_units - 1) / (n * float(y.var()))
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
        notes = (InferCode.LONG_TAIL(),) if _long_tailed(y) else ()
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


def _long_tailed(y: FloatArray) -> bool:
    """Whether a few labels lie so far from the rest that others may lie further."""
    centred = y - y.mean()
    spread = float((centred**2).mean()) ** 1.5
    return has_spread(y) and abs(float((centred**3).mean())) > _LONG_SKEW * spread


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
    error = math.sqrt(max(float(fit.covariance[0, 0]), 0.0))
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
        share = float((errors > _FAR * room).mean())
        size = min(room, float(errors.max())) if share else room
        unseen = _jeffreys_upper(share, worth, probability) - share
        reach.append(math.hypot(shrink * unseen * size, other))
    return reach[0], reach[1]
