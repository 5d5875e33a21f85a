"""Exact dense search."""

from __future__ import annotations

import numpy as np
import pytest
from hashing_encoder import HashingEncoder

from rag_sourcebias.core.data import Corpus, DocTags, Query, TagTable
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.retrieval.search import DenseSpec

WORDS = "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu".split()  # noqa: SIM905


def corpus(n: int, rng: np.random.Generator) -> Corpus:
    texts = tuple(" ".join(rng.choice(WORDS, 6)) for _ in range(n))
    tags = TagTable.from_tags((f"d{i}", DocTags(source="human")) for i in range(n))
    return Corpus(texts=texts, tags=tags)


@pytest.mark.parametrize("similarity", ["cosine", "dot"])
def test_search_is_exact(similarity: str) -> None:
    rng = np.random.default_rng(1)
    docs, encoder = corpus(300, rng), HashingEncoder()
    queries = [Query(query_id=f"q{i}", text=" ".join(rng.choice(WORDS, 3))) for i in range(40)]
    run = DenseSpec(encoder, similarity=similarity).build(docs).retrieve(queries, 20)
    q = encoder.encode_queries([query.text for query in queries]).astype(np.float64)
    d = encoder.encode_documents(docs.texts).astype(np.float64)
    if similarity == "cosine":
        q /= np.linalg.norm(q, axis=1, keepdims=True)
        d /= np.linalg.norm(d, axis=1, keepdims=True)
    best = -np.sort(-(q @ d.T), axis=1)[:, :20]
    assert run.scores is not None
    assert np.allclose(run.scores.reshape(40, 20), best, atol=1e-5)


def test_depth_beyond_the_corpus_returns_everything_once() -> None:
    docs = corpus(7, np.random.default_rng(0))
    run = DenseSpec(HashingEncoder()).build(docs).retrieve([Query(query_id="q", text="alpha")], 50)
    assert sorted(run.ranked_list(0).doc_ids) == sorted(docs.doc_ids)


def test_a_vector_that_is_not_finite_names_its_document() -> None:
    class Broken(HashingEncoder):
        def encode_documents(self, texts: list[str]) -> np.ndarray:
            rows = super().encode_documents(texts)
            rows[2] = np.nan
            return rows

    tags = TagTable.from_tags((f"d{i}", DocTags(source="human")) for i in range(5))
    docs = Corpus(texts=("a", "b", "c", "d", "e"), tags=tags)
    with pytest.raises(DataError, match="d2"):
        DenseSpec(Broken()).build(docs)
