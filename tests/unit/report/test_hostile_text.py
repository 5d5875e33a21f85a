"""Reports of every kind whose names hold what drives a terminal or breaks a picture."""

from __future__ import annotations

import dataclasses
import io
import json
import re
from functools import cache

import answer_reports
import debias_reports
import explain_reports
import judged_reports
import pytest
import style_reports
import test_pair_pages
from rich.console import Console
from test_report_pages import HOSTILE, assert_sound

from rag_sourcebias.kinds import read_report
from rag_sourcebias.report.render import print_report, visible_report, write_report

#: Terminal escapes, a forged line, a turned direction, half a character, what XML cannot hold.
BAD = f"\x1b[31m\x00\x9b\u202e\ud800\ufffe$x$[bold]{HOSTILE}"
SHOWN = re.compile(r"\\u(001b|0000|009b|202e|d800|fffe)")  # narrow tables shorten names
RAW = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")


def one_source():
    return explain_reports.explain_report(explain_reports.explained())


BUILT = {
    "style": (style_reports.style_report, "formal"),
    "answers": (answer_reports.single, "cosine"),
    "debias": (debias_reports.plain_report, "debiased"),
    "explain": (one_source, "smollm2"),
    "judged": (judged_reports.single, "helpfulness"),
    "pairs": (test_pair_pages.several, "alpha"),
}
KINDS = ["skew", *BUILT]


@pytest.fixture(scope="module")
def simple(make):
    return make.report([make.simple(make.cell(), make.cell("NDCG@1"))])


@pytest.fixture(scope="module")
def clean(simple):
    return cache(lambda kind: simple if kind == "skew" else BUILT[kind][0]())


@pytest.fixture(scope="module")
def hostile(clean):
    """Give the report of a kind with one of its names poisoned wherever it stands."""

    def made(kind):
        name = "llama-2" if kind == "skew" else BUILT[kind][1]
        text = json.dumps(clean(kind).to_dict())
        text, n = re.subn(rf"\b({name})\b", lambda found: json.dumps(found[0] + BAD)[1:-1], text)
        assert n
        report = json.loads(text)
        report["warnings"] = [BAD]
        if kind == "skew":
            numbers = {"source": BAD, "ratio": 1.5, "baseline": "human"}
            report["findings"] = [
                {"code": "data.length", "numbers": numbers, "severity": "warning"}
            ]
        if "environment" in report:
            report["environment"] = {BAD: BAD}
        return type(clean(kind)).from_dict(report)

    return cache(made)


def terminal(report):
    stream = io.StringIO()
    print_report(report, Console(file=stream, width=4000, emoji=False))
    return stream.getvalue()


@pytest.mark.parametrize("kind", KINDS)
def test_a_hostile_report_is_written_shown_and_read_again(hostile, clean, tmp_path, caplog, kind):
    report = hostile(kind)
    files = write_report(report, tmp_path)
    assert list(files) == ["json", "md", "html"]
    assert caplog.records == []  # no picture was lost
    texts = {kind: path.read_text(encoding="utf-8") for kind, path in files.items()}
    texts["terminal"] = terminal(report)
    for name, text in texts.items():
        assert not RAW.search(text), name
        assert SHOWN.search(text), name
    assert_sound(texts["html"])
    assert "<svg" in texts["html"]
    assert "&lt;script&gt;alert(1)" in texts["html"]
    assert not re.search(r"(?<!\\)(<script|\]\(javascript)", texts["md"])
    assert "[bold]" in texts["terminal"]
    assert 'class="undrawn"' not in texts["html"]
    again = read_report(files["json"])
    assert json.dumps(again.to_dict()) == json.dumps(report.to_dict())


@pytest.mark.parametrize("kind", KINDS)
def test_a_clean_report_is_left_alone(clean, kind):
    assert visible_report(clean(kind)) is clean(kind)


def test_a_name_with_a_line_break_forges_no_line_of_the_terminal(simple):
    system = dataclasses.replace(simple.systems[0], name="BM25\nVerdict: nothing to see")
    report = dataclasses.replace(simple, systems=(system,))
    assert "\nVerdict:" not in terminal(report)
    assert "BM25\\u000aVerdict:" in terminal(report)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("width", [40, 80])
def test_every_terminal_width(clean, kind, width):
    stream = io.StringIO()
    print_report(clean(kind), Console(file=stream, width=width))
    lines = stream.getvalue().splitlines()
    # a command is copied as one line
    assert max(len(line) for line in lines if "rag-sourcebias " not in line) <= width
