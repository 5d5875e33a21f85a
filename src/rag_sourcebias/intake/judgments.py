"""Relevance judgments in TREC and BEIR form, and files of tags."""

import re
from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import islice
from typing import Any, cast, get_args

from rag_sourcebias.core.data import DocTags, Origin, Qrels, TagTable
from rag_sourcebias.core.errors import DataError, require_name, require_one_of
from rag_sourcebias.intake.files import PathLike, read_jsonl, read_lines
from rag_sourcebias.intake.tables import find_column, names_of, read_table

# Tag files: which source (and style, and twin) each document has.


TAG_COLUMNS = ("doc_id", "source", "style", "pair_id", "origin", "confidence")
_UNKNOWN = ("", "-", "null")
_Row = tuple[int, Mapping[str, Any]]


def read_tags(
    path: PathLike, *, doc_id: str = "doc_id", source: str = "source", style: str | None = None
) -> TagTable:
    """Read document tags from a TSV, CSV or JSON-lines file.

    Parameters
    ----------
    path : path
        Plain or ``.gz``; the form is recognised from the first line. TSV and CSV start with a
        header that holds ``doc_id`` and ``source`` and may hold ``style``, ``pair_id``,
        ``origin`` and ``confidence``, in any order; JSON lines use the same names as keys. Other
        columns are ignored. An empty value, ``-`` or ``null`` means unknown. TSV knows no
        quoting; a CSV record is one line.
    doc_id, source, style : str
        Columns that hold them under another name.

    Returns
    -------
    TagTable
        In the order of the file. Where the file has no ``origin`` column, a known source counts
        as declared.

    Raises
    ------
    DataError
        If the file is missing, empty or not UTF-8, lacks a required column, names a document
        twice, or holds an origin or confidence that is not allowed, or a source or style with
        control characters (see :func:`~rag_sourcebias.core.errors.require_name`).
    """
    line_of: dict[str, int] = {}
    items: list[tuple[str, DocTags]] = []
    own = {"doc_id": doc_id, "source": source} | ({} if style is None else {"style": style})
    for number, row in _rows(path, own):
        where = f"{path}:{number}"
        doc = row["doc_id"]
        if not isinstance(doc, str) or not doc:
            raise DataError(f"{where}: {doc_id} {doc!r} must be a non-empty string")
        if doc in line_of:
            raise DataError(
                f"{where}: document {doc!r} was tagged already in line {line_of[doc]}; "
                "keep one row per document"
            )
        line_of[doc] = number
        items.append((doc, _tags(row, where)))
    if not items:
        raise DataError(f"{path} holds no tags; expected a header with doc_id and source, and rows")
    return TagTable.from_tags(items)


def _rows(path: PathLike, own: Mapping[str, str]) -> Iterator[_Row]:
    """Yield rows under our names; ``own`` says what the file calls them."""
    lines = read_lines(path)
    first = next(lines, None)
    if first is None:
        return
    if first[1].lstrip().startswith("{"):
        for number, row in read_jsonl(path):
            for name in own.values():
                if name not in row:
                    raise DataError(
                        f"{path}:{number}: key {name!r} is missing; use null for an unknown "
                        f"source; its keys are {', '.join(row)}"
                    )
            yield number, {**row, **{name: row[theirs] for name, theirs in own.items()}}
        return

    def choose(names: tuple[str, ...]) -> tuple[str, ...]:
        missing = [name for name in own.values() if name not in names]
        if missing:
            raise DataError(
                f"{path}:{first[0]}: the header lacks {' and '.join(missing)}; found "
                f"{list(names)}, expected {' and '.join(own.values())}, optionally "
                f"{', '.join(TAG_COLUMNS[2:])}"
            )
        return names

    table = read_table(path, choose)
    for number, cells in zip(table.lines, zip(*table.columns.values(), strict=True), strict=True):
        row = dict(zip(table.names, map(str.strip, cells), strict=True))
        yield number, {**row, **{name: row[theirs] for name, theirs in own.items()}}


def clean_tag(value: object, name: str, where: str) -> str | None:
    """Return a tag without outer white space, None where it says unknown.

    Raises
    ------
    DataError
        If it is neither a string nor None.
    """
    if value is None:
        return None
    if not isinstance(value, str):
        raise DataError(f"{where}: {name} {value!r} must be a string")
    text = value.strip()
    return None if text.lower() in _UNKNOWN else text


def _tags(row: Mapping[str, Any], where: str) -> DocTags:
    source, style, pair_id = (
        clean_tag(row.get(name), name, where) for name in ("source", "style", "pair_id")
    )
    require_name(source or "", "source", where)
    require_name(style or "", "style", where)
    origin = clean_tag(row.get("origin", source and "declared"), "origin", where)
    if origin is not None:
        require_one_of(f"{where}: origin", origin, get_args(Origin))
    try:
        return DocTags(
            source=source,
            style=style,
            pair_id=pair_id,
            origin=cast("Origin | None", origin),
            confidence=_confidence(row.get("confidence"), where),
        )
    except DataError as error:
        text = str(error)
        raise DataError(text if text.startswith(where) else f"{where}: {text}") from error


def _confidence(value: object, where: str) -> float | None:
    if value is None or (isinstance(value, str) and value.strip().lower() in _UNKNOWN):
        return None
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        try:
            return float(value)
        except (ValueError, OverflowError):
            pass
    raise DataError(f"{where}: confidence {value!r:.200} is not a number in [0, 1]")


