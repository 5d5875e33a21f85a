"""Chroma collections as retrievers: embedded, on disk and behind a server."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from chroma_server import chroma_server
from hashing_encoder import HashingEncoder

from rag_sourcebias.core.data import Corpus, DocTags, Query, TagTable
from rag_sourcebias.core.errors import DataError

pytest.importorskip("chromadb")

from rag_sourcebias_integrations.chroma.collections import (
    collection_name,
    fill_collection,
    open_client,
    stored_ids,
)
from rag_sourcebias_integrations.chroma.retriever import ChromaSpec, chroma_spec

pytestmark = pytest.mark.frameworks

WORDS = [f"word{i}" for i in range(40)]
QUERIES = [Query(query_id=f"q{i}", text=f"word{i} word{i + 1} word{i + 2}") for i in range(12)]


def make_corpus(n: int, *, seed: int = 0) -> Corpus:
    rng = np.random.default_rng(seed)
    tags = TagTable.from_tags(
        (f"d{i}", DocTags(source="human" if i % 2 else "llm:x")) for i in range(n)
    )
    return Corpus(texts=tuple(" ".join(rng.choice(WORDS, 12)) for _ in range(n)), tags=tags)


def test_on_a_small_corpus_chroma_agrees_with_exact_search() -> None:
    retriever = ChromaSpec(HashingEncoder()).build(make_corpus(60))
    found, exact = retriever.retrieve(QUERIES, 60), retriever.exact().retrieve(QUERIES, 60)
    assert found.query_ids == exact.query_ids == tuple(q.query_id for q in QUERIES)
    for mine, true in zip(found, exact, strict=True):
        assert np.all(np.diff(mine.scores) <= 0)
        score_of = dict(zip(true.doc_ids, true.scores.tolist(), strict=True))
        assert set(mine.doc_ids) == set(score_of)
        assert [score_of[d] for d in mine.doc_ids] == pytest.approx(mine.scores.tolist(), abs=1e-5)


def test_more_queries_than_one_request_and_more_depth_than_the_index_searches() -> None:
    docs = make_corpus(700, seed=2)
    queries = [Query(query_id=str(i), text=WORDS[i % 40]) for i in range(300)]
    run = ChromaSpec(HashingEncoder(), hnsw={"ef_search": 10}).build(docs).retrieve(queries, 400)
    assert run.query_ids == tuple(str(i) for i in range(300))
    assert set(np.diff(run.offsets)) == {400}


def test_a_collection_on_disk_is_filled_in_batches_and_reused(tmp_path: Path) -> None:
    docs = make_corpus(20)
    first = ChromaSpec(HashingEncoder(), place=tmp_path / "store").build(docs)
    again = ChromaSpec(HashingEncoder(), place=tmp_path / "store").build(docs)
    assert first.retrieve(QUERIES, 5).doc_codes.size == again.retrieve(QUERIES, 5).doc_codes.size
    collections = open_client(tmp_path / "store").list_collections()
    assert [collection.count() for collection in collections] == [20]


def test_another_encoder_text_or_setting_is_another_collection() -> None:
    docs = make_corpus(3)
    names = {
        collection_name("p", docs, ("a", "cosine")),
        collection_name("p", docs, ("b", "cosine")),
        collection_name("p", docs, ("a", "ip")),
        collection_name("p", make_corpus(3, seed=1), ("a", "cosine")),
        collection_name("p", docs.take(np.array([1, 0, 2])), ("a", "cosine")),
    }
    assert len(names) == 5
    assert collection_name("p", docs, ("a", "cosine")) in names


def test_a_collection_with_foreign_documents_is_refused(tmp_path: Path) -> None:
    client, vectors = open_client(tmp_path), np.eye(3, dtype=np.float32)
    options = {"space": "cosine", "hnsw": {}}
    fill_collection(client, "mixed", doc_ids=["a", "b", "x"], vectors=vectors, **options)
    with pytest.raises(DataError, match=r"'mixed' holds 3 documents, expected 2"):
        fill_collection(client, "mixed", doc_ids=["a", "b"], vectors=vectors[:2], **options)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"color": "red"}, r"no option color.*ef_search"),
        ({"space": "l2"}, r"'l2' is not one of cosine, ip"),
        ({"ef_search": "many"}, r"ef_search='many'"),
        ({"m": "0"}, r"m='0'"),
        ({"path": "a", "url": "http://b"}, r"path.*url"),
    ],
)
def test_options_from_the_command_line_are_checked(options: dict[str, str], words: str) -> None:
    with pytest.raises(DataError, match=words):
        chroma_spec(HashingEncoder(), **options)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"space": "l2"}, r"'l2' is not one of cosine, ip"),
        ({"hnsw": {"ef": 3}}, r"refused .*'ef': 3.*expected one of"),
        ({"prefix": "no spaces!"}, r"refused collection 'no spaces!"),
    ],
)
def test_what_chroma_refuses_is_said(options: dict[str, object], words: str) -> None:
    with pytest.raises(DataError, match=words):
        ChromaSpec(HashingEncoder(), **options).build(make_corpus(3))


def test_empty_texts_have_no_direction_and_score_zero() -> None:
    tags = TagTable.from_tags((f"d{i}", DocTags()) for i in range(2))
    docs = Corpus(texts=("word1", ""), tags=tags)
    run = ChromaSpec(HashingEncoder()).build(docs).retrieve([Query(query_id="q", text="word1")], 2)
    assert run.ranked_list(0).doc_ids == ("d0", "d1")
    assert run.scores.tolist() == pytest.approx([1.0, 0.0], abs=1e-6)


def test_more_documents_than_one_request_may_hold(tmp_path: Path) -> None:
    client, n = open_client(tmp_path), 5_600
    assert client.get_max_batch_size() < n
    vectors = np.random.default_rng(0).normal(size=(n, 3)).astype(np.float32)
    ids = [f"d{i}" for i in range(n)]
    collection = fill_collection(
        client, "large", doc_ids=ids, vectors=vectors, space="cosine", hnsw={}
    )
    assert set(stored_ids(collection)) == set(ids)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    with chroma_server(tmp_path) as port:
        yield f"http://127.0.0.1:{port}"


@pytest.mark.server
def test_a_server_gives_what_the_embedded_collection_gives(server: str) -> None:
    docs = make_corpus(50, seed=3)
    embedded = ChromaSpec(HashingEncoder()).build(docs).retrieve(QUERIES, 10)
    spec = chroma_spec(HashingEncoder(), url=server)
    assert spec.settings["collection"] == "server"
    remote = spec.build(docs).retrieve(QUERIES, 10)
    assert remote.query_ids == embedded.query_ids
    assert np.allclose(remote.scores, embedded.scores, atol=1e-5)
    assert len(spec.build(docs).retrieve(QUERIES, 10)) == len(remote)
