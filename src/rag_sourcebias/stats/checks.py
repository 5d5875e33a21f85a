"""Checks before an interval: the scale of the labels, and whether labelled items look random.

If items were drawn at random, what is known of every item (the judge value, the group) is
distributed alike among labelled and unlabelled items. The checks are deterministic and quick at a
million items.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np

from rag_sourcebias.core.arrays import FloatArray
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.core.judgments import JudgedItems
from rag_sourcebias.stats.comparisons import adjust_p_values
from rag_sourcebias.stats.resampling import check_level
from rag_sourcebias.stats.samples import is_constant

_BINS = 1024
_FEWEST = 8  # labels; fewer can hardly look other than random


def check_items(items: JudgedItems, *, confidence_level: float = 0.99) -> tuple[str, ...]:
    """Run :func:`check_random_labels` on the labelled and unlabelled of some items.

    Where whole clusters were labelled, such as all answers to some questions, clusters are
    compared by their mean judge value: their items were not drawn one by one. Where items have
    strata, nothing is checked: they need not be drawn alike from all.

    Parameters
    ----------
    items : JudgedItems
    confidence_level : float

    Returns
    -------
    tuple of str
    """
    labeled = items.labeled
    if items.strata is not None or labeled.all() or not labeled.any():
        return ()
    if items.clusters is not None:
        _, code = np.unique(np.asarray(items.clusters), return_inverse=True)
        share = np.bincount(code, weights=labeled) / np.bincount(code)
        if np.all((share == 0) | (share == 1)):
            known = items.judged
            count = np.bincount(code[known], minlength=len(share))
            total = np.bincount(code[known], weights=items.judge[known], minlength=len(share))
            means = np.divide(total, count, out=np.full(len(share), np.nan), where=count > 0)
            return check_random_labels(
                means[share == 1], means[share == 0], confidence_level=confidence_level
            )
    groups = None if items.groups is None else np.asarray(items.groups)
    return check_random_labels(
        items.judge[labeled],
        items.judge[~labeled],
        labeled_groups=None if groups is None else groups[labeled].tolist(),
        unlabeled_groups=None if groups is None else groups[~labeled].tolist(),
        confidence_level=confidence_level,
    )


def check_random_labels(
    labeled: FloatArray,
    unlabeled: FloatArray,
    *,
    labeled_groups: Sequence[str] | None = None,
    unlabeled_groups: Sequence[str] | None = None,
    confidence_level: float = 0.99,
) -> tuple[str, ...]:
    """Warn when the labelled items look as if they were not drawn at random from all items.

    Three tests, Holm-adjusted together: the mean judge value of the labelled items against all
    items (saddlepoint tail of a mean of draws from the pool, Lugannani & Rice 1980, which stays
    right for few labels and skewed judges where z does not), the whole distribution
    (Kolmogorov–Smirnov), and the share of each group (binomial tails, Bonferroni over groups).
    Where more items are labelled than not, the roles are exchanged.

    Parameters
    ----------
    labeled, unlabeled : float64 arrays of shape (n,) and (N,)
        Judge values; NaN (the judge failed) is left out.
    labeled_groups, unlabeled_groups : sequence of str or None
        Group of each item, both or neither.
    confidence_level : float
        The chance that nothing is said when the items were drawn at random, at least.

    Returns
    -------
    tuple of str
        One note for each difference found; empty if none is, or with fewer than 8 labels.
    """
    check_level(confidence_level)
    if (labeled_groups is None) != (unlabeled_groups is None):
        raise DataError("groups are needed of the labelled and of the unlabelled items, or of none")
    x, rest = labeled[~np.isnan(labeled)], unlabeled[~np.isnan(unlabeled)]
    p_values: list[float | None] = [None, None, None]
    notes = ["", "", ""]
    if min(len(x), len(rest)) >= _FEWEST:
        p_values[0], notes[0] = _mean_check(x, rest)
        p_values[1], notes[1] = _shape_check(x, rest)
    if labeled_groups is not None and unlabeled_groups is not None:
        if len(labeled_groups) != len(labeled) or len(unlabeled_groups) != len(unlabeled):
            raise DataError("groups and values differ in length")
        if min(len(labeled), len(unlabeled)) >= _FEWEST:
            p_values[2], notes[2] = _group_check(labeled_groups, unlabeled_groups)
    adjusted = adjust_p_values(p_values)
    level = 1 - confidence_level
    return tuple(
        f"{note} (p = {p:.2g}): they do not look drawn at random; draw them at random, or weight "
        "or stratify by what decided"
        for p, note in zip(adjusted, notes, strict=True)
        if p is not None and p < level
    )


def _mean_check(x: FloatArray, rest: FloatArray) -> tuple[float | None, str]:
    small = x if len(x) <= len(rest) else rest
    pool = np.concatenate((x, rest))
    spread = float(pool.std())
    if is_constant(pool):
        return None, ""
    note = (
        f"the labelled items have a mean judge value of {x.mean():.4g}, the unlabelled of "
        f"{rest.mean():.4g}"
    )
    z = (pool - pool.mean()) / spread
    return _mean_tail(z, (float(small.mean()) - float(pool.mean())) / spread, len(small)), note


def _mean_tail(pool: FloatArray, mean: float, n: int) -> float:
    """Two-sided p of the mean of n draws from a standardised pool, doubled from one side."""
    from scipy.special import ndtr

    values, weights = _binned(pool if mean > 0 else -pool)
    mean = abs(mean)
    top = float(values.max())
    if mean >= top - 1e-9:
        share = float(weights[values >= top - 1e-9].sum())
        return float(min(1.0, 2 * share**n))
    tilt, low, high = 0.0, 0.0, math.inf
    for _ in range(100):
        power = np.exp(tilt * (values - top)) * weights
        total = float(power.sum())
        slope = float(power @ values) / total
        curve = max(float(power @ (values - slope) ** 2) / total, 1e-300)
        low, high = (tilt, high) if slope < mean else (low, tilt)
        step = tilt + (mean - slope) / curve
        if not low < step < high:
            step = (low + high) / 2 if math.isfinite(high) else 2 * low + 1
        if abs(step - tilt) <= 1e-9 * (1 + tilt):
            break
        tilt = step
    log_mgf = tilt * top + math.log(total)
    root = math.sqrt(max(2 * n * (tilt * mean - log_mgf), 0.0))
    scaled = tilt * math.sqrt(n * curve)
    if root < 0.2:  # near the centre the formula cancels, and p is large anyway
        return 1.0
    density = math.exp(-(root**2) / 2) / math.sqrt(2 * math.pi)
    return float(min(1.0, max(0.0, 2 * (ndtr(-root) + density * (1 / scaled - 1 / root)))))


def _binned(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Means and shares of equally wide bins; the pool itself where it is small."""
    if len(values) <= _BINS:
        return values, np.full(len(values), 1 / len(values))
    low, high = float(values.min()), float(values.max())
    code = np.minimum(((values - low) * (_BINS / (high - low))).astype(np.int32), _BINS - 1)
    count = np.bincount(code, minlength=_BINS)
    used = count > 0
    means = np.bincount(code, weights=values, minlength=_BINS)[used] / count[used]
    return means, count[used] / len(values)


