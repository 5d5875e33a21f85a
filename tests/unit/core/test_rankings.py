"""Runs: order, duplicates, validation, views."""

from __future__ import annotations

import numpy as np
import pytest

from rag_sourcebias.core.data import RankedList, Run
from rag_sourcebias.core.errors import DataError


def run_of(**changes):
    fields = {
        "query_ids": ("q1", "q2"),
        "offsets": np.array([0, 2, 3]),
        "doc_codes": np.array([0, 1, 0], dtype=np.int32),
        "doc_ids": ("a", "b"),
        "scores": np.array([2.0, 1.0, 5.0], dtype=np.float32),
    }
    return Run(**{**fields, **changes})


def test_from_dict_orders_by_score_and_keeps_the_order_of_ties():
    run = Run.from_dict({"q": {"low": 1.0, "tied2": 2.0, "tied1": 2.0, "top": 3.0}}, name="mine")
    assert run.ranked_list(0).doc_ids == ("top", "tied2", "tied1", "low")
    assert run.scores.dtype == np.float64
    assert run.name == "mine"
    np.testing.assert_array_equal(run.ranks, [1, 2, 3, 4])


def test_from_lists_keeps_the_native_order():
    lists = [
        RankedList(query_id="q1", doc_ids=("b", "a"), scores=np.float32([0.1, 0.9])),
        RankedList(query_id="q2", doc_ids=()),
    ]
    run = Run.from_lists(lists)
    assert [r.doc_ids for r in run] == [("b", "a"), ()]
    assert run.scores is None  # not every list has scores
    with_scores = Run.from_lists(lists[:1])
    np.testing.assert_allclose(with_scores.scores, [0.1, 0.9])
    assert len(Run.from_lists([])) == 0


def test_from_arrays_sorts_queries_and_drops_repeated_documents():
    run = Run.from_arrays(
        query_ids=["q1", "q2", "q3"],
        query_codes=np.array([1, 0, 1, 1, 0]),
        doc_codes=np.array([2, 1, 2, 0, 0]),
        doc_ids=["a", "b", "c"],
    )
    assert [r.doc_ids for r in run] == [("b", "a"), ("c", "a"), ()]
    assert run.n_duplicates == 1
    np.testing.assert_array_equal(run.query_codes, [0, 0, 1, 1])


def test_top():
    run = Run.from_dict({"q1": {"a": 3.0, "b": 2.0, "c": 1.0}, "q2": {}, "q3": {"a": 1.0}})
    top = run.top(2)
    assert [r.doc_ids for r in top] == [("a", "b"), (), ("a",)]
    assert top.doc_ids == run.doc_ids
    np.testing.assert_allclose(top.scores, [3, 2, 1])
    assert [r.doc_ids for r in run.top(99)] == [r.doc_ids for r in run]
    with pytest.raises(DataError, match="got 0"):
        run.top(0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"query_ids": ("q1", "q1")}, "query id twice"),
        ({"offsets": np.array([0, 3])}, "offsets must start at 0 and have length 3"),
        ({"offsets": np.array([1, 2, 3])}, "offsets must start at 0"),
        ({"offsets": np.array([0, 3, 2])}, "offsets must rise"),
        ({"offsets": np.array([0, 1, 2])}, "offsets must rise"),
        ({"doc_codes": np.array([0, 1, 2], dtype=np.int32)}, "outside the vocabulary"),
        ({"doc_codes": np.array([0, 1, -1], dtype=np.int32)}, "outside the vocabulary"),
        ({"scores": np.zeros(2, dtype=np.float32)}, "differ in number"),
        (
            {"scores": np.array([1, 2, np.nan], dtype=np.float32)},
            r"1 NaN score\(s\), first for query 'q2', document 'a'",
        ),
    ],
)
def test_validation(changes, message):
    with pytest.raises(DataError, match=message):
        run_of(**changes)
