"""Tables of any form as columns: CSV, TSV, JSON lines, Parquet."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from rag_sourcebias.errors import DataError
from rag_sourcebias.io.files import PathLike, read_jsonl, read_lines
from rag_sourcebias.io.parquet import open_parquet, parquet_columns

__all__ = ["Table", "read_table"]

_LARGEST_CELL = 2**31 - 1
_RECORDS = 256
_PARQUET = (".parquet", ".pq")
Chooser = Callable[[tuple[str, ...]], Sequence[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Chosen columns of a file.

    Parameters
    ----------
    path : str
    names : tuple of str
        All columns of the file.
    lines : sequence of int
        Line of each row; for Parquet the number of the row, from 1.
    columns : dict of str to list
        The chosen ones. Text in CSV and TSV; what the file holds in JSON lines and Parquet, None
        where a JSON row lacks the key.
    """

    path: str
    names: tuple[str, ...]
    lines: Sequence[int]
    columns: dict[str, list[Any]]

    def __len__(self) -> int:
        return len(self.lines)

    def where(self, row: int) -> str:
        """Name file and line of a row."""
        kind = " row " if self.path.endswith(_PARQUET) else ""
        return f"{self.path}:{kind}{self.lines[row]}"


def read_table(path: PathLike, choose: Chooser) -> Table:
    """Read some columns of a table.

    Parameters
    ----------
    path : path
        ``.parquet`` or ``.pq`` is Parquet (with pyarrow). Anything else is text, plain or ``.gz``:
        JSON lines if it starts with ``{``, TSV if the first line has a tab (no quoting, one
        record per line), else CSV (a quoted cell may span lines; ``;`` separates where the header
        has no comma).
    choose : callable
        Gets the names of all columns and returns those to read; it raises if one is lacking.

    Raises
    ------
    DataError
        If the file is missing, empty, malformed, or has two columns of the same name.
    MissingExtraError
        If a Parquet file is given and pyarrow is not installed.
    """
    name = os.fspath(path)
    if name.endswith(_PARQUET):
        return _read_parquet(Path(path), choose)
    first = next(read_lines(path), None)
    if first is None:
        raise DataError(f"{name} is empty; expected a header and rows, or JSON lines")
    if first[1].lstrip().startswith("{"):
        return _read_json(path, choose)
    if first[1].lstrip().startswith("["):
        raise DataError(
            f"{name}:{first[0]}: this looks like a JSON array; write one JSON object per line"
        )
    records = _tsv(path) if "\t" in first[1] else _csv(path, first[1])
    line, header = next(records)
    names = _unique_names([cell.strip() for cell in header], f"{name}:{line}")
    index = {n: names.index(n) for n in choose(names)}
    columns: dict[str, list[Any]] = {n: [] for n in index}
    targets = [(columns[n].append, i) for n, i in index.items()]
    lines: list[int] = []
    width = len(names)
    for line, cells in records:
        if len(cells) != width:
            raise DataError(
                f"{name}:{line}: expected {width} columns as in the header, found {len(cells)}: "
                f"{str(cells)[:80]}"
            )
        lines.append(line)
        for append, i in targets:
            append(cells[i])
    return Table(path=name, names=names, lines=_rows(lines, name), columns=columns)


def _rows(lines: Sequence[int], path: str) -> Sequence[int]:
    if not lines:
        raise DataError(f"{path} holds a header but no rows")
    return lines


def _unique_names(names: Sequence[str], where: str) -> tuple[str, ...]:
    again = next((n for i, n in enumerate(names) if n in names[:i]), None)
    if again is not None:
        raise DataError(f"{where}: two columns are called {again!r}; rename one")
    return tuple(names)


def _tsv(path: PathLike) -> Iterator[tuple[int, list[str]]]:
    for number, line in read_lines(path):
        yield number, line.split("\t")


def _csv(path: PathLike, header: str) -> Iterator[tuple[int, list[str]]]:
    # A blank line may stand within a quoted cell; between records csv gives it as an empty one.
    lines = (line + "\n" for _, line in read_lines(path, blank=True))
    delimiter = ";" if ";" in header and "," not in header else ","
    records = csv.reader(lines, strict=True, delimiter=delimiter)
    last, more = 0, True  # line on which the record before ends
    while more:
        found: list[tuple[int, list[str]]] = []
        # Retrieved contexts in one cell pass the usual limit; it is the whole process's, so it is
        # changed for some records at a time.
        limit = csv.field_size_limit(_LARGEST_CELL)
        try:
            for record in islice(records, _RECORDS):
                found.append((last + 1, record))
                last = records.line_num
            more = len(found) == _RECORDS
        except csv.Error as error:
            raise DataError(
                f"{path}:{last + 1}: not a CSV record ({error}; read through line "
                f"{records.line_num})"
            ) from error
        finally:
            csv.field_size_limit(limit)
        for started, record in found:
            if len(record) > 1 or (record and record[0].strip()):
                yield started, record


def _read_json(path: PathLike, choose: Chooser) -> Table:
    # A row may lack keys (an unlabelled item has no "human"): the columns are those of all rows,
    # which are not kept, because an object takes many times the memory of its line.
    lines: list[int] = []
    columns: dict[str, list[Any]] = {}
    for number, row in read_jsonl(path):
        for name, value in row.items():
            values = columns.setdefault(name, [])
            if len(values) < len(lines):
                values.extend([None] * (len(lines) - len(values)))
            values.append(value)
        lines.append(number)
    for values in columns.values():
        values.extend([None] * (len(lines) - len(values)))
    names = tuple(columns)
    chosen = {name: columns[name] for name in choose(names)}
    return Table(path=os.fspath(path), names=names, lines=lines, columns=chosen)


def _read_parquet(path: Path, choose: Chooser) -> Table:
    with open_parquet(path) as file:
        names = _unique_names(file.schema_arrow.names, str(path))
        n_rows = file.metadata.num_rows
        columns = parquet_columns(file, path, list(choose(names)))
    if any(len(values) != n_rows for values in columns.values()):
        raise DataError(f"{path} says that it has {n_rows} rows, and has others; write it again")
    return Table(
        path=str(path),
        names=names,
        lines=_rows(range(1, n_rows + 1), str(path)),
        columns=columns,
    )
