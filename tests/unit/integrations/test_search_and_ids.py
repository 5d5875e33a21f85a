"""What a retriever of any framework is asked with, and the ids of what comes back."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

pytest.importorskip("langchain_core")
pytest.importorskip("llama_index.core")

from hashing_encoder import HashingEncoder
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore
from llama_index.core import VectorStoreIndex
from llama_index.core.schema import NodeRelationship, NodeWithScore, RelatedNodeInfo, TextNode

from rag_sourcebias.core.errors import DataError
from rag_sourcebias.retrieval.rerank import as_search
from rag_sourcebias_integrations.langchain import asking as langchain
from rag_sourcebias_integrations.langchain.embeddings import EncoderEmbeddings
from rag_sourcebias_integrations.llama_index import asking as llama_index
from rag_sourcebias_integrations.llama_index.embeddings import EncoderEmbedding
from rag_sourcebias_integrations.python import asking as python

pytestmark = pytest.mark.frameworks

TEXTS = {"a": "cats sleep", "b": "volcanoes erupt"}


def id_of(item: object) -> object:
    module = python
    if isinstance(item, Document | tuple):
        module = langchain
    elif isinstance(item, TextNode | NodeWithScore):
        module = llama_index
    return module.describe(item).doc_id


def store() -> InMemoryVectorStore:
    made = InMemoryVectorStore(EncoderEmbeddings(HashingEncoder()))
    made.add_documents([Document(id=i, page_content=text) for i, text in TEXTS.items()])
    return made


def index() -> VectorStoreIndex:
    nodes = [TextNode(id_=i, text=text) for i, text in TEXTS.items()]
    return VectorStoreIndex(nodes, embed_model=EncoderEmbedding(HashingEncoder()))


@pytest.mark.parametrize(
    "make",
    [
        store,
        lambda: store().as_retriever(),
        lambda: store().as_retriever() | RunnableLambda(list),
        lambda: store().as_retriever().invoke,
        index,
        lambda: index().as_retriever(),
        lambda: index().as_retriever().retrieve,
        lambda: lambda query: ["b", "a"],
    ],
    ids=["store", "retriever", "chain", "method", "index", "li-retriever", "li-method", "function"],
)
def test_whatever_can_be_asked_gives_documents_whose_ids_can_be_read(make) -> None:
    found = [id_of(item) for item in as_search(make())("volcanoes erupt")]
    assert found == ["b", "a"]


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ("one two", "one two"),
        (Document(id="d", page_content=""), "d"),
        (Document(page_content="", metadata={"id": 7}), 7),
        ((Document(id="d", page_content=""), 0.5), "d"),
        (TextNode(id_="n"), "n"),
        (NodeWithScore(node=TextNode(id_="n"), score=1.0), "n"),
        (
            TextNode(
                id_="n", relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id="whole")}
            ),
            "whole",
        ),
        ({"id": "d", "score": 1.0}, "d"),
        (SimpleNamespace(doc_id="d"), "d"),
    ],
)
def test_the_id_is_read_off_a_document(item: object, expected: object) -> None:
    assert id_of(item) == expected


@pytest.mark.parametrize(
    "obj", [3, "langchain", HashingEncoder(), EncoderEmbeddings(HashingEncoder())]
)
def test_what_cannot_be_asked_is_told_what_can(obj: object) -> None:
    with pytest.raises(DataError, match=r"cannot be asked; expected a func.*LangChain.*LlamaIndex"):
        as_search(obj)
