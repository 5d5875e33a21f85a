"""The lines of a tag log: a document with its tags, or a removal."""

from __future__ import annotations

import json

from rag_sourcebias.errors import DataError
from rag_sourcebias.tagging.keys import TAG_FIELDS, read_fields
from rag_sourcebias.tagging.store import TagRow

__all__ = ["put_line", "read_record", "remove_line"]

_HASH_DIGITS = 32


def put_line(row: TagRow) -> str:
    """Return the line of a document: pure ASCII, so that lone surrogates can be written too."""
    doc_id, tags, text_hash = row
    record = {"doc_id": doc_id} | {name: getattr(tags, name) for name in TAG_FIELDS}
    if text_hash is not None:
        record["text_hash"] = text_hash.hex()
    return json.dumps(record) + "\n"


def remove_line(doc_id: str) -> str:
    """Return the line that forgets a document."""
    return json.dumps({"doc_id": doc_id, "removed": True}) + "\n"


def read_record(record: object, where: str) -> TagRow | str:
    """Return the row that a parsed line puts, or the id of the document it removes.

    Raises
    ------
    DataError
        Naming file and line, if it is neither.
    """
    doc_id = record.get("doc_id") if isinstance(record, dict) else None
    if not isinstance(record, dict) or not isinstance(doc_id, str) or not doc_id:
        raise DataError(f"{where}: expected a JSON object with a doc_id, found {str(record)[:80]}")
    if record.get("removed") is True:
        return doc_id
    try:
        return doc_id, read_fields(record), _hash(record.get("text_hash"))
    except DataError as error:
        raise DataError(f"{where}: {error}") from error


def _hash(value: object) -> bytes | None:
    if value is None:
        return None
    if isinstance(value, str) and len(value) == _HASH_DIGITS:
        try:
            return bytes.fromhex(value)
        except ValueError:
            pass
    raise DataError(f"text_hash {value!r} is not a number of {_HASH_DIGITS} hexadecimal digits")
