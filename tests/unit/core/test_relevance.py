"""Qrels: columns, validation, copies for versions."""

from __future__ import annotations

import numpy as np
import pytest

from rag_sourcebias.core.data import Qrels
from rag_sourcebias.core.errors import DataError


def rows(qrels):
    return {
        (qrels.query_ids[q], qrels.doc_ids[d]): int(g)
        for q, d, g in zip(qrels.query_codes, qrels.doc_codes, qrels.grades, strict=True)
    }


def test_from_rows_and_dict_agree():
    qrels = Qrels.from_dict({"q1": {"a": 1, "b": 0}, "q2": {"a": 2}})
    assert rows(qrels) == {("q1", "a"): 1, ("q1", "b"): 0, ("q2", "a"): 2}
    assert rows(Qrels.from_rows([("q1", "a", 1), ("q1", "b", 0), ("q2", "a", 2)])) == rows(qrels)
    assert len(qrels) == 3
    assert len(Qrels.from_dict({})) == 0


def test_negative_grades_become_zero_and_are_counted():
    qrels = Qrels.from_dict({"q": {"a": -2, "b": 1, "c": -1}})
    assert rows(qrels) == {("q", "a"): 0, ("q", "b"): 1, ("q", "c"): 0}


def test_pairs_judged_twice_are_refused():
    with pytest.raises(DataError, match=r"1 pair\(s\) judged twice, first query 'q', document 'b'"):
        Qrels.from_rows([("q", "a", 1), ("q", "b", 1), ("q", "b", 0)])


def test_take_keeps_queries():
    qrels = Qrels.from_dict({"q1": {"a": 1}, "q2": {"b": 2}})
    part = qrels.take(np.array([False, True]))
    assert part.query_ids == ("q1", "q2")
    assert rows(part) == {("q2", "b"): 2}
    assert rows(qrels.take(np.array([0]))) == {("q1", "a"): 1}
