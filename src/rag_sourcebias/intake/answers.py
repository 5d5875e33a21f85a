"""Answers of systems with references and human verdicts, from any table."""

import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from rag_sourcebias.core.completions import JudgeItem
from rag_sourcebias.core.data import FloatArray
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.core.finding import Finding
from rag_sourcebias.core.texts import AnswerTexts
from rag_sourcebias.intake.objects import name_of
from rag_sourcebias.intake.tables import (
    Table,
    cells_as,
    find_column,
    find_columns,
    find_ids,
    ids_of,
    list_in,
    names_of,
    numbers_of,
    read_table,
    require_columns,
    require_once,
    values_of,
)

# Reference answers that list several accepted wordings.


# The whole reference may be a date or a fraction ("9/11", "5/18/2018") as well as alternatives.
_NUMBERS = re.compile(r"\s*\d{1,2}/\d{1,2}(/\d{2,4})?\s*")


def split_references(reference: Any, *, separator: str | None = "/") -> list[str]:  # noqa: ANN401
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
    listed = list_in(reference)
    # "[1949]" is a list too, but brackets may also belong to the answer
    if not (isinstance(listed, list) and all(isinstance(part, str) for part in listed)):
        listed = reference
    if isinstance(listed, list | tuple):
        texts = list(map(_text, listed))
    else:
        whole = _text(listed)
        texts = whole.split(separator) if separator else [whole]
        if separator == "/" and _NUMBERS.fullmatch(whole):
            texts.insert(0, whole)
    texts = list(filter(None, map(str.strip, texts)))
    if not texts:
        raise DataError(f"{reference!r:.80} holds no text; at least one wording is needed")
    return list(dict.fromkeys(texts))


def _text(cell: object) -> str:
    """Return text; numbers as they are written, nothing as empty."""
    text = "" if cell is None or cell != cell else name_of(cell)  # noqa: PLR0124 - NaN
    if text is None:
        raise DataError(f"is {cell!r:.80}, which is not text")
    return text


# Which columns of a table of answers hold what.


_ROLES = ("question", "reference", "answer", "correct")
_WIDE = "answer_"
_TRUE = ("true", "1", "1.0", "yes")


def answer_rows(
    table: Table, given: Mapping[str, str | None] | None = None
) -> tuple[Table, dict[str, Any]]:
    """Return a table with a row for each answer, and its columns by what they are for.

    It is the table itself, unless each system has a column of its own there. Columns that are
    ``given`` must be there.

    Raises
    ------
    DataError
        If a column is not found, several could be meant, or all questions are marked improper.
    """
    roles = dict.fromkeys((*_ROLES, "system")) | dict(given or {})
    systems = [name.removeprefix(_WIDE) for name in table.names if name.startswith(_WIDE)]
    if any(systems) and not roles["answer"] and not find_column(table.names, "answer"):
        table = _melted(table, roles, list(filter(None, systems)))
    return table, find_columns(table, roles, needed=_ROLES)


def _melted(table: Table, roles: Mapping[str, str | None], systems: Sequence[str]) -> Table:
    """Return the answer of each system to a question as a row of its own."""
    asked = {role: roles[role] for role in _ROLES[:2]}
    found = find_columns(table, asked, needed=asked)
    verdicts = []
    for system in systems:
        usual = (f"judge_{system}", f"correct_{system}")
        verdict = next(filter(table.columns.__contains__, usual), None)
        if verdict is None:
            raise DataError(
                f"{table.path} has answer_{system} but neither judge_{system} nor "
                f"correct_{system}: people's verdicts are needed, empty where nobody judged"
            )
        verdicts.append(table.columns[verdict])
    improper = table.columns.get("improper", [""] * len(table))
    kept = [row for row, cell in enumerate(improper) if str(cell).strip().lower() not in _TRUE]
    if not kept:
        raise DataError(f"{table.path}: all {len(table)} questions are marked improper")
    rows = [row for row in kept for _ in systems]
    answers = [table.columns[f"{_WIDE}{system}"] for system in systems]
    references = table.columns[found["reference"]]
    columns: dict[str, list[Any]] = {
        found["question"]: rows,  # the texts of questions may repeat
        found["reference"]: [references[row] for row in rows],
        "system": [*systems] * len(kept),
        "answer": [cells[row] for row in kept for cells in answers],
        "correct": [cells[row] for row in kept for cells in verdicts],
    }
    return table.spread(rows, columns)


