"""Tags in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from threading import RLock

from rag_sourcebias.tagging.store import (
    UNKNOWN,
    TagRow,
    check_rows,
    check_strings,
    content_hash,
)
from rag_sourcebias.types.documents import DocTags, TagTable

__all__ = ["MemoryTagStore"]


class MemoryTagStore:
    """Tags that end with the process; see :class:`~rag_sourcebias.tagging.TagStore`.

    Examples
    --------
    >>> store = MemoryTagStore()
    >>> store.put([("a", DocTags(source="human"))], texts={"a": "A text."})
    >>> [tags.source for tags in store.get(["a", "b"])]
    ['human', None]
    >>> store.get_by_text(["A text."])[0].source
    'human'
    """

    def __init__(self) -> None:
        self._lock = RLock()
        self._tags: dict[str, DocTags] = {}
        self._hash_of: dict[str, bytes] = {}
        # Every document with that text, the one put last at the end; a dict because removal from
        # a list is slow where thousands share a text.
        self._ids_of: dict[bytes, dict[str, None]] = {}

    def get(self, doc_ids: Sequence[str]) -> list[DocTags]:
        """Tags of each document in order; all unknown where the id is not in the store."""
        tags = self._tags
        return [tags.get(doc_id, UNKNOWN) for doc_id in check_strings(doc_ids, "document id")]

    def get_by_text(self, texts: Sequence[str]) -> list[DocTags]:
        """Tags of the document put last with exactly this text; all unknown where none was."""
        return self.get_by_hash([content_hash(text) for text in check_strings(texts, "text")])

    def get_by_hash(self, hashes: Sequence[bytes]) -> list[DocTags]:
        """As :meth:`get_by_text`, for texts known by their hash only."""
        with self._lock:
            found = [self._ids_of.get(key) for key in hashes]
            return [UNKNOWN if ids is None else self._tags[next(reversed(ids))] for ids in found]

    def put(
        self, rows: Iterable[tuple[str, DocTags]], texts: Mapping[str, str] | None = None
    ) -> None:
        """Store tags, replacing those a document had; of an id given twice the last row counts."""
        checked = check_rows(rows, texts)
        with self._lock:
            self._apply(checked)

    def remove(self, doc_ids: Sequence[str]) -> int:
        """Forget documents; return how many of them were in the store."""
        ids = check_strings(doc_ids, "document id")
        with self._lock:
            before = len(self._tags)
            for doc_id in ids:
                self._forget(doc_id)
            return before - len(self._tags)

    def __len__(self) -> int:
        return len(self._tags)

    def counts(self) -> dict[str, int]:
        """Documents per source; the key ``""`` counts those stored as unknown, if any."""
        with self._lock:
            found = Counter(tags.source or "" for tags in self._tags.values())
        untagged = found.pop("", 0)
        return dict(sorted(found.items())) | ({"": untagged} if untagged else {})

    def table(self) -> TagTable:
        """All tags as columns, the document put last at the end."""
        with self._lock:
            items = list(self._tags.items())
        return TagTable.from_tags(items)

    def _apply(self, rows: Iterable[TagRow]) -> None:
        for doc_id, tags, text_hash in rows:
            old = self._forget(doc_id)  # so that the document moves to the end
            key = old if text_hash is None else text_hash
            self._tags[doc_id] = tags
            if key is not None:
                self._hash_of[doc_id] = key
                self._ids_of.setdefault(key, {})[doc_id] = None

    def _forget(self, doc_id: str) -> bytes | None:
        """Remove a document that may be there and return the hash of its text, if known."""
        self._tags.pop(doc_id, None)
        key = self._hash_of.pop(doc_id, None)
        if key is not None:
            ids = self._ids_of[key]
            del ids[doc_id]
            if not ids:
                del self._ids_of[key]
        return key
