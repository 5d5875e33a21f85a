"""A table from any carrier: its columns, which of them holds what, and its cells as values."""

from __future__ import annotations

import csv
import json
import math
import os
import re
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from importlib import import_module
from itertools import chain, islice
from pathlib import Path
from types import NoneType
from typing import Any, Literal, TypeVar

import numpy as np

from rag_sourcebias.core.codec import PathLike, check_file, sound
from rag_sourcebias.core.data import BoolArray, FloatArray
from rag_sourcebias.core.errors import DataError, import_extra, require_name
from rag_sourcebias.core.finding import Code, Finding
from rag_sourcebias.intake.files import check_unpacked, read_json, read_jsonl, read_lines
from rag_sourcebias.intake.objects import columns_of, columns_of_rows, holds_table, name_of

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
    groups: Sequence[int] | None = None,
) -> Iterator[Any]:
    """Give the rows as record batches.

    Values that repeat are stored once, so what is unpacked is counted again as it comes.

    Parameters
    ----------
    file : pyarrow.parquet.ParquetFile
        From :func:`open_parquet`, in whose block this is read.
    groups : sequence of int, optional
        Row groups; all of them if left out.
    """
    pa, _ = pyarrow_modules(f"reading {path.name}")
    size = path.stat().st_size
    unpacked = 0
    # No value is longer than its row group: where that is small, little is unpacked at once.
    numbers = range(file.num_row_groups)
    longest = max((file.metadata.row_group(n).total_byte_size for n in numbers), default=0)
    rows = _ROWS if longest >= _SMALL else min(_ROWS, _BATCH_BYTES // max(longest, 1))
    is_dictionary = pa.types.is_dictionary
    for found in file.iter_batches(rows, row_groups=groups, columns=columns, use_threads=False):
        plain = [c.dictionary_decode() if is_dictionary(c.type) else c for c in found]
        batch = pa.RecordBatch.from_arrays(plain, found.schema.names)
        unpacked += batch.nbytes
        check_unpacked(path, unpacked=unpacked, packed=size)
        yield batch


# A table from any carrier as columns.


Value = TypeVar("Value")
_PARQUET = (".parquet", ".pq")
Chosen = str | Sequence[str] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Columns of equal length, and where their cells stand.

    Parameters
    ----------
    path : str
        What the table is called in messages.
    lines : sequence of int
        Line of each row; for what has no lines the number of the row, from 1.
    columns : mapping of str to list
        Text in CSV and TSV; otherwise what the table holds, None where a row lacks the key.
    unit : str
        What stands before the number of a row that is not that of its line.
    notes : list of Finding
        What a reader understood of the cells and a user should know.
    """

    path: str
    lines: Sequence[int]
    columns: Mapping[str, list[Any]]
    unit: Literal["", " row ", " record "] = ""
    notes: list[Finding] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not self.lines:
            header = ", ".join(self.columns)
            raise DataError(f"{self.path} holds a header but no rows: {header:.200}")

    def __len__(self) -> int:
        return len(self.lines)

    @property
    def names(self) -> list[str]:
        """What the columns are called."""
        return list(self.columns)

    def where(self, row: int) -> str:
        """Name file and line of a row."""
        return f"{self.path}:{self.unit}{self.lines[row]}"

    def refuse(self, wrong: BoolArray, column: str, why: str, *, role: str = "cell") -> None:
        """Raise for the first cell of a column that is wrong, if there is one."""
        if wrong.any():
            row = int(wrong.argmax())
            cell = self.columns[column][row]
            raise DataError(f"{self.where(row)}: {role} {cell!r:.80} (column {column!r}) {why}")

    def spread(self, rows: Sequence[int], columns: dict[str, list[Any]]) -> Table:
        """Return a table whose rows come from some of this one, with other columns."""
        return replace(self, lines=[self.lines[row] for row in rows], columns=columns)

    def records(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Give the cells of each row, and its place."""
        for row, cells in enumerate(zip(*self.columns.values(), strict=True)):
            yield self.where(row), dict(zip(self.columns, cells, strict=True))


def read_table(
    source: Any,  # noqa: ANN401 - whatever a user has
    *,
    quoted: bool = False,
    most: int | None = None,
) -> Table:
    """Read a table.

    Parameters
    ----------
    source : path, frame, list of dicts, dict of columns, result of an evaluation or Table
        A path that ends in ``.parquet`` or ``.pq`` is Parquet (with pyarrow). Any other is text,
        plain or packed: JSON (an array of objects, columns as pandas writes them, a result of
        deepeval) or JSON lines if it starts with ``[`` or ``{``, TSV if the first line has a tab
        (no quoting, one record per line), else CSV (a quoted cell may span lines; ``;`` separates
        where the header has no comma). For objects see
        :func:`~rag_sourcebias.intake.objects.columns_of`.
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
    if isinstance(source, Table):
        return source
    if not isinstance(source, str | os.PathLike):
        return table_of(columns_of(source, "data"), "data")
    name = os.fspath(source)
    if name.endswith(_PARQUET):
        return read_parquet(Path(source), part=slice(None if most is None else 1))
    head = [line for _, line in islice(read_lines(source), 2)]
    if not head:
        raise DataError(f"{name} is empty; expected a header and rows, or JSON")
    if head[0].lstrip().startswith(("[", "{")):
        return _read_json(source, head, most)
    separator = next((mark for mark in "\t,;" if mark in head[0]), ",")
    records = _csv(source, separator)
    if separator == "\t" and not quoted:
        records = ((number, line.split("\t")) for number, line in read_lines(source))
    line, header = next(records)
    names = _unique_names(list(map(str.strip, header)), f"{name}:{line}")
    return _of_records(name, names, islice(records, most))


def read_fields(
    path: PathLike, names: Sequence[str], split: Callable[[str], list[str]], *, n_headers: int = 0
) -> Table:
    """Read lines of some fields, which no header names.

    Parameters
    ----------
    names : sequence of str
        What each field is called.
    split : callable
        Takes a line apart.
    n_headers : int
        Lines at the start that are left out.

    Raises
    ------
    DataError
        If a line has another number of fields.
    """
    records = ((line, split(text)) for line, text in islice(read_lines(path), n_headers, None))
    return _of_records(os.fspath(path), names, records)


def table_of(
    columns: dict[str, list[Any]], name: str, unit: Literal["", " row ", " record "] = " row "
) -> Table:
    """Return columns in memory as a table."""
    n_rows = len(next(iter(columns.values()), ()))
    return Table(path=name, lines=range(1, n_rows + 1), columns=columns, unit=unit)


def listed(names: Chosen) -> tuple[str, ...]:
    """Return the columns of a role."""
    return (names,) if isinstance(names, str) else tuple(names or ())


def columns_in(roles: Mapping[str, Chosen]) -> list[str]:
    """Return the columns that have a role, each once."""
    return list(dict.fromkeys(chain.from_iterable(map(listed, roles.values()))))


_Records = Iterator[tuple[int, list[str]]]


def _of_records(name: str, names: Sequence[str], records: _Records) -> Table:
    """Return records that have as many cells as there are names."""
    width = len(names)
    lines: list[int] = []
    every: list[str] = []
    for line, cells in records:
        if len(cells) != width:
            raise DataError(
                f"{name}:{line}: expected {width} columns ({' '.join(names)[:80]}), found "
                f"{len(cells)}: {str(cells)[:80]}"
            )
        lines.append(line)
        every += cells
    columns: dict[str, list[Any]] = {column: every[at::width] for at, column in enumerate(names)}
    return Table(path=name, lines=lines, columns=columns)


def _unique_names(names: list[str], where: str) -> list[str]:
    for at, name in enumerate(names):
        if name in names[:at]:
            raise DataError(f"{where}: two columns are called {name!r}; rename one")
    return names


def _csv(path: PathLike, separator: str) -> _Records:
    # A blank line may stand within a quoted cell; between records csv gives it as an empty one.
    lines = (line + "\n" for _, line in read_lines(path, blank=True))
    records = csv.reader(lines, strict=True, delimiter=separator)
    last = 0  # line on which the record before ends
    # Retrieved contexts in one cell pass the usual limit, which is that of the whole process.
    limit = csv.field_size_limit(2**31 - 1)
    try:
        for record in records:
            # spreadsheets leave separators at the end
            if any(record) and not (len(record) == 1 and record[0].isspace()):
                yield last + 1, record
            last = records.line_num
    except csv.Error as error:
        raise DataError(
            f"{path}:{last + 1}: not a CSV record ({error}; read through line {records.line_num})"
        ) from error
    finally:
        csv.field_size_limit(limit)


def _read_json(path: PathLike, head: Sequence[str], most: int | None) -> Table:
    """Read JSON lines, or the one value of a file that holds a whole table."""
    name = os.fspath(path)
    start = head[0].strip()
    if start.startswith("[") or start == "{" or len(head) == 1:
        whole = read_json(path, "a table as JSON")
        if not isinstance(whole, dict) or holds_table(whole):
            return table_of(columns_of(whole, name), name, " record ")
    return table_of_objects(islice(read_jsonl(path), most), name)


def table_of_objects(rows: Iterable[tuple[int, Mapping[str, Any]]], name: str) -> Table:
    """Return the columns of the objects on numbered lines of a file."""
    lines: list[int] = []

    def objects() -> Iterator[Mapping[str, Any]]:
        for line, row in rows:
            lines.append(line)
            yield row

    columns = columns_of_rows(objects())
    return Table(path=name, lines=lines, columns=columns)


def read_parquet(path: Path, *, part: slice = slice(None), first: int = 1) -> Table:
    """Return a Parquet file as a table whose columns are read when they are asked for.

    Parameters
    ----------
    part : slice
        Of its row groups; all by default.
    first : int
        Number of the first row of that part.

    Raises
    ------
    DataError
        As :func:`read_table`.
    """
    with open_parquet(path) as file:
        names = _unique_names(file.schema_arrow.names, str(path))
        groups = range(file.num_row_groups)[part]
        n_rows = sum(file.metadata.row_group(group).num_rows for group in groups)
    columns = _ParquetColumns(path, names, groups, n_rows)
    lines = range(first, first + n_rows)
    return Table(path=str(path), lines=lines, columns=columns, unit=" row ")


@dataclass(frozen=True, slots=True, eq=False)
class _ParquetColumns(Mapping[str, list[Any]]):
    """Columns of a file: vectors, dates and pictures that nobody asks for are never read."""

    path: Path
    names: Sequence[str]
    groups: Sequence[int]
    n_rows: int

    def __getitem__(self, name: str) -> list[Any]:
        if name not in self.names:
            raise KeyError(name)
        cells: list[Any] = []
        with open_parquet(self.path) as file:
            for batch in parquet_batches(file, self.path, [name], groups=self.groups):
                cells += batch.column(0).to_pylist()
        if len(cells) != self.n_rows:
            raise DataError(
                f"{self.path} says that it has {self.n_rows} rows, and has others; write it again"
            )
        return cells

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)


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


_PAIRWISE = {
    **dict.fromkeys(("a", "model_a", "[[a]]"), 1.0),
    **dict.fromkeys(("b", "model_b", "[[b]]"), 0.0),
    **dict.fromkeys(("tie", "draw", "tie (bothbad)", "[[c]]"), 0.5),
}
_WORDS = {
    **_PAIRWISE,
    **dict.fromkeys(("true", "yes", "correct", "pass", "passed", "acceptable"), 1.0),
    **dict.fromkeys(("false", "no", "incorrect", "fail", "failed", "unacceptable"), 0.0),
}
_MISSING = ("", "-", "na", "n/a", "n.a.", "<na>", "nan", "null", "none")
_VALUES = _WORDS | dict.fromkeys(_MISSING, math.nan)
_BLANK = frozenset({*_MISSING, *map(str.upper, _MISSING), *map(str.capitalize, _MISSING)})
# What programs write where there is no value, if nothing else is near it.
_SENTINELS = (-9999.0, -999.0, -99.0, -9.0, -1.0, 99.0, 999.0, 9999.0)
_FENCED = re.compile(r"\s*```(?:[A-Za-z][\w-]*\s)?\s*(.*?)\s*```\s*", re.DOTALL)


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
    if len(rest) < 2 or rest[0] < 0:
        return values
    low, high = rest[0], rest[-1]
    for mark, n in zip(different[marks], counts[marks], strict=True):
        apart = low - mark > np.diff(rest).max() if mark < low else mark - high > high - low
        if apart:
            values[values == mark] = np.nan
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
    values, words = _numbers(table.columns[column])
    table.refuse(
        np.isinf(values),
        column,
        "is not a finite number; numbers, true/false, yes/no, correct/incorrect, A/B/tie or an "
        "empty cell are accepted; write 4/5 or 80 % as 0.8, 5,5 as 5.5",
        role=role,
    )
    if words:
        among = ~(np.isnan(values) | np.isin(values, (0, 0.5, 1)))
        why = f"stands in a column with {min(words)!r}; use words or numbers, not both"
        table.refuse(among, column, why, role=role)
    if not words.isdisjoint(_PAIRWISE):
        table.notes.append(TableCode.PAIRWISE(column=column))
    return values


def _numbers(cells: Sequence[Any]) -> tuple[FloatArray, set[str]]:
    """Return cells as numbers, NaN where one is missing, infinite where it is none; and words."""
    kinds = set(map(type, cells))
    with suppress(OverflowError, ValueError):
        # Python reads 1_0 as 10
        if kinds <= {float, int, NoneType} or (kinds == {str} and "_" not in "".join(cells)):
            if str in kinds and not _BLANK.isdisjoint(cells):
                cells = [math.nan if cell in _BLANK else cell for cell in cells]
            return np.array(cells, dtype=np.float64), set()  # None becomes NaN
    # cells repeat
    text_of = {cell: _plain(cell) for cell in {cell for cell in cells if isinstance(cell, str)}}
    words = _WORDS.keys() & set(text_of.values())
    if bool in kinds:
        words.add("true")
    number_of = {cell: _number(text) for cell, text in text_of.items()}
    values = [number_of[cell] if isinstance(cell, str) else _number(cell) for cell in cells]
    return np.array(values), words


def _number(cell: Any) -> float:  # noqa: ANN401 - a text in small letters, or what a table holds
    if isinstance(cell, str):
        cell = _VALUES.get(cell, math.inf if "_" in cell else cell)
    try:
        return math.nan if cell is None else float(cell)
    except (TypeError, ValueError, OverflowError):
        return math.inf


def _plain(cell: str) -> str:
    return (reply_text(cell) if "<" in cell or "`" in cell else cell.strip()).lower()


def holds_scores(table: Table, column: str) -> bool:
    """Whether a column holds numbers, some perhaps missing."""
    values, words = _numbers(table.columns[column])
    return not words and not np.isnan(values).all() and not np.isinf(values).any()


def score_columns(table: Table, *, taken: Collection[str | None] = ()) -> list[str]:
    """Return the columns that hold numbers and by their name may be scores.

    Parameters
    ----------
    taken : collection of str
        Columns that are something else.
    """
    others = [name for name in table.names if name not in taken]
    maybe = [name for name in others if plain_name(name) not in _NO_SCORES]
    return [name for name in maybe if holds_scores(table, name)]


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


def cells_as(table: Table, column: str, read: Callable[[Any], Value]) -> list[Value]:
    """Return the cells of a column as a function reads them, each different one once.

    Raises
    ------
    DataError
        As the function, with file, line and column before its message.
    """
    cells = table.columns[column]
    hashable = {list, dict}.isdisjoint(map(type, cells))
    keys: Sequence[Any] = cells if hashable else range(len(cells))
    values: dict[Any, Any] = dict.fromkeys(keys)
    key: Any = None
    try:
        for key in values:
            values[key] = read(key if hashable else cells[key])
    except DataError as error:
        raise DataError(f"{table.where(keys.index(key))}: {column} {error}") from error
    return list(map(values.__getitem__, keys))


def list_in(cell: Any) -> Any:  # noqa: ANN401 - whatever a table holds
    """Return the list that a text holds as JSON; anything else as it is."""
    if isinstance(cell, str) and cell.lstrip().startswith("["):
        with suppress(ValueError, RecursionError):
            return json.loads(cell)
    return cell


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
    ids = list(map("\t".join, zip(*parts, strict=True)))
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
        before = first.setdefault(name, row)
        if before != row:
            place = table.where(before)
            raise DataError(
                f"{table.where(row)}: {what} {name!r} stands at {place} already; {remedy}"
            )


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
    path: str = "the table",
    taken: Collection[str | None] = (),
) -> str | None:
    """Find the column of a role by the usual names; None if there is none.

    Parameters
    ----------
    role : str
        Such as ``"human"``, ``"judge"``, ``"id"``, ``"cluster"``, ``"answer"`` or ``"rank"``.
    taken : collection of str
        Columns the caller named for other roles; their usual names mean nothing then.

    Raises
    ------
    DataError
        If several columns could be meant.
    """
    aliases = _ALIASES[role]
    usual = [name for name in names if name not in taken and plain_name(name) in aliases]
    found = sorted(usual, key=lambda name: aliases.index(plain_name(name)))
    if len(found) > 1 and plain_name(found[0]) != role and role in _ALONE:
        raise DataError(
            f"{path}: columns {' and '.join(map(repr, found))} could all be the {role} column; "
            f"call the right one {aliases[0]!r}, or say which with {role}=…"
        )
    return next(iter(found), None)


def find_columns(
    table: Table,
    roles: Mapping[str, Chosen],
    *,
    taken: Collection[str | None] = (),
    needed: Collection[str] = (),
    options: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Find the columns of several roles, each with what the caller said of it.

    Parameters
    ----------
    roles : mapping of str to str, sequence of str or None
        A column that is named must exist. ``"none"`` for the clusters: rows of one query are
        none, which they are taken for otherwise.
    needed : collection of str
        Roles that :func:`require_roles` asks for; ``options`` is for it.

    Returns
    -------
    dict of str to str, sequence of str or None

    Raises
    ------
    DataError
        As :func:`find_column`, and if a column that is named or needed is not there.
    """
    taken = {*taken, *columns_in(roles)}
    found: dict[str, Chosen] = {
        role: named or find_column(table.names, role, path=table.path, taken=taken)
        for role, named in roles.items()
    }
    if found.get("cluster") == "none" and "none" not in table.columns:
        found["cluster"] = None
    require_columns(table, columns_in(found))
    require_roles(table, found, needed, options=options)
    return found


def require_roles(
    table: Table,
    found: Mapping[str, Chosen],
    needed: Iterable[str],
    *,
    options: Mapping[str, str] | None = None,
) -> None:
    """Raise if a role that is needed has no column.

    Parameters
    ----------
    options : mapping of str to str, optional
        What says which column has a role, where anything does; by default its keyword.
    """
    if lacking := [_ALIASES[role] for role in needed if not found[role]]:
        plain = [aliases[0] for aliases in lacking]
        naming = [f"{role}=…" if options is None else options.get(role, "") for role in plain]
        said = f" with {' and '.join(naming)}, or" if all(naming) else ""
        usual = "; ".join(", ".join(aliases[:6]) for aliases in lacking)
        raise DataError(
            f"{table.path}: no column is recognised as {' or '.join(plain)}; its columns are "
            f"{', '.join(table.names)}; name the column{said} as is usual: {usual}"
        )


def require_columns(table: Table, wanted: Iterable[str]) -> None:
    """Raise if one of the columns is not there."""
    if lacking := [name for name in wanted if name not in table.columns]:
        raise DataError(
            f"{table.path} has no column {', '.join(map(repr, lacking))}; its columns are "
            f"{', '.join(table.names)}"
        )


def find_ids(
    table: Table,
    given: Chosen = None,
    *,
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
        require_columns(table, listed(given))
        return listed(given)
    names, path = table.names, table.path
    single = find_column(names, "id", path=path, taken=taken)
    both = (find_column(names, role, path=path) for role in ("query_id", "doc_id"))
    ids = tuple(filter(None, both if single is None else (single,)))
    if len(ids) == 1 and ids[0] in taken:
        ids = ()
    if needed:
        require_roles(table, {"id": ids}, ["id"])
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
    table = read_table(path)
    require_columns(table, (cluster,))
    others = [column for column in table.names if column != cluster]
    if cluster != "cluster" and len(others) == 1:
        query = others[0]
    found = find_columns(table, {"query_id": query}, taken=(cluster,), needed=("query_id",))
    queries = names_of(table, found["query_id"], role="query_id")
    clusters = names_of(table, cluster, role="cluster")
    require_once(table, queries, "query", "keep one row per query")
    return dict(zip(queries, clusters, strict=True))
