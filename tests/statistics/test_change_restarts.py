"""Does a detector that learns the new level keep its promise? A small study.

The full one is benchmarks/monitor/alarms.py.
"""

from __future__ import annotations

import numpy as np
import pytest

from rag_sourcebias.stats.sequential import RestartingDetector

pytestmark = pytest.mark.slow
RUN_LENGTH = 300


def binary(rng, share, looks, streams=1):
    return (rng.random((looks, streams)) < share).astype(float)


def test_false_alarms_after_a_restart_are_as_rare_as_promised():
    """Streams whose level is not that of the baseline: all alarms after the first are false."""
    rng = np.random.default_rng(1)
    streams, looks = 30, 3_000
    false = 0
    for _ in range(streams):
        detector = RestartingDetector(0.5, run_length=RUN_LENGTH, window=50, window_error=0.05)
        false += len(detector.update_many(binary(rng, 0.8, looks))) - 1
    assert 0 <= false <= streams * looks / RUN_LENGTH


def test_a_window_that_misses_the_level_is_part_of_the_promise():
    """Intervals that miss in one case of two: the threshold pays for it."""
    rng = np.random.default_rng(2)
    streams, looks = 60, 3_000
    x = binary(rng, 0.7, looks, streams)
    detector = RestartingDetector(
        0.5, groups=streams, run_length=RUN_LENGTH, window=30, window_error=0.5
    )
    false = len(detector.update_many(x)) - streams
    assert 0 <= false <= streams * looks / RUN_LENGTH


@pytest.mark.parametrize("shares", [(0.5, 0.65, 0.5), (0.1, 0.3, 0.1)])
def test_one_alarm_for_each_lasting_shift(shares):
    rng = np.random.default_rng(3)
    streams = 60
    parts = [binary(rng, share, n, streams) for share, n in zip(shares, (500, 2_500, 4_000))]  # noqa: B905
    detector = RestartingDetector(shares[0], groups=streams, run_length=10_000)
    found = detector.update_many(np.concatenate(parts))
    alarms = np.bincount([change.group for change in found], minlength=streams)
    assert np.median(alarms) == 2
    assert alarms.max() <= 3
    assert (alarms == 2).mean() > 0.9
    rows = np.array([change.row for change in found])
    assert (rows < 500).sum() <= 500 * streams / 10_000
