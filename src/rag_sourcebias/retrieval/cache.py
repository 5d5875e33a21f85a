"""Vectors and scores kept on disk, so that each text is encoded once, resumably."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from hashlib import blake2b
from pathlib import Path
from typing import Literal, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.caches import SqliteFile
from rag_sourcebias.core.data import Corpus, Float32Array, Query
from rag_sourcebias.core.errors import DataError, require_at_least
from rag_sourcebias.core.protocols import Encoder, Model, Reranker

# Vectors of a corpus and of queries, checked and normalised.


Similarity = Literal["cosine", "dot"]

ENCODED_TOGETHER = 1_024
"""Rows of a corpus that one call of an encoder gets: rows 0–1023, 1024–2047, …

Part of the definition of a run: a model's vectors differ in the last digits with the texts they
are computed beside, so a corpus is cut in the same places wherever it is encoded.
"""


class DocumentVectors(NamedTuple):
    """Vectors of a corpus, one per distinct text.

    Equal texts share one row, so that exact copies tie exactly: encoding or multiplying them in
    different batches would separate them by rounding, in the order of the corpus.

    Parameters
    ----------
    doc_ids : tuple of str, length n
    distinct : float32 array of shape (n_distinct, dimension)
        Normalised for cosine similarity.
    row_of_doc : int64 array of shape (n,)
        Row of ``distinct`` of each document.
    similarity : {"cosine", "dot"}
    """

    doc_ids: tuple[str, ...]
    distinct: Float32Array
    row_of_doc: npt.NDArray[np.int64]
    similarity: Similarity

    @property
    def per_document(self) -> Float32Array:
        """Vectors in the order of ``doc_ids``, shape ``(n, dimension)``."""
        return self.distinct[self.row_of_doc]


def encode_corpus(
    encoder: Encoder,
    corpus: Corpus,
    *,
    similarity: Similarity,
    progress: Callable[[int, int], None] | None = None,
) -> DocumentVectors:
    """Encode every distinct text of a corpus once.

    ``progress`` is told ``(done, total)`` documents.

    Raises
    ------
    DataError
        If the encoder returns an array of another shape, or a number that is not finite.
    """
    row_of_text: dict[str, int] = {}
    found: list[Float32Array] = []
    n = len(corpus)
    for start in range(0, max(n, 1), ENCODED_TOGETHER):
        if progress is not None:
            progress(start, n)
        part = slice(start, start + ENCODED_TOGETHER)
        names: dict[str, str] = {}  # a text is encoded in the part in which it occurs first
        for doc_id, text in zip(corpus.doc_ids[part], corpus.texts[part], strict=True):
            if text not in row_of_text:
                names[text] = doc_id
                row_of_text[text] = len(row_of_text)
        if names or not found:
            token = _part.set((start, n))
            try:
                vectors = encoder.encode_documents(list(names))
            finally:
                _part.reset(token)
            found.append(
                checked_vectors(
                    vectors,
                    what=f"encoder {encoder.name!r}, documents",
                    names=list(names.values()),
                    similarity=similarity,
                )
            )
    if progress is not None:
        progress(n, n)
    return DocumentVectors(
        doc_ids=corpus.doc_ids,
        distinct=np.concatenate(found),
        row_of_doc=np.array([row_of_text[text] for text in corpus.texts], dtype=np.int64),
        similarity=similarity,
    )


def query_vectors(
    encoder: Encoder, queries: Sequence[Query], *, similarity: Similarity
) -> Float32Array:
    """Encode queries, normalised for cosine similarity; shape ``(len(queries), dimension)``.

    Raises
    ------
    DataError
        As :func:`encode_corpus`.
    """
    return checked_vectors(
        encoder.encode_queries([query.text for query in queries]),
        what=f"encoder {encoder.name!r}, queries",
        names=[query.query_id for query in queries],
        similarity=similarity,
    )


#: Which documents of how many an encoder is given now; None where they are all.
_part: ContextVar[tuple[int, int] | None] = ContextVar("rag_sourcebias_part", default=None)


def _reached(done: int, n: int) -> tuple[int, int]:
    """How many of how many are done, after so many of the ``n`` that an encoder was given."""
    before, total = _part.get() or (0, n)
    return min(before + done, total), total


def checked_vectors(
    vectors: Float32Array, *, what: str, names: Sequence[str], similarity: Similarity
) -> Float32Array:
    """Return vectors as they are searched: checked, and normalised for cosine similarity.

    Parameters
    ----------
    vectors : float array of shape (len(names), dimension)
    what : str
        Whose vectors they are, for messages.
    names : sequence of str
        What each vector belongs to, for messages.

    Raises
    ------
    DataError
        If the array has another shape, or a number that is not finite.
    """
    array = np.asarray(vectors, dtype=np.float32)
    if array.ndim != 2 or len(array) != len(names):
        raise DataError(
            f"{what}: returned shape {array.shape} for {len(names)} texts; expected "
            f"({len(names)}, dimension)"
        )
    bad = np.flatnonzero(~np.isfinite(array).all(axis=1))
    if len(bad):
        raise DataError(
            f"{what}: {len(bad)} vector(s) hold NaN or infinity, first for {names[bad[0]]!r}; a "
            "vector must be finite (bfloat16 or float16 overflow is a usual cause: use float32)"
        )
    return normalized(array) if similarity == "cosine" else array


Real = TypeVar("Real", np.float32, np.float64)


def normalized(vectors: npt.NDArray[Real]) -> npt.NDArray[Real]:
    """Return vectors of length 1, shape (n, d); those of length 0 as they are."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(norms > 0, norms, 1), dtype=vectors.dtype)


