"""Mitigations inside LangChain and LlamaIndex, from a store's scores to the order that is shown."""

import asyncio
import math
from collections.abc import Callable, Sequence
from typing import Any

import pytest

pytest.importorskip("langchain_core")
pytest.importorskip("langchain_chroma")
pytest.importorskip("llama_index.core")
pytest.importorskip("llama_index.vector_stores.chroma")

import chromadb
from biased_pairs import (
    N_ASKED,
    by_score,
    calibration,
    cosine_of,
    human_share,
    queries,
    texts,
)
from favoured_twins import N_PAIRS, FavouringEncoder
from langchain_chroma import Chroma
from langchain_classic.retrievers import ContextualCompressionRetriever
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_parts import FaissStore
from llama_index.core import StorageContext, VectorStoreIndex
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index.vector_stores.chroma import ChromaVectorStore
from pydantic import Field

from rag_sourcebias.core.data import DocTags
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.core.protocols import Rescorer
from rag_sourcebias.core.tags import METADATA_KEYS
from rag_sourcebias.debias.twins import TwinGroups, TwinRescorer, TwinSettings
from rag_sourcebias.observe.observers import CountingObserver
from rag_sourcebias.observe.tags import MemoryTagStore
from rag_sourcebias_integrations.langchain.embeddings import DebiasCompressor, EncoderEmbeddings
from rag_sourcebias_integrations.langchain.retriever import InstrumentedRetriever
from rag_sourcebias_integrations.llama_index.embeddings import DebiasPostprocessor, EncoderEmbedding

pytestmark = pytest.mark.frameworks
K = 2 * N_PAIRS
# An index may let a few close neighbours change places; uncorrected, the share is 0.44.
EVEN = pytest.approx(0.5, abs=0.03)
EXACT = {"ef_search": 1000, "ef_construction": 1000, "max_neighbors": 64}
Search = Callable[[str], list[Any]]


class LangChain:
    """Documents with their scores in the metadata, and the compressor that reorders them."""

    Reorder = DebiasCompressor
    Embeddings = EncoderEmbeddings

    @staticmethod
    def item(doc_id: str, text: str, source: str | None, score: object) -> Document:
        tags = {} if source is None else {"rsb_source": source}
        return Document(text, id=doc_id, metadata={**tags, "rsb_score": score})

    @staticmethod
    def ids(found: Sequence[Any]) -> list[str]:
        return [document.id for document in found]

    @staticmethod
    def held(found: Sequence[Any]) -> list[Any]:
        """The application's own objects."""
        return list(found)

    @staticmethod
    def order(reorder: Any, given: Any, query: str) -> Any:
        return reorder.compress_documents(given, query)

    @staticmethod
    async def aorder(reorder: Any, given: Any, query: str) -> Any:
        return await reorder.acompress_documents(given, query)


class LlamaIndex:
    """Nodes with their scores, and the postprocessor that reorders them."""

    Reorder = DebiasPostprocessor
    Embeddings = EncoderEmbedding

    @staticmethod
    def item(doc_id: str, text: str, source: str | None, score: Any) -> NodeWithScore:
        found = NodeWithScore(node=node(doc_id, text, source))
        found.score = score
        return found

    @staticmethod
    def ids(found: Sequence[Any]) -> list[str]:
        return [one.node.node_id for one in found]

    @staticmethod
    def held(found: Sequence[Any]) -> list[Any]:
        return [one.node for one in found]

    @staticmethod
    def order(reorder: Any, given: Any, query: str) -> Any:
        return reorder.postprocess_nodes(given, query_str=query)

    @staticmethod
    async def aorder(reorder: Any, given: Any, query: str) -> Any:
        return await reorder.apostprocess_nodes(given, query_bundle=QueryBundle(query))


def node(doc_id: str, text: str, source: str | None) -> TextNode:
    return TextNode(
        id_=doc_id,
        text=text,
        metadata={} if source is None else {"rsb_source": source},
        excluded_embed_metadata_keys=list(METADATA_KEYS),
        excluded_llm_metadata_keys=list(METADATA_KEYS),
    )


