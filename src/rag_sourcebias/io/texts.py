"""Texts by id, from tables and BEIR files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from rag_sourcebias.errors import DataError
from rag_sourcebias.io.beir_corpus import read_corpus
from rag_sourcebias.io.cells import ids_of
from rag_sourcebias.io.files import PathLike, read_lines
from rag_sourcebias.io.tables import read_table

__all__ = ["read_texts"]

Kind = Literal["query", "document"]
_IDS = {
    "query": ("query_id", "query-id", "qid", "_id", "id", "topic"),
    "document": ("doc_id", "docid", "docno", "corpus-id", "passage_id", "pid", "_id", "id"),
}
_TEXTS = {
    "query": ("text", "query", "question", "title"),
    "document": ("text", "contents", "passage", "body", "document"),
}


def read_texts(path: PathLike, kind: Kind) -> Mapping[str, str]:
    """Read queries or documents as a mapping from id to text.

    Parameters
    ----------
    path : path
        CSV, TSV, JSON lines (also .gz) or Parquet with an id (``_id``, ``query_id``, ``doc_id``,
        …) and a text (``text``, ``query``, ``contents``, …); a ``title`` of a document goes before
        its text. Two tab-separated columns without a header are id and text, as TREC and MS MARCO
        write queries. For documents also a BEIR folder: a document of ``corpus/<source>.jsonl`` is
        then called ``<_id>@<source>``, as in an audit.

    Raises
    ------
    DataError
        If no column is recognised as id or text, or an id is empty or occurs twice.
    """
    file = Path(path)
    if kind == "document" and file.is_dir():
        corpus = read_corpus(file, sources=None, titles=True).corpus
        return dict(zip(corpus.doc_ids, corpus.texts, strict=True))
    if (plain := _without_header(path, kind)) is not None:
        return plain
    name = os.fspath(path)
    chosen: list[str] = []

    def choose(names: tuple[str, ...]) -> list[str]:
        for what, known in (("id", _IDS[kind]), ("text", _TEXTS[kind])):
            found = next((n for k in known for n in names if n.lower() == k), None)
            if found is None:
                raise DataError(
                    f"{name}: no column is recognised as {kind} {what}; its columns are "
                    f"{', '.join(names)}; call it {known[0]}"
                )
            chosen.append(found)
        if kind == "document":
            chosen.extend(n for n in names if n.lower() == "title" and n not in chosen)
        return chosen

    table = read_table(path, choose)
    ids = ids_of(table, (chosen[0],))
    columns = [table.columns[c] for c in (*chosen[2:], chosen[1])]
    texts = [" ".join(str(c) for c in row if c).strip() for row in zip(*columns, strict=True)]
    return dict(zip(ids, texts, strict=True))


def _without_header(path: PathLike, kind: Kind) -> dict[str, str] | None:
    """Read id and text of two columns whose first line names neither; None for other files."""
    if not os.fspath(path).removesuffix(".gz").endswith((".tsv", ".txt")):
        return None
    first = next(read_lines(path), (0, ""))[1].split("\t")
    known = {*_IDS[kind], *_TEXTS[kind]}
    if len(first) != 2 or any(cell.strip().lower() in known for cell in first):
        return None
    texts: dict[str, str] = {}
    for number, line in read_lines(path):
        name, tab, text = line.partition("\t")
        if not tab or not name.strip() or name.strip() in texts:
            raise DataError(
                f"{os.fspath(path)}:{number}: expected an id that occurs once, a tab and a text, "
                f"found {line[:80]!r}"
            )
        texts[name.strip()] = text.strip()
    return texts
