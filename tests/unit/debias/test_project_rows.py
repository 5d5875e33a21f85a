"""Projecting many rows: against the definition, rows that vanish, bad numbers."""

from __future__ import annotations

import numpy as np
import pytest

from rag_sourcebias.core.errors import DataError
from rag_sourcebias.retrieval.projection import project_rows

D = 24


def by_definition(vectors, directions, strength):
    exact = vectors.astype(np.float64)
    left = exact - strength * (exact @ directions.astype(np.float64)) @ directions.T
    lengths = np.linalg.norm(left, axis=1)
    scaled = (np.abs(np.linalg.norm(exact, axis=1) - 1) < 1e-3) & (lengths > 1e-6)
    return left / np.where(scaled, lengths, 1)[:, None]


@pytest.mark.parametrize("strength", [0.3, 1.0])
def test_equals_the_definition_however_much_of_a_row_is_taken(strength: float) -> None:
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.normal(size=(D, 3)))[0].astype(np.float32)
    rows = rng.normal(size=(30_000, D))
    # From hardly anything in the directions to everything but a ten-thousandth.
    rows += 10.0 ** rng.uniform(-2, 4, size=(30_000, 1)) * (rng.normal(size=(30_000, 3)) @ basis.T)
    vectors = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    vectors[::7] *= 3  # of another length: not scaled
    found = project_rows(vectors, directions=basis, strength=strength)
    expected = by_definition(vectors, basis, strength)
    # What is left of a row is known to float32 rounding of the row.
    left = np.linalg.norm(vectors - strength * (vectors @ basis) @ basis.T, axis=1, keepdims=True)
    assert (np.abs(found - expected) <= 1e-6 / np.minimum(left, 1) + 1e-6).all()


def test_a_bad_number_is_named() -> None:
    vectors = np.ones((40_001, D), dtype=np.float32)
    vectors[39_000, 0] = np.inf
    with pytest.raises(DataError, match="vector 39000 holds NaN or infinity"):
        project_rows(vectors, directions=np.eye(D, 1, dtype=np.float32), strength=1.0)
