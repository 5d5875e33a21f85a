"""Tables of any form as columns: CSV, TSV, JSON lines, Parquet; texts and clusters by id."""

import csv
import io
import math
import os
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import numpy as np

from rag_sourcebias.core.data import FloatArray
from rag_sourcebias.core.errors import DataError, import_extra, require_name
from rag_sourcebias.io.files import (
    PathLike,
    check_file,
    check_unpacked,
    open_bytes,
    read_json,
    read_jsonl,
    read_lines,
    sound,
)

# CSV as spreadsheet programs leave it: formulas made harmless, cells with line breaks.


_CELL_LIMIT = 32_767  # characters a spreadsheet keeps in one cell
_FORMULA = re.compile(r"'*[=+\-@\t\r]")
_ESCAPED = re.compile(r"'+[=+\-@\t\r]")


def unescaped(cell: str) -> str:
    """Return a cell without the apostrophe that :func:`sheet_csv` put before it."""
    return cell[1:] if _ESCAPED.match(cell) else cell


def sheet_csv(records: Sequence[Mapping[str, str]], path: PathLike) -> Iterator[str]:
    """Give the text of a CSV file with a byte-order mark, header first.

    A cell that a spreadsheet would take for a formula gets a leading apostrophe, which
    :func:`read_sheet_csv` takes away.

    Raises
    ------
    DataError
        If a cell is longer than a spreadsheet keeps.
    """
    yield "\ufeff" + _record_text(list(records[0]))
    for record in records:
        for name, cell in record.items():
            if len(cell) > _CELL_LIMIT:
                raise DataError(
                    f"{path}: {name} of row {next(iter(record.values()))!r} has {len(cell)} "
                    f"characters, a spreadsheet cell holds {_CELL_LIMIT}; write the sheet as .jsonl"
                )
        yield _record_text(
            [f"'{cell}" if _FORMULA.match(cell) else cell for cell in record.values()]
        )


def _record_text(cells: Sequence[str]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="\r\n").writerow(cells)
    return line.getvalue()


def read_sheet_csv(path: PathLike, filled: str = "grade") -> Iterator[tuple[int, dict[str, str]]]:
    """Stream records with the line they start in; commas, semicolons or tabs separate cells.

    Raises
    ------
    DataError
        With file and line: no header with ``row_id`` and what is filled in, a column twice,
        or a record that is not CSV or has another number of cells.
    """
    first = next(read_lines(path), None)
    if first is None:
        raise DataError(f"{path} is empty; expected the header of a labelling sheet")
    names, records = _checked(_csv(path, first[1], "\t" if "\t" in first[1] else None), path)
    if not {"row_id", filled} <= {*names}:
        raise DataError(
            f"{path}:{first[0]}: the header lacks row_id or {filled}: {first[1][:80]!r}; send back "
            "all columns as they were"
        )
    for line, cells in records:
        if any(cell.strip() for cell in cells):
            yield line, dict(zip(names, map(unescaped, cells), strict=True))


# pyarrow, which is loaded only where a Parquet file is read or written.


def pyarrow_modules(feature: str) -> tuple[Any, Any]:
    """Return the modules ``pyarrow`` and ``pyarrow.parquet``.

    Parameters
    ----------
    feature : str
        What needs them, for the message.

    Raises
    ------
    MissingExtraError
        If pyarrow is not installed.
    """
    pa = import_extra("pyarrow", "pyarrow", "parquet", feature)
    return pa, import_module("pyarrow.parquet")


# Parquet files, read a few rows at a time and only in proportion to their size.


_ROWS = 1_024
_BATCH_BYTES = 64 << 20
_SMALL = 4 << 20


@contextmanager
def open_parquet(path: Path, *, expected: str = "a readable Parquet file") -> Iterator[Any]:
    """Open a file as ``pyarrow.parquet.ParquetFile``; what damage raises is a data error.

    Raises
    ------
    DataError
        If the file is missing, no ordinary file, damaged, or unpacks to far more than it takes.
    MissingExtraError
        If pyarrow is not installed.
    """
    size = check_file(path).st_size
    _, pq = pyarrow_modules(f"reading {path.name}")
    with sound(path, expected), pq.ParquetFile(path) as file:
        groups = map(file.metadata.row_group, range(file.num_row_groups))
        check_unpacked(path, unpacked=sum(g.total_byte_size for g in groups), packed=size)
        yield file


