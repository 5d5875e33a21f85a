"""Joining runs with judgments, and trec_eval's order, at a size where shortcuts matter."""

from __future__ import annotations

import numpy as np
import pytest

from rag_sourcebias.core.data import Qrels, Run
from rag_sourcebias.measure.relevance import join, rank_span, trec_order


def large(seed=0, n_queries=3000, n_docs=400, depth=30, values=8):
    rng = np.random.default_rng(seed)
    run = {
        f"q{q}": {f"d{d}": float(rng.integers(0, values)) for d in rng.permutation(n_docs)[:depth]}
        for q in rng.permutation(n_queries)
    }
    qrels = {
        f"q{q}": {f"d{d}": int(rng.integers(0, 3)) for d in rng.permutation(n_docs)[:60]}
        for q in range(100, n_queries + 100)
    }
    return run, qrels


def test_join_finds_exactly_the_relevant_entries():
    """120,000 wanted pairs: the hashed table has collisions, the hits must not."""
    run, qrels = large()
    run_, qrels_ = Run.from_dict(run), Qrels.from_dict(qrels)
    hits = join(run_, qrels_)
    found = {
        (qrels_.query_ids[q], qrels_.doc_ids[d]): g
        for q, d, g in zip(hits.query, hits.doc, hits.grade.tolist(), strict=True)
    }
    wanted = {
        (q, d): g for q, row in qrels.items() for d, g in row.items() if g and d in run.get(q, {})
    }
    assert len(hits.query) == len(wanted)
    assert found == wanted


@pytest.mark.parametrize("values", [1, 8, 10**9])
@pytest.mark.parametrize("sort_by_score", [True, False])
def test_trec_order_is_python_sorting(values, sort_by_score):
    run, _ = large(values=values, n_queries=300)
    rows = [(q, d, s) for q, row in run.items() for d, s in row.items()]
    queries, docs = sorted(run), sorted({d for _, d, _ in rows})
    built = Run.from_arrays(
        query_ids=queries,
        query_codes=np.array([queries.index(q) for q, _, _ in rows]),
        doc_codes=np.array([docs.index(d) for _, d, _ in rows]),
        doc_ids=docs,
        scores=np.array([s for *_, s in rows], dtype=np.float32),
        sort_by_score=sort_by_score,
    )
    for ranked in trec_order(built):
        row = run[ranked.query_id]
        wanted = sorted(row, key=lambda d: (np.float32(row[d]), d), reverse=True)
        assert list(ranked.doc_ids) == wanted
        assert ranked.scores.tolist() == [np.float32(row[d]) for d in wanted]


def test_equal_scores_of_neighbouring_queries_are_not_a_tie():
    run = Run.from_dict({"q1": {"b": 1.0}, "q2": {"a": 1.0, "c": 1.0}, "q3": {"b": 1.0}})
    start, stop = rank_span(run, np.arange(4), ties="expected")
    assert (start.tolist(), stop.tolist()) == ([0, 0, 0, 0], [1, 2, 2, 1])
    assert [r.doc_ids for r in trec_order(run)] == [("b",), ("c", "a"), ("b",)]
