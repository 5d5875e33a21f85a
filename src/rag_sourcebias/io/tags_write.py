"""Write tag files."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

from rag_sourcebias.errors import DataError
from rag_sourcebias.io.files import PathLike, jsonl_text, write_atomic
from rag_sourcebias.io.tags import TAG_COLUMNS, clean_tag
from rag_sourcebias.types import DocTags, TagTable
from rag_sourcebias.types.names import require_name

__all__ = ["write_tags"]


def write_tags(tags: TagTable, path: PathLike) -> None:
    """Write document tags so that :func:`read_tags` restores them.

    Parameters
    ----------
    tags : TagTable
    path : path
        The name decides: ``.tsv``, ``.csv`` or ``.jsonl``, each also with ``.gz``.

    Raises
    ------
    DataError
        If the name has another ending, or a value cannot be carried: one that would be read as
        unknown or has outer white space, or, outside JSON lines, a line break (or a tab in TSV).
    """
    name = Path(path).name.removesuffix(".gz")
    ending = Path(name).suffix
    records = ((doc_id, tags.get(doc_id)) for doc_id in tags.doc_ids)
    rows = (_record(doc_id, t, exact_id=ending == ".jsonl") for doc_id, t in records)
    if ending == ".jsonl":
        write_atomic(path, jsonl_text(dict(zip(TAG_COLUMNS, row, strict=True)) for row in rows))
    elif ending in (".tsv", ".csv"):
        join = _join_tsv if ending == ".tsv" else _join_csv
        write_atomic(path, (join(row) for row in chain([TAG_COLUMNS], rows)))
    else:
        raise DataError(f"{path}: tags are written as .tsv, .csv or .jsonl (or those with .gz)")


def _record(doc_id: str, tags: DocTags, *, exact_id: bool) -> tuple[str | float | None, ...]:
    if not doc_id or (not exact_id and doc_id != doc_id.strip()):
        raise DataError(f"document id {doc_id!r} is empty or has outer white space; use .jsonl")
    texts = (tags.source, tags.style, tags.pair_id)
    for value in texts:
        if value is not None and clean_tag(value, "tag", "") != value:
            raise DataError(f"document {doc_id!r}: tag {value!r} would not be read back as it is")
    for name, value in (("source", tags.source), ("style", tags.style)):
        require_name(value or "", name, f"document {doc_id!r}")
    return doc_id, *texts, tags.origin, tags.confidence


def _cells(row: Sequence[object]) -> list[str]:
    cells = ["" if value is None else str(value) for value in row]
    bad = next((c for c in cells if "\n" in c or "\r" in c), None)
    if bad is not None:
        raise DataError(f"{bad!r} holds a line break; write the tags as .jsonl")
    return cells


def _join_tsv(row: Sequence[object]) -> str:
    cells = _cells(row)
    bad = next((c for c in cells if "\t" in c), None)
    if bad is not None:
        raise DataError(f"{bad!r} holds a tab; write the tags as .csv or .jsonl")
    return "\t".join(cells) + "\n"


def _join_csv(row: Sequence[object]) -> str:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerow(_cells(row))
    return buffer.getvalue()
