"""Parity calibration: twins score alike, and the order within a source stays."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rag_sourcebias.core.data import Corpus, DocTags, Query, RankedList, Run, TagTable
from rag_sourcebias.core.errors import (
    CalibrationError,
    DataError,
    InsufficientDataError,
    UnsupportedVersionError,
)
from rag_sourcebias.debias.parity import (
    ParityCalibration,
    ScoredTwins,
    fit_parity,
    read_parity,
    write_parity,
)
from rag_sourcebias.debias.rescore import rescore_run

LLM = "llm:x"


def twins(
    n: int = 600, *, source: str = LLM, slope: float = 1.0, shift: float = 0.05, seed: int = 0
) -> ScoredTwins:
    """Twins of a common worth w: the baseline scores w, the other w · slope + shift, with noise."""
    rng = np.random.default_rng(seed)
    worth = rng.normal(0.5, 0.1, n)
    return ScoredTwins(
        source=source,
        baseline_scores=worth + rng.normal(0, 0.03, n),
        source_scores=worth * slope + shift + rng.normal(0, 0.03, n),
        queries=np.arange(n) // 3,
    )


def call(
    calibration: ParityCalibration, sources: list[str | None], scores: list[float] | None
) -> list[float] | None:
    ids = [str(i) for i in range(len(sources))]
    tags = [DocTags(source=s) for s in sources]
    return calibration("q", doc_ids=ids, texts=ids, tags=tags, scores=scores)


@pytest.fixture
def offset() -> ParityCalibration:
    return fit_parity([twins()], encoder="e1")


def test_the_offset_is_the_mean_gap_of_the_twins() -> None:
    given_twins = twins()
    gap = float(np.mean(given_twins.baseline_scores - given_twins.source_scores))
    found = fit_parity([given_twins], encoder="e1")
    moved = call(found, [LLM, "human", None, "llm:other"], [0.3, 0.3, 0.3, 0.3])
    assert moved == pytest.approx([0.3 + gap, 0.3, 0.3, 0.3], abs=1e-15)
    assert found.gaps[0].estimate == pytest.approx(gap)
    assert found.gaps[0].lower < -0.05 < found.gaps[0].upper
    assert (found.n_pairs, found.encoder, found.gaps[0].n_labeled) == ((600,), "e1", 200)


def test_twins_score_alike_afterwards_on_fresh_pairs() -> None:
    found = fit_parity([twins(3000)], encoder="e1")
    fresh = twins(3000, seed=1)
    moved = found.apply(fresh.source_scores, [LLM] * 3000)
    assert np.mean(fresh.baseline_scores - moved) == pytest.approx(0, abs=0.004)
    assert np.mean(moved > fresh.baseline_scores) == pytest.approx(0.5, abs=0.03)


def test_the_order_within_a_source_stays() -> None:
    found = fit_parity([twins(), twins(source="llm:y", shift=-0.2, seed=2)], encoder="e1")
    scores = np.random.default_rng(0).normal(0.5, 0.4, 90)
    sources: list[str | None] = ["human", LLM, "llm:y", None, "llm:z"] * 18
    moved = found.apply(scores, sources)
    for source in set(sources):
        rows = [i for i, s in enumerate(sources) if s == source]
        assert (np.argsort(moved[rows]) == np.argsort(scores[rows])).all()
        assert (moved[rows] == scores[rows]).all() == (source in ("human", None, "llm:z"))


def test_a_run_comes_out_in_the_order_of_its_new_scores(offset: ParityCalibration) -> None:
    known = [("h", DocTags(source="human")), ("l", DocTags(source=LLM)), ("u", DocTags())]
    tags = TagTable.from_tags([*known, ("?", DocTags())])
    corpus, queries = Corpus(texts=("",) * 4, tags=tags), [Query(query_id="q", text="?")]
    ranked = RankedList(
        query_id="q", doc_ids=("l", "h", "u", "?"), scores=np.float32([0.53, 0.52, 0.5, 0.47])
    )
    moved = rescore_run(Run.from_lists([ranked]), offset, corpus, queries)
    assert [moved.doc_ids[c] for c in moved.doc_codes] == ["h", "u", "l", "?"]
    assert moved.scores is not None
    gap = offset.gaps[0].estimate
    np.testing.assert_allclose(moved.scores, np.float32([0.52, 0.5, 0.53 + gap, 0.47]))
    unscored = Run.from_lists([RankedList(query_id="q", doc_ids=("l",))])
    with pytest.raises(DataError, match="scores of the 1 documents, there are none"):
        rescore_run(unscored, offset, corpus, queries)


def test_documents_of_no_fitted_source_need_no_scores(offset: ParityCalibration) -> None:
    assert call(offset, ["human", None], None) is None
    assert call(offset, [], []) is None
    with pytest.raises(DataError, match="needs the retriever's scores of the 2 documents"):
        call(offset, ["human", LLM], None)


@pytest.mark.parametrize("n", [248, 27])
def test_too_few_pairs_are_refused_with_the_number_needed(n: int) -> None:
    needed = 249
    with pytest.raises(InsufficientDataError, match=f"at least {needed}") as caught:
        fit_parity([replace(twins(n), queries=np.arange(n))], encoder="e1")
    assert (caught.value.n, caught.value.n_needed) == (n, needed)
    enough = replace(twins(needed), queries=np.arange(needed))
    assert fit_parity([enough], encoder="e1").n_pairs == (needed,)


def test_dependent_pairs_count_for_less() -> None:
    rng = np.random.default_rng(0)
    per_query = np.repeat(rng.normal(0, 1, 12), 25)
    pairs = ScoredTwins(
        source=LLM,
        baseline_scores=per_query + rng.normal(0, 0.1, 300),
        source_scores=np.zeros(300),
        queries=np.repeat(np.arange(12), 25),
    )
    with pytest.raises(
        InsufficientDataError, match=r"uncertain by ±.*at least .* of more"
    ) as caught:
        fit_parity([pairs], encoder="e1")
    assert caught.value.n_needed is not None
    assert caught.value.n_needed > 3000
    fit_parity([replace(pairs, queries=np.arange(300))], encoder="e1")


def test_few_queries_are_refused() -> None:
    with pytest.raises(InsufficientDataError, match="300 pairs of 'llm:x' for 9 queries"):
        fit_parity([replace(twins(300), queries=np.arange(300) % 9)], encoder="e1")


def test_a_file_gives_the_same_scores(tmp_path: Path) -> None:
    found = fit_parity([twins(), twins(source="llm:y")], encoder="e1")
    write_parity(found, tmp_path / "parity.json")
    again = read_parity(tmp_path / "parity.json", encoder="e1")
    scores = np.linspace(-1, 2, 50)
    for source in (LLM, "llm:y", "human"):
        assert (again.apply(scores, [source] * 50) == found.apply(scores, [source] * 50)).all()
    assert (again.encoder, again.gaps, again.n_pairs) == ("e1", found.gaps, found.n_pairs)


def test_a_file_of_another_encoder_is_refused(offset: ParityCalibration, tmp_path: Path) -> None:
    write_parity(offset, tmp_path / "p.json")
    with pytest.raises(CalibrationError, match="encoder 'e1'; the one in use is 'e2'"):
        read_parity(tmp_path / "p.json", encoder="e2")


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"kind": "other"}, DataError, "is no parity calibration"),
        ({"schema_version": 9}, UnsupportedVersionError, "schema version 9"),
        ({"gaps": []}, DataError, "one gap and number of pairs for each source"),
        ({"gaps": None}, DataError, "not a complete"),
    ],
)
def test_a_damaged_file_is_refused(
    change: dict[str, object],
    error: type[Exception],
    message: str,
    offset: ParityCalibration,
    tmp_path: Path,
) -> None:
    file = tmp_path / "p.json"
    write_parity(offset, file)
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    with pytest.raises(error, match=message):
        read_parity(file)
    file.write_text("{")
    with pytest.raises(DataError, match="is not the JSON"):
        read_parity(file)