def parquet_batches(
    file: Any,  # noqa: ANN401 - pyarrow is untyped
    path: Path,
    columns: Sequence[str],
    *,
    groups: Iterable[int] | None = None,
) -> Iterator[Any]:
    """Give the rows as record batches.

    Values that repeat are stored once, so what is unpacked is counted again as it comes.

    Parameters
    ----------
    file : pyarrow.parquet.ParquetFile
        From :func:`open_parquet`, in whose block this is read.
    groups : iterable of int, optional
        Row groups; all of them if left out.
    """
    pa, _ = pyarrow_modules(f"reading {path.name}")
    chosen = list(range(file.num_row_groups) if groups is None else groups)
    size = path.stat().st_size
    unpacked = 0
    # No value is longer than its row group: where that is small, little is unpacked at once.
    longest = max((file.metadata.row_group(g).total_byte_size for g in chosen), default=0)
    rows = _ROWS if longest >= _SMALL else min(_ROWS, _BATCH_BYTES // max(longest, 1))
    is_dictionary = pa.types.is_dictionary
    for found in file.iter_batches(rows, row_groups=chosen, columns=columns, use_threads=False):
        plain = [c.dictionary_decode() if is_dictionary(c.type) else c for c in found]
        batch = pa.RecordBatch.from_arrays(plain, found.schema.names)
        unpacked += batch.nbytes
        check_unpacked(path, unpacked=unpacked, packed=size)
        yield batch


def parquet_columns(
    file: Any,  # noqa: ANN401
    path: Path,
    columns: Sequence[str],
    *,
    groups: Iterable[int] | None = None,
) -> dict[str, list[Any]]:
    """Read columns as lists; see :func:`parquet_batches`."""
    pa, _ = pyarrow_modules(f"reading {path.name}")
    batches = list(parquet_batches(file, path, columns, groups=groups))
    if not batches:
        return {name: [] for name in columns}
    table = pa.Table.from_batches(batches)
    return {name: table.column(name).to_pylist() for name in columns}


# Tables of any form as columns: CSV, TSV, JSON lines, Parquet.


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
        The chosen ones. Text in CSV and TSV; what the file holds in JSON lines and Parquet,
        None where a JSON row lacks the key.
    unit : str
        What stands before the number of a row that is not that of its line.
    """

    path: str
    names: tuple[str, ...]
    lines: Sequence[int]
    columns: dict[str, list[Any]]
    unit: Literal["", " row ", " record "] = ""

    def __post_init__(self) -> None:
        if not self.lines:
            raise DataError(f"{self.path} holds a header but no rows")

    def __len__(self) -> int:
        return len(self.lines)

    def where(self, row: int) -> str:
        """Name file and line of a row."""
        return f"{self.path}:{self.unit}{self.lines[row]}"


def table_of(columns: Mapping[str, Sequence[Any]], name: str, choose: Chooser) -> Table:
    """Return some columns in memory as a table, their cells as JSON would hold them."""
    n_rows = max(map(len, columns.values()), default=0)
    return Table(
        path=name,
        names=tuple(columns),
        lines=range(1, n_rows + 1),
        columns={
            chosen: list(map(_plain_cell, columns[chosen])) for chosen in choose(tuple(columns))
        },
        unit=" row ",
    )


def _plain_cell(cell: Any) -> Any:  # noqa: ANN401 - of any table
    if isinstance(cell, np.generic):
        cell = cell.item()
    if cell is None or isinstance(cell, bool | int | float | str | list | dict):
        return cell
    return str(cell)  # a date, a Decimal, a category


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
    records = (
        ((number, line.split("\t")) for number, line in read_lines(path))
        if "\t" in first[1]
        else _csv(path, first[1])
    )
    names, rows = _checked(records, path)
    index = {n: names.index(n) for n in choose(names)}
    columns: dict[str, list[Any]] = {n: [] for n in index}
    targets = [(columns[n].append, i) for n, i in index.items()]
    lines: list[int] = []
    for line, cells in rows:
        lines.append(line)
        for append, i in targets:
            append(cells[i])
    return Table(path=name, names=names, lines=lines, columns=columns)


_Records = Iterator[tuple[int, list[str]]]


def _checked(records: _Records, path: PathLike) -> tuple[tuple[str, ...], _Records]:
    """Return the names of the header, and records that have as many cells."""
    line, header = next(records)
    names = _unique_names([cell.strip() for cell in header], f"{path}:{line}")

    def checked() -> _Records:
        for line, cells in records:
            if len(cells) != len(names):
                raise DataError(
                    f"{path}:{line}: expected {len(names)} columns as in the header, found "
                    f"{len(cells)}: {str(cells)[:80]}"
                )
            yield line, cells

    return names, checked()


def _unique_names(names: Sequence[str], where: str) -> tuple[str, ...]:
    again = next((n for i, n in enumerate(names) if n in names[:i]), None)
    if again is not None:
        raise DataError(f"{where}: two columns are called {again!r}; rename one")
    return tuple(names)


def _csv(path: PathLike, header: str, delimiter: str | None = None) -> _Records:
    # A blank line may stand within a quoted cell; between records csv gives it as an empty one.
    records = csv.reader(
        (line + "\n" for _, line in read_lines(path, blank=True)),
        strict=True,
        delimiter=delimiter or (";" if ";" in header and "," not in header else ","),
    )
    last = 0  # line on which the record before ends
    # Retrieved contexts in one cell pass the usual limit, which is that of the whole process.
    limit = csv.field_size_limit(2**31 - 1)
    try:
        for record in records:
            if len(record) > 1 or (record and record[0].strip()):
                yield last + 1, record
            last = records.line_num
    except csv.Error as error:
        raise DataError(
            f"{path}:{last + 1}: not a CSV record ({error}; read through line {records.line_num})"
        ) from error
    finally:
        csv.field_size_limit(limit)


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
    return Table(
        path=os.fspath(path),
        names=names,
        lines=lines,
        columns={name: columns[name] for name in choose(names)},
    )


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
        lines=range(1, n_rows + 1),
        columns=columns,
        unit=" row ",
    )


# Cells of judged data as numbers and names.


_MISSING = frozenset({"", "-", "na", "n/a", "nan", "null", "none"})
_WORDS = {
    **dict.fromkeys(("true", "yes", "correct", "pass", "passed", "acceptable"), 1.0),
    **dict.fromkeys(("false", "no", "incorrect", "fail", "failed", "unacceptable"), 0.0),
}


def numbers_of(table: Table, column: str, *, role: str, ids: list[str]) -> FloatArray:
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


def _numbers(cells: Sequence[Any]) -> FloatArray | None:
    """Return cells that are all numbers or missing; None if one is anything else."""
    kinds = set(map(type, cells))
    try:
        if kinds == {str} and "_" not in "".join(cells):  # Python reads 1_0 as 10
            values = np.array([float(cell) if cell else math.nan for cell in cells])
        elif kinds <= {float, int, type(None)}:
            values = np.array(cells, dtype=np.float64)  # None becomes NaN
        else:
            return None
    except (OverflowError, ValueError):
        return None
    return None if np.isinf(values).any() else values


def _number(cell: Any) -> tuple[float | None, bool]:  # noqa: ANN401 - whatever the file holds
    """Return the number (NaN: missing, None: not a number) and whether it was a word."""
    if cell is None:
        return math.nan, False
    if isinstance(cell, bool):
        return float(cell), True
    if isinstance(cell, int | float):
        return (float(cell) if not abs(cell) > sys.float_info.max else None), False
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


def holds_scores(table: Table, column: str) -> bool:
    """Whether a column holds numbers, some perhaps missing."""
    some = False
    for cell in table.columns[column]:
        if cell is None or (isinstance(cell, str) and cell.strip().lower() in ("", "nan")):
            continue
        if isinstance(cell, bool):
            return False
        try:
            value = float(cell)
        except (TypeError, ValueError, OverflowError):
            return False
        some = some or not math.isnan(value)
    return some


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
    for i, name in enumerate(names if shown else ()):
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


# Which column holds what, where the caller does not say.


_ALIASES = {
    "human": (
        "human", "human_label", "human_score", "human_grade", "human_rating", "human_value",
        "human_verdict", "human_judgment", "human_judgement", "human_mean", "y", "gold",
        "gold_label", "gold_score", "label", "annotation", "expert", "expert_label", "acceptable",
    ),
    "judge": (
        "judge", "judge_label", "judge_score", "judge_grade", "judge_rating", "judge_value",
        "judge_verdict", "judge_mean", "yhat", "llm", "llm_label", "llm_score", "llm_grade",
        "llm_rating", "llm_judge", "llm_verdict", "model_score",
    ),
    "id": ("id", "item_id", "sample_id", "example_id", "uid"),
    "query_id": ("query_id", "qid", "question_id", "topic", "topic_id"),
    "doc_id": ("doc_id", "docid", "docno", "corpus_id", "passage_id", "pid", "document_id"),
    "group": ("group",),
    "cluster": ("cluster", "query_id", "qid", "question_id", "topic", "topic_id"),
}  # fmt: skip


def _plain_name(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")


def find_column(
    names: Sequence[str],
    role: str,
    *,
    given: str | None,
    path: str,
    taken: Collection[str | None] = (),
) -> str | None:
    """Find the column of a role.

    Parameters
    ----------
    role : str
        ``"human"``, ``"judge"``, ``"id"``, ``"query_id"``, ``"doc_id"``, ``"group"`` or
        ``"cluster"``.
    given : str or None
        What the caller said; it must exist. ``"none"``: rows of one query are no cluster, which
        they are taken for otherwise.
    taken : collection of str
        Columns the caller named for other roles; their usual names mean nothing then.

    Returns
    -------
    str or None
        None if nothing is given and no column has one of the usual names.

    Raises
    ------
    DataError
        If the given column does not exist, or several columns could be meant.
    """
    if given is not None:
        if role == "cluster" and given == "none" and given not in names:
            return None
        if given not in names:
            raise DataError(f"{path} has no column {given!r}; its columns are {', '.join(names)}")
        return given
    aliases = _ALIASES[role]
    found = sorted(
        (n for n in names if n not in taken and _plain_name(n) in aliases),
        key=lambda n: aliases.index(_plain_name(n)),
    )
    if len(found) > 1 and _plain_name(found[0]) != role and role != "cluster":
        raise DataError(
            f"{path}: columns {' and '.join(map(repr, found))} could all be the {role} column; "
            f"say which with {role}=…"
        )
    return found[0] if found else None


def find_ids(
    names: Sequence[str],
    *,
    given: str | Sequence[str] | None,
    path: str,
    taken: Collection[str | None] = (),
) -> tuple[str, ...]:
    """Find the id column, or the query and document columns that identify an item together.

    A column of ``taken`` (:func:`find_column`) alone identifies nothing: the question, named as
    the cluster, may recur.
    """
    if given is not None:
        wanted = (given,) if isinstance(given, str) else tuple(given)
        for name in wanted:
            find_column(names, "id", given=name, path=path)
        return wanted
    single = find_column(names, "id", given=None, path=path, taken=taken)
    if single is not None:
        return (single,)
    pair = tuple(
        found
        for role in ("query_id", "doc_id")
        if (found := find_column(names, role, given=None, path=path)) is not None
    )
    return () if len(pair) == 1 and pair[0] in taken else pair


# Tables of any form, JSON arrays of objects included.


def read_any_table(path: PathLike, choose: Chooser) -> Table:
    """Read a table as :func:`~rag_sourcebias.intake.tables.read_table`, or a JSON array of objects.

    Raises
    ------
    DataError
        As :func:`~rag_sourcebias.intake.tables.read_table`, and if an array holds something else.
    """
    name = os.fspath(path)
    if Path(path).suffix in _PARQUET or not _is_array(Path(path)):
        return read_table(path, choose)
    rows = read_json(path, "a JSON array of objects")
    if not rows:
        raise DataError(f"{name} holds an empty array; at least one record is needed")
    for number, row in enumerate(rows, start=1):
        if not isinstance(row, dict):
            raise DataError(f"{name}: record {number} is {row!r:.80}; expected an object")
    names = tuple(dict.fromkeys(key for row in rows for key in row))
    return Table(
        path=name,
        names=names,
        lines=range(1, len(rows) + 1),
        columns={column: [row.get(column) for row in rows] for column in choose(names)},
        unit=" record ",
    )


def _is_array(path: Path) -> bool:
    with sound(path, "a table or a JSON array"), open_bytes(path) as stream:
        # the first bracket stands in these bytes
        start = stream.read(4_096).removeprefix(b"\xef\xbb\xbf").lstrip()
    return start.startswith(b"[")


# Clusters of queries: topics, paraphrase groups, user sessions.


def read_clusters(
    path: PathLike, *, query: str | None = None, cluster: str = "cluster"
) -> dict[str, str]:
    """Read the cluster of each query from CSV, TSV, JSON lines or Parquet.

    Parameters
    ----------
    path : path
        With the columns ``query_id`` (or another usual name) and ``cluster``; others are ignored.
    query, cluster : str
        Columns that hold them under another name; a single column beside that of the clusters is
        the query's.

    Raises
    ------
    DataError
        If a column is missing, a value is empty, or a query is named twice.
    """

    def choose(names: tuple[str, ...]) -> tuple[str, ...]:
        others = [name for name in names if name != cluster]
        found = find_column(others, "query_id", given=query, path=os.fspath(path))
        if found is None and len(names) == 2 and cluster in names and cluster != "cluster":
            found = others[0]
        for name, role in ((found, "query_id"), (cluster if cluster in names else None, cluster)):
            if name is None:
                raise DataError(f"{path} has no column {role}; it has {list(names)}")
        return str(found), cluster

    table = read_table(path, choose)
    clusters: dict[str, str] = {}
    for row, cells in enumerate(zip(*table.columns.values(), strict=True)):
        for name, value in zip(table.columns, cells, strict=True):
            if value is None or not str(value).strip():
                raise DataError(f"{table.where(row)}: {name} is empty; give each query a cluster")
        query_id, group = map(str, cells)
        if query_id in clusters:
            raise DataError(f"{table.where(row)}: query {query_id!r} is named twice")
        clusters[query_id] = group
    return clusters
