"""Vectors of two sources: the direction between them, their spectra, a map of both."""

from __future__ import annotations

import math
from importlib.util import find_spec
from typing import Literal

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.data import FloatArray
from rag_sourcebias.core.errors import (
    DataError,
    InsufficientDataError,
    MissingExtraError,
    as_generator,
    check_level,
    require_at_least,
    require_one_of,
)
from rag_sourcebias.core.finding import Interval
from rag_sourcebias.explain.data import PAIRS_HELD, SpectrumComparison, VectorMap
from rag_sourcebias.infer.findings import InferCode
from rag_sourcebias.infer.means import t_quantile
from rag_sourcebias.retrieval.cache import normalized

# Vectors of pairs, checked.


_MIN_PAIRS = 20


def enough_pairs(human: npt.ArrayLike, other: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return both sides as float64 arrays.

    Raises
    ------
    InsufficientDataError
        If there are fewer than 20 pairs.
    """
    first, second = (np.asarray(side, dtype=np.float64) for side in (human, other))
    if len(first) < _MIN_PAIRS:
        raise InsufficientDataError(
            f"{len(first)} pairs; at least {_MIN_PAIRS} are needed",
            n=len(first),
            n_needed=_MIN_PAIRS,
        )
    return first, second


# The direction between two sources.


def positions_along_source(
    human_vectors: npt.ArrayLike, other_vectors: npt.ArrayLike
) -> FloatArray:
    """How far each other version lies from its human one along the source direction.

    The direction of a pair is the mean difference of all *other* pairs: one that held its own
    difference would place it too far.

    Parameters
    ----------
    human_vectors, other_vectors : array_like of shape (n, d)
        Row i of both is one pair.

    Returns
    -------
    float64 array of shape (n,)
        In the unit of the vectors; 0 is no difference.

    Raises
    ------
    InsufficientDataError
        If there are fewer than 20 pairs.
    """
    human, other = enough_pairs(human_vectors, other_vectors)
    differences = other - human
    rest = differences.sum(axis=0) - differences
    lengths = np.linalg.norm(rest, axis=1)
    products = np.einsum("ij,ij->i", differences, rest)
    return np.asarray(products / np.where(lengths > 0, lengths, 1.0))


# Singular values of the vectors of two sources, and how they differ ([K] Fig. 6).


_MIN_RESAMPLES = 50
_VANISHING = 1e-6  # of the largest: what float32 vectors without full rank leave
_ASSUMPTIONS = (
    InferCode.PAIRS_SAMPLED(),
    InferCode.SPECTRUM_NORMAL(),
)


def spectrum(
    human_vectors: npt.ArrayLike,
    other_vectors: npt.ArrayLike,
    *,
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
    resamples : int
        At least 50.

    Raises
    ------
    DataError
        If there are too few resamples.
    InsufficientDataError
        If there are fewer than 20 pairs.
    """
    check_level(confidence_level)
    require_at_least(_MIN_RESAMPLES, resamples=resamples)
    sides = [
        normalized(side) if normalise else side
        for side in enough_pairs(human_vectors, other_vectors)
    ]
    found = [_decompose(side - side.mean(axis=0) if centre else side) for side in sides]
    values = [value for value, _ in found]
    m = int(min((value > _VANISHING * value[0]).sum() for value in values))
    if m == 0:
        raise InsufficientDataError("the vectors of a source are all alike after centring, or 0")
    values = [value[:m] for value in values]
    draws = _resampled_log_ratios(
        [side @ basis for side, (_, basis) in zip(sides, found, strict=True)],
        m,
        centre=centre,
        resamples=resamples,
        rng=as_generator(rng),
    )
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
    return SpectrumComparison(
        human=values[0],
        other=values[1],
        difference=_percent(log_ratio),
        band_lower=_percent(log_ratio - at_once * error),
        band_upper=_percent(log_ratio + at_once * error),
        head=means[0],
        tail=means[1] if held == m else None,
        confidence_level=confidence_level,
        n=n,
        resamples=resamples,
        centred=centre,
        normalised=normalise,
    )


def _decompose(matrix: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return singular values, largest first, and right singular vectors as columns."""
    if len(matrix) > 2 * matrix.shape[1]:  # same values and right vectors, no left ones
        matrix = np.asarray(np.linalg.qr(matrix, mode="r"), dtype=np.float64)
    _, values, rows = np.linalg.svd(matrix, full_matrices=False)
    return values, rows.T


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
        method=InferCode.PAIRED_BOOTSTRAP(),
        n_labeled=n,
        assumptions=_ASSUMPTIONS,
    )


def _percent(log_ratio: FloatArray) -> FloatArray:
    return 100 * np.expm1(log_ratio)


# Both sources in a plane: main components or t-SNE ([K] Fig. 4).


_MIN_PAIRS_ON_MAP = 10
_TSNE_PERPLEXITY = 30.0
_TSNE_SPREAD = 1e-4  # of the start, as scikit-learn chooses it


def map_sources(
    human_vectors: npt.ArrayLike,
    other_vectors: npt.ArrayLike,
    *,
    method: Literal["pca", "tsne"] = "pca",
    seed: int = 0,
) -> VectorMap:
    """Place both versions of documents in a plane.

    PCA is of all vectors, centred; each axis points to where its largest loading is positive, so
    that a map is the same whichever library computed it.

    t-SNE (perplexity 30, or a third of the texts less one) works on vectors of length 1, starts
    from the two main components and takes a fixed seed: on one machine and with one release of
    scikit-learn, the map is the same every time. Only near neighbours mean something there:
    distances between groups do not.

    Parameters
    ----------
    human_vectors, other_vectors : array_like of shape (n, d)
        Row i of both is one pair.
    method : {"pca", "tsne"}

    Raises
    ------
    DataError
        If the method is unknown, or all vectors are alike.
    InsufficientDataError
        If t-SNE is asked for with fewer than 10 pairs.
    MissingExtraError
        If t-SNE is asked for and scikit-learn is not installed.
    """
    require_map(method)
    both = np.concatenate((human_vectors, other_vectors)).astype(np.float64)
    n = len(both) // 2
    if method == "pca":
        places, shares = _main_components(both)
    elif n < _MIN_PAIRS_ON_MAP:
        raise InsufficientDataError(
            f"a {method} map needs at least {_MIN_PAIRS_ON_MAP} pairs, there are {n}",
            n=n,
            n_needed=_MIN_PAIRS_ON_MAP,
        )
    else:
        places, shares = _tsne(normalized(both), seed), ()
    return VectorMap(human=places[:n], other=places[n:], variance_shares=shares, method=method)


def _main_components(vectors: FloatArray) -> tuple[FloatArray, tuple[float, ...]]:
    """Return the places along the two main components, and their shares of the variance."""
    centred = vectors - vectors.mean(axis=0)
    squares, axes = np.linalg.eigh(centred.T @ centred)
    plane = axes[:, :-3:-1]
    plane = plane * np.sign(plane[np.abs(plane).argmax(axis=0), [0, 1]])
    if (total := float(squares.sum())) <= 0:
        raise DataError("all vectors are alike; there is nothing to map")
    return centred @ plane, tuple(float(square) / total for square in squares[:-3:-1])


def require_map(method: str) -> None:
    """Raise unless a method is known and its library is installed.

    Raises
    ------
    DataError, MissingExtraError
        As :func:`map_sources`.
    """
    require_one_of("map method", method, ("pca", "tsne"))
    if method == "tsne" and find_spec("sklearn") is None:
        raise MissingExtraError(package="scikit-learn", extra="maps", feature="a map by tsne")


def _tsne(vectors: FloatArray, seed: int) -> FloatArray:
    from sklearn.manifold import TSNE

    start, _ = _main_components(vectors)
    return np.asarray(
        TSNE(
            perplexity=min(_TSNE_PERPLEXITY, (len(vectors) - 1) / 3),
            init=_TSNE_SPREAD * (start / start[:, 0].std()),
            random_state=seed,
        ).fit_transform(vectors),
        dtype=np.float64,
    )
