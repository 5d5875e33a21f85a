from __future__ import annotations

import gzip
import json
import logging
import os
from pathlib import Path

import numpy as np
import pytest

from rag_sourcebias.core.data import Corpus, Dataset, DocTags, Qrels, Query, TagTable
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.intake.beir import read_beir, source_of_stem
from rag_sourcebias.pairs.writing import write_beir

HUMAN = [
    {"_id": "d1", "title": "Größe", "text": "first text ", "metadata": {"Source": "Google"}},
    {"_id": "d2", "title": "", "text": "second text"},
    {"_id": "only-human", "text": "third text"},
]
LLM = [
    {"_id": "d2", "title": None, "text": "second, rewritten", "metadata": {"style": "news"}},
    {"_id": "d1", "title": "Größe", "text": "first, rewritten"},
    {"_id": "only-llm", "text": "fourth"},
]
QUERIES = [
    {"_id": "q2", "text": " zwei "},
    {"_id": "q1", "text": "one"},
    {"_id": "q3", "text": "x"},
]
QRELS = "query-id\tcorpus-id\tscore\r\nq1\td1\t2\r\nq1\td2\t0\r\nq2\tonly-llm\t1\r\n"


def jsonl(rows):
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def put(path, text, *, packed=False):
    path.parent.mkdir(parents=True, exist_ok=True)
    data = text.encode()
    if packed:
        path.with_name(path.name + ".gz").write_bytes(gzip.compress(data))
    else:
        path.write_bytes(data)


def paired(root, *, packed=False, qrels=QRELS):
    put(root / "corpus" / "human.jsonl", jsonl(HUMAN), packed=packed)
    put(root / "corpus" / "llama-2-7b-chat-tmp0.2.jsonl", jsonl(LLM), packed=packed)
    put(root / "queries.jsonl", jsonl(QUERIES), packed=packed)
    put(root / "qrels" / "test.tsv", qrels, packed=packed)
    return root


def plain(root, rows, *, qrels="q1 d1 1\nq2 d2 1\n"):
    put(root / "corpus.jsonl", jsonl(rows))
    put(root / "queries.jsonl", jsonl(QUERIES))
    put(root / "qrels" / "test.tsv", qrels)
    return root


def grades(dataset):
    qrels = dataset.qrels
    return {
        (qrels.query_ids[q], qrels.doc_ids[d]): int(g)
        for q, d, g in zip(qrels.query_codes, qrels.doc_codes, qrels.grades, strict=True)
    }


LLAMA = "llm:llama-2-7b-chat-tmp0.2"


@pytest.mark.parametrize("packed", [False, True])
def test_paired_layout(tmp_path, packed):
    data = read_beir(paired(tmp_path / "set", packed=packed))
    assert data.name == "set"
    assert data.design == "rewrites"
    assert dict(data.corpus) == {
        "d1@human": "Größe first text",
        "d2@human": "second text",
        "only-human@human": "third text",
        f"d2@{LLAMA}": "second, rewritten",
        f"d1@{LLAMA}": "Größe first, rewritten",
        f"only-llm@{LLAMA}": "fourth",
    }
    assert data.corpus.tags.get("d2@human") == DocTags(
        source="human", pair_id="d2", origin="declared"
    )
    assert data.corpus.tags.get(f"d2@{LLAMA}").style == "news"
    assert data.queries == (Query(query_id="q2", text="zwei"), Query(query_id="q1", text="one"))
    assert data.qrels.query_ids == ("q2", "q1")
    assert grades(data) == {
        ("q1", "d1@human"): 2,
        ("q1", f"d1@{LLAMA}"): 2,
        ("q1", "d2@human"): 0,
        ("q1", f"d2@{LLAMA}"): 0,
        ("q2", f"only-llm@{LLAMA}"): 1,
    }


@pytest.mark.parametrize(
    ("stem", "source"),
    [
        ("human", "human"),
        ("llm:gpt-4o", "llm:gpt-4o"),
        ("llama-2-7b-chat-tmp0.2", "llm:llama-2-7b-chat-tmp0.2"),
        ("meta%2Fllama", "llm:meta/llama"),
    ],
)
def test_source_of_stem(stem, source):
    assert source_of_stem(stem) == source


