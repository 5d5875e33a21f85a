"""Every command that reads data has a sample on which it shows something."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from command_line import inside, succeed

from rag_sourcebias.cli import app
from rag_sourcebias.kinds import read_report
from rag_sourcebias.start import _SAMPLES
from rag_sourcebias.terminal.options import leaves

QUICK = {
    "audit answers": ("--resamples", "200", "--no-text-statistics"),
    "audit style": ("--resamples", "200"),
    "explain": ("--encoder", "none"),
    "labels": ("--half-width", "0.03"),
    "annotate": ("--output", "sheets"),
    "judge grade": ("--model", "openai:m", "--dry-run"),
    "rewrite": ("--model", "openai:m", "--output", "paired", "--dry-run"),
}
# what reads a log or a store of an application, or a file that somebody labelled
OWN = {
    *("start", "monitor serve", "monitor replay", "monitor rotate"),
    *("tag apply", "tag fit", "tag verify"),
}
ALL = leaves(typer.main.get_command(app))


def test_every_other_command_has_a_sample() -> None:
    without = {
        n for n, leaf in ALL.items() if "--sample" not in {o for p in leaf.params for o in p.opts}
    }
    assert without == OWN


@pytest.mark.parametrize("name", sorted({*ALL} - OWN - {"debias"}))
def test_the_sample_works(name: str, tmp_path: Path) -> None:
    code, shown, told = inside(*name.split(), "--sample", *QUICK.get(name, ()), cwd=tmp_path)
    assert code == 0, told
    assert shown.strip()


@pytest.mark.frameworks
def test_debias_shows_an_effect(tmp_path: Path) -> None:
    pytest.importorskip("sentence_transformers")
    succeed("debias", "--sample", "--output", "parity.json", "--report", "r", cwd=tmp_path)
    report = read_report(tmp_path / "r" / "report.json")
    change = report.datasets[0].outcomes[1].skew_at(5).change
    assert change.lower > 20  # a half of what there is at most
    assert report.datasets[0].outcomes[1].n_seen == 0
    assert json.loads((tmp_path / "parity.json").read_text("utf-8"))


def test_start_lists_each_sample() -> None:
    listed = {name for name in ALL if any(line.startswith(f"{name} ") for line, _ in _SAMPLES)}
    assert {*ALL} - OWN - {"judge grade", "rewrite"} == listed


@pytest.mark.parametrize(
    ("columns", "command"),
    [
        ("id,human,judge", "$ rag-sourcebias interval t.csv"),
        ("question,system,answer,reference,correct", "$ rag-sourcebias audit answers t.csv"),
        ("query_id,side,style,text", "$ rag-sourcebias audit style t.csv"),
        ("question,reference,answer", "$ rag-sourcebias judge grade t.csv"),
        ("id,judge", "$ rag-sourcebias labels t.csv"),
        ("doc_id,source", "audit source --tags takes it"),
        ("text,source", "$ rag-sourcebias tag fit t.csv"),
    ],
)
def test_tables_are_recognised(columns: str, command: str, tmp_path: Path) -> None:
    cells = ",".join("1" * (columns.count(",") + 1))
    (tmp_path / "t.csv").write_text(f"{columns}\n{cells}\n")
    assert command in succeed("start", "t.csv", "--dry-run", cwd=tmp_path)


def test_what_is_not_recognised_is_said(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    code, _, told = inside("start", "t.csv", cwd=tmp_path)
    assert code == 2
    assert "t.csv is not recognised: of its columns a, b none has a usual name" in told
    assert "--judge" in told


def test_what_is_recognised_is_run(tmp_path: Path) -> None:
    rows = [f"i{n},{n % 2 if n < 60 else ''},{(n % 2) * 0.7 + n % 5 * 0.05}" for n in range(200)]
    (tmp_path / "t.csv").write_text("\n".join(["id,human,judge", *rows]))
    shown = succeed("start", "t.csv", "--report", "r", cwd=tmp_path)
    assert "$ rag-sourcebias interval t.csv --report r" in shown
    assert (tmp_path / "r" / "report.json").is_file()
