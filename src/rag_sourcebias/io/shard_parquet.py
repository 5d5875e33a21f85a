"""Corpora in Parquet files, read some row groups at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rag_sourcebias.errors import DataError
from rag_sourcebias.io.parquet import open_parquet, parquet_columns
from rag_sourcebias.io.pyarrow_modules import pyarrow_modules
from rag_sourcebias.io.shard_parts import Part

__all__ = ["index_parquet", "read_parquet_part"]

_NEEDED = ("_id", "text")
_TAGS = ("source", "style", "pair_id")
_OPTIONAL = ("title", *_TAGS)


def index_parquet(path: Path, shard_documents: int) -> list[Part]:
    """Divide a file into parts of whole row groups; only its footer is read.

    Parameters
    ----------
    path : Path
        With the columns ``_id`` (text or whole numbers) and ``text``, and maybe ``title``,
        ``source``, ``style`` and ``pair_id``, all text; others are ignored.
    shard_documents : int
        At most as many documents in a part, unless one row group has more.

    Returns
    -------
    list of Part
        Empty for a file without rows.

    Raises
    ------
    DataError
        If the file is not Parquet, lacks a column, or a column is of another type.
    MissingExtraError
        If pyarrow is not installed.
    """
    pa, _ = pyarrow_modules(f"reading {path.name}")
    with open_parquet(path) as file:
        _check_columns(pa, file.schema_arrow, path)
        sizes = [file.metadata.row_group(g).num_rows for g in range(file.num_row_groups)]
    parts: list[Part] = []
    start = first_row = n_documents = 0
    for group, size in enumerate(sizes):
        if n_documents and n_documents + size > shard_documents:
            parts.append(Part(start, first_row + 1, group - start, n_documents))
            start, first_row, n_documents = group, first_row + n_documents, 0
        n_documents += size
    if n_documents:
        parts.append(Part(start, first_row + 1, len(sizes) - start, n_documents))
    return parts


def read_parquet_part(path: Path, part: Part) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Give the rows of a part as a BEIR corpus file would, with their numbers from 1.

    Raises
    ------
    DataError
        If the file cannot be read.
    MissingExtraError
        If pyarrow is not installed.
    """
    with open_parquet(path) as file:
        names = [n for n in (*_NEEDED, *_OPTIONAL) if n in file.schema_arrow.names]
        groups = range(part.start, part.start + part.length)
        columns = parquet_columns(file, path, names, groups=groups)
    if any(len(values) != part.n_documents for values in columns.values()):
        raise DataError(
            f"{path}: row group {part.start} and the {part.length - 1} after it do not hold the "
            f"{part.n_documents} rows they are said to hold; write the file again"
        )
    tags = [name for name in names if name in _TAGS]
    fields = [name for name in names if name not in _TAGS]
    for i in range(part.n_documents):
        row: dict[str, Any] = {name: columns[name][i] for name in fields}
        row["metadata"] = {name: columns[name][i] for name in tags}
        yield part.first_row + i, row


def _check_columns(pa: Any, schema: Any, path: Path) -> None:  # noqa: ANN401 - pyarrow is untyped
    def fits(name: str) -> bool:
        kind = schema.field(name).type
        if pa.types.is_dictionary(kind):
            kind = kind.value_type
        if pa.types.is_string(kind) or pa.types.is_large_string(kind):
            return True
        return bool(
            pa.types.is_integer(kind) if name == "_id" else name in _OPTIONAL and kind == pa.null()
        )

    names = schema.names
    wanted = f"expected _id and text, optionally {', '.join(_OPTIONAL)}"
    missing = [name for name in _NEEDED if name not in names]
    if missing:
        raise DataError(f"{path} lacks column {' and '.join(missing)}; found {names}, {wanted}")
    for name in (*_NEEDED, *_OPTIONAL):
        if names.count(name) > 1:
            raise DataError(f"{path} has {names.count(name)} columns {name!r}; keep one")
        if name in names and not fits(name):
            raise DataError(
                f"{path}: column {name!r} is of type {schema.field(name).type}; expected text"
                + (" or whole numbers" if name == "_id" else "")
            )
