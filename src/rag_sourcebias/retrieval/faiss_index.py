"""Approximate search of one shard by a FAISS index, scored as exact search scores."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError, MissingExtraError
from rag_sourcebias.retrieval.exact import Best, exact_scores, merge_best
from rag_sourcebias.types.arrays import Float32Array

__all__ = ["approximate_best", "require_index"]


_TRY_DIMENSION = 64  # a multiple of what usual quantisers divide by


def approximate_best(
    queries: Float32Array,
    vectors: Float32Array,
    *,
    rows: npt.NDArray[np.int64],
    priority: npt.NDArray[np.uint64],
    depth: int,
    description: str,
) -> Best:
    """Return what a FAISS index over these vectors finds, best first.

    The index is built on one thread, so that it is the same wherever it is built. It chooses the
    documents; their scores are those of :func:`~rag_sourcebias.retrieval.exact.exact_scores`.

    Parameters
    ----------
    rows : int64 array of shape (n,)
        Row of each vector within the whole corpus.
    priority : uint64 array of shape (n,)
        Order among ties.
    description : str
        As ``faiss.index_factory`` takes it, for example ``"HNSW32,Flat"`` or ``"IVF64,Flat"``.

    Raises
    ------
    DataError
        If FAISS refuses the description for these vectors.
    MissingExtraError
        If faiss is not installed.
    """
    faiss = _import_faiss()
    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        index = _built(faiss, np.ascontiguousarray(vectors), description)
        _, found = index.search(np.ascontiguousarray(queries), min(depth, len(vectors)))
    finally:
        faiss.omp_set_num_threads(threads)
    query, column = np.nonzero(found >= 0)
    document = found[query, column].astype(np.int64)
    best = Best(
        n_queries=len(queries),
        query=query,
        row=rows[document],
        score=exact_scores(queries, vectors, query, document),
        priority=priority[document],
    )
    return merge_best([best], depth=depth)


def require_index(description: str) -> None:
    """Refuse a description that FAISS does not know, before hours of work.

    Raises
    ------
    DataError
        If FAISS does not accept it.
    MissingExtraError
        If faiss is not installed.
    """
    if description != "exact":
        _described(_import_faiss(), _TRY_DIMENSION, description)


def _built(faiss: Any, vectors: Float32Array, description: str) -> Any:  # noqa: ANN401
    index = _described(faiss, vectors.shape[1], description)
    try:
        if not index.is_trained:
            index.train(vectors)
        index.add(vectors)
    except RuntimeError as error:
        raise DataError(
            f"FAISS could not build {description!r} over {len(vectors)} vectors: "
            f"{str(error).splitlines()[-1]}; use larger shards or another index"
        ) from error
    return index


def _described(faiss: Any, dimension: int, description: str) -> Any:  # noqa: ANN401
    try:
        return faiss.index_factory(dimension, description, faiss.METRIC_INNER_PRODUCT)
    except RuntimeError as error:
        raise DataError(
            f"index {description!r} is no description that FAISS knows; write exact, or for "
            "example HNSW32,Flat or IVF64,Flat"
        ) from error


def _import_faiss() -> Any:  # noqa: ANN401 - an untyped module
    try:
        import faiss
    except ModuleNotFoundError as error:
        if error.name != "faiss":
            raise
        raise MissingExtraError(
            package="faiss-cpu", extra="faiss", feature="approximate search of shards"
        ) from error
    return faiss