def _shape_check(x: FloatArray, rest: FloatArray) -> tuple[float, str]:
    from scipy.special import kolmogorov

    few, many = (x, rest) if len(x) <= len(rest) else (rest, x)
    points, counts = np.unique(few, return_counts=True)
    up_to = np.cumsum(counts) / len(few)
    below = up_to - counts / len(few)
    # The largest gap stands at or just before a value of the smaller sample: no sort of the other.
    place = np.searchsorted(points, many)
    equal = many == points[np.minimum(place, len(points) - 1)]
    through = np.cumsum(np.bincount(place, minlength=len(points) + 1)[:-1])
    strictly = through - np.bincount(place[equal], minlength=len(points))[: len(points)]
    cdf_at, cdf_before = through / len(many), strictly / len(many)
    gap = float(max(np.abs(up_to - cdf_at).max(), np.abs(below - cdf_before).max()))
    size = math.sqrt(len(x) * len(rest) / (len(x) + len(rest)))
    note = (
        "the judge values of labelled and unlabelled items are distributed differently "
        f"(largest gap of the cumulative shares {gap:.2g})"
    )
    return float(kolmogorov((size + 0.12 + 0.11 / size) * gap)), note


def _group_check(labeled: Sequence[str], unlabeled: Sequence[str]) -> tuple[float | None, str]:
    from scipy.special import bdtr, bdtrc

    here, there = Counter(labeled), Counter(unlabeled)
    names = sorted({*here, *there})
    if len(names) < 2:
        return None, ""
    n, m = len(labeled), len(unlabeled)
    hits = np.array([here[name] for name in names], dtype=np.float64)
    others = np.array([there[name] for name in names], dtype=np.float64)
    share = (hits + others) / (n + m)
    count, size = (hits, n) if n <= m else (others, m)
    upper = np.where(count > 0, bdtrc(count - 1.0, size, share), 1.0)
    p = 2 * np.minimum(bdtr(count, size, share), upper)
    worst = int(np.flatnonzero(p <= p.min() * (1 + 1e-6))[0])
    note = (
        f"group {names[worst]!r} makes up {hits[worst] / n:.1%} of the labelled and "
        f"{others[worst] / m:.1%} of the unlabelled items"
    )
    return float(min(1.0, p[worst] * len(names))), note
