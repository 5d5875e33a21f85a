"""Ask a function, and read what it answers."""

import math
from collections.abc import Callable, Iterable
from contextlib import suppress
from numbers import Integral
from typing import Any

from rag_sourcebias.core.errors import DataError
from rag_sourcebias.intake.results import at, id_text
from rag_sourcebias.retrieval.application import Hit
from rag_sourcebias_integrations.python.attach import Readers, read_documents

_TEXTS = (
    "text", "page_content", "content", "document", "body", "contents", "passage", "long_text",
    "content.text", "content.0.text",
)  # fmt: skip


def search(obj: object, depth: int | None = None) -> Callable[[str], Iterable[Any]] | None:  # noqa: ARG001 - a function says itself how many it returns
    """Return what asks a function; None where it is none."""
    return obj if callable(obj) else None


def describe(found: Any) -> Hit:  # noqa: ANN401 - whatever a function returns
    """Read a document: its id where it has one, its text, metadata and score."""
    if isinstance(found, str):
        return Hit(doc_id=found, text=found, metadata={}, score=None)
    if isinstance(found, Integral):
        return Hit(doc_id=id_text(found), text=None, metadata={}, score=None)
    (metadata,) = (rows := read_documents([found], Readers(doc_id=lambda _: "unread"))).metadata
    document = found[0] if isinstance(found, tuple) and found else found
    if isinstance(document, str | Integral):
        return describe(document)._replace(score=_first(rows.scores))
    doc_id = None
    with suppress(DataError):
        doc_id = read_documents([found]).ids[0]
    texts = (
        value
        for place in (document, metadata or {})
        for name in _TEXTS
        if isinstance(value := at(place, name), str)
    )
    return Hit(
        doc_id=doc_id, text=next(texts, None), metadata=metadata or {}, score=_first(rows.scores)
    )


def _first(scores: Any) -> float | None:  # noqa: ANN401
    if not scores or scores[0] is None:
        return None
    try:
        return float(scores[0])
    except OverflowError:  # a whole number of 400 digits
        return math.inf
