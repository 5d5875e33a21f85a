"""BM25 against the formula, written out."""

from __future__ import annotations

import math
import re
from collections import Counter

import numpy as np
import pytest

from rag_sourcebias.core.data import Corpus, DocTags, Query, TagTable
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.retrieval.search import BM25Spec

pytestmark = pytest.mark.frameworks

TEXTS = (
    "the cat sat on the mat near the other cat",
    "a dog chased the cat",
    "dogs and cats living together, mass hysteria everywhere in the whole long city",
    "quantum chromodynamics on a lattice",
    "the mat",
)


def corpus(texts: tuple[str, ...] = TEXTS) -> Corpus:
    tags = TagTable.from_tags((f"d{i}", DocTags(source="human")) for i in range(len(texts)))
    return Corpus(texts=texts, tags=tags)


def literal(query: str, *, k1: float, b: float, idf: str) -> np.ndarray:
    docs = [re.findall(r"\w\w+", text.lower()) for text in TEXTS]
    mean = sum(map(len, docs)) / len(docs)
    scores = np.zeros(len(docs))
    for term in re.findall(r"\w\w+", query.lower()):
        df = sum(term in doc for doc in docs)
        if not df:
            continue
        weight = (
            math.log(1 + (len(docs) - df + 0.5) / (df + 0.5))
            if idf == "lucene"
            else math.log(len(docs) / df)
        )
        for i, doc in enumerate(docs):
            tf = Counter(doc)[term]
            saturated = tf / (tf + k1 * (1 - b + b * len(doc) / mean))
            scores[i] += weight * saturated * (1 if idf == "lucene" else k1 + 1)
    return scores


@pytest.mark.parametrize("method", ["lucene", "atire"])
@pytest.mark.parametrize(("k1", "b"), [(1.2, 0.75), (2.0, 0.0), (0.9, 1.0)])
def test_scores_are_the_formula(method: str, k1: float, b: float) -> None:
    spec = BM25Spec(k1=k1, b=b, method=method, stemmer=None, stopwords=None)
    query = "cat on the mat cat"
    run = spec.build(corpus()).retrieve([Query(query_id="q", text=query)], 10)
    wanted = literal(query, k1=k1, b=b, idf=method)
    found = dict(zip(run.ranked_list(0).doc_ids, run.ranked_list(0).scores, strict=True))
    assert found == pytest.approx({f"d{i}": s for i, s in enumerate(wanted) if s > 0}, rel=1e-5)


def test_paper_variant_is_the_one_of_the_official_code() -> None:
    settings = BM25Spec.paper().settings
    assert float(settings["k1"]) == 2.0
    assert float(settings["b"]) == 0.75
    assert settings["method"] == "atire"


def test_documents_without_a_query_term_are_not_returned() -> None:
    retriever = BM25Spec(stemmer=None).build(corpus())
    run = retriever.retrieve(
        [Query(query_id="q1", text="lattice"), Query(query_id="q2", text="zebra unseen")], 10
    )
    assert [row.doc_ids for row in run] == [("d3",), ()]


def test_copies_tie_and_their_order_is_not_the_corpus_order() -> None:
    copies = corpus(("cat",) * 200)
    run = BM25Spec().build(copies).retrieve([Query(query_id="q", text="cat")], 200)
    assert run.scores is not None
    assert len(set(run.scores.tolist())) == 1
    order = [int(d[1:]) for d in run.ranked_list(0).doc_ids]
    assert sorted(order) == list(range(200))
    assert abs(np.corrcoef(order, range(200))[0, 1]) < 0.25


def test_a_cut_run_is_the_head_of_the_whole_one_also_across_ties() -> None:
    words = np.array(["alpha", "beta", "gamma", "delta"])
    rng = np.random.default_rng(3)
    retriever = BM25Spec().build(corpus(tuple(" ".join(rng.choice(words, 2)) for _ in range(90))))
    queries = [Query(query_id=f"q{i}", text=" ".join(rng.choice(words, 2))) for i in range(20)]
    whole, cut = retriever.retrieve(queries, 90), retriever.retrieve(queries, 7)
    for full, short in zip(whole, cut, strict=True):
        assert full.scores is not None
        assert short.doc_ids == full.doc_ids[:7]
        assert np.all(np.diff(full.scores) <= 0)
        assert len(set(full.scores.tolist())) < len(full)
    with pytest.raises(DataError, match="depth"):
        retriever.retrieve(queries, 0)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"b": 1.5}, "1.5"),
        ({"k1": -1.0}, "-1"),
        ({"method": "bm52"}, "bm52"),
        ({"stemmer": "klingon"}, "klingon"),
    ],
)
def test_bad_parameters_are_named(options: dict[str, object], words: str) -> None:
    with pytest.raises(DataError, match=re.escape(words)):
        BM25Spec(**options).build(corpus())


def test_no_queries_is_fine_and_a_corpus_without_words_is_not() -> None:
    assert len(BM25Spec().build(corpus()).retrieve([], 5)) == 0
    with pytest.raises(DataError, match="none of the 2 documents"):
        BM25Spec().build(corpus(("", "!!!")))
