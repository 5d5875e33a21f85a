"""Label distributions pushed up or down by a signed λ ([R] Eq. 16–19).

For λ ≥ 0 the mass λ is taken from the lowest grades first and the rest is rescaled to 1: what is
left is the upper (1 − λ) tail of the distribution, so with the survival function
S_r = P(grade ≥ r) the perturbed survival function is min(1, S_r / (1 − λ)). For λ < 0 the same
holds mirrored. The top grade (λ ≥ 0) and the bottom grade (λ < 0) are never reduced. At λ = ±1
nothing would be left of a distribution without mass on the favoured grade; the limits are defined
as all mass on that grade, whatever the judge believed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rag_sourcebias.errors import DataError
from rag_sourcebias.intervals.utility import FloatArray, IntArray, RankedLabels

__all__ = ["UtilityPath", "perturb", "perturbed_utilities"]


def perturb(probs: FloatArray, lam: float) -> FloatArray:
    """Return the distributions perturbed by λ ([R] Eq. 16–18).

    Parameters
    ----------
    probs : float64 array of shape (m, L)
        Rows sum to 1.
    lam : float
        In [−1, 1]; 0 returns the distributions, 1 all mass on the last grade, −1 on the first.

    Returns
    -------
    float64 array of shape (m, L)
        Rows sum to 1.
    """
    _check_lambda(np.asarray(lam))
    if lam < 0:
        return perturb(probs[:, ::-1], -lam)[:, ::-1]
    tails = _tail_shares(_running(probs.T[:0:-1])[::-1], 1.0 - lam)
    tails = np.column_stack([np.ones(len(probs)), tails.T, np.zeros(len(probs))])
    return tails[:, :-1] - tails[:, 1:]


def perturbed_utilities(labels: RankedLabels, lam: float | FloatArray) -> FloatArray:
    """Return the utility of every query under labels perturbed by λ ([R] Eq. 19).

    Parameters
    ----------
    labels : RankedLabels
    lam : float or float64 array of shape (n_queries,)
        In [−1, 1]; one for all queries or one for each.

    Returns
    -------
    float64 array of shape (n_queries,)
        Not decreasing in λ; at λ = 0 it is ``labels.utilities()``.
    """
    return UtilityPath.of(labels).at(lam)


@dataclass(frozen=True, slots=True, eq=False)
class UtilityPath:
    """Utilities as a function of λ, prepared once and cheap to evaluate.

    Parameters
    ----------
    upper, lower : float64 arrays of shape (L − 1, m)
        P(grade ≥ r) and P(grade < r) of every document with weight, for r = 1 … L − 1.
    steps : float64 array of shape (L − 1,)
        Gain (or grade, with ``gain_of_mean``) gained from r − 1 to r.
    floor : float
        Gain (or grade) of the lowest grade.
    starts, present : int64 arrays
        First document and index of every query that has documents.
    weights, query, n_queries, gain_of_mean
        As in :class:`RankedLabels`, for the documents with weight.
    """

    upper: FloatArray
    lower: FloatArray
    steps: FloatArray
    floor: float
    weights: FloatArray
    query: IntArray
    starts: IntArray
    present: IntArray
    n_queries: int
    gain_of_mean: bool

    @classmethod
    def of(cls, labels: RankedLabels) -> UtilityPath:
        """Prepare ``labels``; documents of weight 0 are dropped."""
        used: slice | IntArray = slice(None)
        if not labels.weights.all():
            used = np.flatnonzero(labels.weights)
        columns, query = np.ascontiguousarray(labels.probs[used].T), labels.query[used]
        levels = (
            np.arange(len(labels.gains), dtype=np.float64) if labels.gain_of_mean else labels.gains
        )
        first = np.ones(len(query), dtype=bool)
        first[1:] = query[1:] != query[:-1]
        starts = np.flatnonzero(first)
        return cls(
            upper=_running(columns[:0:-1])[::-1],
            lower=_running(columns[:-1]),
            steps=np.diff(levels),
            floor=float(levels[0]),
            weights=labels.weights[used],
            query=query,
            starts=starts,
            present=query[starts],
            n_queries=labels.n_queries,
            gain_of_mean=labels.gain_of_mean,
        )

    def at(self, lam: float | FloatArray) -> FloatArray:
        """Return the utilities at λ, one for all queries or one for each; shape (n_queries,)."""
        if np.ndim(lam) == 0:
            lam = float(lam)
            if not -1.0 <= lam <= 1.0:
                _check_lambda(np.asarray(lam))
            tails = self.upper if lam >= 0 else self.lower
            return self._total(self._level(tails, 1.0 - abs(lam), rising=lam >= 0))
        lam = np.asarray(lam, dtype=np.float64)
        _check_lambda(lam)
        shift = lam[self.query]
        rising, keep = shift >= 0, 1.0 - np.abs(shift)
        level = np.empty(len(shift))
        level[rising] = self._level(self.upper[:, rising], keep[rising], rising=True)
        level[~rising] = self._level(self.lower[:, ~rising], keep[~rising], rising=False)
        return self._total(level)

    def _level(self, tails: FloatArray, keep: float | FloatArray, *, rising: bool) -> FloatArray:
        """Perturbed gain (or grade) of every document."""
        if isinstance(keep, float) and keep > 0:  # one division per document, not per grade
            gained = (self.steps @ np.minimum(tails, keep)) / keep
        else:
            gained = self.steps @ _tail_shares(tails, keep)
        if rising:
            return np.asarray(self.floor + gained)
        return np.asarray(self.floor + float(self.steps.sum()) - gained)

    def _total(self, level: FloatArray) -> FloatArray:
        gain = np.exp2(level) - 1.0 if self.gain_of_mean else level
        total = np.zeros(self.n_queries)
        if len(self.starts):
            total[self.present] = np.add.reduceat(self.weights * gain, self.starts)
        return total


def _running(columns: FloatArray) -> FloatArray:
    """Cumulative sums down the rows, at most 1; a tail without mass is exactly 0."""
    sums = np.empty(columns.shape)
    total: FloatArray | float = 0.0
    for row, column in zip(sums, columns, strict=True):
        np.add(column, total, out=row)
        total = row
    return np.minimum(sums, 1.0, out=sums)


def _tail_shares(tails: FloatArray, keep: float | FloatArray) -> FloatArray:
    """min(1, tail / keep); 1 where nothing is kept."""
    if np.ndim(keep) == 0:
        return np.minimum(tails, keep) / keep if keep else np.ones_like(tails)
    kept = np.where(keep == 0, 1.0, keep)
    return np.where(keep == 0, 1.0, np.minimum(tails, keep) / kept)


def _check_lambda(lam: FloatArray) -> None:
    if not np.all(np.abs(lam) <= 1):  # written so that NaN counts as wrong
        bad = lam.ravel()[~(np.abs(lam.ravel()) <= 1)]
        raise DataError(f"lambda {bad[0]} is outside [-1, 1]")
