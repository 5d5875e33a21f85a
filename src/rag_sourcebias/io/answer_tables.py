"""Answers of systems with references and human verdicts, from a file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from rag_sourcebias.errors import DataError
from rag_sourcebias.io.answer_cells import answer_of, references_of
from rag_sourcebias.io.answer_columns import AnswerColumns, find_answer_columns
from rag_sourcebias.io.cells import names_of, numbers_of
from rag_sourcebias.io.files import PathLike
from rag_sourcebias.io.json_array import read_any_table
from rag_sourcebias.io.tables import Table
from rag_sourcebias.types import AnswerTexts
from rag_sourcebias.types.arrays import FloatArray

__all__ = ["read_answer_scores", "read_answer_texts"]


def read_answer_texts(
    path: PathLike, *, name: str | None = None, separator: str | None = None
) -> AnswerTexts:
    """Read answers of one or several systems, with references and human verdicts.

    Parameters
    ----------
    path : path
        A table (CSV, TSV, JSON lines, Parquet) or a JSON array, text files also ``.gz``. One row
        per answer: ``question_id`` or ``question``, ``system``, ``answer``, ``reference`` and
        ``correct`` (true or false, yes or no, 1 or 0; empty where nobody judged). Other usual
        names work too, among them those of ragas (``user_input``, ``response``, ``reference``);
        without a column of systems all answers are of one, called as the file. Or one row per
        question, as EVOUNA has it: ``answer_<system>`` and ``judge_<system>`` (or
        ``correct_<system>``) for each system; questions marked ``improper`` are left out, and
        counted in the name.
    name : str or None
        Of the data; the file name by default.
    separator : str or None
        What stands between alternative wordings in one cell of references. A list (in JSON or
        Parquet, or written as JSON in a cell) needs none. None: a cell is one wording, except in
        a column ``golden_answer``, where "/" separates.

    Returns
    -------
    AnswerTexts
        In the order of the file. A null or empty answer is kept, as an empty one.

    Raises
    ------
    DataError
        With file and line: a column is not found, an answer stands there twice, a cell is not
        text, a reference is empty, or a verdict is none of those accepted.
    MissingExtraError
        If a Parquet file is given and pyarrow is not installed.
    """
    where = os.fspath(path)
    found: list[AnswerColumns] = []

    def choose(names: tuple[str, ...]) -> list[str]:
        found.append(find_answer_columns(names, where))
        return found[-1].names

    table = read_any_table(path, choose)
    columns = found[-1]
    if separator is None and columns.reference == "golden_answer":
        separator = "/"
    rows = _Rows(table, name_of_file(path))
    left_out = rows.read(columns, separator)
    if not rows.ids:
        raise DataError(f"{where}: all {left_out} questions are marked improper; none is left")
    questions = "question" if left_out == 1 else "questions"
    told = f" ({left_out} {questions} marked improper left out)" if left_out else ""
    return AnswerTexts(
        question_ids=tuple(rows.ids),
        systems=tuple(rows.systems),
        answers=tuple(rows.answers),
        references=tuple(rows.references),
        correct=np.array(rows.correct, dtype=np.float64),
        name=name or f"{Path(path).name}{told}",
    )


def read_answer_scores(path: PathLike, columns: Sequence[str]) -> dict[str, FloatArray]:
    """Read columns of scores of a table that :func:`read_answer_texts` reads, one row per answer.

    Returns
    -------
    dict of str to float64 array of shape (n,)
        NaN where a cell is empty.

    Raises
    ------
    DataError
        If there is no such column, or a cell is not a finite number (with file and line).
    """
    where = os.fspath(path)

    def choose(names: tuple[str, ...]) -> Sequence[str]:
        lacking = [column for column in columns if column not in names]
        if lacking:
            raise DataError(
                f"{where} has no column {', '.join(map(repr, lacking))}; its columns are "
                f"{', '.join(names)}"
            )
        if find_answer_columns(names, where).wide:
            raise DataError(f"{where} has one row per question; scores need one row per answer")
        return columns

    table = read_any_table(path, choose)
    rows = [str(i) for i in range(1, len(table) + 1)]
    return {c: numbers_of(table, c, role="score", ids=rows) for c in columns}


def name_of_file(path: PathLike) -> str:
    """Return a file's name without its endings."""
    name = Path(path).name.removesuffix(".gz")
    return Path(name).stem


@dataclass(slots=True)
class _Rows:
    """The answers read so far, as columns."""

    table: Table
    single: str  # system of a file that names none
    ids: list[str] = field(default_factory=list)
    systems: list[str] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)
    references: list[tuple[str, ...]] = field(default_factory=list)
    correct: list[float] = field(default_factory=list)
    places: dict[tuple[str, str], str] = field(default_factory=dict)

    def read(self, columns: AnswerColumns, separator: str | None) -> int:
        """Read all rows; returns how many questions are improper."""
        table = self.table
        kept = [i for i in range(len(table)) if not (columns.improper and self._improper(i))]
        if columns.wide:  # the texts of questions may repeat, their rows do not
            ids = [str(i) for i in range(len(table))]
        else:
            ids = names_of(table, columns.question, role="question")
        systems = (
            names_of(table, columns.system, role="system", shown=True)
            if columns.system
            else [self.single] * len(table)
        )
        verdicts = {
            answer: numbers_of(table, correct, role="human verdict", ids=ids)
            for answer, _, correct in columns.answers
        }
        for i in kept:
            place = table.where(i)
            references = references_of(
                table.columns[columns.reference][i], separator, f"{place}: question {ids[i]!r}"
            )
            for answer, system, _ in columns.answers:
                self._add(place, ids[i], system or systems[i])
                self.answers.append(answer_of(table.columns[answer][i], answer, place))
                self.references.append(references)
                self.correct.append(self._verdict(verdicts[answer][i], place, ids[i]))
        return len(table) - len(kept)

    def _improper(self, row: int) -> bool:
        cell: Any = self.table.columns["improper"][row]
        return str(cell).strip().lower() in ("true", "1", "1.0", "yes")

    def _add(self, place: str, question: str, system: str) -> None:
        first = self.places.setdefault((question, system), place)
        if first is not place:
            raise DataError(
                f"{place}: the answer of {system!r} to question {question!r:.100} stands at "
                f"{first} already; keep one row per answer"
            )
        self.ids.append(question)
        self.systems.append(system)

    def _verdict(self, value: float, place: str, question: str) -> float:
        if not (np.isnan(value) or value in (0.0, 1.0)):
            raise DataError(
                f"{place}: human verdict {value:g} of question {question!r:.100} is not accepted; "
                "expected true or false, yes or no, 1 or 0, or an empty cell"
            )
        return float(value)