# Vectors and scores kept on disk, so that no text is encoded twice.
# One SQLite file, readable and writable by several processes at once. Every batch is its own
# transaction: a run that is killed loses the batch it was computing and nothing else.


_SCHEMA = """
CREATE TABLE IF NOT EXISTS vectors (
    fingerprint TEXT NOT NULL,
    side TEXT NOT NULL,
    text BLOB NOT NULL,
    vector BLOB NOT NULL,
    PRIMARY KEY (fingerprint, side, text)
) WITHOUT ROWID
"""


class VectorCache:
    """Store of float32 vectors by (fingerprint, side, text).

    The text itself is not stored, only its 128-bit BLAKE2b hash. A connection is opened for each
    call, so one object may be shared between threads and survives a fork.

    Parameters
    ----------
    path : str or Path
        SQLite file; it and its folder are created on first use.

    Raises
    ------
    DataError
        By every method, if the file is damaged, is not such a cache, or cannot be opened or
        written.
    """

    def __init__(self, path: str | Path) -> None:
        self._file = SqliteFile(path, _SCHEMA)
        self.path = self._file.path

    def get(
        self, fingerprint: str, side: str, texts: Sequence[str]
    ) -> list[npt.NDArray[np.float32] | None]:
        """Return the vector of each text, shape (dimension,); None where there is none."""
        query = (
            "SELECT text, vector FROM vectors WHERE fingerprint = ? AND side = ? AND text IN ({})"
        )
        keys = [_key(text) for text in texts]
        rows = self._file.rows_of(query, keys, fingerprint, side)
        found = {key: self._decoded(vector) for key, vector in rows}
        return [found.get(key) for key in keys]

    def put(
        self, fingerprint: str, side: str, texts: Sequence[str], vectors: npt.NDArray[np.float32]
    ) -> None:
        """Store one vector per text, in one transaction; an existing one is replaced.

        Parameters
        ----------
        vectors : float32 array of shape (len(texts), dimension)
        """
        rows = [
            (fingerprint, side, _key(text), vector.tobytes())
            for text, vector in zip(texts, np.asarray(vectors, dtype="<f4"), strict=True)
        ]
        self._file.create_folder()
        with self._file.connection() as database:
            database.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?, ?)", rows)

    def _decoded(self, stored: object) -> npt.NDArray[np.float32]:
        if not isinstance(stored, bytes) or len(stored) % 4:
            raise self._file.damaged("a stored vector is cut off")
        return np.frombuffer(stored, dtype="<f4").astype(np.float32)


