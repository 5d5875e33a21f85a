"""What a tagger is, and how several of them decide one document together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TypeAlias

from rag_sourcebias.errors import DataError, SourceBiasError
from rag_sourcebias.types.documents import DocTags

__all__ = ["Tagger", "tag_documents"]

#: ``(doc_id, text, metadata)`` to tags, or to None where the tagger knows nothing.
Tagger: TypeAlias = Callable[[str, str, Mapping[str, object]], DocTags | None]
"""Takes id, text and metadata of a document; returns its tags, or None where it knows nothing."""

Row: TypeAlias = tuple[str, str, Mapping[str, object]]

_CHUNK = 256  # documents given at once to taggers that are faster with many


def tag_documents(
    documents: Iterable[Row], taggers: Sequence[Tagger]
) -> Iterator[tuple[str, DocTags]]:
    """Tag documents in their order, with constant memory.

    Each of source, style and pair id comes from the first tagger that knows it; origin and
    confidence come with the source. What no tagger knows stays None. Where no tagger knows the
    source, the origin is the first one given (declared provenance may say that a text is neither
    of the two), otherwise None.

    Parameters
    ----------
    documents : iterable of (doc_id, text, metadata)
    taggers : sequence of Tagger
        In order of trust. One that has ``tag_many(texts)``, returning a list of ``DocTags`` or
        None, is given many texts at once.

    Yields
    ------
    tuple of (str, DocTags)
        One for every document, in the given order.

    Raises
    ------
    DataError
        If a tagger raises or returns something else than tags: names document and tagger.
    """
    rows = iter(documents)
    while chunk := list(islice(rows, _CHUNK)):
        found = [_ask_many(tagger, chunk) for tagger in taggers]
        for index, (doc_id, _, _) in enumerate(chunk):
            known = [tags for column in found if (tags := column[index]) is not None]
            yield doc_id, _combine(known)


def _name(tagger: Tagger) -> str:
    return getattr(tagger, "__qualname__", None) or type(tagger).__qualname__


def _ask_many(tagger: Tagger, rows: Sequence[Row]) -> list[DocTags | None]:
    name = _name(tagger)
    tag_many = getattr(tagger, "tag_many", None)
    if tag_many is None:
        return [_ask(tagger, name, *row) for row in rows]
    try:
        found = list(tag_many([text for _, text, _ in rows]))
    except Exception as error:  # as for one document
        raise DataError(
            f"documents {rows[0][0]!r} to {rows[-1][0]!r}: tagger {name} raised "
            f"{type(error).__name__}: {error}"
        ) from error
    if len(found) != len(rows):
        raise DataError(f"tagger {name} returned {len(found)} tags for {len(rows)} texts")
    return [_checked(tags, name, row[0]) for tags, row in zip(found, rows, strict=True)]


def _ask(
    tagger: Tagger, name: str, doc_id: str, text: str, metadata: Mapping[str, object]
) -> DocTags | None:
    try:
        tags = tagger(doc_id, text, metadata)
    except SourceBiasError as error:
        raise DataError(f"document {doc_id!r}: tagger {name}: {error}") from error
    except Exception as error:  # the caller's own code: whatever it raises, name the document
        raise DataError(
            f"document {doc_id!r}: tagger {name} raised {type(error).__name__}: {error}; "
            "a tagger returns DocTags, or None where it knows nothing"
        ) from error
    return _checked(tags, name, doc_id)


def _checked(tags: object, name: str, doc_id: str) -> DocTags | None:
    if tags is None or isinstance(tags, DocTags):
        return tags
    raise DataError(
        f"document {doc_id!r}: tagger {name} returned {tags!r} ({type(tags).__name__}); "
        "expected DocTags, or None where it knows nothing"
    )


def _combine(found: Sequence[DocTags]) -> DocTags:
    if len(found) == 1:
        return found[0]
    decided = next((tags for tags in found if tags.source is not None), None)
    if decided is None:
        decided = next((tags for tags in found if tags.origin is not None), DocTags())
    return DocTags(
        source=decided.source,
        style=next((tags.style for tags in found if tags.style is not None), None),
        pair_id=next((tags.pair_id for tags in found if tags.pair_id is not None), None),
        origin=decided.origin,
        confidence=decided.confidence,
    )
