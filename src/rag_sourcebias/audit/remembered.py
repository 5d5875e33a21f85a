"""Systems that encode, index and retrieve once, for searches that try many variants of one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from rag_sourcebias.protocols import Encoder, Retriever, RetrieverSpec
from rag_sourcebias.types.arrays import Float32Array
from rag_sourcebias.types.documents import Corpus, Query
from rag_sourcebias.types.rankings import Run

__all__ = ["RememberedEncoder", "RememberedSpec"]


class RememberedEncoder:
    """An encoder that encodes every text once and keeps its vectors in memory.

    Parameters
    ----------
    encoder : Encoder
    """

    def __init__(self, encoder: Encoder) -> None:
        self.name = encoder.name
        self._encoder = encoder
        self._queries: dict[str, Float32Array] = {}
        self._documents: dict[str, Float32Array] = {}

    @property
    def fingerprint(self) -> str:
        """Fingerprint of the encoder."""
        return self._encoder.fingerprint

    @property
    def settings(self) -> Mapping[str, str]:
        """Settings of the encoder."""
        return self._encoder.settings

    def encode_queries(self, texts: Sequence[str]) -> Float32Array:
        """Encode the query side, what is new of it."""
        return _remembered(self._queries, self._encoder.encode_queries, texts)

    def encode_documents(self, texts: Sequence[str]) -> Float32Array:
        """Encode the document side, what is new of it."""
        return _remembered(self._documents, self._encoder.encode_documents, texts)


def _remembered(
    known: dict[str, Float32Array],
    encode: Callable[[Sequence[str]], Float32Array],
    texts: Sequence[str],
) -> Float32Array:
    missing = [text for text in dict.fromkeys(texts) if text not in known]
    if missing or not texts:
        vectors = encode(missing)
        if not texts:
            return vectors
        known.update(zip(missing, vectors, strict=True))
    return np.stack([known[text] for text in texts])


class RememberedSpec:
    """A recipe that indexes a corpus once, and retrieves once for the same queries.

    Parameters
    ----------
    spec : RetrieverSpec
    """

    def __init__(self, spec: RetrieverSpec) -> None:
        self.name = spec.name
        self._spec = spec
        # What a calibration is checked against.
        self.encoder = getattr(spec, "encoder", None)
        self.reranker = getattr(spec, "reranker", None)
        self._built: dict[tuple[tuple[str, ...], tuple[str, ...]], Retriever] = {}

    @property
    def settings(self) -> Mapping[str, str]:
        """Settings of the recipe."""
        return self._spec.settings

    def build(self, corpus: Corpus) -> Retriever:
        """Return the one retriever over a corpus."""
        key = corpus.doc_ids, corpus.texts
        if key not in self._built:
            self._built[key] = _RememberedRetriever(self._spec.build(corpus))
        return self._built[key]


class _RememberedRetriever:
    def __init__(self, retriever: Retriever) -> None:
        self.name = retriever.name
        self._retriever = retriever
        self._runs: dict[tuple[tuple[Query, ...], int], Run] = {}

    def retrieve(self, queries: Sequence[Query], depth: int) -> Run:
        key = tuple(queries), depth
        if key not in self._runs:
            self._runs[key] = self._retriever.retrieve(queries, depth)
        return self._runs[key]
