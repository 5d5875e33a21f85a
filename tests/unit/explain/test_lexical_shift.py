"""Query words and their weights against dictionaries and planted rewrites."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rag_sourcebias.core.errors import InsufficientDataError
from rag_sourcebias.explain.causes import (
    JudgedWords,
    judged_words,
    lexical_shift,
    shifted_terms,
    word_sets,
)
from rag_sourcebias.stats.texts import words


def judged(queries, human, other, pairs) -> tuple[JudgedWords, dict[str, int]]:
    """``pairs``: (query row, row of both versions)."""
    vocabulary: dict[str, int] = {}
    ours, theirs, asked = (word_sets(column, vocabulary) for column in (human, other, queries))
    rows = np.array([row for _, row in pairs], dtype=np.int64)
    found = JudgedWords(
        queries=asked,
        query_rows=np.array([query for query, _ in pairs], dtype=np.int64),
        human=ours,
        other=theirs,
        human_rows=rows,
        other_rows=rows,
    )
    return found, vocabulary


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
    case, vocabulary = judged(queries, human, other, pairs)
    found = judged_words(case, n_codes=len(vocabulary))
    assert found.rows.tolist() == list(range(len(pairs)))
    only = []
    for row, (query, at) in enumerate(pairs):
        asked = {w for w in words(queries[query]) if w != "notacorpusword"}
        mixed = {w: idf(w, human + other) for w in asked}
        held = [asked & set(words(side[at])) for side in (human, other)]
        total = sum(mixed.values())
        assert found.human[row] == pytest.approx(sum(mixed[w] for w in held[0]) / total)
        assert found.other[row] == pytest.approx(sum(mixed[w] for w in held[1]) / total)
        own = sum(idf(w, other) for w in held[1]) / total
        assert found.other_own[row] == pytest.approx(min(own, 1))
        only += [mixed[w] - idf(w, human) for w in held[0] - held[1]]
    assert found.human_only[0].sum() == pytest.approx(sum(only))
    assert len(found.human_only[1]) == len(only)


def test_the_summary_is_of_these_values_by_query() -> None:
    queries, human, other, pairs = random_case(1)
    case, vocabulary = judged(queries, human, other, pairs)
    found = judged_words(case, n_codes=len(vocabulary))
    shift = lexical_shift(case, found, vocabulary=vocabulary, terms=3)
    assert (shift.n_queries, shift.n_pairs) == (60, 80)
    assert shift.coverage_gap.estimate == pytest.approx(np.mean(found.other - found.human))
    assert shift.coverage_gap.n_labeled == 60
    assert shift.gap_own_idf.estimate == pytest.approx(np.mean(found.other_own - found.human_own))
    assert shift.coverage_human.estimate == pytest.approx(found.human.mean())
    assert found.human[:60].min() == pytest.approx(1)  # these queries are made of their words
    assert shift.idf_change_human_only.estimate == pytest.approx(np.mean(found.human_only[0]))
    assert shift.more_other[0].term == "moreover"
    assert len(shift.more_other) == 3


def test_a_dropped_word_weighs_more_on_the_mixed_corpus() -> None:
    """All rewrites drop "kept": of 2N documents N hold it, of the human N all do."""
    n = 40
    human = [f"kept topic{i}" for i in range(n)]
    other = [f"gone topic{i}" for i in range(n)]
    queries = [f"kept topic{i}" if i % 2 else f"topic{i}" for i in range(n)]
    case, vocabulary = judged(queries, human, other, [(i, i) for i in range(n)])
    shift = lexical_shift(case, judged_words(case, n_codes=len(vocabulary)), vocabulary=vocabulary)
    mixed = math.log(1 + (n + 0.5) / (n + 0.5))
    own = math.log(1 + 0.5 / (n + 0.5))
    # All alike: no interval for the change, and none is made up.
    assert shift.idf_change_human_only is None
    assert shift.idf_change_other_only is None
    topic = math.log(1 + (2 * n - 2 + 0.5) / 2.5)
    assert shift.coverage_other.estimate == pytest.approx((1 + topic / (topic + mixed)) / 2)
    found = judged_words(case, n_codes=len(vocabulary))
    np.testing.assert_allclose(found.human_only[0], mixed - own)
    # What the human version gains by the mixing is most of the gap in weight.
    assert shift.coverage_gap.estimate == pytest.approx(-mixed / (topic + mixed) / 2)
    assert shift.gap_own_idf.estimate == pytest.approx(-own / (topic + mixed) / 2)
    assert abs(shift.gap_own_idf.estimate) < 0.05 * abs(shift.coverage_gap.estimate)
    assert [term.term for term in shift.more_human] == ["kept"]
    assert [term.term for term in shift.more_other] == ["gone"]


def test_log_odds_are_those_of_a_table_with_a_half_added() -> None:
    human = ["a x"] * 7 + ["b"] * 3
    other = ["a"] * 2 + ["b x"] * 8
    vocabulary: dict[str, int] = {}
    sides = [word_sets(column, vocabulary) for column in (human, other)]
    more_human, more_other = shifted_terms(*sides, vocabulary=vocabulary)
    assert [(t.term, t.n_human, t.n_other) for t in more_human] == [("a", 7, 2)]
    assert more_human[0].log_odds == pytest.approx(math.log((2.5 / 8.5) / (7.5 / 3.5)))
    assert [t.term for t in more_other] == ["b", "x"]  # x: 7 of 10 against 8 of 10


def test_a_word_of_two_documents_does_not_lead() -> None:
    human = ["often"] * 60 + ["other"] * 40 + ["rare often"] * 2
    other = ["often"] * 20 + ["other"] * 82
    vocabulary: dict[str, int] = {}
    sides = [word_sets(column, vocabulary) for column in (human, other)]
    more_human, _ = shifted_terms(*sides, vocabulary=vocabulary, terms=1)
    assert more_human[0].term == "often"


def test_queries_without_a_known_word_do_not_count() -> None:
    case, vocabulary = judged(
        ["nowhere", "a", "b"], ["a", "b c"], ["a", "d"], [(0, 0), (1, 0), (2, 1)]
    )
    found = judged_words(case, n_codes=len(vocabulary))
    assert found.rows.tolist() == [1, 2]
    case, vocabulary = judged(["nowhere", "a"], ["a"], ["a"], [(0, 0), (1, 0)])
    with pytest.raises(InsufficientDataError, match=r"at least 2 judged queries .* there are 1"):
        lexical_shift(case, judged_words(case, n_codes=len(vocabulary)), vocabulary=vocabulary)
