"""Both sources in a plane: main components, t-SNE ([K] Fig. 4) or UMAP."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from importlib.util import find_spec
from typing import Literal, TypeVar

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.errors import (
    DataError,
    InsufficientDataError,
    MissingExtraError,
    require_one_of,
)
from rag_sourcebias.core.values import FloatArray, Interval, as_generator, check_level, t_quantile
from rag_sourcebias.explain.data import PAIRS_HELD, SourceGeometry, SpectrumComparison, VectorMap
from rag_sourcebias.stats.clusters import clustered_mean

# Vectors of pairs, checked.


Real = TypeVar("Real", np.float32, np.float64)


def checked_pairs(
    human: npt.ArrayLike, other: npt.ArrayLike, *, at_least: int
) -> tuple[FloatArray, FloatArray]:
    """Return both sides as float64 arrays of the same shape (n, d).

    Raises
    ------
    DataError
        If they are no matrices of one shape or hold a number that is not finite.
    InsufficientDataError
        If there are fewer than ``at_least`` pairs.
    """
    first, second = (np.asarray(side, dtype=np.float64) for side in (human, other))
    if first.ndim != 2 or first.shape != second.shape:
        raise DataError(
            f"vectors of shapes {first.shape} and {second.shape}; expected two of one shape "
            "(pairs, dimension), row i of both being one pair"
        )
    for name, side in (("human", first), ("other", second)):
        if len(bad := np.flatnonzero(~np.isfinite(side).all(axis=1))):
            raise DataError(
                f"{len(bad)} {name} vector(s) hold NaN or infinity, first in row {bad[0]}; a "
                "vector must be finite"
            )
    if len(first) < at_least:
        raise InsufficientDataError(
            f"{len(first)} pairs; at least {at_least} are needed", n=len(first), n_needed=at_least
        )
    return first, second


def unit_rows(vectors: npt.NDArray[Real]) -> npt.NDArray[Real]:
    """Scale the rows of an array of shape (n, d) to length 1; a row of zeros stays."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1.0), dtype=vectors.dtype)


# How well a linear probe tells two sources apart, on pairs that it has not seen.


_MIN_PAIRS = 20
_PENALTIES = 10.0 ** np.arange(-6, 3)  # relative to the mean square of the singular values
_PROBE_ASSUMPTIONS = ("pairs are a random sample; for probes trained on as many pairs as these",)


def probe_accuracy(
    human_vectors: npt.ArrayLike,
    other_vectors: npt.ArrayLike,
    *,
    folds: int = 5,
    confidence_level: float = 0.95,
    rng: np.random.Generator | int = 0,
) -> tuple[Interval, Interval]:
    """Cross-validated accuracy of ridge regression on ±1 (with equal sizes: a shrunken LDA).

    Both versions of a document are in the same fold, and the penalty is chosen by generalised
    cross-validation within the training folds.

    Parameters
    ----------
    human_vectors, other_vectors : array_like of shape (n, d)
    folds : int
        At least 2 and at most n.

    Returns
    -------
    documents : Interval
        Share of documents assigned to their source; chance is 0.5.
    pairs : Interval
        Share of pairs of which the other version has the higher score; ties count half.

    Raises
    ------
    InsufficientDataError
        If there are fewer than 20 pairs.
    """
    human, other = checked_pairs(human_vectors, other_vectors, at_least=_MIN_PAIRS)
    n = len(human)
    if not 2 <= folds <= n:
        raise DataError(f"folds is {folds}; it must be between 2 and the {n} pairs")
    fold = as_generator(rng).permutation(n) % folds
    scores = np.empty((2, n))
    for held in range(folds):
        test, train = fold == held, fold != held
        weights, middle = _ridge(human[train], other[train])
        scores[0, test] = (human[test] - middle) @ weights
        scores[1, test] = (other[test] - middle) @ weights
    # A score of exactly 0 says nothing: half right.
    right = np.concatenate(((1 - np.sign(scores[0])) / 2, (1 + np.sign(scores[1])) / 2))
    above = (1 + np.sign(scores[1] - scores[0])) / 2
    found = (
        clustered_mean(values, clusters, confidence_level=confidence_level, bounds=(0.0, 1.0))
        for values, clusters in ((right, np.tile(np.arange(n), 2)), (above, np.arange(n)))
    )
    documents, pairs = (replace(interval, assumptions=_PROBE_ASSUMPTIONS) for interval in found)
    return documents, pairs


