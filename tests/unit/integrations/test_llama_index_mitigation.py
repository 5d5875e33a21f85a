"""Mitigations inside LlamaIndex, from the store's scores to the exposure of each source."""

from __future__ import annotations

import asyncio
import math
import threading
from functools import cache
from typing import Any

import pytest

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
from llama_index.core import StorageContext, VectorStoreIndex
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.instrumentation.events.llm import LLMCompletionStartEvent
from llama_index.core.llms import MockLLM
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index.vector_stores.chroma import ChromaVectorStore
from pydantic import Field

from rag_sourcebias.core.errors import DataError
from rag_sourcebias.core.tags import METADATA_KEYS
from rag_sourcebias_integrations.llama_index.embeddings import DebiasPostprocessor, EncoderEmbedding

pytestmark = pytest.mark.frameworks
K = 2 * N_PAIRS
# An index may let a few close neighbours change places; uncorrected, the share is 0.44.
EVEN = pytest.approx(0.5, abs=0.03)
EXACT = {"ef_search": 1000, "ef_construction": 1000, "max_neighbors": 64}


def from_chroma(score: float) -> float:
    """What the docstring of DebiasPostprocessor gives for ChromaVectorStore."""
    return 1 + math.log(score)


def nodes(tagged: bool = True) -> list[TextNode]:
    return [
        TextNode(
            id_=t.doc_id,
            text=t.text,
            metadata={"rsb_source": t.source} if tagged else {},
            excluded_embed_metadata_keys=list(METADATA_KEYS),
            excluded_llm_metadata_keys=list(METADATA_KEYS),
        )
        for t in texts()
    ]


@cache
def indexed(kind: str, *, tagged: bool = True) -> VectorStoreIndex:
    embedding = EncoderEmbedding(FavouringEncoder())
    if kind == "simple":
        return VectorStoreIndex(nodes(tagged), embed_model=embedding)
    client = chromadb.EphemeralClient()
    if "postprocessed" in [known.name for known in client.list_collections()]:
        client.delete_collection("postprocessed")
    collection = client.create_collection(
        "postprocessed",
        embedding_function=None,
        configuration={"hnsw": {"space": "cosine", **EXACT}},
    )
    store = ChromaVectorStore(chroma_collection=collection)
    return VectorStoreIndex(
        nodes(tagged),
        storage_context=StorageContext.from_defaults(vector_store=store),
        embed_model=embedding,
    )


def names(found: Any) -> list[str]:
    return [one.node.node_id for one in found]


def runs(index: VectorStoreIndex, post: DebiasPostprocessor | None = None) -> list[list[str]]:
    retriever = index.as_retriever(similarity_top_k=K)
    found = []
    for query in queries():
        given = retriever.retrieve(query)
        found.append(
            names(given if post is None else post.postprocess_nodes(given, query_str=query))
        )
    return found


# end to end


@pytest.mark.parametrize(("kind", "score_of"), [("simple", None), ("chroma", from_chroma)])
def test_a_calibration_gives_the_order_of_calibrated_cosines_in_every_store(kind, score_of) -> None:
    fitted, index = calibration(), indexed(kind)
    post = DebiasPostprocessor(fitted, score_of=score_of, encoder=FavouringEncoder())
    before, after = runs(index), runs(index, post)
    offset = fitted.gaps[0].estimate
    wanted = {t.doc_id: cosine_of(t.text) + offset * (t.source == "llm:x") for t in texts()}
    exact = [by_score(wanted, topic) for topic in range(N_ASKED)]
    assert sum(a != b for a, b in zip(after, exact, strict=True)) <= 2  # ties within precision
    assert post.dropped.total == 0
    assert human_share(before) < 0.46
    assert human_share(after) == EVEN
    given = index.as_retriever(similarity_top_k=K).retrieve("topic 4")
    found = post.postprocess_nodes(given, query_str="topic 4")
    assert [one.score for one in found] == pytest.approx(
        [wanted[one.node.node_id] for one in found], abs=1e-3
    )


