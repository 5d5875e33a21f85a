"""``start`` on a table without a usual column of a judge names those that could be it."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import succeed, write_csv


@pytest.mark.parametrize(
    ("columns", "values", "words", "command"),
    [
        (
            ("question", "human", "my_metric"),
            ("why?", 1, 0.5),
            "Only my_metric holds numbers: run it if that is what the judge said.",
            "--judge my_metric",
        ),
        (
            ("question", "human", "my_metric", "faith"),
            ("why?", 1, 0.5, 0.7),
            "Name the column of the judge: my_metric or faith.",
            "--judge COLUMN",
        ),
        (
            ("question", "human"),
            ("why?", 1),
            "Name the column of the judge: none holds numbers.",
            "--judge COLUMN",
        ),
    ],
)
def test_the_columns_that_hold_numbers(
    columns: tuple[str, ...], values: tuple[object, ...], words: str, command: str, tmp_path: Path
) -> None:
    write_csv(tmp_path / "scores.csv", columns, [values, values])
    told = succeed("start", "scores.csv", cwd=tmp_path)
    shown = " ".join((told if isinstance(told, str) else str(told)).split())
    assert words in shown
    assert f"$ rag-sourcebias interval scores.csv {command}" in shown
