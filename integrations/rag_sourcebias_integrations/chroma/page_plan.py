"""What one page of documents needs so that it carries the tags; no I/O here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from rag_sourcebias.errors import DataError
from rag_sourcebias.tagging.fingerprint import taggers_fingerprint
from rag_sourcebias.tagging.keys import FINGERPRINT_KEY, to_metadata
from rag_sourcebias.tagging.taggers import Tagger, tag_documents
from rag_sourcebias.types import DocTags
from rag_sourcebias_integrations.chroma.layout import NODE_KEY, Layout, is_node, rewrite_node
from rag_sourcebias_integrations.chroma.metadata import (
    Scalar,
    backup_line,
    held_tags,
    read_tags,
    tag_update,
)

__all__ = ["PagePlan", "Planner"]

_Document: TypeAlias = tuple[str, str, Mapping[str, object]]  # id, text, metadata
_BULK = 512  # texts at once


@dataclass(slots=True)
class PagePlan:
    """Changes of one page.

    Parameters
    ----------
    ids : list of str
        Documents to write.
    metadatas : list of dict
        What to merge into the metadata of each.
    tags : list of DocTags
        New tags of each.
    unchanged : list of DocTags
        Tags of the documents that these taggers did before.
    backup : list of str
        One line for each document whose tags are replaced.
    """

    ids: list[str] = field(default_factory=list)
    metadatas: list[dict[str, Scalar | None]] = field(default_factory=list)
    tags: list[DocTags] = field(default_factory=list)
    unchanged: list[DocTags] = field(default_factory=list)
    backup: list[str] = field(default_factory=list)


class Planner:
    """Plan pages for the same taggers.

    Parameters
    ----------
    taggers : Tagger or sequence of Tagger
        In order of trust.
    layout : {"auto", "flat", "llama-index"}
    overwrite : bool
        Replace tags that others wrote.
    """

    def __init__(
        self, taggers: Tagger | Sequence[Tagger], *, layout: Layout, overwrite: bool
    ) -> None:
        if layout not in ("auto", "flat", "llama-index"):
            raise DataError(f"layout {layout!r} is not one of auto, flat, llama-index")
        self.taggers: Sequence[Tagger] = [taggers] if callable(taggers) else list(taggers)
        self.fingerprint = taggers_fingerprint(self.taggers)
        self.layout: Layout = layout
        self.overwrite = overwrite

    def plan(self, page: Mapping[str, Any]) -> PagePlan:
        """Plan one page, as ``Collection.get`` returned it.

        Raises
        ------
        DataError
            If a document carries the tags of other taggers and ``overwrite`` is off, or a tagger
            fails; names the document.
        """
        plan = PagePlan()
        texts = page["documents"] or [""] * len(page["ids"])
        todo: list[_Document] = []
        for doc_id, text, stored in zip(page["ids"], texts, page["metadatas"], strict=True):
            metadata = stored or {}
            if metadata.get(FINGERPRINT_KEY) == self.fingerprint:
                plan.unchanged.append(read_tags(doc_id, metadata))
            else:
                todo.append((doc_id, text or "", metadata))
        taggers = [_in_bulk(tagger, todo) for tagger in self.taggers]
        for (doc_id, tags), (_, _, metadata) in zip(
            tag_documents(todo, taggers), todo, strict=True
        ):
            self._add(plan, doc_id, metadata, tags)
        return plan

    def _add(
        self, plan: PagePlan, doc_id: str, metadata: Mapping[str, object], tags: DocTags
    ) -> None:
        held, other = held_tags(metadata), metadata.get(FINGERPRINT_KEY)
        if other is not None or (held and held != to_metadata(tags)):
            if not self.overwrite:
                by = "that name no taggers" if other is None else f"of the taggers {other!r}"
                raise DataError(
                    f"document {doc_id!r} carries tags {by}, these are {self.fingerprint!r}; "
                    "replace them with overwrite=True (--overwrite), which keeps the old ones in "
                    "a backup, or tag with the same rules as before"
                )
            plan.backup.append(backup_line(doc_id, metadata))
        update = tag_update(doc_id, metadata, tags, self.fingerprint)
        if is_node(doc_id, metadata, self.layout):
            update[NODE_KEY] = rewrite_node(doc_id, str(metadata[NODE_KEY]), update)
        plan.ids.append(doc_id)
        plan.metadatas.append(update)
        plan.tags.append(tags)


def _in_bulk(tagger: Tagger, documents: Sequence[_Document]) -> Tagger:
    """Return a tagger for these documents in this order; by ``tag_many(texts)`` where it is there.

    A detector is several times as fast with many texts at once.
    """
    many = getattr(tagger, "tag_many", None)
    if many is None:
        return tagger

    def answers() -> Iterator[DocTags | None]:
        for start in range(0, len(documents), _BULK):
            yield from many([text for _, text, _ in documents[start : start + _BULK]])

    known = answers()

    def answer(_id: str, _text: str, _metadata: Mapping[str, object]) -> DocTags | None:
        return next(known)

    answer.__qualname__ = type(tagger).__qualname__
    return answer
