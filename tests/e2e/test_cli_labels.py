"""Labels planned, handed out on a sheet and turned into an interval."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from command_line import read_csv, refused, succeed, write_csv

from rag_sourcebias.infer.judged import mean_interval

QUERIES, DOCS = 60, 10
POOL = ("--run", "a.run", "--labels", "judge.tsv")
MANIFEST = "sheet.csv.manifest.json"
TEXTS = ("--queries", "queries.jsonl", "--documents", "docs.jsonl")


@pytest.fixture
def pool(tmp_path: Path) -> Path:
    """Write 60 queries × 10 documents with human grades, a judge's labels of them, and texts."""
    rng = np.random.default_rng(2)
    run, human, labels, docs = [], [], ["query_id\tdoc_id\tp0\tp1\tp2"], []
    for q in range(QUERIES):
        level = rng.random()
        for d in range(DOCS):
            grade = int(rng.binomial(2, 0.2 + 0.6 * level))
            probs = np.full(3, 0.1)
            probs[min(2, grade + int(rng.random() < 0.3))] = 0.8
            run.append(f"q{q} Q0 q{q}d{d} {d + 1} {100 - d} a")
            human.append(f"q{q} 0 q{q}d{d} {grade}")
            labels.append(f"q{q}\tq{q}d{d}\t" + "\t".join(f"{p:.1f}" for p in probs))
            docs.append(json.dumps({"_id": f"q{q}d{d}", "text": f'=text; "{d}",\nü of {q}'}))
    for name, lines in (("a.run", run), ("all.qrels", human), ("judge.tsv", labels)):
        (tmp_path / name).write_text("\n".join(lines), encoding="utf-8")
    (tmp_path / "docs.jsonl").write_text("\n".join(docs), encoding="utf-8")
    (tmp_path / "queries.jsonl").write_text(
        "\n".join(json.dumps({"_id": f"q{q}", "text": f"query {q}"}) for q in range(QUERIES)),
        encoding="utf-8",
    )
    return tmp_path


def truth(folder: Path) -> float:
    """Mean DCG@10 of all human grades."""
    grades = [int(line.split()[3]) for line in (folder / "all.qrels").read_text().splitlines()]
    gains = 2.0 ** np.array(grades).reshape(QUERIES, DOCS) - 1
    return float((gains / np.log2(np.arange(2, DOCS + 2))).sum(axis=1).mean())


def fill(folder: Path, sheet: str, filled: str, *, grade: str | None = None) -> None:
    """Grade a sheet as people did, and save it as spreadsheets do."""
    known = {}
    for line in (folder / "all.qrels").read_text(encoding="utf-8").splitlines():
        query, _, doc, value = line.split()
        known[f"query {query!r}, document {doc!r}"] = value
    manifest = json.loads((folder / f"{sheet}.manifest.json").read_text(encoding="utf-8"))
    name_of = {row["row_id"]: row["name"] for row in manifest["rows"]}
    rows = read_csv(folder / sheet)
    with (folder / filled).open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys(), delimiter=";")
        writer.writeheader()
        for row in sorted(rows, key=lambda r: r["text"]):
            row["label"] = known[name_of[row["row_id"]]] if grade is None else grade
            writer.writerow(row)


def interval_of(folder: Path, sheet: str, manifest: str, *args: str) -> dict:
    text = succeed(
        *("interval", sheet, "--manifest", manifest, *POOL, "--json", "-", *args),
        cwd=folder,
    )
    return json.loads(text)


def test_a_sheet_goes_out_comes_back_and_gives_an_interval(pool: Path) -> None:
    succeed("labels", *POOL, "-n", "150", *TEXTS, "-o", "sheet.csv", cwd=pool)
    rows = read_csv(pool / "sheet.csv")
    assert len(rows) == 150
    assert list(rows[0]) == ["row_id", "query", "text", "label"]
    fill(pool, "sheet.csv", "filled.csv")
    found = interval_of(pool, "filled.csv", MANIFEST, "--target", "pool")
    assert found["lower"] < truth(pool) < found["upper"]
    assert (found["n_labeled"], found["n_unlabeled"]) == (150, 450)
    line = succeed("interval", "filled.csv", "--manifest", MANIFEST, *POOL, cwd=pool)
    assert line.startswith("DCG@10 ")
    assert "• labels are human gains without error" in line


