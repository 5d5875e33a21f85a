"""Carry what was written to one collection over to another one, under another encoder."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import numpy as np

from rag_sourcebias.core.errors import DataError
from rag_sourcebias_integrations.chroma.collections import embedded_text
from rag_sourcebias_integrations.chroma.embeddings import EncoderEmbeddingFunction
from rag_sourcebias_integrations.chroma.ledger import Agreed, id_key
from rag_sourcebias_integrations.chroma.vectors import (
    CLOSE,
    Vectors,
    VectorSource,
    far_apart,
    texts_of,
)

_CONTENT = ["documents", "metadatas", "uris"]
_SAMPLE = 16
_NO_VECTOR = bytes(8)
_REPLACING, _DELETING = bytes(16), bytes([1]) * 16

Row = tuple[Any, ...]  # document, metadata, URI


@dataclass(frozen=True, slots=True)
class Conflict:
    """A document that was written in both collections; which one came last is not known.

    Parameters
    ----------
    doc_id : str
    row : tuple or None
        Document, metadata and URI that did not prevail; None where it was deleted.
    """

    doc_id: str
    row: Row | None


@dataclass(slots=True)
class Carried:
    """What one pass over two collections found.

    Parameters
    ----------
    ids : list of str
        Documents written or deleted in the target.
    conflicts : list of Conflict
    lacking : list of str
        Documents that no vector can be made of.
    n_documents : int
        Documents that the source holds.
    """

    ids: list[str] = field(default_factory=list)
    conflicts: list[Conflict] = field(default_factory=list)
    lacking: list[str] = field(default_factory=list)
    n_documents: int = 0


def make_equal(
    source: Any,  # noqa: ANN401 - a chromadb collection
    target: Any,  # noqa: ANN401 - a chromadb collection
    vectors: VectorSource,
    agreed: Agreed,
    *,
    size: int,
    on_progress: Callable[[int], None] | None = None,
) -> Carried:
    """Give the target, which nobody else writes to, the source's content; one pass.

    Where ``ids`` of the result is empty, both were equal, and ``agreed`` holds their content.

    Raises
    ------
    DataError
        If documents have no text, or vector, to make the new vector of; lists their ids.
    """
    found, seen = Carried(), set[str]()
    fields = [*_CONTENT, *vectors.reads]
    empty = target.count() == 0
    for page in pages(source, size, include=fields):
        vectors.require(page)
        rows = _by_id(page)
        copied = {"ids": []} if empty else target.get(ids=page["ids"], include=fields)
        there = {i: _hash(row) for i, row in _by_id(copied).items()}
        contents = _contents(page, rows, vectors)
        stale = {i for i, content in contents.items() if there.get(i) != content[:8]}
        stale.update(vectors.differ(page, copied))
        todo = [i for i in rows if i in stale]
        _write(target, page, todo, _by_id(copied), vectors)
        found.ids += todo
        for doc_id, content in contents.items():
            agreed.put(doc_id, content)
        seen.update(rows)
        if on_progress is not None:
            on_progress(len(seen))
    found.n_documents = len(seen)
    if target.count() != len(seen):
        strays = _absent(source, _ids(target, size), seen, size)
        for start in range(0, len(strays), size):
            target.delete(ids=strays[start : start + size])
        found.ids += strays
    agreed.keep_only({id_key(i) for i in seen})
    return found


def carry(
    source: Any,  # noqa: ANN401 - a chromadb collection
    target: Any,  # noqa: ANN401 - a chromadb collection
    vectors: Vectors,
    agreed: Agreed,
    *,
    size: int,
    announce: Callable[[], None],
    otherwise: Agreed | None = None,
) -> Carried:
    """Write to the target what was written to the source since both agreed; one pass.

    Both may be written to meanwhile. What was written in the target since stays, and the source's
    version is returned as a conflict. Chroma has no conditional write: a document that is written
    in the target in the milliseconds between its last look here and the write is overwritten.

    Parameters
    ----------
    agreed : Agreed
        Updated; the caller keeps it.
    announce : callable
        Called before each write, when ``agreed`` says what will be written.
    otherwise : Agreed, optional
        What the target held before, where ``agreed`` knows nothing.

    Raises
    ------
    DataError
        If documents have no text, or vector, to make the new vector of; lists their ids.
    """
    found, seen = Carried(), set[str]()
    fields = [*_CONTENT, *vectors.reads]
    here, to = str(source.id), str(target.id)
    for page in pages(source, size, include=fields):
        rows = _by_id(page)
        contents = _contents(page, rows, vectors)
        seen.update(rows)
        changed = _changed(contents, agreed, here, vectors)
        if not changed:
            continue
        there = _by_id(target.get(ids=changed, include=_CONTENT))
        todo = []
        for doc_id in changed:
            before, row = agreed.get(doc_id) or b"", there.get(doc_id)
            same_vector = not vectors.reads or before[8:] == contents[doc_id][8:]
            if not (same_vector and _same(row, contents[doc_id])):
                if _untouched(row, agreed, to, doc_id, otherwise):
                    todo.append(doc_id)
                    continue
                found.conflicts.append(Conflict(doc_id, rows[doc_id]))
            agreed.put(doc_id, contents[doc_id])
        if not todo:
            continue
        lacking = set(vectors.lacking(_only(page, todo)))
        found.lacking += [i for i in todo if i in lacking]
        todo = [i for i in todo if i not in lacking]
        agreed.announce(to, {i: _promise(there.get(i), rows[i], contents[i]) for i in todo})
        announce()
        for doc_id in _write(target, page, todo, there, vectors, guard=True):
            agreed.put(doc_id, contents[doc_id])
            found.ids.append(doc_id)
    found.n_documents = len(seen)
    left = _ids(target, size)
    known = [
        doc_id
        for doc_id in left
        if doc_id not in seen and (agreed.get(doc_id) or agreed.announced(to, doc_id)) is not None
    ]
    gone = _absent(source, known, seen, size)
    for start in range(0, len(gone), size):
        part = gone[start : start + size]
        # What a killed writer of ours took out of the source was deleted in the target before.
        others = [i for i in part if agreed.announced(here, i) != _DELETING]
        _delete(target, others, agreed, found, announce)
        for doc_id in part:
            agreed.drop(doc_id)
    agreed.keep_only({id_key(i) for i in seen.union(left)})
    agreed.settle()
    return found


def _promise(now: Row | None, row: Row, content: bytes) -> bytes:
    """What is announced of a document; to be replaced, it is taken out for a moment."""
    return _REPLACING if now is not None and _loses(now, row) else content


def _delete(
    target: Any,  # noqa: ANN401 - a chromadb collection
    ids: Sequence[str],
    agreed: Agreed,
    found: Carried,
    announce: Callable[[], None],
) -> None:
    """Delete what the source does not hold any more, unless it was written in the target."""
    to = str(target.id)
    there = _by_id(target.get(ids=list(ids), include=_CONTENT))
    gone = [doc_id for doc_id, row in there.items() if _untouched(row, agreed, to, doc_id)]
    if gone:
        agreed.announce(to, dict.fromkeys(gone, _DELETING))
        announce()
        target.delete(ids=gone)
        found.ids += gone
    found.conflicts += [Conflict(i, None) for i in there if i not in set(gone)]


def _changed(
    contents: Mapping[str, bytes], agreed: Agreed, here: str, vectors: Vectors
) -> list[str]:
    """Which documents of a page are not as agreed on."""
    for doc_id, content in contents.items():
        if (ours := agreed.announced(here, doc_id)) and ours[:8] == content[:8]:
            agreed.put(doc_id, content)  # a killed writer of ours brought it here
    # Without vectors on this side, those that the other direction kept are not compared.
    width = 16 if vectors.reads else 8
    return [
        doc_id
        for doc_id, content in contents.items()
        if (agreed.get(doc_id) or b"")[:width] != content[:width]
    ]


def _same(row: Row | None, content: bytes) -> bool:
    return row is not None and _hash(row) == content[:8]


def _untouched(
    row: Row | None, agreed: Agreed, to: str, doc_id: str, otherwise: Agreed | None = None
) -> bool:
    """Whether the target holds what both agreed on, or what a killed writer of ours wrote."""
    before, ours = agreed.get(doc_id), agreed.announced(to, doc_id)
    if before is None and otherwise is not None:
        before = otherwise.get(doc_id)
    if row is None:
        return before is None or ours == _REPLACING
    content = _hash(row)
    return content in {before and before[:8], ours and ours[:8]}


def _write(
    target: Any,  # noqa: ANN401 - a chromadb collection
    page: Mapping[str, Any],
    ids: Sequence[str],
    there: Mapping[str, Row],
    vectors: Vectors,
    *,
    guard: bool = False,
) -> list[str]:
    """Add or update documents of a page, and return which.

    With a guard, the vectors are made first, and what was written in the target meanwhile is left
    to the next pass.
    """
    rows, written = _by_id(page), list[str]()
    for part in _alike(rows, ids):
        # Where the embedded text is the same, so is the vector. A text cannot be taken away by an
        # update, nor a URI.
        replaced = {i for i in part if i in there and _loses(there[i], rows[i])}
        updates = [i for i in part if i in there and i not in replaced]
        lasting = set() if vectors.reads else {i for i in updates if _same_text(i, rows, there)}
        fresh = [i for i in part if i not in lasting]
        new = dict(zip(fresh, vectors.vectors(page, fresh), strict=True)) if fresh else {}
        now = _by_id(target.get(ids=part, include=_CONTENT)) if guard else there
        chosen = [i for i in part if now.get(i) == there.get(i)]
        if gone := [i for i in chosen if i in replaced]:
            target.delete(ids=gone)
        if adds := [i for i in chosen if i not in there or i in replaced]:
            target.add(**_request(rows, adds, new))
        for group in (
            [i for i in updates if i in new and i in chosen],
            [i for i in lasting if i in chosen],
        ):
            if group:
                request = _request(rows, group, new)
                # An update merges metadata; None takes a key out.
                request["metadatas"] = [
                    {**dict.fromkeys(there[i][1] or {}), **(rows[i][1] or {})} or None
                    for i in group
                ]
                target.update(**request)
        written += chosen
    return written


def _request(
    rows: Mapping[str, Row], ids: Sequence[str], vectors: Mapping[str, Any]
) -> dict[str, Any]:
    texts, metadata, uris = (list(column) for column in zip(*(rows[i] for i in ids), strict=True))
    return {
        "ids": list(ids),
        "embeddings": np.stack([vectors[i] for i in ids]) if ids[0] in vectors else None,
        "documents": texts if texts[0] is not None else None,
        "metadatas": metadata,
        "uris": uris if uris[0] is not None else None,
    }


def _same_text(doc_id: str, rows: Mapping[str, Row], there: Mapping[str, Row]) -> bool:
    texts = [side[doc_id][0] for side in (rows, there)]
    if None in texts:
        return False
    first, second = (
        embedded_text(doc_id, str(side[doc_id][0]), side[doc_id][1] or {}) for side in (rows, there)
    )
    return first == second


def _loses(now: Row, row: Row) -> bool:
    return any(now[k] is not None and row[k] is None for k in (0, 2))


def _alike(rows: Mapping[str, Row], ids: Sequence[str]) -> list[list[str]]:
    """Documents in groups of which all or none have a text, and all or none a URI.

    Chroma takes no list with gaps.
    """
    groups: dict[tuple[bool, bool], list[str]] = {}
    for doc_id in ids:
        text, _, uri = rows[doc_id]
        groups.setdefault((text is None, uri is None), []).append(doc_id)
    return list(groups.values())


def verify_vectors(
    copy: Any,  # noqa: ANN401 - a chromadb collection
    function: EncoderEmbeddingFunction,
    *,
    size: int,
) -> None:
    """Encode a sample of each page again, and compare with the vectors that the copy holds.

    Raises
    ------
    DataError
        Naming a document whose vector differs.
    """
    for page in pages(copy, size, include=["documents"]):
        ids = sample_of(page)
        if not ids:
            continue
        found = copy.get(ids=ids, include=["documents", "metadatas", "embeddings"])
        ids = found["ids"]
        again = np.stack(function(texts_of(found, ids)))
        wrong = far_apart(again, np.asarray(found["embeddings"]), CLOSE)
        if wrong.any():
            raise DataError(
                f"document {ids[int(wrong.argmax())]!r} is encoded to another vector than the copy "
                f"holds; does the encoder {function.encoder.name!r} give the same vector twice? "
                f"Delete the collection {copy.name!r} to start again"
            )


def sample_of(page: Mapping[str, Any]) -> list[str]:
    """Ids of a few documents that have a text, spread over a page."""
    texts = page["documents"] or [None] * len(page["ids"])
    ids = [i for i, text in zip(page["ids"], texts, strict=True) if text is not None]
    return ids[:: max(len(ids) // _SAMPLE, 1)][:_SAMPLE]


def pages(
    collection: Any,  # noqa: ANN401 - a chromadb collection
    size: int,
    *,
    include: list[str],
) -> Iterator[Mapping[str, Any]]:
    """Read a collection page by page; documents may be missed while others are deleted."""
    offset = 0
    while True:
        page = collection.get(limit=size, offset=offset, include=include)
        if not page["ids"]:
            return
        offset += len(page["ids"])
        yield page


def _ids(collection: Any, size: int) -> list[str]:  # noqa: ANN401 - a chromadb collection
    return [i for page in pages(collection, size, include=[]) for i in page["ids"]]


def _absent(
    collection: Any,  # noqa: ANN401 - a chromadb collection
    ids: Iterable[str],
    seen: set[str],
    size: int,
) -> list[str]:
    """Which documents a collection does not hold: asked for by id, as a pass may miss some."""
    asked, found = [i for i in dict.fromkeys(ids) if i not in seen], set[str]()
    for start in range(0, len(asked), size):
        found.update(collection.get(ids=asked[start : start + size], include=[])["ids"])
    return [i for i in asked if i not in found]


def _only(page: Mapping[str, Any], ids: Sequence[str]) -> dict[str, Any]:
    """Return a page with these documents alone."""
    at = {doc_id: row for row, doc_id in enumerate(page["ids"])}
    columns = [*_CONTENT, "embeddings"]
    return {
        "ids": list(ids),
        **{
            name: None if page.get(name) is None else [page[name][at[i]] for i in ids]
            for name in columns
        },
    }


def _by_id(page: Mapping[str, Any]) -> dict[str, Row]:
    blank = [None] * len(page["ids"])
    columns = [page.get(name) or blank for name in _CONTENT]
    columns[1] = [metadata or None for metadata in columns[1]]  # Chroma takes no empty ones
    return dict(zip(page["ids"], zip(*columns, strict=True), strict=True))


def _contents(
    page: Mapping[str, Any], rows: Mapping[str, Row], vectors: Vectors
) -> dict[str, bytes]:
    """Hash of each document's content and, where the copy's vectors depend on it, its vector."""
    if "embeddings" not in vectors.reads:
        return {doc_id: _hash(row) + _NO_VECTOR for doc_id, row in rows.items()}
    stored = dict(zip(page["ids"], page["embeddings"], strict=True))
    return {
        doc_id: _hash(row)
        + blake2b(np.asarray(stored[doc_id], np.float32).tobytes(), digest_size=8).digest()
        for doc_id, row in rows.items()
    }


def _hash(row: Row) -> bytes:
    raw = json.dumps(row, sort_keys=True, default=str).encode()
    return blake2b(raw, digest_size=8).digest()
