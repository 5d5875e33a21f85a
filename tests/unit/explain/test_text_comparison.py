"""Lengths and shared words against the plain definitions."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rag_sourcebias.core.data import Histogram
from rag_sourcebias.explain.causes import (
    WordSets,
    compare_texts,
    shared_edges,
    unit_edges,
    word_sets,
)
from rag_sourcebias.measure.texts import jaccard, overlap, words


def made_up(n: int, seed: int) -> tuple[list[str], list[str]]:
    rng = np.random.default_rng(seed)
    names = np.array([f"w{i}" for i in range(60)])
    human = [" ".join(rng.choice(names, rng.integers(1, 30))) for _ in range(n)]
    other = [f"{text} extra{i % 3}" if i % 2 else text[: 3 + i] for i, text in enumerate(human)]
    return human, other


def sets(*columns: list[str]) -> list[WordSets]:
    vocabulary: dict[str, int] = {}
    return [word_sets(column, vocabulary) for column in columns]


def test_values_are_those_of_the_definitions() -> None:
    human, other = made_up(300, 0)
    found = compare_texts(*sets(human, other))
    pairs = list(zip(other, human, strict=True))
    assert found.jaccard.mean == pytest.approx(np.mean([jaccard(*pair) for pair in pairs]))
    assert found.overlap.mean == pytest.approx(np.mean([overlap(*pair) for pair in pairs]))
    assert found.overlap.median == pytest.approx(np.median([overlap(*pair) for pair in pairs]))
    expected, _ = np.histogram([jaccard(*pair) for pair in pairs], np.linspace(0, 1, 41))
    np.testing.assert_array_equal(found.jaccard.counts, expected)
    ratios = [math.log(len(words(b)) / len(words(a))) for b, a in pairs]
    assert found.log_length_ratio.estimate == pytest.approx(np.mean(ratios))
    error = np.std(ratios, ddof=1) / math.sqrt(300)
    assert found.log_length_ratio.half_width == pytest.approx(1.9679 * error, rel=1e-3)
    assert found.mean_words_human == pytest.approx(np.mean([len(words(t)) for t in human]))


def test_taking_texts_keeps_their_words() -> None:
    human, _ = made_up(20, 2)
    vocabulary: dict[str, int] = {}
    found = word_sets([*human, ""], vocabulary)
    names = list(vocabulary)
    rows = np.array([20, 3, 3, 0])
    part = found.take(rows)
    for place, row in enumerate(rows):
        assert {names[code] for code in part.codes[place]} == set(words([*human, ""][row]))
    assert part.n_words.tolist() == [0, *(len(words(human[row])) for row in (3, 3, 0))]
    assert word_sets([], vocabulary).take(np.array([], dtype=int)).codes == []


def test_histograms_hold_every_finite_value() -> None:
    values = np.array([-5.0, 0.1, 0.1, 0.55, 9.0, np.nan])
    found = Histogram.of(values, np.array([0.0, 0.5, 1.0]))
    assert found.counts.tolist() == [3, 2]
    assert found.mean == pytest.approx((-5 + 0.2 + 0.55 + 9) / 5)


def test_edges_suit_the_values() -> None:
    rng = np.random.default_rng(0)
    values = np.append(rng.normal(3, 1, 10_000), [1e6])
    edges = shared_edges(values[:5000], values[5000:])
    assert 0 < edges[0] < 1 < 5 < edges[-1] < 7  # one outlier does not stretch it
    assert shared_edges(np.full(5, 2.0))[[0, -1]].tolist() == [1.5, 2.5]
    assert unit_edges(np.array([0.83, 0.99]))[[0, -1]].tolist() == [0.8, 1.0]
    assert unit_edges(np.array([1.0]))[0] == 0.95
    assert unit_edges(np.array([-1.0]))[0] == -1.0
