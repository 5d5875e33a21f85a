from __future__ import annotations

import dataclasses

import pytest
from style_reports import similarities, style_report

from rag_sourcebias.style.data import (
    StyleCode,
)
from rag_sourcebias.style.page import (
    StyleReport,
    chance_sentence,
    headline,
    verdict_sentence,
)


def with_system(report: StyleReport, **changes: object) -> StyleReport:
    system = dataclasses.replace(report.systems[0], **changes)
    return dataclasses.replace(report, systems=(system, *report.systems[1:]))


def found_as(report: StyleReport, **changes: object) -> StyleReport:
    """Return the report with another finding of its first system."""
    finding = dataclasses.replace(report.systems[0].finding, **changes)
    return with_system(report, finding=finding)


def said(report: StyleReport) -> str:
    return verdict_sentence(report, report.systems[0])


@pytest.fixture(scope="module")
def plain():
    return style_report(similarities(shifts=(0, 0, 0, 0), seed=12))


def test_every_code_has_its_words_and_claims_no_more(plain):
    told = plain.systems[0].finding
    assert told.code is StyleCode.CANNOT_TELL
    assert f"about {told.n_needed:,} queries are needed to tell" in headline(plain)
    words = {
        StyleCode.ALIKE: "ranks all styles alike within ±0.3 places",
        StyleCode.TOO_FEW: "with 60 queries nobody can tell, at least 6 are needed",
        StyleCode.TIED: "the same similarity for every query",
        StyleCode.FAVOURS: "ranks styles apart",
        StyleCode.CANNOT_TELL: "may rank styles apart or alike",
    }
    assert set(words) == set(StyleCode)
    for code, text in words.items():
        report = found_as(plain, code=code, n_needed=6, favoured=(), silenced=())
        assert text in said(report)


@pytest.mark.parametrize(
    ("score", "p", "words"),
    [
        (0.3, 0.5, "no more than the 0.40 that chance alone gives over 60 queries"),
        (0.8, 0.2, "over 60 queries, and the rest may be chance too (Friedman p = 0.200)"),
        (8.0, 0.001, "chance alone would give 0.40 over 60 queries."),
    ],
)
def test_unfairness_is_set_against_chance(plain, score, p, words):
    row = plain.systems[0].rows[0]
    row = dataclasses.replace(
        row,
        unfairness=dataclasses.replace(row.unfairness, score=score, null_expectation=0.4),
        unfairness_interval=None,
        friedman=dataclasses.replace(row.friedman, p_value=p),
    )
    assert words in chance_sentence(plain, row)
