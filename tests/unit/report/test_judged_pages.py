from __future__ import annotations

import dataclasses
import re
from itertools import pairwise

import numpy as np
import pytest
from judged_reports import answers, rankings, single
from test_report_pages import HOSTILE, Page

from rag_sourcebias.core.skew import SkewReport
from rag_sourcebias.judged.data import JudgedReport
from rag_sourcebias.judged.words import sentence, with_interval
from rag_sourcebias.report.blocks import p_value
from rag_sourcebias.reports import (
    read_report_json,
    to_html,
    to_markdown,
    write_report,
    write_report_json,
)

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


def test_the_page_is_sound(html):
    page = Page(html)
    assert len(page.ids) == len(set(page.ids))
    assert {link.removeprefix("#") for link in page.links} <= set(page.ids)
    labels = {v for _, k, v in page.attributes if k == "aria-labelledby"}
    assert {i for value in labels for i in value.split()} <= set(page.ids)
    levels = [int(t[1]) for t in page.tags if re.fullmatch(r"h[1-6]", t)]
    assert levels.count(1) == 1
    assert all(b - a <= 1 for a, b in pairwise(levels))
    words = re.sub(r"<style>.*?</style>", "", html, flags=re.DOTALL)
    assert not re.search(r"\b(nan|None|inf)\b", words)


def test_the_page_loads_nothing(html):
    page = Page(html)
    assert not {"img", "iframe", "object", "embed"} & set(page.tags)
    assert page.tags.count("script") == 1  # our own, of which the policy holds the hash
    assert not [k for _, k, _ in page.attributes if k in ("src", "srcset") or k.startswith("on")]
    rest = html.replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert re.findall(r"https?://|@import", rest) == []
    assert "default-src 'none'" in html


def test_every_number_and_warning_is_shown(report, html):
    for text in (html, to_markdown(report).replace("\\", "")):
        for mean in report.means:
            assert with_interval(report, mean) in text
        for warning in report.warnings:
            assert warning.split("'")[0] in text.replace("&#39;", "'")
        for audit in report.audits.values():
            for d in audit.differences:
                assert p_value(d.p_adjusted).replace("<", "&lt;" if text is html else "<") in text
        for assumption in report.means[0].interval.assumptions:
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


def test_hostile_names_are_escaped():
    base = answers()
    means = tuple(dataclasses.replace(m, system=HOSTILE + m.system) for m in base.means)
    comparisons = tuple(dataclasses.replace(c, first=HOSTILE) for c in base.comparisons)
    report = dataclasses.replace(
        base,
        name=HOSTILE,
        means=means,
        comparisons=comparisons,
        warnings=(HOSTILE,),
        audits={HOSTILE: base.audits["correctness"]},
        environment={HOSTILE: HOSTILE},
    )
    text = to_html(report)
    assert Page(text).tags.count("script") == 1
    assert "&lt;script&gt;alert(1)" in text
    marks = to_markdown(report)
    assert not re.search(r"(?<!\\)<script", marks)
    assert not re.search(r"(?<!\\)\]\(javascript", marks)


@pytest.mark.parametrize("name", ["answers", "rankings", "perfect"])
def test_json_restores_the_report(name, tmp_path):
    report = REPORTS[name]()
    paths = write_report(report, tmp_path / "out")
    assert {k: p.name for k, p in paths.items()} == {
        "json": "report.json",
        "md": "report.md",
        "html": "report.html",
    }
    again = read_report_json(paths["json"])
    assert isinstance(again, JudgedReport)
    assert to_markdown(again) == to_markdown(report) == paths["md"].read_text(encoding="utf-8")
    assert to_html(again) == paths["html"].read_text(encoding="utf-8")
    for a, b in zip(again.per_query, report.per_query, strict=True):
        np.testing.assert_array_equal(a.human, b.human)


def test_both_kinds_of_report_are_told_apart(full_report, tmp_path):
    for i, report in enumerate((full_report, single())):
        write_report_json(report, tmp_path / f"{i}.json")
    assert isinstance(read_report_json(tmp_path / "0.json"), SkewReport)
    assert isinstance(read_report_json(tmp_path / "1.json"), JudgedReport)