both = pytest.mark.parametrize("framework", [LangChain, LlamaIndex])


def items(framework: Any, topic: int, *, tagged: bool = True) -> list[Any]:
    """What an exact search for a topic returns."""
    own = {t.doc_id: t for t in texts()}
    scores = {t.doc_id: cosine_of(t.text) for t in texts()}
    return [
        framework.item(i, own[i].text, own[i].source if tagged else None, scores[i])
        for i in by_score(scores, topic)
    ]


def orders(framework: Any, reorder: Any, **options: Any) -> list[list[str]]:
    return [
        framework.ids(framework.order(reorder, items(framework, topic, **options), query))
        for topic, query in enumerate(queries())
    ]


# Real stores


def langchain_search(kind: Any) -> Search:
    native = EncoderEmbeddings(FavouringEncoder())
    if isinstance(kind, str):
        store = Chroma(
            f"mitigation-{kind}",
            embedding_function=native,
            collection_configuration={"hnsw": {"space": kind, **EXACT}},
        )
        store.reset_collection()
    else:
        store = kind(native)
    store.add_documents(
        [Document(t.text, id=t.doc_id, metadata={"rsb_source": t.source}) for t in texts()]
    )
    retriever = store.as_retriever(search_kwargs={"k": K})
    return InstrumentedRetriever(retriever, CountingObserver(), score_key="rsb_score").invoke


def llama_index_search(kind: str) -> Search:
    storage = None
    if kind == "chroma":
        client = chromadb.EphemeralClient()
        if "postprocessed" in [known.name for known in client.list_collections()]:
            client.delete_collection("postprocessed")
        collection = client.create_collection(
            "postprocessed",
            embedding_function=None,
            configuration={"hnsw": {"space": "cosine", **EXACT}},
        )
        store = ChromaVectorStore(chroma_collection=collection)
        storage = StorageContext.from_defaults(vector_store=store)
    index = VectorStoreIndex(
        [node(t.doc_id, t.text, t.source) for t in texts()],
        storage_context=storage,
        embed_model=EncoderEmbedding(FavouringEncoder()),
    )
    return index.as_retriever(similarity_top_k=K).retrieve


def of_squared_distance(relevance: float) -> float:
    """What the docstring of DebiasCompressor gives for squared distances."""
    return 1 - (1 - relevance) / 2**0.5


def of_chroma(score: float) -> float:
    """What the docstring of DebiasPostprocessor gives for ChromaVectorStore."""
    return 1 + math.log(score)


@pytest.mark.parametrize(
    ("framework", "kind", "score_of"),
    [
        pytest.param(LangChain, FaissStore, of_squared_distance, id="faiss"),
        pytest.param(LangChain, "cosine", None, id="chroma-cosine"),
        pytest.param(LangChain, "l2", of_squared_distance, id="chroma-l2"),
        pytest.param(LlamaIndex, "simple", None, id="llama-simple"),
        pytest.param(LlamaIndex, "chroma", of_chroma, id="llama-chroma"),
    ],
)
def test_a_calibration_gives_the_order_of_calibrated_cosines_in_every_store(
    framework: Any, kind: Any, score_of: Any
) -> None:
    fitted = calibration()
    offset = fitted.gaps[0].estimate
    assert offset == pytest.approx(-0.05, abs=0.01)
    search = (langchain_search if framework is LangChain else llama_index_search)(kind)
    reorder = framework.Reorder(fitted, score_of=score_of, encoder=FavouringEncoder())
    given = [search(query) for query in queries()]
    found = [framework.order(reorder, g, q) for g, q in zip(given, queries(), strict=True)]
    after = [framework.ids(one) for one in found]
    wanted = {t.doc_id: cosine_of(t.text) + offset * (t.source == "llm:x") for t in texts()}
    exact = [by_score(wanted, topic) for topic in range(N_ASKED)]
    # neighbours closer than the index's precision may change places
    assert sum(a != b for a, b in zip(after, exact, strict=True)) <= 2
    assert reorder.dropped.total == 0
    assert human_share([framework.ids(one) for one in given]) < 0.46
    assert human_share(after) == EVEN
    if framework is LlamaIndex:
        assert [one.score for one in found[4]] == pytest.approx(
            [wanted[doc_id] for doc_id in after[4]], abs=1e-3
        )


