from __future__ import annotations

import dataclasses
import re
from html.parser import HTMLParser
from itertools import pairwise

import pytest
from outputs import to_html, to_markdown

from rag_sourcebias.core.finding import number, p_value
from rag_sourcebias.report.legacy import interval, score

VOID = {"meta", "link", "br", "hr", "img", "input"}
HOSTILE = "<script>alert(1)</script>|[x](javascript:y)\"'&`"


class Page(HTMLParser):
    """Checks nesting and collects what the tests ask for."""

    def __init__(self, text):
        super().__init__()
        self.stack, self.ids, self.tags, self.attributes, self.links = [], [], [], [], []
        self.feed(text)
        self.close()
        assert self.stack == []

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.tags.append(tag)
        self.attributes += [(tag, k, v) for k, v in attrs]
        self.ids += [found["id"]] if "id" in found else []
        self.links += [found["href"]] if tag == "a" else []
        if tag not in VOID:
            self.stack.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.stack.pop()

    def handle_endtag(self, tag):
        assert self.stack.pop() == tag


def assert_sound(html):
    """Hold a page to be nested, complete in itself, loading nothing and free of raw values."""
    page = Page(html)
    assert html.startswith("<!DOCTYPE html>")
    assert len(page.ids) == len(set(page.ids))
    assert {link.removeprefix("#") for link in page.links} <= set(page.ids)
    labels = {v for _, k, v in page.attributes if k == "aria-labelledby"}
    assert {i for value in labels for i in value.split()} <= set(page.ids)
    levels = [int(t[1]) for t in page.tags if re.fullmatch(r"h[1-6]", t)]
    assert levels.count(1) == 1
    assert all(b - a <= 1 for a, b in pairwise(levels))
    assert not {"img", "iframe", "object", "embed"} & set(page.tags)
    assert page.tags.count("script") == 1  # our own, of which the policy holds the hash
    loading = ("src", "srcset", "data", "poster")
    assert not [k for _, k, _ in page.attributes if k in loading or k.startswith("on")]
    assert [v for t, k, v in page.attributes if t == "link" and k == "href"] == ["data:,"]
    # the namespace of SVG is a name, not an address that is fetched
    rest = html.replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert re.findall(r"https?://|@import", rest) == []
    assert "url(" not in rest.replace("url(#", "")
    assert "default-src 'none'" in html
    words = re.sub(r"<(style|script)>.*?</\1>", "", html, flags=re.DOTALL)
    assert not re.search(r"\b(nan|None(?! were| of)|inf)\b", words)


@pytest.fixture(scope="module")
def html(full_report):
    return to_html(full_report)


def test_the_page_is_sound_and_loads_nothing(html):
    assert_sound(html)


def test_html_shows_every_section(html):
    page = Page(html)
    assert {
        "verdicts",
        "cutoffs",
        "numbers",
        "twins",
        "sign",
        "sole-corpus",
        "exposure",
        "reading",
        "caveats",
        "data",
    } <= set(page.ids)
    for text in (
        "Webis CrowdRAG-25",
        "CC BY 4.0",
        "numpy",
        "2.4.6",
        '<th scope="row"><bdi>k1</bdi></th><td class="num">0.9</td>',
    ):
        assert text in html


@pytest.mark.parametrize("to_text", [to_html, to_markdown])
def test_every_number_is_shown(full_report, to_text):
    text = to_text(full_report).replace("\\", "").replace("&lt;", "<")
    for cell in (c for s in full_report.systems for c in s.cells):
        for value in (
            score(cell.mean_baseline),
            score(cell.mean_other),
            number(cell.relative_delta, signed=True),
            interval(cell.interval),
            p_value(cell.p_value),
            p_value(cell.p_adjusted),
        ):
            assert value in text


@pytest.mark.parametrize("to_text", [to_html, to_markdown])
def test_warnings_notes_and_refusals_are_shown(full_report, to_text):
    text = to_text(full_report)
    for expected in (
        full_report.warnings[0],
        "Queries with tied scores by rank 6: 9 of 160. Ties are averaged over.",
        "14 of 800 results of odd are documents without a source tag, such as “d7”.",
        "NDCG@1 against LLM: 3 of 160 pairs went one way",
        "queries are a random sample of the queries of interest",
    ):
        assert expected in text


def test_sections_without_content_are_left_out(report_of, make):
    report = report_of(make.cell())
    page = Page(to_html(report))
    assert not {"twins", "sole-corpus", "exposure", "texts", "evidence"} & set(page.ids)
    assert "## Twins" not in to_markdown(report)


@pytest.mark.parametrize("correction", ["holm", "bh", "none"])
def test_correction_is_explained(report_of, make, correction):
    config = dataclasses.replace(make.report([]).config, correction=correction)
    text = to_markdown(report_of(make.cell(p_adjusted=0.04), config=config))
    expected = {
        "holm": "even one false alarm",
        "bh": "expected share of false alarms",
        "none": "No correction for the number of tests was asked for",
    }
    assert expected[correction] in text
