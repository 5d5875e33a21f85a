"""Tags in a SQLite file beside the documents, shared by several processes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rag_sourcebias.io.sqlite_file import MOST_KEYS
from rag_sourcebias.tagging.keys import TAG_FIELDS, make_tags
from rag_sourcebias.tagging.sqlite_tag_file import SCHEMA, TABLE, Cell, TagFile, from_cell, to_cell
from rag_sourcebias.tagging.store import (
    UNKNOWN,
    DamagedRowError,
    check_rows,
    check_strings,
    content_hash,
)
from rag_sourcebias.types.documents import DocTags, TagTable

__all__ = ["SqliteTagStore"]

_INDEX = f"""
CREATE INDEX IF NOT EXISTS {TABLE}_by_text ON {TABLE} (text_hash) WHERE text_hash IS NOT NULL
"""
_COLUMNS = ", ".join(TAG_FIELDS)
_PUT = f"""
INSERT OR REPLACE INTO {TABLE} (doc_id, text_hash, {_COLUMNS})
VALUES (?1, COALESCE(?2, (SELECT text_hash FROM {TABLE} WHERE doc_id = ?1)), ?3, ?4, ?5, ?6, ?7)
"""


class SqliteTagStore:
    """Tags in one SQLite file; see :class:`~rag_sourcebias.tagging.TagStore`.

    A ``put`` is one transaction. A writer waits for another one up to a minute.

    Parameters
    ----------
    path : str or Path
        The file; it and its folder are created by the first ``put``.

    Raises
    ------
    DataError
        If the file is damaged, or a database of another program.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._file = TagFile(path, SCHEMA)
        if self._file.exists:
            self._file.check()  # now, not at the first retrieval

    def get(self, doc_ids: Sequence[str]) -> list[DocTags]:
        """Tags of each document in order; all unknown where the id is not in the store."""
        return self._find("doc_id", [to_cell(i) for i in check_strings(doc_ids, "document id")])

    def get_by_text(self, texts: Sequence[str]) -> list[DocTags]:
        """Tags of the document put last with exactly this text; all unknown where none was."""
        return self.get_by_hash([content_hash(text) for text in check_strings(texts, "text")])

    def get_by_hash(self, hashes: Sequence[bytes]) -> list[DocTags]:
        """As :meth:`get_by_text`, for texts known by their hash only."""
        return self._find("text_hash", list(hashes))

    def put(
        self, rows: Iterable[tuple[str, DocTags]], texts: Mapping[str, str] | None = None
    ) -> None:
        """Store tags, replacing those a document had; of an id given twice the last row counts."""
        cells = [
            (to_cell(doc_id), text_hash, *(to_cell(getattr(tags, name)) for name in TAG_FIELDS))
            for doc_id, tags, text_hash in check_rows(rows, texts)
        ]
        if not cells:
            return
        self._file.create_folder()
        with self._file.connection() as database:
            database.execute("BEGIN IMMEDIATE")
            database.execute(_INDEX)
            database.executemany(_PUT, cells)

    def remove(self, doc_ids: Sequence[str]) -> int:
        """Forget documents; return how many of them were in the store."""
        keys = [(to_cell(doc_id),) for doc_id in check_strings(doc_ids, "document id")]
        if not keys or not self._file.exists:
            return 0
        with self._file.connection() as database:
            return database.executemany(f"DELETE FROM {TABLE} WHERE doc_id = ?", keys).rowcount

    def __len__(self) -> int:
        return int(self._select("count(*)")[0][0]) if self._file.exists else 0

    def counts(self) -> dict[str, int]:
        """Documents per source; the key ``""`` counts those stored as unknown, if any."""
        found = self._select("source, count(*)", "GROUP BY source")
        number = {"" if source is None else self._text(source): n for source, n in found}
        untagged = number.pop("", 0)
        return dict(sorted(number.items())) | ({"": untagged} if untagged else {})

    def table(self) -> TagTable:
        """All tags as columns, the document put last at the end."""
        rows = self._select(f"doc_id, {_COLUMNS}", "ORDER BY n")
        return TagTable.from_tags((self._text(key), self._tags(key, row)) for key, *row in rows)

    def _find(self, column: str, keys: list[Cell] | list[bytes]) -> list[DocTags]:
        found: dict[Cell, DocTags] = {}
        if not keys or not self._file.exists:
            return [UNKNOWN] * len(keys)
        with self._file.connection() as database:
            for start in range(0, len(keys), MOST_KEYS):
                some = keys[start : start + MOST_KEYS]
                places = ",".join("?" * len(some))
                query = f"SELECT {column}, {_COLUMNS} FROM {TABLE} WHERE {column} IN ({places})"
                for key, *row in database.execute(f"{query} ORDER BY n", some):
                    found[key] = self._tags(key, row)
        return [found.get(key, UNKNOWN) for key in keys]

    def _select(self, columns: str, rest: str = "") -> list[tuple[Any, ...]]:
        if not self._file.exists:
            return []
        with self._file.connection() as database:
            return database.execute(f"SELECT {columns} FROM {TABLE} {rest}").fetchall()

    def _text(self, cell: Cell) -> str:
        try:
            return str(from_cell(cell))
        except UnicodeDecodeError as error:
            reason = f"{cell!r:.40} is no text: {error.reason}"
            raise self._file.damaged(reason, DamagedRowError) from error

    def _tags(self, key: object, row: Sequence[Cell]) -> DocTags:
        try:
            return make_tags(*map(from_cell, row))
        except ValueError as error:  # a DataError is one
            raise self._file.damaged(f"row {key!r}: {error}", DamagedRowError) from error
