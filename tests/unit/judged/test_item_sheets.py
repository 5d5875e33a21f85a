"""Sheets of drawn items: what people see, and what is checked when they return."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rag_sourcebias.core.errors import DataError
from rag_sourcebias.io.files import read_jsonl
from rag_sourcebias.judged.audit import judge_items_with_intervals
from rag_sourcebias.judged.files import join_judged, read_judged_items
from rag_sourcebias.judged.sheets import read_shown_texts, write_item_sheet
from rag_sourcebias.stats.means import mean_interval
from rag_sourcebias.stats.strata import draw_items

HEAD = ("id", "question", "system", "human", "judge", "other")


def answers(folder: Path, *, labelled: int = 0, shift: float = 0.0) -> dict[str, int]:
    """Write 300 judged answers and return what people would say of them."""
    rng = np.random.default_rng(1)
    truth = {f"-{k}": int(rng.random() < 0.8) for k in range(300)}
    rows = []
    for k, (name, y) in enumerate(truth.items()):
        judge = "" if k < 3 else y if rng.random() < 0.9 else 1 - y
        judge = judge if not shift or k != 20 else 1 - int(judge)
        human = y if k < labelled else ""
        rows.append((name, f"=who {k // 2}?", "ab"[k % 2], human, judge, f"{rng.random():.3f}"))
    with (folder / "answers.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([HEAD, *rows])
    return truth


def sheet(folder: Path, n: int = 40, name: str = "sheet.csv", **columns: str) -> Path:
    path, source = folder / name, folder / "answers.csv"
    items = read_judged_items(source, require_human=False, **columns)
    group = "system" if "system" in source.read_text(encoding="utf-8") else None
    texts = read_shown_texts(source, id=None, human=None, judge=None, group=group)
    write_item_sheet(path, texts, draw_items(items, n, rng=2), human=items.human, rng=3)
    return path


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def write(path: Path, rows: list[dict[str, str]]) -> None:
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys(), delimiter=";")
        writer.writeheader()
        writer.writerows(rows)


def filled(path: Path, truth: dict[str, int]) -> list[dict[str, str]]:
    rows = rows_of(path)
    for row in rows:
        row["human"] = str(truth[row["id"].lstrip("'")])
    write(path, rows)
    return rows


def test_people_see_neither_judge_nor_system_nor_scores(tmp_path: Path) -> None:
    answers(tmp_path)
    rows = rows_of(sheet(tmp_path))
    assert list(rows[0]) == ["id", "question", "human", "stratum", "stratum_size", "probability"]
    assert len(rows) == 40
    assert {row["human"] for row in rows} == {""}
    assert all(row["question"].startswith("'=who") for row in rows)  # no formula
    ids = [int(row["id"].lstrip("'-")) for row in rows]
    assert ids != sorted(ids)


def test_the_design_is_used_when_the_sheet_comes_back(tmp_path: Path) -> None:
    truth = answers(tmp_path)
    path = sheet(tmp_path)
    rows = filled(path, truth)
    items = join_judged(path, tmp_path / "answers.csv")
    assert items.n_labeled == 40
    assert len(set(items.strata)) == 3
    labeled = items.labeled
    strata = np.array(items.strata)
    told = {row["stratum"]: float(row["stratum_size"]) for row in rows}
    assert {name: (strata == name).sum() for name in told} == told
    report = judge_items_with_intervals(items)
    judge = np.where(items.judged, items.judge, np.nanmean(items.judge))
    parts = (items.human[labeled], judge[labeled], judge[~labeled])
    stratified = mean_interval(
        *parts, strata=strata[labeled].tolist(), strata_unlabeled=strata[~labeled].tolist()
    )
    found = report.means[0].interval
    assert (found.lower, found.upper) == (stratified.lower, stratified.upper)
    plain = mean_interval(*parts)
    assert abs(found.estimate - plain.estimate) > 1e-4
    # the strata are the judge's: labels alone are as many drawn at random
    alone = report.means[0].labels_alone
    within = mean_interval(
        *parts,
        method="labels",
        strata=strata[labeled].tolist(),
        strata_unlabeled=strata[~labeled].tolist(),
    )
    assert alone.half_width > 1.2 * within.half_width
    assert abs(alone.estimate - within.estimate) <= 1 / 40
    assert report.means[0].labels_saved > 0
    names = tuple("ab"[i % 2] for i in range(len(items)))
    other = judge_items_with_intervals(replace(items, strata=names)).means[0].labels_alone
    of = np.array(names)
    by_names = mean_interval(
        *parts,
        method="labels",
        strata=of[labeled].tolist(),
        strata_unlabeled=of[~labeled].tolist(),
    )
    assert (other.lower, other.upper) == (by_names.lower, by_names.upper)


def test_labels_there_are_stand_on_the_sheet(tmp_path: Path) -> None:
    truth = answers(tmp_path, labelled=12)
    rows = rows_of(sheet(tmp_path))
    known = {row["id"].lstrip("'"): row["human"] for row in rows if row["human"]}
    assert known == {f"-{k}": str(truth[f"-{k}"]) for k in range(12)}


def test_json_lines_do_as_well(tmp_path: Path) -> None:
    truth = answers(tmp_path)
    path = sheet(tmp_path, name="sheet.jsonl")
    rows = [row | {"human": truth[row["id"]]} for _, row in read_jsonl(path)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    assert len(set(join_judged(path, tmp_path / "answers.csv").strata)) == 3


def test_groups_and_clusters_must_be_those_of_the_draw(tmp_path: Path) -> None:
    truth = answers(tmp_path)
    path = sheet(tmp_path, 60, group="system", cluster="question")
    filled(path, truth)
    source = tmp_path / "answers.csv"
    items = join_judged(path, source, group="system", cluster="question")
    whole = np.unique([items.clusters[i] for i in np.flatnonzero(items.labeled)])
    assert len(whole) == 30
    assert len(judge_items_with_intervals(items).comparisons) == 1
    with pytest.raises(DataError, match="groups and clusters it was drawn from"):
        join_judged(path, source, group="system")


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda rows: rows[:-1], "by .* its stratum has .* on the sheet .*use all rows"),
        (lambda rows: [row | {"probability": "0.5"} for row in rows], "drawn with probability 0.5"),
        (lambda rows: [row | {"stratum_size": "9"} for row in rows], "from a stratum of 9; by"),
        (
            lambda rows: [row | {"stratum": "s1/2"} for row in rows],
            "lacks rows of its draw|drawn with probability",
        ),
        (lambda rows: [row | {"stratum": "high"} for row in rows], "stratum 'high' is none of a"),
        (
            lambda rows: [{k: v for k, v in row.items() if k != "stratum"} for row in rows],
            "lacks stratum; send back all columns",
        ),
        (
            lambda rows: [row | {"human": ""} if i == 5 else row for i, row in enumerate(rows)],
            "sheet.csv:7: 1 of 40 drawn items have no label",
        ),
    ],
)
def test_what_does_not_fit_the_stored_design(tmp_path: Path, spoil, words: str) -> None:
    truth = answers(tmp_path)
    path = sheet(tmp_path)
    rows = filled(path, truth)
    join_judged(path, tmp_path / "answers.csv")
    write(path, spoil(rows))
    with pytest.raises(DataError, match=words):
        join_judged(path, tmp_path / "answers.csv")


def test_other_judge_values_are_another_pool(tmp_path: Path) -> None:
    truth = answers(tmp_path)
    path = sheet(tmp_path)
    filled(path, truth)
    answers(tmp_path, shift=1.0)
    with pytest.raises(DataError, match="was drawn with probability"):
        join_judged(path, tmp_path / "answers.csv")


def test_strata_beside_those_of_the_sheet(tmp_path: Path) -> None:
    truth = answers(tmp_path)
    path = sheet(tmp_path)
    filled(path, truth)
    with pytest.raises(DataError, match="leave those out"):
        join_judged(path, tmp_path / "answers.csv", stratum="system")


def test_sheets_that_are_not_written(tmp_path: Path) -> None:
    answers(tmp_path)
    sheet(tmp_path)
    with pytest.raises(DataError, match="exists and may hold grades"):
        sheet(tmp_path)
    with pytest.raises(DataError, match=r"\.csv or \.jsonl"):
        sheet(tmp_path, name="sheet.xlsx")
    source = tmp_path / "answers.csv"
    source.write_text("who,judge\nq,1\nr,0\n", encoding="utf-8")
    with pytest.raises(DataError, match="labels can only be brought back by id"):
        read_shown_texts(source, id=None, human=None, judge=None, group=None)
    rows = "".join(f"i{k},{k},none\n" for k in range(20))
    source.write_text(f"id,judge,probability\n{rows}", encoding="utf-8")
    with pytest.raises(DataError, match="has a column 'probability', as sheets have"):
        sheet(tmp_path, 10, name="other.csv")


def test_verdicts_in_words_are_hidden_by_name(tmp_path: Path) -> None:
    source = tmp_path / "answers.csv"
    source.write_text("id,answer,m1,m2,m3\na,x,yes,no,no\nb,y,no,no,yes\n", encoding="utf-8")
    asked = {"id": None, "human": None, "group": None}
    assert read_shown_texts(source, judge=["m1", "m2"], **asked).names == ("id", "answer", "m3")
    assert read_shown_texts(source, judge="m3", **asked).names == ("id", "answer", "m1", "m2")
