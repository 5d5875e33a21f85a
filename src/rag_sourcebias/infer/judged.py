"""Means and differences when most labels come from a judge: one function per question."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, NamedTuple, Unpack, get_args

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.data import FloatArray
from rag_sourcebias.core.errors import DataError, InsufficientDataError, as_generator, check_level
from rag_sourcebias.core.finding import Finding, Interval
from rag_sourcebias.infer.decide import normal_quantile, t_quantile
from rag_sourcebias.infer.findings import InferCode
from rag_sourcebias.infer.means import bootstrap_interval, spread_values, t_interval
from rag_sourcebias.infer.regression import (
    SAME_SCALE,
    Form,
    RegressionFit,
    choose_form,
    draw_interval,
    fit_regression,
    graded,
    sampling_reach,
    skew_shift,
)
from rag_sourcebias.infer.samples import (
    Design,
    JudgedSample,
    Target,
    check_target,
    combine_judges,
    has_spread,
    judge_correlation,
)

# What all forms of prediction-powered inference share.


def _require_two(human: FloatArray, pool: FloatArray) -> None:
    for name, size in (("labelled", len(human)), ("judged", len(pool))):
        if size < 2:
            raise InsufficientDataError(
                f"{size} {name} item(s): PPI needs at least 2", n=size, n_needed=2
            )


def ppi_result(
    estimate: float,
    half: float,
    *,
    confidence_level: float,
    method: Finding,
    target: str,
    human: FloatArray,
    judge: FloatArray,
    n_pool: int,
    assumptions: tuple[InferCode, ...],
    notes: tuple[Finding, ...] = (),
) -> Interval:
    """Build the interval around an estimate."""
    return Interval(
        estimate=estimate,
        lower=estimate - half,
        upper=estimate + half,
        confidence_level=confidence_level,
        method=method,
        target=target,
        n_labeled=len(human),
        n_unlabeled=n_pool,
        assumptions=tuple(code() for code in (InferCode.LABELS_SAMPLED, *assumptions)),
        correlation=judge_correlation(human, judge),
        notes=notes,
    )


# Prediction-powered inference for a mean: fixed, tuned and cross-fitted power, and [R]'s form.
# The default method of this library is :mod:`~rag_sourcebias.infer.regression`; these are offered
# by name, for comparison and where the power λ was fixed before seeing labels.


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
    spread = float((human - power * judge).var(ddof=ddof))
    reference = np.concatenate([judge, pool]) if target == "pool" else pool
    estimate = power * float(reference.mean()) + float((human - power * judge).mean())
    if target == "population":
        variance = spread / n + power**2 * float(pool.var(ddof=ddof)) / n_pool
    elif target == "pool":
        variance = spread * (1 / n - 1 / (n + n_pool))
    else:
        variance = spread * (1 / n + 1 / n_pool)
    probability = 0.5 + confidence_level / 2
    quantile = normal_quantile(probability) if normal else t_quantile(probability, n - 1)
    return ppi_result(
        estimate,
        quantile * math.sqrt(variance),
        confidence_level=confidence_level,
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
        t_quantile(0.5 + confidence_level / 2, n - 1) * math.sqrt(variance),
        confidence_level=confidence_level,
        method=InferCode.PPI_CROSSFIT(power=weight),
        target="population",
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
        normal_quantile(0.5 + confidence_level / 2) * math.sqrt(float(variance)),
        confidence_level=confidence_level,
        method=InferCode.PPI_PAPER(),
        target="population",
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
        found = t_interval(
            human,
            confidence_level=level,
            fraction_labeled=n / (n + sample.n_unlabeled) if target == "pool" else 0.0,
        )
        if target == "unlabeled" and sample.n_unlabeled:
            half = found.half_width * math.sqrt(1 + n / sample.n_unlabeled)
            found = replace(found, lower=found.estimate - half, upper=found.estimate + half)
        return replace(
            found,
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
    if method not in get_args(Method):
        raise DataError(f"method {method!r} is not one of {', '.join(get_args(Method))}")
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
    x, penalty = combine_judges(
        judges, n, n if clusters is None else len(np.unique(np.asarray(clusters)))
    )
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
    check_level(confidence_level)
    check_target(target)
    gaps = replace(
        sample,
        y=sample.y[:, :1] - sample.y[:, 1:],
        x=sample.x[:, :1] - sample.x[:, 1:],
        x_unlabeled=sample.x_unlabeled[:, :1] - sample.x_unlabeled[:, 1:],
    )
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
    step = float(steps[steps > 1e-6 * half].min(initial=half)) if few else half
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
    check_level(confidence_level)
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
