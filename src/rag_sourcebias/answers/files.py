"""Answers of systems with references and human verdicts, from a file."""

import json
import math
import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from rag_sourcebias.answers.data import AnswerTexts
from rag_sourcebias.core.data import FloatArray
from rag_sourcebias.core.errors import DataError, require_name
from rag_sourcebias.intake.tables import (
    Table,
    find_columns,
    names_of,
    numbers_of,
    read_table,
    require_columns,
    table_name,
)

# Reference answers that list several accepted wordings.


# The whole reference may be a date or a fraction ("9/11", "5/18/2018") as well as alternatives.
_NUMBERS = re.compile(r"\s*\d{1,2}/\d{1,2}(/\d{2,4})?\s*")


def split_references(reference: str | Sequence[str], *, separator: str | None = "/") -> list[str]:
    """Return the alternatives of a reference answer, in order, each once.

    Parameters
    ----------
    reference : str or sequence of str
        One string such as ``"US/United States"``, or a list of alternatives, which are taken as
        they are.
    separator : str or None
        What stands between the alternatives of a string; None if nothing does. A slash inside a
        name ("AC/DC") cannot be told from a separator: give such references as a list. A
        reference that is a date or a fraction ("9/11") is kept whole beside its parts.

    Raises
    ------
    DataError
        If nothing is left.

    Examples
    --------
    >>> split_references("291 episodes/291")
    ['291 episodes', '291']
    """
    if separator == "":
        raise DataError("separator '' is empty; give the text between alternatives, or None")
    if not isinstance(reference, str):
        parts = list(reference or ())  # files hold None where there is no reference
    elif separator is None:
        parts = [reference]
    else:
        whole = separator == "/" and _NUMBERS.fullmatch(reference) is not None
        parts = [reference] * whole + reference.split(separator)
    if not all(isinstance(part, str) for part in parts):
        raise DataError(f"reference {reference!r} holds something that is not text")
    kept = list(dict.fromkeys(part.strip() for part in parts if part.strip()))
    if not kept:
        raise DataError(f"reference {reference!r} holds no text; at least one wording is needed")
    return kept


# Cells that hold answers and references.


def references_of(cell: object, separator: str | None, place: str) -> tuple[str, ...]:
    """Return the wordings of a reference: those of a list, or of a text with separators."""
    value = _list_in(cell) if isinstance(cell, str) else cell
    listed = isinstance(value, list | tuple)
    parts = [_text(part) for part in (value if isinstance(value, list | tuple) else [value])]
    texts = [part for part in parts if part is not None]
    if len(texts) < len(parts):
        raise DataError(f"{place}: reference {cell!r:.80} is neither text nor a list of texts")
    try:
        return tuple(split_references(texts if listed else texts[0], separator=separator))
    except DataError as error:
        raise DataError(f"{place}: {error}") from error


def _text(cell: object) -> str | None:
    """Return text; numbers as they are written, nothing as empty, None for anything else."""
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return ""
    told = isinstance(cell, str | int | float) and not isinstance(cell, bool)
    return str(cell) if told else None


def _list_in(cell: str) -> object:
    """Return the list that a cell holds as JSON, else the cell."""
    if not cell.lstrip().startswith("["):
        return cell
    try:
        value = json.loads(cell)
    except (ValueError, RecursionError):
        return cell
    # "[1] and more" is no JSON; "[1949]" is, but brackets may also belong to the answer
    texts = isinstance(value, list) and all(isinstance(part, str) for part in value)
    return value if texts else cell


# Which columns of a table of answers hold what.


_ROLES = ("question", "system", "answer", "reference", "correct")
_WIDE = "answer_"


def find_answer_columns(
    names: Sequence[str], path: str, given: Mapping[str, str | None] | None = None
) -> dict[str, Any]:
    """Find the columns of a table of answers; those that are ``given`` must be there.

    Returns
    -------
    dict
        ``question`` and ``reference``, and lists of ``answer`` and ``correct``: of one, and with
        ``system``, where each row is an answer; else of one per system, and with ``improper``.

    Raises
    ------
    DataError
        If one is not found, or several could be meant.
    """
    roles: dict[str, str | None] = dict.fromkeys(_ROLES) | dict(given or {})
    needed = {*_ROLES} - {"system"}
    wide = [n for n in names if n.startswith(_WIDE) and n != _WIDE]
    if not wide or find_columns(names, roles, path=path)["answer"] is not None:
        found = find_columns(names, roles, path=path, needed=sorted(needed))
        return {**found, "answer": [found["answer"]], "correct": [found["correct"]]}
    verdicts = []
    for column in wide:
        system = require_name(column.removeprefix(_WIDE), "system", path)
        both = [name for name in (f"judge_{system}", f"correct_{system}") if name in names]
        if not both:
            raise DataError(
                f"{path} has answer_{system} but neither judge_{system} nor correct_{system}: "
                "people's verdicts are needed, empty where nobody judged"
            )
        verdicts.append(both[0])
    asked = {role: roles[role] for role in ("question", "reference")}
    found = find_columns(names, asked, path=path, needed=sorted(asked))
    improper = "improper" if "improper" in names else None
    return {**found, "answer": wide, "correct": verdicts, "improper": improper}


