from __future__ import annotations

import dataclasses
import functools
import io
import re
from itertools import pairwise

import pytest
from answer_reports import everyone_right, several, single
from rich.console import Console
from test_report_pages import HOSTILE, Page

from rag_sourcebias.answers.report import document
from rag_sourcebias.answers.words import headline
from rag_sourcebias.report.blocks import Items, number, score
from rag_sourcebias.reports import (
    print_report,
    read_report_json,
    to_html,
    to_markdown,
    write_report_json,
)

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
        for _, sentence in blocks_of(report, Items)[0].rows:
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


def test_hostile_names_are_escaped():
    base = several()
    old = [s.name for s in base.systems]

    def rename(value):
        if isinstance(value, str):
            return HOSTILE + value if value in old else value
        if isinstance(value, tuple):
            return tuple(rename(v) for v in value)
        if isinstance(value, dict):
            return {rename(k): rename(v) for k, v in value.items()}
        if dataclasses.is_dataclass(value) and type(value).__name__ != "Interval":
            fields = {f.name: rename(getattr(value, f.name)) for f in dataclasses.fields(value)}
            return dataclasses.replace(value, **fields)
        return value

    report = rename(base)
    scorers = tuple(
        dataclasses.replace(s, name=HOSTILE + s.name, settings={HOSTILE: HOSTILE}, notes=(HOSTILE,))
        for s in report.scorers
    )
    report = dataclasses.replace(
        report,
        name=HOSTILE,
        scorers=scorers,
        license=HOSTILE,
        warnings=(HOSTILE,),
        environment={HOSTILE: HOSTILE},
    )
    text = to_html(report)
    assert Page(text).tags.count("script") == 1
    assert "&lt;script&gt;alert(1)" in text
    marks = to_markdown(report)
    assert not re.search(r"(?<!\\)<script", marks)
    assert not re.search(r"(?<!\\)\]\(javascript", marks)


@pytest.mark.parametrize("width", [40, 80, 120])
def test_every_terminal_width(width):
    text = printed(several(), width)
    assert max(map(len, text.splitlines())) <= width
    for s in several().scorers:
        assert s.name in text


def test_markup_in_names_is_not_interpreted():
    scorer = dataclasses.replace(single().scorers[0], name="[bold]x[/]")
    assert "[bold]x[/]" in printed(dataclasses.replace(single(), scorers=(scorer,)))


def test_the_page_of_a_report_read_from_json_is_the_same(tmp_path):
    path = tmp_path / "report.json"
    write_report_json(single(), path)
    read = read_report_json(path)
    assert to_html(read) == page_of("one")
    assert to_markdown(read) == to_markdown(single())


def test_a_score_without_spread_within_systems():
    scorer = single().scorers[0]
    spread = dataclasses.replace(scorer.raw.spread, within_sd=None, effects=None)
    raw = dataclasses.replace(scorer.raw, spread=spread)
    report = dataclasses.replace(
        single(), scorers=(dataclasses.replace(scorer, raw=raw, adjusted=None),)
    )
    page = to_html(report)
    assert "Mean score of equally correct answers by system" not in page
    assert number(spread.means[0], digits=3) in page
    assert headline(report) in page.replace("&#39;", "'")
