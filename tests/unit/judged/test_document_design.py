from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from judged_pools import GAINS

from rag_sourcebias.core.errors import DataError, InsufficientDataError
from rag_sourcebias.infer.samples import inclusion_probabilities
from rag_sourcebias.judged.crc import RankedLabels, dcg_weights
from rag_sourcebias.judged.plan import (
    DocumentSample,
    design_document_sample,
    outlook,
    residual_spread,
)


def pool(n_queries=40, n_docs=12, *, cutoff=10, seed=0):
    rng = np.random.default_rng(seed)
    probs = rng.dirichlet(np.full(4, 0.4), (n_queries, n_docs))
    return RankedLabels.from_grid(probs, dcg_weights(np.arange(1, n_docs + 1), cutoff), GAINS)


def test_chances_follow_weight_and_doubt():
    labels = pool()
    sample = design_document_sample(labels, 60, seed=1)
    sd = np.sqrt(labels.probs @ GAINS**2 - (labels.probs @ GAINS) ** 2)
    used = labels.weights > 0
    gain, doubt = labels.probs @ GAINS, sd[used].mean()
    spread = (2 * doubt + sd) / (3 * doubt) + np.sqrt(gain / gain[used].mean())
    size = labels.weights * spread
    np.testing.assert_allclose(sample.inclusion, 60 * size / size.sum())
    assert sample.n_labels == 60
    assert sample.inclusion.sum() == pytest.approx(60)
    assert (sample.inclusion[labels.weights == 0] == 0).all()
    assert (labels.weights[sample.rows] > 0).all()


def test_a_judge_that_tells_nothing_apart_leaves_equal_chances():
    labels = pool()
    alike = replace(labels, probs=np.broadcast_to(labels.probs[0], labels.probs.shape).copy())
    np.testing.assert_allclose(residual_spread(alike), residual_spread(alike)[0])
    np.testing.assert_allclose(
        design_document_sample(alike, 60, seed=1).inclusion,
        60 * labels.weights / labels.weights.sum(),
    )
    lowest = np.zeros_like(labels.probs)
    lowest[:, 0] = 1.0
    np.testing.assert_array_equal(residual_spread(replace(labels, probs=lowest)), 1.0)


@pytest.mark.parametrize("n", [1, 5, 9, 10])
def test_chances_are_capped_and_still_sum_to_n(n):
    size = np.array([100.0, 50.0, 3.0, 2.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0])
    chance = inclusion_probabilities(size, n)
    assert chance.sum() == pytest.approx(n)
    assert chance.max() <= 1
    assert chance[-1] == 0
    free = (chance > 0) & (chance < 1)
    if free.any():  # what is not capped stays proportional
        assert np.ptp(chance[free] / size[free]) < 1e-12


@pytest.mark.parametrize("n_labels", [15, 47, 200, 399, 400])
def test_size_is_fixed_whatever_the_seed(n_labels):
    labels = pool()
    for seed in range(20):
        rows = design_document_sample(labels, n_labels, seed=seed).rows
        assert len(rows) == len(set(rows.tolist())) == n_labels


def test_documents_are_drawn_with_their_chances():
    labels = pool(8, 6, cutoff=5)
    runs = 4000
    rng = np.random.default_rng(3)
    hits = np.zeros(48)
    for _ in range(runs):
        sample = design_document_sample(labels, 13, seed=int(rng.integers(2**53)))
        hits[sample.rows] += 1
    p = sample.inclusion
    z = (hits / runs - p) / np.sqrt(np.maximum(p * (1 - p), 1e-12) / runs)
    assert np.abs(z[(p > 0) & (p < 1)]).max() < 4.5
    assert (hits[p == 0] == 0).all()


def test_every_query_gets_its_share_rounded():
    labels = pool(40)
    expected = None
    for seed in range(30):
        sample = design_document_sample(labels, 100, seed=seed)
        expected = np.bincount(labels.query, weights=sample.inclusion)
        got = np.bincount(labels.query[sample.rows], minlength=40)
        assert (got >= np.floor(expected - 1e-9)).all()
        assert (got <= np.ceil(expected + 1e-9)).all()
    assert expected.min() > 1  # so no query was ever left out


def pilot_of(rows, gains):
    known = np.full(480, np.nan)
    known[rows] = gains
    return known


def test_the_pilot_is_certain_and_counts():
    labels = pool()
    known = pilot_of([400, 3, 11], [0.0, 1.0, 7.0])
    sample = design_document_sample(labels, 50, pilot=known, seed=0)
    assert sample.n_labels == 50
    assert sample.inclusion[[3, 400]].tolist() == [1, 1]
    assert {3, 400} <= set(sample.rows.tolist())
    assert sample.inclusion[11] == 0  # rank 12 has no weight: its label decides nothing


def test_refusals():
    labels = pool()
    with pytest.raises(DataError, match="401 labels asked for, but only 400 documents of 480"):
        design_document_sample(labels, 401, seed=0)
    with pytest.raises(InsufficientDataError, match="0 labels asked for with 0 labelled already"):
        design_document_sample(labels, 0, seed=0)
    known = pilot_of([0, 1], 0.0)
    with pytest.raises(InsufficientDataError, match="2 labels asked for with 2") as caught:
        design_document_sample(labels, 2, pilot=known, seed=0)
    assert caught.value.n_needed == 3
    with pytest.raises(DataError, match="chance of inclusion is 0"):
        DocumentSample(rows=np.array([0]), inclusion=np.zeros(2), seed=0, fingerprint="x")


def test_a_pilot_takes_ten_documents():
    labels = pool()
    rows = np.arange(10)  # all have a rank with weight
    known = pilot_of(rows, GAINS[rows % 4])
    assert outlook(labels, pilot=known, target="pool", confidence_level=0.95).between > 0
    few = pilot_of(rows[1:], GAINS[rows[1:] % 4])
    with pytest.raises(InsufficientDataError, match="a pilot of 9 labelled documents") as caught:
        outlook(labels, pilot=few, target="pool", confidence_level=0.95)
    assert (caught.value.n, caught.value.n_needed) == (9, 10)
