"""Fit what makes an encoder indifferent to the source, from texts rather than vectors."""

from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import get_args

import numpy as np

from rag_sourcebias.core.data import Dataset, Float32Array, FloatArray, IntArray
from rag_sourcebias.core.errors import InsufficientDataError, require_at_least, require_one_of
from rag_sourcebias.core.protocols import Encoder
from rag_sourcebias.core.tags import TwinTexts, chosen_sources, training_pairs
from rag_sourcebias.debias.parity import ParityCalibration, ScoredTwins, fit_parity
from rag_sourcebias.debias.projection import fit_projection
from rag_sourcebias.retrieval.cache import Similarity, checked_vectors, query_vectors
from rag_sourcebias.retrieval.projection import ProjectionMethod, SourceProjection

# Scores of both versions of relevant pairs, from an encoder.


_ROWS = 8192  # (query, pair) rows whose vectors are gathered at once
_BLOCK_BYTES = 1 << 26  # of scores of queries with a whole corpus


def score_twins(
    dataset: Dataset,
    encoder: Encoder,
    *,
    sources: Sequence[str] | None = None,
    baseline: str = "human",
    similarity: Similarity = "cosine",
    depth: int = 100,
    exclude: Collection[str] = (),
) -> tuple[list[ScoredTwins], list[ScoredTwins]]:
    """Score both versions of relevant pairs for their queries, without running a retriever.

    Parameters are those of :func:`~rag_sourcebias.debias.fit_parity_calibration`.

    Returns
    -------
    near, every : list of ScoredTwins
        One item per source each: pairs within ``depth``, and all relevant ones.
    """
    require_one_of("similarity", similarity, get_args(Similarity))
    require_at_least(1, depth=depth)
    pairs = [
        training_pairs(dataset, source=name, baseline=baseline, exclude=exclude)
        for name in chosen_sources(dataset.corpus.tags, sources, baseline)
    ]
    corpus = dataset.corpus
    documents = checked_vectors(
        encoder.encode_documents(corpus.texts),
        what=f"encoder {encoder.name!r}, documents",
        names=corpus.doc_ids,
        similarity=similarity,
    )
    asked = {query_id for of_source in pairs for query_id in of_source.query_ids}
    queries = [query for query in dataset.queries if query.query_id in asked]
    encoded = query_vectors(encoder, queries, similarity=similarity)
    reach = _reach(encoded, documents, depth)
    row_of = {query.query_id: row for row, query in enumerate(queries)}
    near, every = [], []
    for of_source in pairs:
        rows = np.array([row_of[query_id] for query_id in of_source.query_ids], dtype=np.int64)
        ours, theirs = (
            _products(encoded, rows, documents, corpus.tags.rows_for(version)[of_source.rows])
            for version in (of_source.twins.baseline_ids, of_source.twins.source_ids)
        )
        every.append(
            ScoredTwins(
                source=of_source.twins.source,
                baseline_scores=ours,
                source_scores=theirs,
                queries=rows,
            )
        )
        near.append(_within(every[-1], reach))
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


