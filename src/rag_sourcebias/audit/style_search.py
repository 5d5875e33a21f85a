"""Encoders and BM25, asked the same things: similarity of versions, and search."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from rag_sourcebias.audit.style_corpora import StyleCorpora
from rag_sourcebias.errors import DataError
from rag_sourcebias.protocols import Encoder, Retriever
from rag_sourcebias.retrieval import BM25Spec, version_scores
from rag_sourcebias.retrieval.dense import DenseRetriever
from rag_sourcebias.retrieval.vectors import DocumentVectors, encode_corpus, query_vectors
from rag_sourcebias.types.arrays import FloatArray
from rag_sourcebias.types.documents import Query
from rag_sourcebias.types.rankings import Run

__all__ = ["BM25Search", "EncoderSearch", "StyleSearch"]

Stage = Callable[[str], None]
_QUERIES = 1_000  # whose vectors are copied together


class StyleSearch(Protocol):
    """One system of the audit over one set of corpora."""

    @property
    def name(self) -> str:
        """Name of the system."""
        ...

    @property
    def settings(self) -> Mapping[str, str]:
        """Settings a report must state."""
        ...

    @property
    def notes(self) -> Sequence[str]:
        """What must be said about the similarities."""
        ...

    def similarity(self) -> FloatArray:
        """Similarity of every query form to every version of its document, (n, q, d)."""
        ...

    def versions_run(self, form: str, depth: int) -> Run:
        """Search all versions and distractors with one query style."""
        ...

    def originals(self) -> Retriever:
        """Index the original documents and distractors."""
        ...


class _Remembered:
    """An encoder that encodes each query text once."""

    def __init__(self, encoder: Encoder, texts: Sequence[str]) -> None:
        self.name, self.encoder = encoder.name, encoder
        self.row_of = {text: row for row, text in enumerate(dict.fromkeys(texts))}
        self.vectors = np.asarray(encoder.encode_queries(list(self.row_of)), dtype=np.float32)

    @property
    def fingerprint(self) -> str:
        return self.encoder.fingerprint

    @property
    def settings(self) -> Mapping[str, str]:
        return self.encoder.settings

    def encode_queries(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        if len(self.vectors) != len(self.row_of):
            return self.vectors  # refused, with its shape, where it is used
        return self.vectors[[self.row_of[text] for text in texts]]

    def encode_documents(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        return self.encoder.encode_documents(texts)


class EncoderSearch:
    """Cosine similarity of vectors; every distinct text is encoded once."""

    def __init__(self, encoder: Encoder, corpora: StyleCorpora, on_stage: Stage) -> None:
        self.name, self.corpora = encoder.name, corpora
        self.notes: list[str] = []
        on_stage(f"{self.name}: encoding {len(set(corpora.versions.texts)):,} documents")
        self.settings = {**encoder.settings, "similarity": "cosine"}  # may load the model
        self.vectors = encode_corpus(encoder, corpora.versions, similarity="cosine")
        asked = [query.text for form in corpora.queries.values() for query in form]
        on_stage(f"{self.name}: encoding {len(set(asked)):,} queries")
        self.encoder = _Remembered(encoder, asked)

    def similarity(self) -> FloatArray:
        """Compare each query with the versions of its own document."""
        rows = self.vectors.row_of_doc[self.corpora.rows]
        encoded = np.stack([self._queries(form) for form in self.corpora.queries.values()], axis=1)
        size = self.vectors.distinct.shape[1]
        if encoded.shape[2] != size:
            raise DataError(
                f"encoder {self.name!r}: query vectors have {encoded.shape[2]} dimensions, "
                f"document vectors {size}; both sides must come from one model"
            )
        found = np.empty((len(rows), encoded.shape[1], rows.shape[1]))
        for start in range(0, len(rows), _QUERIES):
            part = slice(start, start + _QUERIES)
            own = self.vectors.distinct[rows[part]].transpose(0, 2, 1)
            found[part] = np.matmul(encoded[part], own)
        # Equal texts must tie exactly, and a product may round differently in each column.
        same = np.argmax(rows[:, :, None] == rows[:, None, :], axis=2)
        return np.take_along_axis(found, same[:, None, :], axis=2)

    def versions_run(self, form: str, depth: int) -> Run:
        """Search all versions."""
        return self._retriever(self.vectors).retrieve(self.corpora.queries[form], depth)

    def originals(self) -> Retriever:
        """Index the vectors at hand: nothing is encoded again."""
        kept = self.corpora.originals.doc_ids
        rows = self.vectors.row_of_doc[self.corpora.versions.tags.rows_for(kept)]
        distinct, row_of_doc = np.unique(rows, return_inverse=True)
        return self._retriever(
            DocumentVectors(
                doc_ids=kept,
                distinct=self.vectors.distinct[distinct],
                row_of_doc=row_of_doc.reshape(-1),
                similarity="cosine",
            )
        )

    def _queries(self, form: Sequence[Query]) -> npt.NDArray[np.float32]:
        return query_vectors(self.encoder, form, similarity="cosine")

    def _retriever(self, vectors: DocumentVectors) -> DenseRetriever:
        return DenseRetriever(name=self.name, encoder=self.encoder, vectors=vectors)


class BM25Search:
    """BM25 scores as a similarity ([W] W2)."""

    def __init__(self, spec: BM25Spec, corpora: StyleCorpora) -> None:
        self.name, self.spec, self.corpora = spec.name, spec, corpora
        self.settings = {**spec.settings, "similarity": "score, idf over all versions"}
        self.notes: list[str] = []

    def similarity(self) -> FloatArray:
        """Score the versions of each query's document."""
        texts, d = self.corpora.versions.texts, self.corpora.rows.shape[1]
        forms = self.corpora.queries.values()
        found = version_scores(
            self.spec,
            [[query.text for query in queries] for queries in zip(*forms, strict=True)],
            [[texts[row] for row in rows] for rows in self.corpora.rows.tolist()],
        )
        silent = int(np.count_nonzero(~found.any(axis=2)))
        if silent:
            self.notes.append(
                f"{silent} of {found.size // d} query versions share no word with any version of "
                "their document, which all tie"
            )
        return found

    def versions_run(self, form: str, depth: int) -> Run:
        """Search all versions."""
        retriever = self.spec.build(self.corpora.versions)
        return retriever.retrieve(self.corpora.queries[form], depth)

    def originals(self) -> Retriever:
        """Index the original documents."""
        return self.spec.build(self.corpora.originals)
