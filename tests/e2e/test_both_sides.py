"""What the pages show in a terminal and what they show in Python give the same numbers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from command_line import inside
from small_data import PLACE, write_place

import rag_sourcebias as rsb
from rag_sourcebias.neural import SentenceEncoder
from rag_sourcebias.report.render import Report
from rag_sourcebias.retrieval import BM25Spec

NAMES = {"data", "environment", "settings"}  # tables of what was read, where and when
APP = """
def search(question):
    return [f"{source}{question.removeprefix('number')}" for source in ("l", "h")]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("both")
    write_place(root)
    (root / PLACE / "my_app.py").write_text(APP, encoding="utf-8")
    return root / PLACE


def search(question: str) -> list[str]:
    return [f"{source}{question.removeprefix('number')}" for source in ("l", "h")]


def _run() -> rsb.SkewReport:
    return rsb.audit("one.run", {"qrels": "qrels.txt"}, tags="tags.tsv")


def _styles() -> rsb.StyleReport:
    texts = rsb.read_styled_texts("styles.jsonl")
    return rsb.audit_style(texts, bm25=BM25Spec(), config=rsb.StyleConfig(resamples=100))


def _answers() -> rsb.AnswerBiasReport:
    answers, encoder = rsb.read_answer_texts("answers.csv"), SentenceEncoder("../model")
    return rsb.audit_answers(answers, [encoder], config=rsb.AnswerConfig(resamples=100))


# The line of a terminal, and the same in Python, as the pages show both.
TWINS: dict[str, tuple[str, Callable[[], Report]]] = {
    "a folder": ("audit source plain --retriever bm25", lambda: rsb.audit("bm25", "plain")),
    "a folder of pairs": ("audit source pairs", lambda: rsb.audit("pairs")),
    "a finished run": ("audit source --run one.run --qrels qrels.txt --tags tags.tsv", _run),
    "an application": (
        "audit source plain --retriever app:my_app:search",
        lambda: rsb.audit({"app:my_app:search": search}, "plain"),
    ),
    "the sample": ("audit source --sample", lambda: rsb.audit("bm25", rsb.load_sample())),
    "judged scores": (
        "interval grouped.csv --id question --id system --group system --cluster question",
        lambda: rsb.interval(
            "grouped.csv", id=["question", "system"], group="system", cluster="question"
        ),
    ),
    "answers": ("audit answers answers.csv --encoder ../model --resamples 100", _answers),
    "causes": (
        "explain pairs --encoder ../model",
        lambda: rsb.explain_sources(rsb.read_beir("pairs"), encoder=SentenceEncoder("../model")),
    ),
    "pairs": (
        "check-pairs pairs --retriever bm25",
        lambda: rsb.check_paired_corpus(rsb.read_beir("pairs"), retrievers=[BM25Spec()]),
    ),
    "styles": ("audit style styles.jsonl --resamples 100 --texts", _styles),
}


def differing(one: Report, other: Report) -> list[str]:
    """Return the tables that differ in more than in how the data are called."""
    assert list(one.frames) == list(other.frames)
    return [
        name
        for name in one.frames.keys() - NAMES
        if not _figures(one, name).equals(_figures(other, name))
    ]


def _figures(report: Report, table: str) -> pd.DataFrame:
    return report.table(table).to_pandas().drop(columns=["inputs", "model"], errors="ignore")


@pytest.mark.parametrize("name", TWINS)
def test_both_sides_give_the_same_tables(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    line, in_python = TWINS[name]
    out = tmp_path / "out"
    code, _, told = inside(*line.split(), "--report", str(out), cwd=folder)
    assert code == 0, told
    monkeypatch.chdir(folder)
    terminal, python = rsb.read_report(out / "report.json"), in_python()
    assert differing(terminal, python) == []


def test_another_cutoff_is_seen(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    first, other = (rsb.audit("bm25", "plain", cutoffs=[k]) for k in (1, 3))
    assert "delta" in differing(first, other)
