"""The best documents of dense score blocks, with ties broken blindly to the source.

Documents with equal scores are common in paired corpora (a rewrite may be a copy), and corpora are
stored human first, so ordering ties by row or by id would itself look like source bias. Ties
follow a permutation of the documents that is drawn once from a fixed seed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError
from rag_sourcebias.types.arrays import Float32Array
from rag_sourcebias.types.rankings import Run

__all__ = [
    "TIE_SEED",
    "block_rows",
    "require_depth",
    "score_in_blocks",
    "sort_keys",
    "tie_order",
    "top_documents",
]

TIE_SEED = 20240825
"""Seed of the permutation that orders ties; part of the definition of a run."""

_BLOCK_BYTES = 64 * 2**20  # per temporary array of one block of scores


def tie_order(n_docs: int, *, seed: int = TIE_SEED) -> npt.NDArray[np.uint64]:
    """Return the priority of each document among ties, highest first; shape ``(n_docs,)``."""
    return np.random.default_rng(seed).permutation(n_docs).astype(np.uint64)


def block_rows(n_docs: int) -> int:
    """Return how many queries to score at once so that memory stays bounded."""
    return max(1, _BLOCK_BYTES // (8 * max(n_docs, 1)))


def require_depth(depth: int) -> None:
    """Refuse a depth below 1.

    Raises
    ------
    DataError
        If ``depth`` is below 1.
    """
    if depth < 1:
        raise DataError(f"depth must be at least 1, got {depth}")


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


def top_documents(
    blocks: Iterable[npt.NDArray[np.floating]],
    *,
    query_ids: Sequence[str],
    doc_ids: Sequence[str],
    depth: int,
    name: str,
    seed: int = TIE_SEED,
) -> Run:
    """Rank documents by score, best first.

    Order is by descending float32 score, ties by :func:`tie_order`; the result depends on the
    scores, the seed and the row numbers only. A score of −inf means "not retrieved".

    Parameters
    ----------
    blocks : iterable of float arrays of shape (rows, n_docs)
        Scores of successive queries; together ``len(query_ids)`` rows.
    query_ids, doc_ids : sequence of str
    depth : int
        Documents per query, at least 1.
    name : str
        Name of the run.
    seed : int
        Seed of the tie order.

    Raises
    ------
    DataError
        If a score is NaN (the message names query and document), the blocks have another shape,
        or ``depth`` is below 1.
    """
    require_depth(depth)
    priority = tie_order(len(doc_ids), seed=seed)
    docs: list[npt.NDArray[np.int64]] = [np.empty(0, np.int64)]
    values: list[Float32Array] = [np.empty(0, np.float32)]
    counts: list[npt.NDArray[np.int64]] = []
    done = 0
    for block in blocks:
        scores = np.asarray(block, dtype=np.float32)
        if scores.ndim != 2 or scores.shape[1] != len(doc_ids):
            raise DataError(
                f"{name}: a block of scores has shape {scores.shape}, expected "
                f"(queries, {len(doc_ids)})"
            )
        _refuse_nan(scores, query_ids[done : done + len(scores)], doc_ids, name)
        columns = _best_columns(sort_keys(scores, priority), depth)
        best = np.take_along_axis(scores, columns, axis=1)
        found = best > -np.inf
        docs.append(columns[found])
        values.append(best[found])
        counts.append(found.sum(axis=1))
        done += len(scores)
    if done != len(query_ids):
        raise DataError(f"{name}: scores for {done} queries, expected {len(query_ids)}")
    offsets = np.zeros(len(query_ids) + 1, dtype=np.int64)
    np.cumsum(np.concatenate(counts) if counts else [], out=offsets[1:])
    return Run(
        query_ids=tuple(query_ids),
        offsets=offsets,
        doc_codes=np.concatenate(docs).astype(np.int32),
        doc_ids=tuple(doc_ids),
        scores=np.concatenate(values),
        name=name,
    )


def _best_columns(keys: npt.NDArray[np.uint64], depth: int) -> npt.NDArray[np.int64]:
    """Return the columns of the ``depth`` largest keys of each row, largest first."""
    n_docs = keys.shape[1]
    if depth < n_docs:
        part = np.argpartition(keys, n_docs - depth, axis=1)[:, n_docs - depth :]
        order = np.argsort(np.take_along_axis(keys, part, axis=1), axis=1)[:, ::-1]
        return np.take_along_axis(part, order, axis=1)
    return np.argsort(keys, axis=1)[:, ::-1]


def _refuse_nan(
    scores: Float32Array, query_ids: Sequence[str], doc_ids: Sequence[str], name: str
) -> None:
    bad = np.argwhere(np.isnan(scores))
    if len(bad):
        row, column = bad[0]
        raise DataError(
            f"{name}: {len(bad)} NaN score(s), first for query {query_ids[row]!r}, document "
            f"{doc_ids[column]!r}; a score must be a number"
        )


def score_in_blocks(
    score: Callable[[slice], Float32Array], *, n_queries: int, n_docs: int
) -> Iterable[Float32Array]:
    """Yield ``score(rows)`` for successive slices of the queries, sized to bound memory."""
    step = block_rows(n_docs)
    return (score(slice(i, min(i + step, n_queries))) for i in range(0, n_queries, step))
