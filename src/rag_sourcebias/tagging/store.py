"""Where tags are kept beside the documents: one protocol, and the checks all stores share."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol, TypeAlias, runtime_checkable

from rag_sourcebias.errors import DataError
from rag_sourcebias.tagging.keys import make_tags
from rag_sourcebias.types.documents import DocTags, TagTable

__all__ = [
    "UNKNOWN",
    "DamagedRowError",
    "TagRow",
    "TagStore",
    "check_rows",
    "check_strings",
    "content_hash",
]

UNKNOWN = DocTags()
TagRow: TypeAlias = tuple[str, DocTags, bytes | None]  # document id, tags, hash of the text


class DamagedRowError(DataError):
    """The tags of one document cannot be read; those of others can."""


@runtime_checkable
class TagStore(Protocol):
    """Tags by document id or by content; the documents themselves are never touched.

    Safe to share between threads. Texts are kept as hashes only.
    """

    def get(self, doc_ids: Sequence[str]) -> list[DocTags]:
        """Tags of each document in order; all unknown where the id is not in the store."""
        ...

    def get_by_text(self, texts: Sequence[str]) -> list[DocTags]:
        """Tags of the document put last with exactly this text; all unknown where none was."""
        ...

    def get_by_hash(self, hashes: Sequence[bytes]) -> list[DocTags]:
        """As :meth:`get_by_text`, for texts known by their :func:`content_hash` only."""
        ...

    def put(
        self, rows: Iterable[tuple[str, DocTags]], texts: Mapping[str, str] | None = None
    ) -> None:
        """Store tags, replacing those a document had; of an id given twice the last row counts.

        Parameters
        ----------
        rows : iterable of (str, DocTags)
            Checked as a whole first: nothing is stored when one of them is bad.
        texts : mapping of str to str, optional
            Text by document id, looked up for the ids in ``rows`` only. A document that is tagged
            again without a text keeps the one it had.

        Raises
        ------
        DataError
            If a row cannot be stored, or the file of the store cannot be written.
        """
        ...

    def remove(self, doc_ids: Sequence[str]) -> int:
        """Forget documents; return how many of them were in the store."""
        ...

    def __len__(self) -> int:
        """Number of documents in the store."""
        ...

    def counts(self) -> dict[str, int]:
        """Documents per source; the key ``""`` counts those stored as unknown, if any."""
        ...

    def table(self) -> TagTable:
        """All tags as columns, the document put last at the end."""
        ...


def content_hash(text: str) -> bytes:
    """Return the 128-bit BLAKE2b hash of a text, taken as it is; lone surrogates are accepted."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def check_strings(values: Sequence[str], what: str) -> list[str]:
    """Return the values as a list.

    Raises
    ------
    DataError
        If they are one string instead of several, or one of them is no string.
    """
    if isinstance(values, str):
        raise DataError(f"expected a list of {what}s, found one string {values[:80]!r}")
    result = list(values)
    for value in result:
        if not isinstance(value, str):
            raise DataError(f"{what} {value!r} is not a string")
    return result


def check_rows(
    rows: Iterable[tuple[str, DocTags]], texts: Mapping[str, str] | None
) -> list[TagRow]:
    """Return rows that every store can hold, with the hashes of their texts.

    Raises
    ------
    DataError
        If an id is empty or no string, or a tag or a text has the wrong type or range.
    """
    checked: list[TagRow] = []
    for doc_id, tags in rows:
        if not isinstance(doc_id, str) or not doc_id:
            raise DataError(f"document id {doc_id!r} must be a non-empty string")
        if not isinstance(tags, DocTags):
            raise DataError(f"document {doc_id!r}: expected DocTags, found {tags!r}")
        try:
            plain = make_tags(tags.source, tags.style, tags.pair_id, tags.origin, tags.confidence)
        except DataError as error:
            raise DataError(f"document {doc_id!r}: {error}") from error
        text = None if texts is None else texts.get(doc_id)
        if text is not None and not isinstance(text, str):
            raise DataError(f"document {doc_id!r}: its text is {text!r}, not a string")
        checked.append((doc_id, plain, None if text is None else content_hash(text)))
    return checked