def test_a_compression_retriever_and_a_chain_reorder_alike() -> None:
    """With the lines of the docstring, and with documents that come from anywhere."""
    scored = RunnableLambda(lambda query: items(LangChain, int(query.split()[1])))
    compressor = DebiasCompressor(calibration())
    wanted = orders(LangChain, compressor)
    search = langchain_search("cosine").__self__
    retriever = ContextualCompressionRetriever(base_compressor=compressor, base_retriever=search)
    assert LangChain.ids(retriever.invoke("topic 3")) == wanted[3]
    assert LangChain.ids(asyncio.run(retriever.ainvoke("topic 3"))) == wanted[3]
    chain = {"documents": scored, "query": RunnablePassthrough()} | RunnableLambda(
        lambda given: compressor.compress_documents(**given)
    )
    assert [LangChain.ids(found) for found in chain.batch(queries())] == wanted
    assert compressor.dropped.total == 0


# What may not change


@both
def test_the_objects_themselves_come_back_unchanged(framework: Any) -> None:
    given, reorder = items(framework, 4), framework.Reorder(calibration())
    kept = [one.model_dump() for one in given]
    found = framework.order(reorder, given, "topic 4")
    assert [one.model_dump() for one in given] == kept
    assert {id(one) for one in framework.held(found)} == {id(one) for one in framework.held(given)}
    assert framework.ids(found) != framework.ids(given)


@both
def test_tags_may_live_in_a_store_and_items_without_any_keep_their_score(framework: Any) -> None:
    untagged, tags = framework.Reorder(calibration()), MemoryTagStore()
    plain = [framework.ids(items(framework, topic)) for topic in range(N_ASKED)]
    assert orders(framework, untagged, tagged=False) == plain
    tags.put([(t.doc_id, DocTags(source=t.source)) for t in texts()])
    known = framework.Reorder(calibration(), tag_store=tags)
    assert human_share(orders(framework, known, tagged=False)) == EVEN
    assert untagged.dropped.total == known.dropped.total == 0


@both
def test_more_are_retrieved_than_shown(framework: Any) -> None:
    every = orders(framework, framework.Reorder(calibration()))
    best = orders(framework, framework.Reorder(calibration(), top_n=3))
    assert best == [found[:3] for found in every]
    # also where nothing is reordered, because no source was fitted or because it failed
    cut = framework.Reorder(calibration(), top_n=2)
    for source, n_lost in (("human", 0), ("llm:x", 1)):
        given = [framework.item(f"{i}", "t", "human", None) for i in range(4)]
        given.append(framework.item("4", "t", source, None))
        assert framework.ids(framework.order(cut, given, "q")) == ["0", "1"]
        assert cut.dropped.total == n_lost


@both
def test_async_gives_the_same_order(framework: Any) -> None:
    reorder = framework.Reorder(calibration())

    async def many() -> list[Any]:
        each = enumerate(queries())
        return await asyncio.gather(
            *(framework.aorder(reorder, items(framework, topic), query) for topic, query in each)
        )

    found = [framework.ids(one) for one in asyncio.run(many())]
    assert found == orders(framework, reorder)


class Seen(BaseEventHandler):
    names: list[str] = Field(default_factory=list)

    def handle(self, event: Any, **kwargs: Any) -> None:
        if type(event).__name__.startswith("ReRank"):
            self.names.append(type(event).__name__)


