"""When the next round is due."""

from __future__ import annotations

import pytest

from rag_sourcebias.monitor.probe import next_due


@pytest.mark.parametrize(
    ("now", "expected"),
    [(100.0, 110.0), (100.1, 110.0), (109.9, 110.0), (110.0, 120.0), (127.0, 130.0), (99.0, 110.0)],
)
def test_the_pace_is_kept_and_missed_rounds_are_left_out(now: float, expected: float) -> None:
    assert next_due(100.0, now, 10.0) == expected


def test_delays_do_not_add_up() -> None:
    due = 0.0
    for _ in range(1_000):
        due = next_due(due, due + 3.7, 60.0)  # each round takes 3.7 s
    assert due == 60_000.0
