"""Where the vectors of two sources lie: common shift, probe, anisotropy, map."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError, InsufficientDataError
from rag_sourcebias.explain.probe import probe_accuracy
from rag_sourcebias.explain.vectors import checked_pairs, unit_rows
from rag_sourcebias.inference import clustered_mean
from rag_sourcebias.types.arrays import FloatArray
from rag_sourcebias.types.explain import SourceGeometry, VectorMap
from rag_sourcebias.types.intervals import Interval

__all__ = ["map_vectors", "positions_along_source", "source_direction", "source_geometry"]

_MIN_PAIRS = 20


def source_direction(human_vectors: npt.ArrayLike, other_vectors: npt.ArrayLike) -> FloatArray:
    """Mean difference other − human of the versions, at length 1; shape (d,).

    Parameters
    ----------
    human_vectors, other_vectors : array_like of shape (n, d)
        Row i of both is one pair.

    Raises
    ------
    DataError
        If shapes differ, a number is not finite, or the mean difference is 0.
    """
    human, other = checked_pairs(human_vectors, other_vectors, at_least=1)
    shift = (other - human).mean(axis=0)
    if not np.any(shift):
        raise DataError(f"the versions of {len(human)} pairs differ by 0 on average")
    direction: FloatArray = shift / np.linalg.norm(shift)
    return direction


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
    positions: FloatArray = products / np.where(lengths > 0, lengths, 1.0)
    return positions


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
        Of the probe (:func:`~rag_sourcebias.explain.probe.probe_accuracy`).

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
        return _mean_or_none(values, confidence_level)

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
    values: FloatArray = n * whole - (n - 1) * (n * whole - 2 * with_others) / (n - 2)
    return values


def _common_share(differences: FloatArray) -> FloatArray:
    """Jackknife values of mean d_i·d_j (i ≠ j) over mean d_i·d_i."""
    products, squares = _pseudo_values(differences), np.einsum("ij,ij->i", *[differences] * 2)
    if not np.any(squares):
        return np.zeros(len(differences))
    share = products.mean() / squares.mean()
    values: FloatArray = share + (products - share * squares) / squares.mean()
    return values


def _mean_or_none(values: FloatArray, level: float) -> Interval | None:
    try:
        return clustered_mean(values, np.arange(len(values)), confidence_level=level)
    except InsufficientDataError:  # all alike: nothing is known about how much they vary
        return None
