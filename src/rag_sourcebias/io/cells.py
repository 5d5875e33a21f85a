"""Cells of judged data as numbers and names."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError
from rag_sourcebias.io.tables import Table
from rag_sourcebias.types.names import require_name

__all__ = ["ids_of", "names_of", "numbers_of"]

_LARGEST = sys.float_info.max
_NUMBERS = {float, int, type(None)}
_MISSING = frozenset({"", "-", "na", "n/a", "nan", "null", "none"})
_WORDS = {
    **dict.fromkeys(("true", "yes", "correct", "pass", "passed", "acceptable"), 1.0),
    **dict.fromkeys(("false", "no", "incorrect", "fail", "failed", "unacceptable"), 0.0),
}


def numbers_of(table: Table, column: str, *, role: str, ids: list[str]) -> npt.NDArray[np.float64]:
    """Read a column as numbers; NaN where a cell is missing.

    Parameters
    ----------
    role : str
        What the value is, for messages: ``"human label"`` or ``"judge value"``.
    ids : list of str
        Ids of the rows, for messages.

    Raises
    ------
    DataError
        Naming file, line, item and value: a cell is not a number, or words (yes, no, true, …)
        stand among numbers other than 0 and 1.
    """
    cells = table.columns[column]
    numbers = _numbers(cells)
    if numbers is not None:
        return numbers
    values = np.empty(len(cells))
    known: dict[str, float] = {}
    first_word = -1
    for i, cell in enumerate(cells):
        value = known.get(cell) if isinstance(cell, str) else None
        if value is None:
            value, word = _number(cell)
            if value is None:
                raise DataError(
                    f"{table.where(i)}: {role} {cell!r} of item {ids[i]!r} (column {column!r}) is "
                    "not a finite number; numbers, true/false, yes/no, correct/incorrect or an "
                    "empty cell are accepted"
                )
            if word and first_word < 0:
                first_word = i
            if isinstance(cell, str):
                known[cell] = value
        values[i] = value
    if first_word >= 0:
        other = np.flatnonzero(~(np.isnan(values) | (values == 0) | (values == 1)))
        if len(other):
            raise DataError(
                f"{table.where(first_word)}: {role} {cells[first_word]!r} of item "
                f"{ids[first_word]!r} in a column that also holds {cells[other[0]]!r} "
                f"({table.where(int(other[0]))}); use words or numbers, not both"
            )
    return values


def _numbers(cells: Sequence[Any]) -> npt.NDArray[np.float64] | None:
    """Return cells that are all numbers or missing, as of Parquet; None if one is anything else."""
    if not set(map(type, cells)) <= _NUMBERS:
        return None
    try:
        values = np.array(cells, dtype=np.float64)  # None becomes NaN
    except OverflowError:
        return None
    return None if np.isinf(values).any() else values


def _number(cell: Any) -> tuple[float | None, bool]:  # noqa: ANN401 - whatever the file holds
    """Return the number (NaN: missing, None: not a number) and whether it was a word."""
    if cell is None:
        return math.nan, False
    if isinstance(cell, bool):
        return float(cell), True
    if isinstance(cell, int | float):
        return (float(cell) if not abs(cell) > _LARGEST else None), False
    if isinstance(cell, str):
        text = cell.strip().lower()
        if text in _MISSING:
            return math.nan, False
        if text in _WORDS:
            return _WORDS[text], True
        try:
            value = math.inf if "_" in text else float(text)  # Python reads 1_0 as 10
        except ValueError:
            return None, False
        return (value if math.isfinite(value) else None), False
    try:
        return _number(float(cell))  # such as Decimal
    except (TypeError, ValueError, OverflowError):
        return None, False


def names_of(table: Table, column: str, *, role: str, shown: bool = False) -> list[str]:
    """Read a column as non-empty names; numbers and booleans become text.

    Parameters
    ----------
    shown : bool
        Refuse control characters: what reports are about has a name, where ids may be any text.

    Raises
    ------
    DataError
        Naming file and line of an empty cell or one that is no name.
    """
    names: list[str] = []
    for i, cell in enumerate(table.columns[column]):
        if isinstance(cell, str):
            name = cell.strip()
        elif isinstance(cell, bool | int) or (isinstance(cell, float) and math.isfinite(cell)):
            name = str(int(cell)) if not isinstance(cell, bool) and cell == int(cell) else str(cell)
        else:
            name = ""
        if not name:
            raise DataError(
                f"{table.where(i)}: {role} {cell!r} (column {column!r}) must be a non-empty name"
            )
        names.append(name)
    if shown:
        for i, name in enumerate(names):
            if not name.isprintable():
                require_name(name, role, table.where(i))
    return names


def ids_of(table: Table, columns: tuple[str, ...]) -> list[str]:
    """Read the item ids; several columns are joined by a tab, none gives row numbers from 1.

    Raises
    ------
    DataError
        If an id is empty or repeated, naming both lines.
    """
    if not columns:
        return [str(i) for i in range(1, len(table) + 1)]
    parts = [names_of(table, name, role="id") for name in columns]
    ids = parts[0] if len(parts) == 1 else ["\t".join(p) for p in zip(*parts, strict=True)]
    if len(set(ids)) < len(ids):
        first: dict[str, int] = {}
        for i, name in enumerate(ids):
            if first.setdefault(name, i) != i:
                raise DataError(
                    f"{table.where(i)}: item {name!r} occurs already in {table.where(first[name])};"
                    " keep one row per item, the mean of several labels"
                )
    return ids
