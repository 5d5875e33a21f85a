"""Ask a function, and read what it answers."""

import math
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

from rag_sourcebias.core.errors import DataError
from rag_sourcebias.intake.results import at, row_of
from rag_sourcebias.retrieval.application import Hit
from rag_sourcebias_integrations.python.attach import Readers, name_of, read_documents

_TEXTS = (
    "text", "page_content", "content", "document", "body", "contents", "passage", "long_text",
    "content.text", "content.0.text",
)  # fmt: skip


def search(obj: object, depth: int | None = None) -> Callable[[str], Iterable[Any]] | None:  # noqa: ARG001 - a function says itself how many it returns
    """Return what asks a function; None where it is none."""
    return obj if callable(obj) else None


def describe(found: Any) -> Hit:  # noqa: ANN401 - whatever a function returns
    """Read a document: its id where it has one, its text, metadata and score."""
    document = found[0] if isinstance(found, tuple) and found else found
    rows = read_documents([found], Readers(doc_id=lambda _: "unread"))
    metadata = next(iter(rows.metadata), None) or {}
    score = _first(rows.scores)
    if isinstance(document, str):
        return Hit(document, document, metadata, score)
    doc_id = None
    with suppress(DataError):
        doc_id = name_of(row_of(document))
    texts = (at(place, name) for place in (document, metadata) for name in _TEXTS)
    text = next((value for value in texts if isinstance(value, str)), None)
    return Hit(doc_id, text, metadata, score)


def _first(scores: Any) -> float | None:  # noqa: ANN401
    if not scores:
        return None
    try:
        return float(scores[0])
    except OverflowError:  # a whole number of 400 digits
        return math.inf
