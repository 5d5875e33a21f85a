"""Reports of every kind in every output: sound pages, all tables, all that was found, files."""

from __future__ import annotations

import dataclasses
import functools
import io
import json
import re
from html import unescape
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import answer_reports
import explain_reports
import judged_reports
import numpy as np
import pytest
import style_reports
import test_pair_pages
from outputs import to_html, to_markdown
from rich.console import Console
from stored_reports import NAMES, stored

from rag_sourcebias.kinds import read_report
from rag_sourcebias.report.figures import COLOURS
from rag_sourcebias.report.render import print_report, visible_report, write_report

VOID = {"meta", "link", "br", "hr", "img", "input"}


def answers_of_nothing() -> Any:
    return dataclasses.replace(answer_reports.single(), scorers=())


def explained(**options: Any) -> Any:
    return explain_reports.explain_report(explain_reports.explained(**options))


def skew_without_an_interval() -> Any:
    report = stored("skew-full")
    first, *others = report.systems
    cells = tuple(dataclasses.replace(cell, interval=None) for cell in first.cells)
    return dataclasses.replace(report, systems=(dataclasses.replace(first, cells=cells), *others))


def skew_with_texts() -> Any:
    statistics = stored("style-full").document_statistics
    return dataclasses.replace(stored("skew-full"), text_statistics=statistics)


def styles_of_nothing() -> Any:
    return dataclasses.replace(style_reports.style_report(), systems=())


EDGES = {
    "answers-few": functools.partial(answer_reports.single, n=15),
    "answers-nothing": answers_of_nothing,
    "explain-no-perplexity": functools.partial(explained, models=()),
    "explain-no-queries": functools.partial(explained, queries=False),
    "explain-nothing": functools.partial(explained, shift=0, squeeze=0, length=0, score=0.0035),
    "judged-unused": functools.partial(judged_reports.single, "good", 8),
    "judged-perfect": functools.partial(judged_reports.single, "perfect", target="pool"),
    "judged-scale": functools.partial(judged_reports.single, "scale"),
    "pairs-hostile": test_pair_pages.hostile,
    "skew-no-interval": skew_without_an_interval,
    "skew-texts": skew_with_texts,
    "style-ties": lambda: style_reports.style_report(np.ones((20, 3, 4))),
    "style-one-query": lambda: style_reports.style_report(style_reports.similarities(1)),
    "style-nothing": styles_of_nothing,
}
#: What the pages of few or partial data leave out; all else has the sections of its kind.
SECTIONS = {
    "skew": {"verdicts", "cutoffs", "numbers", "sign", "twins", "sole-corpus", "exposure"},
    "style": {
        *("findings", "ranks", "matrix", "unfairness", "matching", "length"),
        *("quality", "index", "texts"),
    },
    "answers": {"findings", "means", "pairs", "thresholds", "order", "auc", "text"},
    "debias": {"findings", "skew", "quality", "search", "training", "methods"},
    "explain": {"findings", "gap", "texts", "vectors", "perplexity"},
    "judged": {"means", "comparisons", "queries", "judge"},
    "pairs": {"criteria", "flags", "values", "sole", "worst"},
}
LEFT_OUT = {
    "answers-right": {"auc", "text"},
    "answers-single": {"text"},
    "debias-plain": {"search", "training"},
    "explain-no-perplexity": {"perplexity"},
    "explain-no-queries": {"gap"},
    "explain-texts": {"gap", "vectors", "perplexity"},
    "judged-mean": {"comparisons", "queries"},
    "pairs-clean": {"sole", "worst"},
    "pairs-several": {"worst"},
    "style-few": {"quality", "index", "texts"},
    "style-one": {"matrix", "matching", "quality", "index", "texts"},
}
#: The values of every query, all numbers by the names of a program, and texts that a page cuts.
NOT_SHOWN = {"queries", "figures", "cases"}


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
    code = re.findall(r"<style>.*?</style>|<script>.*?</script>|<[^>]*>", rest, flags=re.DOTALL)
    assert re.findall(r"https?://|@import", "".join(code)) == []
    assert "url(" not in rest.replace("url(#", "")
    assert "default-src 'none'" in html
    words = re.sub(r"<(style|script)>.*?</\1>", "", html, flags=re.DOTALL)
    assert not re.search(r"\b(nan|None(?! were| of)|inf)\b", words)


@functools.cache
def report_of(name: str) -> Any:
    return EDGES[name]() if name in EDGES else stored(name)


@functools.cache
def page_of(name: str) -> str:
    return to_html(report_of(name))