def _reach(queries: Float32Array, documents: Float32Array, depth: int) -> FloatArray:
    """Score of the last of the first ``depth`` documents of each query; shape (queries,)."""
    n = len(documents)
    last = np.full(len(queries), -np.inf)
    step = max(1, _BLOCK_BYTES // (4 * n))
    if depth >= n:
        return last
    for start in range(0, len(queries), step):
        scores = queries[start : start + step] @ documents.T
        last[start : start + step] = np.partition(scores, n - depth, axis=1)[:, n - depth]
    return last


def _products(
    queries: Float32Array, query_rows: IntArray, documents: Float32Array, document_rows: IntArray
) -> FloatArray:
    """Product of each query with its document, shape (m,), in blocks to bound memory."""
    found = np.empty(len(query_rows))
    for start in range(0, len(found), _ROWS):
        part = slice(start, start + _ROWS)
        found[part] = np.einsum(
            "ij,ij->i", queries[query_rows[part]], documents[document_rows[part]]
        )
    return found


# Fit what makes an encoder indifferent to the source, from texts rather than vectors.
# ``projection = fit_source_projection(twin_texts(corpus, qrels=qrels), encoder)`` and
# ``calibration = fit_parity_calibration(dataset, encoder)``.


def fit_source_projection(
    twins: TwinTexts,
    encoder: Encoder,
    *,
    method: ProjectionMethod = "pca",
    n_directions: int = 4,
    strength: float = 1.0,
) -> SourceProjection:
    """Estimate from texts which directions of an encoder tell the source.

    Parameters
    ----------
    twins : TwinTexts
    encoder : Encoder
        May be cached.
    n_directions : int
        Of ``"pca"``; ``"mean"`` has one.
    method, strength
        As in :func:`~rag_sourcebias.debias.projection.fit_projection`.

    Raises
    ------
    DataError, InsufficientDataError
        As there.

    Notes
    -----
    Relative Δ@5 of all-MiniLM-L6-v2 fitted on ``nfcorpus`` train pairs at strength 1, none / mean /
    pca of 2, 4 and 8: dev −11.7 / −7.0 / −2.9, −1.6, −1.0 (±9; nearly all its documents occur in
    train); documents not fitted on, mean of two folds, −8.1 / −4.2 / −2.2, −2.5, −3.0 (±3.5 each),
    with human-only NDCG@10 +0.4 / +0.8, +0.6, +1.1 %. Neither transfers to ``nq-utd`` (−13.7
    becomes −11.6 to −19.9): fit on the corpus that is searched.
    """
    return fit_projection(
        encoder.encode_documents(twins.baseline_texts),
        encoder.encode_documents(twins.source_texts),
        method=method,
        n_directions=n_directions if method == "pca" else 1,
        strength=strength,
        encoder=encoder.fingerprint,
    )


def fit_parity_calibration(
    dataset: Dataset,
    encoder: Encoder,
    *,
    sources: Sequence[str] | None = None,
    baseline: str = "human",
    similarity: Similarity = "cosine",
    depth: int = 100,
    exclude: Collection[str] = (),
) -> ParityCalibration:
    """Fit by how much an encoder scores the versions of one source higher than the baseline's.

    Parameters
    ----------
    sources : sequence of str, optional
        All that have pairs with the baseline by default.
    similarity : {"cosine", "dot"}
        Of the retriever whose scores will be calibrated.
    depth : int
        Only pairs whose mean score would be among the first ``depth`` documents of their query:
        what retrieval never shows need not be calibrated. Where they are too few, all relevant
        pairs are taken; ``n_pairs`` tells.
    exclude : collection of str
        Pair ids to leave out, such as those that results are reported on.

    Raises
    ------
    MissingTagsError, DataError
        If there are no pairs to fit on: see :func:`training_pairs`.
    InsufficientDataError
        If they are too few: see :func:`~rag_sourcebias.debias.parity.fit_parity`.

    Notes
    -----
    Selecting pairs of which a version scores high would exaggerate the gap, as the favoured one
    passes more often; the mean of both scores favours neither. On ``nfcorpus`` pairs within reach
    have a larger gap (.0034) than all relevant ones (.0027), most of which (about 40 per query)
    rank far below what is shown. Relative Δ@5 with all-MiniLM-L6-v2, uncorrected / all pairs /
    within the first 100: ``nfcorpus`` train queries −10.5 / −2.6 / −0.5 (±3.3), dev −11.7 / −2.3 /
    +0.6 (±9), documents not fitted on (mean of two folds) −8.1 / −1.0 / +0.9 (±3.5 each),
    ``nq-utd`` with the fit of ``nfcorpus`` −13.7 / −7.2 / −5.3 (±15). The default was chosen with
    these figures in view: those of dev and ``nq-utd`` are no untouched test. Another language model
    may have a gap of the other sign: the same fit takes ``crowdrag-rewrites`` from +14.2 to +16.7.
    """
    near, every = score_twins(
        dataset,
        encoder,
        sources=sources,
        baseline=baseline,
        similarity=similarity,
        depth=depth,
        exclude=exclude,
    )
    fit = partial(fit_parity, encoder=encoder.fingerprint, baseline=baseline)
    with suppress(InsufficientDataError):
        return fit(near)
    return fit(every)