def _ridge(human: FloatArray, other: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Weights of the score and the point where it is 0."""
    x = np.concatenate((human, other))
    y = np.repeat((-1.0, 1.0), len(human))
    middle = x.mean(axis=0)
    left, values, rows = np.linalg.svd(x - middle, full_matrices=False)
    squares = values**2
    if not squares.sum() > 0:
        return np.zeros(x.shape[1]), middle
    inner = left.T @ y
    best, weights = np.inf, np.zeros(x.shape[1])
    for penalty in _PENALTIES * squares.mean():
        shrink = squares / (squares + penalty)
        residual = y @ y - 2 * (shrink * inner**2).sum() + (shrink**2 * inner**2).sum()
        loss = residual / (len(y) - 1 - shrink.sum()) ** 2 if shrink.sum() < len(y) - 1 else np.inf
        if loss < best:
            best = loss
            weights = rows.T @ (inner * values / (squares + penalty))
    return weights, middle


# Where the vectors of two sources lie: common shift, probe, anisotropy, map.


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
    human, other = checked_pairs(human_vectors, other_vectors, at_least=_MIN_PAIRS)
    differences = other - human
    rest = differences.sum(axis=0) - differences
    lengths = np.linalg.norm(rest, axis=1)
    products = np.einsum("ij,ij->i", differences, rest)
    return np.asarray(products / np.where(lengths > 0, lengths, 1.0))


def source_geometry(
    human_vectors: npt.ArrayLike,
    other_vectors: npt.ArrayLike,
    *,
    folds: int = 5,
    confidence_level: float = 0.95,
    rng: np.random.Generator | int = 0,
) -> SourceGeometry:
    """Describe how the vectors of two sources differ.

    Anisotropy is the mean cosine over *all* pairs of different documents of a source, not a sample
    of them; it and the common share have jackknife intervals (the statistics are means over pairs
    of documents, for which pseudo-values need no recomputation).

    Parameters
    ----------
    human_vectors, other_vectors : array_like of shape (n, d)
        Row i of both is one pair.
    folds : int
        Of the probe (:func:`~rag_sourcebias.explain.vectors.probe_accuracy`).

    Raises
    ------
    InsufficientDataError
        If there are fewer than 20 pairs.
    """
    human, other = checked_pairs(human_vectors, other_vectors, at_least=_MIN_PAIRS)
    single, paired = probe_accuracy(
        human, other, folds=folds, confidence_level=confidence_level, rng=rng
    )
    differences = other - human
    first, second = unit_rows(human), unit_rows(other)
    alike = [_pseudo_values(side) for side in (first, second)]
    n = len(human)

    def mean(values: FloatArray) -> Interval | None:
        try:
            return clustered_mean(values, np.arange(n), confidence_level=confidence_level)
        except InsufficientDataError:  # all alike: nothing is known about how much they vary
            return None

    return SourceGeometry(
        n=n,
        dimension=human.shape[1],
        shift=float(np.linalg.norm(differences.mean(axis=0))),
        common_share=mean(_common_share(differences)),
        probe_accuracy=single,
        probe_pair_accuracy=paired,
        twin_cosine=mean(np.einsum("ij,ij->i", first, second)),
        anisotropy_human=mean(alike[0]),
        anisotropy_other=mean(alike[1]),
        anisotropy_difference=mean(alike[1] - alike[0]),
    )


def map_vectors(human_vectors: npt.ArrayLike, other_vectors: npt.ArrayLike) -> VectorMap:
    """Coordinates of both sources on the two main components of all vectors (PCA, centred).

    Each axis points to where its largest loading is positive, so that a map is the same whichever
    library computed it.

    Parameters
    ----------
    human_vectors, other_vectors : array_like of shape (n, d)
        Row i of both is one pair.
    """
    human, other = checked_pairs(human_vectors, other_vectors, at_least=2)
    if human.shape[1] < 2:
        raise DataError(f"vectors of {human.shape[1]} component(s) have no plane; at least 2")
    joint = np.concatenate((human, other))
    joint -= joint.mean(axis=0)
    squares, axes = np.linalg.eigh(joint.T @ joint)
    plane = axes[:, :-3:-1]
    plane = plane * np.sign(plane[np.abs(plane).argmax(axis=0), [0, 1]])
    if (total := float(squares.sum())) <= 0:
        raise DataError("all vectors are alike; there is nothing to map")
    places = joint @ plane
    return VectorMap(
        human=places[: len(human)],
        other=places[len(human) :],
        variance_shares=tuple(float(square) / total for square in squares[:-3:-1]),
    )


def _pseudo_values(rows: FloatArray) -> FloatArray:
    """Jackknife values of the mean product of two different rows; their mean is that mean."""
    n = len(rows)
    with_others = (rows @ rows.sum(axis=0) - np.einsum("ij,ij->i", rows, rows)) / (n - 1)
    whole = with_others.mean()
    return np.asarray(n * whole - (n - 1) * (n * whole - 2 * with_others) / (n - 2))


def _common_share(differences: FloatArray) -> FloatArray:
    """Jackknife values of mean d_i·d_j (i ≠ j) over mean d_i·d_i."""
    products, squares = _pseudo_values(differences), np.einsum("ij,ij->i", *[differences] * 2)
    if not np.any(squares):
        return np.zeros(len(differences))
    share = products.mean() / squares.mean()
    return np.asarray(share + (products - share * squares) / squares.mean())


# Singular values of the vectors of two sources, and how they differ ([K] Fig. 6).


_EXACT_UP_TO = 200_000_000_000  # rows · columns · shorter side: some 10 s on one core
_SURPLUS = 16  # at least so many directions beyond those asked for: the last are inaccurate
_POWER_STEPS = 6
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
    sides = [
        unit_rows(side) if normalise else side
        for side in checked_pairs(human_vectors, other_vectors, at_least=_MIN_PAIRS)
    ]
    found = [_decompose(s - s.mean(axis=0) if centre else s, n_values, generator) for s in sides]
    values = [value for value, _, _ in found]
    m = int(min((value > _VANISHING * value[0]).sum() for value in values))
    if m == 0:
        raise InsufficientDataError("the vectors of a source are all alike after centring, or 0")
    values = [value[:m] for value in values]
    draws = _resampled_log_ratios(
        [side @ basis for side, (_, basis, _) in zip(sides, found, strict=True)],
        m,
        centre=centre,
        resamples=resamples,
        rng=generator,
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


def _percent(log_ratio: FloatArray) -> FloatArray:
    return 100 * np.expm1(log_ratio)


# Both sources in a plane: main components, t-SNE ([K] Fig. 4) or UMAP.


MapMethod = Literal["pca", "tsne", "umap"]

_MIN_PAIRS_ON_MAP = 10
_NEIGHBOURS = 15
_TSNE_PERPLEXITY = 30.0
_TSNE_SPREAD, _UMAP_SPREAD = 1e-4, 10.0  # of the start, as both libraries choose it
_LIBRARIES = {"pca": ("", ""), "tsne": ("sklearn", "scikit-learn"), "umap": ("umap", "umap-learn")}


def map_sources(
    human_vectors: npt.ArrayLike,
    other_vectors: npt.ArrayLike,
    *,
    method: MapMethod = "pca",
    seed: int = 0,
) -> VectorMap:
    """Place both versions of documents in a plane.

    t-SNE (perplexity 30, or a third of the texts less one) and UMAP (15 neighbours) work on
    vectors of length 1, start from the two main components and take a fixed seed: on one machine
    and with one release of their library, the map is the same every time. Only near neighbours
    mean something there: distances between groups do not.

    Parameters
    ----------
    human_vectors, other_vectors : array_like of shape (n, d)
        Row i of both is one pair.
    method : {"pca", "tsne", "umap"}

    Raises
    ------
    DataError
        If the method is unknown, or as :func:`~rag_sourcebias.explain.vectors.map_vectors`.
    InsufficientDataError
        If t-SNE or UMAP is asked for with fewer than 10 pairs.
    MissingExtraError
        If scikit-learn (t-SNE) or umap-learn is not installed.
    """
    require_map(method)
    if method == "pca":
        return map_vectors(human_vectors, other_vectors)
    human, other = (
        unit_rows(side) for side in checked_pairs(human_vectors, other_vectors, at_least=1)
    )
    n = len(human)
    if n < _MIN_PAIRS_ON_MAP:
        raise InsufficientDataError(
            f"a {method} map needs at least {_MIN_PAIRS_ON_MAP} pairs, there are {n}",
            n=n,
            n_needed=_MIN_PAIRS_ON_MAP,
        )
    flat = map_vectors(human, other)
    start = np.concatenate((flat.human, flat.other))
    start = start / start[:, 0].std()
    both = np.concatenate((human, other))
    places = _tsne(both, start, seed) if method == "tsne" else _umap(both, start, seed)
    return VectorMap(human=places[:n], other=places[n:], variance_shares=(), method=method)


def require_map(method: str) -> None:
    """Raise unless a method is known and its library is installed.

    Raises
    ------
    DataError, MissingExtraError
        As :func:`map_sources`.
    """
    require_one_of("map method", method, _LIBRARIES)
    module, package = _LIBRARIES[method]
    if module and find_spec(module) is None:
        raise MissingExtraError(package=package, extra="maps", feature=f"a map by {method}")


def _tsne(vectors: FloatArray, start: FloatArray, seed: int) -> FloatArray:
    from sklearn.manifold import TSNE

    return np.asarray(
        TSNE(
            perplexity=min(_TSNE_PERPLEXITY, (len(vectors) - 1) / 3),
            init=_TSNE_SPREAD * start,
            random_state=seed,
        ).fit_transform(vectors),
        dtype=np.float64,
    )


def _umap(vectors: FloatArray, start: FloatArray, seed: int) -> FloatArray:
    with warnings.catch_warnings():
        # On import: that Tensorflow is not there, which is not needed.
        warnings.simplefilter("ignore")
        from umap import UMAP

        return np.asarray(
            UMAP(
                n_neighbors=min(_NEIGHBOURS, len(vectors) - 1),
                init=(_UMAP_SPREAD / np.abs(start).max() * start).astype(np.float32),
                random_state=seed,
                n_jobs=1,  # what makes it the same every time
            ).fit_transform(vectors),
            dtype=np.float64,
        )
