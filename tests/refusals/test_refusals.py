"""What the commands refuse: a table of codes, each with its input and the whole message."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import typer
from command_line import inside

from rag_sourcebias.cli import app

HERE = Path(__file__).parent
ROWS = [json.loads(line) for line in (HERE / "table.jsonl").read_text("utf-8").splitlines()]
CODES = [row["code"] for row in ROWS]


def answer(row: dict, folder: Path) -> tuple[int, str]:
    """Return exit code and message: white space as one blank, without the program's name."""
    for name, kept in row["files"].items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(HERE / "inputs" / kept, folder / name)
    for name in row.get("folders", ()):
        (folder / name).mkdir(parents=True, exist_ok=True)
    code, _, messages = inside(*row["args"], cwd=folder)
    words = " ".join(messages.split())
    return code, words[words.index("Error: ") :] if words.startswith("Usage: ") else words


def names(command: typer.core.TyperGroup, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    return [
        name
        for key, sub in command.commands.items()
        for name in (names(sub, (*path, key)) if hasattr(sub, "commands") else [(*path, key)])
    ]


@pytest.mark.parametrize("row", ROWS, ids=CODES)
def test_what_is_refused_and_in_which_words(row: dict, tmp_path: Path) -> None:
    assert answer(row, tmp_path) == (2, " ".join(row["message"].split()))


def test_a_command_that_is_not_refused_fails_the_walk(tmp_path: Path) -> None:
    row = next(row for row in ROWS if row["code"].startswith("interval.")) | {
        "args": ["interval", "--sample"]
    }
    assert answer(row, tmp_path)[0] == 0


def test_every_code_is_unique_and_every_input_used() -> None:
    assert len(set(CODES)) == len(CODES)
    kept = {kept for row in ROWS for kept in row["files"].values()}
    assert kept == {path.name for path in (HERE / "inputs").iterdir()}


def test_every_command_has_refusals() -> None:
    refused = {tuple(row["args"][:2]) for row in ROWS} | {(row["args"][0],) for row in ROWS}
    assert [name for name in names(typer.main.get_command(app)) if name not in refused] == []