@pytest.fixture(params=(*NAMES, *EDGES))
def name(request: pytest.FixtureRequest) -> str:
    return request.param


def printed(report: Any, width: int = 4000, **options: Any) -> str:
    stream = io.StringIO()
    print_report(report, Console(file=stream, width=width, **options))
    return stream.getvalue()


def words(text: str) -> str:
    return " ".join(text.replace("\\", "").split())


def outputs(name: str) -> dict[str, str]:
    report = report_of(name)
    return {
        "html": words(unescape(page_of(name))),
        "md": words(unescape(to_markdown(report))),
        "terminal": words(printed(report)),
    }


def test_the_page_is_sound_and_loads_nothing(name: str) -> None:
    assert_sound(page_of(name))


def test_markdown_tables_are_rectangular(name: str) -> None:
    markdown = to_markdown(report_of(name))
    for table in re.findall(r"(?:^\|.*\n)+", markdown, flags=re.MULTILINE):
        widths = {len(re.findall(r"(?<!\\)\|", row)) for row in table.splitlines()}
        assert len(widths) == 1


def test_all_outputs_say_what_was_found(name: str) -> None:
    document = visible_report(report_of(name)).page()
    told = (*document.first.lines(), *document.headline, *document.warnings)
    assert told
    for output, text in outputs(name).items():
        missing = [finding for finding in told if words(str(finding)) not in text]
        assert missing == [], output


def test_page_and_markdown_show_the_tables_of_the_report(name: str) -> None:
    shown = outputs(name)
    for table, frame in visible_report(report_of(name)).frames.items():
        if table in NOT_SHOWN:
            continue
        cells = {words(cell) for row in frame.rows() for cell in row}
        for output in ("html", "md"):
            assert [cell for cell in cells if cell not in shown[output]] == [], (table, output)


@pytest.mark.parametrize("name", [name for name in (*NAMES, *EDGES) if name in LEFT_OUT])
def test_sections_without_content_are_left_out(name: str) -> None:
    kind = name.partition("-")[0]
    ids = set(Page(page_of(name)).ids)
    assert ids & SECTIONS[kind] == SECTIONS[kind] - LEFT_OUT[name]
    assert {"reading", "data"} <= ids


def test_a_full_report_has_every_section() -> None:
    for kind, expected in SECTIONS.items():
        full = {"answers": "several", "explain": "clear", "judged": "ranking"}.get(kind, "full")
        ids = set(Page(page_of(f"{kind}-{full}")).ids)
        assert expected | {"reading", "data"} <= ids


def test_files_hold_the_report(name: str, tmp_path: Path) -> None:
    report = report_of(name)
    files = write_report(report, tmp_path, formats=("json", "md"))
    again = read_report(files["json"])
    assert json.dumps(again.to_dict()) == json.dumps(report.to_dict())
    assert printed(again) == printed(report)
    assert to_markdown(again) == files["md"].read_text(encoding="utf-8")


def test_pictures_describe_themselves_and_follow_the_page(name: str) -> None:
    for svg in re.findall(r"<svg.*?</svg>", page_of(name), flags=re.DOTALL):
        root = ET.fromstring(svg)
        assert (root.get("role"), root.get("width"), root.get("height")) == ("img", "100%", None)
        assert root.get("viewBox").split()[2] == "360"
        title, description = root[0], root[1]
        assert root.get("aria-labelledby") == f"{title.get('id')} {description.get('id')}"
        assert min(len(title.text), len(description.text)) > 3
        assert not re.search(r"\bnan\b", description.text)
        # No colour may be left that a dark page could not change.
        assert "var(--plot-" in svg
        assert not [colour for colour in COLOURS.values() if colour in svg]
        assert re.findall(r"#[0-9a-f]{6}\b", re.sub(r"var\([^)]*\)", "", svg)) == []
        assert "<style" not in svg
        ids = re.findall(r'\bid="([^"]+)"', svg)
        assert len(ids) == len(set(ids))
        references = {a or b for a, b in re.findall(r'url\(#([^)]+)\)|href="#([^"]+)"', svg)}
        assert references | {title.get("id"), description.get("id")} == set(ids)


def test_signs_have_different_colours_and_significance_is_bold() -> None:
    text = printed(report_of("skew-full"), 120, force_terminal=True, color_system="256")
    assert re.search("\x1b\\[1;38;5;33m *\\+98\\.8", text)
    assert re.search("\x1b\\[38;5;172m *−53\\.7", text)
