"""An encoder whose vectors are projected as they come."""

from __future__ import annotations

import hashlib
import io
import math
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from pickle import UnpicklingError
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.errors import (
    DataError,
    InsufficientDataError,
    MissingExtraError,
    UnsupportedVersionError,
)
from rag_sourcebias.core.protocols import Encoder
from rag_sourcebias.core.values import Float32Array, FloatArray
from rag_sourcebias.io.files import PathLike, read_arrays, sound, write_atomic

# Projecting rows in one pass, compiled by numba where that pays.


Kernel = Callable[[Float32Array, Float32Array, Float32Array, Float32Array], int]

_PAYS_BYTES = 2 << 30  # two gigabytes projected by NumPy cost what importing and loading numba does
_MOST_DIRECTIONS = 64  # above, BLAS makes better use of the processor
_TOGETHER = 4  # directions in one pass over a row
_UNIT = 1e-3  # a length this close to 1 is meant to be 1
_VANISHED = 1e-6  # what is left of a vector is rounding

# No folder that numba could write to, a full disk, and what a broken file in it raises.
_CANNOT_BE_KEPT = (RuntimeError, OSError, EOFError, UnpicklingError)


def compiling_pays(n_bytes: int, *, directions: int) -> bool:
    """Whether this process has projected so much that the kernel is worth loading.

    Importing numba and loading the kernel takes half a second, compiling it a second more. So the
    first calls are left to NumPy, until they have lost about as much time.

    Parameters
    ----------
    n_bytes : int
        Size of what is to be projected now, as float32.
    directions : int
    """
    if directions > _MOST_DIRECTIONS:
        return False
    _counted.n_bytes += n_bytes
    return _counted.n_bytes >= _PAYS_BYTES and fused_kernel() is not None


@cache
def fused_kernel() -> Kernel | None:
    """Compile the kernel, or load what an earlier process compiled; None without numba."""
    try:
        import numba
    except ImportError:  # missing, or not made for this NumPy
        return None
    if numba.config.DISABLE_JIT:
        return None
    matrix = numba.types.Array(numba.float32, 2, "C")
    fixed = numba.types.Array(numba.float32, 2, "C", readonly=True)
    options = {
        "nogil": True,
        # Sums in any order, fused with products. Not "nnan" and "ninf": bad numbers must be seen.
        "fastmath": {"contract", "reassoc"},
    }
    signature = numba.int64(fixed, fixed, fixed, matrix)
    try:
        compiled: Kernel = numba.njit(signature, cache=True, **options)(_project)
    except _CANNOT_BE_KEPT:
        compiled = numba.njit(signature, **options)(_project)
    return compiled


class FusedRows:
    """Projects parts of an array, each row read once and written once.

    Parameters
    ----------
    kernel : callable
        From :func:`fused_kernel`; None raises.
    vectors, target : arrays of shape (n, d)
        The same array or apart.
    readout, directions : float32 arrays of shape (d, k)
    strength : float32

    Raises
    ------
    MissingExtraError
        If there is no kernel because numba is not installed.
    """

    def __init__(
        self,
        kernel: Kernel | None,
        *,
        vectors: npt.NDArray[np.floating],
        target: Float32Array,
        readout: Float32Array,
        directions: Float32Array,
        strength: np.float32,
    ) -> None:
        if kernel is None:
            raise MissingExtraError(package="numba", extra="fast", feature="projecting in one pass")
        self._kernel = kernel
        self._vectors = vectors
        self._target = np.asarray(target)  # a plain array also of memory-mapped files
        self._readout = _padded(readout)
        self._subtracted = _padded(strength * directions)

    def project(self, start: int, stop: int) -> None:
        """Project some rows; a DataError names the first that holds NaN or infinity."""
        rows = np.require(self._vectors[start:stop], np.float32, ["C", "A"])
        out = self._target[start:stop]
        work = out if out.flags.carray else np.empty(out.shape, np.float32)
        bad = self._kernel(rows, self._readout, self._subtracted, work)
        if bad >= 0:
            raise DataError(f"vector {start + bad} holds NaN or infinity")
        if work is not out:
            out[:] = work


class _Counted:
    """What this process has projected so far."""

    n_bytes = 0


_counted = _Counted()


