from __future__ import annotations

import dataclasses

import pytest

from rag_sourcebias.report import headline, verdicts
from rag_sourcebias.types.reports import AuditConfig, SoleCorpusCheck


def only(report):
    (verdict,) = verdicts(report)
    return verdict


def test_prefers_needs_the_adjusted_p_value(make, report_of):
    cell = make.cell(p_value=0.001, p_adjusted=0.036)
    verdict = only(report_of(cell))
    assert (verdict.kind, verdict.direction) == ("prefers", "other")
    assert verdict.sentence == (
        "MiniLM prefers LLM text: Relative Δ@1 −49.6 [−96.6, −2.6], significant after correction "
        "over 36 tests (p = 0.001, adjusted p = 0.036); 80 queries, 430 needed for ±30."
    )


def test_raw_significance_is_only_a_lean(report_of, make):
    verdict = only(report_of(make.cell(p_value=0.04, p_adjusted=0.31)))
    assert verdict.kind == "leans"
    assert verdict.sentence == (
        "MiniLM leans towards LLM text, but this is not significant after correction over 36 "
        "tests: Relative Δ@1 −49.6 [−96.6, −2.6], p = 0.040, adjusted p = 0.310; 80 queries, 430 "
        "needed for ±30."
    )
    assert "prefers" not in verdict.sentence


def test_positive_delta_is_human(report_of, make):
    cell = make.cell(relative_delta=31.0, interval=make.interval(31.0, 20), p_adjusted=0.01)
    assert only(report_of(cell)).short == "prefers human text"


def test_the_level_of_the_audit_decides_even_without_interval(report_of, make):
    config = AuditConfig(confidence_level=0.99)
    cell = make.cell(interval=None, refusal="too few", p_adjusted=0.03)
    text = only(report_of(cell, config=config)).text
    assert "the test of equal means is significant" not in text
    assert only(report_of(make.cell(p_adjusted=0.03), config=config)).kind == "leans"


def test_interval_with_zero_weakens_the_words(report_of, make):
    wide = make.interval(-10.0, 40)
    lean = only(report_of(make.cell(relative_delta=-10.0, interval=wide)))
    assert "the interval includes 0, so the opposite is possible" in lean.text
    strong = only(report_of(make.cell(relative_delta=-10.0, interval=wide, p_adjusted=0.01)))
    assert "borderline" in strong.text


def test_narrow_interval_around_zero_is_no_measurable_preference(report_of, make):
    cell = make.cell(
        relative_delta=1.0, interval=make.interval(1.0, 10), p_value=0.8, p_adjusted=1.0
    )
    verdict = only(report_of(cell))
    assert (verdict.kind, verdict.direction) == ("none", None)
    assert verdict.sentence.startswith("MiniLM shows no measurable preference: Relative Δ@1 +1.0")
    wider = dataclasses.replace(cell, interval=make.interval(1.0, 10.1))
    assert only(report_of(wider)).kind == "leans"


def test_wide_interval_around_zero_cannot_tell(report_of, make):
    cell = make.cell(relative_delta=0.02, interval=make.interval(0.02, 60), p_adjusted=1.0)
    verdict = only(report_of(cell))
    assert verdict.kind == "unknown"
    assert "cannot tell: Relative Δ@1 0.0" in verdict.text


def test_refused_interval_gives_the_refusal(report_of, make):
    cell = make.cell(interval=None, refusal="only 3 of 80 queries score; about 267 are needed")
    verdict = only(report_of(cell))
    assert verdict.kind == "unknown"
    assert verdict.direction is None
    assert verdict.sentence == (
        "MiniLM: cannot tell: no interval for Relative Δ@1 (only 3 of 80 queries score; about 267 "
        "are needed); the bare estimate −49.6 is not to be relied on."
    )


def test_refused_interval_still_tells_a_significant_test(report_of, make):
    cell = make.cell(interval=None, refusal="too few", p_value=0.0001, p_adjusted=0.004)
    text = only(report_of(cell)).text
    assert "the test of equal means is significant after correction over 36 tests" in text
    assert "the size of the difference is unknown" in text


def test_undefined_delta_is_said_in_words(report_of, make):
    cell = make.cell(
        relative_delta=None, interval=None, mean_baseline=0.0, mean_other=0.0, p_adjusted=None
    )
    verdict = only(report_of(cell))
    assert verdict.kind == "undefined"
    assert "NDCG@1 is 0 for both sources over all 80 queries" in verdict.sentence
    assert "None" not in verdict.sentence


