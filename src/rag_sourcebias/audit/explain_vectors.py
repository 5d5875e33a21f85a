"""What the vectors of drawn pairs show: distances, spectra, geometry, a map."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from rag_sourcebias.audit.explain_pairs import DrawnPairs
from rag_sourcebias.protocols import Encoder
from rag_sourcebias.retrieval.vectors import encode_corpus, query_vectors
from rag_sourcebias.types.arrays import FloatArray, IntArray
from rag_sourcebias.types.dataset import Dataset
from rag_sourcebias.types.documents import Corpus

__all__ = ["EncodedPairs", "encode_pairs", "unit"]

Vectors = npt.NDArray[np.float32]
Similarity = Literal["cosine", "dot"]
_ROWS = 8192  # rows whose vectors are gathered at once


@dataclass(frozen=True, kw_only=True, eq=False)
class EncodedPairs:
    """Vectors of every document that some source's draw holds, and of the judged queries.

    Parameters
    ----------
    vectors : float32 array of shape (n, dimension)
        As the encoder returned them.
    row_of : int64 array of shape (documents of the corpus,)
        Row of ``vectors``; -1 for documents that were not encoded.
    queries : float32 array of shape (queries, dimension)
        Rows of queries without a drawn pair are 0.
    similarity : {"cosine", "dot"}
        How the encoder compares: cosine, unless its settings say ``similarity: dot``.
    """

    vectors: Vectors = field(repr=False)
    row_of: IntArray = field(repr=False)
    queries: Vectors = field(repr=False)
    similarity: Similarity

    def sides(self, pairs: DrawnPairs) -> tuple[Vectors, Vectors]:
        """Vectors of both versions, shape (n, dimension) each."""
        human, other = (self.vectors[self.row_of[rows]] for rows in (pairs.human, pairs.other))
        return human, other

    def compared(self, pairs: DrawnPairs) -> tuple[Vectors, Vectors]:
        """Vectors as the similarity takes them: of length 1 for the cosine."""
        human, other = self.sides(pairs)
        return (unit(human), unit(other)) if self.similarity == "cosine" else (human, other)

    def score_gaps(self, pairs: DrawnPairs) -> FloatArray:
        """Score of the other version minus that of the human one, per relevant (query, pair)."""
        queries, at = pairs.judged
        human, other = self.compared(pairs)
        found = np.empty(len(at))
        for start in range(0, len(at), _ROWS):
            part = slice(start, start + _ROWS)
            apart = other[at[part]].astype(np.float64) - human[at[part]]
            found[part] = np.einsum("ij,ij->i", self.queries[queries[part]], apart)
        return found


def encode_pairs(
    dataset: Dataset,
    encoder: Encoder,
    draws: Sequence[DrawnPairs],
    *,
    on_progress: Callable[[int, int], None] | None = None,
) -> EncodedPairs:
    """Encode the documents of all draws, each text once, and their judged queries.

    Raises
    ------
    DataError
        If the encoder returns an array of another shape, or a number that is not finite.
    """
    rows = np.unique(np.concatenate([part for draw in draws for part in (draw.human, draw.other)]))
    part: Corpus = dataset.corpus.take(rows)
    documents = encode_corpus(encoder, part, similarity="dot", progress=on_progress)
    row_of = np.full(len(dataset.corpus), -1)
    row_of[rows] = documents.row_of_doc
    similarity: Similarity = "dot" if encoder.settings.get("similarity") == "dot" else "cosine"
    asked = np.unique(np.concatenate([draw.judged[0] for draw in draws]))
    queries = np.zeros((len(dataset.queries), documents.distinct.shape[1]), np.float32)
    if len(asked):
        wanted = [dataset.queries[row] for row in asked.tolist()]
        queries[asked] = query_vectors(encoder, wanted, similarity=similarity)
    return EncodedPairs(
        vectors=documents.distinct, row_of=row_of, queries=queries, similarity=similarity
    )


def unit(vectors: Vectors) -> Vectors:
    """Scale rows to length 1; a row of zeros stays."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1.0), dtype=np.float32)
