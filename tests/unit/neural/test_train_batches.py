"""Which pairs make up a step."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from tiny_training import paired_texts

from rag_sourcebias.core.data import Qrels
from rag_sourcebias.core.tags import TrainingPairs, training_pairs
from rag_sourcebias.neural.training_data import TrainingSettings, plan_batches


def many_to_many() -> TrainingPairs:
    """Every query has three relevant pairs, every pair three queries."""
    data = paired_texts(24)
    rows = [(f"q{i}", f"human-{(i + k) % 24}", 1) for i in range(24) for k in range(3)]
    return training_pairs(replace(data, qrels=Qrels.from_rows(rows)))


def test_no_batch_holds_a_document_that_is_relevant_to_another_of_its_queries() -> None:
    pairs = many_to_many()
    relevant = {(q, int(t)) for q, t in zip(pairs.query_ids, pairs.rows, strict=True)}
    batches = plan_batches(pairs, TrainingSettings(batch_size=4, epochs=3))
    assert batches.shape[1] == 4
    assert len(batches) > 30
    for batch in batches.tolist():
        queries = [pairs.query_ids[row] for row in batch]
        twins = [int(pairs.rows[row]) for row in batch]
        hits = [(q, t) for q in queries for t in twins if (q, t) in relevant]
        assert sorted(hits) == sorted(zip(queries, twins, strict=True))


def test_an_epoch_goes_through_the_rows_once_in_an_order_of_its_own() -> None:
    pairs = training_pairs(paired_texts(40))
    first, second = np.split(plan_batches(pairs, TrainingSettings(batch_size=8, epochs=2)), 2)
    assert sorted(first.ravel()) == sorted(second.ravel()) == list(range(40))
    assert first.tolist() != second.tolist()


def test_steps_are_counted_and_seeded() -> None:
    pairs = training_pairs(paired_texts(40))
    settings = TrainingSettings(batch_size=8, max_steps=13)
    batches = plan_batches(pairs, settings)
    assert batches.shape == (13, 8)
    assert np.array_equal(batches, plan_batches(pairs, settings))
    assert not np.array_equal(batches, plan_batches(pairs, replace(settings, seed=1)))
    # A longer training begins as the shorter one does.
    longer = plan_batches(pairs, replace(settings, max_steps=20))
    assert np.array_equal(batches, longer[:13])
