"""Stores of tags by document id, in memory or in a SQLite file, and documents with theirs."""

import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from threading import RLock
from typing import Any

from rag_sourcebias.core.caches import MOST_KEYS, SqliteFile
from rag_sourcebias.core.codec import check_file, reason_of
from rag_sourcebias.core.data import Corpus, DocTags, TagTable
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.core.tags import (
    TAG_FIELDS,
    UNKNOWN,
    DamagedRowError,
    TagStore,
    check_rows,
    check_strings,
    content_hash,
    make_tags,
)
from rag_sourcebias.intake.documents import (
    as_corpus,
    overlaid,
    read_documents,
    read_tags,
    report_strange,
    with_tags,
)
from rag_sourcebias.observe.document_stores import DocumentStore, HeldStore, open_document_store
from rag_sourcebias.retrieval.rerank import held_by

# Tags in memory.


class _ByText:
    """What every tag store does alike."""

    def get_by_text(self: TagStore, texts: Sequence[str]) -> list[DocTags]:
        """Tags of the document put last with exactly this text; all unknown where none was."""
        return self.get_by_hash([content_hash(text) for text in check_strings(texts, "text")])


class MemoryTagStore(_ByText):
    """Tags that end with the process; see :class:`~rag_sourcebias.core.TagStore`.

    Examples
    --------
    >>> store = MemoryTagStore()
    >>> store.put([("a", DocTags(source="human"))], texts={"a": "A text."})
    >>> [tags.source for tags in store.get(["a", "b"])]
    ['human', None]
    >>> store.get_by_text(["A text."])[0].source
    'human'
    """

    inline = True  # answers within microseconds: asked while the application waits

    def __init__(self) -> None:
        self._lock = RLock()
        #: Tags, and the hash of the text where it is known; the document put last at the end.
        self._rows: dict[str, tuple[DocTags, bytes | None]] = {}
        self._by_hash: dict[bytes, DocTags] | None = {}  # None until it is made anew

    def get(self, doc_ids: Sequence[str]) -> list[DocTags]:
        """Tags of each document in order; all unknown where the id is not in the store."""
        found = [self._rows.get(i) for i in check_strings(doc_ids, "document id")]
        return [UNKNOWN if row is None else row[0] for row in found]

    def get_by_hash(self, hashes: Sequence[bytes]) -> list[DocTags]:
        """As :meth:`get_by_text`, for texts known by their hash only."""
        with self._lock:
            if self._by_hash is None:
                rows = self._rows.values()
                self._by_hash = {text_hash: tags for tags, text_hash in rows if text_hash}
            return [self._by_hash.get(text_hash, UNKNOWN) for text_hash in hashes]

    def put(
        self, rows: Iterable[tuple[str, DocTags]], texts: Mapping[str, str] | None = None
    ) -> None:
        """Store tags, replacing those a document had; of an id given twice the last row counts."""
        checked = check_rows(rows, texts)
        with self._lock:
            self._by_hash = None
            for doc_id, tags, text_hash in checked:
                _, known = self._rows.pop(doc_id, (UNKNOWN, None))  # the document moves to the end
                self._rows[doc_id] = (tags, text_hash or known)

    def remove(self, doc_ids: Sequence[str]) -> int:
        """Forget documents; return how many of them were in the store."""
        with self._lock:
            self._by_hash = None
            before = len(self._rows)
            for doc_id in check_strings(doc_ids, "document id"):
                self._rows.pop(doc_id, None)
            return before - len(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def counts(self) -> dict[str, int]:
        """Documents per source; the key ``""`` counts those stored as unknown, if any."""
        with self._lock:
            found = Counter(tags.source or "" for tags, _ in self._rows.values())
        return dict(sorted(found.items(), key=lambda item: (not item[0], item[0])))

    def table(self) -> TagTable:
        """All tags as columns, the document put last at the end."""
        with self._lock:
            items = [(doc_id, tags) for doc_id, (tags, _) in self._rows.items()]
        return TagTable.from_tags(items)


# The SQLite file of a tag store: its table, and what its cells can hold.


TABLE = "rag_sourcebias_tags"
# A row that is replaced gets a new, highest `n`: the order of the last put.
SCHEMA = f"""
CREATE TABLE IF NOT EXISTS {TABLE} (
    n INTEGER PRIMARY KEY, doc_id TEXT NOT NULL UNIQUE, text_hash BLOB,
    source TEXT, style TEXT, pair_id TEXT, origin TEXT, confidence REAL)
"""
Cell = str | bytes | float | None


class TagFile(SqliteFile):
    """The file with messages of its own: a cache may be deleted, a tag store may not."""

    kind = whole_kind = "tag store"
    remedy = "restore it from a copy or name another file"

    def check(self) -> None:
        """Look at an existing file without changing it.

        Raises
        ------
        DataError
            If it is no database, or one with tables of another program only.
        """
        check_file(self.path)
        try:
            with closing(
                sqlite3.connect(f"{self.path.resolve().as_uri()}?mode=ro", timeout=60.0, uri=True)
            ) as database:
                names = [
                    str(name)
                    for (name,) in database.execute(
                        "SELECT name FROM sqlite_master "
                        "WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
                    )
                ]
        except sqlite3.OperationalError as error:
            raise self.unusable(error) from error
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            raise self.damaged(reason_of(error)) from error
        if names and TABLE not in names:
            raise DataError(
                f"{self.path} is a database of another program (it holds {', '.join(names[:5])}); "
                "name a file of its own for the tags"
            )


def to_cell(value: str | float | None) -> Cell:
    """Return what SQLite can hold: a text with a lone surrogate, which is no UTF-8, as bytes."""
    if not isinstance(value, str):
        return value
    try:
        value.encode()
    except UnicodeEncodeError:
        return value.encode("utf-8", "surrogatepass")
    return value


def from_cell(cell: Cell) -> str | float | None:
    """Return the value that :func:`to_cell` was given."""
    return cell.decode("utf-8", "surrogatepass") if isinstance(cell, bytes) else cell


# Tags in a SQLite file beside the documents, shared by several processes.


_INDEX = f"""
CREATE INDEX IF NOT EXISTS {TABLE}_by_text ON {TABLE} (text_hash) WHERE text_hash IS NOT NULL
"""
_COLUMNS = ", ".join(TAG_FIELDS)
_PUT = f"""
INSERT OR REPLACE INTO {TABLE} (doc_id, text_hash, {_COLUMNS})
VALUES (?1, COALESCE(?2, (SELECT text_hash FROM {TABLE} WHERE doc_id = ?1)), ?3, ?4, ?5, ?6, ?7)
"""


class SqliteTagStore(_ByText):
    """Tags in one SQLite file; see :class:`~rag_sourcebias.core.TagStore`.

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

    inline = True  # a local file answers within a millisecond, and most answers are remembered

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._file = TagFile(path, SCHEMA)
        if self._file.exists:
            self._file.check()  # now, not at the first retrieval

    def get(self, doc_ids: Sequence[str]) -> list[DocTags]:
        """Tags of each document in order; all unknown where the id is not in the store."""
        return self._find("doc_id", [to_cell(i) for i in check_strings(doc_ids, "document id")])

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
        if cells:
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
        number = {
            "" if source is None else self._text(source): n
            for source, n in self._select("source, count(*)", "GROUP BY source")
        }
        return dict(sorted(number.items(), key=lambda item: (not item[0], item[0])))

    def table(self) -> TagTable:
        """All tags as columns, the document put last at the end."""
        return TagTable.from_tags(
            (self._text(key), self._tags(key, row))
            for key, *row in self._select(f"doc_id, {_COLUMNS}", "ORDER BY n")
        )

    def _find(self, column: str, keys: list[Cell] | list[bytes]) -> list[DocTags]:
        found: dict[Cell, DocTags] = {}
        if not keys or not self._file.exists:
            return [UNKNOWN] * len(keys)
        with self._file.connection() as database:
            for start in range(0, len(keys), MOST_KEYS):
                some = keys[start : start + MOST_KEYS]
                for key, *row in database.execute(
                    f"SELECT {column}, {_COLUMNS} FROM {TABLE} "
                    f"WHERE {column} IN ({','.join('?' * len(some))}) ORDER BY n",
                    some,
                ):
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
            raise self._file.damaged(
                f"{cell!r:.40} is no text: {error.reason}", DamagedRowError
            ) from error

    def _tags(self, key: object, row: Sequence[Cell]) -> DocTags:
        try:
            return make_tags(*map(from_cell, row))
        except ValueError as error:  # a DataError is one
            raise self._file.damaged(f"row {key!r}: {error}", DamagedRowError) from error


# Choose a tag store by the name of its file.


SQLITE = (".sqlite", ".sqlite3", ".db")


def open_tag_store(spec: str | Path | None = None) -> TagStore:
    """Open the tag store that a file name asks for.

    Parameters
    ----------
    spec : str, Path or None
        ``.sqlite``, ``.sqlite3`` or ``.db``: a database that several processes may share, created
        by the first ``put``. None: memory.

    Raises
    ------
    DataError
        If the name has another ending, or the file is damaged.
    """
    if spec is None:
        return MemoryTagStore()
    if isinstance(spec, str | Path) and Path(spec).suffix.lower() in SQLITE:
        return SqliteTagStore(spec)
    raise DataError(
        f"tag store {spec!r} is not recognised; name a file that ends in {', '.join(SQLITE)}, or "
        "give None to keep the tags in memory"
    )


def as_tag_store(tags: Any) -> TagStore:  # noqa: ANN401 - whatever a user has
    """Return a tag store of whatever holds tags.

    Parameters
    ----------
    tags : TagStore, path, ``KIND:PLACE``, or what ``read_tags`` takes
        A store is returned as it is, a database of tags is opened, of a store of documents
        ("chroma:db") the tags that it holds now are read, and so are files, frames and
        dictionaries.

    Raises
    ------
    DataError
        If it is none of these.
    """
    if isinstance(tags, TagStore):
        return tags
    if isinstance(tags, str | Path) and Path(tags).suffix.lower() in SQLITE:
        return SqliteTagStore(tags)
    store = MemoryTagStore()
    if isinstance(tags, str) and not Path(tags).exists() and ":" in tags:
        store.put(open_document_store(tags).tags())
        return store
    if callable(tags) or hasattr(tags, "tag"):
        raise DataError(
            f"tags of type {type(tags).__name__} are none that can be looked up; tag the documents "
            "first (rag-sourcebias tag --help), then name the store, or give {id: source}"
        )
    table = read_tags(tags)
    store.put((doc_id, table.get(doc_id)) for doc_id in table.doc_ids)
    return store


# Everything that a store holds, with the tags kept beside it.


def corpus_of(
    store: Any,  # noqa: ANN401 - whatever a user has
    *,
    collection: str | None = None,
    tags: Any = None,  # noqa: ANN401
) -> tuple[Corpus, str]:
    """Return everything that a store holds, and how it is called.

    Parameters
    ----------
    store : str, path, DocumentStore, Corpus, or what ``read_documents`` takes
        An address (``chroma:db``, ``corpus:my-data``, ``app:module:name``), a folder, a vector
        store or index of LangChain or LlamaIndex, a Chroma collection, ``{id: text}``, a frame,
        rows.
    tags : optional
        Sources kept beside it: what ``read_tags`` takes, or the file of ``tag apply --sidecar``.

    Raises
    ------
    DataError
        If it cannot be opened or holds no documents.
    """
    name = "store"
    if isinstance(store, str | Path):
        is_place = Path(store).exists()
        store = open_document_store(f"corpus:{store}" if is_place else str(store),
                                    collection=collection)  # fmt: skip
    elif (held := held_by(store)) is not None:
        store = HeldStore(held, type(store).__name__)
    if isinstance(store, DocumentStore):
        name = store.name
        corpus = _told(store)
    elif isinstance(store, Corpus):
        corpus = store
    else:
        corpus = as_corpus([read_documents(store, any_source=True)])
    if not len(corpus):
        raise DataError(f"{name} holds no documents")
    if isinstance(tags, str | Path) and Path(tags).suffix.lower() in SQLITE:
        kept = open_tag_store(tags).get(corpus.doc_ids)
        tags = TagTable.from_tags(zip(corpus.doc_ids, kept, strict=True))
    elif tags is not None:
        tags = read_tags(tags)
    return (corpus if tags is None else with_tags(corpus, tags, "the tags")), name


def _told(store: DocumentStore) -> Corpus:
    """Return documents with their tags, or else what their metadata tell under plain keys."""
    rows = [
        {"_id": doc_id, "text": text, "metadata": dict(metadata)}
        for doc_id, text, metadata in store.documents()
    ]
    if not rows:
        raise DataError(f"{store.name} holds no documents")
    documents = read_documents(rows)
    report_strange(store.name, documents.strange)
    known = ((doc_id, tags) for doc_id, tags in store.tags() if tags != UNKNOWN)
    corpus = as_corpus([documents])
    return replace(corpus, tags=overlaid(corpus.tags, TagTable.from_tags(known)))