# Answers of systems with references and human verdicts, from a file.


def read_answer_texts(
    source: Any,  # noqa: ANN401 - whatever a user has
    *,
    name: str | None = None,
    separator: str | None = None,
    columns: Mapping[str, str | None] | None = None,
) -> AnswerTexts:
    """Read answers of one or several systems, with references and human verdicts.

    Parameters
    ----------
    source : path, frame, list of dicts or dict of lists
        A path is of CSV, TSV, JSON, JSON lines or Parquet, text files also ``.gz``. One row
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
    columns : mapping of str to str, optional
        Columns of the roles ``question``, ``system``, ``answer``, ``reference`` and ``correct``
        that have other names.

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
    where = Path(table_name(source))
    table = read_table(source, partial(find_answer_columns, path=str(where), given=columns))
    if separator is None and table.roles["reference"] == "golden_answer":
        separator = "/"
    rows, left_out = _rows(table, separator, single=Path(where.name.removesuffix(".gz")).stem)
    if not rows:
        raise DataError(f"{where}: all {left_out} questions are marked improper; none is left")
    questions = "question" if left_out == 1 else "questions"
    told = f" ({left_out} {questions} marked improper left out)" if left_out else ""
    ids, systems, answers, references, correct = zip(*rows, strict=True)
    return AnswerTexts(
        question_ids=ids,
        systems=systems,
        answers=answers,
        references=references,
        correct=np.array(correct, dtype=np.float64),
        name=name or f"{where.name}{told}",
    )


def read_answer_scores(
    source: Any,  # noqa: ANN401
    columns: Sequence[str],
    given: Mapping[str, str | None] | None = None,
) -> dict[str, FloatArray]:
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
    where = table_name(source)

    def choose(names: tuple[str, ...]) -> Sequence[str]:
        require_columns(names, columns, where)
        if "improper" in find_answer_columns(names, where, given):
            raise DataError(f"{where} has one row per question; scores need one row per answer")
        return columns

    table = read_table(source, choose)
    rows = [str(i) for i in range(1, len(table) + 1)]
    return {c: numbers_of(table, c, role="score", ids=rows) for c in columns}


def _rows(
    table: Table, separator: str | None, *, single: str
) -> tuple[list[tuple[str, str, str, tuple[str, ...], float]], int]:
    """Return (question, system, answer, references, verdict) of every answer.

    ``single`` is the system of a file that names none. Returns as well how many questions are
    improper.
    """
    columns: Mapping[str, Any] = table.roles
    wide = "improper" in columns
    if wide:  # the texts of questions may repeat, their rows do not
        ids = [str(i) for i in range(len(table))]
    else:
        ids = names_of(table, columns["question"], role="question")
    systems = [single] * len(table)
    if columns.get("system"):
        systems = names_of(table, columns["system"], role="system", shown=True)
    verdicts = [
        numbers_of(table, column, role="human verdict", ids=ids) for column in columns["correct"]
    ]
    marked = table.columns.get("improper", [""] * len(table))
    improper = [str(cell).strip().lower() in ("true", "1", "1.0", "yes") for cell in marked]
    found: list[tuple[str, str, str, tuple[str, ...], float]] = []
    places: dict[tuple[str, str], str] = {}
    for i in np.flatnonzero(~np.array(improper, dtype=np.bool_)).tolist():
        place, question = table.where(i), ids[i]
        cell = table.columns[columns["reference"]][i]
        references = references_of(cell, separator, f"{place}: question {question!r}")
        for k, column in enumerate(columns["answer"]):
            system = column.removeprefix(_WIDE) if wide else systems[i]
            value = verdicts[k][i]
            first = places.setdefault((question, system), place)
            if first is not place:
                raise DataError(
                    f"{place}: the answer of {system!r} to question {question!r:.100} stands at "
                    f"{first} already; keep one row per answer"
                )
            cell = table.columns[column][i]
            answer = _text(cell)
            if answer is None:
                raise DataError(f"{place}: {column} is {cell!r:.80}, which is not text")
            if not (np.isnan(value) or value in (0.0, 1.0)):
                raise DataError(
                    f"{place}: human verdict {value:g} of question {question!r:.100} is not "
                    "accepted; expected true or false, yes or no, 1 or 0, or an empty cell"
                )
            found.append((question, system, answer, references, float(value)))
    return found, sum(improper)