class Prompts(BaseEventHandler):
    seen: list[str] = Field(default_factory=list)

    def handle(self, event: Any, **kwargs: Any) -> None:
        if isinstance(event, LLMCompletionStartEvent):
            self.seen.append(event.prompt)


def test_a_query_engine_shows_the_same_texts_in_another_order() -> None:
    """With the lines of the docstring."""
    index, encoder, fitted = indexed("simple"), FavouringEncoder(), calibration()
    root, prompts = get_dispatcher(), Prompts()
    root.add_event_handler(prompts)
    try:
        plain = index.as_query_engine(similarity_top_k=K, llm=MockLLM()).query("topic 2")
        engine = index.as_query_engine(
            similarity_top_k=K,
            llm=MockLLM(),
            node_postprocessors=[DebiasPostprocessor(fitted, encoder=encoder, top_n=10)],
        )
        found = engine.query("topic 2")
        again = asyncio.run(engine.aquery("topic 2"))
    finally:
        root.event_handlers = [h for h in root.event_handlers if h is not prompts]
    assert len(found.source_nodes) == 10
    assert names(found.source_nodes) == names(again.source_nodes)
    assert names(found.source_nodes) != names(plain.source_nodes)[:10]
    before, after = dict.fromkeys(prompts.seen)
    context = [line for line in after.splitlines() if line.startswith("topic 2 ")]
    assert context == [one.node.get_content() for one in found.source_nodes]
    assert set(context) < set(before.splitlines())
    assert "rsb_" not in after
    held = {one.node.node_id: one.node.model_dump() for one in plain.source_nodes}
    for one in found.source_nodes:
        assert one.node.model_dump() == held[one.node.node_id]


def test_the_nodes_themselves_come_back_unchanged() -> None:
    given = indexed("simple").as_retriever(similarity_top_k=K).retrieve("topic 4")
    kept = [one.model_dump() for one in given]
    found = DebiasPostprocessor(calibration()).postprocess_nodes(given, query_str="topic 4")
    assert [one.model_dump() for one in given] == kept
    assert {id(one.node) for one in found} == {id(one.node) for one in given}
    assert names(found) != names(given)


# what goes wrong


def scored(*scores: float | None, source: str = "llm:x") -> list[NodeWithScore]:
    return [
        NodeWithScore(
            node=TextNode(id_=str(i), text=f"topic {i}", metadata={"rsb_source": source}), score=s
        )
        for i, s in enumerate(scores)
    ]


def test_without_usable_scores_the_order_stays_and_is_counted() -> None:
    post = DebiasPostprocessor(calibration())
    for n, bad in enumerate((None, math.nan, math.inf), start=1):
        given = scored(0.9, bad, 0.7)
        assert post.postprocess_nodes(given, query_str="q") is given
        assert dict(post.dropped.by_reason) == {"rescorer failed": n}
    assert post.postprocess_nodes([], query_str="q") == []
    assert post.dropped.total == 3


def test_a_calibration_of_another_encoder_is_refused() -> None:
    class Other(FavouringEncoder):
        fingerprint = "favouring-2"

    for encoder in (Other(), EncoderEmbedding(Other()), "favouring-2"):
        with pytest.raises(DataError, match="'favouring-1', but scores come from 'favouring-2"):
            DebiasPostprocessor(calibration(), encoder=encoder)


def test_async_and_threads_give_the_same_order() -> None:
    index, post = indexed("simple"), DebiasPostprocessor(calibration())
    retriever = index.as_retriever(similarity_top_k=K)
    given = [retriever.retrieve(query) for query in queries()]
    wanted = runs(index, post)

    async def many() -> list[Any]:
        return await asyncio.gather(
            *(
                post.apostprocess_nodes(found, query_bundle=QueryBundle(query))
                for found, query in zip(given, queries(), strict=True)
            )
        )

    assert [names(found) for found in asyncio.run(many())] == wanted
    wrong: list[Any] = []

    def work() -> None:
        for found, query, order in zip(given, queries(), wanted, strict=True):
            if names(post.postprocess_nodes(found, query_str=query)) != order:
                wrong.append(query)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert post.dropped.total == 0