# Relevance judgments, and the BEIR form of them.


_INT32_MAX = 2**31 - 1
# Only ASCII space separates: an id may hold a no-break or an ideographic space. The byte-order
# mark is listed because a file may not start with an id that does.
_SPACE = re.compile("[ \t\n\r\x0b\x0c\x1c-\x1f\ufeff]+")


def _fields(line: str) -> list[str]:
    return line.split() if line.isascii() else [field for field in _SPACE.split(line) if field]


#: What a column of grades is called.
_GRADES = ("relevance", "grade", "rel", "label", "score", "qrel", "relevant", "judgment")


def read_qrels(path: PathLike, *, scale: float = 1) -> Qrels:
    """Read relevance judgments, four-column TREC, three-column BEIR, or a table.

    Parameters
    ----------
    path : path
        Plain or ``.gz``. TREC: ``query_id iteration doc_id grade``. BEIR: ``query-id corpus-id
        score``, without that header separated by spaces or commas. Under a header, in JSON lines
        and in Parquet columns of the usual names, in any order.
    scale : float
        Grades are multiplied by it: 2 where they are 0, .5 and 1. A grade that is no whole number
        then is refused.

    Returns
    -------
    Qrels
        Negative grades (junk pages of some TREC tracks) become 0 and are counted; a pair judged
        twice alike is kept once.

    Raises
    ------
    DataError
        If the file is missing, empty or not UTF-8, a line has another number of columns, a grade
        is not a whole number, or a pair is judged twice with different grades.
    """
    judged: dict[tuple[str, str], tuple[int, str]] = {}
    for where, query_id, doc_id, value in _qrels_rows(path):
        grade = whole_grade(value, scale, where)
        first, place = judged.setdefault((query_id, doc_id), (grade, where))
        if grade != first:
            lines = [at.replace(f"{path}:", "line ") for at in (place, where)]
            raise DataError(
                f"{path}: query {query_id!r}, document {doc_id!r} has grade {first} in {lines[0]} "
                f"and grade {grade} in {lines[1]}; keep one of them"
            )
    if not judged:
        raise DataError(
            f"{path} holds no judgments; expected lines 'query_id iteration doc_id grade' or "
            "'query-id corpus-id score'"
        )
    return Qrels.from_rows((*pair, grade) for pair, (grade, _) in judged.items())


def _qrels_rows(path: PathLike) -> Iterator[tuple[str, str, str, Any]]:
    """Give place, query id, document id and grade of each judgment."""
    if not str(path).endswith((".parquet", ".pq")):
        first = next(read_lines(path), (0, ""))[1]
        fields = _judgment(first)
        judged = bool(fields) and _is_number(fields[-1])  # a query may be called like a header
        headed = not judged and find_column(fields, "query_id", given=None, path="") is not None
        named = "\t" in first or "," in first if headed else first.startswith("{")
        if judged or not named:
            yield from _plain_judgments(path, 3 if len(fields) == 3 else 4, headed=headed)
            return
    chosen: list[str] = []

    def choose(names: tuple[str, ...]) -> list[str]:
        ids = (find_column(names, r, given=None, path=str(path)) for r in ("query_id", "doc_id"))
        grades = (name for known in _GRADES for name in names if name.lower() == known)
        found = [*ids, next(grades, None)]
        chosen.extend(name for name in found if name is not None)
        if len(chosen) < len(found):
            raise DataError(
                f"{path} has the columns {', '.join(names)}; expected query_id, doc_id and "
                "relevance, or other usual names of these"
            )
        return chosen

    table = read_table(path, choose)
    ids = (names_of(table, name, role="id") for name in chosen[:2])
    for row, (*pair, grade) in enumerate(zip(*ids, table.columns[chosen[2]], strict=True)):
        yield table.where(row), *pair, grade


def _plain_judgments(
    path: PathLike, width: int, *, headed: bool
) -> Iterator[tuple[str, str, str, str]]:
    for number, line in islice(read_lines(path), headed, None):
        fields = _judgment(line)
        if len(fields) != width:
            expected = (
                "query-id corpus-id score" if width == 3 else "query_id iteration doc_id grade"
            )
            raise DataError(
                f"{path}:{number}: expected {width} columns ({expected}), "
                f"found {len(fields)}: {line[:80]!r}"
            )
        yield f"{path}:{number}", fields[0], fields[-2], fields[-1]


def _judgment(line: str) -> list[str]:
    fields = _fields(line)
    return [field.strip() for field in line.split(",")] if len(fields) == 1 else fields


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def whole_grade(value: Any, scale: float, where: str) -> int:  # noqa: ANN401 - of any table
    """Return a grade times the scale.

    Raises
    ------
    DataError
        If that is no whole number; the message says what scale would make it one.
    """
    try:
        rounded = float(value) * scale
        if rounded.is_integer() and abs(rounded) <= _INT32_MAX:
            return int(rounded)
        grade = Fraction(str(value)) * Fraction(str(scale))
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(
            f"{where}: grade {value!r} is not a whole number; grades are 0, 1, 2, …"
        ) from error
    if grade.denominator != 1 or abs(grade) > _INT32_MAX:
        times = Fraction(str(value)).limit_denominator(100).denominator
        raise DataError(
            f"{where}: grade {value!r} is not a whole number within ± {_INT32_MAX}; multiply all "
            f"grades by {times}, as audit does with --grade-scale {times} (grade_scale={times})"
        )
    return int(grade)
