"""Mitigations inside LangChain, from the store's scores to the exposure of each source."""

from __future__ import annotations

import asyncio
import math
import threading
from typing import Any

import pytest

pytest.importorskip("langchain_core")
pytest.importorskip("langchain_chroma")

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
from langchain_core.prompts import PromptTemplate, format_document
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_parts import FaissStore, QdrantStore, ids

from rag_sourcebias.core.data import DocTags
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.observe.observers import (
    CountingObserver,
)
from rag_sourcebias.observe.tags import MemoryTagStore
from rag_sourcebias_integrations.langchain.embeddings import DebiasCompressor, EncoderEmbeddings
from rag_sourcebias_integrations.langchain.retriever import InstrumentedRetriever

pytestmark = pytest.mark.frameworks
K = 2 * N_PAIRS
# An index may let a few close neighbours change places; uncorrected, the share is 0.44.
EVEN = pytest.approx(0.5, abs=0.03)
EXACT = {"ef_search": 1000, "ef_construction": 1000, "max_neighbors": 64}


def to_cosine(relevance: float) -> float:
    """What the docstring of DebiasCompressor gives for squared distances."""
    return 1 - (1 - relevance) / 2**0.5


STORES = [
    pytest.param(FaissStore, to_cosine, id="faiss"),
    pytest.param(QdrantStore, None, id="qdrant"),
    pytest.param("cosine", None, id="chroma-cosine"),
    pytest.param("l2", to_cosine, id="chroma-l2"),
]


def documents(tagged: bool = True) -> list[Document]:
    return [
        Document(t.text, id=t.doc_id, metadata={"rsb_source": t.source} if tagged else {"file": 1})
        for t in texts()
    ]


def filled(kind: Any, *, tagged: bool = True) -> Any:
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
    store.add_documents(documents(tagged))
    return store


def scored(store: Any, observer: Any = None) -> InstrumentedRetriever:
    return InstrumentedRetriever(
        store.as_retriever(search_kwargs={"k": K}),
        observer or CountingObserver(),
        score_key="rsb_score",
    )


def reordered(compressor: DebiasCompressor, base: Any) -> ContextualCompressionRetriever:
    return ContextualCompressionRetriever(base_compressor=compressor, base_retriever=base)


def runs(retriever: Any) -> list[list[str]]:
    return [ids(retriever.invoke(query)) for query in queries()]


# end to end


@pytest.mark.parametrize(("kind", "score_of"), STORES)
def test_a_calibration_gives_the_order_of_calibrated_cosines_in_every_store(kind, score_of) -> None:
    fitted, store = calibration(), filled(kind)
    assert fitted.gaps[0].estimate == pytest.approx(-0.05, abs=0.01)
    compressor = DebiasCompressor(fitted, score_of=score_of, encoder=FavouringEncoder())
    before, after = runs(store.as_retriever(search_kwargs={"k": K})), None
    after = runs(reordered(compressor, scored(store)))
    offset = fitted.gaps[0].estimate
    wanted = {t.doc_id: cosine_of(t.text) + offset * (t.source == "llm:x") for t in texts()}
    exact = [by_score(wanted, topic) for topic in range(N_ASKED)]
    # neighbours closer than the index's precision may change places
    swapped = sum(a != b for a, b in zip(after, exact, strict=True))
    assert swapped <= 2
    assert compressor.dropped.total == 0
    assert human_share(before) < 0.46
    assert human_share(after) == EVEN


# what may not change


def test_texts_prompts_and_the_stores_own_documents_are_untouched() -> None:
    store = filled(FaissStore)
    rows = [d.model_dump() for d in store.rows]
    template = PromptTemplate.from_template("{page_content}")
    plain = store.as_retriever(search_kwargs={"k": K}).invoke("topic 3")
    base = scored(store)
    given = base.invoke("topic 3")
    kept = [d.model_dump() for d in given]
    found = DebiasCompressor(calibration(), score_of=to_cosine).compress_documents(given, "topic 3")
    assert [d.model_dump() for d in store.rows] == rows
    assert [d.model_dump() for d in given] == kept
    assert ids(found) != ids(given)
    assert {id(d) for d in found} == {id(d) for d in given}

    def prompts(several: Any) -> dict[str, str]:
        return {d.id: format_document(d, template) for d in several}

    assert prompts(found) == prompts(plain)
    added = {d.id: dict(d.metadata) for d in found}
    for values in added.values():
        values.pop("rsb_score")
    assert added == {d.id: d.metadata for d in plain}