def _key(text: str) -> bytes:
    # Lone surrogates occur in scraped text; they must not make a text impossible to cache.
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


# An encoder and a reranker that compute each text only once, resumably.


BATCH_SIZE = 64


class OfModel:
    """What a model over another one has of it."""

    def __init__(self, model: Model) -> None:
        self.name = model.name
        self._model = model

    @property
    def fingerprint(self) -> str:
        """Fingerprint of the model."""
        return self._model.fingerprint

    @property
    def settings(self) -> Mapping[str, str]:
        """Settings of the model."""
        return self._model.settings


class OfEncoder(OfModel, ABC):
    """What an encoder over another one has of it."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__(encoder)
        self.encoder = encoder

    def encode_queries(self, texts: Sequence[str]) -> Float32Array:
        """Encode the query side."""
        encode = self.encoder.encode_queries
        return self._encode(texts, "query", encode) if texts else encode(texts)

    def encode_documents(self, texts: Sequence[str]) -> Float32Array:
        """Encode the document side."""
        encode = self.encoder.encode_documents
        return self._encode(texts, "document", encode) if texts else encode(texts)

    @abstractmethod
    def _encode(
        self, texts: Sequence[str], side: str, encode: Callable[[Sequence[str]], Float32Array]
    ) -> Float32Array:
        """Encode one text or more of one side, each once."""


class RememberedEncoder(OfEncoder):
    """An encoder that encodes every text once and keeps its vectors in memory.

    Parameters
    ----------
    encoder : Encoder
    """

    def __init__(self, encoder: Encoder) -> None:
        super().__init__(encoder)
        self._known: dict[tuple[str, str], Float32Array] = {}

    def _encode(
        self, texts: Sequence[str], side: str, encode: Callable[[Sequence[str]], Float32Array]
    ) -> Float32Array:
        if missing := [t for t in dict.fromkeys(texts) if (side, t) not in self._known]:
            vectors = encode(missing)
            if len(vectors) != len(missing):
                return vectors  # refused, with its shape, where it is used
            self._known.update(zip([(side, text) for text in missing], vectors, strict=True))
        return np.stack([self._known[side, text] for text in texts])


class BatchedEncoder(OfEncoder):
    """An encoder that computes each text once per call, in the batches of :class:`CachedEncoder`.

    Its vectors are those that a :class:`CachedEncoder` computes into an empty cache: models give
    other last digits in other batches.

    Parameters
    ----------
    encoder : Encoder
    batch_size : int
        Texts of one batch; 64 by default.
    progress : callable, optional
        Told ``(done, total)`` texts, after each batch.
    """

    def __init__(
        self,
        encoder: Encoder,
        *,
        batch_size: int = BATCH_SIZE,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        super().__init__(encoder)
        require_at_least(1, batch_size=batch_size)
        self.batch_size = batch_size
        self.progress = progress

    def _encode(
        self,
        texts: Sequence[str],
        side: str,  # noqa: ARG002
        encode: Callable[[Sequence[str]], Float32Array],
    ) -> Float32Array:
        distinct = longest_first(texts)
        parts = []
        for start in range(0, len(distinct), self.batch_size):
            parts.append(encode(distinct[start : start + self.batch_size]))
            if self.progress is not None:
                self.progress(*_reached(start + self.batch_size, len(distinct)))
        return np.concatenate(parts)[_rows_in(distinct, texts)]


class CachedEncoder(BatchedEncoder):
    """An encoder that keeps its vectors in a :class:`VectorCache`.

    Each distinct text that is not in the cache is encoded once, in batches of similar length.
    Every batch is stored as soon as it is there, so that an interrupted run resumes.

    Parameters
    ----------
    encoder : Encoder
    cache : VectorCache
    batch_size : int
        Texts between two commits; 64 by default.
    progress : callable, optional
        Told ``(done, total)`` of the texts that had to be encoded, after each batch.
    """

    def __init__(
        self,
        encoder: Encoder,
        cache: VectorCache,
        *,
        batch_size: int = BATCH_SIZE,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        super().__init__(encoder, batch_size=batch_size, progress=progress)
        self.cache = cache

    def _encode(
        self, texts: Sequence[str], side: str, encode: Callable[[Sequence[str]], Float32Array]
    ) -> Float32Array:
        distinct = longest_first(texts)
        vectors = through_cache(
            self.cache,
            (self.fingerprint, side),
            distinct,
            lambda rows: encode([distinct[i] for i in rows]),
            batch_size=self.batch_size,
            progress=self.progress,
        )
        return vectors[_rows_in(distinct, texts)]


def longest_first(texts: Sequence[str]) -> list[str]:
    """Return the distinct texts in the order in which they are cut into batches.

    Longest first: a batch that does not fit in memory fails at once, and the time that is left is
    over-estimated rather than under-estimated.
    """
    return sorted(set(texts), key=lambda text: (-len(text), text))


def _rows_in(
    distinct: Sequence[str | tuple[str, str]], texts: Sequence[str | tuple[str, str]]
) -> list[int]:
    row_of = {text: row for row, text in enumerate(distinct)}
    return [row_of[text] for text in texts]


class CachedReranker(OfModel):
    """A reranker that keeps its scores in a :class:`VectorCache`.

    Pairs are computed in the order of their document, so that a reranker that shares work between
    the queries of one document can do so.

    Parameters
    ----------
    reranker : Reranker
    cache : VectorCache
    batch_size : int
        Pairs between two commits; 64 by default.
    progress : callable, optional
        Told ``(done, total)`` of the pairs that had to be scored, after each batch.
    """

    def __init__(
        self,
        reranker: Reranker,
        cache: VectorCache,
        *,
        batch_size: int = BATCH_SIZE,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        super().__init__(reranker)
        self.reranker = reranker
        self.cache = cache
        require_at_least(1, batch_size=batch_size)
        self.batch_size = batch_size
        self.progress = progress

    def score(self, pairs: Sequence[tuple[str, str]]) -> Float32Array:
        """Score pairs, in the given order; shape ``(len(pairs),)``."""
        if not pairs:
            return np.empty(0, np.float32)
        distinct = sorted(set(pairs), key=lambda pair: (-len(pair[1]), pair[1], pair[0]))
        scores = through_cache(
            self.cache,
            (self.fingerprint, "pair"),
            [f"{len(query)} {query}{text}" for query, text in distinct],
            lambda rows: np.reshape(self.reranker.score([distinct[i] for i in rows]), (-1, 1)),
            batch_size=self.batch_size,
            progress=self.progress,
        )[:, 0]
        return scores[_rows_in(distinct, pairs)]


def through_cache(
    cache: VectorCache,
    space: tuple[str, str],
    keys: Sequence[str],
    compute: Callable[[Sequence[int]], Float32Array],
    *,
    batch_size: int,
    progress: Callable[[int, int], None] | None,
) -> Float32Array:
    """Return one vector per key: from the cache, or computed in batches that are stored."""
    vectors = cache.get(*space, keys)
    missing = [row for row, vector in enumerate(vectors) if vector is None]
    for start in range(0, len(missing), batch_size):
        rows = missing[start : start + batch_size]
        computed = np.asarray(compute(rows), dtype=np.float32)
        if computed.ndim != 2 or len(computed) != len(rows):
            raise DataError(
                f"a model returned shape {computed.shape} for {len(rows)} inputs; expected one "
                "row each"
            )
        # A NaN is not stored: it would outlive the fault that caused it.
        good = np.asarray(np.isfinite(computed).all(axis=1))
        cache.put(
            *space,
            [keys[r] for r, ok in zip(rows, good.tolist(), strict=True) if ok],
            computed[good],
        )
        for row, vector in zip(rows, computed, strict=True):
            vectors[row] = vector
        if progress is not None:
            progress(*_reached(start + batch_size, len(missing)))
    found = [vector for vector in vectors if vector is not None]
    sizes = {len(vector) for vector in found}
    if len(sizes) > 1:
        raise DataError(
            f"cache {cache.path} holds vectors of different sizes {sorted(sizes)} for one model; "
            "delete the file, it will be filled again"
        )
    return np.stack(found)
