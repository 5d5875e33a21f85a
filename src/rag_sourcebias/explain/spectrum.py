"""Singular values of the vectors of two sources, and how they differ ([K] Fig. 6)."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError, InsufficientDataError
from rag_sourcebias.explain.vectors import checked_pairs, unit_rows
from rag_sourcebias.inference.quantiles import as_generator, check_level, t_quantile
from rag_sourcebias.types.arrays import FloatArray
from rag_sourcebias.types.explain import PAIRS_HELD, SpectrumComparison
from rag_sourcebias.types.intervals import Interval

__all__ = ["singular_values", "spectrum"]


_EXACT_UP_TO = 200_000_000_000  # rows · columns · shorter side: some 10 s on one core
_SURPLUS = 16  # at least so many directions beyond those asked for: the last are inaccurate
_POWER_STEPS = 6
_MIN_PAIRS = 20
_MIN_RESAMPLES = 50
_VANISHING = 1e-6  # of the largest: what float32 vectors without full rank leave
_ASSUMPTIONS = (
    "pairs are a random sample of documents",
    "log ratios of singular values are nearly normal; compared at this number of documents, as "
    "singular values depend on it",
)


def singular_values(
    vectors: npt.ArrayLike, *, n_values: int | None = None, rng: np.random.Generator | int = 0
) -> FloatArray:
    """Largest singular values of a matrix, in descending order.

    Those of ``numpy.linalg.svd``; above a size, when only some are asked for, by randomised
    subspace iteration (Halko, Martinsson and Tropp 2011, algorithm 4.4). The last ones are then
    least accurate: 0.3 % too small at the 50th where values fall as 1/√i, 0.001 % for 1/i.

    Parameters
    ----------
    vectors : array_like of shape (n, d)
    n_values : int, optional
        All by default.

    Returns
    -------
    float64 array of shape (min(n_values, n, d),)
    """
    return _decompose(np.asarray(vectors, dtype=np.float64), n_values, as_generator(rng))[0]


def spectrum(
    human_vectors: npt.ArrayLike,
    other_vectors: npt.ArrayLike,
    *,
    n_values: int | None = None,
    resamples: int = 200,
    centre: bool = False,
    normalise: bool = False,
    confidence_level: float = 0.95,
    rng: np.random.Generator | int = 0,
) -> SpectrumComparison:
    """Compare the singular values of two sources, index by index.

    [K] does not say whether vectors are centred or normalised; by default they are taken as they
    are. The first value then holds the mean vector of a source (its anisotropy).

    Pairs are resampled, both versions together. Ends are ± t standard errors of the log ratio
    around the estimate, not percentiles: a resample repeats documents, which raises large values
    and lowers small ones. Values beyond 0.6 · n have none: they vanish in resamples (a band over
    all 60 values of 60 pairs without a difference held in none of 120 simulations).

    Parameters
    ----------
    human_vectors, other_vectors : array_like of shape (n, d)
        Row i of both is one pair.
    n_values : int, optional
        Largest values to compare; all by default.
    resamples : int
        At least 50.

    Raises
    ------
    DataError
        If shapes differ or a number is not finite.
    InsufficientDataError
        If there are fewer than 20 pairs.
    """
    check_level(confidence_level)
    if resamples < _MIN_RESAMPLES:
        raise DataError(f"resamples is {resamples}; at least {_MIN_RESAMPLES} are needed")
    if n_values is not None and n_values < 1:
        raise DataError(f"n_values is {n_values}; at least 1 is needed")
    generator = as_generator(rng)
    pairs = checked_pairs(human_vectors, other_vectors, at_least=_MIN_PAIRS)
    sides = [unit_rows(side) if normalise else side for side in pairs]
    found = [_decompose(_centred(s) if centre else s, n_values, generator) for s in sides]
    values = [value for value, _, _ in found]
    m = int(min((value > _VANISHING * value[0]).sum() for value in values))
    if m == 0:
        raise InsufficientDataError("the vectors of a source are all alike after centring, or 0")
    values = [value[:m] for value in values]
    reduced = [side @ basis for side, (_, basis, _) in zip(sides, found, strict=True)]
    draws = _resampled_log_ratios(reduced, m, centre=centre, resamples=resamples, rng=generator)
    log_ratio = np.log(values[1] / values[0])
    n = len(sides[0])
    held = min(m, int(PAIRS_HELD * n))
    t = t_quantile(0.5 + confidence_level / 2, n - 1)
    means = [
        _mean_difference(log_ratio[part], draws[:, part], level=confidence_level, n=n)
        for part in (slice(0, max(1, m // 10)), slice(m // 2, m))
    ]
    draws = draws[:, :held]
    error = np.full(m, np.nan)
    error[:held] = draws.std(axis=0, ddof=1)
    scale = np.where(error[:held] > 0, error[:held], 1)
    farthest = (np.abs(draws - draws.mean(axis=0)) / scale).max(axis=1)
    at_once = max(t, float(np.quantile(farthest, confidence_level)))
    ends = [_percent(log_ratio + sign * error) for sign in (-t, t, -at_once, at_once)]
    return SpectrumComparison(
        human=values[0],
        other=values[1],
        difference=_percent(log_ratio),
        lower=ends[0],
        upper=ends[1],
        band_lower=ends[2],
        band_upper=ends[3],
        head=means[0],
        tail=means[1] if held == m else None,
        confidence_level=confidence_level,
        n=n,
        resamples=resamples,
        centred=centre,
        normalised=normalise,
        method=found[0][2],
    )


def _decompose(
    matrix: FloatArray, n_values: int | None, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray, str]:
    """Largest singular values, right singular vectors (and surplus ones), and the method."""
    shorter = min(matrix.shape)
    wanted = min(n_values or shorter, shorter)
    kept = min(wanted + max(_SURPLUS, wanted // 2), shorter)
    if matrix.size * shorter <= _EXACT_UP_TO or 4 * kept > shorter:
        if len(matrix) > 2 * matrix.shape[1]:  # same values and right vectors, no left ones
            matrix = np.asarray(np.linalg.qr(matrix, mode="r"), dtype=np.float64)
        _, values, rows = np.linalg.svd(matrix, full_matrices=False)
        return values[:wanted], rows[:kept].T, "exact"
    basis = rng.standard_normal((matrix.shape[1], kept))
    for _ in range(_POWER_STEPS):
        left, _ = np.linalg.qr(matrix @ basis)
        basis, _ = np.linalg.qr(matrix.T @ left)
    _, values, rows = np.linalg.svd(matrix @ basis, full_matrices=False)
    return values[:wanted], basis @ rows.T, "randomised"


def _resampled_log_ratios(
    sides: list[FloatArray], m: int, *, centre: bool, resamples: int, rng: np.random.Generator
) -> FloatArray:
    """ln(other / human) of the m largest singular values of resampled pairs; (resamples, m).

    Within the directions kept of each side, as eigenvalues of the weighted Gram matrix.
    """
    n = len(sides[0])
    draws = np.empty((resamples, m))
    for row in range(resamples):
        weights = np.bincount(rng.integers(n, size=n), minlength=n).astype(np.float64)
        logs = []
        for side in sides:
            gram = side.T @ (side * weights[:, None])
            if centre:
                mean = weights @ side
                gram -= np.outer(mean, mean) / n
            squares = np.linalg.eigvalsh(gram)[::-1][:m]
            # A resample holds about 63 % of the documents: with few, the last values vanish.
            logs.append(np.log(np.maximum(squares, _VANISHING**2 * squares[0])) / 2)
        draws[row] = logs[1] - logs[0]
    return draws


def _mean_difference(log_ratio: FloatArray, draws: FloatArray, *, level: float, n: int) -> Interval:
    """Geometric mean of the ratios, as a difference in percent."""
    width = t_quantile(0.5 + level / 2, n - 1) * float(draws.mean(axis=1).std(ddof=1))
    centre = float(log_ratio.mean())
    low, middle, high = (100 * math.expm1(centre + sign * width) for sign in (-1, 0, 1))
    return Interval(
        estimate=middle,
        lower=low,
        upper=high,
        confidence_level=level,
        method="paired bootstrap",
        n_labeled=n,
        assumptions=_ASSUMPTIONS,
    )


def _centred(matrix: FloatArray) -> FloatArray:
    centred: FloatArray = matrix - matrix.mean(axis=0)
    return centred


def _percent(log_ratio: FloatArray) -> FloatArray:
    percent: FloatArray = 100 * np.expm1(log_ratio)
    return percent
