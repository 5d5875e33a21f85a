"""A table from any carrier: its columns, which of them holds what, and its cells as values."""

import csv
import io
import math
import os
import re
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from importlib import import_module
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal

import numpy as np

from rag_sourcebias.core.data import BoolArray, FloatArray
from rag_sourcebias.core.errors import DataError, import_extra, require_name
from rag_sourcebias.core.files import PathLike, check_file, sound
from rag_sourcebias.core.finding import Code, Finding
from rag_sourcebias.intake.files import check_unpacked, read_json, read_jsonl, read_lines
from rag_sourcebias.intake.objects import columns_of, holds_table, name_of

# CSV as spreadsheet programs leave it: formulas made harmless, cells with line breaks.


_CELL_LIMIT = 32_767  # characters a spreadsheet keeps in one cell
_FORMULA = re.compile(r"'*[=+\-@\t\r]")


def sheet_csv(records: Sequence[Mapping[str, str]], path: PathLike) -> Iterator[str]:
    """Give the text of a CSV file with a byte-order mark, header first.

    A cell that a spreadsheet would take for a formula gets a leading apostrophe.

    Raises
    ------
    DataError
        If a cell is longer than a spreadsheet keeps.
    """
    yield "\ufeff" + record_text(list(records[0]))
    for record in records:
        for name, cell in record.items():
            if len(cell) > _CELL_LIMIT:
                raise DataError(
                    f"{path}: {name} of row {next(iter(record.values()))!r} has {len(cell)} "
                    f"characters, a spreadsheet cell holds {_CELL_LIMIT}; write the sheet as .jsonl"
                )
        yield record_text(
            [f"'{cell}" if _FORMULA.match(cell) else cell for cell in record.values()]
        )


def record_text(cells: Sequence[str], end: str = "\r\n") -> str:
    """Return a record of a CSV file."""
    line = io.StringIO()
    csv.writer(line, lineterminator=end).writerow(cells)
    return line.getvalue()


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
_OBJECTS = 256  # of JSON lines, taken apart together
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


# A table from any carrier as columns.


