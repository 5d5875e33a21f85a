"""BM25 as a similarity between a query and the versions of one document ([W] W2)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rag_sourcebias.errors import DataError
from rag_sourcebias.retrieval.bm25_index import BM25Retriever
from rag_sourcebias.retrieval.lexical import BM25Spec
from rag_sourcebias.types.arrays import FloatArray, IntArray
from rag_sourcebias.types.documents import Corpus, DocTags, TagTable

__all__ = ["version_scores"]

_LOOKUPS = 2_000_000  # (query word, version) pairs looked up at once


def version_scores(
    spec: BM25Spec,
    queries: Sequence[Sequence[str]],
    versions: Sequence[Sequence[str]],
) -> FloatArray:
    """Score every form of each query against every version of its own document.

    Document frequencies and the mean length come from the collection of all versions, each
    distinct text once: as when an index holds all styles.

    Parameters
    ----------
    spec : BM25Spec
    queries : sequence of length n of sequences of length q
        The forms of each query.
    versions : sequence of length n of sequences of length d
        The versions of each query's document.

    Returns
    -------
    float64 array of shape (n, q, d)
        At least 0; 0 where query and version share no word. Equal texts score exactly alike.

    Raises
    ------
    DataError
        If rows differ in number or length, or no text has a word left to index.
    MissingExtraError
        If bm25s or PyStemmer is not installed.

    Notes
    -----
    Only the versions asked for are scored: the cost grows with the words of the queries times d,
    not with the size of the collection.
    """
    n, q, d = len(queries), _width(queries, "queries"), _width(versions, "versions")
    if len(versions) != n:
        raise DataError(f"{n} queries but versions of {len(versions)} documents; need as many")
    row_of: dict[str, int] = {}
    rows = [[row_of.setdefault(text, len(row_of)) for text in texts] for texts in versions]
    tags = TagTable.from_tags((str(row), DocTags()) for row in range(len(row_of)))
    retriever = spec.build(Corpus(texts=tuple(row_of), tags=tags))
    flat = [text for forms in queries for text in forms]
    wanted = np.repeat(np.array(rows, dtype=np.int64).reshape(n, d), q, axis=0)
    return _pair_scores(retriever, flat, wanted).reshape(n, q, d)


def _width(rows: Sequence[Sequence[str]], what: str) -> int:
    sizes = {len(row) for row in rows}
    if len(sizes) != 1:
        raise DataError(
            f"{what} have {sorted(sizes)} texts per row; every row must have as many, and there "
            "must be at least one row"
        )
    return sizes.pop()


def _pair_scores(retriever: BM25Retriever, queries: Sequence[str], docs: IntArray) -> FloatArray:
    """Score query i against the documents in row i of ``docs``; shape of ``docs``."""
    words = retriever.word_codes(queries)
    word = np.fromiter((code for row in words for code in row), np.int64)
    owner = np.repeat(np.arange(len(words)), [len(row) for row in words])
    n_docs = len(retriever.doc_ids)
    keys, weights = _postings(retriever, n_docs)
    scores = np.zeros(docs.shape)
    if not len(keys):
        return scores
    step = max(1, _LOOKUPS // docs.shape[1])
    for start in range(0, len(word), step):
        part = slice(start, start + step)
        asked = word[part, None] * n_docs + docs[owner[part]]
        place = np.minimum(np.searchsorted(keys, asked), len(keys) - 1)
        found = np.where(keys[place] == asked, weights[place], 0.0)
        for j, column in enumerate(found.T):
            scores[:, j] += np.bincount(owner[part], weights=column, minlength=len(scores))
    return scores


def _postings(retriever: BM25Retriever, n_docs: int) -> tuple[IntArray, FloatArray]:
    """Sorted keys ``word · n_docs + document`` and the score each adds."""
    stored = retriever.index.scores
    word = np.repeat(np.arange(len(stored["indptr"]) - 1), np.diff(stored["indptr"]))
    keys = word.astype(np.int64) * n_docs + np.asarray(stored["indices"], dtype=np.int64)
    order = np.argsort(keys, kind="stable")
    return keys[order], np.asarray(stored["data"], dtype=np.float64)[order]
