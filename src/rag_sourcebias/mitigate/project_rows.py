"""Projecting many rows in one pass over memory, in parts that stay in the processor's cache."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError
from rag_sourcebias.mitigate.project_fused import FusedRows, compiling_pays, fused_kernel
from rag_sourcebias.types.arrays import Float32Array

__all__ = ["project_rows"]


_CHUNK_BYTES = 1 << 19  # stays in the processor's cache
_FUSED_BYTES = 1 << 22  # one row at a time does so anyway: fewer calls from Python
_CHUNK_PRODUCTS = 600_000  # above, BLAS starts threads of its own, which cost more than they save
_THREAD_BYTES = 1 << 24  # below this, starting threads takes longer than they save
_SHARES = 4  # of each thread
_UNIT = 1e-3  # a length this close to 1 is meant to be 1
_VANISHED = 1e-6  # what is left of a vector is rounding
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
        shares = _shares(starts, _SHARES * threads)
        for _ in pool.map(lambda part: _each(worker, part, step), shares):
            pass


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
        unit = np.abs(np.sqrt(squared) - 1) < _UNIT
        scaled = unit & (left > _VANISHED**2)
        return np.asarray(1 / np.sqrt(np.where(scaled, left, 1)), dtype=np.float32)


def _cores() -> int:
    """Cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _shares(starts: range, n: int) -> Iterator[range]:
    size = -(-len(starts) // n)
    return (starts[i : i + size] for i in range(0, len(starts), size))
