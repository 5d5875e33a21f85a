"""The order of a training: which pairs make up each step, known before it starts."""

from __future__ import annotations

import numpy as np

from rag_sourcebias.errors import InsufficientDataError
from rag_sourcebias.mitigate.twin_texts import TrainingPairs
from rag_sourcebias.neural.train_settings import TrainingSettings
from rag_sourcebias.types.arrays import IntArray

__all__ = ["plan_batches"]


def plan_batches(pairs: TrainingPairs, settings: TrainingSettings) -> IntArray:
    """Rows of each step, shape (steps, batch size); the same for the same seed.

    Each epoch goes through the rows in an order of its own. No batch holds a query twice, nor a
    document that is relevant to another query of the batch: losses that take the other documents
    of a batch as negatives would push it away. Rows that fit into no full batch are left out of
    that epoch.

    Raises
    ------
    InsufficientDataError
        If the rows do not fill one batch.
    """
    relevant: dict[str, set[int]] = {}
    for query_id, twin in zip(pairs.query_ids, pairs.rows.tolist(), strict=True):
        relevant.setdefault(query_id, set()).add(twin)
    epochs = settings.epochs or (1 if settings.max_steps is None else None)
    steps: list[list[int]] = []
    epoch = 0
    while epoch != epochs and (settings.max_steps is None or len(steps) < settings.max_steps):
        order = np.random.default_rng([settings.seed, epoch]).permutation(len(pairs)).tolist()
        limit = None if settings.max_steps is None else settings.max_steps - len(steps)
        packed = _pack(order, pairs, relevant, settings.batch_size, limit)
        if not packed:
            raise InsufficientDataError(
                f"{len(pairs)} (query, pair) rows of {len(relevant)} queries and "
                f"{len(pairs.twins)} pairs do not fill one batch of {settings.batch_size} in which "
                "every query is another one and every document is relevant to one of them only; "
                "lower batch_size or give more data",
                n=len(pairs),
                n_needed=settings.batch_size,
            )
        steps += packed
        epoch += 1
    return np.array(steps, dtype=np.int64)


def _pack(
    order: list[int],
    pairs: TrainingPairs,
    relevant: dict[str, set[int]],
    size: int,
    limit: int | None,
) -> list[list[int]]:
    """Fill batches in order; what clashes waits for the next batch."""
    batches: list[list[int]] = []
    waiting = order[::-1]
    while len(waiting) >= size and len(batches) != limit:
        batch: list[int] = []
        later: list[int] = []
        queries: set[str] = set()
        twins: set[int] = set()
        taken: set[int] = set()  # twins that are relevant to a query of the batch
        while waiting and len(batch) < size:
            row = waiting.pop()
            query, twin = pairs.query_ids[row], int(pairs.rows[row])
            if query in queries or twin in taken or not twins.isdisjoint(relevant[query]):
                later.append(row)
                continue
            batch.append(row)
            queries.add(query)
            twins.add(twin)
            taken |= relevant[query]
        if len(batch) < size:
            break
        batches.append(batch)
        waiting += later[::-1]
    return batches
