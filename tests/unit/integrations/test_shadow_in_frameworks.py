"""Two retrievers of a framework on live queries: one answers, the other is compared."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

pytest.importorskip("langchain_core")
pytest.importorskip("langchain_chroma")
pytest.importorskip("llama_index.core")

from hashing_encoder import HashingEncoder
from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_parts import FaissStore, FixedRetriever, documents, embeddings
from llama_index.core import VectorStoreIndex
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import (
    IndexNode,
    NodeRelationship,
    NodeWithScore,
    QueryBundle,
    RelatedNodeInfo,
    TextNode,
)

from rag_sourcebias.core.data import DocTags
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.observe.observers import CountingObserver
from rag_sourcebias.observe.recorder import instrument
from rag_sourcebias.observe.tags import MemoryTagStore
from rag_sourcebias.observe.unobserved import suppress
from rag_sourcebias_integrations.langchain.embeddings import EncoderEmbeddings
from rag_sourcebias_integrations.langchain.observe import SourceBiasCallbackHandler
from rag_sourcebias_integrations.langchain.retriever import InstrumentedRetriever, ShadowedRetriever
from rag_sourcebias_integrations.llama_index.embeddings import EncoderEmbedding
from rag_sourcebias_integrations.llama_index.observe import ShadowedRetriever as ShadowedNodes

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


# Two LlamaIndex retrievers on live queries: one answers, the other is compared


TEXTS = ("the cat sat", "a cat and a dog", "the dog ran", "rain fell on the cat", "sun")


class Fixed(BaseRetriever):
    def __init__(self, *names: str) -> None:
        super().__init__()
        self.found = [
            NodeWithScore(
                node=TextNode(
                    id_=n,
                    text=f"text {n}",
                    metadata={"rsb_source": "human" if n == "h" else "llm:x"},
                ),
                score=1.0,
            )
            for n in names
        ]

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return self.found


def indexed(dimension: int = 64, *, prefix: str = "d", k: int = 3) -> Any:
    nodes = [
        TextNode(
            id_=f"{prefix}{i}",
            text=text,
            relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=f"file{i}")},
        )
        for i, text in enumerate(TEXTS)
    ]
    index = VectorStoreIndex(nodes, embed_model=EncoderEmbedding(HashingEncoder(dimension)))
    return index.as_retriever(similarity_top_k=k)


def names(found: Sequence[NodeWithScore]) -> list[str]:
    return [one.node.node_id for one in found]


# results


def test_the_very_nodes_of_the_current_one_come_back() -> None:
    current, candidate = Fixed("a", "b"), Fixed("h", "a")
    shadowed = ShadowedNodes(current, candidate)
    for found in (shadowed.retrieve("q"), asyncio.run(shadowed.aretrieve(QueryBundle("q")))):
        assert len(found) == 2
        assert all(a is b for a, b in zip(found, current.found, strict=True))
    shadowed.close()
    assert names(shadowed.retrieve("q")) == ["a", "b"]
    summary = shadowed.comparison.summary()
    assert (summary.n_queries, summary.n_failed, summary.n_dropped) == (2, 0, 0)
    assert (summary.overlap, summary.current) == (0.5, {"llm:x": 1.0})
    assert summary.candidate["human"] > 0.6


def test_two_encoders_of_other_dimensions_each_embed_the_query_themselves() -> None:
    """The current retriever leaves its vector in the query, which is the application's object."""
    plain = [indexed(64), indexed(2)]
    shadowed = ShadowedNodes(*plain, depth=3)
    queries = ["the cat", "a dog ran", "rain", "sun"]
    for query in queries:
        bundle = QueryBundle(query)
        assert names(shadowed.retrieve(bundle)) == names(plain[0].retrieve(query))
        assert len(bundle.embedding or ()) == 64  # as without us
        asyncio.run(shadowed.aretrieve(query))
    shadowed.close()
    both = [[names(one.retrieve(q)) for one in plain] for q in queries]
    summary = shadowed.comparison.summary()
    assert (summary.n_queries, summary.n_failed) == (8, 0)
    assert any(a != b for a, b in both)
    assert summary.overlap == pytest.approx(sum(len(set(a) & set(b)) / 3 for a, b in both) / 4)


def test_index_nodes_are_followed_as_far_as_without_us() -> None:
    deep = IndexNode(id_="deep", text="t", index_id="x", obj=TextNode(id_="deepest", text="t"))
    inner = Fixed()
    inner.found = [
        NodeWithScore(node=IndexNode(id_="link", text="t", index_id="y", obj=deep), score=1.0)
    ]
    shadowed = ShadowedNodes(inner, Fixed("a"))
    for found in (shadowed.retrieve("x"), asyncio.run(shadowed.aretrieve("x"))):
        assert names(found) == names(inner.retrieve("x")) == ["deep"]
    shadowed.close()


# what the application sees of the shadow


def test_everything_observed_of_llama_index_counts_each_query_once() -> None:
    observer = CountingObserver()
    inner, other = indexed(), indexed(2)
    shadowed = ShadowedNodes(inner, other)
    engine = RetrieverQueryEngine.from_args(shadowed, llm=MockLLM())
    with (
        instrument("llama-index", observer),
        instrument(shadowed, observer),
        instrument(other, observer),
        instrument(engine, observer),
    ):
        shadowed.retrieve("the cat")
        asyncio.run(shadowed.aretrieve("the cat"))
        engine.query("the cat")
        with suppress():
            shadowed.retrieve("the cat")
        shadowed.close()
    assert observer.n_events == 3
    summary = shadowed.comparison.summary()
    assert (summary.n_queries, summary.n_failed) == (3, 0)


# options


def test_two_indexes_are_matched_by_document_and_tags_come_from_a_store() -> None:
    store = MemoryTagStore()
    store.put([(f"file{i}", DocTags(source="human" if i % 2 else "llm:x")) for i in range(5)])
    for doc_id, same in ((None, 0.0), (lambda found: found.node.ref_doc_id, 1.0)):
        shadowed = ShadowedNodes(indexed(), indexed(prefix="other"), doc_id=doc_id, tag_store=store)
        shadowed.retrieve("the cat")
        shadowed.close()
        summary = shadowed.comparison.summary()
        assert summary.overlap == same
        assert ("human" in summary.current) == bool(same)


def test_what_is_no_retriever_of_llama_index_is_refused() -> None:
    for wrong in (("index", Fixed("a")), (Fixed("a"), 3)):
        with pytest.raises(DataError, match="is no LlamaIndex retriever; expected one"):
            ShadowedNodes(*wrong)
