"""Where tags are kept beside the documents: one protocol, and the checks all stores share."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from operator import attrgetter
from typing import Protocol, TypeAlias, cast, get_args, runtime_checkable

from rag_sourcebias.core.data import DocTags, Origin, TagTable
from rag_sourcebias.core.errors import DataError

# The metadata keys under which a store holds the tags of a document, spelled only here.
# None of them is ``source`` (LangChain keeps a path or URL there) or starts with ``chroma:``
# (Chroma drops such keys). Values are scalars, the only ones every store accepts.


_PREFIX = "rsb_"
_ORIGINS = get_args(Origin)
TAG_FIELDS = ("source", "style", "pair_id", "origin", "confidence")
METADATA_KEYS = tuple(_PREFIX + name for name in TAG_FIELDS)
"""Keys of the metadata that hold tags: ``rsb_source``, ``rsb_style``, ``rsb_pair_id``,
``rsb_origin`` and ``rsb_confidence``."""
#: Which taggers wrote the tags, so that a pass can go on and stale tags are seen.
FINGERPRINT_KEY = _PREFIX + "tagger"
_VALUES = attrgetter(*TAG_FIELDS)


def to_metadata(tags: DocTags) -> dict[str, str | float]:
    """Return the metadata that says what is known; what is unknown has no key.

    Examples
    --------
    >>> to_metadata(DocTags(source="human", confidence=0.9))
    {'rsb_source': 'human', 'rsb_confidence': 0.9}
    """
    return {
        key: value if isinstance(value, str) else float(value)
        for key, value in zip(METADATA_KEYS, _VALUES(tags), strict=True)
        if value is not None and value != ""
    }


def from_metadata(metadata: Mapping[str, object]) -> DocTags:
    """Read tags from the metadata of a document.

    Parameters
    ----------
    metadata : mapping
        Other keys are ignored. An absent key means unknown, and so do None and an empty string,
        which is what some stores make of None.

    Raises
    ------
    DataError
        If a value has another type or lies outside its range.

    Examples
    --------
    >>> from_metadata({"source": "https://example.org", "rsb_source": "llm:gpt-x"}).source
    'llm:gpt-x'
    """
    return read_fields(metadata, prefix=_PREFIX)


def read_fields(values: Mapping[str, object], *, prefix: str = "") -> DocTags:
    """Build tags from a mapping whose keys are the names of tag fields after a prefix.

    Raises
    ------
    DataError
        Naming key and value, if a value has another type or lies outside its range.
    """
    return make_tags(*(values.get(prefix + name) for name in TAG_FIELDS), prefix=prefix)


def make_tags(*values: object, prefix: str = "") -> DocTags:
    """Build tags from one value per tag field, in the order of ``TAG_FIELDS``.

    Raises
    ------
    DataError
        As :func:`read_fields`.
    """
    source, style, pair_id, origin, confidence = values
    if origin == "":
        origin = None
    elif origin is not None and (not isinstance(origin, str) or origin not in _ORIGINS):
        raise DataError(f"{prefix}origin {origin!r} is not one of {', '.join(_ORIGINS)}")
    return DocTags(
        source=_text(source, prefix, "source"),
        style=_text(style, prefix, "style"),
        pair_id=_text(pair_id, prefix, "pair_id"),
        origin=cast("Origin | None", origin),
        confidence=None if confidence is None else _confidence(confidence, prefix),
    )


def _text(value: object, prefix: str, name: str) -> str | None:
    if value is None or value == "":
        return None
    if not isinstance(value, str) or value.isspace():
        raise DataError(
            f"{prefix}{name} {value!r} is not a tag; expected a string that is not blank, or no "
            "such key"
        )
    return value


def _confidence(value: object, prefix: str) -> float | None:
    if value == "":
        return None
    # Before it is a float, which a whole number of 400 digits cannot be.
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 <= cast("float", value) <= 1:
        raise DataError(f"{prefix}confidence {value!r:.200} is not a number in [0, 1]")
    return float(value)


# Where tags are kept beside the documents: one protocol, and the checks all stores share.


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
