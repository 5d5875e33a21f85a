"""``tag fit`` on files of all forms."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from command_line import write_csv
from simulated_texts import simulated
from typer.testing import CliRunner

from rag_sourcebias.core.errors import DataError, InsufficientDataError, SourceBiasError
from rag_sourcebias.tagging import command as tag_fit
from rag_sourcebias.tagging import command as tag_fit_result
from rag_sourcebias.tagging.detector.fit import DetectorTagger, load_detector
from rag_sourcebias.terminal.console import Console

app = typer.Typer(rich_markup_mode="rich", pretty_exceptions_enable=False)
app.command()(tag_fit.fit)


@pytest.fixture(autouse=True)
def _wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tag_fit_result, "out", Console(width=200))


def run(*args: object) -> str:
    result = CliRunner(env={"COLUMNS": "200", "NO_COLOR": "1"}).invoke(app, [str(a) for a in args])
    if isinstance(result.exception, SourceBiasError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return " ".join(result.output.split())


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rows = [
        (doc_id.partition("@")[0] + label[0], doc_id.partition("@")[0], text, label)
        for doc_id, text, label in simulated(40, seed=1)
    ]
    return write_csv(tmp_path / "labelled.csv", ["id", "pair_id", "text", "source"], rows)


def test_a_table_gives_a_detector_and_its_held_out_figures(table: Path, tmp_path: Path) -> None:
    shown = run(table, "--output", tmp_path / "detector")
    assert "source detector, held out" in shown
    assert "80 documents in 40 groups (column 'pair_id')" in shown
    assert "LLM texts tagged as LLM" in shown
    assert "wrong among the decided" in shown
    detector = load_detector(tmp_path / "detector")
    report = detector.report
    assert f"{report.unknown.hits} of 80" in shown
    assert "AUROC" in shown
    assert DetectorTagger(detector).tag_many(["some text"])


def test_styles(tmp_path: Path) -> None:
    rows = [
        (text, label, doc_id.partition("@")[0])
        for doc_id, text, label in simulated(30, seed=1, labels=("plain", "ornate", "terse"))
    ]
    file = write_csv(tmp_path / "styles.csv", ["text", "style", "topic"], rows)
    shown = run(file, "--target", "style", "--output", tmp_path / "d", "--max-error", 0.2)
    assert "style detector, held out" in shown
    assert "tagged ornate" in shown
    assert "LLM texts" not in shown
    assert load_detector(tmp_path / "d").max_error == 0.2


def test_a_folder_of_twins(tmp_path: Path) -> None:
    corpus = tmp_path / "data" / "corpus"
    corpus.mkdir(parents=True)
    for source in ("human", "llm:x"):
        rows = [d for d in simulated(30, seed=1) if d[2] == source]
        lines = [json.dumps({"_id": d.partition("@")[0], "text": t}) for d, t, _ in rows]
        (corpus / f"{source}.jsonl").write_text("\n".join(lines), "utf-8")
    for folder in (tmp_path / "data", corpus):
        assert "60 documents in 30 groups (pairs of the folder)" in run(
            folder, "--output", tmp_path / "d"
        )
    with pytest.raises(DataError, match="is a folder, which has no columns"):
        run(corpus, "--output", tmp_path / "d", "--text", "text")


def test_what_is_refused_before_the_work(table: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no column 'autor'; its columns are id, pair_id"):
        run(table, "--output", tmp_path / "d", "--label", "autor")
    with pytest.raises(DataError, match="--target 'tone' is not one of source, style"):
        run(table, "--output", tmp_path / "d", "--target", "tone")
    with pytest.raises(DataError, match="no column is recognised as label"):
        run(table, "--output", tmp_path / "d", "--target", "style")
    with pytest.raises(DataError, match="--one-llm goes with --target source"):
        run(table, "--output", tmp_path / "d", "--target", "style", "--one-llm")
    with pytest.raises(DataError, match="holds other files"):
        run(table, "--output", tmp_path)
    with pytest.raises(DataError, match=r"max_error 2\.0 is outside"):
        run(table, "--output", tmp_path / "d", "--max-error", 2)
    few = write_csv(tmp_path / "few.csv", ["text", "source"], [("a", "human"), ("b", "llm:x")])
    with pytest.raises(InsufficientDataError, match="at least 20"):
        run(few, "--output", tmp_path / "d")
    assert not (tmp_path / "d").exists()
