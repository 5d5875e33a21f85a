"""Copies in a Chroma collection: their places, and groups that follow what is written."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("chromadb")

import chromadb

from rag_sourcebias.core.data import Corpus, DocTags, Query, RankedList, Run, TagTable
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.debias.rescore import rescore_run
from rag_sourcebias.debias.twins import TwinRescorer, read_twins
from rag_sourcebias_integrations.chroma.twins import TwinCollection, fit_collection_twins

pytestmark = pytest.mark.frameworks
RNG = np.random.default_rng(0)
N = 60
FETCHED = 13  # for 10 that are shown
VECTORS = RNG.normal(size=(N, 16))
WORDS = [[f"w{RNG.integers(5000)}" for _ in range(40)] for _ in range(N)]


def vector(document: int, copy: int) -> list[float]:
    noise = np.random.default_rng(100 * document + copy).normal(size=16)
    return list(VECTORS[document] + 0.1 * copy * noise)


def text(document: int, copy: int) -> str:
    return " ".join(WORDS[document][: 40 - 5 * copy])


def written(n: int, copies: int = 2) -> dict[str, Any]:
    each = [(d, c) for d in range(n) for c in range(copies)]
    return {
        "ids": [f"{d}-{c}" for d, c in each],
        "embeddings": [vector(d, c) for d, c in each],
        "documents": [text(d, c) for d, c in each],
    }


@pytest.fixture
def collection(request: pytest.FixtureRequest) -> Any:
    client = chromadb.EphemeralClient()
    name = request.node.name[:40].strip("_[]")
    made = client.create_collection(name, configuration={"hnsw": {"space": "cosine"}})
    made.add(**written(N))
    yield made
    client.delete_collection(name)


def test_copies_share_their_place(collection: Any, tmp_path: Path) -> None:
    path = tmp_path / "twins.sqlite"
    groups = fit_collection_twins(collection, path)
    assert len(groups.groups) >= 0.9 * N  # 95 of 100 are what the threshold leaves
    twins = TwinCollection(collection, path)
    first = set()
    for document in range(30):
        asked = np.asarray(vector(document, 0))
        plain = collection.query(query_embeddings=[asked.tolist()], n_results=10)
        found = twins.query(query_embeddings=[asked.tolist()], n_results=5)
        assert plain["ids"][0][0] == f"{document}-0"
        joined = bool(groups.of(f"{document}-0"))
        assert (set(found["ids"][0][:2]) == {f"{document}-0", f"{document}-1"}) >= joined
        assert len(found["ids"][0]) == len(found["documents"][0]) == 5
        for doc_id, shown in zip(found["ids"][0], found["documents"][0], strict=True):
            assert shown == text(*map(int, doc_id.split("-")))
        if joined:
            first.add(found["ids"][0][0][-1])
    assert first == {"0", "1"}


def test_a_vector_alone_has_one_order_however_it_is_given(collection: Any, tmp_path: Path) -> None:
    path = tmp_path / "twins.sqlite"
    fit_collection_twins(collection, path)
    twins = TwinCollection(collection, path, seed=7)
    vectors = [vector(3, 0)]
    vector_only = [
        twins.query(query_embeddings=v, n_results=8) for v in (vectors, np.array(vectors))
    ]
    assert vector_only[0]["ids"] == vector_only[1]["ids"]
    with pytest.raises(ValueError, match=r"(?i)embeddings|texts"):
        twins.query(n_results=8)
    with pytest.raises(ValueError, match="non-empty"):
        twins.query(query_embeddings=[], n_results=8)


def test_one_seed_serves_one_order_everywhere(collection: Any, tmp_path: Path) -> None:
    """LangChain, LlamaIndex, the audit, and Chroma asked by text or by vector with its text."""
    pytest.importorskip("langchain_core")
    pytest.importorskip("llama_index.core")
    from langchain_core.documents import Document
    from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

    from rag_sourcebias_integrations.langchain.embeddings import DebiasCompressor
    from rag_sourcebias_integrations.llama_index.embeddings import DebiasPostprocessor

    path, asked = tmp_path / "twins.sqlite", vector(3, 0)
    groups = fit_collection_twins(collection, path)
    twins = TwinCollection(collection, path, seed=7)
    plain = collection.query(query_embeddings=[asked], n_results=FETCHED)
    ids, scores = plain["ids"][0], [1 - d for d in plain["distances"][0]]
    rescorer = TwinRescorer(groups, seed=7)
    orders = set()
    for query in map(str, range(12)):
        documents = [
            Document(i, id=i, metadata={"rsb_score": s}) for i, s in zip(ids, scores, strict=True)
        ]
        by_langchain = DebiasCompressor(rescorer).compress_documents(documents, query)
        nodes = [
            NodeWithScore(node=TextNode(text=i, id_=i), score=s)
            for i, s in zip(ids, scores, strict=True)
        ]
        by_llama = DebiasPostprocessor(rescorer).postprocess_nodes(
            nodes, query_bundle=QueryBundle(query)
        )
        run = Run.from_lists([RankedList(query_id="q", doc_ids=tuple(ids), scores=scores)])
        corpus = Corpus(texts=tuple(ids), tags=TagTable.from_tags((i, DocTags()) for i in ids))
        by_audit = rescore_run(run, rescorer, corpus, [Query(query_id="q", text=query)])
        by_chroma = twins.query(query_embeddings=[asked], queries=query, n_results=10)["ids"][0]
        assert by_chroma == [d.id for d in by_langchain][:10]
        assert by_chroma == [n.node.node_id for n in by_llama][:10]
        assert by_chroma == list(next(iter(by_audit)).doc_ids)[:10]
        orders.add(tuple(by_chroma))
    assert len(orders) > 4  # the control: the text decides
    by_vector = twins.query(query_embeddings=[asked], n_results=10)["ids"][0]
    assert sorted(by_vector) == sorted(orders.pop())  # the same documents in an order of its own
    with pytest.raises(DataError, match="2 texts for 1 queries"):
        twins.query(query_embeddings=[asked], queries=["a", "b"])


def test_groups_follow_what_is_written(collection: Any, tmp_path: Path) -> None:
    path = tmp_path / "twins.sqlite"
    fit_collection_twins(collection, path)
    twins = TwinCollection(collection, path)
    assert twins.groups.of("5-0") == ("5-0", "5-1")
    twins.delete(ids=["5-1"])
    assert twins.groups.of("5-0") == ()
    twins.add(ids=["5-1"], embeddings=[vector(5, 1)], documents=[text(5, 1)])
    assert twins.groups.of("5-0") == ("5-0", "5-1")
    twins.update(ids=["5-1"], embeddings=[vector(6, 1)], documents=["something else entirely"])
    assert twins.groups.of("5-1") == ()  # near by its vector, but it says something else
    twins.upsert(ids=["5-1"], embeddings=[vector(5, 1)], documents=[text(5, 1)])
    assert read_twins(path).groups == twins.groups.groups
    again = fit_collection_twins(
        collection, tmp_path / "new.sqlite", threshold=twins.groups.settings.threshold
    )
    assert again.groups == twins.groups.groups
    assert twins.count() == 2 * N


def test_groups_of_another_collection_are_refused(collection: Any, tmp_path: Path) -> None:
    path = tmp_path / "twins.sqlite"
    fit_collection_twins(collection, path)
    client = chromadb.EphemeralClient()
    other = client.create_collection("other-twins")
    with pytest.raises(DataError, match="fit the groups of this collection"):
        TwinCollection(other, path)
    with pytest.raises(DataError, match="at least 2 documents"):
        fit_collection_twins(other, tmp_path / "none.sqlite")
    client.delete_collection("other-twins")
