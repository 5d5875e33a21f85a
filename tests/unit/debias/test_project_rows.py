"""Projecting many rows: threads, cancellation, rows that vanish, bad numbers."""

from __future__ import annotations

import numpy as np
import pytest

from rag_sourcebias.core.errors import DataError
from rag_sourcebias.debias.projection import project_rows

D = 24


def maps(rng: np.random.Generator) -> list[tuple[np.ndarray, np.ndarray]]:
    """An orthogonal projection, and one along other directions than it reads."""
    basis = np.linalg.qr(rng.normal(size=(D, 3)))[0].astype(np.float32)
    oblique = basis + 0.2 * rng.normal(size=(D, 3)).astype(np.float32)
    oblique = oblique @ np.linalg.inv(basis.T @ oblique)
    return [(basis, basis), (basis, oblique.astype(np.float32))]


def by_definition(vectors, readout, directions, strength):
    exact = vectors.astype(np.float64)
    left = exact - strength * (exact @ readout.astype(np.float64)) @ directions.T
    lengths = np.linalg.norm(left, axis=1)
    scaled = (np.abs(np.linalg.norm(exact, axis=1) - 1) < 1e-3) & (lengths > 1e-6)
    return left / np.where(scaled, lengths, 1)[:, None]


@pytest.mark.parametrize("strength", [0.3, 1.0])
@pytest.mark.parametrize("kind", [0, 1])
def test_equals_the_definition_however_much_of_a_row_is_taken(kind: int, strength: float) -> None:
    rng = np.random.default_rng(kind)
    readout, directions = maps(rng)[kind]
    rows = rng.normal(size=(3_000, D))
    # From hardly anything in the directions to everything but a ten-thousandth.
    rows += 10.0 ** rng.uniform(-2, 4, size=(3_000, 1)) * (rng.normal(size=(3_000, 3)) @ readout.T)
    vectors = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    vectors[::7] *= 3  # of another length: not scaled
    found = np.empty_like(vectors)
    project_rows(vectors, found, readout=readout, directions=directions, strength=strength)
    expected = by_definition(vectors, readout, directions, strength)
    # What is left of a row is known to float32 rounding of the row.
    left = np.linalg.norm(
        vectors - strength * (vectors @ readout) @ directions.T, axis=1, keepdims=True
    )
    assert (np.abs(found - expected) <= 1e-6 / np.minimum(left, 1) + 1e-6).all()


def test_threads_change_nothing() -> None:
    rng = np.random.default_rng(3)
    readout, directions = maps(rng)[1]
    vectors = rng.normal(size=(40_001, D)).astype(np.float32)
    vectors[::2] /= np.linalg.norm(vectors[::2], axis=1, keepdims=True)
    alone, together, in_place = np.empty_like(vectors), np.empty_like(vectors), vectors.copy()
    options = {"readout": readout, "directions": directions, "strength": 0.8}
    project_rows(vectors, alone, **options, threads=1)
    project_rows(vectors, together, **options, threads=3)
    project_rows(in_place, in_place, **options, threads=2)
    assert np.array_equal(alone, together)
    assert np.array_equal(alone, in_place)
    vectors[39_000, 0] = np.inf
    with pytest.raises(DataError, match="vector 39000 holds NaN or infinity"):
        project_rows(vectors, together, **options, threads=3)
