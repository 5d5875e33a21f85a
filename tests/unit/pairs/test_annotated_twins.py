"""Triples of [K] Table 3 out of a data set."""

from __future__ import annotations

import pytest

from rag_sourcebias.core.data import Corpus, Dataset, DocTags, Qrels, Query, TagTable
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.pairs.annotate import AnnotationUnit, annotation_units

SOURCES = ("human", "llm:a", "llm:b")


def corpus(n: int = 3) -> Corpus:
    rows = [(f"d{i}@{s}", DocTags(source=s, pair_id=f"d{i}")) for i in range(n) for s in SOURCES]
    texts = tuple(f"{doc_id} text" for doc_id, _ in rows)
    return Corpus(texts=texts, tags=TagTable.from_tags(rows))


def dataset() -> Dataset:
    grades = {
        "q0": {"d0@human": 2, "d0@llm:a": 2, "d1@llm:a": 1, "d2@human": 0},
        "q1": {"d0@human": 1},
        "gone": {"d2@human": 1},
    }
    return Dataset(
        name="x",
        corpus=corpus(),
        queries=tuple(Query(query_id=f"q{i}", text=f"query {i}") for i in range(2)),
        qrels=Qrels.from_dict(grades),
    )


def test_every_relevant_pair_comes_with_each_of_its_queries() -> None:
    units = annotation_units(dataset(), source="llm:a")
    assert [u.unit_id for u in units] == ["q0 d0", "q0 d1", "q1 d0"]
    assert units[0] == AnnotationUnit(
        unit_id="q0 d0",
        texts=("d0@human text", "d0@llm:a text"),
        sources=("human", "llm:a"),
        query="query 0",
    )


def test_what_is_wrong_is_named() -> None:
    with pytest.raises(DataError, match=r"\['llm:a', 'llm:b'\]; name one of them as source"):
        annotation_units(corpus())