_PARQUET = (".parquet", ".pq")
Chosen = str | Sequence[str] | None
Chooser = Callable[[tuple[str, ...]], Sequence[str] | Mapping[str, Chosen]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Chosen columns of a table.

    Parameters
    ----------
    path : str
        What the table is called in messages.
    names : tuple of str
        All columns there are.
    lines : sequence of int
        Line of each row; for what has no lines the number of the row, from 1.
    columns : dict of str to list
        The chosen ones. Text in CSV and TSV; otherwise what the table holds, None where a row
        lacks the key.
    unit : str
        What stands before the number of a row that is not that of its line.
    roles : mapping of str to str, sequence of str or None
        The columns by what they are for, where they were chosen so.
    notes : list of Finding
        What a reader understood of the cells and a user should know.
    """

    path: str
    names: tuple[str, ...]
    lines: Sequence[int]
    columns: dict[str, list[Any]]
    unit: Literal["", " row ", " record "] = ""
    roles: Mapping[str, Chosen] = field(default_factory=dict)
    notes: list[Finding] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not self.lines:
            raise DataError(f"{self.path} holds a header but no rows")

    def __len__(self) -> int:
        return len(self.lines)

    def where(self, row: int) -> str:
        """Name file and line of a row."""
        return f"{self.path}:{self.unit}{self.lines[row]}"

    def refuse(self, wrong: BoolArray, column: str, why: str) -> None:
        """Raise for the first cell of a column that is wrong, if there is one."""
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            cell = self.columns[column][row]
            raise DataError(f"{self.where(row)}: {cell!r:.80} (column {column!r}) {why}")

    def records(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Give the chosen cells of each row, and its place."""
        rows = zip(*self.columns.values(), strict=True)
        for row, cells in enumerate(rows):
            yield self.where(row), dict(zip(self.columns, cells, strict=True))


def read_table(
    source: Any,  # noqa: ANN401 - whatever a user has
    choose: Chooser = lambda names: names,
    *,
    quoted: bool = False,
    most: int | None = None,
) -> Table:
    """Read some columns of a table.

    Parameters
    ----------
    source : path, frame, list of dicts, dict of columns, result of an evaluation or Table
        A path that ends in ``.parquet`` or ``.pq`` is Parquet (with pyarrow). Any other is text,
        plain or packed: JSON (an array of objects, columns as pandas writes them, a result of
        deepeval) or JSON lines if it starts with ``[`` or ``{``, TSV if the first line has a tab
        (no quoting, one record per line), else CSV (a quoted cell may span lines; ``;`` separates
        where the header has no comma). For objects see
        :func:`~rag_sourcebias.intake.objects.columns_of`.
    choose : callable
        Gets the names of all columns and returns those to read, perhaps by role; it raises if one
        is lacking. All of them by default.
    quoted : bool
        Cells between tabs may be quoted too, as spreadsheets write them.
    most : int or None
        Read no more rows of text or Parquet than so many.

    Raises
    ------
    DataError
        If the file is missing, empty, malformed, or has two columns of the same name.
    MissingExtraError
        If a Parquet file is given and pyarrow is not installed.
    """
    name = table_name(source)
    if isinstance(source, Table):
        chosen, roles = _chosen(source.names, choose)
        columns = {column: source.columns[column] for column in chosen}
        return replace(source, columns=columns, roles=roles, notes=[])
    if not isinstance(source, str | os.PathLike):
        return table_of(columns_of(source, name), name, choose)
    if name.endswith(_PARQUET):
        return read_parquet(Path(source), choose, part=slice(None if most is None else 1))
    head = [line for _, line in islice(read_lines(source), 2)]
    if not head:
        raise DataError(f"{name} is empty; expected a header and rows, or JSON")
    if head[0].lstrip().startswith(("[", "{")):
        return _read_json(source, choose, head, most)
    tabs = "\t" in head[0]
    separator = "," if "," in head[0] or ";" not in head[0] else ";"
    records = (
        ((number, line.split("\t")) for number, line in read_lines(source))
        if tabs and not quoted
        else _csv(source, "\t" if tabs else separator)
    )
    names, rows = _checked(records, source)
    chosen, roles = _chosen(names, choose)
    read: dict[str, list[Any]] = {column: [] for column in chosen}
    targets = [(cells.append, names.index(column)) for column, cells in read.items()]
    lines: list[int] = []
    for line, row in islice(rows, most):
        lines.append(line)
        for append, i in targets:
            append(row[i])
    return Table(path=name, names=names, lines=lines, columns=read, roles=roles)


def read_fields(
    path: PathLike,
    columns: Mapping[str, str],
    split: Callable[[str], list[str]],
    *,
    n_headers: int = 0,
) -> Table:
    """Read lines of some fields, which no header names.

    Parameters
    ----------
    columns : mapping of str to str
        What each field is called, by what it is for.
    split : callable
        Takes a line apart.
    n_headers : int
        Lines at the start that are left out.

    Raises
    ------
    DataError
        If a line has another number of fields.
    """
    names = tuple(columns.values())
    lines: list[int] = []
    rows: list[list[str]] = []
    for number, line in islice(read_lines(path), n_headers, None):
        fields = split(line)
        if len(fields) != len(names):
            raise DataError(
                f"{path}:{number}: expected {len(names)} columns ({' '.join(names)}), found "
                f"{len(fields)}: {line[:80]!r}"
            )
        lines.append(number)
        rows.append(fields)
    cells = dict(zip(names, map(list, zip(*rows, strict=True)), strict=False))
    return Table(path=os.fspath(path), names=names, lines=lines, columns=cells, roles=columns)


def table_name(source: Any) -> str:  # noqa: ANN401
    """Return what a table is called in messages."""
    if isinstance(source, Table):
        return source.path
    return os.fspath(source) if isinstance(source, str | os.PathLike) else "data"


def _chosen(
    names: tuple[str, ...], choose: Chooser
) -> tuple[tuple[str, ...], Mapping[str, Chosen]]:
    """Return the columns to read, each once, and their roles."""
    wanted = choose(names)
    roles = wanted if isinstance(wanted, Mapping) else {}
    columns = (
        (column,) if isinstance(column, str) else column or ()
        for column in (roles.values() if roles else wanted)
    )
    return tuple(dict.fromkeys(chain.from_iterable(columns))), roles


def table_of(
    columns: Mapping[str, list[Any]],
    name: str,
    choose: Chooser,
    unit: Literal["", " row ", " record "] = " row ",
    lines: Sequence[int] | None = None,
) -> Table:
    """Return some columns in memory as a table."""
    if lines is None:
        lines = range(1, max(map(len, columns.values()), default=0) + 1)
    chosen, roles = _chosen(tuple(columns), choose)
    return Table(
        path=name,
        names=tuple(columns),
        lines=lines,
        columns={column: columns[column] for column in chosen},
        unit=unit,
        roles=roles,
    )


_Records = Iterator[tuple[int, list[str]]]


def _checked(records: _Records, path: PathLike) -> tuple[tuple[str, ...], _Records]:
    """Return the names of the header, and records that have as many cells."""
    line, header = next(records)
    names = _unique_names([cell.strip() for cell in header], f"{path}:{line}")

    def checked() -> _Records:
        for line, cells in records:
            if not any(cells):
                continue  # spreadsheets leave separators at the end
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


def _csv(path: PathLike, separator: str) -> _Records:
    # A blank line may stand within a quoted cell; between records csv gives it as an empty one.
    records = csv.reader(
        (line + "\n" for _, line in read_lines(path, blank=True)),
        strict=True,
        delimiter=separator,
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


def _read_json(path: PathLike, choose: Chooser, head: Sequence[str], most: int | None) -> Table:
    """Read JSON lines, or the one value of a file that holds a whole table."""
    name = os.fspath(path)
    start = head[0].strip()
    if start.startswith("[") or start == "{" or len(head) == 1:
        whole = read_json(path, "a table as JSON")
        if not isinstance(whole, dict) or holds_table(whole):
            return table_of(columns_of(whole, name), name, choose, " record ")
    return table_of_objects(islice(read_jsonl(path), most), name, choose)


def table_of_objects(
    rows: Iterable[tuple[int, Mapping[str, Any]]], name: str, choose: Chooser
) -> Table:
    """Return some columns of the objects on numbered lines of a file."""
    # A row may lack keys (an unlabelled item has no "human"): the columns are those of all rows,
    # which are not kept, because an object takes many times the memory of its line.
    lines: list[int] = []
    columns: dict[str, list[Any]] = {}
    numbered = iter(rows)
    while some := list(islice(numbered, _OBJECTS)):
        for column in dict.fromkeys(chain.from_iterable(row for _, row in some)):
            if column not in columns:
                columns[column] = [None] * len(lines)
        for column, values in columns.items():
            values += [row.get(column) for _, row in some]
        lines += [number for number, _ in some]
    return table_of(columns, name, choose, "", lines)


def read_parquet(
    path: Path, choose: Chooser, *, part: slice = slice(None), first: int = 1
) -> Table:
    """Read some columns of a Parquet file.

    Parameters
    ----------
    part : slice
        Of its row groups; all by default.
    first : int
        Number of the first row of that part.

    Raises
    ------
    DataError
        As :func:`read_table`, and if there are other rows than the file says.
    """
    with open_parquet(path) as file:
        names = _unique_names(file.schema_arrow.names, str(path))
        chosen, roles = _chosen(names, choose)
        groups = range(file.num_row_groups)[part]
        n_rows = sum(file.metadata.row_group(group).num_rows for group in groups)
        columns = parquet_columns(file, path, chosen, groups=groups)
    if any(len(values) != n_rows for values in columns.values()):
        raise DataError(f"{path} says that it has {n_rows} rows, and has others; write it again")
    return Table(
        path=str(path),
        names=names,
        lines=range(first, first + n_rows),
        columns=columns,
        unit=" row ",
        roles=roles,
    )


# Cells as numbers and names.


class TableCode(Code, home="tables"):
    """Sentences about how the cells of a table were read."""

    PAIRWISE = "Column {column}: A counts as 1, B as 0 and a tie as ½."
    SENTINEL = (
        "Column {column}: {value} lies apart from all other values in {n:row|rows} and counts as "
        "missing."
    )
    NEGATIVE = (
        "Column {column}: {value} counts as a value in {n:row|rows}; leave the cell empty where "
        "it means that there is none."
    )


_MISSING = frozenset({"", "-", "na", "n/a", "n.a.", "<na>", "nan", "null", "none"})
_PAIRWISE = {
    **dict.fromkeys(("a", "model_a", "[[a]]"), 1.0),
    **dict.fromkeys(("b", "model_b", "[[b]]"), 0.0),
    **dict.fromkeys(("tie", "draw", "tie (bothbad)", "[[c]]"), 0.5),
}
_WORDS = {
    **dict.fromkeys(("true", "yes", "correct", "pass", "passed", "acceptable"), 1.0),
    **dict.fromkeys(("false", "no", "incorrect", "fail", "failed", "unacceptable"), 0.0),
}
# What programs write where there is no value, if nothing else is near it.
_SENTINELS = (-9999.0, -999.0, -99.0, -9.0, -1.0, 99.0, 999.0, 9999.0)
_FENCED = re.compile(r"\s*```(?:[A-Za-z][\w-]*\s)?\s*(.*?)\s*```\s*", re.DOTALL)
Form = Literal["missing", "number", "0, ½ or 1", "word", "A or B", "something else"]


def reply_text(text: str) -> str:
    """Return what a model answered, without its reasoning and the marks of code around it.

    A reasoning that breaks off is no answer.

    Examples
    --------
    >>> reply_text("<think>Not 0.</think>1"), reply_text("```2```"), reply_text("<think>0")
    ('1', '2', '')
    """
    answer = text.rpartition("</think>")[2]
    fenced = _FENCED.fullmatch(answer)
    return (fenced[1] if fenced else answer.partition("<think>")[0]).strip()


def values_of(table: Table, column: str, *, role: str) -> FloatArray:
    """Read a column as :func:`numbers_of`, and note which value stands for a missing one."""
    values = numbers_of(table, column, role=role)
    different, counts = np.unique(values[~np.isnan(values)], return_counts=True)
    marks = np.isin(different, _SENTINELS)
    rest = different[~marks]
    if not marks.any() or len(rest) < 2 or rest[0] < 0:
        return values
    low, high = rest[0], rest[-1]
    for mark, n in zip(different[marks], counts[marks], strict=True):
        apart = low - mark > np.diff(rest).max() if mark < low else mark - high > high - low
        if apart:
            values = np.where(values == mark, np.nan, values)
        if apart or mark < 0:
            code = TableCode.SENTINEL if apart else TableCode.NEGATIVE
            table.notes.append(code(column=column, value=f"{mark:g}", n=int(n)))
    return values


def numbers_of(table: Table, column: str, *, role: str) -> FloatArray:
    """Read a column as numbers; NaN where a cell is missing.

    Parameters
    ----------
    role : str
        What the value is, for messages: ``"human label"`` or ``"judge value"``.

    Raises
    ------
    DataError
        Naming file, line and value: a cell is not a number, or words (yes, no, true, A, B, tie,
        …) stand among numbers other than 0, ½ and 1.
    """
    cells = table.columns[column]
    values, first = _numbers(cells)
    row = first.get("something else")
    if row is not None:
        raise DataError(
            f"{table.where(row)}: {role} {cells[row]!r:.80} (column {column!r}) is not a finite "
            "number; numbers, true/false, yes/no, correct/incorrect, A/B/tie or an empty cell are "
            "accepted; write 4/5 or 80 % as 0.8, 5,5 as 5.5"
        )
    word, number = first.get("word", first.get("A or B")), first.get("number")
    if word is not None and number is not None:
        raise DataError(
            f"{table.where(word)}: {role} {cells[word]!r} in a column that also holds "
            f"{cells[number]!r} ({table.where(number)}); use words or numbers, not both"
        )
    if "A or B" in first:
        table.notes.append(TableCode.PAIRWISE(column=column))
    return values


def _numbers(cells: Sequence[Any]) -> tuple[FloatArray, dict[Form, int]]:
    """Return cells as numbers, and the first row of each form, up to one that is no number."""
    kinds = set(map(type, cells))
    with suppress(OverflowError, ValueError):
        values = None
        if kinds == {str} and "_" not in "".join(cells):  # Python reads 1_0 as 10
            values = np.array([float(cell) if cell else math.nan for cell in cells])
        elif kinds <= {float, int, type(None)}:
            values = np.array(cells, dtype=np.float64)  # None becomes NaN
        if values is not None and not np.isinf(values).any():
            return values, {"number": 0}
    values = np.full(len(cells), np.nan)
    first: dict[Form, int] = {}
    for row, cell in enumerate(cells):
        values[row], form = _text_number(cell) if isinstance(cell, str) else _number(cell)
        if form not in first:
            first[form] = row
        if form == "something else":
            break
    return values, first


def _number(cell: Any) -> tuple[float, Form]:  # noqa: ANN401 - whatever a table holds
    if cell is None:
        return math.nan, "missing"
    try:
        value = float(cell)
    except (TypeError, ValueError, OverflowError):
        return math.nan, "something else"
    if isinstance(cell, bool):
        return value, "word"
    if math.isfinite(value):
        return value, "0, ½ or 1" if value in (0, 0.5, 1) else "number"
    return value, "missing" if math.isnan(value) else "something else"


@lru_cache(maxsize=1024)  # cells repeat
def _text_number(cell: str) -> tuple[float, Form]:
    text = (reply_text(cell) if "<" in cell or "`" in cell else cell.strip()).lower()
    if text in _MISSING:
        return math.nan, "missing"
    if text in _PAIRWISE:
        return _PAIRWISE[text], "A or B"
    if text in _WORDS:
        return _WORDS[text], "word"
    return _number("" if "_" in text else text)  # Python reads 1_0 as 10


def holds_scores(table: Table, column: str) -> bool:
    """Whether a column holds numbers, some perhaps missing."""
    values, first = _numbers(table.columns[column])
    return not np.isnan(values).all() and first.keys() <= {"missing", "number", "0, ½ or 1"}


def score_columns(source: Any, *, taken: Collection[str | None] = ()) -> list[str]:  # noqa: ANN401
    """Return the columns that hold numbers and by their name may be scores.

    Parameters
    ----------
    taken : collection of str
        Columns that are something else.
    """
    table = read_table(
        source,
        lambda names: [n for n in names if n not in taken and plain_name(n) not in _NO_SCORES],
    )
    return [name for name in table.columns if holds_scores(table, name)]


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
    cells = table.columns[column]
    try:
        names = list(map(str.strip, cells))
    except TypeError:  # not all of them are texts
        texts = (str(cell) if isinstance(cell, bool) else name_of(cell) or "" for cell in cells)
        names = list(map(str.strip, texts))
    if "" in names:
        row = names.index("")
        raise DataError(
            f"{table.where(row)}: {role} {cells[row]!r} (column {column!r}) must be a non-empty "
            "name"
        )
    for row, name in enumerate(names if shown else ()):
        if not name.isprintable():
            require_name(name, role, table.where(row))
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
    require_once(table, ids, "item", "keep one row per item, the mean of several labels")
    return ids


def require_once(
    table: Table,
    names: Sequence[Hashable],
    what: str,
    remedy: str,
    rows: Sequence[int] | None = None,
) -> None:
    """Raise if a name occurs twice, naming both lines.

    Parameters
    ----------
    rows : sequence of int, optional
        In which each name stands; by default each in its own.
    """
    if len(set(names)) == len(names):
        return
    first: dict[Hashable, int] = {}
    for row, name in zip(rows or range(len(names)), names, strict=True):
        if name in first:
            told = ", ".join(map(repr, name if isinstance(name, tuple) else (name,)))
            raise DataError(
                f"{table.where(row)}: {what} {told} stands at {table.where(first[name])} already; "
                f"{remedy}"
            )
        first[name] = row


# Columns that may hold what is asked for, by what they are for: the usual names, as plain_name
# writes them, the likeliest first.


_QUERY_IDS = ("query_id", "qid", "question_id", "topic", "topic_id")
_DOC_IDS = ("doc_id", "docid", "docno", "document_id", "corpus_id", "passage_id", "pid")
_ANSWERS = ("answer", "response", "output", "prediction", "generated_answer", "actual_output")
_REFERENCES = (
    "reference", "references", "reference_answer", "golden_answer", "gold_answer", "ground_truth",
    "expected_answer", "expected", "expected_output",
)  # fmt: skip
_ALIASES = {
    "human": (
        "human", "human_label", "human_score", "human_grade", "human_rating", "human_value",
        "human_verdict", "human_judgment", "human_judgement", "human_mean", "human_preference",
        "human_feedback", "human_winner", "y", "gold", "gold_label", "gold_score", "label",
        "annotation", "expert", "expert_label", "acceptable", "winner",
    ),
    "judge": (
        "judge", "judge_label", "judge_score", "judge_grade", "judge_rating", "judge_value",
        "judge_verdict", "judge_mean", "judge_preference", "judge_winner", "yhat", "llm",
        "llm_label", "llm_score", "llm_grade", "llm_rating", "llm_judge", "llm_verdict",
        "model_score",
    ),
    "id": ("id", "item_id", "sample_id", "example_id", "uid"),
    "query_id": _QUERY_IDS,
    "doc_id": _DOC_IDS,
    "group": ("group",),
    "cluster": ("cluster", *_QUERY_IDS),
    "length": (
        "length", "n_words", "n_chars", "answer", "response", "output", "text", "passage",
    ),
    "swapped": ("judge_swapped",),
    "question": (
        "question_id", "query_id", "qid", "question", "user_input", "query", "prompt", "input",
    ),
    "question_text": ("question", "query", "query_text", "user_input", "prompt", "input"),
    "system": ("system", "system_name", "model", "generator"),
    "answer": _ANSWERS,
    "answer_text": _ANSWERS,
    "reference": _REFERENCES,
    "reference_text": (*_REFERENCES, "answers"),
    "correct": (
        "correct", "is_correct", "human_correct", "human_verdict", "human", "human_label", "label",
    ),
    "side": ("side",),
    "style": ("style", "rsb_style"),
    "pair_id": ("pair_id", "rsb_pair_id"),
    "label": ("label",),
    "pair": ("pair_id", "group", "topic", "topic_id", "prompt", "query_id", "qid"),
    "domain": ("domain", "dataset", "data_set", "genre"),
    # queries and documents of a data set
    "query": (*_QUERY_IDS, "id"),
    "query_text": ("text", "query", "question", "title"),
    "document": (*_DOC_IDS, "id"),
    "text": ("text", "page_content", "contents", "content", "passage", "body", "document"),
    "title": ("title",),
    "source": ("source", "rsb_source", "origin", "author"),
    "grade": ("relevance", "grade", "rel", "label", "score", "qrel", "relevant", "judgment"),
    # rankings
    "ranked_query": (*_QUERY_IDS, "query_no", "q_id", "query"),
    "ranked": (*_DOC_IDS, "doc", "document", "id"),
    "rank": ("rank", "position"),
    "score": ("score", "similarity", "sim", "relevance_score", "rerank_score"),
    "distance": ("distance", "dist"),
    "ranker": ("system", "run", "run_name", "run_id", "run_tag", "retriever"),
    "documents": (
        "results", "documents", "docs", "hits", "candidates", "ranking", "retrieved", "doc_ids",
    ),
}  # fmt: skip
# What holds no scores: other roles, fields of samples, and what pandas calls its index.
_NO_SCORES = frozenset(chain(
    ("", "index", "unnamed_0", "contexts", "retrieved_contexts", "reference_contexts",
     "retrieved_context_ids", "reference_context_ids", "multi_responses", "rubrics",
     "persona_name", "query_style", "query_length", "synthesizer_name"),
    *(_ALIASES[role] for role in ("id", "cluster", "doc_id", "group", "length", "question",
      "answer", "reference")),
    ("human",),
))  # fmt: skip
# Roles for which a second column of a usual name may mean something else, so that it is refused
# where none is called as the role; for all others the first usual name that is there counts.
_ALONE = (
    "human", "judge", "id", "query_id", "doc_id", "system", "answer", "reference", "correct",
)  # fmt: skip


def plain_name(name: str) -> str:
    """Return a column's name in small letters, with one "_" for all that is no letter or digit."""
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")


def has_role(name: str, roles: Iterable[str]) -> bool:
    """Whether a column has a usual name of one of the roles."""
    return any(plain_name(name) in _ALIASES[role] for role in roles)


def find_column(
    names: Sequence[str],
    role: str,
    *,
    given: str | None = None,
    path: str = "the table",
    taken: Collection[str | None] = (),
) -> str | None:
    """Find the column of a role.

    Parameters
    ----------
    role : str
        Such as ``"human"``, ``"judge"``, ``"id"``, ``"cluster"``, ``"answer"`` or ``"rank"``.
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
        require_columns(names, (given,), path)
        return given
    aliases = _ALIASES[role]
    found = sorted(
        (n for n in names if n not in taken and plain_name(n) in aliases),
        key=lambda n: aliases.index(plain_name(n)),
    )
    if len(found) > 1 and plain_name(found[0]) != role and role in _ALONE:
        raise DataError(
            f"{path}: columns {' and '.join(map(repr, found))} could all be the {role} column; "
            f"call the right one {aliases[0]!r}, or say which with {role}=…"
        )
    return found[0] if found else None


def find_columns(
    names: Sequence[str],
    roles: Mapping[str, str | None],
    *,
    path: str,
    taken: Collection[str | None] = (),
    needed: Collection[str] = (),
    options: Mapping[str, str] | None = None,
) -> dict[str, str | None]:
    """Find the columns of several roles, each with what the caller said of it.

    Parameters
    ----------
    needed : collection of str
        Roles that :func:`require_roles` asks for; ``options`` is for it.

    Raises
    ------
    DataError
        As :func:`find_column`, and if a column that is needed is not there.
    """
    taken = {*taken, *roles.values()}
    found = {
        role: find_column(names, role, given=given, path=path, taken=taken)
        for role, given in roles.items()
    }
    require_roles(names, found, needed, path=path, options=options)
    return found


def require_roles(
    names: Sequence[str],
    found: Mapping[str, str | None],
    needed: Iterable[str],
    *,
    path: str,
    options: Mapping[str, str] | None = None,
) -> None:
    """Raise if a role that is needed has no column.

    Parameters
    ----------
    options : mapping of str to str, optional
        What says which column has a role, where anything does; by default its keyword.
    """
    lacking = [role for role in needed if found[role] is None]
    if lacking:
        plain = [_ALIASES[role][0] for role in lacking]
        usual = "; ".join(", ".join(_ALIASES[role][:6]) for role in lacking)
        naming = [f"{role}=…" if options is None else options.get(role, "") for role in plain]
        said = f" with {' and '.join(naming)}, or" if all(naming) else ""
        raise DataError(
            f"{path}: no column is recognised as {' or '.join(plain)}; its columns are "
            f"{', '.join(names)}; name the column{said} as is usual: {usual}"
        )


def require_columns(names: Sequence[str], wanted: Iterable[str], path: str) -> None:
    """Raise if one of the columns is not there."""
    if lacking := [name for name in wanted if name not in names]:
        raise DataError(
            f"{path} has no column {', '.join(map(repr, lacking))}; its columns are "
            f"{', '.join(names)}"
        )


def find_ids(
    names: Sequence[str],
    *,
    given: str | Sequence[str] | None,
    path: str,
    taken: Collection[str | None] = (),
    needed: bool = False,
) -> tuple[str, ...]:
    """Find the id column, or the query and document columns that identify an item together.

    A column of ``taken`` (:func:`find_column`) alone identifies nothing: the question, named as
    the cluster, may recur.

    Raises
    ------
    DataError
        As :func:`find_column`, and if ids are needed and no column has them.
    """
    if given is not None:
        wanted = (given,) if isinstance(given, str) else tuple(given)
        require_columns(names, wanted, path)
        return wanted
    single = find_column(names, "id", path=path, taken=taken)
    if single is not None:
        return (single,)
    both = (find_column(names, role, path=path) for role in ("query_id", "doc_id"))
    pair = tuple(column for column in both if column is not None)
    ids = () if len(pair) == 1 and pair[0] in taken else pair
    if needed and not ids:
        raise DataError(
            f"{path}: no column is recognised as id, without which labels and items cannot be "
            f"joined; its columns are {', '.join(names)}; name the column with id=…"
        )
    return ids


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

    def choose(names: tuple[str, ...]) -> dict[str, str | None]:
        require_columns(names, (cluster,), name)
        others = [column for column in names if column != cluster]
        if query is None and len(others) == 1 and cluster != "cluster":
            return {"query_id": others[0], "cluster": cluster}
        found = find_columns(others, {"query_id": query}, path=name, needed=("query_id",))
        return {**found, "cluster": cluster}

    name = os.fspath(path)
    table = read_table(path, choose)
    queries = names_of(table, str(table.roles["query_id"]), role="query_id")
    require_once(table, queries, "query", "keep one row per query")
    clusters = names_of(table, str(table.roles["cluster"]), role="cluster")
    return dict(zip(queries, clusters, strict=True))
