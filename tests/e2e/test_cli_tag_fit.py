"""``tag fit`` on files of all forms."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import pytest
import typer
from command_line import INTERRUPTIBLE, write_csv
from simulated_texts import simulated
from typer.testing import CliRunner

from rag_sourcebias.cli.console import Console
from rag_sourcebias.core.errors import DataError, InsufficientDataError, SourceBiasError
from rag_sourcebias.tagging import command as tag_fit
from rag_sourcebias.tagging import command as tag_fit_result
from rag_sourcebias.tagging.detector.fit import DetectorTagger, load_detector

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


def test_the_same_seed_gives_the_same_files(table: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        run(table, "--output", tmp_path / name, "--seed", 3)
    read = [(tmp_path / name / "model.npz").read_bytes() for name in ("a", "b")]
    assert read[0] == read[1]


def test_json_lines_with_own_columns_and_one_llm(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    labels = ("human", "llm:a", "llm:b")
    lines = [
        json.dumps({"body": text, "who": label, "about": doc_id.partition("@")[0]})
        for doc_id, text, label in simulated(30, seed=1, labels=labels)
    ]
    file.write_text("\n".join([*lines, '{"body": "nobody knows", "about": "x"}']), "utf-8")
    options = ("--label", "who", "--group", "about", "--output", tmp_path / "d")
    shown = run(file, *options, "--one-llm")
    assert "30 groups (column 'about')" in shown
    assert "left out: 1 without a label" in shown
    assert load_detector(tmp_path / "d").labels == ("human", "llm:any")
    run(file, *options)
    assert load_detector(tmp_path / "d").labels == labels


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


def test_a_weak_detector_is_warned_about(tmp_path: Path) -> None:
    rows = [(text, label) for _, text, label in simulated(40, seed=2, strength=0.0)]
    file = write_csv(tmp_path / "t.csv", ["text", "label"], rows)
    shown = run(file, "--output", tmp_path / "d", "--max-error", 0.01)
    assert "Warning: no threshold keeps an error of 1.0%" in shown


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
    with pytest.raises(DataError, match="does not exist"):
        run(tmp_path / "none.csv", "--output", tmp_path / "d")
    few = write_csv(tmp_path / "few.csv", ["text", "source"], [("a", "human"), ("b", "llm:x")])
    with pytest.raises(InsufficientDataError, match="at least 20"):
        run(few, "--output", tmp_path / "d")
    assert not (tmp_path / "d").exists()


def test_ctrl_c_leaves_no_detector(tmp_path: Path) -> None:
    rows = [(text, label) for _, text, label in simulated(1500, seed=1, n_words=300)]
    write_csv(tmp_path / "t.csv", ["text", "source"], rows)
    command = [*INTERRUPTIBLE, "tag", "fit", "t.csv", "--output", "d"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert "learning sources" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        _, messages = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted: no detector was written" in messages
    assert [p.name for p in tmp_path.iterdir()] == ["t.csv"]


def test_help_teaches() -> None:
    shown = run("--help")
    for words in ("example", "human or llm:<model>", "rag-sourcebias[detector]", "--group"):
        assert words in shown
