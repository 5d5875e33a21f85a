"""Positions along the source direction and main components against definitions written out."""

from __future__ import annotations

import numpy as np
import pytest

from rag_sourcebias.core.errors import DataError, InsufficientDataError
from rag_sourcebias.explain.vectors import map_sources, positions_along_source


def twins(seed: int, *, n: int = 200, d: int = 12, shift: float = 1.0, own: float = 1.0):
    rng = np.random.default_rng(seed)
    shared = rng.standard_normal((n, d))
    human = shared + own * rng.standard_normal((n, d))
    other = shared + own * rng.standard_normal((n, d))
    other[:, 0] += shift
    return human, other


def test_a_pair_is_placed_by_the_direction_of_the_others() -> None:
    human, other = twins(1, n=25)
    found = positions_along_source(human, other)
    for i in range(25):
        rest = np.delete(other - human, i, axis=0).mean(axis=0)
        expected = (other[i] - human[i]) @ rest / np.linalg.norm(rest)
        assert found[i] == pytest.approx(expected)


def test_the_map_is_the_plane_of_numpys_svd() -> None:
    human, other = twins(6)
    found = map_sources(human, other)
    joint = np.concatenate((human, other))
    joint = joint - joint.mean(axis=0)
    left, values, _ = np.linalg.svd(joint, full_matrices=False)
    both = np.concatenate((found.human, found.other))
    np.testing.assert_allclose(np.abs(both), np.abs(left[:, :2] * values[:2]), atol=1e-8)
    np.testing.assert_allclose(found.variance_shares, (values**2 / (values**2).sum())[:2])
    flipped = map_sources(-human, -other)
    np.testing.assert_allclose(flipped.human, -found.human, atol=1e-8)


def test_what_cannot_be_placed_is_refused() -> None:
    human, other = twins(7, n=30)
    with pytest.raises(InsufficientDataError, match="10 pairs; at least 20"):
        positions_along_source(human[:10], other[:10])
    with pytest.raises(DataError, match="all vectors are alike"):
        map_sources(np.ones((3, 2)), np.ones((3, 2)))
