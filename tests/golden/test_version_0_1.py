"""Reports that version 0.1 wrote open, and say which verdicts would differ now and why.

Its own code wrote the files: source and pairs by its command line on the bundled samples, the
others on simulated data.
"""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rendering import FOLDER, NAMES
from rich.console import Console
from typer.testing import CliRunner

from rag_sourcebias.cli.app import app
from rag_sourcebias.core.skew import ChangeCode
from rag_sourcebias.reports import (
    changed_verdicts,
    document_of,
    print_report,
    read_report_json,
    to_html,
    to_markdown,
)

OLD = Path(__file__).parent / "version_0_1"
CHANGED = {
    "skew": (ChangeCode.UNEQUAL_COUNTS, ["bm25", "bm25, length-matched"]),
    "style": (ChangeCode.STYLE_RULE, ["encoder"]),
    "answers": (ChangeCode.AUC, ["cosine"]),
    "debias": (ChangeCode.INTERVAL, ["projection, 4 directions on nfcorpus"]),
}
KINDS = ("skew", "style", "answers", "debias", "explain", "judged", "pairs")


@pytest.mark.parametrize("kind", KINDS)
def test_every_output_opens_it_and_says_what_would_differ(kind: str) -> None:
    report = read_report_json(OLD / f"{kind}.json.gz")
    stream = io.StringIO()
    print_report(report, Console(file=stream, width=4000))
    for text in (to_html(report), to_markdown(report), stream.getvalue()):
        assert ("version 0.1 wrote this report" in text) == (kind in CHANGED)
    found = changed_verdicts(report)
    if kind in CHANGED:
        code, subjects = CHANGED[kind]
        assert {change.code for change in found} == {code}
        assert [change.subject for change in found] == subjects
        first = document_of(report).warnings[0]
        assert f"{len(found)} verdict{'s' * (len(found) > 1)} would differ now" in first
        for change in found:
            assert f"{change.subject}: {change.was}, now {change.now}" in first
    else:
        assert found == ()


@pytest.mark.parametrize("name", [name for name in NAMES if name != "skew-old"])
def test_nothing_of_that_is_said_of_a_report_of_today(name: str) -> None:
    assert changed_verdicts(read_report_json(FOLDER / f"{name}.json.gz")) == ()


def test_the_numbers_that_a_change_rests_on_are_in_the_report() -> None:
    report = read_report_json(OLD / "debias.json.gz")
    (change,) = changed_verdicts(report)
    (dataset,) = report.datasets
    before = dataset.outcomes[1].skew_at(report.config.skew_cutoff).after
    limit = 3 * report.config.tolerance
    assert change.numbers["half width then"] == before.half_width < limit
    assert change.numbers["now"] > limit


def test_the_command_that_opens_it_says_so(tmp_path: Path) -> None:
    file = str(OLD / "skew.json.gz")
    found = CliRunner().invoke(app, ["report", "show", file, "--to", str(tmp_path)])
    assert found.exit_code == 0, found.output
    assert "version 0.1 wrote this report" in (tmp_path / "report.md").read_text(encoding="utf-8")
    assert changed_verdicts(read_report_json(tmp_path / "report.json"))
    shown = CliRunner().invoke(app, ["report", "show", file])
    assert "2 verdicts would differ now" in " ".join(shown.output.split())
