"""BM25 of queries against the versions of their own documents."""

from __future__ import annotations

import math
import re
from collections import Counter

import numpy as np
import pytest

from rag_sourcebias.core.data import Corpus, DocTags, Query, TagTable
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.retrieval.search import BM25Spec, version_scores

pytestmark = pytest.mark.frameworks

PLAIN = BM25Spec(stemmer=None, stopwords=None)
QUERIES = [["what is the capital of France", "yo capital of france ??"], ["who wrote it", "it it"]]
VERSIONS = [
    ["Paris is the capital of France.", "the capital? paris, in france lol", "Paris!"],
    ["It was written by her", "she wrote it", "It was written by her"],
]


def literal(query: str, text: str, collection: list[str], k1: float = 1.5, b: float = 0.75):
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
        expected = literal(QUERIES[i][a], VERSIONS[i][j], collection)
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
