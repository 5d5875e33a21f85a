"""Small LangChain retrievers and vector stores for tests; real ones, without a server."""

import uuid
from collections.abc import Sequence
from typing import Any

import faiss
import numpy as np
from hashing_encoder import HashingEncoder
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.vectorstores import VectorStore

from rag_sourcebias_integrations.langchain.embeddings import EncoderEmbeddings

TEXTS = ("the cat sat", "a cat and a dog", "the dog ran", "rain fell on the cat", "sun")


def documents() -> list[Document]:
    return [
        Document(
            id=f"d{i}",
            page_content=text,
            metadata={"source": f"{i}.txt", "rsb_source": "human" if i % 2 else "llm:x"},
        )
        for i, text in enumerate(TEXTS)
    ]


def embeddings() -> EncoderEmbeddings:
    return EncoderEmbeddings(HashingEncoder())


class FixedRetriever(BaseRetriever):
    """Always returns the documents it was given."""

    found: list[Document]

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return self.found

    async def _aget_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return self.found


class FaissStore(VectorStore):
    """A minimal store over a FAISS index; raw scores are squared distances."""

    def __init__(self, embedding: Any) -> None:
        self.embedding = embedding
        self.index: Any = None
        self.rows: list[Document] = []

    @property
    def embeddings(self) -> Any:
        return self.embedding

    def add_texts(self, texts: Any, metadatas: Any = None, *, ids: Any = None, **kw: Any) -> Any:
        texts = list(texts)
        vectors = np.array(self.embedding.embed_documents(texts), np.float32)
        if self.index is None:
            self.index = faiss.IndexFlatL2(vectors.shape[1])
        self.index.add(vectors)
        ids = ids or [str(uuid.uuid4()) for _ in texts]
        for doc_id, text, metadata in zip(ids, texts, metadatas or [{}] * len(texts), strict=True):
            self.rows.append(Document(id=doc_id, page_content=text, metadata=metadata))
        return ids

    def similarity_search_with_score(self, query: str, k: int = 4, **kw: Any) -> Any:
        vector = np.array([self.embedding.embed_query(query)], np.float32)
        distances, rows = self.index.search(vector, k)
        return [(self.rows[r], d) for r, d in zip(rows[0], distances[0], strict=True) if r >= 0]

    def similarity_search(self, query: str, k: int = 4, **kw: Any) -> list[Document]:
        return [document for document, _ in self.similarity_search_with_score(query, k, **kw)]

    def _select_relevance_score_fn(self) -> Any:
        return self._euclidean_relevance_score_fn

    @classmethod
    def from_texts(cls, texts: Any, embedding: Any, metadatas: Any = None, **kw: Any) -> Any:
        store = cls(embedding)
        store.add_texts(texts, metadatas, **kw)
        return store


def ids(found: Sequence[Document]) -> list[str]:
    return [document.id for document in found]