def _padded(columns: Float32Array) -> Float32Array:
    """One row for each direction, and rows of zeros to a multiple of those taken together."""
    d, k = columns.shape
    rows = np.zeros((-(-k // _TOGETHER) * _TOGETHER, d), np.float32)
    rows[:k] = columns.T
    return rows


def _project(
    vectors: Float32Array, readout: Float32Array, subtracted: Float32Array, target: Float32Array
) -> int:
    """Project rows; give the first that holds a bad number, else −1. Compiled, not called.

    Three passes over a row that the first of them has brought into the nearest cache. In one
    function, as numba keeps no compiled code on disk that calls functions made at run time.
    """
    n, d = vectors.shape
    k = readout.shape[0]
    amounts = np.empty(k, np.float32)
    rest = np.empty(d, np.float32)  # apart from the arrays, which may be one: loops stay simple
    for i in range(n):
        squared = np.float32(0)
        for c in range(0, k, 4):
            squared = a0 = a1 = a2 = a3 = np.float32(0)
            for j in range(d):
                x = vectors[i, j]
                squared += x * x
                a0 += x * readout[c, j]
                a1 += x * readout[c + 1, j]
                a2 += x * readout[c + 2, j]
                a3 += x * readout[c + 3, j]
            amounts[c], amounts[c + 1], amounts[c + 2], amounts[c + 3] = a0, a1, a2, a3
        if not np.isfinite(squared):
            return i
        left = np.float32(0)
        for c in range(0, k, 4):
            left = np.float32(0)
            a0, a1, a2, a3 = amounts[c], amounts[c + 1], amounts[c + 2], amounts[c + 3]
            for j in range(d):
                taken = a0 * subtracted[c, j] + a1 * subtracted[c + 1, j]
                taken += a2 * subtracted[c + 2, j] + a3 * subtracted[c + 3, j]
                x = (vectors[i, j] if c == 0 else rest[j]) - taken
                rest[j] = x
                left += x * x
        factor = np.float32(1)
        if abs(np.sqrt(squared) - 1) < _UNIT and left > _VANISHED**2:
            factor = np.float32(1) / np.sqrt(left)
        for j in range(d):
            target[i, j] = rest[j] * factor
    return -1


# Projecting many rows in one pass over memory, in parts that stay in the processor's cache.


_CHUNK_BYTES = 1 << 19  # stays in the processor's cache
_FUSED_BYTES = 1 << 22  # one row at a time does so anyway: fewer calls from Python
_CHUNK_PRODUCTS = 600_000  # above, BLAS starts threads of its own, which cost more than they save
_THREAD_BYTES = 1 << 24  # below this, starting threads takes longer than they save
_SHARES = 4  # of each thread
_CANCELLED = 0.25  # below this share, a difference of squares has lost too many digits


def project_rows(
    vectors: npt.NDArray[np.floating],
    target: Float32Array,
    *,
    readout: Float32Array,
    directions: Float32Array,
    strength: float,
    threads: int | None = None,
    fused: bool | None = None,
) -> None:
    """Write vectors − strength · (vectors·readout)·directionsᵀ, unit rows scaled to length 1.

    With NumPy in parts that stay in the processor's cache; or compiled, a row at a time, which
    takes hardly longer than copying. Both give the same up to float32 rounding.

    Parameters
    ----------
    vectors, target : arrays of shape (n, d)
        The same array or apart.
    readout, directions : float32 arrays of shape (d, k)
    strength : float in (0, 1]
    threads : int, optional
        As many as there are cores, by default.
    fused : bool, optional
        Whether to compile, which needs numba; by default where numba is installed, once the vectors
        of this process are enough to make up for the time that compiling takes.

    Raises
    ------
    MissingExtraError
        If ``fused`` is True and numba is not installed.
    DataError
        If a number is not finite; other rows may then be written already.
    """
    n, width = vectors.shape
    if fused is None:
        fused = compiling_pays(4 * vectors.size, directions=readout.shape[1])
    make: Callable[..., _Rows | FusedRows] = partial(FusedRows, fused_kernel()) if fused else _Rows
    worker = make(
        vectors=vectors,
        target=target,
        readout=readout,
        directions=directions,
        strength=np.float32(strength),
    )
    largest = min(_CHUNK_BYTES // (4 * width), _CHUNK_PRODUCTS // readout.size)
    step = max(1, _FUSED_BYTES // (4 * width) if fused else largest)
    starts = range(0, n, step)
    if threads is None:
        threads = 1 if 4 * n * width < _THREAD_BYTES else _cores()
    if threads <= 1:
        _each(worker, starts, step)
        return
    with ThreadPoolExecutor(threads, thread_name_prefix="project") as pool:
        # Neighbouring rows to each: parts taken in turns would share pages. Several shares, so
        # that a core that is busy otherwise is not waited for.
        size = -(-len(starts) // (_SHARES * threads))
        shares = (starts[i : i + size] for i in range(0, len(starts), size))
        list(pool.map(lambda part: _each(worker, part, step), shares))


def _each(worker: _Rows | FusedRows, starts: range, step: int) -> None:
    for start in starts:
        worker.project(start, start + step)


class _Rows:
    def __init__(
        self,
        *,
        vectors: npt.NDArray[np.floating],
        target: Float32Array,
        readout: Float32Array,
        directions: Float32Array,
        strength: np.float32,
    ) -> None:
        self._vectors = vectors
        self._target = target
        from scipy.linalg.blas import sgemm

        self._sgemm = sgemm
        self._readout = np.ascontiguousarray(readout)
        self._subtracted = np.ascontiguousarray(strength * directions.T)
        self._between = directions.T @ directions
        self._strength = strength
        # For an orthogonal projection both are the same amounts.
        self._directions = None if np.array_equal(readout, directions) else directions

    def project(self, start: int, stop: int) -> None:
        rows = np.ascontiguousarray(self._vectors[start:stop], dtype=np.float32)
        with np.errstate(over="ignore"):  # what is too large to be squared is refused
            squared = np.vecdot(rows, rows)
        if not np.isfinite(squared).all():
            row = start + int(np.flatnonzero(~np.isfinite(squared))[0])
            raise DataError(f"vector {row} holds NaN or infinity")
        amounts = rows @ self._readout
        factors = self._factors(rows, squared, amounts)
        out = self._target[start:stop]
        work = out if out.flags.c_contiguous else np.empty_like(rows)
        np.multiply(rows, factors[:, None], out=work)
        amounts *= factors[:, None]
        # Accumulating into work.T spares the array of products, and the pass that subtracts it.
        self._sgemm(-1.0, self._subtracted.T, amounts.T, 1.0, work.T, overwrite_c=True)
        if work is not out:
            out[:] = work

    def _factors(
        self, rows: Float32Array, squared: Float32Array, amounts: Float32Array
    ) -> Float32Array:
        """One over the length of what is left, for rows of length 1; 1 for the others."""
        s = self._strength
        along = amounts if self._directions is None else rows @ self._directions
        taken = 2 * s * np.vecdot(amounts, along)
        taken -= s * s * np.vecdot(amounts @ self._between, amounts)
        left = squared - taken
        # Rows that lie mostly in the directions: compute what is left, then its length.
        few = np.flatnonzero(left < _CANCELLED * squared)
        if len(few):
            rest = rows[few] - amounts[few] @ self._subtracted
            left[few] = np.vecdot(rest, rest)
        scaled = (np.abs(np.sqrt(squared) - 1) < _UNIT) & (left > _VANISHED**2)
        return np.asarray(1 / np.sqrt(np.where(scaled, left, 1)), dtype=np.float32)


def _cores() -> int:
    own = getattr(os, "sched_getaffinity", None)  # not everywhere
    return len(own(0)) if own else os.cpu_count() or 1


# Taking the component that tells the source out of vectors, stored ones included.


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
    sides: Sides = "both",
    shrinkage: float | None = None,
    encoder: str = "",
) -> SourceProjection:
    """Estimate from twins what has to be taken out of vectors to make them say nothing of a source.

    With δ the mean of ``other − human`` over the pairs:

    - ``"mean"`` removes the component along δ, orthogonally;
    - ``"pca"`` removes the leading right singular vectors of the differences. They are not
      centred: centring would take out δ, which is the bias itself;
    - ``"leace"`` removes δ obliquely: x − (x·b)δ with b = M⁻¹δ / δᵀM⁻¹δ, M the second moment of
      all vectors. Of all linear maps that make the means of the two sources equal, so that no
      linear classifier beats a constant, it changes the vectors least in mean square (Belrose et
      al., NeurIPS 2023, Theorem 4.2, without centring: the map then commutes with scaling, so
      re-normalised vectors stay projected).

    Parameters
    ----------
    human, other : array_like of shape (m, d)
        Vectors of the human documents and of their rewrites; row i of both is one pair.
    method : {"mean", "pca", "leace"}
    n_directions : int
        Only ``"pca"`` has more than one.
    strength : float in [0, 1]
        0 leaves vectors as they are, 1 removes the directions entirely.
    sides : {"both", "documents"}
        Whether queries are projected too.
    shrinkage : float in [0, 1], optional
        ``"leace"`` only: weight of a multiple of the identity in M; by default the estimate of
        Ledoit and Wolf (2004), which also serves where there are fewer pairs than dimensions.
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
        With too few pairs: ``reliability`` below 0.5, fewer than 10 pairs per direction for
        ``"pca"``, or fewer pairs than dimensions for ``"leace"`` with ``shrinkage=0``.
    """
    first, second = _pairs(human, other)
    _check(method, n_directions, shrinkage, shape=first.shape)
    find: Directions = partial(_leading, count=n_directions) if method == "pca" else _mean_direction
    differences = second - first
    directions = find(differences)
    reliability = _reliability(differences, find)
    readout = directions
    if method == "leace":
        moment = _second_moment(np.concatenate([first, second]), shrinkage)
        solved = np.linalg.solve(moment, directions)
        readout = solved / (directions * solved).sum(axis=0)
    return SourceProjection(
        readout=readout.astype(np.float32),
        directions=directions.astype(np.float32),
        strength=strength,
        sides=sides,
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


def _check(
    method: str, n_directions: int, shrinkage: float | None, *, shape: tuple[int, ...]
) -> None:
    pairs, dimension = shape
    if method not in ("mean", "pca", "leace"):
        raise DataError(f"method {method!r} is not one of mean, pca, leace")
    if not 1 <= n_directions < dimension:
        raise DataError(
            f"n_directions is {n_directions}; vectors of {dimension} dimensions allow 1 to "
            f"{dimension - 1}"
        )
    if method != "pca" and n_directions != 1:
        raise DataError(f"method {method!r} has one direction, got n_directions={n_directions}")
    if shrinkage is not None and (method != "leace" or not 0 <= shrinkage <= 1):
        raise DataError(f"shrinkage is {shrinkage} for {method!r}; 0 to 1 for leace only")
    needed = _MIN_PAIRS
    if method == "pca":
        needed = 10 * n_directions
    elif shrinkage == 0:
        needed = max(needed, dimension)
    if pairs < needed:
        raise InsufficientDataError(
            f"{pairs} pairs are too few for method {method!r} with {n_directions} direction(s) in "
            f"{dimension} dimensions; at least {needed} are needed"
            + (", or shrinkage above 0" if shrinkage == 0 else ""),
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


def _second_moment(vectors: FloatArray, shrinkage: float | None) -> FloatArray:
    """Second moment (d, d), shrunk toward a multiple of the identity (Ledoit & Wolf 2004)."""
    n, dimension = vectors.shape
    moment = vectors.T @ vectors / n
    scale = float(np.trace(moment)) / dimension
    if shrinkage is None:
        squared = float((moment**2).sum())
        fourth = float((np.einsum("ij,ij->i", vectors, vectors) ** 2).mean())
        spread = squared - dimension * scale**2
        shrinkage = min(1.0, (fourth - squared) / n / spread) if spread > 0 else 1.0
    return np.asarray((1 - shrinkage) * moment + shrinkage * scale * np.eye(dimension))


# An encoder whose vectors are projected as they come.


class ProjectedEncoder:
    """An encoder followed by a :class:`SourceProjection`.

    Parameters
    ----------
    encoder : Encoder
        May be cached: its own vectors are what the cache holds, whatever the strength.
    projection : SourceProjection
        With ``sides="documents"``, queries are left as they are.
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
            f"{found.strength:g}, {found.sides}, fitted on {found.n_pairs} pairs",
        }

    def encode_queries(self, texts: Sequence[str]) -> Float32Array:
        """Encode the query side, projected unless only documents are."""
        vectors = self.encoder.encode_queries(texts)
        return vectors if self.projection.sides == "documents" else self.projection.apply(vectors)

    def encode_documents(self, texts: Sequence[str]) -> Float32Array:
        """Encode the document side, projected; shape (len(texts), d)."""
        return self.projection.apply(self.encoder.encode_documents(texts))
