"""Dual calibration of an interval for a mean utility ([R] §6, Eq. 16–26)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations_with_replacement
from math import factorial, floor, prod, sqrt
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import CalibrationError, DataError
from rag_sourcebias.inference.quantiles import as_generator
from rag_sourcebias.intervals.crc.critical import INSIDE, check_values
from rag_sourcebias.intervals.crc.limit import Errors, negative_share, solve_level
from rag_sourcebias.intervals.crc.perturb import UtilityPath
from rag_sourcebias.intervals.crc.ranks import paper_misses, tail_mass
from rag_sourcebias.intervals.crc.recalibrate import balance
from rag_sourcebias.intervals.crc.select import Batches, smallest_lambda
from rag_sourcebias.intervals.utility import FloatArray, RankedLabels
from rag_sourcebias.types.intervals import Interval

__all__ = ["CAVEAT", "CRCCalibration", "calibrate_dual", "crc_interval"]

CAVEAT = (
    "leaves out the sampling error of the unlabelled queries: under-covers their mean, and far "
    "more the population mean"
)
"""What a reader must know of a CRC interval over bootstrap batches (METHODS §4.5)."""

_LISTED = 8  # queries up to which every batch is listed: 6,435 distinct ones at 8
_LOOSE = 0.01  # normal quantile, for a first guess


@dataclass(frozen=True, slots=True, kw_only=True)
class CRCCalibration:
    """A pair of λ calibrated on labelled queries.

    Parameters
    ----------
    lambda_low, lambda_high : float
        Bounds in [−1, 1], ``lambda_low <= lambda_high``; both may be on one side of 0.
    lambda_center : float
        λ* of the labelled queries, moved into the bounds: the point estimate.
    confidence_level : float
    n_labeled : int
    n_batches : int or None
        Bootstrap batches M; None is the limit of infinitely many.
    """

    lambda_low: float
    lambda_high: float
    lambda_center: float
    confidence_level: float
    n_labeled: int
    n_batches: int | None


def calibrate_dual(
    labels: RankedLabels,
    y: FloatArray,
    *,
    confidence_level: float,
    n_batches: int | None = None,
    indices: npt.NDArray[np.integer[Any]] | None = None,
    rng: np.random.Generator | int = 0,
) -> CRCCalibration:
    """Calibrate λ_low and λ_high on bootstrap batches of the labelled queries ([R] Eq. 22–25).

    The bounds are the tightest that leave, on each side, at most a share ½(α − (1 − α)/M) of the
    M batches with their human mean outside (sums within 1e-9 are inside). Where ties let the
    bounds pass each other, both are the λ between them nearest 0.

    Parameters
    ----------
    labels : RankedLabels
        Judge labels of exactly the labelled queries.
    y : float64 array of shape (n_queries,)
        Their human utilities.
    confidence_level : float
    n_batches : int, optional
        M batches of n queries; [R] uses 10,000. None (default) is the limit M → ∞: with up to 8
        queries every batch is listed, beyond that a saddlepoint approximation is used. The limit
        is deterministic.
    indices : integer array of shape (M, any), optional
        Queries of each batch; overrides ``n_batches`` and ``rng``.
    rng : numpy.random.Generator or int

    Raises
    ------
    CalibrationError
        If no λ exists: fewer than 1/α − 1 batches, fewer than two queries, or human values beyond
        what the labels can reach.
    """
    check_values(labels, y)
    n, alpha = labels.n_queries, tail_mass(confidence_level)
    if n < 2:
        raise CalibrationError(f"{n} labelled queries cannot be resampled; at least 2 are needed")
    path = UtilityPath.of(labels)
    center = balance(path, labels, y)
    sides = _both_ways(path, np.asarray(y, dtype=np.float64), center)
    drawn: int | None = None
    if indices is None and n_batches is not None:
        indices = as_generator(rng).integers(0, n, size=(n_batches, n))
    if indices is not None:
        batches, drawn = Batches(_checked(indices, n)), len(indices)
        misses = paper_misses(drawn, confidence_level, what="bootstrap batches")
        high, low = (_select(side, batches, misses) for side in sides)
    elif n <= _LISTED:
        batches, misses = _every_batch(n), floor(alpha / 2 * n**n)
        high, low = (_select(side, batches, misses) for side in sides)
    else:
        high, low = (_limit(side, float(alpha / 2)) for side in sides)
    low = -low
    if low > high:
        low = high = float(np.clip(0.0, high, low))
    return CRCCalibration(
        lambda_low=low,
        lambda_high=high,
        lambda_center=float(np.clip(center, low, high)),
        confidence_level=confidence_level,
        n_labeled=n,
        n_batches=drawn,
    )


def crc_interval(calibration: CRCCalibration, labels: RankedLabels) -> Interval:
    """Return [Û(Q, λ_low), Û(Q, λ_high)] for the mean utility of unlabelled queries ([R] Eq. 20).

    Parameters
    ----------
    calibration : CRCCalibration
    labels : RankedLabels
        Judge labels of the unlabelled queries.
    """
    if not labels.n_queries:
        raise DataError("no unlabelled queries to give an interval for")
    path = UtilityPath.of(labels)
    lower, estimate, upper = (
        float(path.at(lam).mean())
        for lam in (calibration.lambda_low, calibration.lambda_center, calibration.lambda_high)
    )
    return Interval(
        estimate=min(max(estimate, lower), upper),
        lower=lower,
        upper=upper,
        confidence_level=calibration.confidence_level,
        method="crc (paper)",
        target="unlabeled",
        n_labeled=calibration.n_labeled,
        n_unlabeled=labels.n_queries,
        assumptions=(
            "labelled and unlabelled queries are drawn from the same population",
            "the judge errs alike on both",
            "the mean of the unlabelled queries is distributed like a bootstrap mean of the "
            "labelled ones around the judge's value (Eq. 27); it is not",
        ),
        notes=(CAVEAT,),
    )


class _Side(NamedTuple):
    """Errors rising in λ, a λ in their middle and the errors there."""

    errors: Errors
    center: float
    there: FloatArray


def _both_ways(path: UtilityPath, y: FloatArray, center: float) -> tuple[_Side, _Side]:
    """Return the side that bounds from above, and the mirror image of the one from below."""
    there = path.at(center) - y
    rise = _Side(lambda lam: path.at(lam) - y, center, there)
    return rise, _Side(lambda lam: y - path.at(-lam), -center, -there)


def _select(side: _Side, batches: Batches, misses: int) -> float:
    total = int(batches.weights.sum())
    share = min(0.5, (misses + 1 + 4.0 * sqrt(misses + 1)) / total)
    guess = solve_level(side.errors, share, start=side.center, known=side.there, tolerance=_LOOSE)
    return smallest_lambda(side.errors, batches, misses, guess=guess)


def _limit(side: _Side, share: float) -> float:
    lam = solve_level(side.errors, share, start=side.center, known=side.there)
    if lam == 1.0 and negative_share(side.errors(1.0)) > share:
        raise CalibrationError(
            "no lambda covers enough of the calibration sets: human values lie beyond what the "
            "labels can reach"
        )
    return -1.0 if lam <= -INSIDE and negative_share(side.errors(-1.0)) <= share else lam


def _checked(indices: npt.NDArray[np.integer[Any]], n: int) -> npt.NDArray[np.intp]:
    if indices.ndim != 2 or (len(indices) and not indices.size):
        raise DataError(f"batch indices of shape {indices.shape}; (batches, queries) is expected")
    lowest, highest = int(indices.min(initial=0)), int(indices.max(initial=0))
    if lowest < 0 or highest >= n:
        bad = lowest if lowest < 0 else highest
        raise DataError(f"batch index {bad} with {n} labelled queries")
    return indices.astype(np.intp, copy=False)


def _every_batch(n: int) -> Batches:
    """List the distinct batches of n out of n queries, weighted by their number of orders."""
    rows = list(combinations_with_replacement(range(n), n))
    orders = [factorial(n) // prod(factorial(row.count(i)) for i in set(row)) for row in rows]
    return Batches(np.array(rows, dtype=np.intp), np.array(orders, dtype=np.int64))