def test_documents_judged_already_are_not_asked_for_again(pool: Path) -> None:
    lines = (pool / "all.qrels").read_text(encoding="utf-8").splitlines()
    (pool / "pilot.qrels").write_text("\n".join(lines[:100]), encoding="utf-8")
    asked = ("labels", *POOL, *TEXTS, "--qrels", "pilot.qrels", "-o", "sheet.csv")
    succeed(*asked, "-n", "250", cwd=pool)
    rows = read_csv(pool / "sheet.csv")
    assert len(rows) == 150
    assert not {f"query {q}" for q in range(10)} & {row["query"] for row in rows}
    fill(pool, "sheet.csv", "filled.csv")
    found = interval_of(pool, "filled.csv", MANIFEST, "--target", "pool")
    assert found["n_labeled"] == 250
    assert found["lower"] < truth(pool) < found["upper"]


def test_a_plan_compares_documents_and_queries_without_a_judge(pool: Path) -> None:
    text = succeed("labels", *POOL, "--half-width", "1", cwd=pool)
    assert text.startswith("DCG@10: ")
    for words in (
        "documents over 60 queries for ±",
        "whole queries without the judge need",
        "a guess",
    ):
        assert words in text
    fewer = succeed("labels", *POOL, "-n", "150", "--measure", "P@5", cwd=pool)
    assert fewer.startswith("P@5: 150 documents")


def test_a_plan_for_items(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    truths = rng.random(500) < 0.5
    rows = [(k, int(y) if k < 50 else "", y + rng.normal(0, 0.3)) for k, y in enumerate(truths)]
    write_csv(tmp_path / "items.csv", ("id", "human", "judge"), rows)
    text = succeed("labels", "items.csv", "--half-width", "0.06", cwd=tmp_path)
    assert "labelled items with the judge" in text
    assert "reached in about 80% of draws like this" in text
    assert "% of the labels saved" in text
    assert "cluster" not in text
    rows = [(*row, row[0] // 2) for row in rows]
    write_csv(tmp_path / "items.csv", ("id", "human", "judge", "cluster"), rows)
    text = succeed("labels", "items.csv", "--half-width", "0.06", cwd=tmp_path)
    assert "items of one cluster depend on each other: more are needed" in text


def test_drawn_items_come_back(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    truths = {f"i{k}": int(rng.random() < 0.8) for k in range(400)}
    rows = [(name, "", y if rng.random() < 0.9 else 1 - y) for name, y in truths.items()]
    write_csv(tmp_path / "answers.csv", ("id", "human", "judge"), rows)
    succeed("labels", "answers.csv", "-n", "40", "--output", "sheet.csv", cwd=tmp_path)
    sheet = read_csv(tmp_path / "sheet.csv")
    assert len(sheet) == 40
    assert list(sheet[0]) == ["row_id", "id", "label"]  # there is nothing else to see
    filled = [(row["id"], truths[row["id"]]) for row in sheet]
    cells = [(row["row_id"], row["id"], truths[row["id"]]) for row in sheet]
    write_csv(tmp_path / "filled.csv", ("row_id", "id", "label"), cells)
    asked = ("interval", "--human-file", "filled.csv", "--judge-file", "answers.csv")
    asked += ("--manifest", "sheet.csv.manifest.json")
    found = json.loads(succeed(*asked, "--json", "-", cwd=tmp_path))["means"][0]["interval"]
    labels, judge = dict(filled), {name: value for name, _, value in rows}
    known = [name for name in truths if name in labels]
    wanted = mean_interval(
        [labels[name] for name in known],
        [judge[name] for name in known],
        [judge[name] for name in truths if name not in labels],
    )
    assert found["n_labeled"] == 40
    assert (found["lower"], found["upper"]) == pytest.approx((wanted.lower, wanted.upper))


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("labels", *POOL, "-n", "90", *TEXTS, "-o", "s.xlsx"), (".csv or .jsonl",)),
        (
            ("labels", *POOL, "-n", "90", "--queries", "docs.jsonl", *TEXTS[2:], "-o", "s.csv"),
            ("ids have no text in --queries", "'q0'"),
        ),
        (("interval", "sheet.csv", *POOL), ("90 of 90 rows have no grade", "sheet.csv: 90")),
        (("interval", "nine.csv", "--manifest", MANIFEST, *POOL), ("'9'", "0 … 2")),
    ],
)
def test_bad_input_is_named_with_a_remedy(
    pool: Path, args: tuple[str, ...], words: tuple[str, ...]
) -> None:
    if args[0] == "interval":
        succeed("labels", *POOL, "-n", "90", *TEXTS, "-o", "sheet.csv", cwd=pool)
        fill(pool, "sheet.csv", "nine.csv", grade="9")
    message = refused(*args, cwd=pool)
    for word in words:
        assert word in message
