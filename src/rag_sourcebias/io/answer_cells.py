"""Cells that hold answers and references."""

from __future__ import annotations

import json
import math

from rag_sourcebias.errors import DataError
from rag_sourcebias.io.references import split_references

__all__ = ["answer_of", "references_of"]


def answer_of(cell: object, column: str, place: str) -> str:
    """Return an answer as text; empty where there is none."""
    text = _text(cell)
    if text is None:
        raise DataError(f"{place}: {column} is {cell!r:.80}, which is not text")
    return text


def references_of(cell: object, separator: str | None, place: str) -> tuple[str, ...]:
    """Return the wordings of a reference: those of a list, or of a text with separators."""
    value = _list_in(cell) if isinstance(cell, str) else cell
    if isinstance(value, list | tuple):
        parts = [_text(part) for part in value]
        wordings: str | list[str] = [part for part in parts if part is not None]
        bad = len(wordings) < len(parts)
    else:
        text = _text(value)
        wordings, bad = text or "", text is None
    if bad:
        raise DataError(f"{place}: reference {cell!r:.80} is neither text nor a list of texts")
    try:
        return tuple(split_references(wordings, separator=separator))
    except DataError as error:
        raise DataError(f"{place}: {error}") from error


def _text(cell: object) -> str | None:
    """Return text; numbers as they are written, nothing as empty, None for anything else."""
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return ""
    if isinstance(cell, str):
        return cell
    return str(cell) if isinstance(cell, int | float) and not isinstance(cell, bool) else None


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
