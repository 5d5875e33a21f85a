"""Real rewrites in nine styles: 56 NQ-UTD queries, each document in ten versions."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

from rag_sourcebias.core.data import Corpus, DocTags, Query, TagTable
from rag_sourcebias.neural.loading import SentenceEncoder
from rag_sourcebias.retrieval.search import BM25Spec
from rag_sourcebias.stats.clusters import clustered_mean
from rag_sourcebias.stats.comparisons import friedman_test
from rag_sourcebias.style.measure import (
    StyleMatrix,
    matching_effect,
    run_style_ranks,
    unfairness_score,
)

pytestmark = [pytest.mark.data, pytest.mark.frameworks]

STYLES = [str(i) for i in range(9)]


@pytest.fixture(scope="module")
def rows():
    root = os.environ.get("RAG_SOURCEBIAS_DATA")
    if not root:
        pytest.skip("RAG_SOURCEBIAS_DATA does not name the folder of real data sets")
    text = (Path(root) / "nq-utd-styles" / "styles.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def queries_in(rows, style):
    return [r["query"] if style == "original" else r["query_styles"][style] for r in rows]


def versions(row):
    return {"human": row["human"], **{s: row["doc_styles"][s] for s in STYLES}}


def test_bm25_among_all_documents(rows):
    texts = [(r["query_id"], style, text) for r in rows for style, text in versions(r).items()]
    corpus = Corpus(
        texts=tuple(text for _, _, text in texts),
        tags=TagTable.from_tags(
            (f"{pair}/{style}", DocTags(style=style, pair_id=pair)) for pair, style, _ in texts
        ),
    )
    retriever = BM25Spec().build(corpus)
    found = {}
    for form in ("original", *STYLES):
        asked = [
            Query(query_id=r["query_id"], text=text)
            for r, text in zip(rows, queries_in(rows, form), strict=True)
        ]
        run = retriever.retrieve(asked, len(texts))
        found[form] = run_style_ranks(
            run, corpus.tags, pair_of={r["query_id"]: r["query_id"] for r in rows}
        )
    assert all(one.dropped == () for one in found.values())
    first = found["original"]
    matrix = StyleMatrix(
        query_ids=first.query_ids,
        query_styles=tuple(found),
        doc_styles=first.styles,
        ranks=np.stack([one.ranks for one in found.values()], axis=1),
    )
    assert matrix.ranks.shape == (len(rows), 10, 10)
    np.testing.assert_allclose(matrix.average.sum(axis=1), 55)
    gains = matching_effect(matrix).gains.mean(axis=1)
    assert clustered_mean(gains, np.arange(len(gains))).lower > 0  # words match their documents


@pytest.mark.slow
def test_minilm_prefers_plain_styles_until_the_query_is_expressive(rows):
    some = rows[::3]  # a third: encoding is slow
    encoder = SentenceEncoder("all-MiniLM-L6-v2")
    docs = encoder.encode_documents([t for r in some for t in versions(r).values()])
    docs = docs.reshape(len(some), 10, -1)
    forms = ["original", "8"]
    scores = np.stack(
        [
            np.einsum("nh,ndh->nd", encoder.encode_queries(queries_in(some, form)), docs)
            for form in forms
        ],
        axis=1,
    )
    matrix = StyleMatrix.from_scores(scores, query_styles=forms, doc_styles=["human", *STYLES])
    np.testing.assert_allclose(matrix.average.sum(axis=1), 55)
    plain = dict(zip(matrix.doc_styles, matrix.average[0], strict=True))
    assert plain["8"] == max(plain.values())
    assert min(plain.values()) in (plain["human"], plain["1"])
    assert friedman_test(matrix.ranks[:, 0]).p_value < 1e-4
    plain_queries, expressive = unfairness_score(matrix.average)
    assert expressive < plain_queries / 2
    gains = matching_effect(matrix).gains[:, -1]  # against the only other query style
    assert clustered_mean(gains, np.arange(len(gains))).lower > 1