@both
def test_a_function_of_ones_own_is_given_texts_tags_and_scores(framework: Any) -> None:
    def humans_first(
        query: str,
        *,
        doc_ids: Sequence[str],
        texts: Sequence[str],
        tags: Sequence[DocTags],
        scores: Sequence[float] | None,
    ) -> list[float]:
        assert (query, list(texts)) == ("x", [f"text of {doc_id}" for doc_id in doc_ids])
        assert scores == [0.5] * 5
        return [float(t.source == "human") for t in tags]

    assert isinstance(humans_first, Rescorer)
    sources = ("llm:x", "human", "llm:x", "human", None)
    given = [framework.item(f"{i}", f"text of {i}", s, 0.5) for i, s in enumerate(sources)]
    reorder, root, seen = framework.Reorder(humans_first), get_dispatcher(), Seen()
    root.add_event_handler(seen)
    try:
        found = framework.order(reorder, given, "x")
    finally:
        root.event_handlers = [h for h in root.event_handlers if h is not seen]
    assert framework.ids(found) == ["1", "3", "0", "2", "4"]  # equal ones keep their order
    assert reorder.dropped.total == 0
    assert seen.names == (["ReRankStartEvent", "ReRankEndEvent"] if framework is LlamaIndex else [])


# What goes wrong


@both
@pytest.mark.parametrize(
    "rescorer",
    [
        lambda q, **_: [1.0],
        lambda q, **_: [float("nan")] * 3,
        lambda q, **_: 1 / 0,
        lambda q, **_: "order",
    ],
)
def test_a_failing_rescorer_changes_nothing_and_is_counted(framework: Any, rescorer: Any) -> None:
    given = [framework.item(f"{i}", "t", "human", 0.5) for i in range(3)]
    reorder = framework.Reorder(rescorer)
    assert framework.order(reorder, given, "q") is given
    assert dict(reorder.dropped.by_reason) == {"rescorer failed": 1}


@both
def test_without_usable_scores_the_order_stays_and_is_counted(framework: Any) -> None:
    reorder = framework.Reorder(calibration())
    bad = (math.nan, math.inf, None, "0.5")
    for n, score in enumerate(bad, start=1):
        given = [framework.item(f"{i}", "t", "llm:x", s) for i, s in enumerate((0.9, score, 0.7))]
        assert framework.order(reorder, given, "q") is given
        assert dict(reorder.dropped.by_reason) == {"rescorer failed": n}
    assert framework.order(reorder, [], "q") == []
    assert reorder.dropped.total == len(bad)


def test_a_store_that_does_not_say_what_its_scores_mean_keeps_its_order() -> None:
    search, compressor = langchain_search(InMemoryVectorStore), DebiasCompressor(calibration())
    given = search("topic 1")
    assert compressor.compress_documents(given, "topic 1") is given
    assert dict(compressor.dropped.by_reason) == {"rescorer failed": 1}


@both
def test_what_was_fitted_on_another_encoder_is_refused(framework: Any) -> None:
    class Other(FavouringEncoder):
        fingerprint = "favouring-2"

    pair = ("h", "m", 0.95)
    twins = TwinGroups(TwinSettings(space="favouring-1", threshold=0.9), ["h", "m"], [pair])
    for rescorer in (calibration(), TwinRescorer(twins)):
        framework.Reorder(rescorer, encoder=FavouringEncoder())
        for encoder in (Other(), framework.Embeddings(Other()), "favouring-2"):
            with pytest.raises(
                DataError,
                match=r"fitted on scores of the encoder 'favouring-1', but scores come from "
                r"'favouring-2'; fit it again",
            ):
                framework.Reorder(rescorer, encoder=encoder)
    with pytest.raises(DataError, match="3 is not an encoder; expected one with a fingerprint"):
        framework.Reorder(calibration(), encoder=3)
    with pytest.raises(DataError, match="top_n must be at least 1, got 0"):
        framework.Reorder(calibration(), top_n=0)
    with pytest.raises(DataError, match="is not a rescorer"):
        framework.Reorder("rescorer")