def test_plain_layout_with_declared_sources(tmp_path, caplog):
    rows = [
        {"_id": "d1", "text": "a", "metadata": {"source": "human", "pair_id": "p"}},
        {"_id": "d2", "text": "b", "metadata": {"source": "llm:x", "style": "news"}},
        {"_id": 3, "text": "c", "metadata": {"source": "https://example.org/page"}},
        {"_id": "d4", "text": ""},
    ]
    with caplog.at_level(logging.WARNING, "rag_sourcebias.intake"):
        data = read_beir(plain(tmp_path, rows))
    assert "1 source value(s) such as 'https://example.org/page'" in caplog.text
    assert data.design == "unknown"
    assert [data.corpus.tags.get(d) for d in ("d1", "d2", "3", "d4")] == [
        DocTags(source="human", pair_id="p", origin="declared"),
        DocTags(source="llm:x", style="news", origin="declared"),
        DocTags(),
        DocTags(),
    ]
    assert grades(data) == {("q1", "d1"): 1, ("q2", "d2"): 1}


def test_a_tag_file_goes_before_metadata(tmp_path, caplog):
    rows = [{"_id": f"d{i}", "text": "t", "metadata": {"source": "human"}} for i in (1, 2, 3)]
    text = "doc_id\tsource\nd1\tllm:y\nd3\t-\nghost\thuman\n"
    put(plain(tmp_path, rows) / "tags.tsv", text)
    with caplog.at_level(logging.WARNING, "rag_sourcebias.intake"):
        data = read_beir(tmp_path)
    assert data.corpus.tags.counts() == {"human": 1, "llm:y": 1, "": 1}
    assert "document ids not in the corpus: 1 of " in caplog.text
    assert "ghost" in caplog.text


def test_unknown_queries_are_dropped_and_documents_kept(tmp_path, caplog):
    extra = "".join(f"q1\tghost{i}\t1\n" for i in range(5)) + "q9\td1\t1\n"
    paired(tmp_path, qrels=QRELS + extra)
    with caplog.at_level(logging.WARNING, "rag_sourcebias.intake"):
        data = read_beir(tmp_path)
    assert len(data.qrels) == 5 + 5
    assert data.qrels.query_ids == ("q2", "q1")
    assert data.qrels.doc_ids == (*data.corpus.doc_ids, *(f"ghost{i}" for i in range(5)))
    assert "query ids not in the queries: 1 of 3, first ['q9']" in caplog.text


def test_judgments_that_fit_nothing_are_an_error(tmp_path):
    paired(tmp_path, qrels="q1\td1@human\t1\n")
    with pytest.raises(DataError, match=r"no document in common.*write 'd1' for 'd1@human'"):
        read_beir(tmp_path)
    paired(tmp_path, qrels="Q1\td1\t1\n")
    with pytest.raises(DataError, match=r"no query in common.*in upper and lower case"):
        read_beir(tmp_path)


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("corpus/human.jsonl", jsonl([*HUMAN, HUMAN[1]]), r"human\.jsonl:4: .*'d2' .*jsonl:2 "),
        ("corpus/human.jsonl", jsonl(HUMAN) + "{", r"human\.jsonl:4: malformed JSON"),
        (
            "corpus/human.jsonl",
            jsonl([{"name": "d1"}]),
            r"as doc_id or text; its columns are name",
        ),
        (
            "corpus/human.jsonl",
            jsonl([{"_id": "", "text": "t"}]),
            r"human\.jsonl:1: .*non-empty",
        ),
        ("corpus/human.jsonl", jsonl([{"_id": "a", "text": 3}]), r"human\.jsonl:1: text is 3"),
        (
            "corpus/human.jsonl",
            jsonl([{"_id": "a", "text": "t", "title": 3}]),
            r"human\.jsonl:1: title is 3",
        ),
        ("corpus/human.jsonl", "\n", r"human\.jsonl is empty"),
        ("queries.jsonl", "", r"queries\.jsonl is empty"),
        ("queries.jsonl", jsonl([QUERIES[0]] * 2), r"queries\.jsonl:2: .*'q2' .*jsonl:1 "),
        ("queries.jsonl", jsonl([{"_id": "q1"}]), r"queries\.jsonl: no column .* as text"),
        ("qrels/test.tsv", "", r"test\.tsv is empty"),
        ("corpus/llm:llama-2-7b-chat-tmp0.2.jsonl", jsonl(LLM), r"2 files hold source 'llm:llama"),
        ("corpus.jsonl", jsonl(HUMAN), r"holds corpus\.jsonl, corpus.*; expected one"),
    ],
)
def test_malformed_parts_are_named(tmp_path, file, text, message):
    put(paired(tmp_path) / file, text)
    with pytest.raises(DataError, match=message):
        read_beir(tmp_path)


