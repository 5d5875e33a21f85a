import json

import pytest
from command_line import write_csv

from rag_sourcebias.core.errors import DataError
from rag_sourcebias.intake.beir import read_texts
from rag_sourcebias.intake.documents import read_queries


def queries(path):
    return {query.query_id: query.text for query in read_queries(path)}


def test_beir_lines_put_the_title_first(tmp_path):
    path = tmp_path / "corpus.jsonl"
    rows = [{"_id": "d1", "title": "T", "text": "x"}, {"_id": "d2", "title": "", "text": "ÿ"}]
    path.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    assert read_texts(path) == {"d1": "T x", "d2": "ÿ"}


def test_tables_with_and_without_a_header(tmp_path):
    (tmp_path / "q.tsv").write_text("12\twhat is\twet\n", encoding="utf-8")
    with pytest.raises(DataError, match="header but no rows: 12, what is, wet"):
        queries(tmp_path / "q.tsv")
    (tmp_path / "q.tsv").write_text('12\twhat is wet\n13\twhy, "who"\n', encoding="utf-8")
    assert queries(tmp_path / "q.tsv") == {"12": "what is wet", "13": 'why, "who"'}
    (tmp_path / "h.tsv").write_text("qid\ttext\n12\twhat\n", encoding="utf-8")
    assert queries(tmp_path / "h.tsv") == {"12": "what"}
    path = write_csv(tmp_path / "d.csv", ("docno", "contents", "url"), [("a", "x, y\nz", "u")])
    assert read_texts(path) == {"a": "x, y\nz"}


def test_a_paired_beir_folder_names_versions_as_an_audit_does(tmp_path):
    (tmp_path / "corpus").mkdir()
    for source in ("human", "gpt"):
        row = {"_id": "d1", "text": source}
        (tmp_path / "corpus" / f"{source}.jsonl").write_text(json.dumps(row), encoding="utf-8")
    assert read_texts(tmp_path) == {"d1@human": "human", "d1@llm:gpt": "gpt"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("1\ta\n1\tb\n", r"q\.tsv:2: query '1' stands at .*q\.tsv:1 already"),
        ("1\ta\nb\n", r"q\.tsv:2: .*found 1: .*'b'"),
        ("qid\tcolour\n1\tred\n", r"no column is recognised as text.*as is usual: text, query"),
        ("", "is empty"),
    ],
)
def test_bad_tables_are_named(tmp_path, content, message):
    (tmp_path / "q.tsv").write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=message):
        queries(tmp_path / "q.tsv")
