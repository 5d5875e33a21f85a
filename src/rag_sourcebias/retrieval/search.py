"""Retrievers by name: BM25 and exact dense search, with ties broken blindly to the source."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal, NamedTuple, Protocol, cast, get_args

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.data import (
    Corpus,
    DocTags,
    Float32Array,
    FloatArray,
    IntArray,
    Query,
    Run,
    TagTable,
)
from rag_sourcebias.core.errors import (
    DataError,
    import_extra,
    meant,
    require,
    require_at_least,
    require_one_of,
)
from rag_sourcebias.core.finding import Finding
from rag_sourcebias.core.protocols import Encoder, Retriever, RetrieverSpec
from rag_sourcebias.measure.texts import main_language
from rag_sourcebias.retrieval.application import application_spec
from rag_sourcebias.retrieval.cache import (
    DocumentVectors,
    Similarity,
    encode_corpus,
    query_vectors,
)
from rag_sourcebias.retrieval.findings import RetrievalCode
from rag_sourcebias.retrieval.rerank import retriever_factory

# Ties broken blindly to the source.
# Documents with equal scores are common in paired corpora (a rewrite may be a copy), and corpora
# are stored human first, so ordering ties by row or by id would itself look like source bias. Ties
# follow a permutation of the documents that is drawn once from a fixed seed.


DEFAULT_RETRIEVER = "bm25"
"""What is asked where no retriever is named: the same on every machine, with nothing to load."""

TIE_SEED = 20240825
"""Seed of the permutation that orders ties; part of the definition of a run."""


def tie_order(n_docs: int) -> npt.NDArray[np.uint64]:
    """Return the priority of each document among ties, highest first; shape ``(n_docs,)``."""
    return np.random.default_rng(TIE_SEED).permutation(n_docs).astype(np.uint64)


def sort_keys(scores: Float32Array, priority: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Map (score, priority) to one unsigned integer with the same order.

    The bit pattern of a float32 orders like the number itself once negative values are inverted
    and positive ones get the highest bit. Keys are unique, so partitioning cannot cut through a
    tie block in an order of its own.
    """
    bits = (scores + np.float32(0)).view(np.uint32)  # + 0 turns −0.0 into 0.0: they must tie
    negative = bits >> np.uint32(31) == 1
    ordered = np.where(negative, ~bits, bits | np.uint32(0x8000_0000)).astype(np.uint64)
    return (ordered << np.uint64(32)) | priority


# Exact search whose result does not depend on how the work is divided.
# A matrix product of float32 vectors rounds differently with the number of rows, threads and the
# library behind it, so the same pair would score differently in another division of a corpus. Here
# the product only finds candidates, with a margin that covers its rounding; their scores are then
# computed one pair at a time in float64, in a fixed order, and rounded once. Any division into
# parts, on any number of machines, gives the same scores and ranks to the last digit.


_PART_ROWS = 16_384  # documents multiplied at once
_QUERY_ROWS = 1_024  # queries multiplied at once: with a part of documents 64 MiB of scores
_PAIRS = 2**16  # pairs scored at once: 200 MB in float64 at 384 dimensions
_ROUNDING = 2.0**-24  # of one float32 operation
_SMALLEST = 2.0**-149  # of float32, what an underflow may lose


