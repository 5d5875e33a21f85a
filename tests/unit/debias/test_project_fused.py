"""The compiled projection: the same rows as NumPy gives, whatever the arrays look like."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from rag_sourcebias.core.errors import DataError, MissingExtraError
from rag_sourcebias.debias import projection as project_fused
from rag_sourcebias.debias.projection import (
    SourceProjection,
    compiling_pays,
    fused_kernel,
    project_rows,
)

D, N = 48, 1_500

INSTALLED = find_spec("numba") is not None
needs_numba = pytest.mark.skipif(not INSTALLED, reason="numba is not installed")


def maps(k: int, *, oblique: bool) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(k)
    readout = np.linalg.qr(rng.normal(size=(D, k)))[0].astype(np.float32)
    if not oblique:
        return {"readout": readout, "directions": readout}
    directions = readout + 0.2 * rng.normal(size=(D, k)).astype(np.float32)
    directions = directions @ np.linalg.inv(readout.T @ directions)
    return {"readout": readout, "directions": directions.astype(np.float32)}


def rows(*, centred: bool = True) -> np.ndarray:
    """Rows of length 1, of other lengths, of zeros, and some that lie in few directions."""
    rng = np.random.default_rng(7)
    vectors = rng.normal(size=(N, D)) + (0.0 if centred else 1.5)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors[::5] *= 3
    vectors[::11] = 0
    return vectors.astype(np.float32)


def by_numpy(vectors: np.ndarray, strength: float, **parts: np.ndarray) -> np.ndarray:
    found = np.empty(vectors.shape, np.float32)
    project_rows(vectors, found, strength=strength, fused=False, **parts)
    return found


@needs_numba
@pytest.mark.parametrize("k", [1, 2, 4, 5, 16])
@pytest.mark.parametrize("oblique", [False, True])
@pytest.mark.parametrize("strength", [0.5, 1.0])
def test_gives_what_numpy_gives(k: int, oblique: bool, strength: float) -> None:
    parts = maps(k, oblique=oblique)
    for centred in (True, False):
        vectors = rows(centred=centred)
        found = np.empty_like(vectors)
        project_rows(vectors, found, strength=strength, fused=True, **parts)
        np.testing.assert_allclose(found, by_numpy(vectors, strength, **parts), atol=2e-6, rtol=0)
        assert (found[::11] == 0).all()


@needs_numba
@pytest.mark.parametrize("k", [1, 4])
def test_a_row_in_the_removed_directions_vanishes(k: int) -> None:
    parts = maps(k, oblique=False)
    vectors = np.ascontiguousarray(parts["readout"].T)
    found = np.empty_like(vectors)
    project_rows(vectors, found, strength=1.0, fused=True, **parts)
    assert np.abs(found).max() < 1e-6
    almost = vectors + 1e-2 * rows()[1 : k + 1]
    almost /= np.linalg.norm(almost, axis=1, keepdims=True)
    project_rows(almost, found, strength=1.0, fused=True, **parts)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)


@needs_numba
@pytest.mark.parametrize(
    "given",
    [
        lambda v: v.astype(np.float64),
        np.asfortranarray,
        lambda v: np.repeat(v, 2, axis=0)[::2],
        lambda v: v[:, ::-1].copy()[:, ::-1],
        lambda v: v.astype(">f4"),
        lambda v: v.astype(np.float16),
    ],
    ids=["float64", "columns first", "every second row", "reversed", "other bytes", "float16"],
)
def test_takes_what_numpy_takes(given) -> None:
    parts = maps(4, oblique=True)
    vectors = given(rows())
    expected = by_numpy(vectors, 0.8, **parts)
    found = np.empty(vectors.shape, np.float32)
    project_rows(vectors, found, strength=0.8, fused=True, threads=2, **parts)
    np.testing.assert_allclose(found, expected, atol=2e-6, rtol=0)
    strided = np.zeros((N, 2 * D), np.float32)[:, ::2]
    project_rows(vectors, strided, strength=0.8, fused=True, **parts)
    assert np.array_equal(strided, found)


@needs_numba
def test_read_only_mapped_and_unaligned_arrays(tmp_path: Path) -> None:
    parts, vectors = maps(1, oblique=False), rows()
    expected = by_numpy(vectors, 1.0, **parts)
    file = tmp_path / "vectors.f32"
    file.write_bytes(b"odd" + vectors.tobytes())  # at an address that is no multiple of four
    mapped = np.memmap(file, np.float32, mode="r", offset=3, shape=vectors.shape)
    target = np.memmap(tmp_path / "out.f32", np.float32, mode="w+", shape=vectors.shape)
    project_rows(mapped, target, strength=1.0, fused=True, **parts)
    np.testing.assert_allclose(target, expected, atol=2e-6, rtol=0)
    writable = np.memmap(file, np.float32, mode="r+", offset=3, shape=vectors.shape)
    project_rows(writable, writable, strength=1.0, fused=True, **parts)
    assert np.array_equal(writable, target)
    target.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        project_rows(vectors, target, strength=1.0, fused=True, **parts)


@needs_numba
def test_threads_and_place_change_nothing() -> None:
    parts = maps(3, oblique=True)
    vectors = np.tile(rows(), (20, 1))
    alone, together, in_place = np.empty_like(vectors), np.empty_like(vectors), vectors.copy()
    project_rows(vectors, alone, strength=0.8, fused=True, threads=1, **parts)
    project_rows(vectors, together, strength=0.8, fused=True, threads=3, **parts)
    project_rows(in_place, in_place, strength=0.8, fused=True, threads=2, **parts)
    assert np.array_equal(alone, together)
    assert np.array_equal(alone, in_place)


@needs_numba
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e30])
@pytest.mark.parametrize("threads", [1, 3])
def test_bad_numbers_are_named_as_by_numpy(bad: float, threads: int) -> None:
    parts, vectors = maps(4, oblique=False), rows()
    vectors[1_234, 5] = bad  # 1e30: its square is no float32
    vectors[1_400, 5] = bad
    found = np.empty_like(vectors)
    for fused in (False, True):
        with pytest.raises(DataError, match="vector 1234 holds NaN or infinity"):
            project_rows(vectors, found, strength=1.0, fused=fused, threads=threads, **parts)


def test_no_rows() -> None:
    empty = np.empty((0, D), np.float32)
    project_rows(
        empty,
        empty.copy(),
        strength=1.0,
        fused=INSTALLED,
        **maps(2, oblique=False),
    )


@needs_numba
def test_apply_compiles_once_enough_was_projected(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = rows()
    monkeypatch.setattr(project_fused, "_counted", project_fused._Counted())
    monkeypatch.setattr(project_fused, "_PAYS_BYTES", 3 * vectors.nbytes)
    assert [compiling_pays(vectors.nbytes, directions=1) for _ in range(4)] == [
        False, False, True, True,
    ]  # fmt: skip
    assert not compiling_pays(vectors.nbytes, directions=65)
    used = []
    real = fused_kernel()
    monkeypatch.setattr(
        "rag_sourcebias.debias.projection.fused_kernel",
        lambda: lambda *arrays: used.append(len(arrays[0])) or real(*arrays),
    )
    projection = SourceProjection(
        **maps(2, oblique=False),
        strength=0.5, sides="both", method="mean", n_pairs=9, reliability=1.0,
    )  # fmt: skip
    found = projection.apply(vectors)
    assert sum(used) == N
    expected = by_numpy(vectors, 0.5, **maps(2, oblique=False))
    np.testing.assert_allclose(found, expected, atol=2e-6, rtol=0)


def in_a_process(code: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True, text=True, check=True, env={**os.environ, **environment},
    )  # fmt: skip
    return done.stdout.strip()


def test_without_numba_numpy_does_the_work() -> None:
    code = """
