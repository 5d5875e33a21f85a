"""Geometry against definitions written out, and known mixtures."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest

from rag_sourcebias.core.errors import DataError, InsufficientDataError
from rag_sourcebias.explain.vectors import (
    map_vectors,
    positions_along_source,
    probe_accuracy,
    source_geometry,
)


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


def test_without_a_common_shift_positions_are_0_on_average() -> None:
    # With its own difference in the direction, the mean would be about sqrt(d / n) · sigma.
    means = [positions_along_source(*twins(seed, n=50, shift=0.0)).mean() for seed in range(60)]
    assert abs(np.mean(means)) < 4 * np.std(means) / math.sqrt(60)


def test_anisotropy_is_the_mean_cosine_of_all_pairs() -> None:
    human, other = twins(2, n=30)
    human = human + 0.5
    found = source_geometry(human, other)
    unit = human / np.linalg.norm(human, axis=1, keepdims=True)
    cosines = [unit[i] @ unit[j] for i, j in combinations(range(30), 2)]
    assert found.anisotropy_human.estimate == pytest.approx(np.mean(cosines))
    difference = found.anisotropy_difference.estimate
    assert difference == pytest.approx(
        found.anisotropy_other.estimate - found.anisotropy_human.estimate
    )


def test_jackknife_ends_are_those_of_leaving_out_each_document() -> None:
    human, other = twins(3, n=25)
    found = source_geometry(human, other).anisotropy_human

    def mean_cosine(rows: np.ndarray) -> float:
        unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        return float(np.mean([unit[i] @ unit[j] for i, j in combinations(range(len(unit)), 2)]))

    left_out = np.array([mean_cosine(np.delete(human, i, axis=0)) for i in range(25)])
    error = math.sqrt(24 / 25 * np.sum((left_out - left_out.mean()) ** 2))
    assert found.half_width == pytest.approx(2.0638986 * error, rel=1e-6)  # t(24), .975


def test_the_common_share_is_unbiased_and_covers() -> None:
    truth = 1 / (1 + 12 * 2)  # shift² / (shift² + d · 2 own²)
    found = [source_geometry(*twins(seed, n=60), folds=2).common_share for seed in range(80)]
    assert np.mean([f.estimate for f in found]) == pytest.approx(truth, abs=0.006)
    assert np.mean([not f.excludes(truth) for f in found]) >= 0.88
    without = [source_geometry(*twins(s, n=60, shift=0.0), folds=2).common_share for s in range(40)]
    assert abs(np.mean([f.estimate for f in without])) < 0.004


def test_the_probe_reaches_what_is_possible_and_no_more() -> None:
    human, other = twins(4, n=2000, shift=2.0)
    documents, pairs = probe_accuracy(human, other)
    # On shift / 2 = 1 with variance 2 (shared and own); within a pair the shared part cancels.
    assert documents.estimate == pytest.approx(0.5 * math.erfc(-1 / 2), abs=0.02)
    assert pairs.estimate == pytest.approx(
        0.5 * math.erfc(-2 / math.sqrt(2) / math.sqrt(2)), abs=0.02
    )
    assert documents.n_labeled == 2000


def test_a_probe_of_noise_stays_at_chance_with_more_dimensions_than_pairs() -> None:
    # Twins in different folds would be told apart: each has the other's features.
    found = [probe_accuracy(*twins(s, n=30, d=60, shift=0, own=0.1), rng=s) for s in range(25)]
    documents = [d.estimate for d, _ in found]
    assert abs(np.mean(documents) - 0.5) < 4 * np.std(documents) / math.sqrt(25)
    assert np.mean([not d.excludes(0.5) for d, _ in found]) >= 0.88


def test_identical_versions_are_at_chance_exactly() -> None:
    human, _ = twins(5, n=40)
    found = source_geometry(human, human)
    assert found.probe_accuracy.estimate == 0.5
    assert found.probe_pair_accuracy.estimate == 0.5
    assert found.shift == 0
    assert found.common_share is None
    assert found.twin_cosine is None
    assert found.anisotropy_difference is None


def test_the_map_is_the_plane_of_numpys_svd() -> None:
    human, other = twins(6)
    found = map_vectors(human, other)
    joint = np.concatenate((human, other))
    joint = joint - joint.mean(axis=0)
    left, values, _ = np.linalg.svd(joint, full_matrices=False)
    both = np.concatenate((found.human, found.other))
    np.testing.assert_allclose(np.abs(both), np.abs(left[:, :2] * values[:2]), atol=1e-8)
    np.testing.assert_allclose(found.variance_shares, (values**2 / (values**2).sum())[:2])
    flipped = map_vectors(-human, -other)
    np.testing.assert_allclose(flipped.human, -found.human, atol=1e-8)


def test_what_cannot_be_described_is_refused() -> None:
    human, other = twins(7, n=30)
    with pytest.raises(InsufficientDataError, match="10 pairs; at least 20"):
        source_geometry(human[:10], other[:10])
    with pytest.raises(DataError, match="folds is 1; it must be between 2 and the 30 pairs"):
        source_geometry(human, other, folds=1)
    with pytest.raises(DataError, match="1 component"):
        map_vectors(human[:, :1], other[:, :1])
    with pytest.raises(DataError, match="all vectors are alike"):
        map_vectors(np.ones((3, 2)), np.ones((3, 2)))
