"""How many human labels an interval of a wanted width needs, with a judge and without."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.data import FloatArray
from rag_sourcebias.core.errors import DataError, InsufficientDataError, check_level, require_one_of
from rag_sourcebias.infer.decide import normal_quantile, t_quantile
from rag_sourcebias.infer.judged import (
    JUDGED_SCORE_ITEMS,
    MIN_LABELED,
    SCORE_ITEMS,
    choose_form,
    mean_interval,
)
from rag_sourcebias.infer.means import wilson_ends
from rag_sourcebias.infer.samples import (
    JudgedSample,
    has_spread,
    is_constant,
    judge_correlation,
    residual_share,
)
from rag_sourcebias.judged.crc import RankedLabels
from rag_sourcebias.judged.documents import (
    GUESSED_CORRELATION,
    SHARED_IN_QUERY,
    LabeledDocuments,
    Outlook,
    labels_needed,
    outlook,
    require_queries,
)

# How many items to label, as an answer.


ASSURANCE = 0.8  # share of draws in which the promised half-width is to be reached


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemPlan:
    """Labelled items needed for a half-width, with a judge and without.

    Parameters
    ----------
    n_judge, n_alone : int
        Items to label in total, those of the pilot included and never fewer. ``n_alone`` may be
        more than the pool has (population target).
    half_width : float
        Asked for; reached in about 80 % of draws like the pilot's.
    saved_low, saved_high : float
        Share of labels saved at the ends of a 90 % interval for the correlation.
    correlation, correlation_low : float
        Of human and judge values in the pilot (0 if either is constant), and its lower 80 % bound,
        at least 0.
    target : str
    confidence_level : float
    n_pilot : int
    assumptions : tuple of str
    """

    n_judge: int
    n_alone: int
    half_width: float
    saved_low: float
    saved_high: float
    correlation: float
    correlation_low: float
    target: str
    confidence_level: float
    n_pilot: int
    assumptions: tuple[str, ...]

    @property
    def saved(self) -> float:
        """Share of labels saved against labels alone; negative if more are needed."""
        return 1 - self.n_judge / self.n_alone

    def __str__(self) -> str:
        return (
            f"{self.n_judge:,} labelled items with the judge, {self.n_alone:,} without, for "
            f"±{self.half_width:.3g} at {100 * self.confidence_level:.4g}% ({self.target}), "
            f"reached in about {100 * ASSURANCE:.0f}% of draws like this: {saving(self.saved)}, "
            f"{100 * self.saved_low:.0f}% to {100 * self.saved_high:.0f}% as far as a pilot of "
            f"{self.n_pilot:,} tells (judge r = {self.correlation:.2f}, at least "
            f"{self.correlation_low:.2f})"
        )


def saving(share: float) -> str:
    """Say what share of labels is saved; honest when it is none or less than none."""
    percent = round(100 * share)
    if percent == 0:
        return "no labels saved"
    more = f"{-percent}% more labels than without a judge"
    return f"{percent}% of the labels saved" if percent > 0 else more


# Half-widths against the number of labels, for items.


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """Half-width against the number of labels, through the pilot's own interval.

    Parameters
    ----------
    variance : float
        Of one label: of residuals, or of human values.
    shared : float
        Variance that more labels do not take away: of the judge's part over the pool.
    error : float
        Standard error of log ``variance`` if it were estimated from one degree of freedom.
    span : float or None
        Distance of the two values that all labels have; None if there are more.
    rarest : int
        Labels of the value that fewest have.
    rank : int
        Fitted parameters.
    mean : float
    bounds : tuple of float or None
        Range of a score interval; None for t.
    pseudo : float
        Items at the ends of the range that count as seen.
    scale : float
        What the pilot's interval is wider than the formula, in squares.
    """

    variance: float
    shared: float
    error: float
    span: float | None
    rarest: int
    rank: int
    mean: float
    bounds: tuple[float, float] | None
    pseudo: float
    n_pilot: int
    pool: int
    target: str
    probability: float
    scale: float = 0.0

    def half(self, n: int) -> float:
        """Return the half-width from n labels that about 80 % of draws like the pilot's reach."""
        quantile = t_quantile(self.probability, max(n - self.rank, 1))
        rest = 1.0
        if self.target == "pool":
            rest = max(1 - n / self.pool, 0.0)
        each = self.variance * self.growth(n)
        widened = math.sqrt(1 + self.scale * self.n_pilot / n)
        if self.bounds is None:
            each *= rest / (1 - self.rank / n)
            return widened * quantile * math.sqrt(each / n + self.shared)
        width = self.bounds[1] - self.bounds[0]
        largest = width**2 / 4  # of any variance between the bounds
        each = min(each, (1 + _LEVERAGE / n) * largest) * (rest / (1 - self.rank / n))
        share = (self.mean - self.bounds[0]) / width
        # as infer.judged.score_form does it
        pseudo = rest * self.pseudo / 2 * ((1 - share) ** 2 + share**2)
        seen = n + self.pseudo
        smoothed = ((each + n * self.shared) / width**2 + pseudo / n) / seen
        if smoothed <= 0:
            return 0.0
        pulled = (n * share + self.pseudo / 2) / seen
        lower, upper = wilson_ends(share, pulled * (1 - pulled) / smoothed, quantile)
        reach = (upper - lower) / 2
        if self.target == "pool":
            reach = max(reach, quantile * math.sqrt(smoothed))
        return widened * width * reach

    def growth(self, n: int) -> float:
        """How much larger than the pilot's the variance of n labels may be.

        The labels to come are new, those of the pilot are part of the n: log variances of the two
        differ with variance error² · (n − n₀) / (n · ν).
        """
        degrees = self.n_pilot - self.rank
        new = max(n - self.n_pilot, 0) / n
        quantile = t_quantile(ASSURANCE, degrees)
        odd = 0.0
        if self.span is not None:
            odd = self.variance / self.span**2
        if new == 0 or not 0 < odd < 0.25:
            spread = self.error**2 * new / degrees
            grown = quantile * math.sqrt(spread)
            if self.bounds is None:
                grown += (
                    spread / 2
                )  # the mean of a log-normal variance, where no bound holds it down
            return math.exp(grown)
        # What is missed of two-valued labels spreads like a label as rare, whose share has a score
        # interval; the kurtosis of a few says less. Half a case less among the labels to come, or
        # two thirds after a pilot with one: pilots without any are refused, and those that are left
        # show too many.
        size = self.n_pilot / new
        less = 1 / 2
        if self.rarest == 1:
            less = 2 / 3
        share = max(0.5 - math.sqrt(0.25 - odd) - less / size, 0.0)
        _, upper = wilson_ends(share, size, quantile)
        upper = min(upper, 0.5)
        return (1 + _LEVERAGE / n) * upper * (1 - upper) / odd


