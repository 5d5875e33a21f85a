"""Metadata as Chroma can hold it, and the part of it that holds tags."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import TypeAlias

import numpy as np

from rag_sourcebias.errors import DataError
from rag_sourcebias.tagging.keys import (
    FINGERPRINT_KEY,
    METADATA_KEYS,
    TAG_FIELDS,
    from_metadata,
    to_metadata,
)
from rag_sourcebias.types import DocTags

__all__ = ["Scalar", "backup_line", "held_tags", "read_tags", "scalars", "tag_update"]

Scalar: TypeAlias = str | int | float | bool
_KEYS = frozenset((*METADATA_KEYS, FINGERPRINT_KEY))
_PLAIN = frozenset((str, float))
_MOST = 2**63  # beyond it Chroma silently stores a float


def scalars(doc_id: str, values: Mapping[str, object]) -> dict[str, Scalar]:
    """Cast values to what every Chroma release stores and gives back as it was.

    Numpy scalars become Python's. None is left out.

    Raises
    ------
    DataError
        Naming document, key and value, for a number that is not finite (Chroma stores it as
        nothing), an integer beyond 64 bits (it becomes a float) or a value of another type.
    """
    return {key: _scalar(doc_id, key, value) for key, value in values.items() if value is not None}


def _scalar(doc_id: str, key: str, value: object) -> Scalar:
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, str | bool):
        return plain
    if isinstance(plain, float) and math.isfinite(plain):
        return plain
    if isinstance(plain, int) and -_MOST <= plain < _MOST:
        return plain
    raise DataError(
        f"document {doc_id!r}: metadata {key!r} is {value!r} ({type(value).__name__}), which "
        "Chroma cannot keep; expected a text, a finite number of at most 64 bits, true or false"
    )


def held_tags(metadata: Mapping[str, object]) -> dict[str, object]:
    """Tags among the metadata as they are stored, without the fingerprint."""
    if _KEYS.isdisjoint(metadata):
        return {}
    found = {key: metadata.get(key) for key in METADATA_KEYS}
    return {key: value for key, value in found.items() if value is not None and value != ""}


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
    doc_id: str, metadata: Mapping[str, object], tags: DocTags, fingerprint: str
) -> dict[str, Scalar | None]:
    """Return what ``Collection.update`` merges into the metadata so that it holds these tags.

    A tag that is no longer known is None, which deletes its key.
    """
    new: dict[str, Scalar | None] = {**to_metadata(tags), FINGERPRINT_KEY: fingerprint}
    if not _PLAIN.issuperset(map(type, new.values())):
        new = {**scalars(doc_id, new)}
    if not _KEYS.isdisjoint(metadata):
        new |= dict.fromkeys(_KEYS.intersection(metadata).difference(new))
    return new


def backup_line(doc_id: str, metadata: Mapping[str, object]) -> str:
    """Line of a JSONL tag store that keeps the stored tags, and who wrote them."""
    record = {"doc_id": doc_id} | {
        name: metadata.get(key) for name, key in zip(TAG_FIELDS, METADATA_KEYS, strict=True)
    }
    return json.dumps(record | {"tagger": metadata.get(FINGERPRINT_KEY)}) + "\n"
