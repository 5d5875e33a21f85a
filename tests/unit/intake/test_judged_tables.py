"""Judged tables: every carrier × every kind of table, from Python and the terminal."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import inside, write_csv

import rag_sourcebias as rsb
from rag_sourcebias.core.errors import DataError

Columns = dict[str, list[Any]]
N, LABELED = 60, 30


@dataclass(frozen=True)
class World:
    """A kind of table: how people and judge write their values, and what is understood.

    ``human`` and ``judge`` get the true value, in 0 and 1, and the row.
    """

    human: Callable[[int, int], Any] = lambda y, _: y
    judge: Callable[[int, int], Any] = lambda y, _: y
    options: dict[str, Any] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    means: Callable[[int, int], float] | None = None  # what a judge's cell is read as
    note: str = ""
    refused: str = ""

    def columns(self) -> Columns:
        """Return the columns, with the question and system of each row beside the values."""
        return {
            "id": [f"q{i}" for i in range(N)],
            self.names.get("human", "human"): [
                self.human(y, i) if i < LABELED else None for i, y in enumerate(TRUE)
            ],
            self.names.get("judge", "judge"): [self.judge(y, i) for i, y in enumerate(TRUE)],
            "remark": ["a, b\nand c"] * N,
        }


random.seed(7)
TRUE = [int(random.random() < 0.7) for _ in range(N)]


BLANK = ("N/A", "nan", "-", None, "", "NA", "null", "None")


def wrong(y: int, i: int) -> int:
    """What a judge says that errs in every seventh row."""
    return 1 - y if i % 7 == 0 else y


WORLDS = {
    "0 and 1": World(judge=wrong),
    "grades to 5 beside 0 and 1": World(judge=lambda y, i: 1 + 3 * wrong(y, i) + i % 2),
    "words": World(human=lambda y, _: ("no", "yes")[y], judge=lambda y, i: bool(wrong(y, i))),
    "A, B, tie": World(
        human=lambda y, _: "BA"[y],
        judge=lambda y, i: "tie" if i % 9 == 0 else "BA"[wrong(y, i)],
        means=lambda y, i: 0.5 if i % 9 == 0 else wrong(y, i),
        note="Column judge: A counts as 1, B as 0 and a tie as ½.",
    ),
    "-1 where the judge failed": World(
        judge=lambda y, i: -1 if i % 10 == 3 else 0.25 + wrong(y, i) / 2,
        means=lambda y, i: np.nan if i % 10 == 3 else 0.25 + wrong(y, i) / 2,
        note="-1 lies apart from all other values in 6 rows and counts as missing",
    ),
    "99 where the judge failed": World(
        judge=lambda y, i: 99 if i == 3 else 1 + wrong(y, i) * 4 - i % 2,
        means=lambda y, i: np.nan if i == 3 else 1 + wrong(y, i) * 4 - i % 2,
        note="99 lies apart from all other values in 1 row",
    ),
    "-1 as a grade": World(
        judge=lambda y, i: wrong(y, i) - (i % 3 == 0), note="-1 counts as a value in"
    ),
    "reasoning and fences": World(
        judge=lambda y, i: f"<think>\n0 or 1?</think>\n```\n{wrong(y, i)}\n```", means=wrong
    ),
    "nothing in words": World(
        judge=lambda y, i: BLANK[i] if i < 8 else wrong(y, i),
        means=lambda y, i: np.nan if i < 8 else wrong(y, i),
    ),
    "names of others": World(
        names={"human": "Human Label", "judge": "faithfulness"},
        options={"judge": "faithfulness"},
        judge=wrong,
    ),
    "shares": World(judge=lambda y, i: f"{wrong(y, i)}/5", refused="judge value './5'"),
    "percent": World(judge=lambda y, i: f"{wrong(y, i)} %", refused="judge value '. %'"),
    "beyond numbers": World(judge=lambda y, i: 10**400 if i == 4 else y, refused="value '?10+"),
}


def rows_of(columns: Columns) -> list[dict[str, Any]]:
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def text(cell: Any) -> str:
    return "" if cell is None else str(cell)


def as_csv(columns: Columns, folder: Path) -> Path:
    rows = [list(map(text, row)) for row in zip(*columns.values(), strict=True)]
    return write_csv(folder / "t.csv", tuple(columns), rows)


def as_tsv(columns: Columns, folder: Path) -> Path:
    lines = [columns, *zip(*columns.values(), strict=True)]
    cells = ["\t".join(" ".join(text(cell).split()) for cell in line) for line in lines]
    (folder / "t.tsv").write_text("\n".join(cells), encoding="utf-8")
    return folder / "t.tsv"


def as_json(value: Any, folder: Path, **how: Any) -> Path:
    (folder / "t.json").write_text(json.dumps(value, **how), encoding="utf-8")
    return folder / "t.json"


def as_lines(columns: Columns, folder: Path) -> Path:
    text = "\n".join(map(json.dumps, rows_of(columns)))
    (folder / "t.jsonl").write_text(text, encoding="utf-8")
    return folder / "t.jsonl"


def as_parquet(columns: Columns, folder: Path) -> Path:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    whole = {name: strings_where_mixed(cells) for name, cells in columns.items()}
    pq.write_table(pa.table(whole), folder / "t.parquet")
    return folder / "t.parquet"


def strings_where_mixed(cells: list[Any]) -> list[Any]:
    """A column of a Parquet file has one type."""
    kinds = {type(cell) for cell in cells if cell is not None}
    big = any(isinstance(cell, int) and abs(cell) > 2**62 for cell in cells)
    return cells if len(kinds) == 1 and not big else [c if c is None else str(c) for c in cells]


def as_pandas(columns: Columns, _: Path) -> Any:
    return pytest.importorskip("pandas").DataFrame(columns)


class Result:
    """What ragas returns: it gives a frame when asked."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns

    def to_pandas(self) -> Any:
        return as_pandas(self._columns, Path())


