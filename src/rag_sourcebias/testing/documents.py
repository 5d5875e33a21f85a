"""The documents on which the contract is checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rag_sourcebias.tagging.keys import from_metadata, to_metadata
from rag_sourcebias.types.documents import DocTags

__all__ = ["DOCUMENTS", "QUERY", "ContractDocument", "tag_document"]

QUERY = "which river floods the meadow in spring"
"""The query that the contract tests ask."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContractDocument:
    """One document.

    Parameters
    ----------
    doc_id, text : str
    metadata : mapping of str to (str or int or float or bool)
        What the application keeps about it; holds no tags.
    tags : DocTags
        What is known of it; all unknown for some.
    """

    doc_id: str
    text: str
    metadata: Mapping[str, str | int | float | bool] = field(default_factory=dict)
    tags: DocTags = field(default_factory=DocTags)

    def tagged_metadata(self) -> dict[str, str | int | float | bool]:
        """Return the metadata together with the tags, as a tagged store holds them."""
        return {**self.metadata, **to_metadata(self.tags)}


_TEXTS = (
    "The river floods the meadow in spring and leaves fine silt.",
    "In spring the meadow by the river stands under water.",
    "Snow melts in March; the river rises and the meadow floods.",
    "Überschwemmte Wiesen am Fluss: das Frühjahrshochwasser.",
    "A meadow needs two cuts a year, and the river needs room.",
    "The committee met on Tuesday and adjourned without a vote.",
    "洪水每年春天淹没河边的草地。",
    "Silt from the river feeds the meadow's orchids. 🌼",
    "Rivers carry sediment; meadows keep it.",
    "Trains were late because of the flood in spring.",
)
_SOURCES = ("human", "llm:alpha", "human", None, "llm:beta", "human", "llm:alpha", None, "human")

DOCUMENTS = tuple(
    ContractDocument(
        doc_id=f"doc-{number}",
        text=text,
        metadata={
            "source": f"https://example.org/{number}",
            "year": 2000 + number,
            "public": number % 2 == 0,
        },
        tags=DocTags(
            source=source,
            style="plain" if source else None,
            pair_id=f"pair-{number}" if source else None,
            origin="declared" if source else None,
            confidence=0.75 if source == "llm:beta" else None,
        ),
    )
    for number, (text, source) in enumerate(zip(_TEXTS, (*_SOURCES, "llm:beta"), strict=True))
)
"""Ten documents: four human, four by LLMs, two of unknown source."""

_TAGS_OF = {document.text: document.tags for document in DOCUMENTS}


def tag_document(doc_id: str, text: str, metadata: Mapping[str, object]) -> DocTags | None:  # noqa: ARG001
    """Tag one of the documents; a tagger."""
    tags = _TAGS_OF.get(text)
    return None if tags is None or tags == from_metadata({}) else tags
