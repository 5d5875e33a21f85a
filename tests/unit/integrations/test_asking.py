"""What frameworks return is asked for to a depth, and read: id, text, metadata and score."""

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest

pytest.importorskip("langchain_core")
pytest.importorskip("llama_index.core")
pytest.importorskip("chromadb")

from chroma_texts import new_collection
from chromadb import EphemeralClient
from hashing_encoder import HashingEncoder
from langchain_chroma import Chroma
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from langchain_core.vectorstores import InMemoryVectorStore
from llama_index.core import StorageContext, VectorStoreIndex
from llama_index.core.llms import MockLLM
from llama_index.core.postprocessor import LongContextReorder
from llama_index.core.schema import (
    NodeRelationship,
    NodeWithScore,
    QueryBundle,
    RelatedNodeInfo,
    TextNode,
)  # fmt: skip
from llama_index.vector_stores.chroma import ChromaVectorStore

from rag_sourcebias.core.data import Corpus, DocTags, Query, TagTable
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.observe.tags import corpus_of, open_tag_store
from rag_sourcebias.retrieval.application import ApplicationSpec, Hit, application_spec
from rag_sourcebias.retrieval.rerank import as_search
from rag_sourcebias_integrations.langchain import asking as langchain
from rag_sourcebias_integrations.langchain.embeddings import EncoderEmbeddings
from rag_sourcebias_integrations.llama_index import asking as llama_index
from rag_sourcebias_integrations.llama_index.embeddings import EncoderEmbedding
from rag_sourcebias_integrations.python import asking as python

pytestmark = pytest.mark.frameworks
QUERY = "volcanoes erupt"
TEXTS = {f"d{i}": " ".join([*["volcanoes"] * i, *["cats"] * (8 - i)]) for i in range(1, 9)}
TOLD: list[dict[str, str]] = [
    {"source": "human"}, {"source": "a.md", "rsb_source": "llm:a"}, {"source": "a.md"}, {}
]  # fmt: skip
METADATA = {i: {"ref": i, **TOLD[n % 4]} for n, i in enumerate(TEXTS)}
BEST = ["d8", "d7", "d6", "d5", "d4", "d3", "d2", "d1"]


def id_of(item: object) -> object:
    module = python
    if isinstance(item, Document | tuple):
        module = langchain
    elif isinstance(item, TextNode | NodeWithScore):
        module = llama_index
    return module.describe(item).doc_id


def store() -> InMemoryVectorStore:
    made = InMemoryVectorStore(EncoderEmbeddings(HashingEncoder()))
    made.add_documents(
        [Document(id=i, page_content=text, metadata=METADATA[i]) for i, text in TEXTS.items()]
    )
    return made


def index(**storage: Any) -> VectorStoreIndex:
    nodes = [
        TextNode(
            id_=i, text=text, metadata=METADATA[i], excluded_embed_metadata_keys=[*METADATA["d2"]]
        )
        for i, text in TEXTS.items()
    ]
    return VectorStoreIndex(nodes, embed_model=EncoderEmbedding(HashingEncoder()), **storage)


def collection() -> Any:
    made = new_collection(EphemeralClient())
    made.add(ids=[*TEXTS], documents=[*TEXTS.values()], metadatas=[*METADATA.values()])
    return made


def index_over_chroma() -> VectorStoreIndex:
    kept = ChromaVectorStore(chroma_collection=new_collection(EphemeralClient()))
    return index(storage_context=StorageContext.from_defaults(vector_store=kept))


def of_langchain(kind: Any) -> Any:
    made = [[*TEXTS.values()], EncoderEmbeddings(HashingEncoder()), [*METADATA.values()]]
    # Chroma's collections in memory outlive a test: each has a name of its own
    named = {"collection_name": f"asked-{uuid4().hex}"} if kind is Chroma else {}
    return kind.from_texts(*made, ids=[*TEXTS], **named)


def faiss() -> Any:
    found = pytest.importorskip("langchain_community.vectorstores")  # not with the oldest versions
    return of_langchain(found.FAISS)


def corpus() -> Corpus:
    tags = TagTable.from_tags((i, DocTags(source="human")) for i in TEXTS)
    return Corpus(texts=tuple(TEXTS.values()), tags=tags)


