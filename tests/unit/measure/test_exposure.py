"""Exposure against literal loops."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rag_sourcebias.core.data import DocTags, RankedList, Run, TagTable
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.measure.relevance import Exposure, attention_weights, awrf, exposure

TAGS = TagTable.from_tags(
    [(f"h{i}", DocTags(source="human")) for i in range(5)]
    + [(f"l{i}", DocTags(source="llm:x")) for i in range(5)]
    + [("u", DocTags())]
)
SOURCE = {"h": "human", "l": "llm:x", "u": "", "s": ""}
MODELS = {
    "dcg": lambda r: 1 / math.log2(r + 1),
    "top-1": lambda r: float(r <= 1),
    "top-3": lambda r: float(r <= 3),
    "rbp-0.8": lambda r: 0.8 ** (r - 1),
}


def literal(scored, weight):
    """Share of attention per source; a tie block shares its attention equally."""
    share = dict.fromkeys(("human", "llm:x", ""), 0.0)
    for doc, score in scored.items():
        above = sum(s > score for s in scored.values())
        tied = sum(s == score for s in scored.values())
        share[SOURCE[doc[0]]] += sum(weight(r) for r in range(above + 1, above + tied + 1)) / tied
    total = sum(share.values())
    return [share[s] / total for s in ("human", "llm:x", "")]


def random_run(seed):
    rng = np.random.default_rng(seed)
    docs = [*TAGS.doc_ids, "strange"]
    run = {
        f"q{q}": {d: float(rng.integers(0, 6)) for d in docs if rng.random() < 0.7}
        for q in range(6)
    }
    run["q3"] = {}
    return run


@pytest.mark.parametrize("browsing", MODELS)
@pytest.mark.parametrize("seed", range(6))
def test_against_literal_loops(seed, browsing):
    run = random_run(seed)
    found = exposure(Run.from_dict(run), TAGS, browsing=browsing)
    assert found.sources == ("human", "llm:x", "")
    assert 3 not in found.query_index  # a query without results has no attention to share
    for column, i in enumerate(found.query_index):
        np.testing.assert_allclose(
            found.shares[:, column], literal(run[f"q{i}"], MODELS[browsing]), atol=1e-12
        )
    np.testing.assert_allclose(found.shares.sum(axis=0), 1.0)


def test_attention_weights():
    np.testing.assert_allclose(attention_weights("top-2", 4), [1, 1, 0, 0])
    np.testing.assert_allclose(attention_weights("rbp-.5", 3), [1, 0.5, 0.25])
    np.testing.assert_allclose(attention_weights("dcg", 3), [1, 1 / math.log2(3), 0.5])
    assert attention_weights("dcg", 0).shape == (0,)


@pytest.mark.parametrize("bad", ["top-0", "top-", "rbp-1", "rbp-0.0", "rbp-1.5", "cascade", ""])
def test_unknown_browsing_model(bad):
    with pytest.raises(DataError, match="use 'top-<k>', 'dcg' or 'rbp-<p>'"):
        attention_weights(bad, 5)


def test_empty_and_scoreless_runs():
    assert exposure(Run.from_dict({}), TAGS).shares.shape == (3, 0)
    assert exposure(Run.from_dict({"q": {}}), TAGS).shares.shape == (3, 0)
    run = Run.from_lists([RankedList(query_id="q", doc_ids=("h0", "l0"))])
    np.testing.assert_allclose(exposure(run, TAGS, browsing="top-1").shares.ravel(), [1, 0, 0])
    no_tags = exposure(run, TagTable.from_tags([]))
    assert no_tags.sources == ("",)
    assert no_tags.shares.tolist() == [[1.0]]


class TestAwrf:
    target = {"human": 0.5, "llm:x": 0.5}  # noqa: RUF012

    def shares(self, *columns):
        table = np.array(columns, dtype=float).T
        return Exposure(
            sources=("human", "llm:x", ""), shares=table, query_index=np.arange(len(columns))
        )

    def test_is_the_jensen_shannon_divergence_of_scipy(self):
        from scipy.spatial.distance import jensenshannon

        rng = np.random.default_rng(1)
        columns = rng.dirichlet([1] * 3, size=20)
        target = {"human": 0.2, "llm:x": 0.7, "": 0.1}
        wanted = [1 - jensenshannon(c, [0.2, 0.7, 0.1], base=2) ** 2 for c in columns]
        np.testing.assert_allclose(awrf(self.shares(*columns), target), wanted, atol=1e-12)
