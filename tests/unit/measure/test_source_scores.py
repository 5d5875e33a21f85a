"""Per-source scores: [K]'s definition, spelled out with one trec_eval pass per source."""

from __future__ import annotations

import numpy as np
import pytest
from measure_oracles import build, expected, pytrec, random_case

from rag_sourcebias.core.data import DocTags, Qrels, Run, TagTable
from rag_sourcebias.core.errors import DataError, MissingTagsError
from rag_sourcebias.measure.relevance import MEASURES, relative_delta, source_scores

CUTOFFS = (1, 3, 5, 10, 40)


def tag(sources):
    """Return a table from ``{doc_id: source or None}``."""
    return TagTable.from_tags((d, DocTags(source=s)) for d, s in sources.items())


def masked(qrels, sources, target):
    """[K] §3.1: documents of other sources count as not relevant, they are not removed."""
    return {
        query: {d: g if sources.get(d) == target else 0 for d, g in row.items()}
        for query, row in qrels.items()
    }


@pytest.mark.parametrize("n_sources", [2, 3, 10])
@pytest.mark.parametrize("kind", ["few values", "distinct", "float32 collisions"])
def test_equals_one_trec_eval_pass_per_source(n_sources, kind):
    rng = np.random.default_rng(n_sources)
    names = [None, *(f"llm:{i}" for i in range(n_sources - 1)), "human"]
    checked = 0
    for _ in range(40):
        run, qrels = random_case(rng, kind, n_docs=30, depth=0.6)
        docs = sorted({d for row in (*run.values(), *qrels.values()) for d in row})
        sources = {d: names[int(rng.integers(0, len(names)))] for d in docs}
        del sources[docs[0]]  # a document that no table knows
        present = sorted({s for s in sources.values() if s})
        judged = {
            sources[d] for row in qrels.values() for d, g in row.items() if g > 0 and d in sources
        }
        if set(present) - judged:
            continue
        ours = source_scores(
            *build(run, qrels), tag(sources), measures=MEASURES, cutoffs=CUTOFFS, ties="trec"
        )
        assert list(ours.sources) == present
        for source in present:
            theirs = pytrec(run, masked(qrels, sources, source), CUTOFFS)
            for i, query in enumerate(ours.query_ids):
                for name, value in theirs[query].items():
                    measure = "MRR@40" if name == "MRR" else name
                    assert ours.of(measure, source)[i] == pytest.approx(value, abs=1e-12)
                    checked += 1
    assert checked > 2_000


def test_expected_ties_per_source():
    run = {"q": {"a": 2.0, "b": 2.0, "c": 2.0, "d": 1.0, "e": 1.0}}
    qrels = {"q": {"a": 1, "b": 2, "d": 1, "e": 3}}
    sources = {"a": "human", "b": "llm:x", "c": "human", "d": "llm:x", "e": "human"}
    ours = source_scores(
        *build(run, qrels), tag(sources), measures=MEASURES, cutoffs=(1, 2, 3, 4, 5)
    )
    for source in ("human", "llm:x"):
        own = masked(qrels, sources, source)["q"]
        for measure in MEASURES:
            for k in (1, 2, 3, 4, 5):
                brute = expected(run["q"], own, measure=measure, k=k, gain="linear")
                assert ours.of(f"{measure}@{k}", source)[0] == pytest.approx(brute, abs=1e-12)


def test_toy_example_of_the_paper():
    """[K] Fig. 10: six documents; d1 is relevant in its human (H) and its LLM (G) version."""
    order = ["d2^G", "d1^G", "d3^H", "d1^H", "d2^H", "d3^G"]
    run = Run.from_dict({"q": {d: 6.0 - i for i, d in enumerate(order)}})
    qrels = Qrels.from_dict({"q": {"d1^H": 1, "d1^G": 1, "d2^H": 0, "d2^G": 0}})
    tags = tag({d: "human" if d.endswith("H") else "llm:g" for d in order})
    scores = source_scores(run, qrels, tags, measures=["NDCG", "MAP"], cutoffs=[1, 3, 5])

    def row(measure, source):
        return [float(scores.of(f"{measure}@{k}", source)[0]) for k in (1, 3, 5)]

    # Target H: d1^G above it is no hit, and d1^H keeps its mixed rank 4.
    assert row("NDCG", "human") == pytest.approx([0, 0, 1 / np.log2(5)])
    assert row("MAP", "human") == pytest.approx([0, 0, 1 / 4])
    # Target G: rank 2, and the human copy does not enter the ideal.
    assert row("NDCG", "llm:g") == pytest.approx([0, 1 / np.log2(3), 1 / np.log2(3)])
    assert row("MAP", "llm:g") == pytest.approx([0, 1 / 2, 1 / 2])
    assert relative_delta(row("NDCG", "human")[2], row("NDCG", "llm:g")[2]) < 0


def test_untagged_documents_keep_their_ranks_and_belong_to_nobody():
    run = Run.from_dict({"q": {"u": 3.0, "h": 2.0, "l": 1.0}})
    qrels = Qrels.from_dict({"q": {"u": 1, "h": 1, "l": 1}})
    tags = tag({"h": "human", "l": "llm:x", "u": None})
    scores = source_scores(run, qrels, tags, measures=["MRR"], cutoffs=[3])
    assert scores.of("MRR@3", "human").item() == 1 / 2
    assert scores.of("MRR@3", "llm:x").item() == 1 / 3
    assert scores.sources == ("human", "llm:x")
    np.testing.assert_array_equal(scores.n_relevant, [[1], [1]])


class TestErrors:
    run = Run.from_dict({"q": {"a": 1.0}})
    qrels = Qrels.from_dict({"q": {"a": 1, "b": 0}})

    def test_no_tags_at_all(self):
        for tags in (TagTable.from_tags([]), tag({"a": None})):
            with pytest.raises(MissingTagsError, match="no document has a source tag"):
                source_scores(self.run, self.qrels, tags)

    def test_a_source_that_no_document_has(self):
        with pytest.raises(DataError, match=r"'llm:z'; sources are \['human'\]"):
            source_scores(self.run, self.qrels, tag({"a": "human"}), sources=["llm:z"])

    def test_a_source_without_relevant_documents(self):
        tags = tag({"a": "human", "b": "llm:x"})
        with pytest.raises(DataError, match="'llm:x' has no relevant document in the qrels"):
            source_scores(self.run, self.qrels, tags)

    def test_unknown_measure_and_bad_cutoff(self):
        tags = tag({"a": "human"})
        with pytest.raises(DataError, match="measures 'ERR' is not one of"):
            source_scores(self.run, self.qrels, tags, measures=["ERR"])
        for cutoffs in ([], [0], [3, -1]):
            with pytest.raises(DataError, match="at least 1"):
                source_scores(self.run, self.qrels, tags, cutoffs=cutoffs)


class TestRelativeDelta:
    @pytest.mark.parametrize(
        ("h", "low", "delta"), [(1, 0, 200), (0, 1, -200), (0.5, 0.5, 0), (22.0, 17.0, 25.641)]
    )
    def test_values(self, h, low, delta):
        assert relative_delta(h, low) == pytest.approx(delta, abs=1e-3)

    def test_zero_over_zero_is_undefined(self):
        assert relative_delta(0.0, 0.0) is None

    def test_negative_measures_are_refused(self):
        with pytest.raises(DataError, match=r"-0\.1"):
            relative_delta(-0.1, 0.5)