CARRIERS: dict[str, Callable[[Columns, Path], Any]] = {
    "csv": as_csv,
    "tsv": as_tsv,
    "json array": lambda columns, folder: as_json(rows_of(columns), folder),
    "json array over lines": lambda columns, folder: as_json(rows_of(columns), folder, indent=1),
    "json lines": as_lines,
    "json of pandas": lambda columns, folder: as_json(
        {name: {str(i): c for i, c in enumerate(cells)} for name, cells in columns.items()}, folder
    ),
    "parquet": as_parquet,
    "list of dicts": lambda columns, _: rows_of(columns),
    "dict of lists": lambda columns, _: columns,
    "pandas": as_pandas,
    "result of ragas": lambda columns, _: Result(columns),
}


@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("kind", WORLDS)
def test_every_carrier_of_every_kind_is_read_alike(kind: str, carrier: str, tmp_path: Path) -> None:
    world = WORLDS[kind]
    source = CARRIERS[carrier](world.columns(), tmp_path)
    if world.refused:
        with pytest.raises(DataError, match=world.refused) as refusal:
            rsb.read_judged_items(source, **world.options)
        assert ("t." in str(refusal.value)) == isinstance(source, Path)
        return
    items = rsb.read_judged_items(source, **world.options)
    means = world.means or world.judge
    assert items.ids == tuple(f"q{i}" for i in range(N))
    np.testing.assert_array_equal(items.human, [*map(float, TRUE[:LABELED])] + [np.nan] * LABELED)
    np.testing.assert_array_equal(items.judge, [float(means(y, i)) for i, y in enumerate(TRUE)])
    assert world.note in " ".join(map(str, items.notes))
    assert bool(items.notes) == bool(world.note)


@pytest.mark.parametrize("kind", WORLDS)
def test_terminal_and_python_say_the_same(kind: str, tmp_path: Path) -> None:
    world = WORLDS[kind]
    path = as_csv(world.columns(), tmp_path)
    options = [part for name, value in world.options.items() for part in (f"--{name}", value)]
    code, shown, messages = inside("interval", path.name, "--json", "-", *options, cwd=tmp_path)
    if world.refused:
        assert (code, "Traceback" in messages) == (2, False)
        for verb in (("judge", "audit"), ("labels", "--half-width", "0.15")):
            assert inside(*verb, path.name, *options, cwd=tmp_path)[2].endswith(
                messages.partition("error:")[2]
            )
        return
    here = json.loads(json.dumps(rsb.interval(rows_of(world.columns()), **world.options).to_dict()))
    there = json.loads(shown)
    for part in ("means", "audits", "warnings"):
        assert here[part] == there[part]
    assert world.note in " ".join(there["warnings"])
    for verb in (("judge", "audit"), ("labels", "--half-width", "0.15")):
        code, shown, messages = inside(*verb, path.name, *options, cwd=tmp_path)
        assert code == 0, messages
        assert world.note in shown


