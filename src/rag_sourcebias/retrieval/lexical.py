"""BM25 over a corpus, by bm25s."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Literal

from rag_sourcebias.errors import DataError
from rag_sourcebias.retrieval.bm25_index import BM25Retriever, bm25s_version, index_texts
from rag_sourcebias.types.documents import Corpus

__all__ = ["BM25Spec"]

Method = Literal["lucene", "atire", "robertson"]

_METHODS = ("lucene", "atire", "robertson")
_STOPWORDS = {"en": "en", "nltk": "en_plus", "none": None}


@dataclass(slots=True, kw_only=True)
class BM25Spec:
    """Recipe of a BM25 retriever.

    Texts are lower-cased and split into words of at least two characters; stop words are removed
    before stemming. The score of a document is the sum over the query's words of idf · tf part,
    with N documents, document frequency df, term frequency tf and
    K = k1·(1 − b + b·length / mean length) (Kamphuis et al., ECIR 2020):

    ========== ============================== =========================
    method     idf                            tf part
    ========== ============================== =========================
    lucene     ln(1 + (N − df + ½)/(df + ½))  tf / (tf + K)
    robertson  ln((N − df + ½)/(df + ½)) ≥ 0  tf / (tf + K)
    atire      ln(N / df)                     tf·(k1 + 1) / (tf + K)
    ========== ============================== =========================

    Documents that score 0 (they share no word with the query, or only words of idf 0) are not
    returned. Ties are ordered blindly to the source (:mod:`rag_sourcebias.retrieval.topk`).

    Parameters
    ----------
    k1 : float
        Term frequency saturation, at least 0.
    b : float
        Length normalisation, in [0, 1].
    method : {"lucene", "atire", "robertson"}
    stemmer : str or None
        Snowball algorithm (``"english"``, ``"porter"``, ``"german"``, …); None for no stemming.
    stopwords : str, list of str, or None
        ``"en"`` are Lucene's 33 English stop words, ``"nltk"`` NLTK's 179; a list holds words of
        your own, None removes none.
    name : str
        Derived from the settings when empty.

    Raises
    ------
    DataError
        If a setting is outside its range; the message lists what is accepted.
    """

    k1: float = 1.5
    b: float = 0.75
    method: Method = "lucene"
    stemmer: str | None = "english"
    stopwords: str | Sequence[str] | None = "en"
    name: str = ""

    def __post_init__(self) -> None:
        if not self.k1 >= 0:
            raise DataError(f"k1 {self.k1!r} must be 0 or more")
        if not 0 <= self.b <= 1:
            raise DataError(f"b {self.b!r} is outside [0, 1]")
        if self.method not in _METHODS:
            raise DataError(f"BM25 method {self.method!r} is not one of {', '.join(_METHODS)}")
        if isinstance(self.stopwords, str) and self.stopwords not in _STOPWORDS:
            raise DataError(
                f"stopwords {self.stopwords!r} is not one of en, nltk, none; a list of words or "
                "None is accepted too"
            )
        self.name = self.name or self._derived_name()

    @classmethod
    def paper(cls) -> BM25Spec:
        """Return the BM25 that Dai et al. (KDD 2024) ran.

        k1 = 2, b = 0.75, idf = ln(N / df), NLTK's English stop words, no stemming, as their
        published code sets it.
        """
        return cls(k1=2.0, method="atire", stemmer=None, stopwords="nltk", name="bm25-paper")

    @property
    def settings(self) -> Mapping[str, str]:
        """Settings a report must state."""
        words = self.stopwords
        return {
            "k1": f"{self.k1:g}",
            "b": f"{self.b:g}",
            "method": self.method,
            "stemmer": self.stemmer or "none",
            "stopwords": words or "none"
            if isinstance(words, str | None)
            else f"{len(words)} given",
            "tokens": "lower case, words of 2 or more characters",
            "bm25s": bm25s_version(),
        }

    def build(self, corpus: Corpus) -> BM25Retriever:
        """Index the texts of a corpus.

        Raises
        ------
        MissingExtraError
            If bm25s or PyStemmer is not installed.
        DataError
            If no document has a word left after stop words are removed.
        """
        return index_texts(
            corpus,
            k1=self.k1,
            b=self.b,
            method=self.method,
            stemmer=self.stemmer,
            stopwords=self._words(),
            name=self.name,
        )

    def _words(self) -> str | list[str] | None:
        if self.stopwords is None or isinstance(self.stopwords, str):
            return _STOPWORDS[self.stopwords or "none"]
        return list(self.stopwords)

    def _derived_name(self) -> str:
        changed = [f"{key}={getattr(self, key):g}" for key in ("k1", "b") if self._differs(key)]
        changed += [self.method] if self._differs("method") else []
        changed += [f"stemmer={self.stemmer}"] if self._differs("stemmer") else []
        changed += [f"stopwords={self.settings['stopwords']}"] if self._differs("stopwords") else []
        return f"bm25({', '.join(changed)})" if changed else "bm25"

    def _differs(self, key: str) -> bool:
        default = next(field.default for field in fields(self) if field.name == key)
        return bool(getattr(self, key) != default)
