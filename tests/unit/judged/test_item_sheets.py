"""Items drawn to be labelled, and sheets of them: what people see, and what comes back."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from command_line import succeed

from rag_sourcebias.core.completions import JudgedItems
from rag_sourcebias.core.errors import DataError, InsufficientDataError
from rag_sourcebias.judged.sheets import draw_items, read_shown_texts

HEAD = ("id", "question", "answer", "system", "human", "judge", "other")


def items(judge, **columns) -> JudgedItems:
    columns.setdefault("human", np.full(len(judge), np.nan))
    return JudgedItems(ids=tuple(map(str, range(len(judge)))), judge=np.asarray(judge), **columns)


def test_every_item_has_the_same_chance() -> None:
    rng = np.random.default_rng(3)
    judge = np.where(rng.random(90) < 0.2, 0.0, 1.0)
    judge[:4] = np.nan
    taken = np.zeros(90)
    runs = 3000
    for _ in range(runs):
        rows = draw_items(items(judge), 20, rng=rng)
        assert len(rows) == 20
        taken[rows] += 1
    chance = 20 / 90
    assert np.all(np.abs(taken / runs - chance) < 4.5 * np.sqrt(chance * (1 - chance) / runs))


@pytest.mark.parametrize(("n", "drawn"), [(20, [10, 10]), (30, [20, 10]), (100, [80, 20])])
def test_groups_have_their_share_and_ten_at_least(n, drawn) -> None:
    judge = np.arange(500.0)
    names = tuple("ab"[i % 5 == 0] for i in range(500))
    rows = draw_items(items(judge, groups=names), n, rng=1)
    assert [sum(names[row] == name for row in rows) for name in "ab"] == drawn


def test_items_labelled_before_are_part_of_the_draw() -> None:
    rng = np.random.default_rng(4)
    judge = rng.normal(size=300)
    human = np.full(300, np.nan)
    before = rng.choice(300, 20, replace=False)
    human[before] = 1.0
    rows = draw_items(items(judge, human=human), 40, rng=5)
    assert len(rows) == 40
    assert np.isin(before, rows).all()
    assert not np.isin(before, draw_items(items(judge), 40, rng=5)).all()


def test_whole_clusters_are_drawn() -> None:
    questions = tuple(str(i // 3) for i in range(300))
    rows = draw_items(items(np.zeros(300), clusters=questions), 60, rng=0)
    assert np.bincount(rows // 3)[np.unique(rows // 3)].tolist() == [3] * 20


def test_draws_that_are_refused() -> None:
    many = items(np.arange(100.0))
    with pytest.raises(DataError, match="101 items to label, but only 100"):
        draw_items(many, 101, rng=0)
    with pytest.raises(InsufficientDataError, match="needs 10 items, about 10 items") as caught:
        draw_items(many, 9, rng=0)
    assert caught.value.n_needed == 10
    three = replace(many, groups=tuple("abc"[i % 3] for i in range(100)))
    with pytest.raises(InsufficientDataError, match="10 items of each of 3 groups, about 30"):
        draw_items(three, 29, rng=0)
    fives = replace(many, clusters=tuple(str(i // 5) for i in range(100)))
    with pytest.raises(InsufficientDataError, match="10 clusters, about 50 items"):
        draw_items(fives, 49, rng=0)
    done = replace(many, human=np.where(np.arange(100) < 30, 1.0, np.nan))
    with pytest.raises(DataError, match="but 30 are labelled already; ask for more"):
        draw_items(done, 30, rng=0)


def answers(folder: Path, *, labelled: int = 0) -> dict[str, int]:
    """Write 300 judged answers and return what people would say of them."""
    rng = np.random.default_rng(1)
    truth = {f"answer {k}": int(rng.random() < 0.8) for k in range(300)}
    rows = []
    for k, (text, y) in enumerate(truth.items()):
        judge = "" if k < 3 else y if rng.random() < 0.9 else 1 - y
        human, system = y if k < labelled else "", "ab"[k % 2]
        score = f"{rng.random():.3f}"
        rows.append((f"-{k}", f"=who {k // 2}?", text, system, human, judge, score))
    with (folder / "answers.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([HEAD, *rows])
    return truth


def sheet(folder: Path, n: int = 40, name: str = "sheet.csv") -> Path:
    args = ("labels", "answers.csv", "-n", str(n), "--output", name, "--group", "system")
    succeed(*args, cwd=folder)
    return folder / name


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def fill(path: Path, truth: dict[str, int]) -> None:
    """Label what the sheet shows, and save it as spreadsheets do."""
    rows = rows_of(path)
    for row in rows:
        row["label"] = "yes" if truth[row["answer"]] else "no"
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys(), delimiter=";")
        writer.writeheader()
        writer.writerows(reversed(rows))


def test_people_see_neither_judge_nor_system_nor_ids_nor_scores(tmp_path: Path) -> None:
    answers(tmp_path)
    rows = rows_of(sheet(tmp_path))
    assert list(rows[0]) == ["row_id", "question", "answer", "label"]
    assert len(rows) == 40
    assert {row["label"] for row in rows} == {""}
    assert all(row["question"].startswith("'=who") for row in rows)  # no formula
    numbers = [int(row["answer"].split()[1]) for row in rows]
    assert numbers != sorted(numbers)


def test_a_filled_sheet_gives_an_interval_with_the_labels_there_were(tmp_path: Path) -> None:
    truth = answers(tmp_path, labelled=12)
    path = sheet(tmp_path)
    assert len(rows_of(path)) == 28
    fill(path, truth)
    args = ("interval", "--judge-file", "answers.csv", "--group", "system", "--json", "-")
    found = json.loads(succeed(*args, "--human-file", "sheet.csv", cwd=tmp_path))
    assert sum(mean["interval"]["n_labeled"] for mean in found["means"]) == 40
    path.rename(tmp_path / "filled.csv")
    named = ("--human-file", "filled.csv", "--manifest", "sheet.csv.manifest.json")
    assert json.loads(succeed(*args, *named, cwd=tmp_path))["means"] == found["means"]


def test_sheets_that_are_not_written(tmp_path: Path) -> None:
    answers(tmp_path)
    source = tmp_path / "answers.csv"
    source.write_text("who,judge\nq,1\nr,0\n", encoding="utf-8")
    with pytest.raises(DataError, match="no column is recognised as id; its columns"):
        read_shown_texts(source, id=None, named=())
    rows = "".join(f"i{k},{k},none\n" for k in range(20))
    source.write_text(f"id,judge,human\n{rows}", encoding="utf-8")
    texts, blind = read_shown_texts(source, id=None, named=())
    assert (texts[3], blind) == ({"id": "i3"}, False)  # all there is to see
