"""A small version of ``benchmarks/validity/copies.py``: blind rankers where one source has copies.

The control counts copies one by one: the same rule rejects it.
"""

from __future__ import annotations

import pytest
from benchmark_modules import load

copies, rates = load("validity", "copies", "rates")

pytestmark = pytest.mark.slow
RUNS = 60


@pytest.mark.parametrize("side", ["human", "llm:a"])
@pytest.mark.parametrize("judged", [False, True])
def test_a_blind_ranker_is_not_called_biased(side: str, judged: bool) -> None:
    found = copies.counts(300, side, judged, True, RUNS, 7)
    assert not rates.missed(found["favours"], RUNS, 0.05, at_least=False)


def test_copies_counted_one_by_one_fail() -> None:
    found = copies.counts(300, "llm:a", True, False, RUNS, 7)
    assert rates.missed(found["favours"], RUNS, 0.05, at_least=False)
