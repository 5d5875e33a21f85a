"""Relevance judgments in TREC and BEIR form, and files of tags."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast, get_args

from rag_sourcebias.core.data import DocTags, Origin, Qrels, TagTable
from rag_sourcebias.core.errors import DataError, require_name, require_one_of
from rag_sourcebias.intake.tables import read_table
from rag_sourcebias.io.files import PathLike, read_jsonl, read_lines

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


def read_qrels(path: PathLike) -> Qrels:
    """Read relevance judgments, four-column TREC or three-column BEIR.

    Parameters
    ----------
    path : path
        Plain or ``.gz``. TREC: ``query_id iteration doc_id grade``. BEIR: ``query-id corpus-id
        score``, with or without that header; after a header with tabs only tabs separate.

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
    judged: dict[tuple[str, str], tuple[int, int]] = {}
    for number, query_id, doc_id, text in _qrels_rows(path):
        grade = _grade(text, f"{path}:{number}")
        first, line = judged.setdefault((query_id, doc_id), (grade, number))
        if grade != first:
            raise DataError(
                f"{path}: query {query_id!r}, document {doc_id!r} has grade {first} in line {line} "
                f"and grade {grade} in line {number}; keep one of them"
            )
    if not judged:
        raise DataError(
            f"{path} holds no judgments; expected lines 'query_id iteration doc_id grade' or "
            "'query-id corpus-id score'"
        )
    return Qrels.from_rows((*pair, grade) for pair, (grade, _) in judged.items())


def _qrels_rows(path: PathLike) -> Iterable[tuple[int, str, str, str]]:
    """Give line number, query id, document id and grade of each judgment."""
    width = 0
    tabs_only = False
    for number, line in read_lines(path):
        fields = line.split("\t") if tabs_only else _fields(line)
        if not width:
            width = 3 if len(fields) == 3 else 4
            # A query may be called like a header, but a judgment ends with a number.
            if fields[0] in ("query-id", "query_id", "qid") and not _is_number(fields[-1]):
                tabs_only = "\t" in line
                continue
        if len(fields) != width:
            expected = (
                "query-id corpus-id score" if width == 3 else "query_id iteration doc_id grade"
            )
            raise DataError(
                f"{path}:{number}: expected {width} columns ({expected}), "
                f"found {len(fields)}: {line[:80]!r}"
            )
        yield number, fields[0], fields[-2], fields[-1]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _grade(text: str, where: str) -> int:
    try:
        value = float(text)
    except ValueError as error:
        raise DataError(f"{where}: grade {text!r} is not a whole number") from error
    if not value.is_integer() or abs(value) > _INT32_MAX:
        raise DataError(f"{where}: grade {text!r} is not a whole number within ± {_INT32_MAX}")
    return int(value)
