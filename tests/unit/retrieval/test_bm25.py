"""BM25 of searches and of versions against the formula, written out."""

import math
import re
from collections import Counter

import numpy as np
import pytest

from rag_sourcebias.core.data import Corpus, DocTags, Query, TagTable
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.retrieval.search import BM25Spec, version_scores

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
    spec = BM25Spec.paper()
    assert (spec.k1, spec.b, spec.method) == (2.0, 0.75, "atire")


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


# BM25 of queries against the versions of their own documents


PLAIN = BM25Spec(stemmer=None, stopwords=None)
QUERIES = [["what is the capital of France", "yo capital of france ??"], ["who wrote it", "it it"]]
VERSIONS = [
    ["Paris is the capital of France.", "the capital? paris, in france lol", "Paris!"],
    ["It was written by her", "she wrote it", "It was written by her"],
]


def literal_version(query: str, text: str, collection: list[str], k1: float = 1.5, b: float = 0.75):
    docs = [re.findall(r"\w\w+", doc.lower()) for doc in collection]
    mean = sum(map(len, docs)) / len(docs)
    own = re.findall(r"\w\w+", text.lower())
    total = 0.0
    for word in re.findall(r"\w\w+", query.lower()):
        df = sum(word in doc for doc in docs)
        tf = Counter(own)[word]
        if tf:
            idf = math.log(1 + (len(docs) - df + 0.5) / (df + 0.5))
            total += idf * tf / (tf + k1 * (1 - b + b * len(own) / mean))
    return total


def test_scores_are_the_formula_over_distinct_versions() -> None:
    collection = list(dict.fromkeys(text for row in VERSIONS for text in row))
    found = version_scores(PLAIN, QUERIES, VERSIONS)
    assert found.shape == (2, 2, 3)
    for i, a, j in np.ndindex(found.shape):
        expected = literal_version(QUERIES[i][a], VERSIONS[i][j], collection)
        assert found[i, a, j] == pytest.approx(expected, rel=1e-5)
    assert found[1, 0, 0] == found[1, 0, 2]  # the same text
    assert found[0, 0, 2] == 0


def words(rng: np.random.Generator, size: int) -> str:
    return " ".join(f"w{int(i)}" for i in rng.zipf(1.3, size) % 500)


@pytest.mark.parametrize("method", ["lucene", "robertson", "atire"])
def test_scores_are_those_of_a_search(method: str) -> None:
    rng = np.random.default_rng(0)
    queries = [[words(rng, 6) for _ in range(3)] for _ in range(20)]
    versions = [[words(rng, 40) for _ in range(4)] for _ in range(20)]
    spec = BM25Spec(method=method)
    found = version_scores(spec, queries, versions)
    texts = [text for row in versions for text in row]
    tags = TagTable.from_tags((str(i), DocTags()) for i in range(len(texts)))
    retriever = spec.build(Corpus(texts=tuple(texts), tags=tags))
    for i, a in np.ndindex(20, 3):
        run = retriever.retrieve([Query(query_id="q", text=queries[i][a])], len(texts))
        scores = dict(zip(run.ranked_list(0).doc_ids, run.ranked_list(0).scores, strict=True))
        expected = [scores.get(str(4 * i + j), 0.0) for j in range(4)]
        assert found[i, a] == pytest.approx(expected, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize(
    ("queries", "versions", "message"),
    [
        ([["a"]], [[""]], "has a word to index"),
    ],
)
def test_bad_tables_are_named(queries, versions, message: str) -> None:
    with pytest.raises(DataError, match=message):
        version_scores(PLAIN, queries, versions)
