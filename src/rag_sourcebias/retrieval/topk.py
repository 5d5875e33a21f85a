"""Best documents per query from scores, without favouring any document on ties."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import numpy.typing as npt

from rag_sourcebias.types.documents import Query
from rag_sourcebias.types.rankings import Run

__all__ = ["run_from_scores", "top_documents"]

FloatArray = npt.NDArray[np.float32]
_SEED = 20240825


def top_documents(
    scores: FloatArray, depth: int, tie_order: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Indices of the best ``depth`` documents of each row, best first.

    Parameters
    ----------
    scores : float32 array of shape (rows, documents)
        Documents scored −inf sort last.
    tie_order : int64 array of shape (documents,)
        Place of each document among documents with the same score.

    Returns
    -------
    int64 array of shape (rows, min(depth, documents))
    """
    n = scores.shape[1]
    if depth < n:
        # Everything that ties with the last place is kept, so that the cut is decided by
        # tie_order and not by the accident of partitioning.
        bound = -np.partition(-scores, depth - 1, axis=1)[:, depth - 1]
        widest = int(np.max(np.count_nonzero(scores >= bound[:, None], axis=1)))
        chosen = np.argpartition(-scores, widest - 1, axis=1)[:, :widest]
    else:
        chosen = np.broadcast_to(np.arange(n), scores.shape)
    order = np.lexsort((tie_order[chosen], -np.take_along_axis(scores, chosen, axis=1)), axis=1)
    return np.take_along_axis(chosen, order, axis=1)[:, :depth].astype(np.int64)


def run_from_scores(
    blocks: Iterable[FloatArray],
    *,
    queries: Sequence[Query],
    doc_ids: tuple[str, ...],
    depth: int,
    name: str,
    on_block: Callable[[int, int], None] | None = None,
) -> Run:
    """Collect score blocks into a run.

    Documents with equal scores follow one another in a fixed random order: corpus order or id
    order would put one source first.

    Parameters
    ----------
    blocks : iterable of float32 arrays of shape (rows, len(doc_ids))
        Consecutive queries; −inf marks a document that is not returned.
    on_block : callable, optional
        Told ``(queries done, queries)`` after each block.
    """
    tie_order = np.random.default_rng(_SEED).permutation(len(doc_ids))
    docs: list[npt.NDArray[np.int64]] = []
    kept: list[FloatArray] = []
    sizes: list[npt.NDArray[np.int64]] = []
    done = 0
    for block in blocks:
        best = top_documents(block, depth, tie_order)
        values = np.take_along_axis(block, best, axis=1)
        returned = values > -np.inf
        docs.append(best[returned])
        kept.append(values[returned])
        sizes.append(returned.sum(axis=1))
        done += len(block)
        if on_block is not None:
            on_block(done, len(queries))
    offsets = np.zeros(len(queries) + 1, dtype=np.int64)
    if sizes:
        np.cumsum(np.concatenate(sizes), out=offsets[1:])
    return Run(
        query_ids=tuple(query.query_id for query in queries),
        offsets=offsets,
        doc_codes=np.concatenate(docs).astype(np.int32) if docs else np.empty(0, np.int32),
        doc_ids=doc_ids,
        scores=np.concatenate(kept).astype(np.float32) if kept else np.empty(0, np.float32),
        name=name,
    )
