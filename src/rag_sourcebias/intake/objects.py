"""What programs hold, frames of any library, rows, columns and results, as columns."""

import math
import os
from collections.abc import Iterable, Mapping
from numbers import Number
from pathlib import Path
from types import NoneType
from typing import Any
from uuid import UUID

import numpy as np

from rag_sourcebias.core.errors import DataError

# Frames of any library.


def _frame(value: Any) -> Any:  # noqa: ANN401 - a frame of narwhals, or None
    """Return a frame of any library as narwhals sees it, None for anything else."""
    # narwhals is loaded for what may be a frame alone; a lazy one warns when asked for `columns`
    if not hasattr(value, "collect_schema") and not hasattr(value, "columns"):
        return None
    import narwhals as nw

    try:
        frame = nw.from_native(value, pass_through=True)
    except nw.exceptions.NarwhalsError as error:
        raise DataError(f"a frame cannot be read: {error}") from error
    return frame if isinstance(frame, nw.DataFrame | nw.LazyFrame) else None


def is_frame(value: object) -> bool:
    """Whether a value is a table of pandas, polars, pyarrow or another library."""
    return _frame(value) is not None


def names_in(value: Any) -> list[str]:  # noqa: ANN401
    """Return the names of a frame's columns, or of the first of rows."""
    frame = _frame(value)
    return list(map(str, _row(value[0]) if frame is None else frame.collect_schema().names()))


# Keys under which deepeval and pandas keep rows.
_ROWS_AT = ("test_results", "testCases", "data")
_METRICS_AT = ("metrics_data", "metricsData")


def columns_of(value: Any, what: str) -> dict[str, list[Any]]:  # noqa: ANN401
    """Return the columns of a table that a program holds; missing is None.

    Parameters
    ----------
    value : frame, list of dicts, dict of lists, result of ragas or deepeval
        Or what pandas and deepeval write as JSON. Of deepeval's results, each metric is a column.

    Raises
    ------
    DataError
        If it is none of these.
    """
    if _is_dataset(value):
        value = value.to_dict() if hasattr(value, "to_dict") else list(value)
    elif hasattr(value, "model_dump"):
        value = value.model_dump()
    elif hasattr(value, "to_pandas") and not is_frame(value):
        value = value.to_pandas()
    rows = _rows_in(value)
    if (frame := _frame(value)) is not None:
        series = frame.lazy().collect().iter_columns()
        columns = {one.name: one.to_list() for one in series}  # of pandas: without boxing each cell
    elif rows is not None:
        columns = _of_rows(rows, what)
    elif holds_table(value):
        columns = {name: _cells(column) for name, column in value.items()}
    else:
        raise DataError(f"{what}: {a(value)} is no table; give a frame, a list of dicts or a path")
    if len({len(column) for column in columns.values()}) > 1:
        raise DataError(f"{what}: columns differ in length")
    return {
        str(name): plain_cells(cells, f"{what}: column {name!r}") for name, cells in columns.items()
    }


def _is_dataset(value: object) -> bool:
    """Whether a value is a Dataset of the library datasets, in memory or streamed."""
    return type(value).__module__.partition(".")[0] == "datasets" and hasattr(value, "column_names")


def of_split(value: Any, split: str) -> Any:  # noqa: ANN401
    """Return the split of what holds one Dataset for each, or the only one; else the value."""
    if isinstance(value, Mapping) and value and all(map(_is_dataset, value.values())):
        return value.get(split, next(iter(value.values())))
    return value


def _of_rows(rows: list[Any], what: str) -> dict[str, list[Any]]:
    if not rows:
        raise DataError(f"{what}: an empty list; at least one record is needed")
    records = list(map(_row, rows))
    for number, row in enumerate(records, start=1):
        if not isinstance(row, Mapping):
            raise DataError(f"{what}: record {number} is {row!r:.80}; expected an object")
    return columns_of_rows(map(_with_metrics, records))


