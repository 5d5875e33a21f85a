"""Styled texts from records and tables, and what is said about bad ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rag_sourcebias.core.errors import DataError
from rag_sourcebias.intake.styled import load_styled_sample, read_styled_texts


def record(query_id="q1", **changes):
    row = {
        "query_id": query_id,
        "doc_id": f"d-{query_id}",
        "query": "wo liegt Köln?",
        "query_styles": {"formal": "Wo befindet sich Köln?", "loud": "WO KÖLN 🗺️"},
        "human": "Köln liegt am Rhein.",
        "doc_styles": {"loud": "KÖLN! RHEIN! 🎉", "formal": "Die Stadt Köln liegt am Rhein."},
    }
    return row | changes


def write(path: Path, rows, end="\n"):
    lines = [row if isinstance(row, str) else json.dumps(row, ensure_ascii=False) for row in rows]
    path.write_bytes((end.join(lines) + end).encode())
    return path


def refused(path: Path, *words: str):
    with pytest.raises(DataError) as caught:
        read_styled_texts(path)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\n\n"])
def test_records_keep_order_and_unicode(tmp_path, end):
    texts = read_styled_texts(write(tmp_path / "a.jsonl", [record(), record("q2")], end))
    assert texts.query_ids == ("q1", "q2")
    assert texts.doc_ids == ("d-q1", "d-q2")
    assert list(texts.queries) == ["original", "formal", "loud"]
    assert list(texts.documents) == ["human", "loud", "formal"]
    assert texts.documents["loud"] == ("KÖLN! RHEIN! 🎉",) * 2
    assert texts.queries["original"][0] == "wo liegt Köln?"
    assert texts.name == "a.jsonl"


TABLE = [
    ("query_id", "side", "style", "text", "doc_id"),
    ("1", "document", "formal", "Die Stadt Köln, am Rhein", "d1"),
    ("1", "query", "original", "Köln?", ""),
    ("1", "Document", "human", "Köln", "d1"),
    ("2", "query", "original", "Bonn?", ""),
    ("2", "document", "human", "Bonn", "d2"),
]


@pytest.mark.parametrize("between", [",", "\t"])
def test_tables_give_the_same_texts(tmp_path, between):
    cells = [[f'"{c}"' if "," in c and between == "," else c for c in row] for row in TABLE]
    path = write(tmp_path / "a.txt", [between.join(row) for row in cells])
    texts = read_styled_texts(path)
    assert texts.query_ids == ("1", "2")
    assert texts.doc_ids == ("d1", "d2")
    assert dict(texts.queries) == {"original": ("Köln?", "Bonn?")}
    assert list(texts.documents) == ["human", "formal"]  # the original first
    assert texts.documents["formal"] == ("Die Stadt Köln, am Rhein", None)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([record(), record("q2"), record()], (":3:", "'q1'", ":1 already")),
        ([record(human=7)], (":1:", "text is 7", "no text")),
        ([record(doc_styles={"formal": ["a"]})], (":1:", "text is ['a']", "no text")),
        ([record(doc_styles="formal")], (":1:", "doc_styles", "an object of style and text")),
        ([record(query=None)], (":1:", "expected query_id, query")),
        ([record(query_id=" ")], (":1:", "query_id", "non-empty")),
        ([record(doc_id=[1])], (":1:", "doc_id is [1]")),
        ([{"query_id": "1", "query": "a"}], (":1:", "human or doc_styles")),
        ([record(doc_styles={"human": "again"})], (":1:", "'human'", "already")),
        ([record(doc_styles={" ": "x"})], (":1:", "style ' '")),
        ([record(query=" ", query_styles=None)], ("no query style",)),
        ([record(), '{"query_id": '], (":2:", "malformed JSON")),
        (["query_id,style,text", "1,a,b"], ("recognised as side", "query_id, style, text")),
        (["query_id,side,style,text", "1,doc,a,b", "1,doc,a,c"], (":3:", "'a'", ":2 already")),
        (["query_id,side,style,text", "1,title,a,b"], (":2:", "'title'", "query nor document")),
        (["query_id,side,style,text", "1,query,,b"], (":2:", "style ''", "non-empty")),
        (["query_id,side,style,text", "1,query,a,b"], ("no document style",)),
        (["query_id,side,style,text"], ("header but no rows",)),
        (
            ["query_id,side,style,text,doc_id", "1,doc,a,b,d1", "1,doc,c,d,d2"],
            (":3:", "query '1'", ":2 already", "one document"),
        ),
    ],
)
def test_bad_files_are_named_with_line_and_remedy(tmp_path, rows, words):
    path = write(tmp_path / "bad.txt", rows)
    refused(path, "bad.txt", *words)


def test_the_bundled_sample_is_complete():
    texts = load_styled_sample()
    assert len(texts) == 56
    assert list(texts.queries) == ["original", *map(str, range(9))]
    assert list(texts.documents) == ["human", *map(str, range(9))]
    columns = [*texts.queries.values(), *texts.documents.values()]
    assert all(text and text.strip() for column in columns for text in column)
    assert len(texts.distractors) == 104
    assert not set(texts.distractors) & set(texts.documents["human"])
    assert "CC BY 4.0" in texts.license
    assert "Webis" in texts.attribution
