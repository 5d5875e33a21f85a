"""BM25 as a similarity between a query and the versions of one document ([W] W2)."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.arrays import FloatArray, IntArray
from rag_sourcebias.core.data import Corpus, DocTags, Query, Run, TagTable
from rag_sourcebias.core.errors import DataError, MissingExtraError
from rag_sourcebias.retrieval.dense import score_in_blocks, top_documents

# The index behind :class:`~rag_sourcebias.retrieval.BM25Spec`, by bm25s.


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


# BM25 over a corpus, by bm25s.


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
    returned. Ties are ordered blindly to the source (:mod:`rag_sourcebias.retrieval.dense`).

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


# BM25 as a similarity between a query and the versions of one document ([W] W2).


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
