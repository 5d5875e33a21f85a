from __future__ import annotations

import gzip
import json
import logging
import os
import pickle
from pathlib import Path

import numpy as np
import pytest

from rag_sourcebias.core.data import DocTags, Shard
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.core.protocols import ShardedCorpus
from rag_sourcebias.intake.beir import assemble_judged, read_beir, rows_as_judged
from rag_sourcebias.intake.samples import load_sample
from rag_sourcebias.pairs.writing import write_beir
from rag_sourcebias.retrieval.shards import open_corpus, open_sharded

QUERIES = (
    '{"_id": "q2", "text": " zwei "}\n{"_id": "q9", "text": "?"}\n{"_id": "q1", "text": "one"}\n'
)
QRELS = "query-id\tcorpus-id\tscore\nq1\ta@b\t2\nq2\tü\t1\nq1\tü\t0\n"
# Byte-order mark, CRLF, blank lines of several kinds, leading space, no line end at the end.
AWKWARD = (
    b'\xef\xbb\xbf{"_id": "a@b", "title": "Gr\xc3\xb6\xc3\x9fe", "text": "one"}\r\n'
    b"\r\n"
    b'  {"_id": "\xc3\xbc", "text": "two\xe2\x80\xa8still two"}\n'
    b"\xe3\x80\x80\t\n"
    b"\n"
    b'{"_id": 3, "text": "", "metadata": {"style": "news"}}\n'
    b'{"_id": "x@human", "text": "' + b"long " * 40_000 + b'"}\n'
    b"\n"
    b'{"_id": "last", "title": null, "text": "end"}'
)


