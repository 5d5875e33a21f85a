"""Reports of every kind whose names hold what drives a terminal or breaks a picture."""

from __future__ import annotations

import dataclasses
import io
import json
import re

import pytest
from rich.console import Console
from stored_reports import stored
from test_every_kind import assert_sound
from test_pair_pages import HOSTILE

from rag_sourcebias.kinds import read_report
from rag_sourcebias.report.render import print_report, visible_report, write_report

#: Terminal escapes, a forged line, a turned direction, half a character, what XML cannot hold.
BAD = f"\x1b[31m\x00\x9b\u202e\ud800\ufffe$x$[bold]{HOSTILE}"
SHOWN = re.compile(r"\\u(001b|0000|009b|202e|d800|fffe)")  # narrow tables shorten names
RAW = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")


#: A report of each kind, and one of its names.
NAMES = {
    "skew-full": "llama-2",
    "style-full": "formal",
    "answers-single": "cosine",
    "debias-plain": "debiased",
    "explain-several": "smollm2",
    "judged-mean": "helpfulness",
    "pairs-several": "llm:b",
}


def hostile(kind):
    """Return the report of a kind with one of its names poisoned wherever it stands."""
    text = json.dumps(stored(kind).to_dict())
    name = rf"\b({NAMES[kind]})\b"
    text, n = re.subn(name, lambda found: json.dumps(found[0] + BAD)[1:-1], text)
    assert n
    report = json.loads(text)
    report["warnings"] = [BAD]
    if kind == "skew-full":
        numbers = {"source": BAD, "ratio": 1.5, "baseline": "human"}
        report["findings"] = [{"code": "data.length", "numbers": numbers, "severity": "warning"}]
    if "environment" in report:
        report["environment"] = {BAD: BAD}
    return type(stored(kind)).from_dict(report)


def terminal(report):
    stream = io.StringIO()
    print_report(report, Console(file=stream, width=4000, emoji=False))
    return stream.getvalue()


@pytest.mark.parametrize("kind", NAMES)
def test_a_hostile_report_is_written_shown_and_read_again(tmp_path, caplog, kind):
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


@pytest.mark.parametrize("kind", NAMES)
def test_a_clean_report_is_left_alone(kind):
    assert visible_report(stored(kind)) is stored(kind)


def test_a_name_with_a_line_break_forges_no_line_of_the_terminal():
    simple = stored("skew-evidence")
    system = dataclasses.replace(simple.systems[0], name="BM25\nVerdict: nothing to see")
    report = dataclasses.replace(simple, systems=(system,))
    assert "\nVerdict: nothing" not in terminal(report)
    assert "BM25\\u000aVerdict:" in terminal(report)


@pytest.mark.parametrize("kind", NAMES)
@pytest.mark.parametrize("width", [40, 80])
def test_every_terminal_width(kind, width):
    stream = io.StringIO()
    print_report(stored(kind), Console(file=stream, width=width))
    lines = stream.getvalue().splitlines()
    # a command is copied as one line
    assert max(len(line) for line in lines if "rag-sourcebias " not in line) <= width
