"""Exact search whose result does not depend on how the work is divided.

A matrix product of float32 vectors rounds differently with the number of rows, threads and the
library behind it, so the same pair would score differently in another division of a corpus. Here
the product only finds candidates, with a margin that covers its rounding; their scores are then
computed one pair at a time in float64, in a fixed order, and rounded once. Any division into parts,
on any number of machines, gives the same scores and ranks to the last digit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError
from rag_sourcebias.retrieval.topk import require_depth, sort_keys
from rag_sourcebias.types.arrays import Float32Array, IntArray
from rag_sourcebias.types.rankings import Run

__all__ = ["Best", "Part", "best_documents", "best_run", "exact_scores", "merge_best", "parts_of"]


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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
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
    require_depth(depth)
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
            new.append(_scored(queries, part, query + start, document))
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


def _scored(queries: Float32Array, part: Part, query: IntArray, document: IntArray) -> Best:
    return Best(
        n_queries=len(queries),
        query=query,
        row=part.rows[document],
        score=exact_scores(queries, part.vectors, query, document),
        priority=part.priority[document],
    )


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
        scores=found.score,
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
