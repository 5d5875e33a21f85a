"""Sentences of verdicts: each code has its own, and none says more than the code."""

from __future__ import annotations

import dataclasses

import pytest

from rag_sourcebias.infer.decide import SkewCode
from rag_sourcebias.infer.sole_corpus import SoleCorpusCheck
from rag_sourcebias.source.data import AuditConfig
from rag_sourcebias.source.words import headline, verdicts


def only(report):
    (verdict,) = verdicts(report)
    return verdict


def test_favours_needs_the_adjusted_p_value(make, report_of):
    verdict = only(report_of(make.cell(p_value=0.001, p_adjusted=0.036)))
    assert (verdict.code, verdict.direction) == (SkewCode.FAVOURS_OTHER, "other")
    assert verdict.short == "favours LLM text"
    assert verdict.sentence == (
        "MiniLM favours LLM text: centred Relative Δ of NDCG@5 −49.6 [−96.6, −2.6], p = 0.001, "
        "adjusted p = 0.036 over 36 tests; 80 queries."
    )


def test_raw_significance_is_no_verdict(report_of, make):
    verdict = only(report_of(make.cell(p_value=0.04, p_adjusted=0.31)))
    assert (verdict.code, verdict.direction) == (SkewCode.CANNOT_TELL, None)
    assert verdict.sentence == (
        "MiniLM: cannot tell: centred Relative Δ of NDCG@5 −49.6 [−96.6, −2.6], p = 0.040, "
        "adjusted p = 0.310 over 36 tests; 80 queries, about 430 are needed for a verdict."
    )


def test_inside_the_margin_is_alike(report_of, make):
    cell = make.cell(relative_delta=1.0, interval=make.interval(1.0, 3.5), p_adjusted=1.0)
    verdict = only(report_of(cell))
    assert (verdict.code, verdict.direction) == (SkewCode.ALIKE, None)
    assert verdict.sentence == (
        "MiniLM treats both sources alike within ±5.0 points: centred Relative Δ of NDCG@5 +1.0 "
        "[−2.5, 4.5]; 80 queries."
    )
    narrow = AuditConfig(margin=4.0)
    assert only(report_of(cell, config=narrow)).code is SkewCode.CANNOT_TELL


def test_a_refused_interval_gives_the_refusal(report_of, make):
    cell = make.cell(
        interval=None, refusal="only 3 of 80 queries score; about 267 are needed", p_adjusted=None
    )
    verdict = only(report_of(cell))
    assert (verdict.code, verdict.direction) == (SkewCode.REFUSED, None)
    assert verdict.sentence == (
        "MiniLM: no verdict: only 3 of 80 queries score; about 267 are needed."
    )


def test_an_undefined_delta_is_said_in_words(report_of, make):
    cell = make.cell(
        relative_delta=None,
        interval=None,
        refusal="neither source scores on any of 80 queries",
        mean_baseline=0.0,
        mean_other=0.0,
        p_adjusted=None,
    )
    verdict = only(report_of(cell))
    assert verdict.code is SkewCode.REFUSED
    assert "None" not in verdict.sentence + headline(report_of(cell))


def test_the_published_figure_is_named_where_it_is_another(report_of, make):
    cell = make.cell(p_adjusted=0.01)
    assert "published" not in only(report_of(cell)).text
    plain = dataclasses.replace(cell, relative_delta=70.3)
    assert "−49.6 [−96.6, −2.6] (published form +70.3)" in only(report_of(plain)).text


def test_the_primary_measure_alone_decides(report_of, make):
    cells = (
        make.cell("NDCG@1", p_value=0.9, p_adjusted=None),
        make.cell("MAP@5", p_value=0.001, p_adjusted=None),
        make.cell("NDCG@5", p_value=0.04, p_adjusted=0.31),
    )
    verdict = only(report_of(*cells))
    assert verdict.code is SkewCode.CANNOT_TELL
    assert verdict.found.measure == "NDCG@5"
    chosen = AuditConfig(primary="MAP@5")
    cells = (*cells[:1], make.cell("MAP@5", p_value=0.001, p_adjusted=0.002), cells[2])
    assert only(report_of(*cells, config=chosen)).code is SkewCode.FAVOURS_OTHER


def test_variants_count_their_own_tests(full_report):
    matched = next(v for v in verdicts(full_report) if v.system.variant == "length-matched")
    assert "BM25 (length-matched)" in matched.sentence
    assert matched.found.n_tests == 1
    assert {v.found.n_tests for v in verdicts(full_report) if v.system.variant == "mixed"} == {3}


def test_a_failed_control_is_part_of_the_verdict(report_of, make):
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
    assert only(failed).short.endswith("but LLM text is harder to find even on its own")
    passed = report_of(cell, system={"sole_corpus": (check(0.4),)})
    assert only(passed).control is None
    other_design = report_of(cell, design="independent", system={"sole_corpus": (check(0.001),)})
    assert only(other_design).control is None


@pytest.mark.parametrize(
    ("changes", "clause"),
    [
        ({}, "for MiniLM the data cannot tell (about 430 queries are needed)"),
        ({"p_adjusted": 0.01}, "MiniLM favours LLM text"),
        (
            {"interval": None, "refusal": "too few", "p_adjusted": None},
            "for MiniLM there is no verdict",
        ),
    ],
)
def test_headline_has_one_clause_per_code(report_of, make, changes, clause):
    assert headline(report_of(make.cell(**changes))) == (
        f"At NDCG@5 over 160 queries (corrected over 36 tests): {clause}."
    )
