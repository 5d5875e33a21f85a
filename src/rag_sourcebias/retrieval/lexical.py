"""BM25 through bm25s."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError, MissingExtraError
from rag_sourcebias.retrieval.topk import run_from_scores
from rag_sourcebias.types.documents import Corpus, Query
from rag_sourcebias.types.rankings import Run

__all__ = ["BM25Spec"]

Method = Literal["lucene", "robertson", "atire", "bm25l", "bm25+"]
_METHODS = ("lucene", "robertson", "atire", "bm25l", "bm25+")
_STOPWORDS = {"en": "english", "nltk": "english_plus"}  # names in bm25s
_BLOCK = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class BM25Spec:
    """BM25 with its parameters.

    Parameters
    ----------
    k1 : float
        Term saturation, at least 0.
    b : float
        Length normalisation, in [0, 1]. The direction of a lexical skew can flip with it when
        rewrites differ in length.
    method : {"lucene", "robertson", "atire", "bm25l", "bm25+"}
        Variant of the formula (Kamphuis et al., ECIR 2020).
    stemmer : str or None
        A Snowball language, such as ``"english"``.
    stopwords : {"en", "nltk"} or None
        A short English list, the long one of NLTK, or none.
    name : str
    """

    k1: float = 1.5
    b: float = 0.75
    method: Method = "lucene"
    stemmer: str | None = "english"
    stopwords: Literal["en", "nltk"] | None = "en"
    name: str = "bm25"

    def __post_init__(self) -> None:
        if self.k1 < 0 or not 0 <= self.b <= 1:
            raise DataError(f"BM25 needs k1 ≥ 0 and b in [0, 1], got k1={self.k1}, b={self.b}")
        if self.method not in _METHODS:
            raise DataError(f"BM25 method {self.method!r} is not one of {', '.join(_METHODS)}")
        if self.stopwords is not None and self.stopwords not in _STOPWORDS:
            raise DataError(f"stopwords {self.stopwords!r} is not one of en, nltk, none")

    @classmethod
    def paper(cls) -> BM25Spec:
        """Return the variant of the official code of [K]: k1 = 2, b = 0.75, idf = ln(N/df)."""
        return cls(
            k1=2.0, b=0.75, method="atire", stemmer=None, stopwords="nltk", name="bm25:paper"
        )

    @property
    def settings(self) -> Mapping[str, str]:
        """Settings a report must state."""
        return {
            "k1": f"{self.k1:g}",
            "b": f"{self.b:g}",
            "method": self.method,
            "stemmer": self.stemmer or "none",
            "stopwords": self.stopwords or "none",
        }

    def build(self, corpus: Corpus) -> _BM25:
        """Index a corpus.

        Raises
        ------
        MissingExtraError
            If bm25s is not installed.
        """
        return _BM25(self, corpus)


class _BM25:
    """BM25 over one corpus."""

    def __init__(self, spec: BM25Spec, corpus: Corpus) -> None:
        self.name = spec.name
        self._doc_ids = corpus.doc_ids
        self._library = _bm25s()
        self._stemmer = _stemmer(spec.stemmer)
        self._stopwords: str | list[str] = _STOPWORDS.get(spec.stopwords or "", [])
        tokens = self._tokenize(list(corpus.texts))
        self._known = frozenset(token for text in tokens for token in text)
        self._index = self._library.BM25(k1=spec.k1, b=spec.b, method=spec.method, backend="numpy")
        if self._known:
            self._index.index(tokens, show_progress=False)

    def retrieve(self, queries: Sequence[Query], depth: int) -> Run:
        """Return up to ``depth`` documents for each query that share a term with it."""
        return run_from_scores(
            self._scores(queries),
            queries=queries,
            doc_ids=self._doc_ids,
            depth=depth,
            name=self.name,
        )

    def _scores(self, queries: Sequence[Query]) -> Iterator[npt.NDArray[np.float32]]:
        tokens = self._tokenize([query.text for query in queries])
        for start in range(0, len(queries), _BLOCK):
            part = tokens[start : start + _BLOCK]
            block = np.zeros((len(part), len(self._doc_ids)), dtype=np.float32)
            for row, query in enumerate(part):
                known = [token for token in query if token in self._known]
                if known:
                    block[row] = self._index.get_scores(known)
            # No shared term, no result: such documents would fill the list in arbitrary order.
            block[block <= 0] = -np.inf
            yield block

    def _tokenize(self, texts: list[str]) -> list[list[str]]:
        tokens: list[list[str]] = self._library.tokenize(
            texts,
            stopwords=self._stopwords,
            stemmer=self._stemmer,
            return_ids=False,
            show_progress=False,
        )
        return tokens


def _bm25s() -> Any:  # noqa: ANN401 - an untyped module
    try:
        import bm25s
    except ImportError as error:
        if error.name != "bm25s":
            raise
        raise MissingExtraError(package="bm25s", extra="retrieval", feature="BM25") from error
    return bm25s


def _stemmer(language: str | None) -> Any:  # noqa: ANN401 - an untyped object
    if language is None:
        return None
    try:
        import Stemmer
    except ImportError as error:
        if error.name != "Stemmer":
            raise
        raise MissingExtraError(
            package="PyStemmer", extra="retrieval", feature=f"stemming ({language})"
        ) from error
    if language not in Stemmer.algorithms():
        raise DataError(
            f"stemmer {language!r} is unknown; there are {', '.join(Stemmer.algorithms())}"
        )
    return Stemmer.Stemmer(language)
