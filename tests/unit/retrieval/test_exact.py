"""Exact dense search gives the same digits however the corpus is divided."""

from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pytest
from hashing_encoder import HashingEncoder
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_sourcebias.core.data import Corpus, DocTags, Query, TagTable
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.retrieval.search import (
    Best,
    DenseSpec,
    Part,
    best_documents,
    best_run,
    exact_scores,
    merge_best,
    parts_of,
    sort_keys,
    tie_order,
)

FloatArray = npt.NDArray[np.float32]


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(7)


def vectors(rng: np.random.Generator, n: int, dimension: int = 24) -> FloatArray:
    return rng.standard_normal((n, dimension)).astype(np.float32)


def literal(queries: FloatArray, documents: FloatArray, depth: int) -> list[list[int]]:
    """Every pair in float64, one at a time, then a full sort."""
    priority = tie_order(len(documents))
    result = []
    for query in queries:
        scores = np.array([np.float32((query.astype(float) * d).sum()) for d in documents])
        keys = sort_keys(scores, priority)
        result.append(np.argsort(keys)[::-1][:depth].tolist())
    return result


def as_lists(found: Best) -> list[list[int]]:
    return [found.row[found.query == q].tolist() for q in range(found.n_queries)]


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 90),
    depth=st.integers(1, 40),
    cuts=st.lists(st.integers(0, 90), max_size=6),
    grid=st.booleans(),
)
def test_any_division_gives_the_ranking_of_a_full_sort(
    seed: int, n: int, depth: int, cuts: list[int], grid: bool
) -> None:
    rng = np.random.default_rng(seed)
    documents, queries = vectors(rng, n), vectors(rng, 4)
    if grid:  # many ties
        documents, queries = np.sign(documents[:, :3]), np.sign(queries[:, :3])
    priority = tie_order(n)
    bounds = sorted({0, n, *(min(c, n) for c in cuts)})
    parts = [Part(np.arange(a, b), documents[a:b], priority[a:b]) for a, b in pairwise(bounds)]
    rng.shuffle(parts)  # type: ignore[arg-type]
    found = best_documents(queries, parts, depth=depth)
    assert as_lists(found) == literal(queries, documents, depth)
    whole = best_documents(queries, parts_of(documents, priority), depth=depth)
    assert found.score.tobytes() == whole.score.tobytes()


def test_scores_do_not_depend_on_what_else_is_scored(rng: np.random.Generator) -> None:
    documents, queries = vectors(rng, 3_000, 384), vectors(rng, 7, 384)
    query, document = np.divmod(np.arange(7 * 3_000), 3_000)
    together = exact_scores(queries, documents, query, document)
    alone = [
        exact_scores(queries[q : q + 1], documents[d : d + 1], np.array([0]), np.array([0]))[0]
        for q, d in zip(query[::97], document[::97], strict=True)
    ]
    assert together[::97].tolist() == alone
    # a matrix product is not so: it rounds in another order
    assert np.any(together.reshape(7, 3_000) != queries @ documents.T)


def test_near_ties_are_ranked_by_the_exact_score(rng: np.random.Generator) -> None:
    """Rounding of the product must not lose a document that belongs to the best."""
    base = vectors(rng, 1, 384)
    # thousands of documents whose scores differ by less than a float32 product's rounding
    documents = np.repeat(base, 20_000, axis=0)
    documents[:, 5] += rng.integers(-4, 5, 20_000).astype(np.float32) * 1e-6
    queries = vectors(rng, 3, 384)
    found = best_documents(queries, parts_of(documents, tie_order(20_000)), depth=10)
    exact = (documents.astype(np.float64) @ queries.T.astype(np.float64)).astype(np.float32)
    keys = np.stack([sort_keys(exact[:, q], tie_order(20_000)) for q in range(3)])
    assert as_lists(found) == np.argsort(keys, axis=1)[:, ::-1][:, :10].tolist()


def test_a_zero_query_ties_with_everything(rng: np.random.Generator) -> None:
    documents = vectors(rng, 40_000, 8)
    priority = tie_order(40_000)
    found = best_documents(
        np.zeros((2, 8), dtype=np.float32), parts_of(documents, priority), depth=5
    )
    assert as_lists(found) == [np.argsort(priority)[::-1][:5].tolist()] * 2
    assert not found.score.any()


def test_documents_may_share_vectors_and_have_rows_of_their_own(rng: np.random.Generator) -> None:
    distinct, queries = vectors(rng, 5), vectors(rng, 3)
    vector_of, rows = np.array([0, 1, 2, 1, 4, 3, 0]), np.arange(100, 107)
    shared = best_documents(
        queries, parts_of(distinct, tie_order(7), rows=rows, vector_of=vector_of), depth=7
    )
    spread = best_documents(queries, parts_of(distinct[vector_of], tie_order(7)), depth=7)
    assert (shared.row - 100).tolist() == spread.row.tolist()
    assert shared.score.tobytes() == spread.score.tobytes()


def test_merging_and_the_run(rng: np.random.Generator) -> None:
    documents, queries = vectors(rng, 30), vectors(rng, 3)
    priority = tie_order(30)
    halves = [
        best_documents(queries, [Part(np.arange(a, b), documents[a:b], priority[a:b])], depth=9)
        for a, b in ((0, 11), (11, 30))
    ]
    merged = merge_best(halves, depth=9)
    assert as_lists(merged) == literal(queries, documents, 9)
    run = best_run(
        merged, query_ids=["a", "b", "c"], doc_ids=[f"d{i}" for i in range(30)], name="x"
    )
    assert [list(one.doc_ids) for one in run] == [
        [f"d{i}" for i in row] for row in literal(queries, documents, 9)
    ]
    nothing = best_run(Best.none(2), query_ids=["a", "b"], doc_ids=["d"], name="x")
    assert [len(one) for one in nothing] == [0, 0]


def test_no_queries_and_no_documents() -> None:
    empty = np.empty((0, 4), dtype=np.float32)
    part = Part(np.arange(3), np.ones((3, 4), np.float32), tie_order(3))
    assert best_documents(empty, [part], depth=2).n_queries == 0
    none = Part(np.arange(0), empty, tie_order(0))
    assert not len(best_documents(np.ones((2, 4), np.float32), [none], depth=2).row)


def test_bad_input() -> None:
    part = Part(np.arange(1), np.full((1, 4), 1e30, np.float32), tie_order(1))
    with pytest.raises(DataError, match="too long for scores in float32"):
        best_documents(np.full((1, 4), 1e30, np.float32), [part], depth=1)
    with pytest.raises(DataError, match="depth must be at least 1, got 0"):
        best_documents(np.ones((1, 4), np.float32), [part], depth=0)


# Exact dense search


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