def test_smallest_cutoff_of_ndcg_decides(report_of, make):
    cells = (
        make.cell("MAP@1", p_adjusted=0.001),
        make.cell("NDCG@10", p_adjusted=0.5),
        make.cell("NDCG@3", p_adjusted=0.5),
    )
    assert only(report_of(*cells)).cell.measure == "NDCG@3"


def test_other_cutoff_in_the_same_direction(report_of, make):
    later = make.cell(
        "NDCG@5", relative_delta=-14.2, interval=make.interval(-14.2, 5), p_adjusted=0.012
    )
    verdict = only(report_of(make.cell(), later))
    assert verdict.text.endswith(
        "the same direction is significant at @5 (−14.2 [−19.2, −9.2], adjusted p = 0.012)"
    )
    assert [(e.measure, e.direction) for e in verdict.elsewhere] == [("NDCG@5", "other")]


def test_other_cutoff_in_the_opposite_direction(report_of, make):
    later = make.cell(
        "NDCG@5", relative_delta=14.2, interval=make.interval(14.2, 5), p_adjusted=0.012
    )
    report = report_of(make.cell(p_adjusted=0.01), later)
    verdict = only(report)
    assert "the opposite holds elsewhere: human text ranks significantly higher" in verdict.text
    assert "but at NDCG@5 human text ranks significantly higher" in headline(report)


def test_insignificant_other_cutoffs_are_silent(report_of, make):
    assert "@5" not in only(report_of(make.cell(), make.cell("NDCG@5", p_adjusted=0.2))).text


@pytest.mark.parametrize("design", ["independent", "unknown"])
def test_only_rewrites_show_a_preference(report_of, make, design):
    report = report_of(make.cell(p_adjusted=0.01), design=design)
    assert only(report).text.startswith("ranks LLM text higher: ")
    assert "prefer" not in only(report).sentence + headline(report)
    lean = report_of(make.cell(), design=design)
    assert only(lean).text.startswith("leans towards ranking LLM text higher, but this is not")


def test_several_sources_get_one_sentence_each(three_source_report):
    found = verdicts(three_source_report)
    assert len(found) == 4
    assert found[0].subject == "BM25 (against LLM llama-2-7b-chat)"
    assert "LLM llama-2-7b-chat text over human text" in found[0].text


def test_no_correction_is_named(report_of, make):
    config = AuditConfig(correction="none")
    strong = only(report_of(make.cell(p_value=0.01, p_adjusted=0.01), config=config)).text
    assert "significant uncorrected, with 36 tests made (p = 0.010)" in strong
    weak = only(report_of(make.cell(p_value=0.2, p_adjusted=0.2), config=config)).text
    assert "not significant even without correction for 36 tests" in weak


def test_a_single_test_needs_no_correction(report_of, make):
    text = only(report_of(make.cell(p_value=0.01, p_adjusted=0.01), n_tests=1)).text
    assert "significant (p = 0.010)" in text
    assert "correction" not in text


def test_variants_count_their_own_tests(full_report):
    matched = next(v for v in verdicts(full_report) if v.system.variant == "length-matched")
    assert "BM25 (length-matched)" in matched.sentence
    assert "after correction over 6 tests" in matched.text


def test_failed_control_is_part_of_the_verdict(report_of, make):
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

    cell = make.cell(p_adjusted=0.01)
    failed = report_of(cell, system={"sole_corpus": (check(0.001),)})
    assert (
        "searched alone, the two corpora differ too (NDCG@5 96.1 against 89.1" in only(failed).text
    )
    assert only(failed).short.endswith("though the control differs")
    assert "though the two corpora differ even when searched alone" in headline(failed)
    passed = report_of(cell, system={"sole_corpus": (check(0.4),)})
    assert not only(passed).unequal_alone


def test_headline_without_anything_significant(report_of, make):
    assert headline(report_of(make.cell())) == (
        "At NDCG@1 over 160 queries, no preference is significant after correction over 36 tests. "
        "MiniLM leans towards LLM text, not significantly."
    )


def test_headline_counts_systems_as_deployed(full_report):
    text = headline(full_report)
    assert text.startswith("At NDCG@1 over 160 queries, BM25 prefers human text (significant")
    assert "length-matched" not in text
    assert "exact" not in text
    assert text.count(". ") == 1


def test_headline_counts_when_names_are_too_many(make):
    cell = make.cell(p_adjusted=0.01)
    systems = [make.simple(cell, name=f"system {i}") for i in range(5)]
    assert "5 systems prefer LLM text (significant" in headline(make.report(systems))


def test_headline_of_an_empty_report(make):
    assert headline(make.report([])) == "No two sources were compared."
