"""Vectors and scores on disk: computed once, resumable, honest about damage."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from hashing_encoder import HashingEncoder

from rag_sourcebias.core.data import Corpus, DocTags, Query, Run, TagTable
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.retrieval.cache import CachedEncoder, CachedReranker, VectorCache
from rag_sourcebias.retrieval.rerank import rerank

TEXTS = ["beta gamma", "alpha", "alpha", "delta epsilon zeta", "\ud800 lone surrogate", ""]


def test_vectors_are_those_of_the_encoder_in_order_and_computed_once(tmp_path: Path) -> None:
    plain, inner = HashingEncoder(), HashingEncoder()
    cached = CachedEncoder(inner, VectorCache(tmp_path / "v.sqlite"), batch_size=2)
    assert np.array_equal(cached.encode_documents(TEXTS), plain.encode_documents(TEXTS))
    asked = [text for call in inner.calls for text in call]
    assert sorted(asked) == sorted(set(TEXTS))
    inner.calls.clear()
    again = CachedEncoder(inner, VectorCache(tmp_path / "v.sqlite"))
    assert np.array_equal(again.encode_documents(TEXTS[::-1]), plain.encode_documents(TEXTS[::-1]))
    assert inner.calls == []


def test_an_interrupted_job_resumes(tmp_path: Path) -> None:
    texts = [f"text {i}" for i in range(20)]
    inner = HashingEncoder()
    inner.fail_after = 3
    with pytest.raises(KeyboardInterrupt):
        CachedEncoder(inner, VectorCache(tmp_path / "v.sqlite"), batch_size=4).encode_documents(
            texts
        )
    inner.fail_after = None
    inner.calls.clear()
    seen: list[tuple[int, int]] = []
    resumed = CachedEncoder(
        inner,
        VectorCache(tmp_path / "v.sqlite"),
        batch_size=4,
        progress=lambda done, total: seen.append((done, total)),
    )
    assert np.array_equal(resumed.encode_documents(texts), HashingEncoder().encode_documents(texts))
    assert sum(map(len, inner.calls)) == 8
    assert seen[-1][0] == seen[-1][1]


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "v.sqlite"
    path.write_bytes(b"this is not a database at all" * 100)
    with pytest.raises(DataError, match=r"v\.sqlite"):
        CachedEncoder(HashingEncoder(), VectorCache(path)).encode_documents(["a"])


class LengthReranker:
    """Scores a pair by the length of its text; counts what it computed."""

    name = "length"
    fingerprint = "length"
    settings: Mapping[str, str] = {"reranker": "length"}

    def __init__(self) -> None:
        self.n = 0

    def score(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
        self.n += len(pairs)
        return np.array([len(q) + len(t) for q, t in pairs], dtype=np.float32)


@pytest.fixture
def small() -> tuple[Corpus, list[Query], Run]:
    tags = TagTable.from_tags((f"d{i}", DocTags(source="human")) for i in range(4))
    corpus = Corpus(texts=("a", "aaa", "aa", "aaaa"), tags=tags)
    queries = [Query(query_id="q", text="?")]
    run = Run.from_dict({"q": {"d0": 4.0, "d1": 3.0, "d2": 2.0, "d3": 1.0}}, name="first")
    return corpus, queries, run


def test_reranking_orders_the_top_and_drops_the_rest(
    small: tuple[Corpus, list[Query], Run],
) -> None:
    corpus, queries, run = small
    done = rerank(run, LengthReranker(), corpus, queries, depth=3)
    assert done.ranked_list(0).doc_ids == ("d1", "d2", "d0")
    assert "first" in done.name
    assert "length" in done.name


def test_scores_are_cached(tmp_path: Path, small: tuple[Corpus, list[Query], Run]) -> None:
    corpus, queries, run = small
    inner = LengthReranker()
    cached = CachedReranker(inner, VectorCache(tmp_path / "v.sqlite"), batch_size=2)
    first = rerank(run, cached, corpus, queries)
    second = rerank(run, cached, corpus, queries)
    assert inner.n == 4
    assert first.ranked_list(0).doc_ids == second.ranked_list(0).doc_ids


def test_nan_from_a_reranker_names_query_and_document(
    small: tuple[Corpus, list[Query], Run],
) -> None:
    corpus, queries, run = small

    class Broken(LengthReranker):
        def score(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
            return np.full(len(pairs), np.nan, dtype=np.float32)

    with pytest.raises(DataError, match=r"'q'.*'d"):
        rerank(run, Broken(), corpus, queries)


def test_unknown_documents_and_queries_are_named(
    small: tuple[Corpus, list[Query], Run],
) -> None:
    corpus, queries, _ = small
    with pytest.raises(DataError, match="dx"):
        rerank(Run.from_dict({"q": {"dx": 1.0}}), LengthReranker(), corpus, queries)
    with pytest.raises(DataError, match="qx"):
        rerank(Run.from_dict({"qx": {"d0": 1.0}}), LengthReranker(), corpus, queries)
