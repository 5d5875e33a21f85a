from __future__ import annotations

import re

import numpy as np
import pytest
from judged_reports import answers, rankings, single
from outputs import to_html, to_markdown
from test_report_pages import Page, assert_sound

from rag_sourcebias.core.finding import p_value
from rag_sourcebias.judged.page import JudgedReport, sentence, with_interval
from rag_sourcebias.kinds import read_report
from rag_sourcebias.report.render import write_report

REPORTS = {
    "answers": answers,
    "rankings": rankings,
    "single": single,
    "useless": lambda: single("noise"),
    "unused": lambda: single("good", 8),
    "perfect": lambda: single("perfect", target="pool"),
    "scale": lambda: single("scale"),
}


@pytest.fixture(scope="module", params=list(REPORTS))
def report(request):
    return REPORTS[request.param]()


@pytest.fixture(scope="module")
def html(report):
    return to_html(report)


def test_the_page_is_sound_and_loads_nothing(html):
    assert_sound(html)


def test_every_number_and_warning_is_shown(report, html):
    for text in (html, to_markdown(report).replace("\\", "")):
        for mean in report.means:
            assert with_interval(report, mean) in text
        for warning in report.warnings:
            assert warning.split("'")[0] in text.replace("&#39;", "'")
        for audit in report.audits.values():
            for d in audit.differences:
                assert p_value(d.p_adjusted).replace("<", "&lt;" if text is html else "<") in text
        for assumption in map(str, report.means[0].interval.assumptions):
            assert assumption in text


def test_markdown_holds_every_sentence(report):
    text = to_markdown(report).replace("\\", "")
    for m in report.means:
        assert sentence(report, m) in text
    for table in re.findall(r"(?:^\|.*\n)+", to_markdown(report), flags=re.MULTILINE):
        widths = {len(re.findall(r"(?<!\\)\|", row)) for row in table.splitlines()}
        assert len(widths) == 1


def test_sections_follow_the_content():
    full, small = (set(Page(to_html(r)).ids) for r in (rankings(), single()))
    assert {"means", "comparisons", "queries", "judge", "caveats"} <= full
    assert not {"comparisons", "queries"} & small


@pytest.mark.parametrize("name", ["answers", "rankings", "perfect"])
def test_json_restores_the_report(name, tmp_path):
    report = REPORTS[name]()
    paths = write_report(report, tmp_path / "out")
    assert {k: p.name for k, p in paths.items()} == {
        "json": "report.json",
        "md": "report.md",
        "html": "report.html",
    }
    again = read_report(paths["json"])
    assert isinstance(again, JudgedReport)
    assert to_markdown(again) == to_markdown(report) == paths["md"].read_text(encoding="utf-8")
    assert to_html(again) == paths["html"].read_text(encoding="utf-8")
    for a, b in zip(again.per_query, report.per_query, strict=True):
        np.testing.assert_array_equal(a.human, b.human)
