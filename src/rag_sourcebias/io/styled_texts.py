"""Queries and documents in several writing styles, from a file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from rag_sourcebias.errors import DataError
from rag_sourcebias.io.cells import names_of
from rag_sourcebias.io.files import PathLike, read_jsonl, read_lines
from rag_sourcebias.io.styled_versions import Version, VersionTable
from rag_sourcebias.io.tables import read_table
from rag_sourcebias.types import StyledTexts
from rag_sourcebias.types.names import require_name

__all__ = ["read_styled_texts"]

_COLUMNS = ("query_id", "side", "style", "text")
_SIDES = {"query": "query", "document": "document", "doc": "document"}
_LAYOUTS = (
    "JSON lines with query_id, query, query_styles, human and doc_styles, or a table with the "
    "columns query_id, side (query or document), style and text"
)


def read_styled_texts(path: PathLike, *, name: str | None = None) -> StyledTexts:
    """Read queries and their documents, both in several styles.

    Parameters
    ----------
    path : path
        Either JSON lines, one record per query::

            {"query_id": "q1", "doc_id": "d1", "query": "…", "query_styles": {"formal": "…"},
             "human": "…", "doc_styles": {"formal": "…"}}

        ``doc_id`` and ``query_styles`` may lack. ``query`` becomes the query style ``original``
        and ``human`` the document style ``human``. Or a table (CSV, TSV, JSON lines, Parquet)
        with ``query_id``, ``side`` (``query`` or ``document``), ``style``, ``text`` and optionally
        ``doc_id``, one row per version. Text files may be ``.gz``.
    name : str or None
        Of the data; the file name by default.

    Returns
    -------
    StyledTexts
        Queries and styles in the order of the file, but ``original`` and ``human`` first. A
        version that is null, empty or not there is None.

    Raises
    ------
    DataError
        With file and line: neither layout, an id or a version twice, a value that is not text, a
        column or the text of every version missing.
    """
    where = os.fspath(path)
    records = _is_records(path)
    table = VersionTable(where)
    for row in _records(path) if records else _rows(path):
        table.add(row)
    try:
        return table.texts(name or Path(path).name)
    except DataError as error:
        raise DataError(f"{where}: {error}") from error


def _is_records(path: PathLike) -> bool:
    if os.fspath(path).endswith((".parquet", ".pq")):
        return False
    number, first = next(read_lines(path), (0, ""))
    if not number:
        raise DataError(f"{os.fspath(path)} is empty; expected {_LAYOUTS}")
    if not first.lstrip().startswith("{"):
        return False
    _, record = next(read_jsonl(path))
    return not {"side", "style", "text"} <= set(record)


def _records(path: PathLike) -> Iterable[Version]:
    lines: dict[str, int] = {}
    for number, record in read_jsonl(path):
        place = f"{os.fspath(path)}:{number}"
        lacking = [key for key in ("query_id", "query") if record.get(key) is None]
        if lacking or not ("human" in record or "doc_styles" in record):
            told = ", ".join(lacking) or "human and doc_styles"
            raise DataError(
                f"{place}: the record has no {told}, its keys are {', '.join(record)}; expected "
                f"{_LAYOUTS}"
            )
        query_id = _identifier(record["query_id"], "query_id", place)
        if query_id in lines:
            raise DataError(
                f"{place}: query {query_id!r} stands in line {lines[query_id]} already; keep one "
                "record per query"
            )
        lines[query_id] = number
        doc_id = record.get("doc_id")
        if doc_id is not None:
            doc_id = _identifier(doc_id, "doc_id", place)
        for side, original, key, styles in (
            ("query", "original", "query", "query_styles"),
            ("document", "human", "human", "doc_styles"),
        ):
            text = _text(record.get(key), key, place)
            yield Version(query_id, doc_id, side, original, text, place)
            for name, value in _mapping(record.get(styles), styles, place).items():
                style = _identifier(name, f"style of {styles}", place)
                require_name(style, f"style of {styles}", place)
                text = _text(value, f"{styles}[{name!r}]", place)
                yield Version(query_id, doc_id, side, style, text, place)


def _mapping(value: object, key: str, place: str) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise DataError(f"{place}: {key} is {value!r:.80}; expected an object of style and text")
    return value


def _identifier(value: object, key: str, place: str) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int) or not str(value).strip():
        raise DataError(f"{place}: {key} {value!r:.80} must be a non-empty text or whole number")
    return str(value).strip()


def _text(value: object, what: str, place: str) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise DataError(
            f"{place}: {what} is {value!r:.80}, which is not text; leave a version that does not "
            "exist out, or write null"
        )
    return value if value.strip() else None


def _rows(path: PathLike) -> Iterable[Version]:
    where = os.fspath(path)

    def choose(names: tuple[str, ...]) -> list[str]:
        lacking = [column for column in _COLUMNS if column not in names]
        if lacking:
            raise DataError(
                f"{where} has no column {', '.join(lacking)}; its columns are "
                f"{', '.join(names)}; expected {_LAYOUTS}"
            )
        return [*_COLUMNS, *(["doc_id"] if "doc_id" in names else [])]

    table = read_table(path, choose)
    queries, sides, styles = (names_of(table, c, role=c, shown=c == "style") for c in _COLUMNS[:3])
    told = table.columns.get("doc_id", [None] * len(table))
    for i, value in enumerate(table.columns["text"]):
        place = table.where(i)
        side = _SIDES.get(sides[i].lower())
        if side is None:
            raise DataError(f"{place}: side {sides[i]!r} is neither query nor document")
        # often only told where the text is the document's
        doc_id = None if told[i] in (None, "") else _identifier(told[i], "doc_id", place)
        text = _text(value, "text", place)
        yield Version(queries[i], doc_id, side, styles[i], text, place)
