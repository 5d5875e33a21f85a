"""What nobody judged of a run: found by the literal definition, filled from the right documents."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rag_sourcebias.core.data import Qrels, Run, TagTable
from rag_sourcebias.intake.documents import read_tags
from rag_sourcebias.measure.relevance import (
    Retrieved,
    Ties,
    chance_scores,
    filled,
    join,
    says_what_is_not_relevant,
    with_share,
)

SOURCES = ("human", "llm:x")
BINS = ((1, 5), (6, 10), (11, 20), (21, 50), (51, 100), (101, 10**9))


def random_world(seed: int, n_docs: int = 130) -> tuple[Run, Qrels, TagTable]:
    rng = np.random.default_rng(seed)
    docs = [f"d{i}" for i in range(n_docs)]
    results = {
        f"q{q}": {str(d): float(-i) for i, d in enumerate(rng.permutation(docs)[:120])}
        for q in range(6)
    }
    judged = {
        query: {d: int(rng.integers(0, 3)) for d in rng.permutation(docs)[:40]}
        for query in [*results, "q-without-results"]
    }
    tags = read_tags({d: (*SOURCES, None)[int(rng.integers(0, 3))] for d in docs})
    return Run.from_dict(results), Qrels.from_dict(judged), tags


def by_hand(run: Run, qrels: Qrels, tags: TagTable) -> list[tuple[str, str, str, int, int]]:
    """Query, document, source, rank and grade (-1: nobody judged) of what has a source."""
    grade = {
        (qrels.query_ids[q], qrels.doc_ids[d]): int(g)
        for q, d, g in zip(qrels.query_codes, qrels.doc_codes, qrels.grades, strict=True)
    }
    return [
        (ranked.query_id, doc, source, rank, grade.get((ranked.query_id, doc), -1))
        for ranked in run
        for rank, doc in enumerate(ranked.doc_ids, start=1)
        if (source := tags.get(doc).source) is not None
    ]


@pytest.mark.parametrize("seed", range(4))
def test_what_was_judged_is_found(seed: int) -> None:
    run, qrels, tags = random_world(seed)
    found = Retrieved.of(run, qrels, tags)
    rows = [
        (found.qrels.query_ids[q], found.qrels.doc_ids[d], tags.sources[s], int(r), int(g))
        for q, d, s, r, g in zip(
            found.query, found.doc, found.source, found.rank, found.grade, strict=True
        )
    ]
    expected = by_hand(run, qrels, tags)
    assert rows == expected
    for at, source in enumerate(tags.sources):
        top = [grade >= 0 for _, _, s, rank, grade in expected if s == source and rank <= 7]
        assert found.share_judged(at, 7) == pytest.approx(np.mean(top))


def test_a_source_that_is_not_on_the_first_ranks_has_no_share() -> None:
    run = Run.from_dict({"q": {"h": 2.0, "l": 1.0}})
    tags = read_tags({"h": "human", "l": "llm:x"})
    found = Retrieved.of(run, Qrels.from_dict({"q": {"h": 0}}), tags)
    assert found.share_judged(tags.sources.index("llm:x"), 1) is None
    assert found.share_judged(tags.sources.index("llm:x"), 2) == 0.0


@pytest.mark.parametrize("seed", range(4))
def test_holes_get_grades_of_their_source_and_bin_of_ranks(seed: int) -> None:
    run, qrels, tags = random_world(seed)
    retrieved = Retrieved.of(run, qrels, tags)
    grades = filled(retrieved, np.random.default_rng(0))
    assert grades is not None
    again = retrieved.judgments(grades)
    before = {
        (qrels.query_ids[q], qrels.doc_ids[d]): int(g)
        for q, d, g in zip(qrels.query_codes, qrels.doc_codes, qrels.grades, strict=True)
    }
    after = {
        (again.query_ids[q], again.doc_ids[d]): int(g)
        for q, d, g in zip(again.query_codes, again.doc_codes, again.grades, strict=True)
    }
    assert {pair: after[pair] for pair in before} == before
    rows = by_hand(run, qrels, tags)
    for low, high in BINS[:-1]:
        for source in SOURCES:
            here = [row for row in rows if row[2] == source and low <= row[3] <= high]
            donors = {grade for *_, grade in here if grade >= 0}
            drawn = {after.get(row[:2], 0) for row in here if row[4] < 0}
            assert donors
            assert drawn <= donors


def test_parts_of_queries_draw_from_their_own_judgments() -> None:
    # one document on rank 1 of each query: judged relevant in the first part, not so in the second
    run = Run.from_dict({f"q{i}": {f"d{i}": 1.0} for i in range(40)})
    tags = read_tags({f"d{i}": "human" for i in range(40)})
    judged = {f"q{i}": {f"d{i}": int(i < 20)} for i in range(0, 40, 2)}
    holes = {f"q{i}": {"other": 0} for i in range(1, 40, 2)}
    retrieved = Retrieved.of(run, Qrels.from_dict(judged | holes), tags)
    number = [int(query[1:]) for query in retrieved.qrels.query_ids]
    parts = (np.array(number) >= 20).astype(np.int64)
    grades = filled(retrieved, np.random.default_rng(0), parts)
    assert grades is not None
    np.testing.assert_array_equal(grades, (parts[retrieved.query] == 0).astype(np.int64))


def test_grades_are_drawn_as_often_as_they_are_judged() -> None:
    # 400 queries with one document each on rank 1; a quarter of the judged ones is relevant
    run = Run.from_dict({f"q{i}": {f"d{i}": 1.0} for i in range(400)})
    tags = read_tags({f"d{i}": "human" for i in range(400)})
    qrels = Qrels.from_dict({f"q{i}": {f"d{i}": int(i % 4 == 0)} for i in range(200)} | {
        f"q{i}": {"other": 0} for i in range(200, 400)
    })  # fmt: skip
    retrieved = Retrieved.of(run, qrels, tags)
    rng = np.random.default_rng(1)
    drawings = [filled(retrieved, rng) for _ in range(50)]
    new = [
        int((retrieved.judgments(each).grades > 0).sum()) - 50
        for each in drawings
        if each is not None
    ]
    assert len(new) == 50
    assert np.mean(new) == pytest.approx(50, abs=4)  # of 200 holes; standard error of the mean: .9
    assert np.std(new) > 2  # each drawing is another


def test_bins_without_judgments_take_the_nearest_above() -> None:
    docs = {f"d{i:02}": float(-i) for i in range(30)}
    run = Run.from_dict({"q": docs})
    tags = read_tags(dict.fromkeys(docs, "human"))
    qrels = Qrels.from_dict({"q": {"d00": 2, "d25": 0}})
    retrieved = Retrieved.of(run, qrels, tags)
    grades = filled(retrieved, np.random.default_rng(0))
    assert grades is not None
    again = retrieved.judgments(grades)
    grade = dict(zip((again.doc_ids[d] for d in again.doc_codes), again.grades, strict=True))
    assert all(grade[f"d{i:02}"] == 2 for i in range(20))  # ranks 1 to 20: from rank 1
    assert all(grade.get(f"d{i:02}", 0) == 0 for i in range(20, 30))


def test_nothing_is_known_of_a_source_of_which_nothing_was_judged() -> None:
    run = Run.from_dict({"q": {"h": 2.0, "l": 1.0}})
    tags = read_tags({"h": "human", "l": "llm:x"})
    qrels = Qrels.from_dict({"q": {"h": 1, "x": 0}})
    assert filled(Retrieved.of(run, qrels, tags), np.random.default_rng(0)) is None


def test_a_share_of_the_unjudged_becomes_relevant() -> None:
    run, qrels, tags = random_world(0)
    retrieved = Retrieved.of(run, qrels, tags)
    n_holes = int(np.count_nonzero(~retrieved.judged))
    for share, n_new in ((0.0, 0), (1.0, n_holes)):
        grades = with_share(retrieved, share, np.random.default_rng(0))
        assert len(retrieved.judgments(grades)) == len(qrels) + n_new


@pytest.mark.parametrize("ties", ["expected", "trec"])
@pytest.mark.parametrize("seed", range(4))
def test_hits_up_to_the_cutoff_give_what_all_hits_give(seed: int, ties: Ties) -> None:
    run, qrels, tags = random_world(seed)
    scores = np.round(np.tile(-np.arange(120.0), 6) / 3)  # in blocks of three
    run = replace(run, scores=scores)
    retrieved = Retrieved.of(run, qrels, tags, ties=ties)
    grades = filled(retrieved, np.random.default_rng(0))
    assert grades is not None
    again = retrieved.judgments(grades)
    groups = retrieved.sources
    measures, cutoffs = ("NDCG", "MAP", "MRR", "P", "Recall"), (3, 10)
    found = chance_scores(
        retrieved.hits(grades, 10), again, groups, measures=measures, cutoffs=cutoffs, gain="linear"
    )
    literal = chance_scores(
        join(run, again, ties=ties),
        again,
        groups,
        measures=measures,
        cutoffs=cutoffs,
        gain="linear",
    )
    np.testing.assert_allclose(found.skew(), literal.skew(), atol=1e-12)
    np.testing.assert_allclose(found.base(), literal.base(), atol=1e-12)


def test_judgments_of_relevant_documents_alone_say_nothing_of_holes() -> None:
    assert not says_what_is_not_relevant(Qrels.from_dict({"q": {"d": 1}}))
    assert says_what_is_not_relevant(Qrels.from_dict({"q": {"d": 1, "e": 0}}))
