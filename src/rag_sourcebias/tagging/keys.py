"""The metadata keys under which a store holds the tags of a document, spelled only here.

None of them is ``source`` (LangChain keeps a path or URL there) or starts with ``chroma:`` (Chroma
drops such keys). Values are scalars, the only ones every store accepts.
"""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from operator import attrgetter
from typing import cast, get_args

from rag_sourcebias.errors import DataError
from rag_sourcebias.types.documents import DocTags, Origin

__all__ = [
    "FINGERPRINT_KEY",
    "METADATA_KEYS",
    "TAG_FIELDS",
    "from_metadata",
    "make_tags",
    "read_fields",
    "to_metadata",
]

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
