"""Tag LangChain documents on their way into a vector store."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Mapping, Sequence
from functools import update_wrapper
from typing import Any

from langchain_core.documents import BaseDocumentTransformer
from langchain_core.vectorstores import VectorStore

from rag_sourcebias.core.data import DocTags
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.core.tags import METADATA_KEYS, UNKNOWN, TagStore, to_metadata
from rag_sourcebias.observe.events import DroppedEvents, guarded
from rag_sourcebias.tagging.documents import Tagger, tag_documents
from rag_sourcebias_integrations._require import require_kind, taggers_of
from rag_sourcebias_integrations.langchain.observe import ids_of

# Tag LangChain documents: into the metadata of copies, or into a sidecar.


class SafeTagger:
    """Taggers and a store whose failures are counted and stay away from the application.

    Parameters
    ----------
    taggers : Tagger or sequence of Tagger
    store : TagStore or None

    Raises
    ------
    DataError
        Without taggers, or if one of them cannot be called.
    """

    def __init__(
        self,
        taggers: Tagger | Sequence[Tagger],
        store: TagStore | None,
    ) -> None:
        self.taggers = taggers_of(taggers)
        self.store = store
        self.dropped = DroppedEvents()

    def tags(self, doc_id: str, text: str, metadata: Mapping[str, Any]) -> DocTags:
        """Tag one document; all unknown where a tagger raises."""
        with guarded(self.dropped, "tagger failed"):
            ((_, tags),) = tag_documents([(doc_id, text, metadata)], self.taggers)
            return tags
        return UNKNOWN

    def tagged(self, document: Any, doc_id: str | None = None) -> Any:  # noqa: ANN401
        """Return a copy of a document with its tags; the document itself where none is known."""
        name = doc_id or ids_of([document])[0]
        tags = self.tags(name, document.page_content, document.metadata)
        if tags == UNKNOWN:
            return document
        # These tags in place of older ones.
        kept = {k: value for k, value in document.metadata.items() if k not in METADATA_KEYS}
        return document.model_copy(update={"metadata": {**kept, **to_metadata(tags)}})

    def keep(self, rows: Sequence[tuple[str, str, Mapping[str, Any]]]) -> None:
        """Tag documents (id, text, metadata) into the store."""
        if self.store is None or not rows:
            return
        tagged = [(doc_id, self.tags(doc_id, text, metadata)) for doc_id, text, metadata in rows]
        known = [row for row in tagged if row[1] != UNKNOWN]
        try:
            self.store.put(known, {doc_id: text for doc_id, text, _ in rows})
        except Exception as error:  # noqa: BLE001 - as guarded, for as many documents
            self.dropped.add("tag store failed", n=max(len(known), 1), error=error)


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
    >>> from rag_sourcebias import DocTags
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
            return [self._tagger.tagged(document) for document in documents]
        found = zip(ids_of(documents), documents, strict=True)
        self._tagger.keep([(doc_id, d.page_content, d.metadata) for doc_id, d in found])
        return list(documents)


# A vector store that tags what is added to it.


def _forward(name: str) -> Any:  # noqa: ANN401
    def method(self: TaggedVectorStore, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        return getattr(self.store, name)(*args, **kwargs)

    async def amethod(self: TaggedVectorStore, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        return await getattr(self.store, name)(*args, **kwargs)

    of_base = getattr(VectorStore, name)
    made = amethod if inspect.iscoroutinefunction(of_base) else method
    return update_wrapper(made, of_base, updated=())  # its dict says that it is abstract


# What VectorStore defines hides __getattr__.
_METHODS = [name for name, found in vars(VectorStore).items() if inspect.isfunction(found)]
_Forwarding: Any = type("_Forwarding", (), {name: _forward(name) for name in _METHODS})


class TaggedVectorStore(_Forwarding, VectorStore):
    """Stands before a vector store: tags documents as they are added, forwards everything else.

    Tags go into the ``rsb_`` keys of the stored metadata (of copies: the application's documents
    are not changed, and the text that is embedded never is), or into a tag store. To observe
    searches, give the store behind to :func:`~rag_sourcebias.instrument`.

    Parameters
    ----------
    store : VectorStore
    taggers : Tagger or sequence of Tagger
        In order of trust. A tagger is given the hash of the text where the document has no id.
    tags : TagStore, optional
        Where tags go instead of the metadata, under the ids that the store returns.

    Attributes
    ----------
    store : VectorStore
        The store behind.
    dropped : DroppedEvents
        Documents left as they were because something failed.

    Raises
    ------
    DataError
        If ``store`` is no vector store, or without taggers.
    """

    def __init__(
        self,
        store: Any,  # noqa: ANN401 - a VectorStore
        taggers: Tagger | Sequence[Tagger],
        *,
        tags: TagStore | None = None,
    ) -> None:
        require_kind(store, VectorStore, "LangChain vector store")
        self.store = store
        self._tagger = SafeTagger(taggers, tags)
        self.dropped = self._tagger.dropped

    @property
    def embeddings(self) -> Any:  # noqa: ANN401
        """The embeddings of the store."""
        return self.store.embeddings

    # By way of add_documents.
    add_texts = VectorStore.add_texts
    aadd_texts = VectorStore.aadd_texts

    def add_documents(self, documents: list[Any], **kwargs: Any) -> list[str]:  # noqa: ANN401
        """Tag documents and add them."""
        several = list(documents)
        tagged = self._tagged(several, kwargs.get("ids"))
        added: list[str] = self.store.add_documents(tagged, **kwargs)
        self._keep(added, several)
        return added

    async def aadd_documents(self, documents: list[Any], **kwargs: Any) -> list[str]:  # noqa: ANN401
        """Tag documents, on a thread, and add them."""
        several = list(documents)
        tagged = await asyncio.to_thread(self._tagged, several, kwargs.get("ids"))
        added: list[str] = await self.store.aadd_documents(tagged, **kwargs)
        await asyncio.to_thread(self._keep, added, several)
        return added

    def as_retriever(self, **kwargs: Any) -> Any:  # noqa: ANN401
        """Return a retriever over this object; the store's own kind where it has one."""
        if type(self.store).as_retriever is VectorStore.as_retriever:
            return VectorStore.as_retriever(self, **kwargs)
        return self.store.as_retriever(**kwargs)

    @classmethod
    def from_texts(cls, texts: Any, embedding: Any, metadatas: Any = None, **kwargs: Any) -> Any:  # noqa: ANN401, ARG003
        """Not offered: fill the store through an object of this class.

        Raises
        ------
        DataError
        """
        raise DataError(
            "TaggedVectorStore cannot make a store; make one, empty, and add texts through "
            "TaggedVectorStore(store, taggers)"
        )

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        store = self.__dict__.get("store")
        if store is None or name.startswith("__"):  # being unpickled, or asked for a protocol
            raise AttributeError(name)
        return getattr(store, name)

    def _tagged(self, documents: list[Any], ids: Sequence[str | None] | None) -> list[Any]:
        # ids that are not as many are for the store to refuse
        if self._tagger.store is not None or (ids and len(ids) != len(documents)):
            return documents
        found = zip(documents, ids or [None] * len(documents), strict=True)
        return [self._tagger.tagged(document, doc_id) for document, doc_id in found]

    def _keep(self, ids: Sequence[str], documents: Sequence[Any]) -> None:
        known = zip(ids or (), documents, strict=False)
        self._tagger.keep([(doc_id, d.page_content, d.metadata) for doc_id, d in known])
