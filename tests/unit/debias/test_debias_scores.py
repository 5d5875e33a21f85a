"""Scores before and after: against the existing audit, and against the literal definition."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from parity_offsets import offset
from tagged_texts import dataset_of

from rag_sourcebias.core.data import Dataset, DocTags, Qrels, TagTable
from rag_sourcebias.core.errors import DataError, MissingTagsError
from rag_sourcebias.debias.audit import other_sources, score_debias, two_sources
from rag_sourcebias.debias.data import DebiasConfig
from rag_sourcebias.debias.rescore import RescoredSpec
from rag_sourcebias.retrieval.rerank import RerankedSpec
from rag_sourcebias.retrieval.search import BM25Spec, DenseSpec

LLM, SECOND = "llm:x", "llm:y"
CONFIG = DebiasConfig(cutoffs=(1, 3), skew_cutoff=3, quality_cutoff=5)


class Vectors:
    """Fixed vectors, near within a topic; ``lean`` is added to all texts that were rewritten."""

    name = "vectors"
    settings = {"model": "vectors"}  # noqa: RUF012

    def __init__(self, lean: float = 0.0) -> None:
        self.lean = lean

    @property
    def fingerprint(self) -> str:
        return f"vectors:{self.lean}"

    def encode_queries(self, texts):
        return np.array([self._vector(text) for text in texts], np.float32)

    def encode_documents(self, texts):
        return np.array([self._vector(text) for text in texts], np.float32)

    def _vector(self, text):
        topic, *rest = text.split()
        base = np.random.default_rng([ord(c) for c in topic]).normal(size=16)
        own = np.random.default_rng([ord(c) for c in text]).normal(size=16)
        query = np.random.default_rng(7).normal(size=16)
        return base + 0.9 * own + self.lean * ("rewritten" in rest) * query


def make(n: int = 30, *, sources=("human", LLM, SECOND), untagged: int = 0, name="made") -> Dataset:
    """Each topic has two pairs; the first is relevant (grade 2 for every third), queries share."""
    rows, grades = [], {}
    for i in range(n):
        for j in range(2):
            for source in sources:
                words = "plainly" if source == "human" else f"rewritten by {source}"
                text = f"topic{i} {j} {words}"
                rows.append((f"{source}-{i}-{j}", source, f"p{i}-{j}", text))
                if j == 0:
                    grades.setdefault(f"q{i}", {})[rows[-1][0]] = 2 if i % 3 == 0 else 1
    for i in range(untagged):
        rows.append((f"u{i}", None, None, f"topic{i} of unknown hand"))
        grades[f"q{i}"][f"u{i}"] = 1
    return dataset_of(rows, {f"q{i}": f"topic{i} asked" for i in range(n)}, grades, name=name)


def ndcg(ranked: list[str], grades: dict[str, int], k: int) -> float:
    """Literally: linear gain, log2 discount, ideal over the judged documents given."""
    gain = sum(grades.get(doc, 0) / math.log2(i + 2) for i, doc in enumerate(ranked[:k]))
    best = sorted(grades.values(), reverse=True)[:k]
    ideal = sum(g / math.log2(i + 2) for i, g in enumerate(best))
    return gain / ideal if ideal else 0.0


def literal(spec, dataset: Dataset, other: str, k: int) -> np.ndarray:
    """All five rows at one cutoff by loops over documents, shape (5, n)."""
    tags = dataset.corpus.tags
    source = {doc: tags.get(doc).source for doc in dataset.corpus.doc_ids}
    grades: dict[str, dict[str, int]] = {q: {} for q in dataset.qrels.query_ids}
    qrels = dataset.qrels
    for q, d, g in zip(qrels.query_codes, qrels.doc_codes, qrels.grades, strict=True):
        grades[qrels.query_ids[q]][qrels.doc_ids[d]] = int(g)

    def ranking(keep) -> dict[str, list[str]]:
        rows = [i for i, doc in enumerate(dataset.corpus.doc_ids) if keep(source[doc])]
        run = spec.build(dataset.corpus.take(np.array(rows))).retrieve(dataset.queries, 100)
        return {found.query_id: list(found.doc_ids) for found in run}

    def scored(runs, sources) -> list[float]:
        return [
            ndcg(
                runs.get(q, []),
                {d: g for d, g in grades[q].items() if source.get(d) in sources},
                k,
            )
            for q in qrels.query_ids
        ]

    mixed = ranking(lambda s: s in ("human", other, None))
    return np.array(
        [
            scored(mixed, {"human"}),
            scored(mixed, {other}),
            scored(ranking(lambda s: s == "human"), {"human"}),
            scored(ranking(lambda s: s == other), {other}),
            scored(mixed, {"human", other}),
        ]
    )


def calibrated(lean: float) -> RescoredSpec:
    encoder = Vectors(lean)
    found = offset(-0.2, half=0.1, encoder=encoder.fingerprint, sources=(LLM, SECOND))
    return RescoredSpec(DenseSpec(encoder), found)


class ByLength:
    name, settings, fingerprint = "by-length", {}, "by-length"

    def score(self, pairs):
        return np.array([-len(text) for _, text in pairs], np.float32)


SPECS = {
    "dense": lambda: DenseSpec(Vectors(0.5)),
    "calibrated": lambda: calibrated(0.5),
    "reranked": lambda: RerankedSpec(DenseSpec(Vectors()), ByLength(), depth=4),
    "bm25": BM25Spec,
}


@pytest.mark.parametrize("kind", ["dense", "calibrated"])
@pytest.mark.parametrize("other", [LLM, SECOND])
def test_scores_are_the_definition(kind: str, other: str) -> None:
    dataset, spec = make(untagged=5), SPECS[kind]()
    found = score_debias(spec, dataset, CONFIG, other=other)
    assert (found.cutoffs, found.query_ids) == ((1, 3, 5), dataset.qrels.query_ids)
    assert (found.name, found.settings) == (spec.name, dict(spec.settings))
    for position, k in enumerate(found.cutoffs):
        expected = literal(spec, dataset, other, k)
        np.testing.assert_allclose(found.values[:, position], expected, atol=1e-12)
    assert 0 < found.of("baseline", 3).mean() < 1  # it is not all the same


def test_every_judged_query_counts() -> None:
    dataset = make(10, sources=("human", LLM))
    # one query without a text, one judged only for a document of another source
    grades = {q: {f"{s}-{q[1:]}-0": 1 for s in ("human", LLM)} for q in dataset.qrels.query_ids}
    grades["q3"] = {"human-3-0": 1}
    grades["lost"] = {"human-0-0": 1, f"{LLM}-0-0": 1}
    dataset = replace(dataset, qrels=Qrels.from_dict(grades))
    found = score_debias(DenseSpec(Vectors()), dataset, CONFIG, other=LLM)
    assert found.values.shape == (5, 3, 11)
    lost, third = (found.query_ids.index(q) for q in ("lost", "q3"))
    assert not found.values[:, :, lost].any()
    assert not found.values[[1, 3]][:, :, third].any()
    assert found.of("human-only", 5)[third] > 0


def test_other_sources_leave_documents_and_judgments_but_no_query() -> None:
    dataset = make(10, untagged=3)
    kept = two_sources(dataset, "human", SECOND)
    assert kept.corpus.tags.sources == ("human", SECOND)
    assert kept.corpus.tags.counts() == {"human": 20, SECOND: 20, "": 3}
    assert kept.qrels.query_ids == dataset.qrels.query_ids
    judged = {kept.qrels.doc_ids[code] for code in kept.qrels.doc_codes}
    assert judged == {d for d in dataset.qrels.doc_ids if not d.startswith(LLM)}
    row = kept.corpus.doc_ids.index(f"{SECOND}-4-1")
    assert kept.corpus.texts[row] == f"topic4 1 rewritten by {SECOND}"
    assert kept.corpus.tags.get(f"{SECOND}-4-1") == dataset.corpus.tags.get(f"{SECOND}-4-1")
    assert two_sources(kept, "human", SECOND) is kept
    assert other_sources(dataset, "human") == (LLM, SECOND)
    # a table that keeps the name of a source it no longer holds
    part = replace(dataset, corpus=dataset.corpus.take(np.arange(2)))
    assert other_sources(part, "human") == (LLM,)


def test_refusals() -> None:
    dataset, spec = make(5), DenseSpec(Vectors())
    with pytest.raises(DataError, match=r"'made' has no document of source 'llm:z' to compare"):
        score_debias(spec, dataset, CONFIG, other="llm:z")
    with pytest.raises(DataError, match="no document of source 'human' to compare with 'human'"):
        score_debias(spec, dataset, CONFIG, other="human")
    with pytest.raises(
        DataError, match="only source 'human' is tagged; a comparison needs a second"
    ):
        other_sources(make(5, sources=("human",)), "human")
    unknown = TagTable.from_tags((doc, DocTags()) for doc in dataset.corpus.doc_ids)
    with pytest.raises(MissingTagsError, match="none of 30 documents has a source tag"):
        other_sources(replace(dataset, corpus=replace(dataset.corpus, tags=unknown)), "human")
    humans = Qrels.from_dict({"q0": {"human-0-0": 1}})
    with pytest.raises(DataError, match="source 'llm:x' has no relevant document"):
        score_debias(spec, replace(dataset, qrels=humans), CONFIG, other=LLM)
    elsewhere = Qrels.from_dict({"z": {"human-0-0": 1, f"{LLM}-0-0": 1}})
    with pytest.raises(DataError, match="none of 5 queries of data set 'made' is judged"):
        score_debias(spec, replace(dataset, qrels=elsewhere), CONFIG, other=LLM)
