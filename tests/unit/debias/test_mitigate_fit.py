"""Projections and calibrations fitted from texts: literal definitions on tiny corpora."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from favoured_twins import (
    FAVOUR,
    LLM,
    N_PAIRS,
    N_TOPICS,
    FavouringEncoder,
    Vectors,
    favoured_dataset,
)
from hashing_encoder import HashingEncoder
from tagged_texts import corpus_of

from rag_sourcebias.core.data import Corpus, Dataset
from rag_sourcebias.core.errors import DataError, InsufficientDataError
from rag_sourcebias.core.tags import training_pairs, twin_texts
from rag_sourcebias.debias.fit import fit_parity_calibration, fit_source_projection, score_twins


def unit(rows: Vectors) -> npt.NDArray[np.float64]:
    wide = rows.astype(np.float64)
    return np.asarray(wide / np.linalg.norm(wide, axis=1, keepdims=True))


def literal_gaps(
    data: Dataset, encoder: HashingEncoder | FavouringEncoder, depth: int
) -> list[float]:
    """Baseline minus source over every query and relevant pair, pair by pair."""
    documents = unit(encoder.encode_documents(data.corpus.texts))
    relevant = training_pairs(data)
    row_of = data.corpus.tags.row_of
    gaps = []
    for query_id, query, row in zip(
        relevant.query_ids, relevant.queries, relevant.rows, strict=True
    ):
        scores = documents @ unit(encoder.encode_queries([query]))[0]
        human = scores[row_of[relevant.twins.baseline_ids[row]]]
        llm = scores[row_of[relevant.twins.source_ids[row]]]
        threshold = np.sort(scores)[-depth]
        if (human + llm) / 2 >= threshold - 1e-7:
            gaps.append(human - llm)
        assert query_id in data.qrels.query_ids
    return gaps


@pytest.mark.parametrize("depth", [11, 720])
def test_the_offset_is_the_mean_gap_of_relevant_twins_within_reach(depth: int) -> None:
    data, encoder = favoured_dataset(), FavouringEncoder()
    found = fit_parity_calibration(data, encoder, depth=depth)
    gaps = literal_gaps(data, encoder, depth)
    assert found.n_pairs == (len(gaps),)
    assert found.gaps[0].estimate == pytest.approx(np.mean(gaps), abs=1e-6)
    assert found.apply(np.zeros(1), [LLM])[0] == pytest.approx(np.mean(gaps), abs=1e-6)
    assert found.gaps[0].lower < -FAVOUR < found.gaps[0].upper
    assert found.encoder == encoder.fingerprint
    assert found.sources == (LLM,)


def test_reach_leaves_pairs_out_without_favouring_a_version() -> None:
    data, encoder = favoured_dataset(), FavouringEncoder()
    (near,), (every,) = score_twins(data, encoder, depth=4)
    assert len(near.queries) < len(every.queries) == N_TOPICS * N_PAIRS
    assert (near.baseline_scores - near.source_scores).mean() == pytest.approx(-FAVOUR, abs=0.01)
    # Asking that the favoured version is near selects pairs in which luck favours it further.
    scores = (
        unit(encoder.encode_queries([q.text for q in data.queries]))
        @ unit(encoder.encode_documents(data.corpus.texts)).T
    )
    reach = np.sort(scores, axis=1)[:, -4]
    naive = every.source_scores >= reach[every.queries] - 1e-7
    gaps = every.baseline_scores - every.source_scores
    assert gaps[naive].mean() < (near.baseline_scores - near.source_scores).mean() - 0.005


def test_dot_products_are_not_normalised() -> None:
    data = favoured_dataset()

    class Longer(FavouringEncoder):
        def encode_documents(self, texts: Sequence[str]) -> Vectors:
            return np.asarray(3 * super().encode_documents(texts))

    cosine = fit_parity_calibration(data, Longer())
    dot = fit_parity_calibration(data, Longer(), similarity="dot")
    assert dot.gaps[0].estimate == pytest.approx(3 * cosine.gaps[0].estimate, abs=1e-5)
    with pytest.raises(DataError, match="similarity 'l2'"):
        fit_parity_calibration(data, Longer(), similarity="l2")  # type: ignore[arg-type]


def test_every_source_with_pairs_is_calibrated() -> None:
    data = favoured_dataset(sources=("human", LLM, "llm:y"))
    found = fit_parity_calibration(data, FavouringEncoder())
    assert found.sources == (LLM, "llm:y")
    assert [gap.estimate for gap in found.gaps] == pytest.approx([-FAVOUR] * 2, abs=0.01)
    one = fit_parity_calibration(data, FavouringEncoder(), sources=["llm:y"])
    assert one.sources == ("llm:y",)


def test_all_pairs_serve_where_those_within_reach_are_too_few() -> None:
    data = favoured_dataset()
    (near,), (every,) = score_twins(data, FavouringEncoder(), depth=2)
    assert len(near.queries) < 249 < len(every.queries)
    found = fit_parity_calibration(data, FavouringEncoder(), depth=2)
    assert found.n_pairs == (len(every.queries),)
    few = replace(data, queries=data.queries[:5])
    with pytest.raises(InsufficientDataError, match="30 pairs of 'llm:x' for 5 queries"):
        fit_parity_calibration(few, FavouringEncoder())


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (np.full((720, 3), np.nan, np.float32), "NaN or infinity, first for '0-0@human'"),
        (np.ones((7, 3), np.float32), r"shape \(7, 3\) for 720 texts"),
    ],
)
def test_vectors_that_cannot_be_scored_are_refused(rows: Vectors, message: str) -> None:
    class Broken(FavouringEncoder):
        def encode_documents(self, texts: Sequence[str]) -> Vectors:
            return rows

    with pytest.raises(DataError, match=message):
        fit_parity_calibration(favoured_dataset(), Broken())


class AxisEncoder:
    """A text is its topic, and whether an LLM wrote it, along an axis of its own."""

    name = "axis"
    fingerprint = "axis-1"
    settings: Mapping[str, str] = {}

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        return self.encode_documents(texts)

    def encode_documents(self, texts: Sequence[str]) -> Vectors:
        rows = np.empty((len(texts), 24), np.float32)
        for row, text in zip(rows, texts, strict=True):
            words = text.split()
            row[:-1] = np.random.default_rng(int(words[1])).normal(size=23)
            row[:-1] += np.random.default_rng(len(text)).normal(0, 0.01, 23)
            row[-1] = 2 * ("llm" in text)
        return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def axis_corpus(n: int = 80) -> Corpus:
    rows = [
        (f"{i}{s[0]}", s, f"p{i}", f"topic {i} by {s}") for i in range(n) for s in ("human", LLM)
    ]
    return corpus_of(*rows)


@pytest.mark.parametrize("method", ["mean", "pca"])
def test_a_projection_makes_twins_alike(method: str) -> None:
    twins, encoder = twin_texts(axis_corpus()), AxisEncoder()
    found = fit_source_projection(twins, encoder, method=method, n_directions=1)  # type: ignore[arg-type]
    assert (found.method, found.encoder, found.n_pairs) == (method, "axis-1", 80)
    human = encoder.encode_documents(twins.baseline_texts)
    llm = encoder.encode_documents(twins.source_texts)
    before = np.linalg.norm((llm - human).mean(axis=0))
    after = np.linalg.norm((found.apply(llm) - found.apply(human)).mean(axis=0))
    assert after < 0.1 * before
