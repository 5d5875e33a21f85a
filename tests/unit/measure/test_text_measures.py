"""Lengths, overlap and length matching."""

from __future__ import annotations

import numpy as np
import pytest
from tagged_texts import corpus_of

from rag_sourcebias.measure.texts import jaccard, mean_words, overlap, word_counts
from rag_sourcebias.source.audit import match_lengths


@pytest.mark.parametrize(
    ("a", "b", "jac", "kept"),
    [
        ("the cat sat", "The CAT stood", 2 / 4, 2 / 3),
        ("a b c d", "a b", 2 / 4, 1.0),
        ("", "", 1.0, 1.0),
        ("", "words", 0.0, 0.0),
        ("words", "", 0.0, 1.0),
        ("über straße", "Über, Straße!", 1.0, 1.0),
        ("東京 タワー", "東京", 1 / 2, 1.0),
    ],
)
def test_overlap_and_jaccard(a, b, jac, kept):
    assert jaccard(a, b) == pytest.approx(jac)
    assert jaccard(b, a) == pytest.approx(jac)
    assert overlap(a, b) == pytest.approx(kept)


def test_word_counts():
    assert word_counts(["", "one", "two  words.", "it's 3_4 v2"]).tolist() == [0, 1, 2, 4]
    assert word_counts([]).shape == (0,)


def test_mean_words_per_source():
    both = corpus_of(
        ("a", "human", None, "one two"), ("b", "human", None, ""), ("c", "llm:x", None, "x")
    )
    parts = (both, both.of_source("human"), corpus_of(("a", None, None, "x")))
    means = [
        mean_words(word_counts(part.texts), part.tags.sources, part.tags.source_codes)
        for part in parts
    ]
    assert means == [{"human": 1.0, "llm:x": 1.0}, {"human": 1.0}, {}]


def test_match_lengths_cuts_to_the_shortest_version():
    given = corpus_of(
        ("h1", "human", "p1", "One, two; three four."),
        ("l1", "llm:x", "p1", "(uno) dos!"),
        ("m1", "llm:y", "p1", "a b c"),
        ("h2", "human", "p2", "short"),
        ("l2", "llm:x", "p2", "short too"),
        ("loner", "human", None, "left as it is"),
    )
    matched = match_lengths(given)
    assert matched.texts == ("One, two", "(uno) dos!", "a b", "short", "short", "left as it is")
    assert matched.tags is given.tags
    counts = word_counts(matched.texts)
    for code in range(2):
        assert len(set(counts[np.flatnonzero(given.tags.pair_codes == code)])) == 1


def test_match_lengths_of_a_single_pair():
    given = corpus_of(("h", "human", "p", "one two three"), ("l", "llm:x", "p", "one two"))
    assert match_lengths(given).texts == ("one two", "one two")
