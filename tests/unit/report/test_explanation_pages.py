from __future__ import annotations

import functools
import io
import re

import explain_reports as made
import pytest
from outputs import to_html, to_markdown
from rich.console import Console
from test_report_pages import Page, assert_sound

from rag_sourcebias.core.finding import number
from rag_sourcebias.explain.report import document, headline
from rag_sourcebias.kinds import read_report
from rag_sourcebias.report.document import Listing
from rag_sourcebias.report.legacy import ends_about_zero
from rag_sourcebias.report.render import print_report, write_report_json

REPORTS = {
    "clear": made.clear_report,
    "nothing": made.nothing_report,
    "no perplexity": made.no_perplexity_report,
    "no queries": made.no_queries_report,
    "texts": made.texts_report,
    "several": made.several_report,
}
SECTIONS = {"gap", "texts", "vectors", "perplexity"}
MEASURED = {
    "no perplexity": SECTIONS - {"perplexity"},
    "no queries": SECTIONS - {"gap"},
    "texts": {"texts"},
}


@functools.cache
def page_of(name):
    return to_html(REPORTS[name]())


@pytest.fixture(params=list(REPORTS))
def name(request):
    return request.param


def plain(text):
    return text.replace("\\", "").replace("&#39;", "'").replace("&lt;", "<").replace("&gt;", ">")


def printed(report, width=4000):
    stream = io.StringIO()
    print_report(report, Console(file=stream, width=width))
    return stream.getvalue()


def findings(report):
    """Return (topic, sentence) of all sources."""
    return [
        (topic, text)
        for section in document(report).sections
        if section.id == "findings"
        for only in section.blocks
        for block in only.blocks
        if isinstance(block, Listing)
        for topic, text in zip(block.of, block.rows, strict=True)
    ]


def test_the_page_is_sound_and_loads_nothing(name):
    assert_sound(page_of(name))
    assert set(Page(page_of(name)).ids) & SECTIONS == MEASURED.get(name, SECTIONS)


def test_all_outputs_say_what_was_found(name):
    report = REPORTS[name]()
    html, markdown, terminal = plain(page_of(name)), plain(to_markdown(report)), printed(report)
    for text in (html, markdown, terminal):
        assert headline(report) in text
        for warning in report.warnings:
            assert warning in text
        for topic, told in findings(report):
            assert topic in text
            assert told in text
    for table in re.findall(r"(?:^\|.*\n)+", to_markdown(report), flags=re.MULTILINE):
        assert len({len(re.findall(r"(?<!\\)\|", row)) for row in table.splitlines()}) == 1


def intervals_of(report):
    """Return value, ends and n of intervals as a table should show them."""
    for s in report.sources:
        found = []
        if s.spectrum is not None:
            found += [(s.spectrum.head, 1), (s.spectrum.tail, 1)]
        for p in s.perplexity:
            found += [(p.gap.gap, 2), (p.gap.gap_equal_length, 2)]
            found += [] if p.bounded is None else [(p.bounded.mean, 2)]
        for value, digits in found:
            ends = ends_about_zero(value, digits=digits)
            yield number(value.estimate, digits=digits, signed=True), ends, f"{value.n_labeled}"


def test_tables_give_interval_and_n(name):
    report = REPORTS[name]()
    rows = re.findall(r"<tr>(.*?)</tr>", plain(page_of(name)), flags=re.DOTALL)
    lines = plain(to_markdown(report)).splitlines()
    for wanted in intervals_of(report):
        assert any(all(f">{cell}<" in row for cell in wanted) for row in rows), wanted
        assert any(all(f" {cell} |" in line for cell in wanted) for line in lines), wanted


def test_the_json_holds_the_page(name, tmp_path):
    report = REPORTS[name]()
    write_report_json(report, tmp_path / "report.json")
    again = read_report(tmp_path / "report.json")
    if name in ("clear", "texts"):
        assert to_html(again) == page_of(name)
    assert to_markdown(again) == to_markdown(report)
    assert printed(again) == printed(report)
