"""Tagging LangChain documents, and observing the scores of their retrieval."""

import asyncio
from typing import Any

import pytest
from langchain_chroma import Chroma
from langchain_classic.retrievers import EnsembleRetriever
from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore
from langchain_parts import TEXTS, FaissStore, FixedRetriever, embeddings, ids
from langchain_parts import documents as made

from rag_sourcebias.core.data import DocTags
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.core.tags import from_metadata
from rag_sourcebias.observe.events import text_id
from rag_sourcebias.observe.observers import CollectingObserver
from rag_sourcebias.observe.recorder import instrument
from rag_sourcebias.observe.tags import MemoryTagStore
from rag_sourcebias_integrations.langchain.embeddings import DebiasCompressor
from rag_sourcebias_integrations.langchain.retriever import InstrumentedRetriever
from rag_sourcebias_integrations.langchain.vectorstore import SourceTagger, TaggedVectorStore

pytestmark = pytest.mark.frameworks
STORES = (InMemoryVectorStore, FaissStore, Chroma)
HUMAN = DocTags(source="human", origin="declared")


def tagger(doc_id: str, text: str, metadata: Any) -> DocTags | None:
    return HUMAN if "cat" in text else None


def plain() -> list[Document]:
    return [Document(t, id=f"d{i}", metadata={"source": f"{i}.txt"}) for i, t in enumerate(TEXTS)]


def empty(kind: Any) -> Any:
    if kind is not Chroma:
        return kind(embeddings())
    store = Chroma(
        "documents",
        embedding_function=embeddings(),
        collection_configuration={"hnsw": {"space": "cosine"}},
    )
    store.reset_collection()
    return store


class BrokenStore(MemoryTagStore):
    def put(self, rows: Any, texts: Any = None) -> None:
        raise OSError(28, "No space left on device")


# the transformer


def test_copies_are_tagged_and_the_given_documents_are_not() -> None:
    given = plain()
    before = [d.model_dump() for d in given]
    found = SourceTagger(tagger).transform_documents(given)
    assert [d.model_dump() for d in given] == before
    assert [from_metadata(d.metadata).source for d in found] == [
        "human",
        "human",
        None,
        "human",
        None,
    ]
    assert all(a.page_content == b.page_content for a, b in zip(given, found, strict=True))
    assert ids(found) == ids(given)
    assert found[2] is given[2]
    again = asyncio.run(SourceTagger(tagger).atransform_documents(given))
    assert again == found


def test_a_sidecar_leaves_the_documents_alone() -> None:
    store = MemoryTagStore()
    given = [*plain(), Document("a nameless cat")]
    found = SourceTagger(tagger, tags=store).transform_documents(given)
    assert all(a is b for a, b in zip(given, found, strict=True))
    assert store.get(["d0", "d2"]) == [HUMAN, DocTags()]
    assert store.get([text_id("a nameless cat")]) == [HUMAN]
    assert store.get_by_text(["a nameless cat"]) == [HUMAN]
    observer = CollectingObserver()
    with instrument("langchain", observer, tags=store):
        FixedRetriever(found=given).invoke("q")
    assert [tags.source for tags in observer.events[0].tags].count("human") == 4


def test_what_raises_leaves_the_document_as_it_was_and_is_counted() -> None:
    def picky(doc_id: str, text: str, metadata: Any) -> DocTags:
        if "dog" in text:
            raise ZeroDivisionError
        return HUMAN

    careful = SourceTagger(picky)
    found = careful.transform_documents(plain())
    assert ["rsb_source" in d.metadata for d in found] == [True, False, False, True, True]
    assert dict(careful.dropped.by_reason) == {"tagger failed": 2}
    full = SourceTagger(tagger, tags=BrokenStore())
    given = plain()
    assert full.transform_documents(given) == given
    assert dict(full.dropped.by_reason) == {"tag store failed": 3}


# the vector store


@pytest.mark.parametrize("kind", STORES)
@pytest.mark.parametrize("way", ["texts", "documents", "atexts", "adocuments"])
def test_what_is_added_is_tagged_in_every_store(kind, way) -> None:
    front = TaggedVectorStore(empty(kind), tagger)
    given = plain()
    names = ids(given)
    if way.endswith("texts"):
        parts = ([d.page_content for d in given], [d.metadata for d in given])
        added = (
            front.add_texts(*parts, ids=names)
            if way == "texts"
            else asyncio.run(front.aadd_texts(*parts, ids=names))
        )
    else:
        added = (
            front.add_documents(given)
            if way == "documents"
            else asyncio.run(front.aadd_documents(given))
        )
    assert added == names
    assert all(d.metadata == {"source": f"{i}.txt"} for i, d in enumerate(given))
    found = {d.id: d for d in front.similarity_search("cat", k=5)}
    assert {i for i, d in found.items() if d.metadata.get("rsb_source") == "human"} == {
        "d0",
        "d1",
        "d3",
    }
    assert {d.page_content for d in found.values()} == set(TEXTS)
    assert front.dropped.total == 0


