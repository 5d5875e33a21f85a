from __future__ import annotations

import dataclasses
import html as markup
import re
from functools import cache

import numpy as np
import pytest
from outputs import to_html, to_markdown
from style_reports import STYLES, full_report, similarities, style_report
from test_report_pages import Page, assert_sound

from rag_sourcebias.core.finding import number, p_value
from rag_sourcebias.report.legacy import interval, score
from rag_sourcebias.style.page import score_with

SECTIONS = {
    "findings",
    "ranks",
    "matrix",
    "unfairness",
    "matching",
    "length",
    "quality",
    "index",
    "texts",
    "reading",
    "caveats",
    "data",
}
ONE = {"queries": ("original",)}
REPORTS = {
    "full": full_report,
    "one system": style_report,
    "one query style": lambda: style_report(similarities(queries=("original",)), **ONE),
    "one query": lambda: style_report(similarities(1)),
    "five queries": lambda: style_report(similarities(5)),
    "ties": lambda: style_report(np.ones((20, 3, 4))),
    "two styles": lambda: style_report(
        similarities(shifts=(0, 1), styles=STYLES[:2]), styles=STYLES[:2]
    ),
    "many systems": lambda: style_report(
        {f"system {i}": similarities(30, queries=("original",), seed=i) for i in range(4)}, **ONE
    ),
    "nothing": lambda: dataclasses.replace(style_report(), systems=()),
}


@cache
def made(name):
    """Return a report and its page; pictures take time."""
    report = REPORTS[name]()
    return report, to_html(report)


@pytest.fixture(scope="module", params=list(REPORTS))
def report(request):
    return made(request.param)[0]


@pytest.fixture(scope="module")
def page(report):
    return next(page for known, page in (made(name) for name in REPORTS) if known is report)


@pytest.fixture(scope="module")
def full():
    return made("full")[0]


@pytest.fixture(scope="module")
def full_page():
    return made("full")[1]


def test_the_page_is_sound_and_loads_nothing(page):
    assert_sound(page)


def test_numbers_of_ranks_and_unfairness_are_shown(report, page):
    for text in (markup.unescape(page), to_markdown(report).replace("\\", "")):
        for system in report.systems:
            for at, row in enumerate(system.rows):
                for mean, bounds in zip(system.average_ranks[at], row.average_ranks, strict=True):
                    assert number(mean) in text
                    if bounds is not None:
                        assert interval(bounds) in text
                assert score_with(row.unfairness.score, row.unfairness_interval) in text
                assert number(row.unfairness.null_expectation, digits=2) in text
                assert p_value(row.friedman.p_value) in text
                if row.friedman.w is not None:
                    assert number(row.friedman.w, digits=3) in text
            if (mean := system.mean_unfairness) is not None and len(report.data.query_styles) > 1:
                assert score_with(mean.estimate, mean) in text
                spread = np.std([row.unfairness.score for row in system.rows])
                assert number(spread, digits=2) in text


def test_numbers_of_optional_parts_are_shown(full, full_page):
    for text in (markup.unescape(full_page), to_markdown(full).replace("\\", "")):
        for system in full.systems:
            for gain in system.matching:
                assert f"{number(gain.mean, signed=True)} {interval(gain.gain)}" in text
            for bounds in system.rows[0].adjusted_ranks:
                assert score_with(bounds.estimate, bounds, digits=1) in text
            assert number(system.rows[0].length_slope, digits=2, signed=True) in text
            for q in system.quality:
                assert score(q.mean) in text
                assert interval(q.score, scale=100) in text
                assert q.change is None or interval(q.change, scale=100) in text
                assert p_value(q.p_adjusted) in text
            for s in system.index_scores:
                assert score(s.mean) in text
                assert s.interval is None or interval(s.interval) in text
        for statistic in (*full.document_statistics, *full.query_statistics):
            digits = 1 if statistic.name == "words" else 2
            assert number(statistic.average, digits=digits) in text


def test_warnings_notes_assumptions_and_facts_are_shown(full, full_page):
    for text in (markup.unescape(full_page), to_markdown(full).replace("\\", "")):
        for expected in (
            "60 queries are few",
            "texts were stemmed",
            "2: q98, q99",
            "1,200",
            "queries are a random sample of the queries of interest",
            "enough queries that ln of the ratio of means is nearly normal",
            "CC BY 4.0",
            "dtype = float32",
            "ddof = 0",
        ):
            assert expected in text


def test_sections_follow_the_content(full, full_page):
    assert set(Page(full_page).ids) >= SECTIONS
    bare = style_report(similarities(queries=("original",)), **ONE)
    assert not {"matrix", "matching", "quality", "index", "texts"} & set(Page(to_html(bare)).ids)
    text = to_markdown(bare)
    for title in ("## Matching", "## What it costs", "## Document styles in"):
        assert title in to_markdown(full)
        assert title not in text


def test_markdown_tables_are_rectangular(report):
    for table in re.findall(r"(?:^\|.*\n)+", to_markdown(report), flags=re.MULTILINE):
        widths = {len(re.findall(r"(?<!\\)\|", row)) for row in table.splitlines()}
        assert len(widths) == 1
