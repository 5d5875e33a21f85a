"""A first stage with a rescorer behind it, against what each rescorer does by itself."""

from __future__ import annotations

import numpy as np
import pytest
from parity_offsets import offset

from rag_sourcebias.core.data import Corpus, DocTags, Query, Run, TagTable
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.debias.rescore import RescoredSpec, rescore_run
from rag_sourcebias.retrieval.rerank import RerankedSpec
from rag_sourcebias.retrieval.search import DenseSpec

LLM = "llm:x"
# For every query: score 10 to 1, sources alternating from the LLM on.
SOURCES = [LLM, "human"] * 5
DOCS = [f"d{i}" for i in range(10)]
QUERIES = [Query(query_id=f"q{i}", text=f"question {i}") for i in range(3)]
CORPUS = Corpus(
    texts=tuple(f"text {i}" for i in range(10)),
    tags=TagTable.from_tags(
        (doc, DocTags(source=source)) for doc, source in zip(DOCS, SOURCES, strict=True)
    ),
)


class Fixed:
    """Retrieves the documents in their order, with or without scores; remembers the depth."""

    name = "fixed"
    settings = {"kind": "fixed"}  # noqa: RUF012

    def __init__(self, *, scored: bool = True) -> None:
        self.scored, self.depths = scored, []

    def build(self, corpus):
        return self

    def retrieve(self, queries, depth):
        self.depths.append(depth)
        docs = np.tile(np.arange(min(depth, 10)), len(queries))
        return Run.from_arrays(
            query_ids=[q.query_id for q in queries],
            query_codes=np.repeat(np.arange(len(queries)), min(depth, 10)),
            doc_codes=docs,
            doc_ids=DOCS,
            scores=10.0 - docs if self.scored else None,
            name="inner",
        )


class Plain:
    """The last documents first, if the query asks for it."""

    def __init__(self, answer=None) -> None:
        self.answer, self.calls = answer, []

    def __call__(self, query, *, doc_ids, texts, tags, scores):
        self.calls.append((query, tuple(doc_ids), tuple(texts), [t.source for t in tags], scores))
        if self.answer is not None:
            return self.answer
        return None if query == "question 1" else [float(i) for i in range(len(doc_ids))]


def ids(run: Run, query: int = 0) -> list[str]:
    return list(run.ranked_list(query).doc_ids)


def test_an_offset_moves_one_source_and_keeps_the_order_within() -> None:
    spec = RescoredSpec(Fixed(), offset(-2.5))
    run = spec.build(CORPUS).retrieve(QUERIES, 4)
    # scores 7.5 5.5 3.5 … of the LLM's, 9 7 5 … of the human ones
    assert [ids(run, i) for i in range(3)] == [["d1", "d0", "d3", "d2"]] * 3
    assert run.name == spec.name == "fixed+parity"
    assert run.scores is not None
    assert run.scores[:4].tolist() == [9.0, 7.5, 7.0, 5.5]


def test_more_candidates_are_rescored_than_are_shown() -> None:
    first = Fixed()
    built = RescoredSpec(first, offset(-5.5), candidates=8).build(CORPUS)
    assert ids(built.retrieve(QUERIES, 3)) == ["d1", "d3", "d5"]
    assert ids(built.retrieve(QUERIES, 10))[:3] == ["d1", "d3", "d5"]
    assert first.depths == [8, 10]
    # Documents below the candidates cannot come up.
    few = RescoredSpec(Fixed(), offset(-5.5), candidates=2).build(CORPUS)
    assert ids(few.retrieve(QUERIES, 2)) == ["d1", "d0"]


@pytest.mark.parametrize("scored", [True, False])
def test_a_rescorer_is_called_query_by_query(scored: bool) -> None:
    plain = Plain()
    spec = RescoredSpec(Fixed(scored=scored), plain)
    run = spec.build(CORPUS).retrieve(QUERIES, 10)
    assert [ids(run, i) == DOCS[::-1] for i in range(3)] == [True, False, True]
    assert ids(run, 1) == DOCS  # None leaves everything as it is
    query, docs, texts, sources, scores = plain.calls[0]
    assert (query, docs, texts) == ("question 0", tuple(DOCS), CORPUS.texts)
    assert sources == SOURCES
    assert scores == ([10.0 - i for i in range(10)] if scored else None)
    assert spec.name == "fixed+Plain"
    assert spec.settings == {"kind": "fixed", "rescore.kind": "Plain", "rescore.candidates": "100"}


@pytest.mark.parametrize("answer", [[1.0], [float("nan")] * 10, [float("inf")] * 10])
def test_answers_that_are_not_one_number_per_document_are_refused(answer) -> None:
    built = RescoredSpec(Fixed(), Plain(answer)).build(CORPUS)
    with pytest.raises(DataError, match=r"Plain returned .* 10 documents of query 'q0'; expected"):
        built.retrieve(QUERIES, 10)


def test_unknown_documents_and_queries_are_named() -> None:
    run = Run.from_dict({"q0": {"d0": 1.0, "zz": 0.5}})
    with pytest.raises(DataError, match="holds document 'zz', which the corpus does not have"):
        rescore_run(run, Plain(), CORPUS, QUERIES)
    with pytest.raises(DataError, match="run 'run' has 1 queries without a text, first 'q0'"):
        rescore_run(Run.from_dict({"q0": {"d0": 1.0}}), Plain(), CORPUS, QUERIES[1:])


class Encoder:
    name = "e"
    settings = {}  # noqa: RUF012
    fingerprint = "e2"

    def encode_queries(self, texts):
        return np.eye(len(texts), 12, dtype=np.float32)

    def encode_documents(self, texts):
        return np.eye(len(texts), 12, dtype=np.float32)

    def score(self, pairs):
        return np.zeros(len(pairs), np.float32)


def test_a_calibration_of_another_encoder_is_refused() -> None:
    with pytest.raises(DataError, match=r"fitted on scores of 'e1', but 'e' scores with 'e2'"):
        RescoredSpec(DenseSpec(Encoder()), offset(0.1))
    assert RescoredSpec(DenseSpec(Encoder()), offset(0.1, encoder="e2")).name == "e+parity"
    # What counts behind a reranker are the reranker's scores.
    reranked = RerankedSpec(Fixed(), Encoder())
    with pytest.raises(DataError, match="scores with 'e2'"):
        RescoredSpec(reranked, offset(0.1))
    assert RescoredSpec(reranked, offset(0.1, encoder="e2")).build(CORPUS).retrieve(QUERIES, 2)


def test_settings_say_what_was_fitted() -> None:
    settings = RescoredSpec(Fixed(), offset(-0.003)).settings
    assert settings["rescore.kind"] == "parity"
    assert settings[f"rescore.gap {LLM}"] == "-0.003 (300 pairs)"


def test_what_cannot_change_places() -> None:
    assert RescoredSpec(Fixed(), offset(0.1)).keeps_order_within_source
    assert not RescoredSpec(Fixed(), Plain()).keeps_order_within_source


def test_bad_numbers() -> None:
    with pytest.raises(DataError, match="candidates must be at least 1, got 0"):
        RescoredSpec(Fixed(), offset(0.1), candidates=0)
    with pytest.raises(DataError, match="depth must be at least 1, got 0"):
        RescoredSpec(Fixed(), offset(0.1)).build(CORPUS).retrieve(QUERIES, 0)
