"""Projecting rows in one pass, compiled by numba where that pays."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pickle import UnpicklingError

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError, MissingExtraError
from rag_sourcebias.types.arrays import Float32Array

__all__ = ["FusedRows", "Kernel", "compiling_pays", "fused_kernel"]

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
