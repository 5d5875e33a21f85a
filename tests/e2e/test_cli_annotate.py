"""Annotation from the command line: sheets out, filled in, un-blinded."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import inside, read_csv, succeed, write_csv

Fill = Callable[[int, str, str], dict[str, str]]  # row number, where human is, where LLM is


def sheet(folder: Path, *more: str) -> str:
    return succeed("annotate", *more, "-o", "sheets", cwd=folder)


def fill(folder: Path, name: str, answer: Fill, key: str = "sheets.key.json") -> Path:
    """Answer a sheet, knowing from the key which text is whose."""
    rows = {row["row_id"]: row for row in json.loads((folder / key).read_text())["rows"]}
    path = folder / "sheets" / f"{name}.csv"
    records = read_csv(path)
    for number, record in enumerate(records):
        order = rows[record["row_id"]]["order"]
        given = answer(number, "AB"[order.index(0)], "AB"[order.index(1)])
        for column in record:
            record[column] = given.get(column.split(":")[0], record[column])
    return write_csv(path, list(records[0]), [list(record.values()) for record in records])


def test_sheets_are_blind_and_the_key_stands_apart(tmp_path: Path) -> None:
    text = sheet(tmp_path, "--sample", "--annotators", "ann,bob", "--seed", "7")
    assert "50 of 160 pairs, 2 annotators, 2 questions" in text
    names = ("ann.csv", "ann.html", "bob.csv", "bob.html")
    assert sorted(p.name for p in (tmp_path / "sheets").iterdir()) == list(names)
    key = json.loads((tmp_path / "sheets.key.json").read_text())
    ids = [word for unit in key["units"] for word in (*unit["unit_id"].split(), *unit["sources"])]
    assert {"human", "llm:claude"} <= set(ids)
    for name in names:
        told = (tmp_path / "sheets" / name).read_text(encoding="utf-8-sig")
        assert "llm:" not in told
        assert "claude" not in told.lower()
        assert "crowdrag" not in told
        assert not [i for i in ids if i != "human" and re.search(rf"\b{re.escape(i)}\b", told)]
    page = (tmp_path / "sheets" / "ann.html").read_text(encoding="utf-8")
    items = json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])["items"]
    assert [list(item) for item in items] == [["row_id", "query", "text_a", "text_b"]] * 50
    # Each source stands first in half of the pairs, and the draw is random.
    orders = [row["order"] for row in key["rows"] if row["annotator"] == 0]
    assert orders.count([0, 1]) == 25
    units = [unit["unit_id"] for unit in key["units"]]
    again = ("annotate", "--sample", "--annotators", "2")
    for seed, same in (("7", True), ("8", False)):
        succeed(*again, "--seed", seed, "-o", f"s{seed}", cwd=tmp_path)
        drawn = json.loads((tmp_path / f"s{seed}.key.json").read_text())["units"]
        assert ([unit["unit_id"] for unit in drawn] == units) is same
    succeed(*again, "-o", "s7", "--overwrite", cwd=tmp_path)


def test_the_figures_of_table_3_come_back(tmp_path: Path) -> None:
    sheet(tmp_path, "--sample")
    # Relevance: always equal. Quality, by place of the pair: two of three for the human text in
    # pairs 0–9, all three for the rewrite in pairs 10–14, three different answers in 15–19.
    units = {
        row["row_id"]: row["unit"]
        for row in json.loads((tmp_path / "sheets.key.json").read_text())["rows"]
    }
    for annotator in range(3):
        name = f"annotator-{annotator + 1}"
        rows = [units[r["row_id"]] for r in read_csv(tmp_path / "sheets" / f"{name}.csv")]

        def answer(
            number: int, human: str, llm: str, *, a: int = annotator, places: list[int] = rows
        ) -> dict[str, str]:
            unit = places[number]
            quality = "equal"
            if unit < 10:
                quality = "equal" if a == 2 else human
            elif unit < 15:
                quality = llm
            elif unit < 20:
                quality = (human, llm, "equal")[a]
            return {"relevance": "equal", "quality": quality}

        fill(tmp_path, name, answer)
    text = succeed("annotate", "sheets", cwd=tmp_path)
    assert "50 pairs, 3 annotators" in text
    relevance, quality = text.split(" quality answer ")
    assert " equal 50 100.0% [92.9%, 100.0%] 100.0% " in relevance
    assert re.search(r" human 10 20\.0% \[.*?\] 0\.0% ", quality)
    assert re.search(r" llm:claude 5 10\.0% \[.*?\] 100\.0% ", quality)
    assert re.search(r" equal 30 60\.0% \[.*?\] 100\.0% ", quality)
    assert " no majority 5 10.0% – " in quality
    assert "relevance: undefined: all answers are the same category" in text
    data = json.loads(succeed("annotate", "sheets", "--json", "-", cwd=tmp_path))
    found = {q["question"]: q for q in data["questions"]}
    assert found["quality"]["n_answered"] == 150
    percent = found["quality"]["agreement"][0]
    # 35 pairs agree in all three pairs of annotators, 10 in one of three, 5 in none
    assert percent["value"] == pytest.approx((35 + 10 / 3) / 50)
    assert percent["interval"]["lower"] < percent["value"] < percent["interval"]["upper"]


def pairs(folder: Path, n: int = 6, *, judged: bool = True) -> Path:
    (folder / "corpus").mkdir(parents=True)
    for source in ("human", "gpt", "llama"):
        rows = [
            {"_id": f"d{i}", "title": f"T{source}", "text": f"{i} {source[0]}"} for i in range(n)
        ]
        file = folder / "corpus" / f"{source}.jsonl"
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    if judged:
        (folder / "qrels").mkdir()
        (folder / "qrels" / "dev.tsv").write_text(
            "query-id\tcorpus-id\tscore\nq0\td0\t2\nq0\td1\t1\nq1\td2\t0\n"
        )
        rows = [{"_id": f"q{i}", "text": f"query {i}"} for i in range(2)]
        (folder / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def test_only_relevant_pairs_with_their_query_and_without_queries_all_pairs(
    tmp_path: Path,
) -> None:
    pairs(tmp_path / "in")
    both = ("in", "--split", "dev", "--source", "llm:gpt")
    code, text, messages = inside("annotate", *both, "-o", "s1", cwd=tmp_path)
    assert code == 0, messages
    assert "2 of 2 pairs, 3 annotators, 2 questions" in text
    rows = read_csv(tmp_path / "s1" / "annotator-1.csv")
    assert {row["query"] for row in rows} == {"query 0"}
    # titles are left out: those of a rewrite could tell
    assert {frozenset((r["text_a"], r["text_b"])) for r in rows} == {
        frozenset((f"{i} h", f"{i} g")) for i in range(2)
    }
    pairs(tmp_path / "bare", judged=False)
    bare = ("annotate", "bare", "--source", "llm:llama", "-o", "s3")
    assert "6 of 6 pairs, 3 annotators, 1 question" in succeed(*bare, cwd=tmp_path)
    with (tmp_path / "s3" / "annotator-2.csv").open(encoding="utf-8-sig", newline="") as file:
        assert next(csv.reader(file))[:3] == ["row_id", "text_a", "text_b"]
