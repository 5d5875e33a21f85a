"""The index behind :class:`~rag_sourcebias.retrieval.lexical.BM25Spec`, by bm25s."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError, MissingExtraError
from rag_sourcebias.retrieval.topk import score_in_blocks, top_documents
from rag_sourcebias.types.documents import Corpus, Query
from rag_sourcebias.types.rankings import Run

__all__ = ["BM25Retriever", "bm25s_version", "index_texts"]

_TOKENS = r"(?u)\b\w\w+\b"


def index_texts(
    corpus: Corpus,
    *,
    k1: float,
    b: float,
    method: str,
    stemmer: str | None,
    stopwords: str | list[str] | None,
    name: str,
) -> BM25Retriever:
    """Index the texts of a corpus; ``stopwords`` as bm25s takes them.

    Raises
    ------
    MissingExtraError
        If bm25s or PyStemmer is not installed.
    DataError
        If no document has a word left after stop words are removed.
    """
    bm25s = _import_bm25s()
    stem = _load_stemmer(stemmer)
    tokens = bm25s.tokenize(
        list(corpus.texts),
        stopwords=stopwords,
        token_pattern=_TOKENS,
        stemmer=stem,
        show_progress=False,
    )
    if not tokens.vocab:
        raise DataError(
            f"none of the {len(corpus)} documents has a word to index; BM25 needs words of at "
            "least two characters that are not stop words"
        )
    # numba, when something else installed it, would compile for seconds to save milliseconds
    index = bm25s.BM25(k1=k1, b=b, method=method, backend="numpy")
    index.index(tokens, show_progress=False)
    return BM25Retriever(
        name=name, doc_ids=corpus.doc_ids, index=index, stopwords=stopwords, stemmer=stem
    )


def bm25s_version() -> str:
    """Return the installed version of bm25s."""
    from importlib.metadata import PackageNotFoundError, version  # reads e-mail too: 15 ms

    try:
        return version("bm25s")
    except PackageNotFoundError:
        return "not installed"


@dataclass(slots=True, kw_only=True)
class BM25Retriever:
    """BM25 over one corpus."""

    name: str
    doc_ids: tuple[str, ...] = field(repr=False)
    index: Any = field(repr=False)
    stopwords: str | list[str] | None = field(repr=False)
    stemmer: Any = field(repr=False)

    def retrieve(self, queries: Sequence[Query], depth: int) -> Run:
        """Return up to ``depth`` documents for each query that share a word with it."""
        words = self.word_codes([query.text for query in queries])

        def score(rows: slice) -> npt.NDArray[np.float32]:
            scores = np.stack([self._scores(codes) for codes in words[rows]])
            return np.where(scores > 0, scores, np.float32(-np.inf))

        return top_documents(
            score_in_blocks(score, n_queries=len(queries), n_docs=len(self.doc_ids)),
            query_ids=[query.query_id for query in queries],
            doc_ids=self.doc_ids,
            depth=depth,
            name=self.name,
        )

    def word_codes(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the code of every word of each text that the index knows, repeats included."""
        tokens = _import_bm25s().tokenize(
            list(texts),
            stopwords=self.stopwords,
            token_pattern=_TOKENS,
            stemmer=self.stemmer,
            return_ids=False,
            show_progress=False,
        )
        return [self.index.get_tokens_ids(words) for words in tokens]

    def _scores(self, codes: list[int]) -> npt.NDArray[np.float32]:
        return np.asarray(self.index.get_scores_from_ids(codes), dtype=np.float32)


def _import_bm25s() -> Any:  # noqa: ANN401 - an untyped module
    try:
        import bm25s
    except ModuleNotFoundError as error:
        if error.name != "bm25s":
            raise
        raise MissingExtraError(package="bm25s", extra="retrieval", feature="BM25") from error
    # bm25s sets its logger to DEBUG on import, which floods an application that logs.
    logger = logging.getLogger("bm25s")
    if logger.level == logging.DEBUG:
        logger.setLevel(logging.WARNING)
    return bm25s


def _load_stemmer(algorithm: str | None) -> Any:  # noqa: ANN401 - an untyped class
    if algorithm is None:
        return None
    try:
        import Stemmer
    except ModuleNotFoundError as error:
        if error.name != "Stemmer":
            raise
        raise MissingExtraError(
            package="PyStemmer", extra="retrieval", feature=f"stemmer {algorithm!r}"
        ) from error
    if algorithm not in Stemmer.algorithms():
        raise DataError(
            f"stemmer {algorithm!r} is unknown; there are {', '.join(Stemmer.algorithms())}, "
            "or None for no stemming"
        )
    return Stemmer.Stemmer(algorithm)
