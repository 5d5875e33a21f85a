"""A source report that version 0.1 wrote opens, and nothing of it is called significant."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from rag_sourcebias.core.errors import DataError
from rag_sourcebias.core.skew import SkewCode, SkewReport
from rag_sourcebias.reports import print_report, read_report_json, to_html, to_markdown
from rag_sourcebias.source.words import headline, verdicts

FILE = Path(__file__).parent / "source_report_0_1.json"


@pytest.fixture(scope="module")
def report():
    found = read_report_json(FILE)
    assert isinstance(found, SkewReport)
    return found


def printed(report):
    stream = io.StringIO()
    print_report(report, Console(file=stream, width=200))
    return stream.getvalue()


def test_the_file_is_one_of_version_0_1():
    data = json.loads(FILE.read_text(encoding="utf-8"))
    assert data["environment"]["rag-sourcebias"] == "0.1.0"
    assert "target_half_width" in data["config"]
    assert "verdicts" not in data["systems"][0]
    # its test called this significant, from 12 queries
    assert min(c["p_adjusted"] for c in data["systems"][0]["cells"]) < 0.05


def test_it_has_figures_but_no_verdict(report):
    assert [v.code for v in verdicts(report)] == [SkewCode.REFUSED] * 2
    assert report.system("ranker").verdicts == ()
    assert report.system("ranker").cells[0].centred is None
    assert report.system("ranker").cells[0].relative_delta is not None


@pytest.mark.parametrize("view", [headline, printed, to_html, to_markdown])
def test_every_view_opens_it_and_says_so(report, view):
    text = view(report).rpartition("</style>")[2]
    assert "no verdict" in text
    for word in ("favours", "alike within", "prefers"):
        assert word not in text
    if view is printed:
        assert "version 0.1" in text
        assert "+" in text  # the figures are there
        assert not any("*" in line for line in text.splitlines() if "Relative Δ" in line)


def test_it_survives_being_written_again(report):
    again = SkewReport.from_dict(json.loads(json.dumps(report.to_dict())))
    assert again.to_dict() == report.to_dict()


def test_a_report_without_its_scores_does_not_open():
    data = json.loads(FILE.read_text(encoding="utf-8"))
    del data["systems"][0]["scores"]
    with pytest.raises(DataError, match="scores' is missing"):
        SkewReport.from_dict(data)
