"""Answers of systems with references and human verdicts, from any table."""

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from rag_sourcebias.core.completions import JudgeItem
from rag_sourcebias.core.data import FloatArray
from rag_sourcebias.core.errors import DataError, require_name
from rag_sourcebias.core.finding import Finding
from rag_sourcebias.core.texts import AnswerTexts
from rag_sourcebias.intake.objects import name_of
from rag_sourcebias.intake.tables import (
    Table,
    find_columns,
    find_ids,
    ids_of,
    names_of,
    numbers_of,
    read_table,
    require_columns,
    require_once,
    table_name,
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
    cell = _list_in(reference) if isinstance(reference, str) else reference
    parts: Sequence[str | None]
    if isinstance(cell, list | tuple):
        parts = [_text(part) for part in cell]
    else:
        whole = _text(cell)
        parts = [whole]
        if whole is not None and separator is not None:
            kept = separator == "/" and _NUMBERS.fullmatch(whole) is not None
            parts = [whole] * kept + [*whole.split(separator)]
    if None in parts:
        raise DataError(f"reference {reference!r:.80} is neither text nor a list of texts")
    texts = [part.strip() for part in parts if part and part.strip()]
    if not texts:
        raise DataError(
            f"reference {reference!r:.80} holds no text; at least one wording is needed"
        )
    return list(dict.fromkeys(texts))


def _text(cell: object) -> str | None:
    """Return text, numbers as names, nothing as empty, None for anything else."""
    missing = cell is None or cell != cell  # noqa: PLR0124 - NaN
    return "" if missing else name_of(cell)


def _list_in(cell: str) -> object:
    """Return the list that a cell holds as JSON, else the cell."""
    if cell.lstrip().startswith("["):
        with suppress(ValueError, RecursionError):
            value = json.loads(cell)
            # "[1] and more" is no JSON; "[1949]" is, but brackets may also belong to the answer
            if isinstance(value, list) and all(isinstance(part, str) for part in value):
                return value
    return cell


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
    wide = [n for n in names if n.startswith(_WIDE) and n != _WIDE]
    if not wide or find_columns(names, roles, path=path)["answer"] is not None:
        needed = [role for role in _ROLES if role != "system"]
        found = find_columns(names, roles, path=path, needed=needed)
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
    where = Path(table_name(source))
    table = read_table(source, partial(find_answer_columns, path=str(where), given=columns))
    roles: Mapping[str, Any] = table.roles
    wide = "improper" in roles
    if separator is None and roles["reference"] == "golden_answer":
        separator = "/"
    improper = table.columns.get("improper", [""] * len(table))
    rows = [
        row
        for row, cell in enumerate(improper)
        if str(cell).strip().lower() not in ("true", "1", "1.0", "yes")
    ]
    left_out = len(table) - len(rows)
    if not rows:
        raise DataError(f"{where}: all {left_out} questions are marked improper; none is left")
    if wide:  # the texts of questions may repeat, their rows do not
        ids = [str(i) for i in range(len(table))]
        systems = [column.removeprefix(_WIDE) for column in roles["answer"]] * len(rows)
    else:
        ids = names_of(table, roles["question"], role="question")
        systems = [Path(where.name.removesuffix(".gz")).stem] * len(rows)
        if roles["system"] is not None:
            systems = names_of(table, roles["system"], role="system", shown=True)
    references = [_references(table, row, separator, ids[row]) for row in rows]
    n_systems = len(roles["answer"])
    correct = np.column_stack([_verdicts(table, name) for name in roles["correct"]])
    each = [row for row in rows for _ in range(n_systems)]
    questions = tuple(ids[row] for row in each)
    answers = zip(systems, questions, strict=True)
    require_once(table, list(answers), "the answer of", "keep one row per answer", each)
    told = f" ({left_out} question{'s' * (left_out > 1)} marked improper left out)"
    return AnswerTexts(
        question_ids=questions,
        systems=tuple(systems),
        answers=tuple(_answer(table, row, name) for row in rows for name in roles["answer"]),
        references=tuple(texts for texts in references for _ in range(n_systems)),
        correct=correct[rows].ravel(),
        name=name or where.name + told * bool(left_out),
        notes=tuple(table.notes),
    )


def _references(table: Table, row: int, separator: str | None, question: str) -> tuple[str, ...]:
    cell = table.columns[str(table.roles["reference"])][row]
    try:
        return tuple(split_references(cell, separator=separator))
    except DataError as error:
        raise DataError(f"{table.where(row)}: question {question!r}: {error}") from error


def _answer(table: Table, row: int, column: str) -> str:
    cell = table.columns[column][row]
    answer = _text(cell)
    if answer is None:
        raise DataError(f"{table.where(row)}: {column} is {cell!r:.80}, which is not text")
    return answer


def _verdicts(table: Table, column: str) -> FloatArray:
    values = numbers_of(table, column, role="human verdict")
    table.refuse(
        ~(np.isnan(values) | np.isin(values, (0, 1))),
        column,
        "is no human verdict; expected true or false, yes or no, 1 or 0, or an empty cell",
    )
    return values


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
    where = table_name(source)

    def choose(names: tuple[str, ...]) -> Sequence[str]:
        require_columns(names, columns, where)
        if "improper" in find_answer_columns(names, where, given):
            raise DataError(f"{where} has one row per question; scores need one row per answer")
        return columns

    table = read_table(source, choose)
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
    name = str(path)

    def choose(names: tuple[str, ...]) -> dict[str, Any]:
        taken = {*(id or ()), *columns.values()}
        asked = {f"{role}_text": columns.get(role) for role in _ASKED}
        kept = {role: columns.get(role) for role in _KEPT}
        found = find_columns(names, asked | kept, path=name, taken=taken, needed=asked)
        return {**found, "id": find_ids(names, given=id, path=name, taken=taken)}

    table = read_table(path, choose)
    roles: Mapping[str, Any] = table.roles
    ids = [i.replace("\t", "/") for i in ids_of(table, roles["id"])]
    items = []
    for item_id, (place, row) in zip(ids, table.records(), strict=True):
        question, references, answer = (_parts(row[roles[f"{role}_text"]]) for role in _ASKED)
        for role, parts in (("question", question), ("reference", references)):
            if not "".join(parts).strip():
                raise DataError(
                    f"{place}: item {item_id!r} has no {role} (column {roles[f'{role}_text']!r})"
                )
        items.append(
            JudgeItem.correctness(
                query_id=item_id,
                doc_id="answer",
                question=question[0],
                reference=references,
                answer=" / ".join(answer),
            )
        )
    kept = {role: table.columns[roles[role]] for role in _KEPT if roles[role]}
    return items, {"id": ids, **kept}


def _parts(cell: Any) -> list[str]:  # noqa: ANN401 - of any table
    """Return the texts in a cell: a list (JSON, Parquet) of references stays several."""
    return [str(one) for one in (cell if isinstance(cell, list) else [cell]) if one is not None]