def columns_of_rows(rows: Iterable[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Return the columns of all rows, each of which may lack some (an unlabelled item a label).

    Rows are not kept, because an object takes many times the memory of its line.
    """
    columns: dict[str, list[Any]] = {}
    for number, row in enumerate(rows):
        for name in row:
            if name not in columns:
                columns[name] = [None] * number
        for name, cells in columns.items():
            cells.append(row.get(name))
    return columns


def _row(row: Any) -> Any:  # noqa: ANN401
    """Return a named tuple, as ir_measures reads runs, as a mapping; others as they are."""
    return row._asdict() if hasattr(row, "_asdict") else row


def holds_table(value: object) -> bool:
    """Whether a dictionary holds a whole table: rows under a usual key, or columns."""
    if not isinstance(value, Mapping) or not value:
        return False
    cells = value.values()
    return (
        _rows_in(value) is not None
        or all(map(is_column, cells))
        or all(isinstance(cell, Mapping) for cell in cells)
    )


def _rows_in(value: object) -> list[Any] | None:
    if isinstance(value, Mapping):
        return next((list(value[key]) for key in _ROWS_AT if is_rows(value.get(key))), None)
    return list(value) if isinstance(value, list | tuple) else None


def _with_metrics(row: Mapping[Any, Any]) -> Mapping[Any, Any]:
    """Return a row with a cell for each of deepeval's metrics in it."""
    key = next((key for key in _METRICS_AT if is_rows(row.get(key))), None)
    if key is None:
        return row
    scores = {str(metric.get("name")): metric.get("score") for metric in row[key]}
    return {name: cell for name, cell in row.items() if name != key} | scores


def _cells(column: Any) -> list[Any]:  # noqa: ANN401 - a column of any library
    if isinstance(column, Mapping):
        return list(column.values())
    return column.tolist() if isinstance(column, np.ndarray) else list(column)


def plain_cells(cells: list[Any], where: str) -> list[Any]:
    """Return cells as JSON would hold them, None where one is NaN or says that it is missing."""
    kinds = {*map(type, cells)}
    if kinds <= {str, NoneType}:
        return cells
    if kinds <= {str, int, float, bool, NoneType}:
        return [None if cell != cell else cell for cell in cells]  # noqa: PLR0124 - NaN
    try:
        return list(map(_plain, cells))
    except RecursionError as error:
        raise DataError(
            f"{where} holds lists in lists, too deep to be read; expected numbers or texts"
        ) from error


def _plain(cell: Any) -> Any:  # noqa: ANN401 - of any table
    if isinstance(cell, np.generic | np.ndarray):
        cell = cell.tolist()
    if isinstance(cell, list | dict):
        repr(cell)  # it will be in messages: as deep as that can be shown
        return cell
    try:
        missing = cell is None or bool(cell != cell)  # noqa: PLR0124 - NaN is missing
    except TypeError:  # pandas.NA says of itself neither
        missing = True
    # else a date, a Decimal, a category
    plain = cell if isinstance(cell, bool | int | float | str) else str(cell)
    return None if missing else plain


def name_of(value: object) -> str | None:
    """Return an id or another name as text however it was typed; None for what is none.

    A whole number that is a fraction loses its ".0".
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, float | np.floating):
        if not math.isfinite(value):
            return None
        value = int(value) if float(value).is_integer() else value
    return str(value) if isinstance(value, str | Number | UUID) else None


def is_rows(value: Any) -> bool:  # noqa: ANN401
    """Whether a value is a list of dictionaries or named tuples."""
    if not isinstance(value, list | tuple) or not value:
        return False
    return all(isinstance(_row(row), Mapping) for row in value)


def is_column(value: object) -> bool:
    """Whether a value holds the cells of one column."""
    return isinstance(value, (list, tuple, np.ndarray)) or hasattr(value, "to_list")


def a(value: object) -> str:
    """Say what a value is, with its article, in messages."""
    if value is None:
        return "None"
    if isinstance(value, type):
        return f"the class {value.__qualname__}"
    if isinstance(value, str):
        return f"the text {value[:60]!r}"
    kind = type(value)
    name = kind.__qualname__ if kind.__module__ == "builtins" else (
        f"{kind.__module__.partition('.')[0]} {kind.__qualname__}")  # fmt: skip
    return f"an {name}" if name[0].lower() in "aeiou" else f"a {name}"


def is_path(value: object) -> bool:
    """Whether a value is the path of something that exists."""
    if isinstance(value, os.PathLike):
        return True
    try:
        return isinstance(value, str) and Path(value).exists()
    except OSError:  # a text that is too long for a name
        return False
