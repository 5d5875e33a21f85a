"""Rows of BEIR corpus and query files, checked one by one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from rag_sourcebias.errors import DataError
from rag_sourcebias.io.files import read_jsonl
from rag_sourcebias.types.names import require_name

__all__ = ["check_rows", "document_text", "metadata_of", "metadata_text", "read_rows"]


def read_rows(file: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Stream the ids and rows of a BEIR corpus or query file.

    Returns
    -------
    iterator of (str, mapping)
        ``_id``, a whole number as text, and the row, whose ``text`` is a string and whose
        ``title`` is a string, None or absent.

    Raises
    ------
    DataError
        If the file is empty or malformed, or an ``_id`` occurs twice.
    """
    return check_rows(file, read_jsonl(file))


def check_rows(
    file: Path,
    rows: Iterable[tuple[int, Mapping[str, Any]]],
    *,
    unit: Literal["line", "row"] = "line",
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Check numbered rows of a BEIR file one by one: all of it, or a part.

    Parameters
    ----------
    file : Path
        Named by errors.
    rows : iterable of (int, mapping)
    unit : {"line", "row"}
        What the numbers count.

    Yields
    ------
    tuple of (str, mapping)
        As :func:`read_rows`, which says what is checked.
    """
    colon = ":" if unit == "line" else ": row "
    line_of: dict[str, int] = {}
    for number, row in rows:
        row_id, title = row.get("_id"), row.get("title")
        if isinstance(row_id, int) and not isinstance(row_id, bool):
            row_id = str(row_id)
        # What is wrong is named below: here nothing but questions, as most rows have no fault.
        if (
            not isinstance(row_id, str)
            or not row_id
            or row_id in line_of
            or not isinstance(row.get("text"), str)
            or not (title is None or isinstance(title, str))
        ):
            raise DataError(f"{file}{colon}{number}: {_fault(row, row_id, line_of, unit)}")
        line_of[row_id] = number
        if "metadata" in row:
            _check_names(row, f"{file}{colon}{number}")
        yield row_id, row
    if not line_of:
        raise DataError(f"{file} is empty; expected one JSON object with _id and text per line")


def _fault(row: Mapping[str, Any], row_id: object, line_of: Mapping[str, int], unit: str) -> str:
    if not isinstance(row_id, str) or not row_id:
        return f"_id {row_id!r} must be a non-empty string; keys are {list(row)}"
    if row_id in line_of:
        return (
            f"_id {row_id!r} was used already in {unit} {line_of[row_id]}; "
            "each row needs its own _id"
        )
    if not isinstance(row.get("text"), str):
        return f"text of _id {row_id!r} must be a string; keys are {list(row)}"
    return f"title of _id {row_id!r} must be a string"


def _check_names(row: Mapping[str, Any], where: str) -> None:
    metadata = row["metadata"]
    if not isinstance(metadata, dict):
        return
    style, source = metadata.get("style"), metadata.get("source")
    if isinstance(style, str) and not style.isprintable() and style.strip():
        require_name(style, "style", where)
    # elsewhere the key often holds what is no tag, and is not read as one
    if isinstance(source, str) and not source.isprintable() and source.startswith("llm:"):
        require_name(source, "source", where)


def document_text(row: Mapping[str, Any], *, titles: bool) -> str:
    """Return the text to index: the title, if wanted, a space, and the text, stripped."""
    title = (row.get("title") or "") if titles else ""
    return f"{title} {row['text']}".strip()


def metadata_of(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the metadata of a row, empty if there is none."""
    metadata = row.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def metadata_text(row: Mapping[str, Any], key: str) -> str | None:
    """Return a metadata value that is a non-empty string, else None."""
    value = metadata_of(row).get(key)
    return value if isinstance(value, str) and value.strip() else None
