"""Carry what was written to one collection over to another one, under another encoder."""

import base64
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from hashlib import blake2b
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from chromadb.errors import NotFoundError

from rag_sourcebias.core.codec import from_plain
from rag_sourcebias.core.data import Float32Array
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.retrieval.projection import SourceProjection
from rag_sourcebias_integrations.chroma.collections import embedded_text, pages, parts, stored_ids
from rag_sourcebias_integrations.chroma.embeddings import EncoderEmbeddingFunction

# What a migration remembers in Chroma itself: how far it is, and what both sides agreed on.
# A killed migration goes on from here, on whichever machine. The ledger is a collection of its own
# beside the two, ``<name>--rsb-ledger``; no document of theirs is touched. It holds hashes, no
# text.


_BUCKET = 500  # entries of a row, about
_KEY = 8  # bytes of an id's hash
_ENTRY = 24  # of that, the content's and the vector's
_LEDGER = "--rsb-ledger"
_STATE = "state"
_PENDING = "/pending/"


class Phase(StrEnum):
    """How far a migration is; the collections are exchanged in the second and the fourth."""

    READY = "ready"
    SWITCHING = "switching"
    SWITCHED = "switched"
    ROLLING_BACK = "rolling back"
    ROLLED_BACK = "rolled back"
    FINISHED = "finished"


MOVING = (Phase.SWITCHING, Phase.ROLLING_BACK)
"""While the name changes hands."""


@dataclass(frozen=True, slots=True)
class Usurper:
    """A collection that somebody made under the name while none had it."""

    id: str
    during: Phase


@dataclass(slots=True)
class Progress:
    """What is known of a migration beside the agreed content; ids are those of collections."""

    phase: Phase
    old: str
    new: str
    shadow_name: str
    before_name: str
    usurpers: list[Usurper] = field(default_factory=list)


def id_key(doc_id: str) -> bytes:
    """Hash of a document's id."""
    return blake2b(doc_id.encode("utf-8", "surrogatepass"), digest_size=_KEY).digest()


class Agreed:
    """Content that two collections agreed on when they were last compared, per document.

    Also what is just being written: a writer that is killed cannot say whether its last batch
    arrived, and must not take it for somebody else's.
    """

    def __init__(self) -> None:
        self._entries: dict[bytes, bytes] = {}
        self._pending: dict[str, dict[bytes, bytes]] = {}
        self._new: tuple[str, dict[bytes, bytes]] = ("", {})  # of those, what is not kept yet
        self._changed: set[bytes] = set()

    def get(self, doc_id: str) -> bytes | None:
        """Return the agreed content, or None."""
        return self._entries.get(id_key(doc_id))

    def put(self, doc_id: str, content: bytes) -> None:
        """Both hold this now."""
        key = id_key(doc_id)
        if self._entries.get(key) != content:
            self._entries[key] = content
            self._changed.add(key)

    def drop(self, keys: Iterable[bytes]) -> None:
        """Neither holds the documents of these hashed ids now."""
        for key in keys:
            if self._entries.pop(key, None) is not None:
                self._changed.add(key)

    def keep_only(self, keys: set[bytes]) -> None:
        """Forget documents that are in neither collection."""
        self.drop(self._entries.keys() - keys)

    def announce(self, target: str, contents: Mapping[str, bytes]) -> None:
        """Say what is about to be written to a collection."""
        new = {id_key(doc_id): content for doc_id, content in contents.items()}
        self._new = (target, new)
        self._pending.setdefault(target, {}).update(new)

    def announced(self, target: str, doc_id: str) -> bytes | None:
        """Return what was to be written to a collection, maybe by a writer that was killed."""
        return self._pending.get(target, {}).get(id_key(doc_id))

    def settle(self) -> None:
        """All that was announced was seen to."""
        self._pending = {}