import sys
sys.modules["numba"] = None  # as if it were not installed
import numpy as np
from rag_sourcebias.debias import projection as project_fused
from rag_sourcebias.debias.projection import project_rows
project_fused._PAYS_BYTES = 0
vectors, found = np.eye(3, dtype=np.float32), np.empty((3, 3), np.float32)
one = vectors[:, :1]
project_rows(vectors, found, readout=one, directions=one, strength=1.0)
print(found.tolist())
try:
    project_rows(vectors, found, readout=one, directions=one, strength=1.0, fused=True)
except Exception as error:
    print(type(error).__name__, error)
"""
    rows_found, error = in_a_process(code).splitlines()
    assert rows_found == "[[0.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]"
    assert error.startswith(MissingExtraError.__name__)
    assert "fast" in error


@needs_numba
@pytest.mark.slow
def test_a_broken_file_of_compiled_code_does_no_harm(tmp_path: Path) -> None:
    code = """
from rag_sourcebias.debias.projection import fused_kernel
print(fused_kernel().stats.cache_path is not None)
"""
    kept = {"NUMBA_CACHE_DIR": str(tmp_path)}
    assert in_a_process(code, **kept) == "True"
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert files
    for file in files:
        file.write_bytes(file.read_bytes()[:50])
    assert in_a_process(code, **kept) == "False"


@needs_numba
@pytest.mark.slow
def test_compiles_where_nothing_can_be_kept() -> None:
    code = """
from rag_sourcebias.debias.projection import fused_kernel
print(fused_kernel().stats.cache_path)
"""
    # The only place allowed is one that is not named.
    environment = {"NUMBA_CACHE_LOCATOR_CLASSES": "_UserProvidedCacheLocator"}
    assert in_a_process(code, **environment, NUMBA_CACHE_DIR="") == "None"
    code = "from rag_sourcebias.debias.projection import fused_kernel; print(fused_kernel())"
    assert in_a_process(code, NUMBA_DISABLE_JIT="1") == "None"