def _curve(
    human: FloatArray,
    judge: FloatArray,
    pool: int,
    method: Literal["regression", "labels"],
    *,
    target: Literal["population", "pool"],
    confidence_level: float,
) -> Curve:
    n, residual_df = len(human), len(human) - 1
    useful = method == "regression" and not is_constant(judge)
    others = judge[:0]
    if pool > n:
        others = np.resize(judge, min(pool - n, _POOL))
    residual, explained = human - human.mean(), 0.0
    if useful:
        centred = judge - judge.mean()
        power = float(centred @ centred)
        slope = float(centred @ human) / power
        residual = residual - slope * centred
        explained = slope * slope * power / (n - 1)
        residual_df -= 1
    bounds = choose_form(JudgedSample.build(human, judge, others), None).bounds
    values, count = np.unique(human, return_counts=True)
    binary = len(values) == 2
    span = float(np.ptp(human))
    variance, excess = float(np.square(residual).sum()) / residual_df, 0.0
    # a perfect fit leaves no residual to have a kurtosis
    if np.square(residual).sum() > 1e-12 * np.square(human - human.mean()).sum():
        excess = _excess_kurtosis(residual, bounded=bounds is not None)
    elif binary:
        # half a disagreement: a judge that never parted from people may yet
        variance = span**2 / 2 / (n + 1)
    pseudo = JUDGED_SCORE_ITEMS if useful and target == "population" else SCORE_ITEMS
    curve = Curve(
        variance=variance,
        shared=explained / pool if target == "population" else 0.0,
        error=math.sqrt(max(2 + excess, 0.0)),
        span=span if binary else None,
        rarest=int(count.min()),
        rank=n - residual_df,
        mean=float(human.mean()),
        bounds=bounds,
        pseudo=pseudo,
        n_pilot=n,
        pool=pool,
        target=target,
        probability=0.5 + confidence_level / 2,
    )
    found = mean_interval(
        human, judge, others, method=method, target=target, confidence_level=confidence_level
    )
    m = n + len(others)
    formula = replace(curve, pool=m, shared=curve.shared * pool / m).half(n)
    if formula <= 0:
        return curve
    return replace(curve, scale=(found.half_width / formula) ** 2 - 1)


