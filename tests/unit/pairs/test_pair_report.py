"""The report on a paired corpus as data: round trip, settings, verdicts."""

from __future__ import annotations

import dataclasses

import pytest
from paired_texts import WordSpec, human_text, paired_dataset

from rag_sourcebias.core.errors import DataError
from rag_sourcebias.pairs.audit import check_paired_corpus
from rag_sourcebias.pairs.data import (
    NamedIds,
    PairCheckConfig,
    PairCriteria,
    PairThresholds,
    SoleCorpusTest,
)
from rag_sourcebias.pairs.report import PairReport

TEST = SoleCorpusTest(
    system="words", other="llm:x", measure="NDCG@5", mean_baseline=0.5, mean_other=0.4,
    difference=None, p_different=0.2, margin=0.05, level=0.05, p_equivalent=0.3, n_queries=80,
    n_needed=200, p_different_adjusted=0.4, p_equivalent_adjusted=0.6,
)  # fmt: skip


@pytest.fixture(scope="module")
def report() -> PairReport:
    return check_paired_corpus(
        paired_dataset(
            sources=("llm:ünï", "llm:b"),
            rewrite=lambda i, human, other: human if i % 2 else other,
            texts=[("עברית", human_text(90), "שלום 12"), ("😀\u202e", "", "=1+1 <b>")],
        ),
        retrievers=[WordSpec()],
        thresholds=PairThresholds(chance=None, length_ratio=(0.4, 2.5)),
        config=PairCheckConfig(worst=5),
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"margin": 1.0}, "margin 1.0 is outside"),
        ({"level": 0.5}, "level 0.5 is outside"),
        ({"cutoffs": ()}, r"cutoffs \(\)"),
        ({"confidence_level": 1}, "confidence_level 1"),
        ({"worst": -1}, "worst must be at least 0"),
        ({"text_limit": 0}, "text_limit must be at least 1"),
    ],
)
def test_settings_outside_their_range_are_refused(settings, message) -> None:
    with pytest.raises(DataError, match=message):
        PairCheckConfig(**settings)


def test_equivalence_goes_before_a_difference_within_the_margin() -> None:
    assert (TEST.verdict, TEST.needs_queries) == ("open", 200)
    assert dataclasses.replace(TEST, n_needed=None).needs_queries is None
    assert dataclasses.replace(TEST, n_needed=80).needs_queries is None
    differs = dataclasses.replace(TEST, p_different_adjusted=0.01)
    assert (differs.verdict, differs.needs_queries) == ("different", None)
    assert dataclasses.replace(differs, p_equivalent_adjusted=0.02).verdict == "equivalent"


def test_criteria_follow_from_the_counts() -> None:
    none = NamedIds()
    good = PairCriteria(
        n_documents=4, untagged=none, n_pairs=2, baseline_alone=none, other_alone=none,
        repeated=none, n_labels=2, labels_missing=none, labels_differ=none, labels_added=none,
    )  # fmt: skip
    assert (good.sources_known, good.labels_copied, good.one_to_one) == (True, True, True)
    some = NamedIds(n=1, first=("d",))
    assert not dataclasses.replace(good, untagged=some).sources_known
    for name in ("baseline_alone", "other_alone", "repeated"):
        assert not dataclasses.replace(good, **{name: some}).one_to_one
    for name in ("labels_missing", "labels_differ", "labels_added"):
        assert dataclasses.replace(good, **{name: some}).labels_copied is False
    assert dataclasses.replace(good, n_labels=0).labels_copied is None
