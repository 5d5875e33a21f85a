"""Cells of label files as numbers."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from rag_sourcebias.errors import DataError
from rag_sourcebias.io.tables import Table
from rag_sourcebias.types.arrays import FloatArray

__all__ = ["cell_floats", "cell_grades", "cell_items", "stacked_rows", "vote_shares"]

_MOST_GRADES = 1_000  # a damaged grade must not ask for a table of its size


def _number(cell: Any, table: Table, row: int) -> float:  # noqa: ANN401
    try:
        if isinstance(cell, bool):
            raise TypeError
        return float(cell)
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(f"{table.where(row)}: {cell!r} is not a number") from error


def cell_floats(cells: Sequence[Any], table: Table) -> FloatArray:
    """Cells as numbers."""
    return np.array([_number(c, table, i) for i, c in enumerate(cells)], dtype=np.float64)


def cell_items(cell: Any, table: Table, row: int) -> Sequence[Any]:  # noqa: ANN401
    """Return the entries of a list cell."""
    if isinstance(cell, str):
        try:
            cell = (
                json.loads(cell)
                if cell.lstrip().startswith("[")
                else re.split(r"[\s|]+", cell.strip())
            )
        except (ValueError, RecursionError) as error:
            raise DataError(f"{table.where(row)}: {cell!r} is not a list of numbers") from error
    if not isinstance(cell, list) or not cell or cell == [""]:
        raise DataError(
            f"{table.where(row)}: expected a list of numbers, found {cell!r}; leave out pairs the "
            "judge gave no answer for"
        )
    return cell


def stacked_rows(rows: Sequence[Sequence[Any]], table: Table) -> FloatArray:
    """Rows of equal length as an array."""
    width = len(rows[0])
    for i, row in enumerate(rows):
        if len(row) != width:
            raise DataError(
                f"{table.where(i)}: {len(row)} probabilities where the first row has {width}"
            )
    return np.array(
        [[_number(v, table, i) for v in row] for i, row in enumerate(rows)], dtype=np.float64
    )


def cell_grades(cells: Sequence[Any], table: Table, row: int) -> list[int]:
    """Cells as whole grades."""
    values = [_number(c, table, row) for c in cells]
    for value in values:
        if not value.is_integer() or value < 0:
            raise DataError(
                f"{table.where(row)}: grade {value:g} is not a whole number of at least 0; leave "
                "out pairs the judge gave no answer for"
            )
    return [int(v) for v in values]


def vote_shares(votes: Sequence[Sequence[int]], table: Table, n_grades: int | None) -> FloatArray:
    """Votes as shares of each grade."""
    highest = [max(v) for v in votes]
    width = max(max(highest) + 1, 2) if n_grades is None else n_grades
    most = min(width, _MOST_GRADES)
    over = next((i for i, g in enumerate(highest) if g >= most), None)
    if over is not None:
        raise DataError(
            f"{table.where(over)}: grade {highest[over]} is outside the scale 0 … {most - 1}"
        )
    counts = np.zeros((len(votes), width))
    rows = np.repeat(np.arange(len(votes)), [len(v) for v in votes])
    np.add.at(counts, (rows, np.concatenate([np.asarray(v) for v in votes])), 1.0)
    shares: FloatArray = counts / counts.sum(axis=1, keepdims=True)
    return shares