def _excess_kurtosis(residual: FloatArray, *, bounded: bool) -> float:
    """Return the excess kurtosis in its unbiased form: with few labels the plain one is too small.

    A few of a long tail show their skewness before their kurtosis: it is at least that of a gamma
    distribution as skewed, 3/2 of its square.
    """
    n = len(residual)
    square = np.square(residual)
    total = float(square.sum())
    peaked = float(n * np.square(square).sum() / total**2) - 3
    excess = (n - 1) / ((n - 2) * (n - 3)) * ((n + 1) * peaked + 6)
    if bounded:
        return excess
    third = math.sqrt(n) * float((square * residual).sum()) / total**1.5
    of_gamma: float = 1.5 * n * (n - 1) / (n - 2) ** 2 * third * third
    return max(excess, of_gamma)


def smallest(half: Callable[[int], float], wanted: float, low: int, high: int) -> int | None:
    """Return the smallest n in [low, high] whose half-width does; None if none does."""
    reach = wanted * (1 + 1e-9)
    upper = low
    while half(upper) > reach:
        if upper >= high:
            return None
        low, upper = upper + 1, min(2 * upper, high)
    while low < upper:
        middle = (low + upper) // 2
        low, upper = (low, middle) if half(middle) <= reach else (middle + 1, upper)
    return upper


def positive(half_width: float) -> float:
    """Return the half-width, refusing what is not a positive number."""
    if not (math.isfinite(half_width) and half_width > 0):
        raise DataError(f"half_width {half_width!r} must be a positive number")
    return float(half_width)


# How many items to label, with a judge and without, from a pilot of labelled items.


MOST = 1 << 40  # more items than anyone will label
_LEVERAGE = 2.0  # parts of 1/n that leverages add, from draw to draw, to the largest variance
_POOL = 5_000  # judge values that stand for those of a larger pool


