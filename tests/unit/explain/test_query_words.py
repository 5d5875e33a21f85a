"""Query words and their weights against dictionaries."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rag_sourcebias.explain.causes import QueryWords, corpus_idf, judged_words, word_sets
from rag_sourcebias.measure.texts import words


def judged(queries, human, other, pairs) -> QueryWords:
    """``pairs``: (query row, row of both versions)."""
    vocabulary: dict[str, int] = {}
    ours, theirs, asked = (word_sets(column, vocabulary) for column in (human, other, queries))
    at, rows = (np.array(column, dtype=np.int64) for column in zip(*pairs, strict=True))
    searched = word_sets([*human, *other], vocabulary)
    idf = corpus_idf(searched, n_codes=len(vocabulary))
    return judged_words(asked.take(at), ours.take(rows), theirs.take(rows), idf=idf)


def random_case(seed: int, *, n: int = 120):
    """Words 0–9 are rare; rewriting drops a third of all words and puts in others."""
    rng = np.random.default_rng(seed)
    names = np.array([f"w{i:03}" for i in range(150)])
    weights = 1 / (10 + np.arange(150))
    human = [" ".join(rng.choice(names, 25, p=weights / weights.sum())) for _ in range(n)]
    other = []
    for text in human:
        kept = [word for word in text.split() if rng.random() > 0.33]
        other.append(" ".join([*kept, *rng.choice(names, 8), "moreover"]))
    queries = [" ".join(rng.choice(text.split(), 5)) + " notacorpusword" for text in human[::2]]
    pairs = [(q, q * 2) for q in range(len(queries))] + [(q, q * 2 + 1) for q in range(20)]
    return queries, human, other, pairs


def idf(word: str, texts: list[str]) -> float:
    holding = sum(word in words(text) for text in texts)
    return math.log(1 + (len(texts) - holding + 0.5) / (holding + 0.5))


def test_shares_of_weight_are_those_of_the_definition() -> None:
    queries, human, other, pairs = random_case(0)
    found = judged(queries, human, other, pairs)
    assert found.rows.tolist() == list(range(len(pairs)))
    for row, (query, at) in enumerate(pairs):
        asked = {w for w in words(queries[query]) if w != "notacorpusword"}
        mixed = {w: idf(w, human + other) for w in asked}
        held = [asked & set(words(side[at])) for side in (human, other)]
        total = sum(mixed.values())
        assert found.human[row] == pytest.approx(sum(mixed[w] for w in held[0]) / total)
        assert found.other[row] == pytest.approx(sum(mixed[w] for w in held[1]) / total)


def test_queries_without_a_known_word_do_not_count() -> None:
    found = judged(["nowhere", "a", "b"], ["a", "b c"], ["a", "d"], [(0, 0), (1, 0), (2, 1)])
    assert found.rows.tolist() == [1, 2]