class Part(NamedTuple):
    """Documents that are searched together.

    ``rows`` (n,) are their numbers in the whole corpus, ``vectors`` (n, dimension) float32, and
    ``priority`` (n,) orders ties, highest first (:func:`~rag_sourcebias.retrieval.tie_order`).
    """

    rows: IntArray
    vectors: Float32Array
    priority: npt.NDArray[np.uint64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Best:
    """The best documents of each query, best first, one row per entry.

    Parameters
    ----------
    n_queries : int
    query : int64 array of shape (nnz,)
        Number of the query, rising.
    row : int64 array of shape (nnz,)
        Row of the document within the whole corpus.
    score : float32 array of shape (nnz,)
    priority : uint64 array of shape (nnz,)
    """

    n_queries: int
    query: IntArray
    row: IntArray
    score: Float32Array
    priority: npt.NDArray[np.uint64]

    @classmethod
    def none(cls, n_queries: int) -> Best:
        """Return the result before any document was seen."""
        empty = np.empty(0, np.int64)
        return cls(
            n_queries=n_queries,
            query=empty,
            row=empty,
            score=np.empty(0, np.float32),
            priority=np.empty(0, np.uint64),
        )

    def last_scores(self, depth: int) -> Float32Array:
        """Score of the document at rank ``depth`` of each query, −inf with fewer documents."""
        ends = np.cumsum(np.bincount(self.query, minlength=self.n_queries))
        sizes = np.diff(ends, prepend=0)
        full = sizes >= depth
        result = np.full(self.n_queries, -np.inf, dtype=np.float32)
        result[full] = self.score[(ends - sizes)[full] + depth - 1]
        return result


def exact_scores(
    queries: Float32Array, documents: Float32Array, query: IntArray, document: IntArray
) -> Float32Array:
    """Dot products of pairs, each the same whatever else is computed; shape ``(len(query),)``.

    Products of float32 numbers are exact in float64, and a row is summed in an order that depends
    on its length only.
    """
    result = np.empty(len(query), dtype=np.float32)
    for start in range(0, len(query), _PAIRS):
        pairs = slice(start, start + _PAIRS)
        left = queries[query[pairs]].astype(np.float64)
        left *= documents[document[pairs]]
        result[pairs] = left.sum(axis=1)
    return result


def best_documents(queries: Float32Array, parts: Iterable[Part], *, depth: int) -> Best:
    """Return the ``depth`` best documents of each query over all parts.

    Order is by descending score (:func:`exact_scores`), ties by descending priority.

    Parameters
    ----------
    queries : float32 array of shape (nq, dimension)
        Finite.
    parts : iterable of Part
        In any division and order; vectors finite.
    depth : int
        At least 1.

    Raises
    ------
    DataError
        If a product is beyond float32, or ``depth`` is below 1.
    """
    require_at_least(1, depth=depth)
    found = Best.none(len(queries))
    lengths = np.linalg.norm(queries.astype(np.float64), axis=1)
    for part in parts:
        if not len(part.rows):
            continue
        rounding = _rounding_of(lengths, part)
        floor = found.last_scores(depth)
        new = [found]
        for start in range(0, len(queries), _QUERY_ROWS):
            block = slice(start, start + _QUERY_ROWS)
            query, document = _candidates(
                queries[block], part.vectors, floor[block], rounding[block], depth
            )
            query += start
            new.append(
                Best(
                    n_queries=len(queries),
                    query=query,
                    row=part.rows[document],
                    score=exact_scores(queries, part.vectors, query, document),
                    priority=part.priority[document],
                )
            )
        found = merge_best(new, depth=depth)
    return found


def _rounding_of(lengths: npt.NDArray[np.float64], part: Part) -> npt.NDArray[np.float64]:
    """Bound how far a float32 product of a query can be from the score; shape ``(nq,)``.

    The forward error of a dot product in any order of summation (Higham 2002, §3.1), with the
    rounding of the score itself.
    """
    dimension = part.vectors.shape[1]
    squares = np.einsum("ij,ij->i", part.vectors, part.vectors)
    longest = float(np.sqrt(squares.max())) * 1.001  # the squares were rounded too
    if not longest * float(lengths.max(initial=0.0)) < np.finfo(np.float32).max / 2:
        raise DataError(
            f"vectors are too long for scores in float32 (a document of length {longest:.3g}); "
            "use cosine similarity, or scale the vectors"
        )
    relative = dimension * _ROUNDING / (1 - dimension * _ROUNDING) + _ROUNDING
    return np.asarray(relative * longest * lengths + (dimension + 1) * _SMALLEST)


def _candidates(
    queries: Float32Array,
    documents: Float32Array,
    floor: Float32Array,
    rounding: npt.NDArray[np.float64],
    depth: int,
) -> tuple[IntArray, IntArray]:
    """Return every pair in which the document can be among the best of the query."""
    products = queries @ documents.T
    least = floor.astype(np.float64) - rounding
    # Where fewer than ``depth`` documents are known, those of this part alone set a bound: at
    # least ``depth`` of them score no less than their product at that rank minus the rounding.
    if np.isneginf(least).any() and len(documents) > depth:
        at = len(documents) - depth
        alone = np.partition(products, at, axis=1)[:, at] - 2 * rounding
        least = np.maximum(least, alone)
    # Rounded towards −inf: comparing in float64 would copy the products.
    bound = np.nextafter(least.astype(np.float32), np.float32(-np.inf))
    query, document = np.divmod(np.flatnonzero(products >= bound[:, None]), len(documents))
    return query, document


def merge_best(found: Sequence[Best], *, depth: int) -> Best:
    """Return the best of several results over disjoint documents, for the same queries."""
    query, row, score, priority = (
        np.concatenate([getattr(one, name) for one in found])
        for name in ("query", "row", "score", "priority")
    )
    order = np.lexsort((~sort_keys(score, priority), query))
    query = query[order]
    starts = np.searchsorted(query, np.arange(found[0].n_queries))
    keep = np.arange(len(query)) - starts[query] < depth
    kept = order[keep]
    return Best(
        n_queries=found[0].n_queries,
        query=query[keep],
        row=row[kept],
        score=score[kept],
        priority=priority[kept],
    )


def best_run(found: Best, *, query_ids: Sequence[str], doc_ids: Sequence[str], name: str) -> Run:
    """Turn a result into a run; ``doc_ids[row]`` is the id of the document in that row."""
    return Run(
        query_ids=tuple(query_ids),
        offsets=np.searchsorted(found.query, np.arange(found.n_queries + 1)).astype(np.int64),
        doc_codes=found.row.astype(np.int32),
        doc_ids=tuple(doc_ids),
        scores=found.score.astype(np.float64),
        name=name,
    )


def parts_of(
    vectors: Float32Array,
    priority: npt.NDArray[np.uint64],
    *,
    rows: IntArray | None = None,
    vector_of: IntArray | None = None,
) -> Iterator[Part]:
    """Cut documents into parts of a size that is fast to multiply.

    Parameters
    ----------
    vectors : float32 array of shape (n_vectors, dimension)
    priority : uint64 array of shape (n,)
    rows : int64 array of shape (n,), optional
        Row of each document within the whole corpus; 0…n − 1 by default.
    vector_of : int64 array of shape (n,), optional
        Which of ``vectors`` belongs to each document; the one with its number by default.
    """
    n = len(priority)
    for start in range(0, n, _PART_ROWS):
        part = slice(start, min(start + _PART_ROWS, n))
        yield Part(
            rows=np.arange(part.start, part.stop) if rows is None else rows[part],
            vectors=vectors[part if vector_of is None else vector_of[part]],
            priority=priority[part],
        )


# Exact search over the vectors of an encoder.


@dataclass(kw_only=True)
class DenseRetriever:
    """Exact search: every query is compared with every document, in float32."""

    name: str
    encoder: Encoder = field(repr=False)
    vectors: DocumentVectors = field(repr=False)

    def retrieve(self, queries: Sequence[Query], depth: int) -> Run:
        """Return the ``depth`` most similar documents of each query."""
        index = self.vectors
        n_docs = len(index.doc_ids)
        encoded = query_vectors(self.encoder, queries, similarity=index.similarity)
        if len(encoded) and len(index.distinct) and encoded.shape[1] != index.distinct.shape[1]:
            raise DataError(
                f"{self.name}: query vectors have {encoded.shape[1]} dimensions, document "
                f"vectors {index.distinct.shape[1]}; both sides must come from one model"
            )
        parts = parts_of(
            index.distinct,
            tie_order(n_docs),
            vector_of=index.row_of_doc if len(index.distinct) < n_docs else None,
        )
        return best_run(
            best_documents(encoded, parts, depth=depth),
            query_ids=[query.query_id for query in queries],
            doc_ids=index.doc_ids,
            name=self.name,
        )


class DenseSpec:
    """Recipe of an exact dense retriever.

    Parameters
    ----------
    encoder : Encoder
    name : str, optional
        Defaults to the name of the encoder.
    similarity : {"cosine", "dot"}
        Cosine normalises both sides; a vector of zeros is similar to nothing (0).
    progress : callable, optional
        Told ``(done, total)`` documents while a corpus is encoded.
    """

    def __init__(
        self,
        encoder: Encoder,
        *,
        name: str | None = None,
        similarity: Similarity = "cosine",
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        require_one_of("similarity", similarity, ("cosine", "dot"))
        self.name = name or encoder.name
        self.encoder = encoder
        self.similarity: Similarity = similarity
        self.progress = progress

    @property
    def settings(self) -> Mapping[str, str]:
        """Settings a report must state."""
        return {**self.encoder.settings, "similarity": self.similarity, "search": "exact"}

    def build(self, corpus: Corpus) -> Retriever:
        """Encode a corpus."""
        return DenseRetriever(
            name=self.name,
            encoder=self.encoder,
            vectors=encode_corpus(
                self.encoder, corpus, similarity=self.similarity, progress=self.progress
            ),
        )


# A corpus indexed by bm25s.


_TOKENS = r"(?u)\b\w\w+\b"


# No spaces between words (Chinese, Japanese, Thai), or signs inside words that are no letters to a
# regular expression: the rest of a sentence, or of a word, would count as one word.
_NOT_SPLIT = ("chinese", "japanese", "Thai", "Devanagari", "Bengali", "Tamil")


def bm25s_version() -> str:
    """Return the installed version of bm25s."""
    from importlib.metadata import PackageNotFoundError, version  # reads e-mail too: 15 ms

    try:
        return version("bm25s")
    except PackageNotFoundError:
        return "not installed"


@dataclass(kw_only=True)
class BM25Retriever:
    """BM25 over one corpus."""

    name: str
    doc_ids: tuple[str, ...] = field(repr=False)
    index: Any = field(repr=False)
    stopwords: str | list[str] | None = field(repr=False)
    stemmer: Any = field(repr=False)

    def retrieve(self, queries: Sequence[Query], depth: int) -> Run:
        """Return up to ``depth`` documents for each query that share a word with it."""
        require_at_least(1, depth=depth)
        priority = tie_order(len(self.doc_ids))
        found = [np.empty(0, np.int64)]
        values = [np.empty(0, np.float32)]
        for codes in self.word_codes([query.text for query in queries]):
            scores = np.asarray(self.index.get_scores_from_ids(codes), dtype=np.float32)
            rows = np.flatnonzero(scores > 0)
            keys = sort_keys(scores[rows], priority[rows])
            kept = np.argpartition(keys, -depth)[-depth:] if depth < len(rows) else slice(None)
            found.append(rows[kept][np.argsort(keys[kept])[::-1]])
            values.append(scores[found[-1]])
        return Run(
            query_ids=tuple(query.query_id for query in queries),
            offsets=np.cumsum([len(rows) for rows in found], dtype=np.int64),
            doc_codes=np.concatenate(found).astype(np.int32),
            doc_ids=self.doc_ids,
            scores=np.concatenate(values),
            name=self.name,
        )

    def word_codes(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the code of every word of each text that the index knows, repeats included."""
        return [self.index.get_tokens_ids(words) for words in self.words(texts, return_ids=False)]

    def words(self, texts: Sequence[str], *, return_ids: bool) -> Any:  # noqa: ANN401 - bm25s's
        """Return the words of texts that count, or their codes in an index of these texts."""
        return _import_bm25s().tokenize(
            list(texts),
            stopwords=self.stopwords,
            token_pattern=_TOKENS,
            stemmer=self.stemmer,
            return_ids=return_ids,
            show_progress=False,
        )


def _import_bm25s() -> Any:  # noqa: ANN401 - an untyped module
    bm25s = import_extra("bm25s", "bm25s", "retrieval", "BM25")
    # bm25s sets its logger to DEBUG on import, which floods an application that logs.
    import logging

    logger = logging.getLogger("bm25s")
    if logger.level == logging.DEBUG:
        logger.setLevel(logging.WARNING)
    return bm25s


def _load_stemmer(algorithm: str | None) -> Any:  # noqa: ANN401 - an untyped class
    if algorithm is None:
        return None
    stemmer = import_extra("Stemmer", "PyStemmer", "retrieval", f"stemmer {algorithm!r}")
    if algorithm not in stemmer.algorithms():
        raise DataError(
            f"stemmer {algorithm!r} is unknown; there are {', '.join(stemmer.algorithms())}, "
            "or None for no stemming"
        )
    return stemmer.Stemmer(algorithm)


# BM25 over a corpus, by bm25s.


Method = Literal["lucene", "atire", "robertson"]

_STOPWORDS: Mapping[str, str | None] = {
    "en": "en",
    "nltk": "en_plus",
    "none": None,
    **{
        language: language
        for language in (
            "danish", "dutch", "french", "german", "italian", "korean", "norwegian", "portuguese",
            "russian", "spanish", "swedish", "turkish",
        )
    },
}  # fmt: skip


@dataclass(kw_only=True)
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
    returned. Ties are ordered blindly to the source (:mod:`rag_sourcebias.retrieval.search`).

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
        ``"en"`` are Lucene's 33 English stop words, ``"nltk"`` NLTK's 179, ``"german"``,
        ``"french"``, … those of other languages; a list holds words of your own, None removes none.
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
        require_one_of("BM25 method", self.method, get_args(Method))
        require(
            (self.k1 >= 0, f"k1 {self.k1!r} must be 0 or more"),
            (0 <= self.b <= 1, f"b {self.b!r} is outside [0, 1]"),
            (
                not isinstance(self.stopwords, str) or self.stopwords in _STOPWORDS,
                f"stopwords {self.stopwords!r} is not one of {', '.join(_STOPWORDS)}; a list of "
                "words or None is accepted too",
            ),
        )
        changed = [f for f in fields(self) if getattr(self, f.name) != f.default]
        if not self.name:  # says what is not as usual
            said = ",".join(f"{f.name}={self.settings[f.name]}" for f in changed)
            self.name = f"bm25({said})" if said else "bm25"

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
            "tokens": r"lower case, \w\w+",
            "bm25s": bm25s_version(),
        }

    def build(self, corpus: Corpus) -> BM25Retriever:
        """Index the texts of a corpus.

        Raises
        ------
        MissingExtraError
            If bm25s or PyStemmer is not installed.
        DataError
            If no document has a word left after stop words are removed, or most are in a language
            whose words cannot be told by spaces and letters.
        """
        bm25s = _import_bm25s()
        stemmer = _load_stemmer(self.stemmer)
        language, share = main_language(corpus.texts)
        if language in _NOT_SPLIT and share > 0.5:
            raise DataError(
                f"{share:.0%} of the documents are in {language}: BM25 splits texts at spaces, "
                f"which finds no words there; use dense:<a model for {language}>, or give "
                "finished runs"
            )
        stopwords: str | list[str] | None
        if self.stopwords is None or isinstance(self.stopwords, str):
            stopwords = _STOPWORDS[self.stopwords or "none"]
        else:
            stopwords = list(self.stopwords)
        # numba, when something else installed it, would compile for seconds to save milliseconds
        index = bm25s.BM25(k1=self.k1, b=self.b, method=self.method, backend="numpy")
        retriever = BM25Retriever(
            name=self.name,
            doc_ids=corpus.doc_ids,
            index=index,
            stopwords=stopwords,
            stemmer=stemmer,
        )
        tokens = retriever.words(corpus.texts, return_ids=True)
        if not tokens.vocab:
            raise DataError(
                f"none of the {len(corpus)} documents has a word to index; BM25 needs words of at "
                "least two characters that are not stop words"
            )
        index.index(tokens, show_progress=False)
        return retriever

    def language_warning(self, corpus: Corpus) -> Finding | None:
        """Return a warning where English settings meet a corpus in another language."""
        if self.stemmer not in ("english", "porter") and self.stopwords not in ("en", "nltk"):
            return None
        language, share = main_language(corpus.texts)
        if language in ("", "english") or share <= 0.5:
            return None
        stemmer = import_extra("Stemmer", "PyStemmer", "retrieval", "stemming")
        stemmed = language.lower() in stemmer.algorithms()
        return RetrievalCode.FOREIGN(
            severity="warning",
            share=share,
            language=language,
            retriever=self.name,
            stemmer=language.lower() if stemmed else "none",
            stopwords=language if language in _STOPWORDS else "none",
        )


# BM25 as a similarity between a query and the versions of one document ([W] W2).


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
        If no text has a word left to index.
    MissingExtraError
        If bm25s or PyStemmer is not installed.
    """
    row_of: dict[str, int] = {}
    rows = [[row_of.setdefault(text, len(row_of)) for text in texts] for texts in versions]
    tags = TagTable.from_tags((str(row), DocTags()) for row in range(len(row_of)))
    retriever = spec.build(Corpus(texts=tuple(row_of), tags=tags))
    flat = [text for forms in queries for text in forms]
    wanted = np.repeat(np.array(rows), len(queries[0]), axis=0)
    scores = np.empty(wanted.shape)
    for row, codes in enumerate(retriever.word_codes(flat)):
        scores[row] = np.asarray(retriever.index.get_scores_from_ids(codes))[wanted[row]]
    return scores.reshape(len(queries), len(queries[0]), -1)


# Retrievers from their names.
# ``kind[:model][,option=value…]``, for example ``bm25``, ``bm25:k1=0.9,b=0.4``, ``bm25:paper``,
# ``dense:all-MiniLM-L6-v2``, ``chroma:all-MiniLM-L6-v2,path=store,ef_search=200``.


ENCODER_OPTIONS = ("dtype", "max_length", "batch_size", "device")
_BM25_OPTIONS = ("k1", "b", "method", "stemmer", "stopwords")


class ParsedSpec(NamedTuple):
    """A specification taken apart."""

    kind: str
    model: str
    options: dict[str, str]


def parse_spec(text: str) -> ParsedSpec:
    """Take ``kind[:model][,option=value…]`` apart.

    Examples
    --------
    >>> parse_spec("dense:all-MiniLM-L6-v2,dtype=bfloat16")
    ParsedSpec(kind='dense', model='all-MiniLM-L6-v2', options={'dtype': 'bfloat16'})
    """
    kind, _, rest = text.strip().partition(":")
    model, options = "", {}
    for i, part in enumerate(p.strip() for p in rest.split(",") if p.strip()):
        key, equals, value = part.partition("=")
        if equals and key.isidentifier():
            options[key] = value
        elif i == 0:
            model = part
        else:
            raise DataError(
                f"retriever {text!r}: cannot read {part!r}; write options as name=value, "
                "separated by commas"
            )
    if not kind:
        raise DataError(f"retriever {text!r} has no kind; write for example bm25 or dense:<model>")
    return ParsedSpec(kind, model, options)


def similarity_of(options: dict[str, str]) -> Similarity:
    """Take the option ``similarity`` out: cosine where it is not given."""
    value = options.pop("similarity", "cosine")
    require_one_of("similarity", value, get_args(Similarity))
    return cast("Similarity", value)


def number(options: Mapping[str, str], key: str) -> float:
    """Return an option that is a number."""
    try:
        return float(options[key])
    except ValueError:
        raise DataError(f"option {key}={options[key]!r} is not a number") from None


class Models(Protocol):
    """What builds encoders from their names."""

    @property
    def progress(self) -> Callable[[int, int], None]:
        """Told ``(done, total)`` while texts are encoded or scored."""

    @property
    def id_key(self) -> str | None:
        """Where the id stands in the metadata of what an application returns."""

    def encoder_of(self, spec: ParsedSpec) -> Encoder:
        """Build the encoder of a specification."""


def named_retriever(text: str, models: Models) -> RetrieverSpec:
    """Build the retriever that ``text`` names.

    Parameters
    ----------
    text : str
    models : Models
        What builds its encoder.
    """
    if text.startswith("app:"):
        application = application_spec(text, id_key=models.id_key)
        application.progress = models.progress
        return application
    spec = parse_spec(text)
    if spec.kind == "bm25":
        return _bm25(spec)
    # Before loading a model, so that an unknown kind fails at once.
    factory = None if spec.kind == "dense" else retriever_factory(spec.kind)
    if not spec.model:
        raise DataError(
            f"retriever {text!r} names no model; write {spec.kind}:<model>, for example "
            f"{spec.kind}:all-MiniLM-L6-v2"
        )
    if factory is not None:
        rest = {k: v for k, v in spec.options.items() if k not in ENCODER_OPTIONS}
        return factory(models.encoder_of(spec), **rest)
    refuse_options(f"retriever kind {spec.kind!r}", spec.options, (*ENCODER_OPTIONS, "similarity"))
    similarity = similarity_of(spec.options)
    name = f"dense:{spec.model}"
    return DenseSpec(
        models.encoder_of(spec), name=name, similarity=similarity, progress=models.progress
    )


def _bm25(spec: ParsedSpec) -> RetrieverSpec:
    refuse_options("retriever kind 'bm25'", spec.options, _BM25_OPTIONS)
    if spec.model == "paper":
        return BM25Spec.paper()
    if spec.model:
        raise DataError(f"bm25:{spec.model} is unknown; there are bm25 and bm25:paper")
    numbers = {k: number(spec.options, k) for k in ("k1", "b") if k in spec.options}
    words = {
        k: None if v in ("none", "") else v for k, v in spec.options.items() if k not in numbers
    }
    return BM25Spec(**numbers, **words)  # type: ignore[arg-type]


def refuse_options(what: str, options: Iterable[str], known: Sequence[str]) -> None:
    """Refuse options that a name does not have."""
    if unknown := sorted(set(options).difference(known)):
        raise DataError(
            f"{what} has no option {', '.join(unknown)}; there are "
            f"{', '.join(known)}{meant(unknown[0], known)}"
        )
