"""What frameworks return is asked for to a depth, and read: id, text, metadata and score."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from rag_sourcebias.core.data import Query
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.retrieval.application import ApplicationSpec, Hit, application_spec
from rag_sourcebias.retrieval.rerank import as_search

pytestmark = pytest.mark.frameworks
TEXTS = [f"text number {i}" for i in range(8)]


def langchain_store() -> Any:
    from langchain_core.documents import Document
    from langchain_core.embeddings import DeterministicFakeEmbedding
    from langchain_core.vectorstores import InMemoryVectorStore

    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
    store.add_documents(
        [Document(id=f"d{i}", page_content=t, metadata={"ref": i}) for i, t in enumerate(TEXTS)]
    )
    return store


def llama_index() -> Any:
    from llama_index.core import MockEmbedding, VectorStoreIndex
    from llama_index.core.schema import TextNode

    nodes = [
        TextNode(id_=f"d{i}", text=t, metadata={"ref": i}, excluded_embed_metadata_keys=["ref"])
        for i, t in enumerate(TEXTS)
    ]
    return VectorStoreIndex(nodes, embed_model=MockEmbedding(4))


def chroma_collection() -> Any:
    import chromadb

    collection = chromadb.EphemeralClient().get_or_create_collection(
        "asking", embedding_function=Numbers()
    )
    collection.upsert(
        ids=[f"d{i}" for i in range(8)], documents=TEXTS, metadatas=[{"ref": i} for i in range(8)]
    )
    return collection


try:
    from chromadb import EmbeddingFunction
except ModuleNotFoundError:
    EmbeddingFunction = object


class Numbers(EmbeddingFunction):  # type: ignore[misc]
    def __init__(self) -> None:
        pass

    def __call__(self, input: list[str]) -> list[list[float]]:
        return [[float(len(text)), float(sum(map(ord, text)) % 97)] for text in input]


STORES = {"langchain": langchain_store, "llama_index": llama_index, "chroma": chroma_collection}
PACKAGES = {"langchain": "langchain_core", "llama_index": "llama_index.core", "chroma": "chromadb"}


@pytest.mark.parametrize("name", STORES)
def test_a_store_is_asked_to_a_depth_and_its_documents_are_read(name: str) -> None:
    pytest.importorskip(PACKAGES[name])
    store = STORES[name]()
    assert len(list(as_search(store, depth=6)("text"))) == 6
    assert 0 < len(list(as_search(store)("text"))) <= 8
    hits = ApplicationSpec(store).build(corpus())._ask([Query(query_id="q", text="text")], 8)[0]
    assert {hit.doc_id for hit in hits} == {f"d{i}" for i in range(8)}
    for hit in hits:
        assert isinstance(hit, Hit)
        assert hit.text == TEXTS[int(str(hit.doc_id)[1:])]
        assert int(str(hit.metadata["ref"])) == int(str(hit.doc_id)[1:])
    if name != "langchain":  # its plain search tells no scores
        scores = [hit.score for hit in hits]
        assert scores == sorted(scores, reverse=True)  # type: ignore[type-var]


def corpus() -> Any:
    from rag_sourcebias.core.data import Corpus, DocTags, TagTable

    tags = TagTable.from_tags((f"d{i}", DocTags(source="human")) for i in range(8))
    return Corpus(texts=tuple(TEXTS), tags=tags)


def test_an_application_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "asked_app.py").write_text(
        "class parts:\n    def search(text):\n        return ['d1', 'd2']\nnumber = 3\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    spec = application_spec("app:asked_app:parts.search")
    assert spec.name == "app:asked_app:parts.search"
    run = spec.build(corpus()).retrieve([Query(query_id="q", text="x")], 5)
    assert run.ranked_list(0).doc_ids == ("d1", "d2")
    for text, message in (
        ("app:asked_app", "write module:name"),
        ("app:no_such_app:x", "there is no module 'no_such_app' here"),
        ("app:asked_app:nothing", "has no attribute 'nothing'"),
        ("app:asked_app:number", "an object of type int cannot be asked"),
    ):
        with pytest.raises(DataError, match=message) as error:
            application_spec(text)
        assert str(error.value).startswith(f"--retriever {text!r}: ")


def test_a_store_without_texts_cannot_be_asked() -> None:
    pytest.importorskip("llama_index.core")
    with pytest.raises(DataError, match="cannot be asked"):
        ApplicationSpec(llama_index().vector_store)
