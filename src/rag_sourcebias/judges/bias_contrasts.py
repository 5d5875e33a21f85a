"""Whether a judge favours one group more than another."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np
import numpy.typing as npt

from rag_sourcebias.inference.multiplicity import adjust_p_values
from rag_sourcebias.inference.quantiles import t_quantile
from rag_sourcebias.types.arrays import FloatArray, IntArray
from rag_sourcebias.types.intervals import Interval
from rag_sourcebias.types.judge_bias import BiasDifference

__all__ = ["bias_differences"]

_ALL_PAIRS = 6  # groups; with more, each is held against the rest


def bias_differences(
    errors: FloatArray,
    groups: Sequence[str],
    clusters: IntArray,
    *,
    confidence_level: float = 0.95,
) -> tuple[BiasDifference, ...]:
    """Differences of bias between groups, with Holm-adjusted p-values; smallest p first.

    Up to six groups are compared pair by pair, more each with the rest. The variance is summed
    within clusters, so that systems that answered the same questions are compared as pairs; for
    independent items it is Welch's test.

    Returns
    -------
    tuple of BiasDifference
        Comparisons with a side of fewer than 2 clusters, or without spread, are left out.
    """
    names, code = np.unique(np.asarray(groups), return_inverse=True)
    if len(names) < 2:
        return ()
    sides: list[tuple[str, str, npt.NDArray[np.bool_], npt.NDArray[np.bool_]]]
    if len(names) == 2 or len(names) <= _ALL_PAIRS:
        sides = [
            (str(names[a]), str(names[b]), code == a, code == b)
            for a, b in combinations(range(len(names)), 2)
        ]
    else:
        sides = [(str(name), "rest", code == a, code != a) for a, name in enumerate(names)]
    found = [
        (a, b, compared)
        for a, b, one, other in sides
        if (compared := _compare(errors, one, other, clusters, confidence_level)) is not None
    ]
    adjusted = adjust_p_values([p for _, _, (_, p) in found])
    result = [
        BiasDifference(group=a, other=b, difference=difference, p_value=p, p_adjusted=float(q))
        for (a, b, (difference, p)), q in zip(found, adjusted, strict=True)
        if q is not None
    ]
    return tuple(sorted(result, key=lambda d: d.p_value))


def _compare(
    errors: FloatArray,
    one: npt.NDArray[np.bool_],
    other: npt.NDArray[np.bool_],
    clusters: IntArray,
    level: float,
) -> tuple[Interval, float] | None:
    from scipy.special import stdtr

    size = int(clusters.max()) + 1
    means, variances, counts = [], [], []
    joint = np.zeros(size)
    for sign, side in ((1, one), (-1, other)):
        rows = np.flatnonzero(side)
        g = len(np.unique(clusters[rows]))
        if g < 2:
            return None
        mean = float(errors[rows].mean())
        influence = (errors[rows] - mean) / len(rows) * math.sqrt(g / (g - 1))
        sums = np.bincount(clusters[rows], weights=influence, minlength=size)
        means.append(mean)
        variances.append(float((sums**2).sum()))
        counts.append(g)
        joint += sign * sums
    variance = float((joint**2).sum())
    if variance < 1e-24:
        return None
    either = len(np.unique(clusters[one | other]))
    degrees = min(
        sum(variances) ** 2 / sum(v**2 / (g - 1) for v, g in zip(variances, counts, strict=True)),
        either - 1.0,
    )
    estimate, error = means[0] - means[1], math.sqrt(variance)
    width = t_quantile(0.5 + level / 2, degrees) * error
    interval = Interval(
        estimate=estimate,
        lower=estimate - width,
        upper=estimate + width,
        confidence_level=level,
        method="cluster-robust difference of means",
        n_labeled=either,
        assumptions=("clusters are a random sample",),
    )
    return interval, float(2 * stdtr(degrees, -abs(estimate) / error))
