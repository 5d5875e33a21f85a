"""Exact search over the vectors of an encoder."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from rag_sourcebias.errors import DataError
from rag_sourcebias.protocols import Encoder, Retriever
from rag_sourcebias.retrieval.exact import Part, best_documents, best_run, parts_of
from rag_sourcebias.retrieval.topk import tie_order
from rag_sourcebias.retrieval.vectors import (
    DocumentVectors,
    Similarity,
    encode_corpus,
    query_vectors,
)
from rag_sourcebias.types.documents import Corpus, Query
from rag_sourcebias.types.rankings import Run

__all__ = ["DenseRetriever", "DenseSpec"]


@dataclass(slots=True, kw_only=True)
class DenseRetriever:
    """Exact search: every query is compared with every document, in float32."""

    name: str
    encoder: Encoder = field(repr=False)
    vectors: DocumentVectors = field(repr=False)

    def retrieve(self, queries: Sequence[Query], depth: int) -> Run:
        """Return the ``depth`` most similar documents of each query."""
        index = self.vectors
        encoded = query_vectors(self.encoder, queries, similarity=index.similarity)
        if len(encoded) and len(index.distinct) and encoded.shape[1] != index.distinct.shape[1]:
            raise DataError(
                f"{self.name}: query vectors have {encoded.shape[1]} dimensions, document "
                f"vectors {index.distinct.shape[1]}; both sides must come from one model"
            )
        found = best_documents(encoded, self._parts(), depth=depth)
        return best_run(
            found,
            query_ids=[query.query_id for query in queries],
            doc_ids=index.doc_ids,
            name=self.name,
        )

    def _parts(self) -> Iterator[Part]:
        index = self.vectors
        copies = len(index.distinct) < len(index.doc_ids)
        return parts_of(
            index.distinct,
            tie_order(len(index.doc_ids)),
            vector_of=index.row_of_doc if copies else None,
        )


class DenseSpec:
    """Recipe of an exact dense retriever.

    Parameters
    ----------
    encoder : Encoder
    name : str, optional
        Defaults to the name of the encoder.
    similarity : {"cosine", "dot"}
        Cosine normalises both sides; a vector of zeros is similar to nothing (0).
    progress : callable, optional
        Told ``(done, total)`` documents while a corpus is encoded.
    """

    def __init__(
        self,
        encoder: Encoder,
        *,
        name: str | None = None,
        similarity: Similarity = "cosine",
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        if similarity not in ("cosine", "dot"):
            raise DataError(f"similarity {similarity!r} is not one of cosine, dot")
        self.name = name or encoder.name
        self.encoder = encoder
        self.similarity: Similarity = similarity
        self.progress = progress

    @property
    def settings(self) -> Mapping[str, str]:
        """Settings a report must state."""
        return {**self.encoder.settings, "similarity": self.similarity, "search": "exact"}

    def build(self, corpus: Corpus) -> Retriever:
        """Encode a corpus."""
        vectors = encode_corpus(
            self.encoder, corpus, similarity=self.similarity, progress=self.progress
        )
        return DenseRetriever(name=self.name, encoder=self.encoder, vectors=vectors)
