"""``start`` on a table without a usual column of a judge names those that could be it."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import succeed, write_csv

from rag_sourcebias.start import guess


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
            "Which is the judge's: my_metric or faith? Put its column after --judge.",
            "--judge my_metric",
        ),
        (
            ("question", "human"),
            ("why?", 1),
            "interval takes it, with the column of the judge (--judge): none holds numbers.",
            None,
        ),
    ],
)
def test_the_columns_that_hold_numbers(
    columns: tuple[str, ...],
    values: tuple[object, ...],
    words: str,
    command: str | None,
    tmp_path: Path,
) -> None:
    write_csv(tmp_path / "scores.csv", columns, [values, values])
    told = succeed("start", "scores.csv", cwd=tmp_path)
    shown = " ".join((told if isinstance(told, str) else str(told)).split())
    assert words in shown
    if command is None:
        assert "rag-sourcebias" not in shown
    else:
        assert f"$ rag-sourcebias interval scores.csv {command}" in shown


ANSWERED = ("question", "answer", "reference")
TEXTS = ("why?", "so", "because")


@pytest.mark.parametrize(
    ("columns", "rows", "command"),
    [  # people labelled some; all, of a judge by name, of a score by another; none
        ((*ANSWERED, "llm_score", "human"), ((0, 1), (1, "")), "interval scores.csv"),
        ((*ANSWERED, "score", "correct"), ((0, 1), (1, "")),
         "interval scores.csv --human correct --judge score"),
        ((*ANSWERED, "judge", "correct"), ((0, 1), (1, 0)),
         "audit answers scores.csv --judge judge"),
        ((*ANSWERED, "score", "correct"), ((0, 1), (1, 0)),
         "audit answers scores.csv --judge score"),
        ((*ANSWERED, "correct"), ((1,), (0,)),
         "audit answers scores.csv --encoder all-MiniLM-L6-v2"),
        ((*ANSWERED, "score"), ((0,), (1,)),
         "labels scores.csv --judge score -n 2 --output sheet.csv"),
        ((*ANSWERED, "judge"), ((0,), (1,)), "labels scores.csv -n 2 --output sheet.csv"),
        (ANSWERED, ((), ()),
         "judge grade scores.csv --model openai:gpt-4o-mini --dry-run"),
    ],
)  # fmt: skip
def test_what_answers_are_for_goes_by_who_graded_them(
    columns: tuple[str, ...], rows: tuple[tuple[object, ...], ...], command: str, tmp_path: Path
) -> None:
    write_csv(tmp_path / "scores.csv", columns, [(*TEXTS, *row) for row in rows])
    found = guess(tmp_path / "scores.csv")
    assert " ".join(found.command).replace(f"{tmp_path}/", "") == command
    unsure = "score" in columns or not {"correct", "human"} & {*columns}
    assert bool(found.lacks) is unsure
