"""Verdicts of a source audit: each code has its sentence, and none says more than the code."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from intervals import around
from outputs import to_markdown
from stored_reports import stored

from rag_sourcebias.infer.means import SkewCode
from rag_sourcebias.source.audit import verdicts_of
from rag_sourcebias.source.findings import (
    AuditConfig,
    CentredDelta,
    SkewCell,
    SoleCorpusCheck,
    SourceCode,
    comparisons,
    headline,
    plain_verdict,
    verdict_sentences,
)
from rag_sourcebias.source.page import SkewReport


def make_cell(measure: str = "NDCG@5", **changes: Any) -> SkewCell:
    """Return a cell that favours the other source but for the correction.

    Tests change what they are about. The centred figure is the published one.
    """
    values: dict[str, Any] = {
        "measure": measure,
        "baseline": "human",
        "other": "llm:llama-2",
        "mean_baseline": 0.275,
        "mean_other": 0.456,
        "relative_delta": -49.6,
        "interval": around(-49.6, 47),
        "refusal": None,
        "p_value": 0.04,
        "p_adjusted": 0.31,
        "n_queries": 80,
        "n_needed": 430,
        **changes,
    }
    centred = CentredDelta(
        value=values["relative_delta"],
        expected_baseline=0.4,
        expected_other=0.4,
        interval=values["interval"],
        refusal=values["refusal"],
        n_queries=80,
    )
    return SkewCell(**values, centred=centred)


def report_of(
    *cells: SkewCell,
    design: str = "rewrites",
    config: AuditConfig | None = None,
    sole_corpus: tuple[SoleCorpusCheck, ...] = (),
) -> SkewReport:
    """Return a report with one hand-made system in a family of 36 tests."""
    full, config = stored("skew-full"), config or AuditConfig()
    system = dataclasses.replace(
        full.systems[0],
        name="MiniLM",
        cells=cells,
        twins=(),
        exposure=(),
        sole_corpus=sole_corpus,
        verdicts=verdicts_of(cells, config, 36),
    )
    data = dataclasses.replace(full.data, design=design)
    return dataclasses.replace(full, data=data, config=config, systems=(system,), n_tests=36)


def only(report):
    (comparison,) = comparisons(report)
    return comparison


def said(report):
    """Return the findings on the only verdict, by code."""
    return {finding.code: finding for finding in verdict_sentences(report, only(report))}


def text(report):
    return " ".join(map(str, verdict_sentences(report, only(report))))


def test_favours_needs_the_adjusted_p_value():
    report = report_of(make_cell(p_value=0.001, p_adjusted=0.036))
    verdict = only(report).verdict
    assert (verdict.code, verdict.favoured) == (SkewCode.FAVOURS_OTHER, "llm:llama-2")
    assert text(report) == (
        "Favours LLM text over human text: centred Relative Δ of NDCG@5 −49.6 [−96.6, −2.6] over "
        "80 queries. Test of no skew beyond chance: p = 0.001, adjusted p = 0.036 over 36 tests."
    )


def test_raw_significance_is_no_verdict():
    report = report_of(make_cell(p_value=0.04, p_adjusted=0.31))
    assert (only(report).verdict.code, only(report).verdict.favoured) == (SkewCode.CANNOT_TELL, "")
    assert text(report) == (
        "Cannot tell which of human and LLM text is favoured, if either: centred Relative Δ of "
        "NDCG@5 −49.6 [−96.6, −2.6] over 80 queries. Test of no skew beyond chance: p = 0.040, "
        "adjusted p = 0.310 over 36 tests. About 430 queries are needed for a verdict."
    )


def test_inside_the_margin_is_alike():
    cell = make_cell(relative_delta=1.0, interval=around(1.0, 3.5), p_adjusted=1.0)
    report = report_of(cell)
    assert text(report) == (
        "Treats human and LLM text alike, within ±5.0 points: centred Relative Δ of NDCG@5 +1.0 "
        "[−2.5, 4.5] over 80 queries."
    )
    narrow = AuditConfig(margin=4.0)
    assert only(report_of(cell, config=narrow)).verdict.code is SkewCode.CANNOT_TELL


def test_a_refused_interval_gives_the_refusal_alone():
    refusal = SourceCode.ONE_WAY(events=3, n_pairs=80, n_least=5)
    report = report_of(make_cell(interval=None, refusal=refusal, p_adjusted=None))
    assert text(report) == (
        "No verdict on human and LLM text: 3 of 80 pairs went one way; a logistic regression "
        "needs at least 5 each way."
    )
    undefined = make_cell(
        relative_delta=None, interval=None, refusal=SourceCode.NOTHING_RELEVANT(), p_adjusted=None
    )
    assert "None" not in text(report_of(undefined))


def test_the_primary_measure_alone_decides():
    cells = (
        make_cell("NDCG@1", p_value=0.9, p_adjusted=None),
        make_cell("MAP@5", p_value=0.001, p_adjusted=None),
        make_cell("NDCG@5", p_value=0.04, p_adjusted=0.31),
    )
    verdict = only(report_of(*cells)).verdict
    assert (verdict.code, verdict.measure) == (SkewCode.CANNOT_TELL, "NDCG@5")
    chosen = AuditConfig(primary="MAP@5")
    cells = (*cells[:1], make_cell("MAP@5", p_value=0.001, p_adjusted=0.002), cells[2])
    assert only(report_of(*cells, config=chosen)).verdict.code is SkewCode.FAVOURS_OTHER


def test_repeats_count_their_own_tests_and_stand_with_the_verdict():
    full_report = stored("skew-full")
    tests = {c.system.variant: c.verdict.n_tests for c in comparisons(full_report)}
    assert tests == {"mixed": 3, "exact": 1, "length-matched": 1}
    first, second, *_ = comparisons(full_report)
    repeats = [
        finding
        for comparison in (first, second)
        for finding in verdict_sentences(full_report, comparison)
        if finding.code in (SourceCode.REPEAT, SourceCode.REPEAT_TURNS)
    ]
    assert [str(finding) for finding in repeats] == [
        "At equal length: +39.5 [25.8, 52.7].",
        "With exact search the verdict is another: −13.7 [−26.4, −1.0].",
    ]


def test_a_failed_control_is_part_of_the_verdict():
    def check(p):
        return SoleCorpusCheck(
            measure="NDCG@5",
            baseline="human",
            other="llm:llama-2",
            mean_baseline=0.961,
            mean_other=0.891,
            difference=None,
            p_value=p,
        )

    cell = make_cell(p_adjusted=0.01)
    failed = report_of(cell, sole_corpus=(check(0.001),))
    assert "differ too (NDCG@5 96.1 against 89.1, p = 0.001)" in text(failed)
    assert only(failed).harder == "llm:llama-2"
    passed = report_of(cell, sole_corpus=(check(0.4),))
    assert only(passed).control is None
    other_design = report_of(cell, design="independent", sole_corpus=(check(0.001),))
    assert only(other_design).control is None


@pytest.mark.parametrize(
    ("changes", "plain"),
    [
        ({}, "80 queries are too few; about 430 are needed."),
        ({"p_adjusted": 0.01}, "Verdict: MiniLM favours LLM text, by more than chance explains."),
        ({"interval": None, "p_adjusted": None}, "No verdict: these data do not allow one"),
    ],
)
def test_the_plain_verdict_says_what_the_code_says(changes, plain):
    report = report_of(make_cell(**changes))
    assert plain in str(plain_verdict(report, only(report)))
    assert str(headline(report)) == (
        "The verdict rests on NDCG@5 over 160 queries, corrected for 36 tests."
    )


@pytest.mark.parametrize("correction", ["holm", "bh", "none"])
def test_correction_is_explained(correction):
    config = AuditConfig(correction=correction)
    text = to_markdown(report_of(make_cell(p_adjusted=0.04), config=config))
    expected = {
        "holm": "even one false alarm",
        "bh": "expected share of false alarms",
        "none": "No correction for the number of tests was asked for",
    }
    assert expected[correction] in text
