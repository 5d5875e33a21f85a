"""Parquet files, read a few rows at a time and only in proportion to their size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rag_sourcebias.io.damage import check_file, check_unpacked, sound
from rag_sourcebias.io.pyarrow_modules import pyarrow_modules

__all__ = ["open_parquet", "parquet_batches", "parquet_columns"]

_ROWS = 1_024
_MANY = 65_536
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
        groups = (file.metadata.row_group(g) for g in range(file.num_row_groups))
        check_unpacked(path, unpacked=sum(group.total_byte_size for group in groups), packed=size)
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
    pa, pq = pyarrow_modules(f"reading {path.name}")
    size, unpacked = path.stat().st_size, 0
    chosen = list(range(file.num_row_groups) if groups is None else groups)
    # No value is longer than its row group: where that is small, little is unpacked at once.
    longest = max((file.metadata.row_group(g).total_byte_size for g in chosen), default=1)
    rows = min(_ROWS, _BATCH_BYTES // max(longest, 1)) if longest < _SMALL else _ROWS
    if rows < _ROWS and (longest := _longest_repeated(pq, file, path, columns, chosen)) is not None:
        rows = min(_MANY, _BATCH_BYTES // max(longest, 1) or 1)
    for found in file.iter_batches(rows, row_groups=chosen, columns=columns, use_threads=False):
        batch = found
        if any(pa.types.is_dictionary(field.type) for field in found.schema):
            batch = pa.RecordBatch.from_arrays([_plain(pa, c) for c in found], found.schema.names)
        unpacked += batch.nbytes
        check_unpacked(path, unpacked=unpacked, packed=size)
        yield batch


def _longest_repeated(
    pq: Any,  # noqa: ANN401
    file: Any,  # noqa: ANN401
    path: Path,
    columns: Sequence[str],
    groups: Iterable[int],
) -> int | None:
    """Return the length of the longest text that a file stores once for many rows.

    None where that is not known: texts in lists, and values of a length of their own.
    """
    from pyarrow import compute

    schema, texts = file.metadata.schema, []
    for column in (schema.column(i) for i in range(len(schema))):
        if column.path.split(".")[0] in columns and "BYTE_ARRAY" in column.physical_type:
            if column.physical_type != "BYTE_ARRAY" or column.path not in columns:
                return None
            texts.append(column.path)
    longest = 0
    # The first row as a dictionary comes with all values of its row group's.
    with pq.ParquetFile(path, metadata=file.metadata, read_dictionary=texts) as reader:
        for group in groups if texts else ():
            for row in reader.iter_batches(1, row_groups=[group], columns=texts):
                for values in (column.dictionary for column in row):
                    longest = max(longest, compute.max(compute.binary_length(values)).as_py() or 0)
                break
    return longest


def _plain(pa: Any, column: Any) -> Any:  # noqa: ANN401
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


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
