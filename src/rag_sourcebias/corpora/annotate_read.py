"""Filled annotation sheets, checked and un-blinded with their key."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np

from rag_sourcebias.corpora.annotate_answers import GivenAnswer, given_answers
from rag_sourcebias.errors import DataError
from rag_sourcebias.io.damage import sound
from rag_sourcebias.io.files import PathLike, read_json
from rag_sourcebias.types.annotations import (
    AnnotationKey,
    AnnotationQuestion,
    Annotations,
    AnswerTable,
)

__all__ = ["read_annotation_key", "read_annotations"]


def read_annotation_key(path: PathLike) -> AnnotationKey:
    """Read a key.

    Raises
    ------
    DataError
        If the file is missing or is no key.
    UnsupportedVersionError
        If another version wrote it.
    """
    data = read_json(path, "the key of annotation sheets")
    if not isinstance(data, dict) or "sheet_id" not in data or "rows" not in data:
        raise DataError(f"{path} is not the key of annotation sheets")
    with sound(path, "a complete key of annotation sheets", names_file=False):
        key = AnnotationKey.from_dict(data)
        for row in key.rows:
            places = ((row.unit, len(key.units)), (row.annotator, len(key.annotators)))
            if not all(0 <= place < n for place, n in places):
                raise DataError(f"row {row.row_id!r} is of a unit or an annotator it does not name")
            if sorted(row.order) != list(range(len(key.units[row.unit].sources))):
                raise DataError(f"row {row.row_id!r} shows texts {row.order} of its unit")
        return key


def read_annotations(
    paths: PathLike | Sequence[PathLike], *, key: PathLike | AnnotationKey
) -> Annotations:
    """Read filled sheets, in any mixture of CSV and JSON, and un-blind them.

    Row ids tell whose sheet it is, so files may be renamed. Rows may come in any order, with other
    columns beside them. The same answer twice is one answer.

    Parameters
    ----------
    paths : path or sequence of paths
        ``.json`` downloaded from the page; anything else is CSV.
    key : path or AnnotationKey

    Returns
    -------
    Annotations
        Rows that are missing or empty, and sheets that did not come back, are unanswered.

    Raises
    ------
    DataError
        Naming file and line: a row id is unknown, an answer is not one of those offered, two
        answers to the same question differ, or a shown text was edited.
    UnsupportedVersionError
        If another version wrote the key.
    """
    plan = key if isinstance(key, AnnotationKey) else read_annotation_key(key)
    files = [paths] if isinstance(paths, str) or not isinstance(paths, Sequence) else list(paths)
    if not files:
        raise DataError("there are no filled sheets to read")
    rows = {row.row_id: row for row in plan.rows}
    questions = {q.name: q for q in plan.questions}
    found: dict[tuple[str, str], tuple[str, str]] = {}
    for path in files:
        for answer in given_answers(path, plan, rows):
            value = _offered(answer, questions[answer.question])
            if value is None:
                continue
            place = (answer.row_id, answer.question)
            earlier = found.setdefault(place, (value, answer.where))
            if earlier[0] != value:
                raise DataError(
                    f"{answer.where}: row {answer.row_id!r}: {answer.question} is {value!r} here "
                    f"and {earlier[0]!r} at {earlier[1]}; keep one"
                )
    values = {place: value for place, (value, _) in found.items()}
    return Annotations(
        sheet_id=plan.sheet_id,
        annotators=plan.annotators,
        units=plan.units,
        tables=tuple(_table(plan, question, values) for question in plan.questions),
    )


def _table(
    plan: AnnotationKey, question: AnnotationQuestion, values: Mapping[tuple[str, str], str]
) -> AnswerTable:
    named = ("A", "B") if question.prefers else ()
    others = [a for a in question.answers if a not in named]
    sources = dict.fromkeys(s for unit in plan.units for s in unit.sources) if named else {}
    categories = (*sources, *others)
    code_of = {name: code for code, name in enumerate(categories)}
    codes = np.full((len(plan.units), len(plan.annotators)), -2, dtype=np.int64)
    chosen = {"A": 0, "B": 0}
    for row in plan.rows:
        value = values.get((row.row_id, question.name))
        if value is not None and value in named:
            chosen[value] += 1
            value = plan.units[row.unit].sources[row.order[named.index(value)]]
        codes[row.unit, row.annotator] = -1 if value is None else code_of[value]
    return AnswerTable(
        question=question.name,
        categories=categories,
        codes=codes,
        n_first=chosen["A"],
        n_second=chosen["B"],
    )


def _offered(answer: GivenAnswer, question: AnnotationQuestion) -> str | None:
    """Answer as the question spells it; None for an empty one."""
    text = "" if answer.value is None else str(answer.value).strip().lstrip("'")
    if not text:
        return None
    whole = re.fullmatch(r"([0-9]+)[.,]0*", text)  # spreadsheets write 2 as 2.0
    spelt = (text if whole is None else whole[1]).casefold()
    for value, label in zip(question.answers, question.labels, strict=True):
        if spelt in (value.casefold(), label.casefold()):
            return value
    raise DataError(
        f"{answer.where}: row {answer.row_id!r}: {question.name} {text[:60]!r} is not an answer; "
        f"{', '.join(map(repr, question.answers))} or nothing is expected"
    )
