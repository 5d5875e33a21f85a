"""Queries and judgments of a folder of rewrites: copied, never shown to a model."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

from rag_sourcebias.corpora.humans import HumanInput, HumanRow
from rag_sourcebias.errors import DataError
from rag_sourcebias.io.files import jsonl_text, read_jsonl, read_lines, write_atomic
from rag_sourcebias.types import Corpus, Dataset

__all__ = ["copy_relevance"]

_HEADER = "query-id\tcorpus-id\tscore\n"
_HEADER_STARTS = ("query-id", "query_id", "qid")
_ENDINGS = (".tsv", ".tsv.gz", ".txt", ".txt.gz")


def copy_relevance(
    source: HumanInput, folder: Path, *, kept: Callable[[], Iterator[HumanRow]] | None
) -> None:
    """Copy ``queries.jsonl`` and ``qrels/`` of a folder, byte for byte, or write a data set's.

    Parameters
    ----------
    source : Dataset, Corpus or path
        Where there is neither (a corpus never has them) nothing is written.
    folder : Path
    kept : callable, optional
        Gives the documents that were taken, where not all were: then only judgments of these and
        their queries are copied, each line as it is but for its end.
    """
    if isinstance(source, Corpus):
        return
    if isinstance(source, Dataset):
        (folder / "qrels").mkdir(exist_ok=True)
        _write_dataset(source, folder, None if kept is None else {row.doc_id for row in kept()})
        return
    root = Path(source)
    splits = [p for p in sorted(root.glob("qrels/*")) if p.name.endswith(_ENDINGS)]
    queries = [p for p in (root / "queries.jsonl", root / "queries.jsonl.gz") if p.is_file()]
    if not splits and not queries:
        return
    if not splits or not queries:
        missing = "queries.jsonl" if splits else "qrels/<split>.tsv"
        raise DataError(f"{root} has no {missing}; give both or neither")
    (folder / "qrels").mkdir(exist_ok=True)
    if kept is None:
        for file in (*splits, queries[0]):
            write_atomic(folder / file.relative_to(root), file.read_bytes())
        return
    with closing(sqlite3.connect("")) as ids:  # on disk, and gone when closed
        ids.execute("CREATE TABLE docs (id TEXT PRIMARY KEY) WITHOUT ROWID")
        ids.execute("CREATE TABLE queries (id TEXT PRIMARY KEY) WITHOUT ROWID")
        ids.executemany("INSERT INTO docs VALUES (?)", ((row.doc_id,) for row in kept()))
        for file in splits:
            write_atomic(folder / file.relative_to(root), _judged_lines(file, ids))
        write_atomic(folder / queries[0].relative_to(root), _query_lines(queries[0], ids))


def _judged_lines(file: Path, ids: sqlite3.Connection) -> Iterator[str]:
    for number, line in read_lines(file):
        fields = line.split()
        # BEIR has three columns under a header, TREC four: the document is before the grade.
        known = len(fields) >= 3 and _has(ids, "docs", fields[-2])
        if known:
            ids.execute("INSERT OR IGNORE INTO queries VALUES (?)", (fields[0],))
        if known or (number == 1 and fields[0].lower() in _HEADER_STARTS):
            yield line + "\n"


def _query_lines(file: Path, ids: sqlite3.Connection) -> Iterator[str]:
    rows = read_jsonl(file)
    for (_, row), (_, line) in zip(rows, read_lines(file), strict=True):
        if _has(ids, "queries", str(row.get("_id"))):
            yield line + "\n"


def _has(ids: sqlite3.Connection, table: str, key: str) -> bool:
    return ids.execute(f"SELECT 1 FROM {table} WHERE id = ?", (key,)).fetchone() is not None


def _write_dataset(dataset: Dataset, folder: Path, kept: set[str] | None) -> None:
    tags, qrels = dataset.corpus.tags, dataset.qrels
    judged: set[str] = set()
    lines: list[str] = [_HEADER]
    for query, doc, grade in zip(qrels.query_codes, qrels.doc_codes, qrels.grades, strict=True):
        query_id, doc_id = qrels.query_ids[query], qrels.doc_ids[doc]
        tag = tags.get(doc_id)
        name = tag.pair_id or doc_id
        if tag.source not in (None, "human") or (kept is not None and name not in kept):
            continue
        if any(mark in text for mark in "\t\r\n" for text in (query_id, name)):
            raise DataError(f"id {query_id!r} or {name!r} holds a tab or a line break")
        judged.add(query_id)
        lines.append(f"{query_id}\t{name}\t{grade}\n")
    queries = (
        {"_id": q.query_id, "text": q.text}
        for q in dataset.queries
        if kept is None or q.query_id in judged
    )
    write_atomic(folder / "queries.jsonl", jsonl_text(queries))
    write_atomic(folder / "qrels" / "test.tsv", lines)