def plan_item_labels(
    y: npt.ArrayLike,
    yhat: npt.ArrayLike,
    n_unlabeled: int,
    *,
    half_width: float,
    target: Literal["population", "pool"] = "population",
    confidence_level: float = 0.95,
) -> ItemPlan:
    """How many items to label for a half-width of their mean, with a judge and without.

    The half-widths are those of the intervals of the pilot, with the judge and of labels alone,
    carried on to n labels: the part of the labels falls with their number, the part of the judge's
    values does not. The variance of the labels is taken so large that the half-width is reached in
    about 80 % of draws: its error grows with the kurtosis of what the judge misses. The judge often
    saves no more than 0–10 % of the labels.

    Parameters
    ----------
    y, yhat : float arrays of shape (n,)
        Human and judge values of the pilot, 10 items or more, drawn at random.
    n_unlabeled : int
        Items with a judge value only; labels to come are drawn from them.
    half_width : float
        Wanted, in the unit of y.
    target : str
    confidence_level : float

    Returns
    -------
    ItemPlan

    Raises
    ------
    DataError
        If arrays differ in length or are not finite, or the half-width is not positive.
    InsufficientDataError
        If the pilot is too small or its human values are all alike, or the pool is too small for
        the half-width (with the number of items needed).
    """
    check_level(confidence_level)
    require_one_of("target", target, ("population", "pool"))
    human, judge = _pilot_values(y, yhat)
    wanted = positive(half_width)
    n, pool = len(human), len(human) + int(n_unlabeled)
    with_judge, alone = (
        _curve(human, judge, pool, method, target=target, confidence_level=confidence_level)
        for method in ("regression", "labels")
    )
    without = smallest(alone.half, wanted, n, MOST) or MOST
    found = smallest(with_judge.half, wanted, n, pool)
    if found is None:
        raise InsufficientDataError(
            f"labelling all {pool} items gives ±{with_judge.half(pool):.3g}; "
            f"±{wanted:.3g} needs about {without} items",
            n=pool,
            n_needed=without,
        )
    r = 0.0
    if with_judge.rank > 1:
        r = judge_correlation(human, judge)
    share, error = residual_share(human, judge)
    total = float(human.var(ddof=1))

    def saved(left: float) -> float:
        """Return what is saved if the judge leaves so much of the variance."""
        shared = 0.0
        if target == "population":
            shared = total * (1 - left) / pool
        curve = replace(with_judge, variance=total * left, shared=shared)
        return 1 - (smallest(curve.half, wanted, n, pool) or without) / without

    wide = math.exp(normal_quantile(0.95) * error)
    most_left = min(share * wide, 1.0)
    planned = 1 - found / without
    explained = 1 - share * math.exp(normal_quantile(ASSURANCE) * error)
    assumption = (
        f"the pilot of {n} items and the labels to come are random draws from the same items, "
        "which are independent"
    )
    return ItemPlan(
        n_judge=found,
        n_alone=without,
        half_width=wanted,
        saved_low=min(saved(most_left), planned),
        saved_high=max(saved((1 - r * r) / wide), planned),
        correlation=r,
        correlation_low=math.sqrt(max(explained, 0.0)),
        target=target,
        confidence_level=confidence_level,
        n_pilot=n,
        assumptions=(assumption,),
    )