@pytest.mark.parametrize("make", [store, index, collection])
def test_a_store_is_asked_to_a_depth_and_its_documents_are_read(make: Any) -> None:
    made = make()
    assert len(list(as_search(made, depth=6)(QUERY))) == 6
    assert 0 < len(list(as_search(made)(QUERY))) <= 8
    hits = ApplicationSpec(made).build(corpus())._ask([Query(query_id="q", text=QUERY)], 8)[0]
    assert {hit.doc_id for hit in hits} == {*TEXTS}
    for hit in hits:
        assert isinstance(hit, Hit)
        assert hit.text == TEXTS[str(hit.doc_id)]
        assert hit.metadata["ref"] == hit.doc_id
    if make is not store:  # its plain search tells no scores
        scores = [hit.score for hit in hits]
        assert scores == sorted(scores, reverse=True)  # type: ignore[type-var]


@pytest.mark.parametrize(
    "make",
    [
        store, lambda: store().as_retriever(),
        lambda: store().as_retriever() | RunnableLambda(list),
        lambda: store().as_retriever().invoke, index, lambda: index().as_retriever(),
        lambda: index().as_retriever().retrieve, lambda: lambda query: BEST,
    ],
    ids=["store", "retriever", "chain", "method", "index", "li-retriever", "li-method", "function"],
)  # fmt: skip
def test_whatever_can_be_asked_gives_documents_whose_ids_can_be_read(make: Any) -> None:
    found = [id_of(item) for item in as_search(make())(QUERY)]
    assert found == BEST[: len(found)]
    assert len(found) >= 2


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


@pytest.mark.parametrize("obj", [3, "langchain", EncoderEmbeddings(HashingEncoder())])
def test_what_cannot_be_asked_is_told_what_can(obj: object) -> None:
    expected = r"cannot be asked; expected a func.*LangChain.*LlamaIndex"
    with pytest.raises(DataError, match=expected):
        as_search(obj)
    with pytest.raises(DataError, match="cannot be asked"):  # a store without texts
        ApplicationSpec(index().vector_store)


@pytest.mark.parametrize(
    "make",
    [
        store, lambda: store().as_retriever(), lambda: of_langchain(Chroma),
        faiss, index, index_over_chroma, collection,
    ],
    ids=["memory", "its retriever", "chroma", "faiss", "index", "index over chroma", "collection"],
)  # fmt: skip
def test_what_a_store_holds_is_what_was_put_in(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    made = make()
    if make is index_over_chroma:
        try:
            made.vector_store.get_nodes(None)
        except ValueError:
            pytest.skip("this llama-index-vector-stores-chroma cannot list what it holds")
    monkeypatch.setitem(sys.modules, "app", SimpleNamespace(store=made))
    found, name = corpus_of("app:app:store")
    assert name == "app:app:store"
    assert dict(found) == TEXTS
    told = {i: found.tags.get(i).source for i in TEXTS}
    assert [told[i] for i in list(TEXTS)[:4]] == ["human", "llm:a", None, None]


def test_what_does_not_tell_what_it_holds_is_refused() -> None:
    with pytest.raises(DataError, match="does not tell what it holds; give the collection"):
        corpus_of(index().vector_store)  # vectors alone


def test_tags_of_a_sidecar_go_with_the_documents(tmp_path: Path) -> None:
    open_tag_store(tmp_path / "tags.sqlite").put([("d1", DocTags(source="human"))])
    found, _ = corpus_of(TEXTS, tags=tmp_path / "tags.sqlite")
    assert dict(found.tags.counts()) == {"human": 1, "": 7}


def test_a_reordered_list_is_shown_as_it_is_whatever_its_scores() -> None:
    """The control: in a list that nothing reordered the scores stay."""
    for post in ([], [LongContextReorder()]):
        engine = index().as_query_engine(
            similarity_top_k=6, llm=MockLLM(), node_postprocessors=post
        )
        shown = [node.node_id for node in engine.retrieve(QueryBundle(QUERY))]
        run = ApplicationSpec(engine).build(corpus()).retrieve([Query(query_id="q", text=QUERY)], 8)
        assert run.ranked_list(0).doc_ids == tuple(shown)
        assert (run.scores is None) == bool(post)


def test_a_tool_gives_its_artifact_and_an_agent_is_refused() -> None:
    @tool(response_format="content_and_artifact")
    def look_up(query: str) -> Any:
        """Look it up."""
        found = store().similarity_search(query)
        return "\n".join(document.page_content for document in found), found

    assert [id_of(item) for item in as_search(look_up)(QUERY)] == BEST[:4]
    assert isinstance(as_search(tool(lambda query: "text", description="x"))(QUERY), str)
    graphs = pytest.importorskip("langgraph.graph")  # not with the oldest versions
    nodes = graphs.StateGraph(dict).add_node("n", lambda state: state)
    graph = nodes.add_edge(graphs.START, "n").compile()
    with pytest.raises(DataError, match="answers and returns no documents: pass the retriever"):
        as_search(graph)
