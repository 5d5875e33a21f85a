"""Write tag files."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, cast, get_args

from rag_sourcebias.core.data import DocTags, Origin, TagTable
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.core.values import require_name
from rag_sourcebias.io.files import PathLike, jsonl_text, read_jsonl, read_lines, write_atomic

# Tag files: which source (and style, and twin) each document has.


TAG_COLUMNS = ("doc_id", "source", "style", "pair_id", "origin", "confidence")
_UNKNOWN = ("", "-", "null")
_ORIGINS = get_args(Origin)
_Row = tuple[int, Mapping[str, Any]]


def read_tags(path: PathLike) -> TagTable:
    """Read document tags from a TSV, CSV or JSON-lines file.

    Parameters
    ----------
    path : path
        Plain or ``.gz``; the form is recognised from the first line. TSV and CSV start with a
        header that holds ``doc_id`` and ``source`` and may hold ``style``, ``pair_id``,
        ``origin`` and ``confidence``, in any order; JSON lines use the same names as keys. Other
        columns are ignored. An empty value, ``-`` or ``null`` means unknown. TSV knows no
        quoting; a CSV record is one line.

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
        control characters (see :func:`~rag_sourcebias.core.values.require_name`).
    """
    line_of: dict[str, int] = {}
    items: list[tuple[str, DocTags]] = []
    for number, row in _rows(path):
        where = f"{path}:{number}"
        doc_id = row["doc_id"]
        if not isinstance(doc_id, str) or not doc_id:
            raise DataError(f"{where}: doc_id {doc_id!r} must be a non-empty string")
        if doc_id in line_of:
            raise DataError(
                f"{where}: document {doc_id!r} was tagged already in line {line_of[doc_id]}; "
                "keep one row per document"
            )
        line_of[doc_id] = number
        items.append((doc_id, _tags(row, where)))
    if not items:
        raise DataError(f"{path} holds no tags; expected a header with doc_id and source, and rows")
    return TagTable.from_tags(items)


def _rows(path: PathLike) -> Iterator[_Row]:
    lines = read_lines(path)
    first = next(lines, None)
    if first is None:
        return
    if first[1].lstrip().startswith("{"):
        yield from _json_rows(path)
        return
    split = _split_tsv if "\t" in first[1] else _split_csv
    header = split(first[1], f"{path}:{first[0]}")
    missing = [name for name in ("doc_id", "source") if name not in header]
    if missing:
        raise DataError(
            f"{path}:{first[0]}: the header lacks {' and '.join(missing)}; found {header}, "
            f"expected doc_id and source, optionally {', '.join(TAG_COLUMNS[2:])}"
        )
    for number, line in lines:
        cells = split(line, f"{path}:{number}")
        if len(cells) != len(header):
            raise DataError(
                f"{path}:{number}: expected {len(header)} columns as in the header, "
                f"found {len(cells)}: {line[:80]!r}"
            )
        yield number, dict(zip(header, cells, strict=True))


def _json_rows(path: PathLike) -> Iterator[_Row]:
    for number, row in read_jsonl(path):
        for name in ("doc_id", "source"):
            if name not in row:
                raise DataError(
                    f"{path}:{number}: key {name!r} is missing; use null for an unknown source"
                )
        yield number, row


def _split_tsv(line: str, where: str) -> list[str]:  # noqa: ARG001 - same shape as _split_csv
    return [cell.strip() for cell in line.split("\t")]


def _split_csv(line: str, where: str) -> list[str]:
    try:
        return [cell.strip() for cell in next(csv.reader([line], strict=True))]
    except csv.Error as error:
        raise DataError(
            f"{where}: not a CSV record on one line ({error}): {line[:80]!r}"
        ) from error


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
    get = row.get
    source, style = (
        clean_tag(get("source"), "source", where),
        clean_tag(get("style"), "style", where),
    )
    pair_id = clean_tag(get("pair_id"), "pair_id", where)
    if source is not None:
        require_name(source, "source", where)
    if style is not None:
        require_name(style, "style", where)
    origin = clean_tag(row.get("origin"), "origin", where)
    if "origin" not in row and source is not None:
        origin = "declared"
    if origin is not None and origin not in _ORIGINS:
        raise DataError(f"{where}: origin {origin!r} is not one of {', '.join(_ORIGINS)}")
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


# Write tag files.


def write_tags(tags: TagTable, path: PathLike) -> None:
    """Write document tags so that :func:`read_tags` restores them.

    Parameters
    ----------
    tags : TagTable
    path : path
        The name decides: ``.tsv``, ``.csv`` or ``.jsonl``, each also with ``.gz``.

    Raises
    ------
    DataError
        If the name has another ending, or a value cannot be carried: one that would be read as
        unknown or has outer white space, or, outside JSON lines, a line break (or a tab in TSV).
    """
    name = Path(path).name.removesuffix(".gz")
    ending = Path(name).suffix
    records = ((doc_id, tags.get(doc_id)) for doc_id in tags.doc_ids)
    rows = (_record(doc_id, t, exact_id=ending == ".jsonl") for doc_id, t in records)
    if ending == ".jsonl":
        write_atomic(path, jsonl_text(dict(zip(TAG_COLUMNS, row, strict=True)) for row in rows))
    elif ending in (".tsv", ".csv"):
        join = _join_tsv if ending == ".tsv" else _join_csv
        write_atomic(path, (join(row) for row in chain([TAG_COLUMNS], rows)))
    else:
        raise DataError(f"{path}: tags are written as .tsv, .csv or .jsonl (or those with .gz)")


def _record(doc_id: str, tags: DocTags, *, exact_id: bool) -> tuple[str | float | None, ...]:
    if not doc_id or (not exact_id and doc_id != doc_id.strip()):
        raise DataError(f"document id {doc_id!r} is empty or has outer white space; use .jsonl")
    texts = (tags.source, tags.style, tags.pair_id)
    for value in texts:
        if value is not None and clean_tag(value, "tag", "") != value:
            raise DataError(f"document {doc_id!r}: tag {value!r} would not be read back as it is")
    for name, value in (("source", tags.source), ("style", tags.style)):
        require_name(value or "", name, f"document {doc_id!r}")
    return doc_id, *texts, tags.origin, tags.confidence


def _cells(row: Sequence[object]) -> list[str]:
    cells = ["" if value is None else str(value) for value in row]
    bad = next((c for c in cells if "\n" in c or "\r" in c), None)
    if bad is not None:
        raise DataError(f"{bad!r} holds a line break; write the tags as .jsonl")
    return cells


def _join_tsv(row: Sequence[object]) -> str:
    cells = _cells(row)
    bad = next((c for c in cells if "\t" in c), None)
    if bad is not None:
        raise DataError(f"{bad!r} holds a tab; write the tags as .csv or .jsonl")
    return "\t".join(cells) + "\n"


def _join_csv(row: Sequence[object]) -> str:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerow(_cells(row))
    return buffer.getvalue()
