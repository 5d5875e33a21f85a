"""A tagger that worker processes can import."""

from __future__ import annotations

from collections.abc import Mapping

from rag_sourcebias.core.data import DocTags


def tag_by_word(doc_id: str, text: str, metadata: Mapping[str, object]) -> DocTags | None:
    if "unknown" in text:
        return None
    if "broken" in text:
        raise ValueError(f"cannot tag {doc_id}")
    return DocTags(source="llm:x" if "machine" in text else "human", pair_id=doc_id)