def put(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def folder(root: Path, files: dict[str, str | bytes], *, qrels: str = QRELS) -> Path:
    for name, content in {"queries.jsonl": QUERIES, "qrels/test.tsv": qrels, **files}.items():
        put(root / name, content)
    return root


def paired(root: Path) -> Path:
    return folder(root, {"corpus/human.jsonl": AWKWARD, "corpus/b@c.jsonl": AWKWARD})


def jsonl(*rows: dict[str, object]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def documents(corpus: ShardedCorpus) -> list[tuple[str, str, DocTags]]:
    """All documents, read shard by shard; the shards are checked on the way."""
    found: list[tuple[str, str, DocTags]] = []
    for index, shard in enumerate(corpus.shards):
        part = corpus.read(shard)
        assert shard == Shard(index=index, first_row=len(found), n_documents=len(part))
        found += [(doc_id, text, part.tags.get(doc_id)) for doc_id, text in part]
    return found


def assert_same_as_read_beir(root: Path, shard_documents: int, **options) -> int:
    whole = read_beir(root, **options)
    data = open_sharded(root, shard_documents=shard_documents, **options)
    corpus = pickle.loads(pickle.dumps(data.corpus))
    found = documents(corpus)
    assert found == [(d, text, whole.corpus.tags.get(d)) for d, text in whole.corpus]
    assert (data.name, data.design, data.queries) == (whole.name, whole.design, whole.queries)
    doc_ids = [doc_id for doc_id, *_ in found]
    qrels = assemble_judged(
        data.judged,
        query_ids=[query.query_id for query in data.queries],
        doc_ids=doc_ids,
        rows=rows_as_judged(map(corpus.judged_as, doc_ids)),
        where=data.where,
    )
    for column in ("query_ids", "doc_ids", "query_codes", "doc_codes", "grades"):
        assert np.array_equal(getattr(qrels, column), getattr(whole.qrels, column)), column
    return len(corpus.shards)


@pytest.mark.parametrize(
    ("shard_documents", "n_shards"), [(1, 320), (7, 2 * 23), (1_000, 2), (10**9, 2)]
)
def test_the_sample_is_what_read_beir_reads(tmp_path, shard_documents, n_shards):
    write_beir(load_sample(), tmp_path / "sample")
    assert assert_same_as_read_beir(tmp_path / "sample", shard_documents) == n_shards


@pytest.mark.parametrize("titles", [True, False])
@pytest.mark.parametrize("shard_documents", [1, 2, 3, 5, 99])
def test_awkward_lines_are_what_read_beir_reads(tmp_path, shard_documents, titles):
    n_shards = -(-5 // shard_documents)
    found = assert_same_as_read_beir(paired(tmp_path / "p"), shard_documents, titles=titles)
    assert found == 2 * n_shards
    plain = folder(tmp_path / "plain", {"corpus.jsonl": AWKWARD})
    assert assert_same_as_read_beir(plain, shard_documents, titles=titles) == n_shards


def test_judged_as_takes_the_source_off_and_nothing_else(tmp_path):
    corpus = open_sharded(paired(tmp_path / "p")).corpus
    assert corpus.judged_as("a@b@human") == "a@b"
    assert corpus.judged_as("a@b@llm:b@c") == "a@b"
    assert corpus.judged_as("x@human@human") == "x@human"
    with pytest.raises(DataError, match=r"'ghost' is not of corpus 'p': expected '<_id>@<source>'"):
        corpus.judged_as("ghost")
    plain = folder(tmp_path / "plain", {"corpus.jsonl": AWKWARD})
    assert open_sharded(plain).corpus.judged_as("x@human") == "x@human"


PLAIN = jsonl(
    {"_id": "d1", "text": "a", "metadata": {"source": "human", "pair_id": "p"}},
    {"_id": "d2", "text": "b", "metadata": {"source": "https://example.org"}},
    {"_id": "d3", "text": "c", "metadata": {"source": "elsewhere"}},
)


def test_tags_of_a_plain_folder(tmp_path, caplog):
    root = folder(tmp_path, {"corpus.jsonl": PLAIN}, qrels="q1 d1 1\n")
    with caplog.at_level(logging.WARNING, "rag_sourcebias.intake"):
        corpus = open_sharded(root, shard_documents=1).corpus
        tags = [tag for *_, tag in documents(corpus)]
        documents(corpus)
    assert tags == [DocTags(source="human", pair_id="p", origin="declared"), DocTags(), DocTags()]
    warnings = [r.getMessage() for r in caplog.records]
    assert len(warnings) == 1  # and not once for each shard and reading
    assert "shard 1 (said once): 1 source value(s) such as 'https://ex" in warnings[0]

    tag_file = put(root / "tags.tsv", "doc_id\tsource\td\nd1\tllm:y\t\nd3\tblog\t\n")
    corpus = open_sharded(root, shard_documents=1).corpus
    assert [tag.source for *_, tag in documents(corpus)] == ["llm:y", None, "blog"]
    put(tag_file, "doc_id\tsource\nd1\thuman\n")
    with pytest.raises(DataError, match=r"tags\.tsv changed since it was opened"):
        corpus.read(corpus.shards[0])
    corpus = open_sharded(root, shard_documents=1).corpus
    assert [tag.source for *_, tag in documents(corpus)] == ["human", None, None]


FIRST = jsonl({"_id": "a", "text": "t"}, {"_id": "b", "text": "t"}) + "\n"


@pytest.mark.parametrize(
    "line",
    [
        b'{"_id": "c", "text": "cut of',
        b"[1]",
        b'{"id": "c"}',
        b'{"_id": "c"}',
        b'{"_id": "c", "text": "t", "title": 3}',
        b'{"_id": "c", "text": "\xff"}',
        b"\xff",
        b"null",
    ],
)
def test_errors_are_those_of_read_beir(tmp_path, line):
    content = FIRST.encode() + line + b"\n" + jsonl({"_id": "z", "text": "t"}).encode()
    root = folder(tmp_path, {"corpus.jsonl": content}, qrels="q1 a 1\n")
    with pytest.raises(DataError) as whole:
        read_beir(root)
    assert "corpus.jsonl:4: " in str(whole.value)
    corpus = open_sharded(root, shard_documents=2).corpus
    assert len(corpus.read(corpus.shards[0])) == 2
    with pytest.raises(DataError) as sharded:
        corpus.read(corpus.shards[1])
    assert str(sharded.value) == str(whole.value)


def test_an_id_used_twice_within_a_shard(tmp_path):
    rows = [{"_id": i, "text": "t"} for i in ("a", "b", "c", "d", "c")]
    put(tmp_path / "corpus.jsonl", jsonl(*rows))
    corpus = open_corpus(tmp_path, shard_documents=3)
    with pytest.raises(DataError, match=r"jsonl:5: .*'c' stands at .*jsonl:3"):
        open_corpus(tmp_path).read(Shard(index=0, first_row=0, n_documents=5))
    assert len(documents(corpus)) == 5  # across shards it is for the caller to see


def test_a_compressed_corpus_is_refused(tmp_path):
    root = folder(tmp_path, {"corpus/human.jsonl.gz": gzip.compress(AWKWARD)})
    with pytest.raises(DataError, match=r"human\.jsonl\.gz is compressed.*unpack it.*read_beir"):
        open_sharded(root)
    # Compressed, but not by its name.
    put(tmp_path / "other" / "corpus.jsonl", gzip.compress(AWKWARD))
    with pytest.raises(DataError, match=r"corpus\.jsonl is compressed"):
        open_corpus(tmp_path / "other")


def test_a_changed_file_is_not_read(tmp_path):
    path = put(tmp_path / "corpus.jsonl", PLAIN)
    before = open_corpus(tmp_path)
    put(path, PLAIN.replace("example", "exampla"))
    os.utime(path, ns=(0, 0))
    with pytest.raises(DataError, match=r"corpus\.jsonl changed since it was opened"):
        before.read(before.shards[0])
    put(path, PLAIN * 2)
    with pytest.raises(DataError, match=rf"\({len(PLAIN)} bytes then, {2 * len(PLAIN)} now\)"):
        before.read(before.shards[0])
    path.unlink()
    with pytest.raises(DataError, match=r"corpus\.jsonl does not exist"):
        before.read(before.shards[0])
