"""Two LangChain retrievers on live queries: one answers, the other is compared."""

import asyncio
from typing import Any

import pytest

pytest.importorskip("langchain_core")
pytest.importorskip("langchain_chroma")

from hashing_encoder import HashingEncoder
from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_parts import FaissStore, FixedRetriever, documents, embeddings

from rag_sourcebias.core.data import DocTags
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.observe.observers import CountingObserver
from rag_sourcebias.observe.recorder import instrument
from rag_sourcebias.observe.tags import MemoryTagStore
from rag_sourcebias_integrations.langchain.embeddings import EncoderEmbeddings
from rag_sourcebias_integrations.langchain.observe import SourceBiasCallbackHandler
from rag_sourcebias_integrations.langchain.retriever import InstrumentedRetriever, ShadowedRetriever

pytestmark = pytest.mark.frameworks


def fixed(*names: str) -> FixedRetriever:
    return FixedRetriever(
        found=[
            Document("text", id=n, metadata={"rsb_source": "human" if n == "h" else "llm:x"})
            for n in names
        ]
    )


def filled(dimension: int = 64) -> Any:
    store = FaissStore(EncoderEmbeddings(HashingEncoder(dimension)))
    store.add_documents(documents())
    return store


# results


def test_the_very_objects_of_the_current_one_come_back_on_every_way() -> None:
    current, candidate = fixed("a", "b"), fixed("h", "a")
    shadowed = ShadowedRetriever(current, candidate)

    async def asked() -> list[Any]:
        return [await shadowed.ainvoke("q"), *await shadowed.abatch(["q", "r"])]

    found = [shadowed.invoke("q"), *shadowed.batch(["q", "r"]), *asyncio.run(asked())]
    assert all(answer is current.found for answer in found)
    shadowed.close()
    assert shadowed.invoke("q") is current.found
    summary = shadowed.comparison.summary()
    assert (summary.n_queries, summary.n_failed, summary.n_dropped) == (6, 0, 0)
    assert summary.overlap == 0.5
    assert summary.current == {"llm:x": 1.0}
    assert summary.candidate["human"] > 0.6


# what the application sees of the shadow


def test_everything_observed_counts_each_query_once() -> None:
    observer = CountingObserver()
    inner = filled().as_retriever()
    other = filled(2).as_retriever()
    shadowed = ShadowedRetriever(
        InstrumentedRetriever(inner, observer), InstrumentedRetriever(other, observer)
    )
    handler = SourceBiasCallbackHandler(observer)
    with (
        instrument("langchain", observer),
        instrument(shadowed, observer),
        instrument(inner, observer),
        instrument(other, observer),
        instrument(inner.vectorstore, observer),
        instrument(other.vectorstore, observer),
    ):
        shadowed.invoke("the cat", config={"callbacks": [handler]})
        asyncio.run(shadowed.ainvoke("the cat"))
        shadowed.batch(["the cat", "a dog"])
        shadowed.close()
    assert observer.n_events == 4
    assert shadowed.comparison.summary().n_queries == 4


def test_ids_by_name_and_tags_by_store() -> None:
    store = MemoryTagStore()
    store.put([("1.txt", DocTags(source="human"))])
    made_up = InMemoryVectorStore(embeddings())
    made_up.add_texts(
        [d.page_content for d in documents()], [{"source": f"{i}.txt"} for i in range(5)]
    )
    shadowed = ShadowedRetriever(
        filled(), made_up, depth=2, tag_store=store, doc_id=lambda d: d.metadata["source"],
        name="trial",
    )  # fmt: skip
    assert shadowed.get_name() == "trial"
    shadowed.invoke("a cat and a dog")
    shadowed.close()
    summary = shadowed.comparison.summary()
    assert summary.n_queries == 1
    assert summary.current["human"] > 0.5
    assert summary.candidate["human"] > 0.5


def test_what_is_no_retriever_is_refused() -> None:
    for wrong in ((3, fixed("a")), (fixed("a"), "store")):
        with pytest.raises(DataError, match="is no retriever; expected one of LangChain"):
            ShadowedRetriever(*wrong)
    with pytest.raises(DataError, match="depth must be at least 1"):
        ShadowedRetriever(fixed("a"), fixed("a"), depth=0)
