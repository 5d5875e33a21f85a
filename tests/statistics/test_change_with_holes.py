"""A small version of the pooled worlds of ``benchmarks/validity/change.py``.

Judged is what the first of two systems had on its first ranks. The control takes what nobody judged
for not relevant: the same test rejects it.
"""

from __future__ import annotations

import numpy as np
import pytest
from benchmark_modules import load

from rag_sourcebias.debias.audit import score_debias
from rag_sourcebias.debias.data import DebiasConfig
from rag_sourcebias.infer.equivalence import delta_change_test

change, rates = load("validity", "change", "rates")

pytestmark = pytest.mark.slow
RUNS = 60
SAME, BLIND = "pooled from the first", "pooled, second blind"


@pytest.mark.parametrize("n", [30, 100, 300])
def test_no_change_is_found_where_there_is_none(n: int) -> None:
    found = change.counts(SAME, n, RUNS, 7)["counts"]
    assert not rates.missed(found["rejected"], RUNS, 0.05, at_least=False)
    assert not rates.missed(found["worse"], RUNS, 0.05, at_least=False)


def test_a_change_for_the_better_is_found_and_not_called_worse() -> None:
    found = change.counts(BLIND, 100, RUNS, 7)["counts"]
    assert found["rejected"] > 0.9 * RUNS
    assert not rates.missed(found["worse"], RUNS, 0.05, at_least=False)


def test_the_unjudged_taken_for_not_relevant_fail() -> None:
    config, rejected = DebiasConfig(cutoffs=(5,), resamples=199), 0
    rng = np.random.default_rng(7)
    for _ in range(RUNS // 2):
        systems, data = change.pooled(SAME, 300, rng)
        scores = [score_debias(system, data, config, other="llm:a") for system in systems]
        columns = [each.of(row, 5) for each in scores for row in ("baseline", "other")]
        rejected += delta_change_test(*columns, resamples=199, rng=rng) < 0.05
    assert rates.missed(rejected, RUNS // 2, 0.05, at_least=False)
