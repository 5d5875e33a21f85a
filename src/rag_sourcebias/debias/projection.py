"""An encoder whose vectors are projected as they come."""

from __future__ import annotations

import hashlib
import io
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.data import Float32Array, FloatArray
from rag_sourcebias.core.errors import (
    DataError,
    InsufficientDataError,
    UnsupportedVersionError,
)
from rag_sourcebias.core.protocols import Encoder
from rag_sourcebias.io.files import PathLike, read_arrays, sound, write_atomic

# Projecting rows in parts that stay in the processor's cache.


_CHUNK_BYTES = 1 << 19  # of a second-level cache of one megabyte, half
_UNIT = 1e-3  # a length this close to 1 is meant to be 1
_VANISHED = 1e-6  # what is left of a vector is float32 rounding


def project_rows(
    vectors: npt.NDArray[np.floating],
    target: Float32Array,
    *,
    directions: Float32Array,
    strength: float,
) -> None:
    """Write vectors − strength · (vectors·directions)·directionsᵀ, unit rows scaled to length 1.

    Parameters
    ----------
    vectors, target : arrays of shape (n, d)
        The same array or apart.
    directions : float32 array of shape (d, k)
        Orthonormal columns.
    strength : float in (0, 1]

    Raises
    ------
    DataError
        If a number is not finite; other rows may then be written already.
    """
    n, width = vectors.shape
    step = max(1, _CHUNK_BYTES // (4 * width))
    subtracted = np.float32(strength) * directions.T
    for start in range(0, n, step):
        rows = np.asarray(vectors[start : start + step], dtype=np.float32)
        with np.errstate(over="ignore"):  # what is too large to be squared is refused
            lengths = np.linalg.norm(rows, axis=1)
        if not np.isfinite(lengths).all():
            row = start + int(np.flatnonzero(~np.isfinite(lengths))[0])
            raise DataError(f"vector {row} holds NaN or infinity")
        left = rows - (rows @ directions) @ subtracted
        left_lengths = np.linalg.norm(left, axis=1)
        scaled = (np.abs(lengths - 1) < _UNIT) & (left_lengths > _VANISHED)
        target[start : start + step] = left / np.where(scaled, left_lengths, 1)[:, None]


# Taking the component that tells the source out of vectors, stored ones included.


ProjectionMethod = Literal["mean", "pca"]

_SCHEMA_VERSION = 1
_SCALARS = ("strength", "method", "n_pairs", "reliability", "encoder")


@dataclass(frozen=True, kw_only=True, eq=False)
class SourceProjection:
    """The map x − strength · (x·directions)·directionsᵀ, and where it comes from.

    Parameters
    ----------
    directions : float32 array of shape (d, k)
        Orthonormal columns.
    strength : float in [0, 1]
    method : {"mean", "pca"}
    n_pairs : int
        Pairs it was estimated from.
    reliability : float in [0, 1]
        How well the pairs determine the directions: see :func:`fit_projection`.
    encoder : str
        Fingerprint of the encoder of the pairs, empty if not known.

    Raises
    ------
    DataError
        If the parts do not fit together.
    """

    directions: Float32Array = field(repr=False)
    strength: float
    method: ProjectionMethod
    n_pairs: int
    reliability: float
    encoder: str = ""

    def __post_init__(self) -> None:
        if not 0 <= self.strength <= 1:
            raise DataError(f"strength is {self.strength}; expected a number from 0 to 1")
        if self.method not in get_args(ProjectionMethod):
            raise DataError(f"method {self.method!r} is not one of mean, pca")
        shape = self.directions.shape
        if len(shape) != 2:
            raise DataError(f"directions have shape {shape}; expected (dimension, directions)")
        product = self.directions.T.astype(np.float64) @ self.directions
        if not np.allclose(product, np.eye(shape[1]), rtol=0, atol=1e-4):
            raise DataError("the directions are not orthonormal: this is not a projection")

    @property
    def dimension(self) -> int:
        """Length of the vectors."""
        return int(self.directions.shape[0])

    @property
    def matrix(self) -> Float32Array:
        """The map as a matrix of shape (d, d), applied as ``vectors @ matrix``."""
        wide = self.directions.astype(np.float64)
        product = wide @ wide.T
        return np.asarray(np.eye(self.dimension) - self.strength * product, dtype=np.float32)

    @cached_property
    def fingerprint(self) -> str:
        """Identity of the map."""
        numbers = np.ascontiguousarray(self.directions, dtype="<f4").tobytes()
        digest = hashlib.blake2b(numbers, digest_size=16).hexdigest()
        return f"{self.method}:{self.strength!r}:{digest}"

    def apply(
        self, vectors: npt.NDArray[np.floating], *, out: Float32Array | None = None
    ) -> Float32Array:
        """Project vectors; rows of length 1 (within 0.001) are scaled to length 1 again.

        A row that lies in the removed directions entirely becomes (nearly) 0 and is not scaled.
        Applying at strength 1 twice is applying once, up to rounding; strength 0 copies bit by bit.

        Parameters
        ----------
        vectors : float array of shape (n, d)
            float32 without a copy; may be memory-mapped.
        out : float32 array of shape (n, d), optional
            Where to write; ``vectors`` itself projects in place.

        Returns
        -------
        float32 array of shape (n, d)

        Raises
        ------
        DataError
            If a shape is wrong or ``out`` overlaps the vectors, or, at a strength above 0, a number
            is not finite (other rows may then be written to ``out`` already).
        """
        if vectors.ndim != 2 or vectors.shape[1] != self.dimension:
            raise DataError(
                f"vectors have shape {vectors.shape}; expected (n, {self.dimension}), as the pairs "
                "the projection was fitted on"
            )
        target = _target(vectors, out)
        if self.strength == 0:
            np.copyto(target, vectors)
        else:
            project_rows(vectors, target, directions=self.directions, strength=self.strength)
        return target


def write_projection(projection: SourceProjection, path: PathLike) -> None:
    """Write a projection as a NumPy ``.npz`` file; numbers are read back exactly.

    Raises
    ------
    DataError
        If the folder is missing or not writable.
    """
    content = io.BytesIO()
    np.savez(
        content,
        schema_version=_SCHEMA_VERSION,
        directions=projection.directions,
        strength=projection.strength,
        method=projection.method,
        n_pairs=projection.n_pairs,
        reliability=projection.reliability,
        encoder=projection.encoder,
    )
    write_atomic(path, content.getvalue())


def read_projection(path: PathLike) -> SourceProjection:
    """Read what :func:`write_projection` wrote.

    Raises
    ------
    DataError
        If the file is missing or holds no complete projection.
    UnsupportedVersionError
        If it was written by a release with another schema.
    """
    expected = "a file of write_projection"
    data = read_arrays(path, expected=expected)
    with sound(path, expected, names_file=False):
        version = data["schema_version"].item()
        if version != _SCHEMA_VERSION:
            raise UnsupportedVersionError(
                f"projection of schema version {version!r}; this release reads version "
                f"{_SCHEMA_VERSION}"
            )
        scalars: dict[str, Any] = {name: data[name].item() for name in _SCALARS}
        return SourceProjection(directions=data["directions"].astype(np.float32), **scalars)


def _target(vectors: npt.NDArray[np.floating], out: Float32Array | None) -> Float32Array:
    if out is None:
        return np.empty(vectors.shape, np.float32)
    if out.shape != vectors.shape or out.dtype != np.float32:
        raise DataError(
            f"out is {out.dtype} of shape {out.shape}; expected float32 of shape {vectors.shape}"
        )
    if np.may_share_memory(vectors, out) and not (
        out.dtype == vectors.dtype
        and out.ctypes.data == vectors.ctypes.data
        and out.strides == vectors.strides
    ):
        raise DataError("out overlaps the vectors; give the vectors themselves or another array")
    return out


# Where writing by a language model moves vectors: directions estimated from pairs.


Directions = Callable[[FloatArray], FloatArray]

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
    find: Directions = partial(_leading, count=n_directions) if method == "pca" else _mean_direction
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
        if side.ndim != 2:
            raise DataError(f"{name} vectors have shape {side.shape}; expected (pairs, dimension)")
        if not len(side):
            raise DataError(
                f"there are no {name} vectors; a direction needs both documents of every pair"
            )
    if first.shape != second.shape:
        raise DataError(
            f"human vectors have shape {first.shape} and other vectors {second.shape}; row i of "
            "both must be one pair, encoded by one encoder"
        )
    for name, side in (("human", first), ("other", second)):
        bad = np.flatnonzero(~np.isfinite(side).all(axis=1))
        if len(bad):
            raise DataError(
                f"{len(bad)} {name} vector(s) hold NaN or infinity, first in row {bad[0]}"
            )
    if np.array_equal(first, second):
        raise DataError(
            "the human and the other vectors are equal; give the vectors of one source each"
        )
    _check_alignment(first, second)
    return first, second


def _check_alignment(first: FloatArray, second: FloatArray) -> None:
    """Refuse rows that are not pairs: twins must be closer than documents far apart in the list."""
    n = len(first)
    if n < _CHECK_ALIGNMENT_FROM:
        return
    lengths = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
    shifted = np.roll(second, n // 2, axis=0)
    lengths_shifted = np.linalg.norm(first, axis=1) * np.linalg.norm(shifted, axis=1)
    closer = np.einsum("ij,ij->i", first, second) / np.where(lengths > 0, lengths, 1)
    apart = np.einsum("ij,ij->i", first, shifted)
    closer -= apart / np.where(lengths_shifted > 0, lengths_shifted, 1)
    if closer.mean() <= _ALIGNED_T * closer.std() / math.sqrt(n):
        raise DataError(
            f"the rows do not look like pairs: the two vectors of a row are on average only "
            f"{closer.mean():.3f} closer (cosine) than vectors of different rows; row i of both "
            "arrays must be a document and its rewrite"
        )


def _check(method: str, n_directions: int, *, shape: tuple[int, ...]) -> None:
    pairs, dimension = shape
    if method not in ("mean", "pca"):
        raise DataError(f"method {method!r} is not one of mean, pca")
    if not 1 <= n_directions < dimension:
        raise DataError(
            f"n_directions is {n_directions}; vectors of {dimension} dimensions allow 1 to "
            f"{dimension - 1}"
        )
    if method != "pca" and n_directions != 1:
        raise DataError(f"method {method!r} has one direction, got n_directions={n_directions}")
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


def _reliability(differences: FloatArray, find: Directions) -> float:
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


# An encoder whose vectors are projected as they come.


class ProjectedEncoder:
    """An encoder followed by a :class:`SourceProjection`.

    Parameters
    ----------
    encoder : Encoder
        May be cached: its own vectors are what the cache holds, whatever the strength.
    projection : SourceProjection
    name : str, optional
        Name in reports; the encoder's with ``"+projection"`` by default.

    Raises
    ------
    DataError
        If the projection was fitted on vectors of another encoder.
    """

    def __init__(
        self, encoder: Encoder, projection: SourceProjection, *, name: str | None = None
    ) -> None:
        if projection.encoder and projection.encoder != encoder.fingerprint:
            raise DataError(
                f"the projection was fitted on vectors of {projection.encoder!r}, but encoder "
                f"{encoder.name!r} is {encoder.fingerprint!r}; fit one on its own vectors"
            )
        self.name = name or f"{encoder.name}+projection"
        self.encoder = encoder
        self.projection = projection

    @property
    def fingerprint(self) -> str:
        """Fingerprints of the encoder and of the projection."""
        return f"{self.encoder.fingerprint}|projection:{self.projection.fingerprint}"

    @property
    def settings(self) -> Mapping[str, str]:
        """Settings of the encoder and of the projection."""
        found = self.projection
        return {
            **self.encoder.settings,
            "projection": f"{found.method}, {found.directions.shape[1]} direction(s), strength "
            f"{found.strength:g}, fitted on {found.n_pairs} pairs",
        }

    def encode_queries(self, texts: Sequence[str]) -> Float32Array:
        """Encode the query side, projected; shape (len(texts), d)."""
        return self.projection.apply(self.encoder.encode_queries(texts))

    def encode_documents(self, texts: Sequence[str]) -> Float32Array:
        """Encode the document side, projected; shape (len(texts), d)."""
        return self.projection.apply(self.encoder.encode_documents(texts))
