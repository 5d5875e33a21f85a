"""Queries that share a topic: whole clusters are flipped, few and uneven ones refused."""

from __future__ import annotations

import numpy as np
import pytest

from rag_sourcebias.core.errors import DataError, InsufficientDataError
from rag_sourcebias.core.texts import StyledTexts
from rag_sourcebias.infer.findings import InferCode
from rag_sourcebias.retrieval.search import BM25Spec
from rag_sourcebias.style.audit import audit_style, measure_style_bias
from rag_sourcebias.style.data import StyleCode, StyleConfig

N, TOPIC, CONFIG = 60, np.arange(60) % 12, StyleConfig(resamples=400)


def topics(of=TOPIC):
    return {f"q{i}": f"topic {t}" for i, t in enumerate(of)}


def texts():
    """Formal queries leave out what tells apart the documents of a topic."""
    versions = [[f"t{t} n{i} s{t % k} " + "x " * (i % 5) for i, t in enumerate(TOPIC)]
                for k in (2, 3, 4)]  # fmt: skip
    return StyledTexts(
        query_ids=tuple(topics()),
        queries={
            "original": tuple(f"t{t} n{i} s1" for i, t in enumerate(TOPIC)),
            "formal": tuple(f"t{t} s1" for t in TOPIC),
        },
        documents=dict(zip(("human", "formal", "loud"), map(tuple, versions), strict=True)),
    )


def measured(clusters):
    rng = np.random.default_rng(1)
    taste = rng.normal(size=(12, 1, 3)) + np.array([0.9, 0, 0])
    similarity = {"x": taste[TOPIC] + rng.normal(size=(N, 2, 3))}
    return measure_style_bias(similarity, texts(), config=CONFIG, clusters=clusters)


def test_ranks_unfairness_and_tests_go_by_clusters():
    one, found = (measured(given).system("x") for given in (None, topics()))
    assert (one.finding.code, found.finding.code) == (StyleCode.FAVOURS, StyleCode.CANNOT_TELL)
    assert found.finding.n_needed > N
    assert found.finding.apart_at_most > one.finding.apart_at_most
    row, before = found.rows[0], one.rows[0]
    assert row.friedman.p_value > before.friedman.p_value
    for pair, narrow in zip(row.against_original, before.against_original, strict=True):
        assert pair.p_value > narrow.p_value
        assert pair.interval.method.code is InferCode.CLUSTER_FLIPS
    for ends in (*row.average_ranks, row.unfairness_interval, found.mean_unfairness):
        assert 0 <= ends.lower <= ends.estimate <= ends.upper <= 3
        assert (ends.method.code, ends.n_labeled) == (InferCode.CLUSTER_FLIPS, 12)
    assert found.matching[0].gain.method.code is InferCode.CLUSTER_FLIPS
    assert any(text.endswith("statistics of texts do not.") for text in measured(topics()).warnings)


def test_quality_and_styles_in_one_index_go_by_clusters():
    report = audit_style(texts(), bm25=BM25Spec(), config=CONFIG, clusters=topics())
    found = report.systems[0]
    quality, scores = found.quality, found.index_scores
    changes, relative = ([row.change for row in quality], [row.interval for row in scores])
    for kind in (changes, relative, [row.score for row in (*quality, *scores)]):
        assert {one.method.code for one in kind if one} == {InferCode.CLUSTER_FLIPS}


@pytest.mark.parametrize("of", [TOPIC % 5, np.maximum(np.arange(N) - 48, 0)])
def test_too_few_and_uneven_clusters_are_refused(of):
    with pytest.raises(InsufficientDataError, match=r"at least 6 clusters|too few to tell how"):
        measured(topics(of))


def test_clusters_of_other_queries_are_refused():
    with pytest.raises(DataError, match=r"1 queries have a cluster or texts, not both.*'strange'"):
        measured({**topics(), "strange": "topic 1"})
