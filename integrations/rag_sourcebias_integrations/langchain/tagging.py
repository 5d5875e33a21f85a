"""Tag LangChain documents: into the metadata of copies, or into a sidecar."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.documents import BaseDocumentTransformer

from rag_sourcebias.errors import DataError
from rag_sourcebias.instrument import DroppedEvents, guarded
from rag_sourcebias.tagging import (
    METADATA_KEYS,
    Tagger,
    TagStore,
    tag_documents,
    to_metadata,
)
from rag_sourcebias.types import DocTags
from rag_sourcebias_integrations.langchain.convert import id_of

__all__ = ["SafeTagger", "SourceTagger", "tagged_metadata"]

_UNKNOWN = DocTags()


def tagged_metadata(metadata: Mapping[str, Any], tags: DocTags) -> dict[str, Any]:
    """Return a copy of the metadata that holds these tags in place of older ones."""
    kept = {key: value for key, value in metadata.items() if key not in METADATA_KEYS}
    return {**kept, **to_metadata(tags)}


class SafeTagger:
    """Taggers and a store whose failures are counted and stay away from the application.

    Parameters
    ----------
    taggers : Tagger or sequence of Tagger
    store : TagStore or None
    dropped : DroppedEvents, optional

    Raises
    ------
    DataError
        Without taggers, or if one of them cannot be called.
    """

    def __init__(
        self,
        taggers: Tagger | Sequence[Tagger],
        store: TagStore | None,
        dropped: DroppedEvents | None = None,
    ) -> None:
        self.taggers = (taggers,) if callable(taggers) else tuple(taggers)
        for tagger in self.taggers:
            if not callable(tagger):
                raise DataError(f"{tagger!r:.80} is not a tagger; expected a function")
        if not self.taggers:
            raise DataError("no taggers; expected at least one")
        self.store = store
        self.dropped = DroppedEvents() if dropped is None else dropped

    def tags(self, doc_id: str, text: str, metadata: Mapping[str, Any]) -> DocTags:
        """Tag one document; all unknown where a tagger raises."""
        with guarded(self.dropped, "tagger failed"):
            ((_, tags),) = tag_documents([(doc_id, text, metadata)], self.taggers)
            return tags
        return _UNKNOWN

    def keep(self, rows: Sequence[tuple[str, str, Mapping[str, Any]]]) -> None:
        """Tag documents (id, text, metadata) into the store."""
        if self.store is None or not rows:
            return
        tagged = [(doc_id, self.tags(doc_id, text, metadata)) for doc_id, text, metadata in rows]
        known = [row for row in tagged if row[1] != _UNKNOWN]
        kept = False
        with guarded(self.dropped, "tag store failed"):
            self.store.put(known, {doc_id: text for doc_id, text, _ in rows})
            kept = True
        if not kept and len(known) > 1:
            self.dropped.add("tag store failed", n=len(known) - 1)


class SourceTagger(BaseDocumentTransformer):
    """Tag documents on their way into an index.

    Tags go into the ``rsb_`` keys of the metadata of copies, never into the text, or, with a tag
    store, into the store alone: then the very documents that were given are returned. A document
    without an id is known there by its text.

    Tag before indexing. ``langchain_core.indexing.index`` hashes the metadata: documents that
    were indexed without tags count as changed once they are tagged, and all of them are embedded
    again; a ``key_encoder`` that ignores the tags skips them instead, and the tags are never
    written. For an index that exists, use a tag store, or tag it in place
    (``rag-sourcebias tag apply``).

    Parameters
    ----------
    taggers : Tagger or sequence of Tagger
        In order of trust.
    tags : TagStore, optional
        Where tags go instead of the metadata.

    Attributes
    ----------
    dropped : DroppedEvents
        Documents that were left as they were because a tagger or the store raised.

    Raises
    ------
    DataError
        Without taggers, or if one of them cannot be called.

    Examples
    --------
    >>> from langchain_core.documents import Document
    >>> from rag_sourcebias.types import DocTags
    >>> tagger = SourceTagger(lambda doc_id, text, metadata: DocTags(source="human"))
    >>> tagger.transform_documents([Document("some text", metadata={"source": "a.txt"})])
    [Document(metadata={'source': 'a.txt', 'rsb_source': 'human'}, page_content='some text')]
    """

    def __init__(self, taggers: Tagger | Sequence[Tagger], *, tags: TagStore | None = None) -> None:
        self._tagger = SafeTagger(taggers, tags)
        self.dropped = self._tagger.dropped

    def transform_documents(self, documents: Sequence[Any], **kwargs: Any) -> list[Any]:  # noqa: ANN401, ARG002
        """Return the documents, tagged."""
        if self._tagger.store is None:
            return [self._tagged(document) for document in documents]
        self._tagger.keep([(id_of(d), d.page_content, d.metadata) for d in documents])
        return list(documents)

    def _tagged(self, document: Any) -> Any:  # noqa: ANN401
        tags = self._tagger.tags(id_of(document), document.page_content, document.metadata)
        if tags == _UNKNOWN:
            return document
        return document.model_copy(update={"metadata": tagged_metadata(document.metadata, tags)})
