"""The map that takes a source out of vectors, applied to vectors, kept in a file, in an encoder."""

import hashlib
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.codec import PathLike, sound, write_atomic
from rag_sourcebias.core.data import Float32Array
from rag_sourcebias.core.errors import DataError, UnsupportedVersionError, require_one_of
from rag_sourcebias.core.protocols import Encoder
from rag_sourcebias.intake.arrays import read_arrays

# Projecting rows in parts that stay in the processor's cache.


_CHUNK_BYTES = 1 << 19  # of a second-level cache of one megabyte, half
_UNIT = 1e-3  # a length this close to 1 is meant to be 1
_VANISHED = 1e-6  # what is left of a vector is float32 rounding


def project_rows(
    vectors: npt.NDArray[np.floating],
    *,
    directions: Float32Array,
    strength: float,
) -> Float32Array:
    """Return vectors − strength · (vectors·directions)·directionsᵀ, unit rows scaled to length 1.

    Parameters
    ----------
    vectors : float array of shape (n, d)
    directions : float32 array of shape (d, k)
        Orthonormal columns.
    strength : float in (0, 1]

    Raises
    ------
    DataError
        If a number is not finite.
    """
    n, width = vectors.shape
    projected = np.empty(vectors.shape, np.float32)
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
        projected[start : start + step] = left / np.where(scaled, left_lengths, 1)[:, None]
    return projected


# Taking the component that tells the source out of vectors, stored ones included.


ProjectionMethod = Literal["mean", "pca"]

PROJECTION_FILE = "source_projection.npz"
"""Where a model folder that projects keeps the projection, for vectors that are stored already."""

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
        require_one_of("method", self.method, get_args(ProjectionMethod))
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

    def apply(self, vectors: npt.NDArray[np.floating]) -> Float32Array:
        """Project vectors; rows of length 1 (within 0.001) are scaled to length 1 again.

        A row that lies in the removed directions entirely becomes (nearly) 0 and is not scaled.
        Applying at strength 1 twice is applying once, up to rounding; strength 0 copies bit by bit.

        Parameters
        ----------
        vectors : float array of shape (n, d)
            May be memory-mapped.

        Returns
        -------
        float32 array of shape (n, d)

        Raises
        ------
        DataError
            If the shape is wrong or, at a strength above 0, a number is not finite.
        """
        if vectors.ndim != 2 or vectors.shape[1] != self.dimension:
            raise DataError(
                f"vectors have shape {vectors.shape}; expected (n, {self.dimension}), as the pairs "
                "the projection was fitted on"
            )
        if self.strength == 0:
            return vectors.astype(np.float32)
        return project_rows(vectors, directions=self.directions, strength=self.strength)


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
        **{name: getattr(projection, name) for name in _SCALARS},
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
    with sound(path, expected):
        version = data["schema_version"].item()
        if version != _SCHEMA_VERSION:
            raise UnsupportedVersionError(
                f"projection of schema version {version!r}; this release reads version "
                f"{_SCHEMA_VERSION}"
            )
        scalars: dict[str, Any] = {name: data[name].item() for name in _SCALARS}
        return SourceProjection(directions=data["directions"].astype(np.float32), **scalars)


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
