"""Reranking of a first stage ([K] Table 6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from rag_sourcebias.errors import DataError
from rag_sourcebias.protocols import Reranker, Retriever, RetrieverSpec
from rag_sourcebias.types.documents import Corpus, Query
from rag_sourcebias.types.rankings import Run

__all__ = ["RerankedSpec", "rerank"]


def rerank(
    run: Run, reranker: Reranker, corpus: Corpus, queries: Sequence[Query], *, depth: int = 100
) -> Run:
    """Order the top ``depth`` documents of each query by a reranker.

    Documents below ``depth`` are dropped: their scores would not be comparable.

    Raises
    ------
    DataError
        If a query or document of the run is unknown, or the reranker gives NaN.
    """
    top = run.top(depth)
    text_of = {query.query_id: query.text for query in queries}
    rows = corpus.tags.rows_for(top.doc_ids)
    used = np.unique(top.doc_codes)
    if len(used) and rows[used].min() < 0:
        unknown = top.doc_ids[used[np.argmin(rows[used])]]
        raise DataError(f"run {run.name!r}: document {unknown!r} is not in the corpus")
    for query_id in top.query_ids:
        if query_id not in text_of:
            raise DataError(f"run {run.name!r}: query {query_id!r} has no text")
    pairs = [
        (text_of[top.query_ids[query]], corpus.texts[rows[doc]])
        for query, doc in zip(top.query_codes, top.doc_codes, strict=True)
    ]
    scores = reranker.score(pairs)
    bad = np.flatnonzero(np.isnan(scores))
    if len(bad):
        raise DataError(
            f"reranker {reranker.name!r} gave NaN for {len(bad)} pair(s), first query "
            f"{top.query_ids[top.query_codes[bad[0]]]!r}, document "
            f"{top.doc_ids[top.doc_codes[bad[0]]]!r}"
        )
    return Run.from_arrays(
        query_ids=top.query_ids,
        query_codes=top.query_codes,
        doc_codes=top.doc_codes,
        doc_ids=top.doc_ids,
        scores=scores,
        name=f"{run.name} > {reranker.name}",
        sort_by_score=True,
    )


class RerankedSpec:
    """A first stage with a reranker on top.

    Parameters
    ----------
    depth : int
        Documents of the first stage that are reranked.
    """

    def __init__(self, first: RetrieverSpec, reranker: Reranker, *, depth: int = 100) -> None:
        if depth < 1:
            raise DataError(f"rerank depth must be at least 1, got {depth}")
        self.name = f"{first.name} > {reranker.name}"
        self._first = first
        self._reranker = reranker
        self._depth = depth

    @property
    def settings(self) -> Mapping[str, str]:
        """Settings a report must state."""
        first = {f"first stage {key}": value for key, value in self._first.settings.items()}
        return {**self._reranker.settings, "rerank depth": str(self._depth), **first}

    def build(self, corpus: Corpus) -> _Reranked:
        """Index a corpus with the first stage."""
        return _Reranked(self.name, self._first.build(corpus), self._reranker, corpus, self._depth)


class _Reranked:
    def __init__(
        self, name: str, first: Retriever, reranker: Reranker, corpus: Corpus, depth: int
    ) -> None:
        self.name = name
        self._first = first
        self._reranker = reranker
        self._corpus = corpus
        self._depth = depth

    def retrieve(self, queries: Sequence[Query], depth: int) -> Run:
        """Return the reranked top of the first stage, at most ``depth`` documents."""
        run = self._first.retrieve(queries, self._depth)
        return rerank(run, self._reranker, self._corpus, queries, depth=self._depth).top(depth)
