"""Perturbed distributions against a literal Eq. 16–19."""

from __future__ import annotations

import numpy as np
import pytest
from crc_oracles import awkward_labels, perturb_literally, utilities_literally
from hypothesis import given
from hypothesis import strategies as st

from rag_sourcebias.judged.crc import perturb

LAMBDAS = (-1.0, -0.999, -0.7, -0.35, -0.05, 0.0, 0.05, 0.4, 0.75, 0.999, 1.0)
seeds = st.integers(0, 100_000)


def test_worked_example():
    p = np.array([[0.35, 0.4, 0.2, 0.04, 0.01]])
    np.testing.assert_allclose(perturb(p, 0.5)[0], [0, 0.5, 0.4, 0.08, 0.02], atol=1e-12)
    np.testing.assert_allclose(perturb(p, -0.5)[0], [0.7, 0.3, 0, 0, 0], atol=1e-12)


@pytest.mark.parametrize("lam", LAMBDAS)
@pytest.mark.parametrize("seed", range(12))
def test_equals_the_equations(seed, lam):
    labels, _ = awkward_labels(seed)
    literal = np.array([perturb_literally(list(p), lam) for p in labels.probs])
    np.testing.assert_allclose(
        perturb(labels.probs, lam), literal.reshape(labels.probs.shape), atol=1e-9
    )


@pytest.mark.parametrize("lam", LAMBDAS)
def test_utilities_equal_the_equations(lam):
    for seed in range(12):
        labels, _ = awkward_labels(seed)
        np.testing.assert_allclose(
            labels.utilities_at(lam), utilities_literally(labels, lam), atol=1e-9
        )


@given(seeds)
def test_zero_is_the_prediction_and_the_ends_are_the_extreme_grades(seed):
    labels, _ = awkward_labels(seed)
    np.testing.assert_allclose(labels.utilities_at(0.0), labels.utilities(), atol=1e-9)
    for lam, grade in ((-1.0, 0), (1.0, len(labels.gains) - 1)):
        extreme = labels.total(np.full(len(labels.weights), labels.gains[grade]))
        np.testing.assert_allclose(labels.utilities_at(lam), extreme, atol=1e-9)


def test_one_hot_labels_move_only_at_the_ends():
    labels, _ = awkward_labels(6)
    assert set(np.unique(labels.probs)) == {0.0, 1.0}
    for lam in (-1 + 1e-12, -0.5, 0.5, 1 - 1e-12):
        np.testing.assert_allclose(labels.utilities_at(lam), labels.utilities())
