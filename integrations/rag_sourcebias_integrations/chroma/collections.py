"""Fill a collection with a corpus, or go on with one that was left half filled."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.addresses import address_of
from rag_sourcebias.core.data import Corpus, DocTags
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.core.tags import (
    FINGERPRINT_KEY,
    METADATA_KEYS,
    from_metadata,
    to_metadata,
)
from rag_sourcebias_integrations._require import require

# How many documents one request may hold.


_SMALLEST = 166  # the lowest limit that any release of Chroma had


def request_size(
    collection: Any,  # noqa: ANN401 - a chromadb collection
    wanted: int | None,
) -> int:
    """Documents per request: what is wanted, or the most that the collection's client takes.

    Raises
    ------
    DataError
        If more is wanted than the client takes, or less than 1.
    """
    client = getattr(collection, "_client", None)
    most = _SMALLEST if client is None else client.get_max_batch_size()
    if wanted is None:
        return int(most)
    if isinstance(wanted, bool) or not isinstance(wanted, int) or not 1 <= wanted <= most:
        raise DataError(
            f"batch_size {wanted!r} is not a whole number from 1 to {most}, the most that this "
            "Chroma client takes in one request"
        )
    return wanted


# The layout in which LlamaIndex keeps nodes in Chroma: the whole node as JSON in one key.
# LlamaIndex rebuilds a node from that JSON alone, so a tag has to stand there too, and has to be
# excluded from the text that is embedded and from the text that is shown to the language model.


NODE_KEY = "_node_content"
_EXCLUDED = ("excluded_embed_metadata_keys", "excluded_llm_metadata_keys")
_COMPACT = re.compile(r'\{"[^"\\]*":\S')  # JSON without a space after the colon


def rewrite_node(doc_id: str, content: str, update: Mapping[str, object]) -> str:
    """Return the node's JSON with the metadata changed and excluded from every text.

    Parameters
    ----------
    content : str
        The node as LlamaIndex wrote it. Its hash is left as it is: a new one would make
        LlamaIndex embed the document again.
    update : mapping
        Metadata to set; None deletes a key.

    Raises
    ------
    DataError
        If the content is not a node.
    """
    node = _node(doc_id, content)
    metadata = node.setdefault("metadata", {})
    for key, value in update.items():
        if value is None:
            metadata.pop(key, None)
        else:
            metadata[key] = value
    for name in _EXCLUDED:
        excluded = node.setdefault(name, [])
        excluded += [
            key for key, value in update.items() if value is not None and key not in excluded
        ]
    return json.dumps(
        node,
        ensure_ascii=content.isascii(),
        separators=(",", ":") if _COMPACT.match(content) else None,
    )


def embedded_text(doc_id: str, document: str, metadata: Mapping[str, object]) -> str:
    """Text that the framework that filled the collection gives to its encoder.

    LlamaIndex embeds a node's metadata with its text, by the templates that the node carries;
    every other document is embedded as it is stored.
    """
    content = metadata.get(NODE_KEY)
    if not isinstance(content, str):
        return document
    node = _node(doc_id, content)
    excluded = node.get("excluded_embed_metadata_keys") or ()
    one = node.get("metadata_template", "{key}: {value}")
    # the misspelled key is the one that LlamaIndex writes
    separator = node.get("metadata_seperator", node.get("metadata_separator", "\n"))
    lines = [
        one.format(key=key, value=str(value))
        for key, value in node.get("metadata", {}).items()
        if key not in excluded
    ]
    whole = node.get("text_template", "{metadata_str}\n\n{content}")
    return (
        whole.format(content=document, metadata_str=separator.join(lines)).strip()
        if lines
        else document
    )


def _node(doc_id: str, content: str) -> dict[str, Any]:
    try:
        node: dict[str, Any] = json.loads(content)
        parts = [node.get("metadata", {}), *(node.get(name, []) for name in _EXCLUDED)]
    except (ValueError, RecursionError, AttributeError):  # no JSON, or no object
        parts = []
    if list(map(type, parts)) != [dict, list, list]:
        raise DataError(
            f"document {doc_id!r}: {NODE_KEY!r} is not a node as LlamaIndex writes it "
            f'({content[:80]!r}); layout="flat" leaves it as it is'
        )
    return node


# Metadata as Chroma can hold it, and the part of it that holds tags.


_KEYS = frozenset((*METADATA_KEYS, FINGERPRINT_KEY))


def held_tags(metadata: Mapping[str, object]) -> dict[str, object]:
    """Tags among the metadata as they are stored, without the fingerprint."""
    if _KEYS.isdisjoint(metadata):
        return {}
    found = ((key, metadata.get(key)) for key in METADATA_KEYS)
    return {key: value for key, value in found if value is not None and value != ""}


def read_tags(doc_id: str, metadata: Mapping[str, object]) -> DocTags:
    """Stored tags of one document.

    Raises
    ------
    DataError
        Naming the document, if they were not written by this library.
    """
    try:
        return from_metadata(metadata)
    except DataError as error:
        raise DataError(f"document {doc_id!r}: {error}") from error


def tag_update(
    metadata: Mapping[str, object], tags: DocTags, fingerprint: str
) -> dict[str, str | int | float | bool | None]:
    """Return what ``Collection.update`` merges into the metadata so that it holds these tags.

    A tag that is no longer known is None, which deletes its key.
    """
    new: dict[str, str | int | float | bool | None] = {
        **to_metadata(tags),
        FINGERPRINT_KEY: fingerprint,
    }
    if tags.confidence is not None:  # Chroma refuses the numbers of numpy
        new[METADATA_KEYS[-1]] = float(tags.confidence)
    if not _KEYS.isdisjoint(metadata):
        new |= dict.fromkeys(_KEYS.intersection(metadata).difference(new))
    return new


# Open a Chroma client: embedded, on disk, or a server.


def open_client(place: str | Path | None) -> Any:  # noqa: ANN401 - a chromadb client
    """Open a client.

    Parameters
    ----------
    place : str, Path or None
        None keeps everything in memory, a path on disk, an ``http(s)://host:port`` URL names a
        server (``chroma run``); ``http(s)://user:password@host:port`` where it asks for them.

    Raises
    ------
    DataError
        If the folder cannot be made, the URL is not one, or the server cannot be reached.
    """
    chromadb = require("chromadb", package="chromadb", extra="chroma", feature="Chroma")
    # With Chroma's own settings, as the application opens the same place: within a process it
    # refuses one place under two different settings.
    if place is None:
        return chromadb.EphemeralClient()
    if not str(place).startswith(("http://", "https://")):
        try:
            Path(place).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DataError(
                f"Chroma folder {str(place)!r} cannot be used ({error.strerror}); give a folder "
                "that exists or can be made"
            ) from error
        # chromadb shares databases within a process by the text of the path: a relative one would
        # open the old folder's database after a change of the working folder.
        return chromadb.PersistentClient(path=str(Path(place).resolve()))
    address = address_of(str(place), "the address of a Chroma server")
    url = urlsplit(address.url)
    port = url.port or (443 if url.scheme == "https" else 8000)
    try:
        client = chromadb.HttpClient(
            host=url.hostname or "localhost",
            port=port,
            ssl=url.scheme == "https",
            headers={"Authorization": address.authorization} if address.authorization else None,
        )
        client.heartbeat()
    except (ValueError, ConnectionError, chromadb.errors.ChromaError) as error:
        # Chroma wraps connection failures in ValueError.
        raise DataError(
            f"Chroma server {address.url!r} cannot be reached "
            f"({address.redacted(str(error)):.120}); start one with: "
            f"chroma run --path <folder> --port {port}"
        ) from error
    return client


def shown(place: object) -> str:
    """Return a place as it may be shown and stored: without the user and password of a server."""
    text = str(place)
    scheme, apart, rest = text.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2]}" if apart else text


# Fill a collection with a corpus, or go on with one that was left half filled.


_PAGE = 5_000


def collection_name(prefix: str, corpus: Corpus, identity: Sequence[str]) -> str:
    """Name of the collection for these texts, this encoder and these index settings.

    Another text, id, model or setting gives another name, so a collection is never reused for
    something else.
    """
    digest = blake2b(digest_size=12)
    for part in (*identity, *(item for pair in corpus for item in pair)):
        raw = part.encode("utf-8", "surrogatepass")
        digest.update(len(raw).to_bytes(8, "little"))
        digest.update(raw)
    return f"{prefix}-{digest.hexdigest()}"


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


def parts(ids: Sequence[Any], size: int) -> Iterator[Any]:
    """Yield ids in lists, as many as one request may hold at a time."""
    for start in range(0, len(ids), size):
        yield ids[start : start + size]


def stored_ids(collection: Any, size: int = _PAGE) -> list[str]:  # noqa: ANN401 - a chromadb collection
    """All ids of a collection, read page by page."""
    return [i for page in pages(collection, size, include=[]) for i in page["ids"]]


def fill_collection(
    client: Any,  # noqa: ANN401 - a chromadb client
    name: str,
    *,
    doc_ids: Sequence[str],
    vectors: npt.NDArray[np.float32],
    space: str,
    hnsw: Mapping[str, int],
) -> Any:  # noqa: ANN401 - a chromadb collection
    """Return a collection that holds exactly these vectors; only missing ones are added.

    Ids and vectors are stored, texts and tags are not.

    Raises
    ------
    DataError
        If Chroma refuses the name or a setting, or the collection holds other documents too.
    """
    chromadb = require("chromadb", package="chromadb", extra="chroma", feature="Chroma")
    try:
        collection = client.get_or_create_collection(
            name, embedding_function=None, configuration={"hnsw": {"space": space, **hnsw}}
        )
    except (ValueError, TypeError, chromadb.errors.ChromaError) as error:
        raise DataError(
            f"Chroma refused collection {name!r} with index settings {dict(hnsw)}: {error}"
        ) from error
    there = set(stored_ids(collection))
    missing = [row for row, doc_id in enumerate(doc_ids) if doc_id not in there]
    for part in parts(missing, client.get_max_batch_size()):
        collection.add(ids=[doc_ids[row] for row in part], embeddings=vectors[part])
    if collection.count() != len(doc_ids):
        raise DataError(
            f"Chroma collection {name!r} holds {collection.count()} documents, expected "
            f"{len(doc_ids)}; delete it and run again"
        )
    return collection