def test_write_beir_round_trip(tmp_path):
    first = read_beir(paired(tmp_path / "in"))
    write_beir(first, tmp_path / "out", split="dev")
    assert sorted(p.name for p in (tmp_path / "out" / "corpus").iterdir()) == [
        "human.jsonl",
        "llama-2-7b-chat-tmp0.2.jsonl",
    ]
    again = read_beir(tmp_path / "out", split="dev")
    assert dict(again.corpus) == dict(first.corpus)
    assert {d: again.corpus.tags.get(d) for d in again.corpus.doc_ids} == {
        d: first.corpus.tags.get(d) for d in first.corpus.doc_ids
    }
    assert again.queries == first.queries
    assert grades(again) == grades(first)


def dataset(sources, *, rows=None, doc_id="{pair}@{source}"):
    items = [
        (doc_id.format(pair=pair, source=source), DocTags(source=source, pair_id=pair))
        for source in sources
        for pair in ("p1", "p2")
    ]
    corpus = Corpus(texts=("t",) * len(items), tags=TagTable.from_tags(items))
    if rows is None:
        rows = [("q", doc, 1) for doc, _ in items]
    return Dataset(
        name="d",
        corpus=corpus,
        queries=(Query(query_id="q", text="?"),),
        qrels=Qrels.from_rows(rows),
    )


def test_write_beir_spells_awkward_sources(tmp_path):
    sources = ["human", "llm:meta/llama", "llm:human", "llm:50%", "llm:%2F", "llm:llm:x"]
    write_beir(dataset(sources), tmp_path / "d")
    assert list(read_beir(tmp_path / "d").corpus.tags.sources) == sorted(sources)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (dataset(["human", "blog"]), "source 'blog' cannot be the name of a corpus file"),
        (dataset(["human"], doc_id="{pair}"), "document 'p1' .* does not fit the paired layout"),
        (
            dataset(["human", "llm:x"], rows=[("q", "p1@human", 1)]),
            r"the 2 versions of 'p1' have grades \[1\]",
        ),
        (
            dataset(["human", "llm:x"], rows=[("q", "p1@human", 1), ("q", "p1@llm:x", 2)]),
            r"grades \[1, 2\]; the paired layout needs the same grade",
        ),
        (dataset(["human"], rows=[("q", "ghost", 1)]), "'ghost' is judged but not in the corpus"),
    ],
)
def test_write_beir_refuses_what_the_layout_cannot_carry(tmp_path, data, message):
    with pytest.raises(DataError, match=message):
        write_beir(data, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def data_folder() -> Path:
    folder = os.environ.get("RAG_SOURCEBIAS_DATA")
    if not folder:
        pytest.skip("RAG_SOURCEBIAS_DATA is not set")
    return Path(folder)


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "split", "n_documents", "n_queries", "n_judgments"),
    [
        ("nq-utd", "test", 1_600, 80, 1_600),
        ("nfcorpus", "dev", 7_266, 324, 22_770),
        ("nfcorpus", "train", 7_266, 2_590, 221_150),
    ],
)
def test_real_folders(name, split, n_documents, n_queries, n_judgments):
    data = read_beir(data_folder() / name, split=split)
    assert len(data.corpus) == n_documents
    assert len(data.queries) == len(data.qrels.query_ids) == n_queries
    assert len(data.qrels) == n_judgments
    assert data.corpus.tags.counts() == {"human": n_documents // 2, LLAMA: n_documents // 2}
    assert np.bincount(data.corpus.tags.pair_codes).tolist() == [2] * (n_documents // 2)
