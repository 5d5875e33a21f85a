from __future__ import annotations

import dataclasses
import functools
import io
import re

import pytest
from answer_reports import everyone_right, several, single
from outputs import to_html, to_markdown
from rich.console import Console
from test_report_pages import Page, assert_sound

from rag_sourcebias.answers.page import document, headline
from rag_sourcebias.core.finding import number
from rag_sourcebias.report.document import Listing
from rag_sourcebias.report.legacy import score
from rag_sourcebias.report.render import print_report

SECTIONS = {
    "findings",
    "means",
    "thresholds",
    "order",
    "auc",
    "pairs",
    "text",
    "reading",
    "caveats",
    "data",
}
REPORTS = {
    "one": single,
    "several": several,
    "no wrong answers": everyone_right,
    "few questions": lambda: single(n=15),
    "nothing": lambda: dataclasses.replace(single(), scorers=()),
}


def blocks_of(report, kind):
    blocks = (block for section in document(report).sections for block in section.blocks)
    return [block for block in blocks if isinstance(block, kind)]


@functools.cache
def page_of(name):
    return to_html(REPORTS[name]())


@pytest.fixture(params=list(REPORTS))
def name(request):
    return request.param


@pytest.fixture
def report(name):
    return REPORTS[name]()


@pytest.fixture
def html(name):
    return page_of(name)


def plain(markdown):
    return markdown.replace("\\", "")


def printed(report, width=2000):
    stream = io.StringIO()
    print_report(report, Console(file=stream, width=width))
    return stream.getvalue()


def test_the_page_is_sound_and_loads_nothing(html):
    assert_sound(html)


def numbers_of(s):
    """Return numbers of a score as they should be written, whatever its unit."""
    for bias in filter(None, (s.raw, s.adjusted)):
        aucs = [x.estimate for x in (bias.auc, bias.auc_within) if x is not None]
        aucs += [x for x in bias.system_aucs.values() if x is not None]
        yield from (number(x, digits=3) for x in aucs)
        yield from (number(d.effect, digits=2, signed=True) for d in bias.differences)
        yield from (f"{score(share)}%" for share in bias.inversions.correctness)


def test_every_number_is_shown(report, html):
    for text in (html, plain(to_markdown(report))):
        for s in report.scorers:
            assert [n for n in numbers_of(s) if n not in text] == []
        for statistic in report.text_statistics:
            digits = 1 if statistic.name == "words" else 2
            assert f"{statistic.average:.{digits}f}" in text


def test_markdown_and_terminal_say_what_was_found(report):
    markdown, terminal = plain(to_markdown(report)), printed(report)
    for text in (markdown, terminal):
        assert headline(report) in text
        for sentence in blocks_of(report, Listing)[0].rows:
            assert sentence in text
        for warning in report.warnings:
            assert warning in text
    for table in re.findall(r"(?:^\|.*\n)+", to_markdown(report), flags=re.MULTILINE):
        assert len({len(re.findall(r"(?<!\\)\|", row)) for row in table.splitlines()}) == 1


def test_sections_follow_the_content():
    ids = {name: set(Page(page_of(name)).ids) & SECTIONS for name in REPORTS}
    assert ids["several"] == SECTIONS
    assert ids["one"] == SECTIONS - {"text"}
    assert ids["no wrong answers"] == SECTIONS - {"text", "auc"}


def test_the_adjustment_is_left_out_where_there_is_none():
    report = everyone_right()
    start = "## How to read this"
    assert "djusted" not in plain(to_markdown(report)).partition(start)[0]
    assert "adjusted" not in printed(report)
