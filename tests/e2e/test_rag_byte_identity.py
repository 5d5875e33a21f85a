"""Tagging and observing change no byte of what a real encoder and an LLM's server are sent."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from model_server import LocalServer, chat_reply, serving

pytest.importorskip("langchain_chroma")
pytest.importorskip("llama_index.core")
pytest.importorskip("sentence_transformers")

from rag_sourcebias.intake.samples import load_sample
from rag_sourcebias.llm.openai import OpenAICompleter
from rag_sourcebias.neural.loading import SentenceEncoder
from rag_sourcebias.observe.observers import CollectingObserver
from rag_sourcebias.observe.recorder import instrument
from rag_sourcebias.tagging.rules import IdTagger

pytestmark = [pytest.mark.server, pytest.mark.frameworks]

N_DOCUMENTS, K = 6, 2
SAMPLE = load_sample()
PAIRS = [
    (doc_id, text[:400])
    for doc_id, text in zip(SAMPLE.corpus.doc_ids, SAMPLE.corpus.texts, strict=True)
][:N_DOCUMENTS]
QUESTIONS = [query.text for query in SAMPLE.queries[:2]]
Answers = list[str]
App = Callable[["Recording", Callable[[str], str], bool, CollectingObserver], Answers]


class Recording:
    """A real encoder that keeps what it was sent."""

    def __init__(self, encoder: SentenceEncoder) -> None:
        self.encoder = encoder
        self.name = encoder.name
        self.sent: list[tuple[str, str]] = []

    @property
    def fingerprint(self) -> str:
        return self.encoder.fingerprint

    @property
    def settings(self) -> Any:
        return self.encoder.settings

    def encode_queries(self, texts: Sequence[str]) -> np.ndarray:
        self.sent += [("query", text) for text in texts]
        return self.encoder.encode_queries(texts)

    def encode_documents(self, texts: Sequence[str]) -> np.ndarray:
        self.sent += [("document", text) for text in texts]
        return self.encoder.encode_documents(texts)


@pytest.fixture(scope="module")
def encoder() -> SentenceEncoder:
    return SentenceEncoder("all-MiniLM-L6-v2")


@pytest.fixture(scope="module")
def endpoint() -> Iterator[LocalServer]:
    """An OpenAI-compatible server that answers with the length of what it was sent."""

    def answer(path: str, body: dict, seen: int):
        return chat_reply(str(len(body["messages"][0]["content"])))

    with serving(answer) as server:
        yield server


def langchain_app(encoder: Recording, llm: Callable[[str], str], tagged: bool, observer) -> Answers:
    from langchain_chroma import Chroma
    from langchain_core.documents import Document
    from langchain_core.prompts import PromptTemplate
    from langchain_core.runnables import RunnableLambda, RunnablePassthrough

    from rag_sourcebias_integrations.langchain.embeddings import EncoderEmbeddings
    from rag_sourcebias_integrations.langchain.vectorstore import SourceTagger

    documents = [
        Document(id=doc_id, page_content=text, metadata={"source": f"/{number}.txt"})
        for number, (doc_id, text) in enumerate(PAIRS)
    ]
    if tagged:
        documents = list(SourceTagger([IdTagger()]).transform_documents(documents))
        assert documents[0].metadata["rsb_source"] == "human"
    store = Chroma(f"identity-{tagged}", embedding_function=EncoderEmbeddings(encoder))
    store.add_documents(documents)
    retriever = store.as_retriever(search_kwargs={"k": K})
    prompt = PromptTemplate.from_template("{passages}\n\nQuestion: {question}\nAnswer:")
    chain = (
        {
            "passages": retriever | (lambda found: "\n".join(d.page_content for d in found)),
            "question": RunnablePassthrough(),
        }
        | prompt
        | RunnableLambda(lambda value: llm(value.to_string()))
    )
    if not tagged:
        return [chain.invoke(question) for question in QUESTIONS]
    with instrument("langchain", observer):
        return [chain.invoke(question) for question in QUESTIONS]


def llama_index_app(
    encoder: Recording, llm: Callable[[str], str], tagged: bool, observer
) -> Answers:
    import chromadb
    from llama_index.core import StorageContext, VectorStoreIndex
    from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata
    from llama_index.core.schema import TextNode
    from llama_index.vector_stores.chroma import ChromaVectorStore

    from rag_sourcebias_integrations.llama_index.embeddings import EncoderEmbedding
    from rag_sourcebias_integrations.llama_index.tagging import SourceTagger

    class Endpoint(CustomLLM):
        @property
        def metadata(self) -> LLMMetadata:
            return LLMMetadata(model_name="endpoint")

        def complete(self, prompt: str, *_: Any, **__: Any) -> CompletionResponse:
            return CompletionResponse(text=llm(prompt))

        def stream_complete(self, prompt: str, *_: Any, **__: Any) -> Any:
            yield self.complete(prompt)

    nodes = [
        TextNode(id_=doc_id, text=text, metadata={"file_name": f"{number}.txt"})
        for number, (doc_id, text) in enumerate(PAIRS)
    ]
    if tagged:
        nodes = SourceTagger([IdTagger()])(nodes)
        assert nodes[0].metadata["rsb_source"] == "human"
    collection = chromadb.EphemeralClient().create_collection(f"identity-nodes-{tagged}")
    storage = StorageContext.from_defaults(
        vector_store=ChromaVectorStore(chroma_collection=collection)
    )
    index = VectorStoreIndex(nodes, storage_context=storage, embed_model=EncoderEmbedding(encoder))
    engine = index.as_query_engine(llm=Endpoint(), similarity_top_k=K)
    if not tagged:
        return [str(engine.query(question)) for question in QUESTIONS]
    with instrument("llama-index", observer):
        return [str(engine.query(question)) for question in QUESTIONS]


@pytest.mark.parametrize("app", [langchain_app, llama_index_app])
def test_encoder_and_llm_are_sent_the_same_bytes(
    app: App, encoder: SentenceEncoder, endpoint: LocalServer
) -> None:
    client = OpenAICompleter("smollm2", base_url=endpoint.url, api_key="none", timeout=120.0)
    observer = CollectingObserver()
    runs = []
    for tagged in (False, True):
        endpoint.prompts.clear()
        recording = Recording(encoder)
        prompts: list[str] = []

        def llm(prompt: str, prompts: list[str] = prompts) -> str:
            prompts.append(prompt)
            return client.complete(prompt, max_tokens=2, temperature=0.0, seed=0).text

        answers = app(recording, llm, tagged, observer)
        # What the server received, not only what we meant to send.
        assert dict(endpoint.prompts) == dict.fromkeys(prompts, 1)
        runs.append((recording.sent, prompts, answers))
    plain, with_tags = runs
    assert with_tags == plain
    assert len(plain[1]) == len(QUESTIONS)
    assert all(question in prompt for question, prompt in zip(QUESTIONS, plain[1], strict=True))
    assert not any("rsb_" in prompt or "llm:" in prompt for prompt in with_tags[1])
    asked = [event for event in observer.events if event.earlier is None]
    assert [len(event.ranked) for event in asked] == [K] * len(QUESTIONS)
    assert {tags.source for event in observer.events for tags in event.tags} <= {
        "human",
        "llm:claude",
    }
