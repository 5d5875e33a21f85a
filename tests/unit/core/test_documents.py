"""Tags and corpora."""

from __future__ import annotations

import pytest

from rag_sourcebias.core.data import Corpus, DocTags, TagTable
from rag_sourcebias.core.errors import DataError

ROWS = [
    ("a", DocTags(source="human", pair_id="p1", origin="declared")),
    ("b", DocTags(source="llm:x", pair_id="p1", style="formal", confidence=0.25)),
    ("c", DocTags(source="llm:y")),
    ("d", DocTags()),
]


def test_table_gives_back_what_went_in():
    table = TagTable.from_tags(ROWS)
    assert [(d, table.get(d)) for d in table.doc_ids] == ROWS
    assert table.get("unknown") == DocTags()
    assert table.sources == ("human", "llm:x", "llm:y")
    assert table.counts() == {"human": 1, "llm:x": 1, "llm:y": 1, "": 1}
    assert table.rows_for(["c", "?", "a"]).tolist() == [2, -1, 0]


def test_unknown_is_never_folded_into_human():
    table = TagTable.from_tags(ROWS).merge_sources({"llm": ["llm:x", "llm:y"]})
    assert table.sources == ("human", "llm")
    assert table.source_codes.tolist() == [0, 1, 1, -1]
    assert table.counts() == {"human": 1, "llm": 2, "": 1}
    assert table.get("b").pair_id == "p1"


def test_validation():
    with pytest.raises(DataError, match="'a' is tagged twice"):
        TagTable.from_tags([("a", DocTags()), ("a", DocTags())])
    with pytest.raises(DataError, match="use None for an unknown source"):
        DocTags(source=" ")
    with pytest.raises(DataError, match=r"confidence 1\.5"):
        DocTags(confidence=1.5)


def test_corpus():
    corpus = Corpus(texts=("A", "B", "C", "D"), tags=TagTable.from_tags(ROWS))
    assert list(corpus)[1] == ("b", "B")
    assert corpus.doc_ids == ("a", "b", "c", "d")
    human = corpus.of_source("human")
    assert list(human) == [("a", "A")]
    with pytest.raises(DataError, match="no document has source 'robot'"):
        corpus.of_source("robot")
    with pytest.raises(DataError, match="1 texts but 4 tag rows"):
        Corpus(texts=("A",), tags=TagTable.from_tags(ROWS))
