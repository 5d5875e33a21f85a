"""What a migration remembers in Chroma itself: how far it is, and what both sides agreed on.

A killed migration goes on from here, on whichever machine. The ledger is a collection of its own
beside the two, ``<name>--rsb-ledger``; no document of theirs is touched. It holds hashes, no text.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from hashlib import blake2b
from typing import Any

from chromadb.errors import NotFoundError

_BUCKET = 500  # entries of a row, about
_KEY, _ENTRY = 8, 24  # bytes of an id's hash; of that, the content's and the vector's
_LEDGER, _CONFLICTS = "--rsb-ledger", "--rsb-conflicts"
_STATE, _PENDING = "state", "/pending/"


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

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, doc_id: str) -> bytes | None:
        """Return the agreed content, or None."""
        return self._entries.get(id_key(doc_id))

    def put(self, doc_id: str, content: bytes) -> None:
        """Both hold this now."""
        key = id_key(doc_id)
        if self._entries.get(key) != content:
            self._entries[key] = content
            self._changed.add(key)

    def drop(self, doc_id: str) -> None:
        """Neither holds it now."""
        self._drop(id_key(doc_id))

    def keep_only(self, keys: set[bytes]) -> None:
        """Forget documents that are in neither collection."""
        for key in self._entries.keys() - keys:
            self._drop(key)

    def _drop(self, key: bytes) -> None:
        if self._entries.pop(key, None) is not None:
            self._changed.add(key)

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
            self._rows = _opened(self._client, self._name)
        if self._rows is None:
            return None
        try:
            found = self._rows.get(ids=[_STATE], include=["metadatas"])["metadatas"]
        except NotFoundError:  # the migration was finished between the two requests
            self._rows = None
            return None
        if not found:
            return None
        state = json.loads(found[0]["state"])
        state["phase"] = Phase(state["phase"])
        state["usurpers"] = [
            Usurper(id=one["id"], during=Phase(one["during"])) for one in state["usurpers"]
        ]
        return Progress(**state)

    def write(self, progress: Progress) -> None:
        """Keep how far the migration is."""
        self._put({_STATE: {"state": json.dumps(asdict(progress))}})

    def agreed(self, of: str) -> Agreed:
        """Read what the collection with this id agreed on with the one in use."""
        found = Agreed()
        if self._rows is None:
            self._rows = _opened(self._client, self._name)
        if self._rows is None:
            return found
        page = self._rows.get(where={"of": of}, include=["metadatas"])
        for row_id, row in zip(page["ids"], page["metadatas"], strict=True):
            raw = base64.b64decode(row["entries"])
            entries = {
                raw[start : start + _KEY]: raw[start + _KEY : start + _ENTRY]
                for start in range(0, len(raw), _ENTRY)
            }
            if _PENDING in row_id:
                found._pending.setdefault(row_id.split("/")[2], {}).update(entries)
            else:
                found._entries.update(entries)
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
        n_buckets = int(kept[0].split("/")[1]) if kept else max(1, len(agreed) // _BUCKET)
        touched = {_bucket(key, n_buckets) for key in agreed._changed}
        buckets: dict[int, list[bytes]] = {bucket: [] for bucket in touched}
        for key, content in agreed._entries.items():
            if (bucket := _bucket(key, n_buckets)) in buckets:
                buckets[bucket].append(key + content)
        self._put({f"{of}/{n_buckets}/{at}": _row(of, rows) for at, rows in buckets.items()})
        agreed._changed = set()
        target, new = agreed._new
        if new:
            entries = [key + content for key, content in new.items()]
            self._put({f"{of}{_PENDING}{target}/{len(pending)}": _row(of, entries)})
            agreed._new = ("", {})
        elif pending and not agreed._pending:
            self._opened().delete(ids=pending)

    def delete(self) -> None:
        """Take the ledger away."""
        if _opened(self._client, self._name) is not None:
            self._client.delete_collection(self._name)
        self._rows = None

    def _put(self, rows: Mapping[str, Mapping[str, str]]) -> None:
        ids = list(rows)
        for start in range(0, len(ids), 100):
            part = ids[start : start + 100]
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


def conflicts_name(name: str) -> str:
    """Name of the collection of versions that did not prevail."""
    return f"{name}{_CONFLICTS}"


def is_bookkeeping(name: str) -> bool:
    """Whether a collection holds what a migration remembers, and no documents."""
    return name.endswith((_LEDGER, _CONFLICTS))


def _opened(client: Any, name: str) -> Any:  # noqa: ANN401 - chromadb client and collection
    """Return a collection, or None where there is none."""
    try:
        return client.get_collection(name, embedding_function=None)
    except NotFoundError:
        return None


def _bucket(key: bytes, n_buckets: int) -> int:
    return int.from_bytes(key, "little") % n_buckets


def _row(of: str, entries: Iterable[bytes]) -> dict[str, str]:
    return {"of": of, "entries": base64.b64encode(b"".join(entries)).decode()}