FOREIGN: dict[str, Callable[[Path], Path]] = {
    "ragas": lambda folder: write_csv(
        folder / "r.csv",
        ("user_input", "retrieved_contexts", "response", "faithfulness", "answer_relevancy"),
        [(f"q{i}", "['c']", "a", "nan" if i == 3 else i / 30, 1 - i / 30) for i in range(30)],
    ),
    "deepeval": lambda folder: as_json(
        {
            "test_results": [
                {
                    "input": f"q{i}",
                    "actual_output": "a",
                    "metrics_data": [{"name": "Faithfulness", "score": i % 10 / 10}],
                }
                for i in range(50)
            ]
        },
        folder,
    ),
    "phoenix": lambda folder: write_csv(
        folder / "p.csv",
        ("context.span_id", "label", "score", "human"),
        [(f"s{i}", "factual", i % 3 / 2, i % 2 if i < 20 else "") for i in range(60)],
    ),
    "systems": lambda folder: write_csv(
        folder / "s.csv",
        ("question", "model", "answer", "human", "judge"),
        [(f"q{i // 2}", "ab"[i % 2], "x", i % 3 % 2 if i < 40 else "", i % 5) for i in range(80)],
    ),
    "several people and judges": lambda folder: write_csv(
        folder / "m.csv",
        ("id", "human_1", "human_2", "judge_gpt", "judge_claude"),
        [(f"q{i}", i % 2, i % 3 % 2 if i < 9 else "", i % 5, i % 7 / 7) for i in range(40)],
    ),
    "ids that recur": lambda folder: write_csv(
        folder / "i.csv",
        ("id", "system", "human", "judge"),
        [(f"q{i // 2}", "ab"[i % 2], i % 3 % 2 if i < 40 else "", i % 5) for i in range(80)],
    ),
    "arena": lambda folder: as_lines(
        {
            "question_id": list(range(60)),
            "human_winner": ["model_a", "tie", "model_b"] * 7 + [None] * 39,
            "judge_winner": ["model_a", "model_b"] * 30,
        },
        folder,
    ),
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_start_prints_a_command_that_runs(kind: str, tmp_path: Path) -> None:
    path = FOREIGN[kind](tmp_path)
    code, shown, messages = inside("start", path.name, "--dry-run", cwd=tmp_path)
    assert code == 0, messages
    line = next(line for line in shown.splitlines() if line.startswith("$ rag-sourcebias "))
    code, _, messages = inside(*line.split()[2:], cwd=tmp_path)
    assert code == 0, messages


def test_several_people_count_by_their_mean(tmp_path: Path) -> None:
    path = FOREIGN["several people and judges"](tmp_path)
    items = rsb.read_judged_items(
        path, human=["human_1", "human_2"], judge=["judge_gpt", "judge_claude"]
    )
    assert items.human[:5].tolist() == [0, 1, 0, 0.5, 0.5]
    assert items.human[9:11].tolist() == [1, 0]
    assert sorted(items.judges or ()) == ["judge_claude", "judge_gpt"]
    with pytest.raises(DataError, match="'judge_gpt' is named twice"):
        rsb.read_judged_items(path, human=["human_1", "judge_gpt"], judge="judge_gpt")


def test_the_judge_of_several_metrics_is_asked_for(tmp_path: Path) -> None:
    path = FOREIGN["ragas"](tmp_path)
    shown = inside("start", path.name, cwd=tmp_path)[1]
    assert "faithfulness or answer_relevancy" in shown
    assert not (tmp_path / "sheet.csv").exists()


ANSWERED: Columns = {
    "user_input": ["who?", "when?"] * 2,
    "model": ["a", "a", "b", "b"],
    "response": ["Ann", "1949", "Bea", ""],
    "reference": [["Ann", "Anna"], ["1949"]] * 2,
    "label": [1, 0, 0, None],
}
STYLED: Columns = {
    "query_id": ["1", "1", "1"],
    "side": ["query", "doc", "document"],
    "style": ["original", "human", "formal"],
    "text": ["who?", "Ann", "It is Ann."],
}


@pytest.mark.parametrize("carrier", sorted({*CARRIERS} - {"csv", "tsv"}))
def test_answers_and_styles_come_in_any_carrier(carrier: str, tmp_path: Path) -> None:
    answers = rsb.read_answer_texts(CARRIERS[carrier](ANSWERED, tmp_path))
    assert answers.systems == ("a", "a", "b", "b")
    assert answers.references[0] == ("Ann", "Anna")
    np.testing.assert_array_equal(answers.correct, [1, 0, 0, np.nan])
    styled = rsb.read_styled_texts(CARRIERS[carrier](STYLED, tmp_path))
    assert styled.documents == {"human": ("Ann",), "formal": ("It is Ann.",)}
