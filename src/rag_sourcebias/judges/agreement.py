"""Chance-corrected agreement: Cohen's kappa and Krippendorff's alpha, with intervals."""

from __future__ import annotations

import numpy as np

from rag_sourcebias.inference.clusters import clustered_mean
from rag_sourcebias.inference.quantiles import check_level
from rag_sourcebias.judges.association import resampled_weights
from rag_sourcebias.judges.kappa import cohen_kappa, krippendorff_alpha
from rag_sourcebias.types.arrays import FloatArray, IntArray
from rag_sourcebias.types.intervals import Interval
from rag_sourcebias.types.judge_audit import Agreement

__all__ = ["agreement_of"]

_MOST_GRADES = 25
_UNDEFINED = 0.01  # share of resamples that may be undefined
_LEVELS = ("kappa", "kappa_linear", "kappa_quadratic", "alpha_ordinal", "alpha_interval")


def agreement_of(
    human: FloatArray,
    judge: FloatArray,
    clusters: IntArray,
    *,
    confidence_level: float = 0.95,
    resamples: int = 1000,
    rng: np.random.Generator | int = 0,
) -> Agreement | None:
    """Measure agreement, with cluster bootstrap percentile intervals.

    Parameters
    ----------
    human, judge : float64 arrays of shape (n,)
        A judge value that is no human grade is rounded to the nearest.
    clusters : int64 array of shape (n,)
        Codes 0 … G − 1.

    Returns
    -------
    Agreement or None
        None where the human labels are not grades (more than 25 different values, or one), or the
        judge answers on another scale (outside the human grades by more than half a step).
    """
    check_level(confidence_level)
    grades = np.unique(human)
    if not 2 <= len(grades) <= _MOST_GRADES:
        return None
    step = float(np.diff(grades).min())
    known = np.unique(judge)
    own = len(known) <= _MOST_GRADES and bool(np.all(np.mod(known - grades[0], step) == 0))
    if own and known[0] >= grades[0] - 2 * step and known[-1] <= grades[-1] + 2 * step:
        grades = np.union1d(grades, known)  # a grade only the judge uses is still a grade
    elif known[0] < grades[0] - step / 2 or known[-1] > grades[-1] + step / 2:
        return None
    middle = (grades[1:] + grades[:-1]) / 2
    code_h, code_j = np.searchsorted(grades, human), np.searchsorted(middle, judge)
    k = len(grades)
    cells = code_h * k + code_j
    used, place = np.unique(cells, return_inverse=True)
    # tables of clusters, only for the cells that occur: a resample is then one matrix product
    g = int(clusters.max()) + 1
    per_cluster = np.bincount(clusters * len(used) + place, minlength=g * len(used))
    per_cluster = per_cluster.reshape(g, len(used)).astype(np.float64)

    def tables(weights: FloatArray) -> FloatArray:
        full = np.zeros((len(weights), k * k))
        full[:, used] = weights @ per_cluster
        return full.reshape(-1, k, k)

    once = _statistics(tables(np.ones((1, g))), grades)
    blocks = resampled_weights(np.arange(g), resamples=resamples, rng=rng)
    drawn = np.concatenate([_statistics(tables(w), grades) for w in blocks], axis=1)
    intervals = {
        name: _percentile(float(once[i, 0]), drawn[i], confidence_level, name, g)
        for i, name in enumerate(_LEVELS)
    }
    return Agreement(
        n_grades=k,
        rounded=bool(np.any(grades[code_j] != judge)),
        exact=clustered_mean(
            (code_h == code_j).astype(np.float64),
            clusters,
            confidence_level=confidence_level,
            bounds=(0.0, 1.0),
        ),
        **intervals,
    )


def _statistics(tables: FloatArray, grades: FloatArray) -> FloatArray:
    return np.stack(
        [
            *(cohen_kappa(tables, grades, power=power) for power in (0, 1, 2)),
            *(krippendorff_alpha(tables, grades, ordinal=ordinal) for ordinal in (True, False)),
        ]
    )


def _percentile(
    estimate: float, drawn: FloatArray, level: float, name: str, g: int
) -> Interval | None:
    undefined = np.isnan(drawn)
    if np.isnan(estimate) or undefined.mean() > _UNDEFINED:
        return None
    lower, upper = np.quantile(drawn[~undefined], [(1 - level) / 2, (1 + level) / 2])
    return Interval(
        estimate=estimate,
        lower=min(float(lower), estimate),
        upper=max(float(upper), estimate),
        confidence_level=level,
        method=f"{name.replace('_', ' ')}, cluster bootstrap",
        n_labeled=g,
        assumptions=("labelled items (clusters) are a random sample",),
    )
