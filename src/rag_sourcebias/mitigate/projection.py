"""Taking the component that tells the source out of vectors, stored ones included."""

from __future__ import annotations

import hashlib
import io
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError, UnsupportedVersionError
from rag_sourcebias.io.arrays import read_arrays
from rag_sourcebias.io.damage import sound
from rag_sourcebias.io.files import PathLike, write_atomic
from rag_sourcebias.mitigate.project_rows import project_rows
from rag_sourcebias.types.arrays import Float32Array

__all__ = ["ProjectionMethod", "Sides", "SourceProjection", "read_projection", "write_projection"]

ProjectionMethod = Literal["mean", "pca", "leace"]
Sides = Literal["documents", "both"]

_SCHEMA_VERSION = 1
_ARRAYS = ("readout", "directions")
_SCALARS = ("strength", "sides", "method", "n_pairs", "reliability", "encoder")


@dataclass(frozen=True, kw_only=True, eq=False)
class SourceProjection:
    """The map x − strength · (x·readout)·directionsᵀ, and where it comes from.

    Parameters
    ----------
    readout, directions : float32 array of shape (d, k)
        What is measured and what is subtracted; ``readoutᵀ·directions`` is the identity. Equal
        for an orthogonal projection.
    strength : float in [0, 1]
    sides : {"documents", "both"}
        Which vectors are meant to be projected.
    method : {"mean", "pca", "leace"}
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

    readout: Float32Array = field(repr=False)
    directions: Float32Array = field(repr=False)
    strength: float
    sides: Sides
    method: ProjectionMethod
    n_pairs: int
    reliability: float
    encoder: str = ""

    def __post_init__(self) -> None:
        if not 0 <= self.strength <= 1:
            raise DataError(f"strength is {self.strength}; expected a number from 0 to 1")
        for name, value, known in (
            ("sides", self.sides, get_args(Sides)),
            ("method", self.method, get_args(ProjectionMethod)),
        ):
            if value not in known:
                raise DataError(f"{name} {value!r} is not one of {', '.join(known)}")
        shape = self.directions.shape
        if len(shape) != 2 or self.readout.shape != shape:
            raise DataError(
                f"readout has shape {self.readout.shape} and directions {shape}; both must be "
                "(dimension, directions)"
            )
        product = self.readout.T.astype(np.float64) @ self.directions
        if not np.allclose(product, np.eye(shape[1]), rtol=0, atol=1e-4):
            raise DataError("readoutᵀ·directions is not the identity: this is not a projection")

    @property
    def dimension(self) -> int:
        """Length of the vectors."""
        return int(self.directions.shape[0])

    @property
    def matrix(self) -> Float32Array:
        """The map as a matrix of shape (d, d), applied as ``vectors @ matrix``."""
        product = self.readout.astype(np.float64) @ self.directions.T.astype(np.float64)
        return np.asarray(np.eye(self.dimension) - self.strength * product, dtype=np.float32)

    @cached_property
    def fingerprint(self) -> str:
        """Identity of the map and of the sides it is for."""
        digest = hashlib.blake2b(digest_size=16)
        for array in (self.readout, self.directions):
            digest.update(np.ascontiguousarray(array, dtype="<f4").tobytes())
        return f"{self.method}:{self.strength!r}:{self.sides}:{digest.hexdigest()}"

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
            project_rows(
                vectors,
                target,
                readout=self.readout,
                directions=self.directions,
                strength=self.strength,
            )
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
        readout=projection.readout,
        directions=projection.directions,
        strength=projection.strength,
        sides=projection.sides,
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
        arrays: dict[str, Any] = {name: data[name].astype(np.float32) for name in _ARRAYS}
        return SourceProjection(**arrays, **{name: data[name].item() for name in _SCALARS})


def _target(vectors: npt.NDArray[np.floating], out: Float32Array | None) -> Float32Array:
    if out is None:
        return np.empty(vectors.shape, np.float32)
    if out.shape != vectors.shape or out.dtype != np.float32:
        raise DataError(
            f"out is {out.dtype} of shape {out.shape}; expected float32 of shape {vectors.shape}"
        )
    same = (
        out.dtype == vectors.dtype
        and out.ctypes.data == vectors.ctypes.data
        and out.strides == vectors.strides
    )
    if not same and np.may_share_memory(vectors, out):
        raise DataError("out overlaps the vectors; give the vectors themselves or another array")
    return out
