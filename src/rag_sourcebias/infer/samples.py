"""A labelled sample and the judged pool it came from: scale, draw, and what is wrong."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypedDict, Unpack, get_args

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.completions import JudgedItems, mean_judge
from rag_sourcebias.core.data import FloatArray, IntArray
from rag_sourcebias.core.errors import (
    DataError,
    InsufficientDataError,
    as_generator,
    check_level,
    require_one_of,
)
from rag_sourcebias.core.finding import Interval
from rag_sourcebias.infer.findings import InferCode
from rag_sourcebias.infer.means import adjust_p_values, group_codes, resample_blocks, t_around

# Values that are all labelled by people: intervals without a judge.


def as_values(name: str, values: npt.ArrayLike, *, columns: bool = False) -> FloatArray:
    """Return finite float64 values of shape (n,), or (n, p) with ``columns``.

    Raises
    ------
    DataError
        Naming the first value that is not finite.
    """
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{name}: values must be numbers ({error})") from None
    if columns and array.ndim == 1:
        array = array[:, None]
    if array.ndim != 1 + columns:
        raise DataError(f"{name} has shape {array.shape}; expected one value per item")
    bad = ~np.isfinite(array)
    if bad.any():
        first = tuple(int(i) for i in np.argwhere(bad)[0])
        raise DataError(
            f"{name}: {bad.sum()} value(s) are not finite, first {array[first]} at position "
            f"{first[0]}; leave such items out knowingly"
        )
    return array


def has_spread(values: FloatArray) -> bool:
    """Whether values differ by more than rounding."""
    if not len(values):
        return False
    low, high = float(values.min()), float(values.max())
    return high - low > 1e-12 * max(abs(low), abs(high))


def t_interval(y: npt.ArrayLike, *, confidence_level: float = 0.95) -> Interval:
    """Student's t interval for a mean.

    Raises
    ------
    InsufficientDataError
        With fewer than 2 values, or values that do not differ.

    Examples
    --------
    >>> print(t_interval([3.0, 5.0, 4.0, 6.0]))
    4.5 [2.446, 6.554] (95%, labels alone (t), n = 4)
    """
    check_level(confidence_level)
    values = spread_values(y)
    n = len(values)
    error = values.std(ddof=1) / math.sqrt(n)
    return t_around(
        float(values.mean()),
        float(error),
        n - 1,
        level=confidence_level,
        method=InferCode.LABELS_T(),
        n_labeled=n,
        assumptions=(InferCode.ITEMS_SAMPLED(), InferCode.MEAN_NORMAL()),
    )


def spread_values(y: npt.ArrayLike) -> FloatArray:
    """Return values that have a spread to estimate, or raise."""
    values = as_values("y", y)
    n = len(values)
    if n < 2:
        raise InsufficientDataError(
            f"{n} human label(s): an interval needs at least 2, and 10 to be useful",
            n=n,
            n_needed=2,
        )
    if not has_spread(values):
        raise InsufficientDataError(
            f"all {n} human values equal {values[0]:g}, so their spread cannot be "
            "estimated; label more items, or give the range of the values as bounds=(low, high)",
            n=n,
        )
    return values


def bootstrap_interval(
    y: npt.ArrayLike,
    *,
    confidence_level: float = 0.95,
    n_resamples: int = 10_000,
    rng: np.random.Generator | int = 0,
) -> Interval:
    """Percentiles of resampled means, the baseline of Oosterhuis et al. (KDD 2024).

    Too short with few labels.

    Raises
    ------
    InsufficientDataError
        With fewer than 2 values, or values that do not differ.
    """
    values = spread_values(y)
    n, generator = len(values), as_generator(rng)
    means = np.empty(n_resamples)
    for part in resample_blocks(n, n_resamples):
        rows = part.stop - part.start
        means[part] = values[generator.integers(0, n, (rows, n))].mean(axis=1)
    tail = 0.5 - confidence_level / 2
    lower, upper = np.quantile(means, [tail, 1 - tail]).tolist()
    mean = float(values.mean())
    return Interval(
        estimate=mean,
        lower=min(lower, mean),
        upper=max(upper, mean),
        confidence_level=confidence_level,
        method=InferCode.LABELS_BOOTSTRAP(),
        n_labeled=n,
        assumptions=(InferCode.ITEMS_SAMPLED(), InferCode.RESAMPLING()),
    )


# What every interval takes: values, a target, and how the labelled items were drawn.


Labels = Sequence[Any] | npt.NDArray[Any]
Target = Literal["population", "pool", "unlabeled"]


class Design(TypedDict, total=False):
    """How the labelled items were drawn; nothing means at random, one by one.

    Parameters
    ----------
    clusters, clusters_unlabeled : sequences of length n and N
        Items that belong together, such as answers to one question; drawn as a whole.
    """

    clusters: Labels | None
    clusters_unlabeled: Labels | None


def check_target(target: str) -> None:
    """Raise unless the target is one of the three."""
    require_one_of("target", target, get_args(Target))


def judge_correlation(y: FloatArray, yhat: FloatArray) -> float:
    """Pearson correlation; 0 where either side does not vary."""
    a, b = y - y.mean(), yhat - yhat.mean()
    size = math.sqrt((a @ a) * (b @ b))
    return float(a @ b) / size if size > 1e-300 else 0.0


# A labelled sample and the judged pool it came from, checked and coded.


@dataclass(frozen=True, kw_only=True, eq=False)
class JudgedSample:
    """Human values of n labelled items and judge values of all n + N items.

    Parameters
    ----------
    y : float64 array of shape (n, k)
        Human values; k outputs share the judge values (k = 1 for a mean, 2 for a ratio).
    x : float64 array of shape (n, p)
        Judge values of the labelled items.
    x_unlabeled : float64 array of shape (N, p)
    cluster, cluster_unlabeled : int64 arrays or None
        Codes over both sets; None when every item is its own cluster.
    penalty : float64 array of shape (p,) or None
        Ridge penalty on the slope of each judge column; None for none.
    """

    y: FloatArray
    x: FloatArray
    x_unlabeled: FloatArray
    cluster: IntArray | None
    cluster_unlabeled: IntArray | None
    penalty: FloatArray | None = None

    @classmethod
    def build(
        cls,
        y: npt.ArrayLike,
        yhat: npt.ArrayLike,
        yhat_unlabeled: npt.ArrayLike,
        **design: Unpack[Design],
    ) -> JudgedSample:
        """Check and code what the caller gave; see the class for shapes."""
        clusters, clusters_unlabeled = design.get("clusters"), design.get("clusters_unlabeled")
        human = as_values("y", y, columns=True)
        judge = as_values("yhat", yhat, columns=True)
        pool = as_values("yhat_unlabeled", yhat_unlabeled, columns=True)
        if len(pool) == 0:
            pool = pool.reshape(0, judge.shape[1])
        if len(human) != len(judge):
            raise DataError(
                f"{len(human)} human values and {len(judge)} judge values of the labelled items; "
                "yhat holds the judge's values of the same items as y, in the same order"
            )
        if judge.shape[1] != pool.shape[1]:
            raise DataError(f"yhat has {judge.shape[1]} columns, yhat_unlabeled {pool.shape[1]}")
        cluster, cluster_pool = _codes(clusters, clusters_unlabeled, len(human), len(pool))
        return cls(
            y=human,
            x=judge,
            x_unlabeled=pool,
            cluster=cluster,
            cluster_unlabeled=cluster_pool,
        )

    @property
    def n_labeled(self) -> int:
        """Number of labelled items, n."""
        return len(self.y)

    @property
    def n_unlabeled(self) -> int:
        """Number of other items, N."""
        return len(self.x_unlabeled)

    @property
    def n_units(self) -> int:
        """Number of independent labelled units: clusters, or items."""
        return self.n_labeled if self.cluster is None else len(np.unique(self.cluster))


# Several judges of the same items: their mean, and what they know beyond it.
# The mean of many judges is close to the best of them, and unshrunk weights waste that on noise
# (36 judges and 40 labels). What is estimated is therefore one slope for the mean, and slopes for
# the deviations from it under a ridge penalty that grants few degrees of freedom, by the number of
# labels: none up to 20. The penalty looks at judge values only, never at labels.


_LABELS_PER_SLOPE = 20.0
_FEWEST_FAILURES = 5  # labelled items with and without a failure, for a slope of their own


def combine_judges(
    judges: FloatArray, n_labeled: int, n_units: int
) -> tuple[FloatArray, FloatArray]:
    """Return columns to regress on, and the ridge penalty of each.

    Parameters
    ----------
    judges : float64 array of shape (n + N, p)
        The labelled items first. NaN where a judge failed.
    n_labeled, n_units : int
        Labelled items, and independent units among them.

    Returns
    -------
    tuple of float64 arrays of shape (n + N, q) and (q,)
        The mean of the judges (:func:`~rag_sourcebias.core.completions.mean_judge`); the share of
        judges that failed on the item, where 5 labelled items or more have a failure and 5 have
        none; from 20 labels on the principal components of what judges say beyond their mean.
    """
    answered = ~np.isnan(judges)
    mean = mean_judge(judges)
    columns = [np.where(np.isnan(mean), np.nanmean(mean), mean)]
    failed = 1 - answered.mean(axis=1)
    labeled = int((failed[:n_labeled] > 0).sum())
    if min(labeled, n_labeled - labeled) >= _FEWEST_FAILURES:
        columns.append(failed)
    penalty = [0.0] * len(columns)
    slopes = n_units / _LABELS_PER_SLOPE - 1
    if slopes > 0:
        extra, ridge = _beyond_mean(judges, answered, min(slopes, judges.shape[1] - 1), n_units)
        columns.extend(extra.T)
        penalty += [ridge] * extra.shape[1]
    return np.stack(columns, axis=1), np.array(penalty)


def _beyond_mean(
    judges: FloatArray, answered: npt.NDArray[np.bool_], slopes: float, n: int
) -> tuple[FloatArray, float]:
    """Principal components of the deviations from the mean, and a penalty for so many slopes."""
    filled = np.where(answered, judges, np.nanmean(judges, axis=0))
    scale = filled.std(axis=0)
    usable = scale > 1e-10 * np.maximum(filled.max(axis=0), -filled.min(axis=0))
    z = filled[:, usable]
    z -= z.mean(axis=0)  # in place: a million items by many judges are large
    z /= scale[usable]
    z -= z.mean(axis=1, keepdims=True)
    z -= z.mean(axis=0)
    spread, vectors = np.linalg.eigh(z.T @ z / len(z))
    kept = spread > 1e-9 * max(spread.max(initial=0.0), 1e-300)
    weights = n * spread[kept]
    if slopes >= len(weights):
        return z @ vectors[:, kept], 0.0
    low, high = 0.0, float(weights.sum()) / slopes  # Σ w/(w + λ) ≤ Σ w/λ
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (
            (middle, high) if (weights / (weights + middle)).sum() > slopes else (low, middle)
        )
    return z @ vectors[:, kept], high


def _codes(
    labeled: Labels | None, unlabeled: Labels | None, n: int, n_pool: int
) -> tuple[IntArray | None, IntArray | None]:
    """Code clusters of both sides over one vocabulary, in which the labelled side comes first."""
    if labeled is None:
        if unlabeled is not None:
            raise DataError(
                "clusters of the unlabelled items without clusters of the labelled ones"
            )
        return None, None
    if unlabeled is None and n_pool:
        raise DataError("clusters of the unlabelled items are missing (clusters_unlabeled)")
    first, second = np.asarray(labeled), np.asarray(unlabeled if n_pool else labeled[:0])
    if len(first) != n or len(second) != n_pool:
        raise DataError(
            f"{len(first)} and {len(second)} clusters for {n} labelled and {n_pool} other items"
        )
    values, codes = np.unique(first, return_inverse=True)
    place = np.searchsorted(values, second)
    place[place == len(values)] = 0
    known = values[place] == second if n and n_pool else np.zeros(n_pool, dtype=bool)
    extra = group_codes(second[~known])
    pool = place.astype(np.int64)
    pool[~known] = len(values) + extra
    return codes.astype(np.int64), pool


# Checks of values: outside the scale, or all the same.


def check_scale(values: FloatArray, low: float, high: float, *, ids: Sequence[str]) -> None:
    """Refuse human labels outside a scale.

    Parameters
    ----------
    values : float64 array of shape (n,)
        NaN (no value) passes.
    low, high : float
        Ends of the scale; both belong to it.
    ids : sequence of str
        Names of the items, for the message.

    Raises
    ------
    DataError
        Saying how many lie outside, and naming the first.
    """
    outside = np.flatnonzero((values < low) | (values > high))
    if len(outside):
        first = int(outside[0])
        raise DataError(
            f"{len(outside)} human label(s) outside the scale {low:g} … {high:g}, first "
            f"{values[first]:g} of item {ids[first]!r}; correct them, or state the scale they "
            "are on"
        )


def is_constant(values: FloatArray) -> bool:
    """Whether all values (NaN aside) are equal up to rounding, so that a judge tells nothing."""
    return not has_spread(values[~np.isnan(values)])


# Checks before an interval: the scale of the labels, and whether labelled items look random.
# If items were drawn at random, what is known of every item (the judge value, the group) is
# distributed alike among labelled and unlabelled items. The checks are deterministic and quick at
# a million items.


_FEWEST = 8  # labels; fewer can hardly look other than random
_ALARMS = 0.01  # the chance of a note on items that were drawn at random, at most


Drawn = Literal["clusters", "items", "both"]
_TYPICAL = 3.0  # standard errors within which single draws spread over clusters


def how_drawn(cluster: IntArray, labeled: npt.NDArray[np.bool_]) -> Drawn:
    """Tell how the labels of clustered items seem to have been drawn.

    Parameters
    ----------
    cluster : int64 array of shape (n,)
        Codes 0 … G − 1.
    labeled : bool array of shape (n,)

    Returns
    -------
    {"clusters", "items", "both"}
        ``"clusters"``: each is labelled whole or not at all. ``"items"``: as many clusters have a
        label as draws of single items would reach. ``"both"``: fewer, as where some clusters were
        drawn first and then items within them.
    """
    size = np.bincount(cluster)
    seen = np.bincount(cluster, weights=labeled)
    if np.all((seen == 0) | (seen == size)) and size.max(initial=1) > 1:
        return "clusters"
    n, total = int(labeled.sum()), len(labeled)
    drawn = np.arange(total - n + 1, total + 1, dtype=np.float64)
    sizes, place = np.unique(size, return_inverse=True)
    reached = 1 - np.array([float(np.prod(np.maximum(1 - s / drawn, 0.0))) for s in sizes])[place]
    spread = np.sqrt((reached * (1 - reached)).sum())
    return "items" if (seen > 0).sum() >= reached.sum() - _TYPICAL * spread else "both"


def check_items(items: JudgedItems) -> tuple[str, ...]:
    """Run :func:`check_random_labels` on the labelled and unlabelled of some items.

    Where whole clusters were labelled, such as all answers to some questions, clusters are
    compared by their mean judge value: their items were not drawn one by one.

    Parameters
    ----------
    items : JudgedItems

    Returns
    -------
    tuple of str
    """
    labeled = items.labeled
    if labeled.all() or not labeled.any():
        return ()
    if items.clusters is not None:
        code = group_codes(items.clusters)
        if how_drawn(code, labeled) == "clusters":
            whole = np.bincount(code, weights=labeled) > 0
            known = items.judged
            count = np.bincount(code[known], minlength=len(whole))
            total = np.bincount(code[known], weights=items.judge[known], minlength=len(whole))
            means = np.divide(total, count, out=np.full(len(whole), np.nan), where=count > 0)
            return check_random_labels(means, whole)
    return check_random_labels(items.judge, labeled, groups=items.groups)


def check_random_labels(
    values: FloatArray,
    labeled: npt.NDArray[np.bool_],
    *,
    groups: Sequence[str] | None = None,
) -> tuple[str, ...]:
    """Warn when the labelled items look as if they were not drawn at random from all items.

    Two tests, Holm-adjusted together: the distribution of judge values (Kolmogorov–Smirnov), and
    the share of each group (binomial tails, Bonferroni over groups).

    Parameters
    ----------
    values : float64 array of shape (n,)
        Judge values; NaN (the judge failed) is left out.
    labeled : bool array of shape (n,)
    groups : sequence of n str or None

    Returns
    -------
    tuple of str
        One note for each difference found; empty if none is, or with fewer than 8 labels.
    """
    known = ~np.isnan(values)
    x, rest = values[known & labeled], values[known & ~labeled]
    found: list[tuple[float | None, str]] = []
    if min(len(x), len(rest)) >= _FEWEST:
        found.append(_shape_check(x, rest))
    n_labeled = int(labeled.sum())
    if groups is not None and min(n_labeled, len(values) - n_labeled) >= _FEWEST:
        found.append(_group_check(groups, labeled))
    return tuple(
        f"{note} (p = {p:.2g}): they do not look drawn at random; draw them at random"
        for p, (_, note) in zip(adjust_p_values([p for p, _ in found]), found, strict=True)
        if p is not None and p < _ALARMS
    )


def _shape_check(x: FloatArray, rest: FloatArray) -> tuple[float, str]:
    from scipy.special import kolmogorov

    few, many = sorted((np.sort(x), np.sort(rest)), key=len)
    # the largest gap stands at or just before a value of the smaller sample
    gap = 0.0
    for side in ("left", "right"):
        shares = [np.searchsorted(values, few, side) / len(values) for values in (few, many)]
        gap = max(gap, float(np.abs(shares[0] - shares[1]).max()))
    size = math.sqrt(len(x) * len(rest) / (len(x) + len(rest)))
    return float(kolmogorov((size + 0.12 + 0.11 / size) * gap)), (
        f"the judge values of labelled items (mean {x.mean():.4g}) and unlabelled items (mean "
        f"{rest.mean():.4g}) are distributed differently (largest gap of the cumulative shares "
        f"{gap:.2g})"
    )


def _group_check(groups: Sequence[str], labeled: npt.NDArray[np.bool_]) -> tuple[float | None, str]:
    from scipy.special import bdtr, bdtrc

    names, code = np.unique(groups, return_inverse=True)
    if len(names) < 2:
        return None, ""
    hits, others = (
        np.bincount(code[side], minlength=len(names)).astype(np.float64)
        for side in (labeled, ~labeled)
    )
    n, m = int(hits.sum()), int(others.sum())
    share = (hits + others) / (n + m)
    count, size = (hits, n) if n <= m else (others, m)
    p = 2 * np.minimum(
        bdtr(count, size, share), np.where(count > 0, bdtrc(count - 1.0, size, share), 1.0)
    )
    worst = int(np.flatnonzero(p <= p.min() * (1 + 1e-6))[0])
    return float(min(1.0, p[worst] * len(names))), (
        f"group {str(names[worst])!r} makes up {hits[worst] / n:.1%} of the labelled and "
        f"{others[worst] / m:.1%} of the unlabelled items"
    )


_WHOLE = 1e-9  # a chance this near to 0 or 1 is rounding


def inclusion_probabilities(size: FloatArray, n: int) -> FloatArray:
    """Chances proportional to ``size``, capped at 1, that sum to ``n``.

    Parameters
    ----------
    size : float64 array of shape (m,)
        At least 0; infinite means certain.
    n : int
        At most the number of positive sizes, at least the number of infinite ones.
    """
    chance = np.zeros(len(size))
    certain = np.isinf(size)
    free = (size > 0) & ~certain
    while free.any():
        share = (n - int(certain.sum())) * size / float(size[free].sum())
        over = free & (share >= 1 - _WHOLE)
        if not over.any():
            chance[free] = share[free]
            break
        certain |= over
        free &= ~over
    chance[certain] = 1.0
    return chance


def residual_share(
    y: FloatArray, yhat: FloatArray, *, clusters: npt.ArrayLike | None = None
) -> tuple[float, float]:
    """Return 1 − r², and the standard error of its logarithm.

    The error is that of the difference of two log variances, by their influence values, which holds
    for rare labels too, where Fisher's z does not. Half a disagreement is added to two-valued
    labels: a judge that follows people on every label may part from them on others.

    Parameters
    ----------
    y : float64 array of shape (n,)
        Human values that differ.
    yhat : float64 array of shape (n,) or (n, p)
    clusters : array-like of length n, optional
        Items that belong together.
    """
    design = np.column_stack([np.ones(len(y)), yhat])
    residual = y - design @ np.linalg.lstsq(design, y, rcond=1e-10)[0]
    total, left = np.square(y - y.mean()), np.square(residual)
    span = float(np.ptp(y))
    extra = span * span / 2 if np.isin(y, (y.min(), y.max())).all() else 0.0
    both = max(float(left.sum()) + extra, 1e-12 * float(total.sum()))
    influence = total / total.sum() - left / both
    if clusters is not None:
        influence = np.bincount(group_codes(clusters), weights=influence)
    error = math.sqrt((influence @ influence) + (extra / both) ** 2)
    return min(both / float(total.sum()), 1.0), error