# Answers of systems with references and human verdicts.


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
    read = read_table(source)
    table, roles = answer_rows(read, columns)
    file = Path(table.path)
    if separator is None and roles["reference"] == "golden_answer":
        separator = "/"
    questions = names_of(table, roles["question"], role="question")
    systems = [Path(file.name.removesuffix(".gz")).stem] * len(table)
    if roles["system"]:
        systems = names_of(table, roles["system"], role="system", shown=True)
    answers = list(zip(systems, questions, strict=True))
    require_once(table, answers, "the answer of", "keep one row per answer")
    split = partial(split_references, separator=separator)
    correct = numbers_of(table, roles["correct"], role="human verdict")
    table.refuse(
        ~(np.isnan(correct) | np.isin(correct, (0, 1))),
        roles["correct"],
        "is no human verdict; expected true or false, yes or no, 1 or 0, or an empty cell",
    )
    n_left_out = len(read) - len(set(questions)) if table is not read else 0
    told = ""
    if n_left_out:
        told = f" ({n_left_out} question{'s' * (n_left_out > 1)} marked improper left out)"
    return AnswerTexts(
        question_ids=tuple(questions),
        systems=tuple(systems),
        answers=tuple(cells_as(table, roles["answer"], _text)),
        references=tuple(map(tuple, cells_as(table, roles["reference"], split))),
        correct=correct,
        name=name or file.name + told,
        notes=tuple(table.notes),
    )


def read_answer_scores(
    source: Any,  # noqa: ANN401
    columns: Sequence[str],
    given: Mapping[str, str | None] | None = None,
) -> tuple[dict[str, FloatArray], list[Finding]]:
    """Read columns of scores of a table that :func:`read_answer_texts` reads, one row per answer.

    Returns
    -------
    scores : dict of str to float64 array of shape (n,)
        NaN where a cell is empty, or holds what stands for a missing value.
    notes : list of Finding
        How the cells were read.

    Raises
    ------
    DataError
        If there is no such column, or a cell is not a finite number (with file and line).
    """
    table = read_table(source)
    require_columns(table, columns)
    if answer_rows(table, given)[0] is not table:
        raise DataError(f"{table.path} has one row per question; scores need one row per answer")
    return {name: values_of(table, name, role="score") for name in columns}, table.notes


# Answers that nobody graded, for a model to grade.


_ASKED = ("question", "reference", "answer")
_KEPT = ("human", "group", "cluster")


def read_ungraded_answers(
    path: Path,
    *,
    id: Sequence[str] | None = None,
    **columns: str | None,
) -> tuple[list[JudgeItem], dict[str, Sequence[Any]]]:
    """Read what is to be judged, and the columns that are written back beside the verdicts.

    Parameters
    ----------
    **columns
        Column of ``question``, ``reference``, ``answer``, ``human``, ``group`` and
        ``cluster``, where it was named.
    """
    table = read_table(path)
    taken = {*(id or ()), *columns.values()}
    asked = {f"{role}_text": columns.get(role) for role in _ASKED}
    others = {role: columns.get(role) for role in _KEPT}
    roles = find_columns(table, asked | others, taken=taken, needed=asked)
    ids = [i.replace("\t", "/") for i in ids_of(table, find_ids(table, id, taken=taken))]
    texts = [
        cells_as(table, roles[f"{role}_text"], _parts if role == "answer" else _wording)
        for role in _ASKED
    ]
    items = [
        JudgeItem.correctness(
            query_id=item_id,
            doc_id="answer",
            question=question[0],
            reference=references,
            answer=" / ".join(answer),
        )
        for item_id, question, references, answer in zip(ids, *texts, strict=True)
    ]
    kept = {role: table.columns[roles[role]] for role in _KEPT if roles[role]}
    return items, {"id": ids, **kept}


def _parts(cell: Any) -> list[str]:  # noqa: ANN401 - of any table
    """Return the texts in a cell: a list (JSON, Parquet) of references stays several."""
    return [str(one) for one in (cell if isinstance(cell, list) else [cell]) if one is not None]


def _wording(cell: Any) -> list[str]:  # noqa: ANN401
    parts = _parts(cell)
    if not "".join(parts).strip():
        raise DataError(f"{cell!r} holds no text; each item needs a question and a reference")
    return parts