def _pilot_values(y: npt.ArrayLike, yhat: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    sample = JudgedSample.build(y, yhat, ())
    human, judge = sample.y[:, 0], sample.x[:, 0]
    if len(human) < MIN_LABELED:
        raise InsufficientDataError(
            f"a pilot of {len(human)} pairs tells too little; {MIN_LABELED} are needed",
            n=len(human),
            n_needed=MIN_LABELED,
        )
    if not has_spread(human):
        raise InsufficientDataError(
            f"all {len(human)} human values of the pilot are {human[0]:g}: their spread cannot be "
            "estimated; label more items",
            n=len(human),
        )
    return human, judge


# How many documents or queries to label, as an answer.


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelPlan:
    """How far labels of documents go, beside whole queries and labels without a judge.

    Parameters
    ----------
    n_labels : int
        Documents to label, spread over all queries, those of the pilot included.
    half_width : float
        Expected with them, in the unit of the utility.
    half_width_queries, half_width_alone : float or None
        Expected if as many labels went to whole queries, with the judge on the other queries and
        without a judge; None if they do not make two queries.
    labels_queries : int or None
        Labels of whole queries, with the judge, for the same half-width; None if the pool has not
        as many.
    labels_alone : int
        Labels of whole queries, without a judge, for the same half-width; may be more than the
        pool has.
    n_queries : int
        Queries of the pool.
    target : str
    confidence_level : float
    n_pilot : int
        Human labels the plan rests on; with 0 every number is a guess.
    assumptions : tuple of str
    """

    n_labels: int
    half_width: float
    half_width_queries: float | None
    half_width_alone: float | None
    labels_queries: int | None
    labels_alone: int
    n_queries: int
    target: str
    confidence_level: float
    n_pilot: int
    assumptions: tuple[str, ...]

    @property
    def saved(self) -> float:
        """Share of labels saved against labels alone; negative if more are needed."""
        return 1 - self.n_labels / self.labels_alone

    def __str__(self) -> str:
        whole = "-" if self.labels_queries is None else f"{self.labels_queries:,}"
        basis = (
            f"from a pilot of {self.n_pilot:,} labels"
            if self.n_pilot
            else "a guess from the judge's own spread, no human label yet"
        )
        return (
            f"{self.n_labels:,} documents over {self.n_queries:,} queries for "
            f"±{self.half_width:.3g} at {100 * self.confidence_level:.4g}% ({self.target}); "
            f"whole queries need {whole} labels with the judge, {self.labels_alone:,} without: "
            f"{saving(self.saved)} ({basis})"
        )


# How many human labels: for a ranking metric, and for judged answers or items.


_GUESSED = (
    "no human label yet: human gains are taken to spread like the judge's and to correlate "
    f"with them at {GUESSED_CORRELATION:g}",
    f"residuals of documents of one query are taken to correlate at {SHARED_IN_QUERY:g}",
)


def plan_labels(
    labels: RankedLabels,
    *,
    half_width: float | None = None,
    n_labels: int | None = None,
    target: Literal["population", "pool"] = "population",
    confidence_level: float = 0.95,
    pilot: LabeledDocuments | None = None,
) -> LabelPlan:
    """How many documents to label for a half-width, or the half-width of so many labels.

    Parameters
    ----------
    labels : RankedLabels
        The judged pool.
    half_width : float or None
        Wanted, in the unit of the utility. Either this or ``n_labels``.
    n_labels : int or None
        Affordable, those of the pilot included.
    target : str
        ``"population"`` or ``"pool"``.
    confidence_level : float
    pilot : LabeledDocuments or None
        Documents with human labels, 10 or more. Without, the numbers are a guess: human gains
        that spread like the judge's and correlate with them at .5.

    Returns
    -------
    LabelPlan

    Raises
    ------
    DataError
        If not exactly one of ``half_width`` and ``n_labels`` is given, or it is not positive, or
        there are not as many documents.
    InsufficientDataError
        If all labels of the pool would not do (with the number of queries needed), if the pilot
        or ``n_labels`` is too small.
    """
    check_level(confidence_level)
    require_one_of("target", target, ("population", "pool"))
    if (half_width is None) == (n_labels is None):
        raise DataError("give either half_width or n_labels")
    require_queries(labels, target)
    view = outlook(labels, pilot=pilot, target=target, confidence_level=confidence_level)
    n_pilot = 0 if pilot is None else int(np.isinf(view.size).sum())
    n_labels = _labels_for(view, half_width, int(n_labels or 0), n_pilot)
    half = view.by_documents(n_labels)
    whole = int(n_labels / view.per_query + 1e-9)
    in_queries = smallest(view.by_queries, half, 2, view.n_queries)
    alone = smallest(view.alone, half, 2, MOST) or MOST
    return LabelPlan(
        n_labels=n_labels,
        half_width=half,
        half_width_queries=view.by_queries(whole) if whole >= 2 else None,
        half_width_alone=view.alone(whole) if whole >= 2 else None,
        labels_queries=None if in_queries is None else round(in_queries * view.per_query),
        labels_alone=round(alone * view.per_query),
        n_queries=view.n_queries,
        target=view.target,
        confidence_level=view.confidence_level,
        n_pilot=n_pilot,
        assumptions=("the documents of the pilot are typical of the pool",)
        if n_pilot
        else _GUESSED,
    )


def _labels_for(view: Outlook, half_width: float | None, n_labels: int, n_pilot: int) -> int:
    """Return as many labels as the half-width takes; without one those asked for, if they do."""
    available = int((view.size > 0).sum())
    fewest = labels_needed(n_pilot, available)
    if half_width is None:
        if n_labels > available:
            raise DataError(
                f"{n_labels} labels, but only {available} documents have a rank with weight"
            )
        if n_labels < fewest:
            raise InsufficientDataError(
                f"{n_labels} labelled documents (with {n_pilot} of a pilot) are too few for an "
                f"interval; {fewest} are needed",
                n=n_labels,
                n_needed=fewest,
            )
        return n_labels
    found = smallest(view.by_documents, positive(half_width), fewest, available)
    if found is None:
        least = view.by_documents(available)
        needed = math.ceil(view.n_queries * (least / half_width) ** 2)
        raise InsufficientDataError(
            f"with every document labelled {view.n_queries} queries give ±{least:.3g}; "
            f"±{half_width:.3g} needs about {needed} queries",
            n=view.n_queries,
            n_needed=needed,
        )
    return found
