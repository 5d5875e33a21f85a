"""Where writing by a language model moves vectors: directions estimated from pairs."""

import math
from collections.abc import Callable
from functools import partial

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.data import FloatArray
from rag_sourcebias.core.errors import DataError, InsufficientDataError
from rag_sourcebias.retrieval.cache import normalized
from rag_sourcebias.retrieval.projection import ProjectionMethod, SourceProjection

_FORECAST_FROM = 20  # pairs
_MIN_RELIABILITY = 0.5
_MIN_PAIRS = 4  # two halves of two
_CHECK_ALIGNMENT_FROM = 20
_ALIGNED_T = 3.0


def fit_projection(
    human: npt.ArrayLike,
    other: npt.ArrayLike,
    *,
    method: ProjectionMethod = "mean",
    n_directions: int = 1,
    strength: float = 1.0,
    encoder: str = "",
) -> SourceProjection:
    """Estimate from twins what has to be taken out of vectors to make them say nothing of a source.

    With δ the mean of ``other − human`` over the pairs:

    - ``"mean"`` removes the component along δ, orthogonally;
    - ``"pca"`` removes the leading right singular vectors of the differences. They are not
      centred: centring would take out δ, which is the bias itself.

    Parameters
    ----------
    human, other : array_like of shape (m, d)
        Vectors of the human documents and of their rewrites; row i of both is one pair.
    method : {"mean", "pca"}
    n_directions : int
        Only ``"pca"`` has more than one.
    strength : float in [0, 1]
        0 leaves vectors as they are, 1 removes the directions entirely.
    encoder : str
        Fingerprint of the encoder, kept to refuse vectors of another one.

    Returns
    -------
    SourceProjection
        Its ``reliability`` is the mean cosine of the principal angles between the directions from
        every other pair and from the rest, stepped up to all pairs (Spearman-Brown).

    Raises
    ------
    DataError
        If the shapes differ, a number is not finite, the sides are equal, or the rows do not look
        like pairs: twins are then no closer to each other than to other documents.
    InsufficientDataError
        With too few pairs: ``reliability`` below 0.5, or fewer than 10 pairs per direction for
        ``"pca"``.
    """
    first, second = _pairs(human, other)
    _check(method, n_directions, shape=first.shape)
    find: Callable[[FloatArray], FloatArray] = (
        partial(_leading, count=n_directions) if method == "pca" else _mean_direction
    )
    differences = second - first
    directions = find(differences)
    reliability = _reliability(differences, find)
    return SourceProjection(
        directions=directions.astype(np.float32),
        strength=strength,
        method=method,
        n_pairs=len(first),
        reliability=reliability,
        encoder=encoder,
    )


def _pairs(human: npt.ArrayLike, other: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    first, second = (np.asarray(side, dtype=np.float64) for side in (human, other))
    for name, side in (("human", first), ("other", second)):
        bad = np.flatnonzero(~np.isfinite(side).all(axis=1))
        if len(bad):
            raise DataError(
                f"{len(bad)} {name} vector(s) hold NaN or infinity, first in row {bad[0]}"
            )
    _check_alignment(first, second)
    return first, second


def _check_alignment(first: FloatArray, second: FloatArray) -> None:
    """Refuse rows that are not pairs: twins must be closer than documents far apart in the list."""
    n = len(first)
    if n < _CHECK_ALIGNMENT_FROM:
        return
    human, other = normalized(first), normalized(second)
    closer = np.einsum("ij,ij->i", human, other - np.roll(other, n // 2, axis=0))
    if closer.mean() <= _ALIGNED_T * closer.std() / math.sqrt(n):
        raise DataError(
            f"the rows do not look like pairs: the two vectors of a row are on average only "
            f"{closer.mean():.3f} closer (cosine) than vectors of different rows; row i of both "
            "arrays must be a document and its rewrite"
        )


def _check(method: str, n_directions: int, *, shape: tuple[int, ...]) -> None:
    pairs, dimension = shape
    if not 1 <= n_directions < dimension:
        raise DataError(
            f"n_directions is {n_directions}; vectors of {dimension} dimensions allow 1 to "
            f"{dimension - 1}"
        )
    needed = 10 * n_directions if method == "pca" else _MIN_PAIRS
    if pairs < needed:
        raise InsufficientDataError(
            f"{pairs} pairs are too few for method {method!r} with {n_directions} direction(s) in "
            f"{dimension} dimensions; at least {needed} are needed",
            n=pairs,
            n_needed=needed,
        )


def _mean_direction(differences: FloatArray) -> FloatArray:
    mean = differences.mean(axis=0)
    length = float(np.linalg.norm(mean))
    return np.asarray(mean / length if length > 0 else mean)[:, None]


def _leading(differences: FloatArray, count: int) -> FloatArray:
    """Right singular vectors of the largest singular values, columns of an array (d, count)."""
    if len(differences) < differences.shape[1]:
        return np.asarray(np.linalg.svd(differences, full_matrices=False)[2][:count].T)
    return np.asarray(np.linalg.eigh(differences.T @ differences)[1][:, ::-1][:, :count])


def _reliability(differences: FloatArray, find: Callable[[FloatArray], FloatArray]) -> float:
    halves = find(differences[::2]), find(differences[1::2])
    overlap = halves[0].T @ halves[1]
    # Of one signed direction the sign counts: halves that point apart agree in nothing.
    signed = find is _mean_direction
    angles = overlap.ravel() if signed else np.linalg.svd(overlap, compute_uv=False)
    half = min(max(float(angles.mean()), 0.0), 1.0)
    whole = 2 * half / (1 + half)
    if whole < _MIN_RELIABILITY:
        n = len(differences)
        needed = _pairs_needed(differences) if signed else None
        raise InsufficientDataError(
            f"{n} pairs do not determine the direction: two halves of them agree with cosine "
            f"{half:.2f}; "
            + (
                "how many would do cannot be told from them, and the sources may not differ"
                if needed is None
                else f"{needed} are likely to do"
            ),
            n=n,
            n_needed=needed,
        )
    return whole


def _pairs_needed(differences: FloatArray) -> int | None:
    """Pairs that will most likely determine the mean difference; None where few tell nothing.

    The squared length of the mean stands against the spread of single differences; of the first
    the lower end of its interval is taken, and half as many pairs again for the noise of halves.
    """
    n = len(differences)
    own = np.einsum("ij,ij->i", differences, differences)
    by_pair = (differences @ differences.sum(axis=0) - own) / (n - 1)  # with all others
    length, spread = float(by_pair.mean()), float(own.mean())
    least = length - 1.28 * 2 * float(by_pair.std(ddof=1)) / math.sqrt(n)
    if n < _FORECAST_FROM or least <= 0:
        return None
    return max(n + 1, math.ceil(1.5 * (spread - length) / least))