class Ledger:
    """The ledger of one migration.

    Parameters
    ----------
    client : chromadb client
    name : str
        Of the migrated collection.
    """

    def __init__(self, client: Any, name: str) -> None:  # noqa: ANN401 - a chromadb client
        self._client = client
        self._name = ledger_name(name)
        self._rows: Any = None

    def read(self) -> Progress | None:
        """Return how far the migration is; None where there is none."""
        if self._rows is None:
            self._rows = opened(self._client, self._name)
        if self._rows is None:
            return None
        try:
            found = self._rows.get(ids=[_STATE], include=["metadatas"])["metadatas"]
        except NotFoundError:  # the migration was finished between the two requests
            self._rows = None
            return None
        if not found:
            return None
        return from_plain(Progress, json.loads(found[0]["state"]))

    def write(self, progress: Progress) -> None:
        """Keep how far the migration is."""
        self._put({_STATE: {"state": json.dumps(asdict(progress))}})

    def agreed(self, of: str) -> Agreed:
        """Read what the collection with this id agreed on with the one in use."""
        found = Agreed()
        if self._rows is None:
            self._rows = opened(self._client, self._name)
        if self._rows is None:
            return found
        page = self._rows.get(where={"of": of}, include=["metadatas"])
        for row_id, row in zip(page["ids"], page["metadatas"], strict=True):
            raw = base64.b64decode(row["entries"])
            to = row_id.split("/")[2]
            held = found._pending.setdefault(to, {}) if _PENDING in row_id else found._entries
            for start in range(0, len(raw), _ENTRY):
                held[raw[start : start + _KEY]] = raw[start + _KEY : start + _ENTRY]
        return found

    def keep(self, of: str, agreed: Agreed, *, everything: bool = False) -> None:
        """Keep what changed since it was read or kept, and what is announced."""
        there = self._opened().get(where={"of": of}, include=[])["ids"]
        pending = [row for row in there if _PENDING in row]
        kept = [row for row in there if _PENDING not in row]
        if everything:
            if there:
                self._opened().delete(ids=there)
            pending, kept, agreed._changed = [], [], set(agreed._entries)
        n_buckets = int(kept[0].split("/")[1]) if kept else max(1, len(agreed._entries) // _BUCKET)
        buckets: dict[int, list[bytes]] = {_bucket(key, n_buckets): [] for key in agreed._changed}
        for key, content in agreed._entries.items():
            if (bucket := _bucket(key, n_buckets)) in buckets:
                buckets[bucket].append(key + content)
        self._put({f"{of}/{n_buckets}/{at}": _row(of, rows) for at, rows in buckets.items()})
        agreed._changed = set()
        target, new = agreed._new
        if new:
            entries = (key + content for key, content in new.items())
            self._put({f"{of}{_PENDING}{target}/{len(pending)}": _row(of, entries)})
            agreed._new = ("", {})
        elif pending and not agreed._pending:
            self._opened().delete(ids=pending)

    def delete(self) -> None:
        """Take the ledger away."""
        if opened(self._client, self._name) is not None:
            self._client.delete_collection(self._name)
        self._rows = None

    def _put(self, rows: Mapping[str, Mapping[str, str]]) -> None:
        for part in parts(list(rows), 100):
            self._opened().upsert(
                ids=part, embeddings=[[0.0]] * len(part), metadatas=[dict(rows[i]) for i in part]
            )

    def _opened(self) -> Any:  # noqa: ANN401 - a chromadb collection
        if self._rows is None:
            self._rows = self._client.get_or_create_collection(self._name, embedding_function=None)
        return self._rows


def ledger_name(name: str) -> str:
    """Name of the ledger of a collection."""
    return f"{name}{_LEDGER}"


def is_bookkeeping(name: str) -> bool:
    """Whether a collection holds what a migration remembers, and no documents."""
    return name.endswith(_LEDGER)


def opened(client: Any, name: str) -> Any:  # noqa: ANN401 - chromadb client and collection
    """Return a collection, or None where there is none."""
    try:
        return client.get_collection(name, embedding_function=None)
    except NotFoundError:
        return None


def _bucket(key: bytes, n_buckets: int) -> int:
    return int.from_bytes(key, "little") % n_buckets


def _row(of: str, entries: Iterable[bytes]) -> dict[str, str]:
    return {"of": of, "entries": base64.b64encode(b"".join(entries)).decode()}


# Where the vectors of a copied collection come from: texts encoded again, or stored vectors.


Page = Mapping[str, Any]

CLOSE = 1e-2  # distance of unit vectors; another batch rounds differently, most at bfloat16
_EQUAL = 1e-4  # of what was only stored and read back


# ``vectors`` gives those of documents of a page of the original, of shape (ids, d); ``reads`` is
# what is read of both collections beside the content. Of a source of a whole copy, ``function``
# encodes queries of the copy, and documents that come later, and ``require`` refuses a page of the
# original that vectors cannot be made of.


@dataclass(frozen=True, slots=True)
class EncodedVectors:
    """Stored texts, encoded again."""

    function: EncoderEmbeddingFunction
    reads: tuple[str, ...] = ()

    def vectors(self, page: Page, ids: Sequence[str]) -> Float32Array:
        """Encode the texts."""
        return np.stack(self.function(texts_of(page, ids)))

    def require(self, page: Page) -> None:
        """Refuse documents without text."""
        without = lacking(self, page)
        if without:
            raise DataError(
                f"{len(without)} documents have no stored text to encode, among them "
                f"{without[:10]}; add their texts, or delete them, first"
            )


@dataclass(frozen=True, slots=True)
class ProjectedVectors:
    """Stored vectors, projected; no text is encoded."""

    function: EncoderEmbeddingFunction
    projection: SourceProjection
    reads: tuple[str, ...] = ("embeddings",)

    def vectors(self, page: Page, ids: Sequence[str]) -> Float32Array:
        """Project the stored vectors."""
        return self.projection.apply(StoredVectors().vectors(page, ids))

    def differ(self, page: Page, copied: Page) -> list[str]:
        """Ids on a page of the copy whose vector is not the projection of the stored one."""
        if not copied["ids"]:
            return []
        found = np.asarray(copied["embeddings"], np.float32)
        wrong = far_apart(found, self.vectors(page, copied["ids"]), _EQUAL)
        return [doc_id for doc_id, bad in zip(copied["ids"], wrong, strict=True) if bad]

    def require(self, page: Page) -> None:
        """Refuse documents without a vector, and vectors of another length."""
        without = lacking(self, page)
        if without:
            raise DataError(
                f"{len(without)} documents have no stored vector to project, among them "
                f"{without[:10]}; delete them, or use migrate_encoder, which encodes the texts"
            )
        dimension = len(page["embeddings"][0])
        if dimension != self.projection.dimension:
            raise DataError(
                f"the collection's vectors have {dimension} dimensions, the projection is for "
                f"{self.projection.dimension}; fit one on vectors of the collection's encoder"
            )


@dataclass(frozen=True, slots=True)
class TextVectors:
    """Stored texts, embedded by what a collection or a caller embeds with."""

    embed: Callable[[list[str]], Sequence[Any]]
    reads: tuple[str, ...] = ()

    def vectors(self, page: Page, ids: Sequence[str]) -> Float32Array:
        """Embed the texts."""
        return np.asarray(self.embed(texts_of(page, ids)), np.float32)


@dataclass(frozen=True, slots=True)
class StoredVectors:
    """Stored vectors as they are."""

    reads: tuple[str, ...] = ("embeddings",)

    def vectors(self, page: Page, ids: Sequence[str]) -> Float32Array:
        """Return the stored vectors."""
        stored = dict(zip(page["ids"], page["embeddings"], strict=True))
        return np.asarray([stored[doc_id] for doc_id in ids], np.float32)


VectorSource: TypeAlias = EncodedVectors | ProjectedVectors
Vectors: TypeAlias = VectorSource | TextVectors | StoredVectors


def lacking(vectors: Vectors, page: Page) -> list[str]:
    """Ids on a page of the original that no vector can be made of: without text, or a vector."""
    values = page.get("embeddings" if vectors.reads else "documents")
    if values is None:
        return list(page["ids"])
    return [doc_id for doc_id, value in zip(page["ids"], values, strict=True) if value is None]


def texts_of(page: Page, ids: Sequence[str]) -> list[str]:
    """Texts that are embedded for documents of a page that have one."""
    metadata = page.get("metadatas") or [None] * len(page["ids"])
    rows = dict(zip(page["ids"], zip(page["documents"], metadata, strict=True), strict=True))
    return [embedded_text(i, str(rows[i][0]), rows[i][1] or {}) for i in ids]


def far_apart(
    first: npt.NDArray[Any], second: npt.NDArray[Any], limit: float
) -> npt.NDArray[np.bool_]:
    """Rows that are further apart than this share of the longer one, shape (n,)."""
    scale = np.maximum(np.linalg.norm(first, axis=1), np.linalg.norm(second, axis=1))
    return np.asarray(~(np.linalg.norm(first - second, axis=1) <= limit * scale))


# Carry what was written to one collection over to another one, under another encoder.


_CONTENT = ["documents", "metadatas", "uris"]
_SAMPLE = 16
_NO_VECTOR = bytes(8)
_REPLACING = bytes(16)
_DELETING = bytes([1]) * 16

Row = tuple[Any, ...]  # document, metadata, URI


@dataclass(slots=True)
class Carried:
    """What one pass over two collections found.

    Parameters
    ----------
    ids : list of str
        Documents written or deleted in the target.
    conflicts : list of str
        Documents written in both: the target's version stays.
    lacking : list of str
        Documents that no vector can be made of.
    n_documents : int
        Documents that the source holds.
    """

    ids: list[str] = field(default_factory=list)
    conflicts: list[str] = field(default_factory=list)
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
    found = Carried()
    seen: set[str] = set()
    fields = [*_CONTENT, *vectors.reads]
    empty = target.count() == 0
    for page in pages(source, size, include=fields):
        vectors.require(page)
        rows = _by_id(page)
        copied = {"ids": []} if empty else target.get(ids=page["ids"], include=fields)
        there = {i: _hash(row) for i, row in _by_id(copied).items()}
        contents = _contents(page, rows, vectors)
        stale = {i for i, content in contents.items() if there.get(i) != content[:8]}
        if isinstance(vectors, ProjectedVectors):  # texts are encoded again: a sample, at the end
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
        strays = _absent(source, stored_ids(target, size), seen, size)
        for part in parts(strays, size):
            target.delete(ids=part)
        found.ids += strays
    agreed.keep_only(set(map(id_key, seen)))
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

    Both may be written to meanwhile. What was written in the target since stays, and the document
    is returned as a conflict. Chroma has no conditional write: a document that is written
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
    found = Carried()
    seen: set[str] = set()
    fields = [*_CONTENT, *vectors.reads]
    here = str(source.id)
    to = str(target.id)
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
            before = agreed.get(doc_id) or b""
            row = there.get(doc_id)
            same_vector = not vectors.reads or before[8:] == contents[doc_id][8:]
            if not (same_vector and row is not None and _hash(row) == contents[doc_id][:8]):
                if _untouched(row, agreed, to, doc_id, otherwise):
                    todo.append(doc_id)
                    continue
                found.conflicts.append(doc_id)
            agreed.put(doc_id, contents[doc_id])
        if not todo:
            continue
        without = set(lacking(vectors, page))
        found.lacking += [i for i in todo if i in without]
        todo = [i for i in todo if i not in without]
        # to be replaced, a document is taken out for a moment
        replaced = {i for i in todo if i in there and _loses(there[i], rows[i])}
        agreed.announce(to, {i: _REPLACING if i in replaced else contents[i] for i in todo})
        announce()
        for doc_id in _write(target, page, todo, there, vectors, guard=True):
            agreed.put(doc_id, contents[doc_id])
            found.ids.append(doc_id)
    left = stored_ids(target, size)
    known = [
        doc_id
        for doc_id in left
        if doc_id not in seen and (agreed.get(doc_id) or agreed.announced(to, doc_id)) is not None
    ]
    gone = _absent(source, known, seen, size)
    for part in parts(gone, size):
        # What a killed writer of ours took out of the source was deleted in the target before.
        others = [i for i in part if agreed.announced(here, i) != _DELETING]
        _delete(target, others, agreed, found, announce)
        agreed.drop(map(id_key, part))
    agreed.keep_only(set(map(id_key, seen.union(left))))
    agreed.settle()
    return found


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
    found.conflicts += [i for i in there if i not in set(gone)]


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


def _untouched(
    row: Row | None, agreed: Agreed, to: str, doc_id: str, otherwise: Agreed | None = None
) -> bool:
    """Whether the target holds what both agreed on, or what a killed writer of ours wrote."""
    before = agreed.get(doc_id)
    ours = agreed.announced(to, doc_id)
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
    rows = _by_id(page)
    written: list[str] = []
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
    first, second = (
        None if text is None else embedded_text(doc_id, str(text), metadata or {})
        for text, metadata, _ in (rows[doc_id], there[doc_id])
    )
    return first is not None and first == second


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
        if wrong := misfits(found, function):
            raise DataError(
                f"document {wrong[0]!r} is encoded to another vector than the copy "
                f"holds; does the encoder {function.encoder.name!r} give the same vector twice? "
                f"Delete the collection {copy.name!r} to start again"
            )


def misfits(page: Page, function: Callable[[list[str]], Any]) -> list[str]:
    """Ids of a few documents of a page whose vectors are not those that a function gives."""
    ids = sample_of(page)
    if not ids:
        return []
    again = np.asarray(function(texts_of(page, ids)), np.float32)
    held = StoredVectors().vectors(page, ids)
    if again.shape != held.shape:
        return ids
    wrong = far_apart(again, held, CLOSE)
    return [doc_id for doc_id, bad in zip(ids, wrong, strict=True) if bad]


def sample_of(page: Mapping[str, Any]) -> list[str]:
    """Ids of a few documents that have a text, spread over a page."""
    texts = page["documents"] or [None] * len(page["ids"])
    ids = [i for i, text in zip(page["ids"], texts, strict=True) if text is not None]
    return ids[:: max(len(ids) // _SAMPLE, 1)][:_SAMPLE]


def _absent(
    collection: Any,  # noqa: ANN401 - a chromadb collection
    ids: Iterable[str],
    seen: set[str],
    size: int,
) -> list[str]:
    """Which documents a collection does not hold: asked for by id, as a pass may miss some."""
    asked = [i for i in dict.fromkeys(ids) if i not in seen]
    found: set[str] = set()
    for part in parts(asked, size):
        found.update(collection.get(ids=part, include=[])["ids"])
    return [i for i in asked if i not in found]


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
    return blake2b(json.dumps(row, sort_keys=True, default=str).encode(), digest_size=8).digest()
