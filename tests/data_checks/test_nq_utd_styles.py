"""Real rewrites in nine styles: 56 NQ-UTD queries, each document in ten versions."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from rag_sourcebias.infer.means import clustered_mean
from rag_sourcebias.intake.styled import read_styled_texts
from rag_sourcebias.neural.loading import SentenceEncoder
from rag_sourcebias.retrieval.search import BM25Spec
from rag_sourcebias.style.audit import audit_style
from rag_sourcebias.style.measure import (
    StyleMatrix,
    friedman_test,
    matching_gains,
    rank_versions,
    unfairness_score,
)
from support.real_data import data_folder

pytestmark = [pytest.mark.data, pytest.mark.frameworks]

STYLES = [str(i) for i in range(9)]


def folder() -> Path:
    return data_folder() / "nq-utd-styles"


@pytest.fixture(scope="module")
def rows():
    text = (folder() / "styles.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def queries_in(rows, style):
    return [r["query"] if style == "original" else r["query_styles"][style] for r in rows]


def versions(row):
    return {"human": row["human"], **{s: row["doc_styles"][s] for s in STYLES}}


def test_bm25_gains_from_words_of_its_own_style():
    texts = read_styled_texts(folder() / "styles.jsonl")
    (system,) = audit_style(texts, bm25=BM25Spec(), index=False, text_statistics=False).systems
    assert system.ranks.shape == (len(texts), 10, 10)
    np.testing.assert_allclose(system.average_ranks.sum(axis=1), 55)
    assert system.matching[-1].gain.lower > 0  # words match their documents


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
    matrix = StyleMatrix(
        query_styles=tuple(forms), doc_styles=("human", *STYLES), ranks=rank_versions(scores)
    )
    np.testing.assert_allclose(matrix.average.sum(axis=1), 55)
    plain = dict(zip(matrix.doc_styles, matrix.average[0], strict=True))
    assert plain["8"] == max(plain.values())
    assert min(plain.values()) in (plain["human"], plain["1"])
    assert friedman_test(matrix.ranks[:, 0]).p_value < 1e-4
    plain_queries, expressive = unfairness_score(matrix.average)
    assert expressive < plain_queries / 2
    gains = matching_gains(matrix, ["8"])[:, 0]  # against the only other query style
    assert clustered_mean(gains, np.arange(len(gains))).lower > 1