def test_every_method_reaches_the_store() -> None:
    store = empty(Chroma)
    front = TaggedVectorStore(store, tagger)
    front.add_documents(plain())
    vector = front.embeddings.embed_query("the cat")
    assert isinstance(front, VectorStore)

    def same(name: str, *args: Any, **kwargs: Any) -> None:
        assert getattr(front, name)(*args, **kwargs) == getattr(store, name)(*args, **kwargs), name

    same("search", "the cat", "mmr", k=2)
    same("similarity_search", "the cat", k=2, filter={"rsb_source": "human"})
    same("similarity_search_with_score", "the cat", k=2)
    same("similarity_search_with_relevance_scores", "the cat", k=2)
    same("similarity_search_by_vector", vector, k=2)
    same("similarity_search_by_vector_with_relevance_scores", vector, k=2)
    same("max_marginal_relevance_search", "the cat", k=2)
    same("max_marginal_relevance_search_by_vector", vector, k=2)
    same("get_by_ids", ["d1"])
    same("_select_relevance_score_fn")
    same("_get_retriever_tags")
    same("get", ids=["d1"])

    async def asame(name: str, *args: Any, **kwargs: Any) -> None:
        wanted = await getattr(store, name)(*args, **kwargs)
        assert await getattr(front, name)(*args, **kwargs) == wanted, name

    async def all_of_them() -> None:
        await asame("asearch", "the cat", "similarity", k=2)
        await asame("asimilarity_search", "the cat", k=2)
        await asame("asimilarity_search_with_score", "the cat", k=2)
        await asame("asimilarity_search_with_relevance_scores", "the cat", k=2)
        await asame("asimilarity_search_by_vector", vector, k=2)
        await asame("amax_marginal_relevance_search", "the cat", k=2)
        await asame("amax_marginal_relevance_search_by_vector", vector, k=2)
        await asame("aget_by_ids", ["d1"])
        await front.adelete(ids=["d4"])

    asyncio.run(all_of_them())
    front.delete(ids=["d3"])
    assert set(store.get()["ids"]) == {"d0", "d1", "d2"}
    retriever = front.as_retriever(search_kwargs={"k": 1})
    assert retriever.vectorstore is front
    assert retriever.tags == ["Chroma", "EncoderEmbeddings"]
    retriever.add_documents([Document("another cat", id="new")])
    assert front.get_by_ids(["new"])[0].metadata["rsb_source"] == "human"
    with pytest.raises(AttributeError):
        front.no_such_method  # noqa: B018
    with pytest.raises(DataError, match="cannot make a store"):
        TaggedVectorStore.from_texts(["a"], embeddings())


def test_what_is_no_store_is_refused() -> None:
    with pytest.raises(DataError, match="is no LangChain vector store"):
        TaggedVectorStore(made(), tagger)


@pytest.mark.parametrize("behind", [True, False])
def test_searches_of_a_tagged_store_are_observed_like_others(behind: bool) -> None:
    store, observer = empty(FaissStore), CollectingObserver()
    front = TaggedVectorStore(store, tagger)
    front.add_documents(plain())
    with instrument(store if behind else front, observer):
        front.similarity_search("the cat", k=2)
        asyncio.run(front.asimilarity_search("the cat", k=2))
    assert len(observer.events) == 2
    assert any(tags.source == "human" for tags in observer.events[0].tags)


# the retriever with scores


@pytest.mark.parametrize("kind", STORES)
def test_scores_are_observed_and_the_very_documents_come_back(kind) -> None:
    store = empty(kind)
    store.add_documents(made())
    observer = CollectingObserver()
    inner = store.as_retriever(search_kwargs={"k": 3})
    wrapper = InstrumentedRetriever(inner, observer)
    found = [wrapper.invoke("the cat"), asyncio.run(wrapper.ainvoke("the cat"))]
    assert wrapper.flush(10)
    assert wrapper.dropped.total == 0
    assert found == [inner.invoke("the cat")] * 2
    assert type(store) is kind
    scores = [event.ranked.scores for event in observer.events]
    if kind is InMemoryVectorStore:
        assert scores == [None, None]
    else:
        wanted = sorted((float(s) for _, s in store.similarity_search_with_score("the cat", k=3)))
        wanted = sorted(map(store._select_relevance_score_fn(), wanted), reverse=True)
        assert all(s.tolist() == pytest.approx(wanted, abs=1e-6) for s in scores)
    if kind is FaissStore:  # which keeps its Document objects
        assert all(a is b for a, b in zip(found[0], inner.invoke("the cat"), strict=True))
    labels = {"retriever": "VectorStoreRetriever", "store": kind.__name__}
    assert [event.labels for event in observer.events] == [labels, labels]


def test_other_search_types_and_retrievers_delegate() -> None:
    store = empty(FaissStore)
    store.add_documents(made())
    threshold = store.as_retriever(
        search_type="similarity_score_threshold", search_kwargs={"score_threshold": -9.0, "k": 2}
    )
    plain_one = store.as_retriever(search_kwargs={"k": 2})
    ensemble = EnsembleRetriever(retrievers=[plain_one, plain_one], weights=[0.5, 0.5])
    for inner, scored in ((plain_one, True), (ensemble, False), (FixedRetriever(found=[]), False)):
        observer = CollectingObserver()
        wrapper = InstrumentedRetriever(inner, observer)
        assert wrapper.invoke("the cat") == inner.invoke("the cat")
        assert wrapper.flush(10)
        (event,) = observer.events
        assert (event.ranked.scores is not None) == scored
    with pytest.warns(UserWarning, match="Relevance scores must be between"):
        bare = threshold.invoke("the cat")
    with pytest.warns(UserWarning, match="Relevance scores must be between"):
        assert InstrumentedRetriever(threshold, CollectingObserver()).invoke("the cat") == bare


def test_scores_in_metadata_go_into_copies_only() -> None:
    store = empty(FaissStore)
    store.add_documents(made())
    before = [d.model_dump() for d in store.rows]
    wrapper = InstrumentedRetriever(store, CollectingObserver(), score_key="rsb_score")
    found = wrapper.invoke("the cat")
    assert [d.model_dump() for d in store.rows] == before
    scores = [d.metadata["rsb_score"] for d in found]
    assert scores == sorted(scores, reverse=True)
    order = DebiasCompressor(lambda q, *, scores, **_: [-s for s in scores])
    assert order.compress_documents(found, "q")[-1] is found[0]
    assert order.dropped.total == 0
