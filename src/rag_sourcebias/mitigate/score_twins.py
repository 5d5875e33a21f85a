"""Scores of both versions of relevant pairs, from an encoder."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError
from rag_sourcebias.mitigate.parity_fit import ScoredTwins
from rag_sourcebias.mitigate.twin_rows import paired_sources
from rag_sourcebias.mitigate.twin_texts import TrainingPairs, training_pairs
from rag_sourcebias.protocols import Encoder
from rag_sourcebias.types.arrays import FloatArray, IntArray
from rag_sourcebias.types.dataset import Dataset
from rag_sourcebias.types.documents import Corpus

__all__ = ["Similarity", "score_twins"]

Similarity = Literal["cosine", "dot"]
Vectors = npt.NDArray[np.float32]
_ROWS = 8192  # (query, pair) rows whose vectors are gathered at once
_BLOCK_BYTES = 1 << 26  # of scores of queries with a whole corpus


def score_twins(
    dataset: Dataset,
    encoder: Encoder,
    *,
    sources: Sequence[str] | None = None,
    baseline: str = "human",
    similarity: Similarity = "cosine",
    depth: int | None = 100,
    exclude: Collection[str] = (),
) -> tuple[list[ScoredTwins], list[ScoredTwins]]:
    """Score both versions of relevant pairs for their queries, without running a retriever.

    Parameters are those of :func:`~rag_sourcebias.mitigate.fit.fit_parity_calibration`.

    Returns
    -------
    near, every : list of ScoredTwins
        One item per source each: pairs within ``depth``, and all relevant ones.
    """
    if depth is not None and depth < 1:
        raise DataError(f"depth is {depth}; at least 1, or None for all relevant pairs")
    if similarity not in ("cosine", "dot"):
        raise DataError(f"similarity {similarity!r} is not one of cosine, dot")
    names = tuple(sources or paired_sources(dataset.corpus.tags, baseline=baseline))
    pairs = [
        training_pairs(dataset, source=name, baseline=baseline, exclude=exclude)
        for name in names or (None,)  # without pairs, this says what is missing
    ]
    corpus = dataset.corpus if depth is not None else _only(dataset.corpus, pairs)
    documents = _checked(encoder.encode_documents(corpus.texts), corpus.doc_ids, similarity)
    asked = {query_id for of_source in pairs for query_id in of_source.query_ids}
    queries = [query for query in dataset.queries if query.query_id in asked]
    ids = [query.query_id for query in queries]
    encoded = _checked(encoder.encode_queries([q.text for q in queries]), ids, similarity)
    reach = None if depth is None else _reach(encoded, documents, depth)
    row_of = {query_id: row for row, query_id in enumerate(ids)}
    near, every = [], []
    for of_source in pairs:
        rows = np.array([row_of[query_id] for query_id in of_source.query_ids], dtype=np.int64)
        ours, theirs = (
            _products(encoded, rows, documents, corpus.tags.rows_for(version)[of_source.rows])
            for version in (of_source.twins.baseline_ids, of_source.twins.source_ids)
        )
        source = of_source.twins.source
        every.append(
            ScoredTwins(source=source, baseline_scores=ours, source_scores=theirs, queries=rows)
        )
        near.append(every[-1] if reach is None else _within(every[-1], reach))
    return near, every


def _within(twins: ScoredTwins, reach: FloatArray) -> ScoredTwins:
    """Keep pairs whose mean score is at least that of their query."""
    kept = (twins.baseline_scores + twins.source_scores) / 2 >= reach[twins.queries]
    return replace(
        twins,
        baseline_scores=twins.baseline_scores[kept],
        source_scores=twins.source_scores[kept],
        queries=twins.queries[kept],
    )


def _only(corpus: Corpus, pairs: Sequence[TrainingPairs]) -> Corpus:
    """Return the documents of the pairs."""
    ids = [(p.twins.baseline_ids, p.twins.source_ids) for p in pairs]
    wanted = dict.fromkeys(doc_id for both in ids for side in both for doc_id in side)
    return corpus.take(corpus.tags.rows_for(tuple(wanted)))


def _checked(vectors: Vectors, names: Sequence[str], similarity: Similarity) -> Vectors:
    """Vectors as the similarity needs them, one per name."""
    if vectors.ndim != 2 or len(vectors) != len(names):
        raise DataError(
            f"the encoder returned shape {vectors.shape} for {len(names)} texts; expected "
            f"({len(names)}, dimension)"
        )
    bad = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if len(bad):
        raise DataError(
            f"{len(bad)} vector(s) hold NaN or infinity, first for {names[bad[0]]!r}; a vector "
            "must be finite"
        )
    if similarity == "dot":
        return vectors
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1), dtype=np.float32)


def _reach(queries: Vectors, documents: Vectors, depth: int) -> FloatArray:
    """Score of the last of the first ``depth`` documents of each query; shape (queries,)."""
    n = len(documents)
    last = np.full(len(queries), -np.inf)
    step = max(1, _BLOCK_BYTES // (4 * n))
    for start in range(0, len(queries) if depth < n else 0, step):
        scores = queries[start : start + step] @ documents.T
        last[start : start + step] = np.partition(scores, n - depth, axis=1)[:, n - depth]
    return last


def _products(
    queries: Vectors, query_rows: IntArray, documents: Vectors, document_rows: IntArray
) -> FloatArray:
    """Product of each query with its document, shape (m,), in blocks to bound memory."""
    found = np.empty(len(query_rows))
    for start in range(0, len(found), _ROWS):
        part = slice(start, start + _ROWS)
        found[part] = np.einsum(
            "ij,ij->i", queries[query_rows[part]], documents[document_rows[part]]
        )
    return found
