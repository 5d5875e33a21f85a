"""Answers as they stand in returned sheets, before they are un-blinded."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from rag_sourcebias.corpora.annotate import content_digest
from rag_sourcebias.errors import DataError
from rag_sourcebias.io.files import PathLike, read_json, read_lines
from rag_sourcebias.io.tables import read_table
from rag_sourcebias.types.annotations import AnnotationKey, KeyRow

__all__ = ["GivenAnswer", "given_answers"]

_FORMAT = "rag-sourcebias answers"
_TEXTS = ("query", "text_a", "text_b", "text")
_ROW_ID = re.compile(r'"row_id"\s*:')


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenAnswer:
    """One cell that an annotator could fill in, and its file and line."""

    row_id: str
    question: str
    value: object
    where: str


def given_answers(
    path: PathLike, plan: AnnotationKey, rows: Mapping[str, KeyRow]
) -> Iterator[GivenAnswer]:
    """Stream the answers of one file, empty ones included.

    Parameters
    ----------
    path : path
        ``.json`` downloaded from the page; anything else is CSV.
    plan : AnnotationKey
    rows : mapping
        Its rows by id.

    Raises
    ------
    DataError
        With file and line.
    """
    read = _from_json if Path(path).suffix.lower() == ".json" else _from_csv
    yield from read(path, plan, rows)


def _check_row(row_id: str, rows: Mapping[str, KeyRow], where: str) -> None:
    if row_id not in rows:
        raise DataError(
            f"{where}: row_id {row_id!r} is not in the key ({len(rows)} ids like "
            f"{next(iter(rows))!r}); restore it, or use the key of this sheet"
        )


def _from_csv(
    path: PathLike, plan: AnnotationKey, rows: Mapping[str, KeyRow]
) -> Iterator[GivenAnswer]:
    asked = {q.name: q for q in plan.questions}
    column_of: dict[str, str] = {}

    def choose(names: tuple[str, ...]) -> list[str]:
        column_of.update({n.split(":")[0].strip(): n for n in names if n.split(":")[0].strip()})
        lacking = [n for n in ("row_id", *asked) if n not in column_of]
        if lacking:
            raise DataError(
                f"{path}: column {lacking[0]!r} is missing from {', '.join(names)[:120]}; send "
                "back all columns as they were"
            )
        shown = [column_of[n] for n in _TEXTS if n in column_of]
        return [column_of["row_id"], *shown, *(column_of[n] for n in asked)]

    table = read_table(path, choose)
    cells = {name: table.columns[c] for name, c in column_of.items() if c in table.columns}
    for place in range(len(table)):
        where = table.where(place)
        row_id = str(cells["row_id"][place] or "").strip()
        _check_row(row_id, rows, where)
        # a query column that was empty throughout was not written
        shown = [str(cells[n][place] or "") if n in cells else "" for n in _shown(rows[row_id])]
        if content_digest(shown) != rows[row_id].digest:
            raise DataError(
                f"{where}: row {row_id!r}: its texts are not those that were sent (edited, or "
                "sorted without their row); only the answer columns may be filled in"
            )
        for name in asked:
            yield GivenAnswer(row_id=row_id, question=name, value=cells[name][place], where=where)


def _shown(row: KeyRow) -> tuple[str, ...]:
    return ("query", "text") if len(row.order) == 1 else ("query", "text_a", "text_b")


def _from_json(
    path: PathLike, plan: AnnotationKey, rows: Mapping[str, KeyRow]
) -> Iterator[GivenAnswer]:
    data = read_json(path, "the answers of an annotation page")
    if not isinstance(data, dict) or data.get("format") != _FORMAT:
        raise DataError(f"{path} was not downloaded from an annotation page")
    if data.get("sheet") != plan.sheet_id:
        raise DataError(
            f"{path} answers sheet {data.get('sheet')!r}, the key is of {plan.sheet_id!r}"
        )
    entries = data.get("answers")
    if not isinstance(entries, list):
        raise DataError(f"{path}: 'answers' is {entries!r:.60}; expected a list")
    # the page writes one entry per line
    lines = [n for n, line in read_lines(path) if _ROW_ID.search(line)]
    one_each = len(lines) == len(entries)
    for number, entry in enumerate(entries):
        where = f"{path}:{lines[number]}" if one_each else f"{path}: answer {number + 1}"
        if not isinstance(entry, dict) or not isinstance(entry.get("row_id"), str):
            raise DataError(f"{where} is {entry!r:.60}; expected an object with a row_id")
        yield from _entry(entry, plan, rows, where)


def _entry(
    entry: Mapping[str, object], plan: AnnotationKey, rows: Mapping[str, KeyRow], where: str
) -> Iterator[GivenAnswer]:
    asked = [q.name for q in plan.questions]
    row_id = str(entry["row_id"])
    _check_row(row_id, rows, where)
    for name, value in entry.items():
        if name == "row_id":
            continue
        if name not in asked:
            raise DataError(
                f"{where}: row {row_id!r} answers {name!r}, which was not asked; the sheet asked "
                f"{', '.join(asked)}"
            )
        yield GivenAnswer(row_id=row_id, question=name, value=value, where=where)
