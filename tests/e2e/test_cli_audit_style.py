"""``audit style`` as a user runs it: real files, real output, and every bad input explained."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from command_line import refused, succeed

pytestmark = pytest.mark.frameworks

GUIDE = Path(__file__).parents[2] / "docs" / "styles.md"

AUDIT = ("audit", "style", "styles.jsonl", "--cache", "cache", "--resamples", "200")
SHORT = ("--no-text-statistics", "--no-index")
TOPICS = (
    "bridges over the Rhine", "cats and their whiskers", "the price of olive oil",
    "moons of Jupiter", "sourdough at home", "rules of snooker", "trams in Zürich",
    "why leaves turn red",
)  # fmt: skip


def record(i: int) -> dict[str, object]:
    topic = f"{TOPICS[i % len(TOPICS)]} number {i}"
    return {
        "query_id": f"q{i}",
        "query": f"what about {topic}?",
        "query_styles": {"loud": f"TELL everyone, wow: {topic}!"},
        "human": f"What about {topic}? Here is a calm text.",
        "doc_styles": {
            "löud 🎉": f"Wow! wow! tell everyone: {topic}!",
            "far": "Nothing here has to do with what was asked, in any way.",
        },
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path / "styles.jsonl", [record(i) for i in range(30)])
    return tmp_path


def write(path: Path, records: list[dict[str, object]]) -> None:
    text = "".join(json.dumps(r, ensure_ascii=False) + "\n" for r in records)
    path.write_text(text, encoding="utf-8")


def report_of(folder: Path) -> dict:
    found: dict = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    return found


def test_queries_that_share_a_topic(folder: Path) -> None:
    rows = [f"q{i},topic {i % 8}\n" for i in range(30)]
    (folder / "topics.csv").write_text("query_id,cluster\n" + "".join(rows), encoding="utf-8")
    succeed(*AUDIT, *SHORT, "--cluster-file", "topics.csv", "--report", "out", cwd=folder)
    found = json.loads((folder / "out" / "report.json").read_text(encoding="utf-8"))
    assert found["systems"][0]["rows"][0]["average_ranks"][0]["n_labeled"] == 8


def test_a_lexical_audit_gives_table_and_reports(folder: Path) -> None:
    shown = succeed(*AUDIT, "--no-text-statistics", "--report", "out", cwd=folder)
    assert "löud 🎉" in shown
    assert "Unfairness" in shown
    found = report_of(folder / "out")
    assert found["kind"] == "style"
    assert found["data"]["n_queries"] == 30
    assert found["data"]["doc_styles"] == ["human", "löud 🎉", "far"]
    (system,) = found["systems"]
    average = np.array(system["ranks"]).mean(axis=0)
    np.testing.assert_allclose(average.sum(axis=1), 6)
    assert average[0, 2] == 3  # no word of the query stands there
    assert average[1, 1] < average[0, 1]  # a loud query raises loud texts
    assert {row["measure"] for row in system["quality"]} >= {"NDCG@1", "Recall@5"}
    for name in ("report.html", "report.md"):
        assert "löud 🎉" in (folder / "out" / name).read_text(encoding="utf-8")
    again = succeed("start", "out/report.json", "--report", "again", cwd=folder)
    assert again == shown
    assert report_of(folder / "again") == found


def test_missing_versions_are_dropped_and_counted(folder: Path) -> None:
    records = [record(i) for i in range(30)]
    records[3]["doc_styles"] = {"far": "Nothing"}
    records[5]["query_styles"] = {}
    write(folder / "styles.jsonl", records)
    succeed(*AUDIT, *SHORT, "--report", "out", cwd=folder)
    data = report_of(folder / "out")["data"]
    assert (data["n_queries"], data["dropped"]) == (28, ["q3", "q5"])


def test_distractors_enter_the_index_but_copies_do_not(folder: Path) -> None:
    rows = [f"x{i}\tAnother text about {t}" for i, t in enumerate(TOPICS)]
    rows += [f"copy\t{record(4)['human']}", "q7@llm:x\tA rewrite of a document audited"]
    (folder / "others.tsv").write_text("\n".join(["id\ttext", *rows]), encoding="utf-8")
    arguments = (*AUDIT, "--no-text-statistics", "--distractors", "others.tsv", "--report", "out")
    succeed(*arguments, "--cutoffs", "2,4", cwd=folder)
    found = report_of(folder / "out")
    assert found["data"]["n_distractors"] == len(TOPICS)
    measures = {row["measure"] for row in found["systems"][0]["quality"]}
    assert measures == {"NDCG@2", "NDCG@4", "Recall@2", "Recall@4"}


def test_a_path_that_does_not_do_is_named(folder: Path) -> None:
    given = ("audit", "style", "styles.jsonl", "--cache", "cache", *SHORT)
    assert "no model folder" in refused(*given, "--encoder", "./none", cwd=folder)
    told = refused(*given, "--report", "styles.jsonl/a/b", cwd=folder)
    assert "styles.jsonl is a file" in told


def test_the_record_in_the_docs_is_read(tmp_path: Path) -> None:
    (example,) = re.findall(
        r"```json\n(.*?)```", GUIDE.read_text(encoding="utf-8"), flags=re.DOTALL
    )
    write(tmp_path / "styles.jsonl", [json.loads(example)])
    succeed(*AUDIT, *SHORT, "--report", "out", cwd=tmp_path)
    data = report_of(tmp_path / "out")["data"]
    assert data["query_styles"] == ["original", "formal"]
    assert data["doc_styles"] == ["human", "formal"]


def test_the_bundled_sample(tmp_path: Path) -> None:
    options = ("--no-text-statistics", "--resamples", "100", "--cutoffs", "5")
    succeed("audit", "style", "--sample", *options, "--report", "out", cwd=tmp_path)
    data = report_of(tmp_path / "out")["data"]
    assert (data["n_queries"], data["n_distractors"]) == (56, 104)
    assert len(data["doc_styles"]) == len(data["query_styles"]) == 10
    assert "CC BY 4.0" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


def test_an_encoder_beside_bm25(folder: Path) -> None:
    write(folder / "styles.jsonl", [record(i) for i in range(12)])
    encoder = ("--encoder", "all-MiniLM-L6-v2,max_length=32", "--no-index", "--report", "out")
    shown = succeed(*AUDIT, *encoder, cwd=folder)
    assert "bm25" in shown
    found = report_of(folder / "out")
    settings = {system["name"]: system["settings"] for system in found["systems"]}
    assert "32 tokens" in settings["all-MiniLM-L6-v2,max_length=32"].values()
    assert {row["name"] for row in found["document_statistics"]} >= {"words", "ROUGE-L"}
    assert (folder / "cache" / "vectors.sqlite").exists()
