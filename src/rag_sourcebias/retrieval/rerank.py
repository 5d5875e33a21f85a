"""A second stage that rescores the best documents of a first stage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from rag_sourcebias.core.data import Corpus, Query, Run
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.core.protocols import Reranker, Retriever, RetrieverSpec
from rag_sourcebias.retrieval.search import require_depth


def rerank(
    run: Run,
    reranker: Reranker,
    corpus: Corpus,
    queries: Sequence[Query],
    *,
    depth: int = 100,
) -> Run:
    """Reorder the top ``depth`` documents of each query by a reranker.

    Documents below ``depth`` are dropped: their first-stage scores cannot be compared with the
    reranker's. Documents that the reranker scores equally keep the order of the first stage.
    Each distinct (query text, document text) pair is scored once, so exact copies tie.

    Parameters
    ----------
    run : Run
        First stage.
    reranker : Reranker
    corpus : Corpus
        Texts of every document among the top ``depth``.
    queries : sequence of Query
        Texts of every query of the run; others are ignored.
    depth : int
        At least 1.

    Returns
    -------
    Run
        Named ``"<first> > <reranker>"``, with the queries of ``run`` in their order.

    Raises
    ------
    DataError
        If a query or document of the run has no text, or a score is NaN (the message names query
        and document).
    """
    require_depth(depth)
    top = run.top(depth)
    query_texts = _query_texts(top, queries)
    texts = _document_texts(top, corpus)
    pairs = [
        (query_texts[query], texts[doc])
        for query, doc in zip(top.query_codes.tolist(), top.doc_codes.tolist(), strict=True)
    ]
    row_of: dict[tuple[str, str], int] = {}
    rows = [row_of.setdefault(pair, len(row_of)) for pair in pairs]
    distinct = np.asarray(reranker.score(list(row_of)), dtype=np.float32)
    if distinct.shape != (len(row_of),):
        raise DataError(
            f"reranker {reranker.name!r} returned shape {distinct.shape} for {len(row_of)} pairs; "
            f"expected ({len(row_of)},)"
        )
    scores = distinct[np.array(rows, dtype=np.int64)]
    bad = np.flatnonzero(np.isnan(scores))
    if len(bad):
        entry = bad[0]
        raise DataError(
            f"reranker {reranker.name!r} gave {len(bad)} NaN score(s), first for query "
            f"{top.query_ids[top.query_codes[entry]]!r}, document "
            f"{top.doc_ids[top.doc_codes[entry]]!r}; a score must be a number (empty texts and "
            "half precision are usual causes)"
        )
    return Run.from_arrays(
        query_ids=top.query_ids,
        query_codes=top.query_codes,
        doc_codes=top.doc_codes,
        doc_ids=top.doc_ids,
        scores=scores,
        name=_name(run.name, reranker.name),
        sort_by_score=True,
    )


@dataclass(slots=True, kw_only=True)
class _RerankedRetriever:
    name: str
    first: Retriever
    reranker: Reranker
    corpus: Corpus = field(repr=False)
    depth: int

    def retrieve(self, queries: Sequence[Query], depth: int) -> Run:
        """Return up to ``min(depth, reranked depth)`` documents for each query."""
        require_depth(depth)
        run = self.first.retrieve(queries, self.depth)
        return rerank(run, self.reranker, self.corpus, queries, depth=self.depth).top(depth)


class RerankedSpec:
    """Recipe of a first stage with a reranker on top.

    Parameters
    ----------
    first : RetrieverSpec
    reranker : Reranker
    depth : int
        Documents of the first stage that are rescored; the rest is dropped.
    """

    def __init__(self, first: RetrieverSpec, reranker: Reranker, *, depth: int = 100) -> None:
        require_depth(depth)
        self.first = first
        self.reranker = reranker
        self.depth = depth
        self.name = _name(first.name, reranker.name)

    @property
    def settings(self) -> Mapping[str, str]:
        """Settings a report must state, those of the reranker prefixed with ``rerank.``."""
        return rerank_settings(self.first.settings, self.reranker, depth=self.depth)

    def build(self, corpus: Corpus) -> Retriever:
        """Index a corpus with the first stage."""
        return _RerankedRetriever(
            name=self.name,
            first=self.first.build(corpus),
            reranker=self.reranker,
            corpus=corpus,
            depth=self.depth,
        )


def rerank_settings(
    first: Mapping[str, str], reranker: Reranker, *, depth: int
) -> Mapping[str, str]:
    """Settings of a first stage with a reranker on top, its own prefixed with ``rerank.``."""
    second = {f"rerank.{key}": value for key, value in reranker.settings.items()}
    return {**first, "rerank.depth": str(depth), **second}


def _name(first: str, second: str) -> str:
    return f"{first} > {second}"


def _query_texts(run: Run, queries: Sequence[Query]) -> list[str]:
    text_of = {query.query_id: query.text for query in queries}
    missing = [query_id for query_id in run.query_ids if query_id not in text_of]
    if missing:
        raise DataError(
            f"run {run.name!r} has {len(missing)} queries without a text, first {missing[0]!r}; "
            "pass a Query for each"
        )
    return [text_of[query_id] for query_id in run.query_ids]


def _document_texts(run: Run, corpus: Corpus) -> dict[int, str]:
    codes = np.unique(run.doc_codes).tolist()
    rows = corpus.tags.rows_for([run.doc_ids[code] for code in codes]).tolist()
    if -1 in rows:
        missing = run.doc_ids[codes[rows.index(-1)]]
        raise DataError(
            f"run {run.name!r} holds document {missing!r}, which the corpus does not have; "
            "rerank with the corpus that was searched"
        )
    return {code: corpus.texts[row] for code, row in zip(codes, rows, strict=True)}
