"""``audit answers`` as a user runs it: real files, real output, and every bad input explained."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from answer_tables import HEAD, WORDS, answer_rows
from command_line import refused, succeed, write_csv

from rag_sourcebias.intake.answers import read_answer_texts

pytestmark = pytest.mark.frameworks

GUIDE = Path(__file__).parents[2] / "docs" / "answers.md"

AUDIT = ("audit", "answers", "answers.csv", "--resamples", "200", "--no-text-statistics")
SCORED = (*AUDIT, "--judge", "sim")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_csv(tmp_path / "answers.csv", HEAD, answer_rows(60, np.random.default_rng(1)))
    write_csv(tmp_path / "other.csv", HEAD, answer_rows(60, np.random.default_rng(2)))
    return tmp_path


def report_of(folder: Path) -> dict:
    found: dict = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    return found


def test_a_score_that_rewards_short_answers(folder: Path) -> None:
    shown = succeed(*SCORED, "--judge", "noise", "--report", "out", cwd=folder)
    assert "short" in shown
    assert "sim" in shown
    found = report_of(folder / "out")
    assert found["kind"] == "answers"
    assert found["name"] == "answers.csv"
    sim, noise = found["scorers"]
    means = dict(zip(WORDS, sim["raw"]["spread"]["means"], strict=True))
    assert means["short"] > means["middle"] > means["long"]
    assert sim["raw"]["unfairness"]["lower"] > 0.05
    assert sim["spread_cut"] > 0.5
    assert sim["adjusted"]["auc"]["estimate"] > sim["raw"]["auc"]["estimate"]
    assert noise["raw"]["auc"]["lower"] < 0.5 < noise["raw"]["auc"]["upper"]
    for name in ("report.html", "report.md"):
        assert "short" in (folder / "out" / name).read_text(encoding="utf-8")
    again = succeed("start", "out/report.json", "--report", "again", cwd=folder)
    assert again == shown
    assert report_of(folder / "again") == found


def test_options_reach_the_audit(folder: Path) -> None:
    succeed(
        *SCORED, "--fit-on", "other.csv", "--threshold", "0.6", "--report", "out",
        "--confidence-level", "0.9", cwd=folder,
    )  # fmt: skip
    found = report_of(folder / "out")
    (scorer,) = found["scorers"]
    assert scorer["raw"]["threshold"] == 0.6
    assert "other.csv" in scorer["adjustment"]
    assert scorer["raw"]["unfairness"]["confidence_level"] == 0.9
    succeed(*SCORED, "--no-adjust", "--report", "plain", cwd=folder)
    (scorer,) = report_of(folder / "plain")["scorers"]
    assert scorer["adjusted"] is None
    assert len(scorer["adjusted_scores"]) == 0


def test_questions_that_share_a_topic(folder: Path) -> None:
    questions = dict.fromkeys(row[0] for row in answer_rows(60, np.random.default_rng(1)))
    rows = [[question, f"topic {i % 12}"] for i, question in enumerate(questions)]
    write_csv(folder / "topics.csv", ("question", "cluster"), rows)
    named = ("--cluster-file", "topics.csv", "--query", "question")
    succeed(*SCORED, *named, "--report", "out", cwd=folder)
    found = report_of(folder / "out")
    assert found["scorers"][0]["raw"]["unfairness"]["n_labeled"] == 10  # where all are right
    assert "12 clusters" in found["warnings"][0]
    assert "--query question" in found["inputs"]
    write_csv(folder / "topics.csv", ("question", "cluster"), rows[1:])
    assert "1 queries have a cluster or answers, not both" in refused(*SCORED, *named, cwd=folder)
    assert "columns of --cluster-file" in refused(*SCORED, *named[2:], cwd=folder)


def test_one_file_per_system(folder: Path) -> None:
    head = ("user_input", "response", "reference", "correct", "sim")
    for system in WORDS:
        mine = [
            [r[0], *r[2:6]] for r in answer_rows(60, np.random.default_rng(1)) if r[1] == system
        ]
        write_csv(folder / f"{system}.csv", head, mine)
    files = [f"{system}.csv" for system in WORDS]
    options = ("--judge", "sim", "--resamples", "200", "--no-text-statistics")
    shown = succeed("audit", "answers", *files, *options, "--report", "out", cwd=folder)
    assert all(system in shown for system in WORDS)
    one = succeed(*SCORED, "--report", "one", cwd=folder)
    assert one
    both = [report_of(folder / name)["scorers"][0]["raw"]["spread"] for name in ("out", "one")]
    assert both[0]["means"] == pytest.approx(both[1]["means"])


def test_empty_answers_and_missing_scores_are_counted(folder: Path) -> None:
    some = answer_rows(60, np.random.default_rng(1))
    some[0][2], some[1][5], some[2][4] = "", "", ""
    write_csv(folder / "answers.csv", HEAD, some)
    succeed(*SCORED, "--report", "out", cwd=folder)
    found = report_of(folder / "out")
    short, middle, long = found["systems"]
    assert (short["n_empty"], middle["n_empty"], long["n_empty"]) == (1, 0, 0)
    assert long["n_correct"] + long["n_wrong"] == 59
    assert found["scorers"][0]["scores"][1] is None


def test_a_model_that_is_not_there_is_named(folder: Path) -> None:
    encoder = ("--encoder", "./none", "--cache", "cache")
    assert "no model folder './none'" in refused(
        "audit", "answers", "answers.csv", *encoder, cwd=folder
    )


def test_the_table_in_the_docs_is_read(tmp_path: Path) -> None:
    text = GUIDE.read_text(encoding="utf-8")
    (example,) = re.findall(r"```\n(question_id.*?)```", text, flags=re.DOTALL)
    (tmp_path / "answers.csv").write_text(example, encoding="utf-8")
    texts = read_answer_texts(tmp_path / "answers.csv")
    assert texts.systems == ("gpt-4", "mistral", "gpt-4")
    assert texts.answers == ("It was written by Ann, in 1949.", "Bea", "")
    np.testing.assert_array_equal(texts.correct, [1, 0, np.nan])


def test_an_encoder_scores_answers(folder: Path) -> None:
    write_csv(folder / "answers.csv", HEAD, answer_rows(30, np.random.default_rng(1)))
    options = ("--encoder", "all-MiniLM-L6-v2,max_length=32", "--cache", "cache")
    succeed(*AUDIT, *options, "--report", "out", cwd=folder)
    (scorer,) = report_of(folder / "out")["scorers"]
    assert "32 tokens" in scorer["settings"].values()
    assert -1 <= min(scorer["scores"]) < max(scorer["scores"]) <= 1