def test_tags_may_live_in_a_store_and_documents_without_any_keep_their_score() -> None:
    store, tags = filled("cosine", tagged=False), MemoryTagStore()
    untagged = DebiasCompressor(calibration())
    plain = runs(store.as_retriever(search_kwargs={"k": K}))
    assert runs(reordered(untagged, scored(store))) == plain
    tags.put([(t.doc_id, DocTags(source=t.source)) for t in texts()])
    known = DebiasCompressor(calibration(), tag_store=tags)
    assert human_share(runs(reordered(known, scored(store)))) == EVEN
    assert untagged.dropped.total == known.dropped.total == 0


def test_more_are_retrieved_than_shown() -> None:
    store = filled("cosine")
    every = reordered(DebiasCompressor(calibration()), scored(store))
    best = reordered(DebiasCompressor(calibration(), top_n=3), scored(store))
    assert runs(best) == [found[:3] for found in runs(every)]
    # also where nothing is reordered, because no source was fitted or because it failed
    given = [Document("t", id=str(i), metadata={"rsb_source": "human"}) for i in range(5)]
    cut = DebiasCompressor(calibration(), top_n=2)
    assert ids(cut.compress_documents(given, "q")) == ["0", "1"]
    assert cut.dropped.total == 0
    given[4].metadata["rsb_source"] = "llm:x"
    assert ids(cut.compress_documents(given, "q")) == ["0", "1"]
    assert cut.dropped.total == 1


# what goes wrong


def test_without_usable_scores_the_order_stays_and_is_counted() -> None:
    # InMemoryVectorStore does not say what its scores mean
    store = filled(InMemoryVectorStore)
    compressor = DebiasCompressor(calibration())
    plain = store.as_retriever(search_kwargs={"k": K})
    assert ids(reordered(compressor, scored(store)).invoke("topic 1")) == ids(
        plain.invoke("topic 1")
    )
    assert dict(compressor.dropped.by_reason) == {"rescorer failed": 1}
    given = plain.invoke("topic 1")
    for bad in (math.nan, math.inf, None, "0.5"):
        given[1].metadata["rsb_score"] = bad
        for document in (given[0], *given[2:]):
            document.metadata["rsb_score"] = 0.5
        assert compressor.compress_documents(given, "topic 1") is given
    assert compressor.dropped.total == 5
    assert compressor.compress_documents([], "topic 1") == []
    assert compressor.dropped.total == 5


def test_a_calibration_of_another_encoder_is_refused() -> None:
    class Other(FavouringEncoder):
        fingerprint = "favouring-2"

    for encoder in (Other(), EncoderEmbeddings(Other()), "favouring-2"):
        with pytest.raises(
            DataError,
            match=r"fitted on scores of the encoder 'favouring-1', but scores come from "
            r"'favouring-2'; fit it again",
        ):
            DebiasCompressor(calibration(), encoder=encoder)
    with pytest.raises(DataError, match="3 is not an encoder; expected one with a fingerprint"):
        DebiasCompressor(calibration(), encoder=3)
    with pytest.raises(DataError, match="top_n must be at least 1, got 0"):
        DebiasCompressor(calibration(), top_n=0)


# async and threads


def test_async_chains_and_threads_give_the_same_order() -> None:
    store = filled("cosine")
    compressor = DebiasCompressor(calibration())
    retriever = reordered(compressor, scored(store))
    wanted = runs(retriever)

    async def many() -> list[Any]:
        return await asyncio.gather(*(retriever.ainvoke(query) for query in queries()))

    assert [ids(found) for found in asyncio.run(many())] == wanted
    chain = {
        "documents": scored(store),
        "query": RunnablePassthrough(),
    } | RunnableLambda(lambda given: compressor.compress_documents(**given))
    assert [ids(found) for found in chain.batch(queries())] == wanted
    wrong: list[Any] = []

    def work() -> None:
        found = runs(retriever)
        if found != wanted:
            wrong.append(found)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert compressor.dropped.total == 0
