"""Every kind of report shows itself: a line, ten lines, a first screen, frames, files."""

from __future__ import annotations

import builtins
import re
import sys
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest
from rendering import FOLDER, NAMES

from rag_sourcebias.core.errors import DataError, MissingExtraError
from rag_sourcebias.kinds import read_report
from rag_sourcebias.report.render import Report

REPORTS = {name: read_report(FOLDER / f"{name}.json.gz") for name in NAMES}
CODE = re.compile(r"[a-z_]+")
SNAKE = re.compile(r"\b[a-z]+_[a-z]+\b")


@pytest.mark.parametrize("name", NAMES)
def test_a_line_with_verdict_figure_and_interval(name: str) -> None:
    report = REPORTS[name]
    line = repr(report)
    assert "\n" not in line
    assert line.startswith(f"<{type(report).__name__}")
    for outcome in [*report._outcomes()][:3]:
        assert CODE.fullmatch(outcome.code)
        assert f"{outcome.subject} {outcome.words or outcome.code.replace('_', ' ')}" in line
    assert CODE.fullmatch(report.verdict)
    assert not SNAKE.search(line.partition(": ")[2])


def test_a_code_in_a_line_is_seen() -> None:
    assert SNAKE.search("bm25 favours_baseline, centred Δ of NDCG@5 40.7")


@pytest.mark.parametrize("name", NAMES)
def test_about_ten_lines(name: str) -> None:
    text = str(REPORTS[name])
    assert 3 <= len(text.splitlines()) <= 14
    assert text.endswith(".save(folder), .open()")


class Tags(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.outside: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("br", "img", "meta", "link"):
            self.open.append(tag)
        if tag in ("script", "link", "iframe", "img"):
            self.outside.append(tag)
        self.outside += [f"{k}={v}" for k, v in attrs if k in ("src", "href")]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.parametrize("name", NAMES)
def test_a_first_screen_that_loads_nothing(name: str) -> None:
    page = REPORTS[name]._repr_html_()
    found = Tags(page)
    assert found.open == []
    assert found.outside == []
    assert "prefers-color-scheme: dark" in page
    assert "url(" not in page
    assert len(page) < 20_000


def intervals(value: Any) -> int:
    """Count the intervals of a report by its stored form."""
    if isinstance(value, dict):
        own = {"estimate", "lower", "upper", "confidence_level", "method"} <= set(value)
        return int(own) + sum(map(intervals, value.values()))
    return sum(map(intervals, value)) if isinstance(value, list) else 0


@pytest.mark.parametrize("name", NAMES)
def test_frames_hold_every_figure(name: str) -> None:
    report = REPORTS[name]
    if isinstance(report, Report):
        columns = [frame.values() for name, frame in report.frames.items() if name != "queries"]
        lower = [
            cell
            for one in columns
            for key in one
            if key == "lower" or key.endswith("_lower")
            for cell in one[key]
        ]
        assert sum(cell is not None for cell in lower) >= intervals(report.to_dict())
        for frame in report.frames.values():
            assert len(frame.to_pandas()) == len(frame.to_polars()) == len(frame)
        return
    frame = report.to_pandas()
    assert len(frame) == len(report.to_polars())
    assert frame["lower"].notna().sum() == intervals(report.to_dict())


def test_frames_hold_the_values_of_every_query() -> None:
    report = REPORTS["skew-full"]
    frame = report.table("queries").to_pandas()
    assert len(frame) == len(report.table("queries").to_polars())
    for system in report.systems:
        rows = frame[(frame.system == system.name) & (frame.variant == system.variant)]
        assert len(rows) == system.scores.values.size
        first = rows[(rows.measure == "NDCG@5") & (rows.source == system.scores.sources[0])]
        assert list(first["query"]) == list(system.scores.query_ids)
        expected = system.scores.of("NDCG@5", system.scores.sources[0])
        np.testing.assert_array_equal(first["score"], expected)
    with pytest.raises(DataError, match="no table 'everything'; it has 'verdicts', 'delta'"):
        report.table("everything")
    for name in ("style-full", "answers-several", "judged-ranking", "debias-full"):
        assert len(REPORTS[name].table("queries"))


def test_the_rank_of_every_query_stands_under_its_names() -> None:
    report = REPORTS["style-full"]
    frame = report.table("queries").to_pandas()
    system = report.systems[1]
    rows = frame[(frame.system == system.name) & (frame.query_id == system.query_ids[3])]
    rows = rows[rows.query_style == report.data.query_styles[1]]
    assert list(rows.doc_style) == list(report.data.doc_styles)
    np.testing.assert_array_equal(rows.value, system.ranks[3, 1])


def test_frames_hold_the_cases_that_matter_most() -> None:
    for name in ("skew-evidence", "style-evidence"):
        frame = REPORTS[name].table("cases").to_pandas()
        assert len(frame) == 11
        assert list(frame["system"].unique()) == ["bm25"]
        assert "cases" in str(REPORTS[name]).splitlines()[-1]
    frame = REPORTS["style-evidence"].table("cases").to_pandas()
    assert frame["first_text"].str.len().min() > 20


@pytest.mark.parametrize("name", ["explain-clear", "judged-mean"])
def test_a_report_without_values_of_queries_says_so(name: str) -> None:
    report = REPORTS[name]
    with pytest.raises(DataError, match=r"has no table 'queries'; it has ('main', )?'figures'"):
        report.table("queries")
    assert "queries" not in str(report).splitlines()[-1]


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_what_a_frame_needs(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def blocked(name: str, *args: Any) -> Any:
        if name.partition(".")[0] == package:
            raise ModuleNotFoundError(f"No module named {name!r}", name=package)
        return real(name, *args)

    frame = REPORTS["skew-full"].table("delta")
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.setattr(builtins, "__import__", blocked)
    with pytest.raises(MissingExtraError, match=rf"\[{package}\]"):
        getattr(frame, f"to_{package}")()
