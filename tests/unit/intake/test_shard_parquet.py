from __future__ import annotations

import pickle
import sys

import pytest

from rag_sourcebias.core.data import DocTags, Shard
from rag_sourcebias.core.errors import DataError, MissingExtraError
from rag_sourcebias.retrieval.shards import open_corpus, open_sharded

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


def write(path, rows_per_group=2, **columns):
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path, row_group_size=rows_per_group)
    return path


def ids_and_texts(corpus):
    return [pair for shard in corpus.shards for pair in corpus.read(shard)]


def test_row_groups_become_shards_in_the_order_of_file_names(tmp_path):
    write(tmp_path / "corpus" / "part-1.parquet", _id=list("fg"), text=["6", "7"])
    write(
        tmp_path / "corpus" / "part-0.parquet",
        _id=["a", "b", "c", "d", "ü@x"],
        text=list("12345"),
        title=["One", None, "", None, None],
        source=["human", "llm:x", None, "https://example.org", "human"],
        pair_id=pa.array(["p", "p", None, None, None]).dictionary_encode(),
        style=["news", None, None, None, None],
        other=[1, 2, 3, 4, 5],
    )
    write(
        tmp_path / "corpus" / "part-2.parquet",
        _id=pa.array([], "string"),
        text=pa.nulls(0, "string"),
    )
    (tmp_path / "queries.jsonl").write_text('{"_id": "q", "text": "?"}\n')
    (tmp_path / "qrels").mkdir()
    (tmp_path / "qrels" / "test.tsv").write_text("q\tü@x\t1\n")
    texts = [
        ("a", "One 1"),
        ("b", "2"),
        ("c", "3"),
        ("d", "4"),
        ("ü@x", "5"),
        ("f", "6"),
        ("g", "7"),
    ]
    for shard_documents, sizes in ((1, [2, 2, 1, 2]), (3, [2, 3, 2]), (4, [4, 1, 2]), (99, [5, 2])):
        data = open_sharded(tmp_path, shard_documents=shard_documents)
        corpus = pickle.loads(pickle.dumps(data.corpus))
        assert [shard.n_documents for shard in corpus.shards] == sizes
        assert [shard.first_row for shard in corpus.shards] == [
            sum(sizes[:i]) for i in range(len(sizes))
        ]
        assert ids_and_texts(corpus) == texts
    assert data.design == "unknown"
    assert corpus.judged_as("ü@x") == "ü@x"
    tags = corpus.read(corpus.shards[0]).tags
    assert [tags.get(d) for d in "abcd"] == [
        DocTags(source="human", pair_id="p", style="news", origin="declared"),
        DocTags(source="llm:x", pair_id="p", origin="declared"),
        DocTags(),
        DocTags(),
    ]
    assert ids_and_texts(open_corpus(tmp_path, titles=False))[0] == ("a", "1")


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"name": ["a"], "text": ["t"]}, r"corpus\.parquet: no column is recognised as doc_id"),
        ({"_id": ["a"]}, "no column is recognised as text; its columns are _id"),
        (
            {"_id": pa.array([], "string"), "text": pa.array([], "string")},
            "is empty; expected rows",
        ),
    ],
)
def test_files_that_are_no_corpus_are_refused_when_opened(tmp_path, columns, message):
    write(tmp_path / "corpus.parquet", **columns)
    with pytest.raises(DataError, match=message):
        open_corpus(tmp_path)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"_id": list("abcdb")}, r"parquet: row 5: .*'b' stands at .*: row 2"),
        ({"_id": ["a", "b", "c", "d", None]}, r"parquet: row 5: id None .* must be a non-empty"),
        ({"text": ["1", "2", None, "4", "5"]}, r"parquet: row 3: text is None"),
        ({"text": [3, 1, 4, 1, 5]}, r"parquet: row 1: text is 3"),
        ({"pair_id": [b"7"] * 5}, r"parquet: row 1: pair_id b'7' must be a name"),
    ],
)
def test_rows_are_named(tmp_path, columns, message):
    columns = {"_id": list("abcde"), "text": list("12345")} | columns
    write(tmp_path / "corpus.parquet", **columns)
    corpus = open_corpus(tmp_path)
    with pytest.raises(DataError, match=message):
        corpus.read(corpus.shards[0])


def test_ids_are_texts_however_they_were_typed(tmp_path):
    write(tmp_path / "corpus.parquet", id=[1.0, 2.5], text=["a", "b"], pair_id=[7, 7])
    corpus = open_corpus(tmp_path)
    found = corpus.read(corpus.shards[0])
    assert list(found) == [("1", "a"), ("2.5", "b")]
    assert found.tags.get("1") == DocTags(pair_id="7")


def test_broken_and_changed_files(tmp_path):
    path = write(tmp_path / "corpus.parquet", _id=["a"], text=["t"])
    corpus = open_corpus(tmp_path)
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(DataError, match="changed since it was opened"):
        corpus.read(Shard(index=0, first_row=0, n_documents=1))
    with pytest.raises(DataError, match=r"corpus\.parquet is not a readable Parquet file"):
        open_corpus(tmp_path)


@pytest.mark.parametrize("name", ["corpus.jsonl", "corpus/human.jsonl.gz", "corpus/x.parquet"])
def test_two_corpora_in_a_folder_are_refused(tmp_path, name):
    write(tmp_path / "corpus.parquet", _id=["a"], text=["t"])
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).touch()
    with pytest.raises(DataError, match=r"holds corpus.*, corpus.*; expected one corpus"):
        open_corpus(tmp_path)


def test_without_pyarrow_the_extra_is_named(tmp_path, monkeypatch):
    write(tmp_path / "corpus.parquet", _id=["a"], text=["t"])
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"reading corpus\.parquet needs pyarrow"):
        open_corpus(tmp_path)
