"""Tags of retrieved documents from a tag store, remembered for a while."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from rag_sourcebias.core.data import DocTags
from rag_sourcebias.core.tags import (
    METADATA_KEYS,
    UNKNOWN,
    DamagedRowError,
    TagStore,
    content_hash,
    make_tags,
)

# Tags of retrieved documents from their metadata, as every retrieval needs them: cheaply.


_SOURCE, _STYLE, _PAIR_ID, _ORIGIN, _CONFIDENCE = METADATA_KEYS
_UNTAGGED = DocTags()
_MOST_SEEN = 10_000


class MetadataTags:
    """Read the tag keys of metadata; equal tags are made once, as few different ones occur.

    May be used by several threads at once: one then makes tags that another has just made.
    """

    def __init__(self) -> None:
        self._seen: dict[tuple[object, ...], DocTags] = {}

    def read(
        self, metadata: Iterable[Mapping[str, object] | None]
    ) -> tuple[tuple[DocTags, ...], int]:
        """Return the tags of each document, and how many values are none a tag may have.

        A document without a source and a style is "all unknown"; a bad value is unknown, and the
        document keeps its others.
        """
        seen, n_bad = self._seen, 0
        found = []
        for values in metadata:  # in one loop: calls would cost more than what they do
            tags: DocTags | None = _UNTAGGED
            try:
                if values:
                    source, style = values.get(_SOURCE), values.get(_STYLE)
                    if source is not None or style is not None:
                        raw = (
                            source,
                            style,
                            values.get(_PAIR_ID),
                            values.get(_ORIGIN),
                            values.get(_CONFIDENCE),
                        )
                        tags = seen.get(raw)
                        if tags is None:
                            tags = self._make(raw)
            except Exception:  # noqa: BLE001 - values are the application's own objects
                tags, n = _salvaged(values)
                n_bad += n
            found.append(tags)
        return tuple(found), n_bad  # type: ignore[arg-type]

    def _make(self, raw: tuple[object, ...]) -> DocTags:
        tags = make_tags(*raw)
        if len(self._seen) >= _MOST_SEEN:  # pair ids differ from document to document
            self._seen.clear()
        self._seen[raw] = tags
        return tags


def _salvaged(values: Mapping[str, object] | None) -> tuple[DocTags, int]:
    """Return tags of the values that are good, and how many are not."""
    good: list[object] = [None] * len(METADATA_KEYS)
    n_bad = 0
    for i, key in enumerate(METADATA_KEYS):
        alone: list[object] = [None] * len(METADATA_KEYS)
        try:
            alone[i] = values.get(key)  # type: ignore[union-attr]
            make_tags(*alone)
            good[i] = alone[i]
        except Exception:  # noqa: BLE001 - as above
            n_bad += 1
    return make_tags(*good), n_bad


# Tags of retrieved documents from a tag store, remembered for a while.


K = TypeVar("K", str, bytes)

_TEXT_PREFIX = "text:"
_MOST_TEXTS = 10_000
_text_ids: dict[int, str] = {}  # the same documents are found again and again; no text is kept


def text_id(text: str) -> str:
    """Return the id of a document that has none: a hash from which the text cannot be read."""
    key = hash(text)  # of the process, 64 bits under a secret key, and kept by the text itself
    found = _text_ids.get(key)
    if found is None:
        found = _TEXT_PREFIX + content_hash(text).hex()
        if len(_text_ids) >= _MOST_TEXTS:
            _text_ids.clear()
        _text_ids[key] = found
    return found


class TagLookup:
    """A tag store in front of which frequent documents are remembered; not thread-safe.

    A store on disk answers in hundreds of microseconds, a store on a network may take longer,
    and a few documents make up most of what a retriever returns.

    Parameters
    ----------
    store : TagStore
        Asked by document id, or by content for documents named by :func:`text_id`.
    capacity : int
        Documents remembered.
    max_age : float
        Seconds after which all of them are asked for again, so that new tags are seen.
    """

    def __init__(self, store: TagStore, *, capacity: int = 100_000, max_age: float = 60.0) -> None:
        self._store = store
        self._capacity = capacity
        self._max_age = max_age
        self._known: dict[str, DocTags] = {}
        self._damaged: set[str] = set()
        self._since = time.monotonic()

    def get(self, doc_ids: Sequence[str]) -> list[DocTags]:
        """Return the tags of each document, in order."""
        now = time.monotonic()
        if now - self._since > self._max_age or len(self._known) > self._capacity:
            self._known.clear()
            self._damaged.clear()
            self._since = now
        known = self._known
        unknown = [doc_id for doc_id in dict.fromkeys(doc_ids) if doc_id not in known]
        if unknown:
            known.update(self._ask(unknown))
        return [known[doc_id] for doc_id in doc_ids]

    def damaged(self, doc_ids: Sequence[str]) -> int:
        """Return how many of documents that were asked for have tags that cannot be read."""
        return sum(doc_id in self._damaged for doc_id in doc_ids) if self._damaged else 0

    def _ask(self, doc_ids: Sequence[str]) -> dict[str, DocTags]:
        by_text = [doc_id for doc_id in doc_ids if doc_id.startswith(_TEXT_PREFIX)]
        by_id = [doc_id for doc_id in doc_ids if not doc_id.startswith(_TEXT_PREFIX)]
        found: dict[str, DocTags] = {}
        if by_id:
            found.update(self._each(self._store.get, by_id, by_id))
        if by_text:
            hashes = [bytes.fromhex(doc_id.removeprefix(_TEXT_PREFIX)) for doc_id in by_text]
            found.update(self._each(self._store.get_by_hash, by_text, hashes))
        return found

    def _each(
        self, ask: Callable[[list[K]], list[DocTags]], doc_ids: list[str], keys: list[K]
    ) -> dict[str, DocTags]:
        try:
            return dict(zip(doc_ids, ask(keys), strict=True))
        except DamagedRowError:
            if len(keys) == 1:
                self._damaged.update(doc_ids)
                return {doc_ids[0]: UNKNOWN}
        found: dict[str, DocTags] = {}
        for doc_id, key in zip(doc_ids, keys, strict=True):
            found.update(self._each(ask, [doc_id], [key]))
        return found
