"""Do alarms hold under continuous looking, and do they come soon enough? A small study.

The full one is benchmarks/monitor/alarms.py.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import bdtrc

from rag_sourcebias.stats.aggregation import Aggregator, beta_interval
from rag_sourcebias.stats.sequential import (
    BettingInterval,
    BettingTest,
    ChangeDetector,
    reference_window,
)

pytestmark = pytest.mark.slow
STREAMS, LOOKS = 300, 1500
LEVEL = 0.05


def believable(alarms, streams=STREAMS, level=LEVEL):
    """Whether so many false alarms happen at least once in 1,000 times at the nominal level."""
    return bdtrc(alarms - 1, streams, level) > 0.001 if alarms else True


def binary(seed, share, looks=LOOKS, streams=STREAMS):
    return (np.random.default_rng(seed).random((looks, streams)) < share).astype(float)


@pytest.mark.parametrize("share", [0.5, 0.1])
def test_null_streams_raise_few_alarms(share):
    x = binary(1, share)
    for side in ("two-sided", "greater", "less"):
        test = BettingTest(share, groups=STREAMS, side=side)
        test.update_many(x)
        assert believable(test.alarms.sum()), side


def test_the_usual_test_looked_at_often_would_not_pass():
    x = binary(2, 0.5, looks=1000)
    at = np.arange(10, 1001, 10)
    z = (x.cumsum(axis=0)[at - 1] - at[:, None] / 2) / np.sqrt(at[:, None] / 4)
    alarms = (np.abs(z) > 1.96).any(axis=0).sum()
    assert 0.3 < alarms / STREAMS < 0.45
    assert not believable(alarms)


def test_drifting_shares_need_their_own_baseline():
    rng = np.random.default_rng(3)
    walk = np.zeros((LOOKS, STREAMS))
    now = 0.1 * rng.standard_normal(STREAMS)
    for look in range(LOOKS):
        now = 0.9 * now + 0.1 * np.sqrt(1 - 0.81) * rng.standard_normal(STREAMS)
        walk[look] = now
    chance = np.clip(0.5 + walk, 0.02, 0.98)
    x = (rng.random(chance.shape) < chance).astype(float)
    raw, own = BettingTest(0.5, groups=STREAMS), BettingTest(groups=STREAMS)
    raw.update_many(x)
    own.update_many(x, null=chance)
    assert not believable(raw.alarms.sum())
    assert believable(own.alarms.sum())
    buckets = BettingTest(0.5, groups=STREAMS)
    buckets.update_many(x.reshape(-1, 50, STREAMS).mean(axis=1))
    assert believable(buckets.alarms.sum())


def test_repeated_queries_must_be_aggregated():
    rng = np.random.default_rng(4)
    raw = closed = 0
    streams = 120
    for _ in range(streams):
        query = np.repeat(np.arange(LOOKS), rng.geometric(1 / 3, LOOKS))[:LOOKS]
        outcome = rng.integers(0, 2, LOOKS)[query].astype(float)
        aggregator = Aggregator(max_seconds=100)
        done = []
        for now, (key, value) in enumerate(zip(query.tolist(), outcome.tolist(), strict=True)):
            done += aggregator.add(key, (value,), now=now)
        means = [o.values[0] for o in done + aggregator.flush()]
        assert len(means) == len(np.unique(query))
        for test, values in ((one := BettingTest(0.5), outcome), (two := BettingTest(0.5), means)):
            test.update_many(values)
        raw += int(one.alarms[0])
        closed += int(two.alarms[0])
    assert not believable(raw, streams)
    assert believable(closed, streams)


def test_a_baseline_from_a_window_carries_its_error():
    windows, x = binary(5, 0.3, looks=500), binary(6, 0.3)
    found = reference_window(windows)
    test = BettingTest(found.null, groups=STREAMS, confidence_level=found.stream_level)
    test.update_many(x)
    assert believable(test.alarms.sum())
    as_known = BettingTest(found.mean, groups=STREAMS)
    as_known.update_many(x)
    assert not believable(as_known.alarms.sum())


def test_confidence_sequences_hold_the_mean_at_every_look():
    rng = np.random.default_rng(7)
    streams, looks = 40, 240
    missed = {"betting": 0, "beta": 0}
    for _ in range(streams):
        x = rng.beta(2, 6, looks)
        betting = BettingInterval(points=101)
        outside = {"betting": False, "beta": False}
        for start in range(0, looks, 40):
            betting.update_many(x[start : start + 40])
            seen = x[: start + 40]
            beta = beta_interval(len(seen), seen.sum(), a=25, b=25, confidence_level=0.95)
            ends = {"betting": betting.interval(), "beta": beta}
            for name, (lower, upper) in ends.items():
                outside[name] |= not lower <= 0.25 <= upper
        for name, was in outside.items():
            missed[name] += was
    assert believable(missed["betting"], streams)
    assert believable(missed["beta"], streams)


@pytest.mark.parametrize(("share", "median", "mean"), [(0.55, 850, 950), (0.60, 216, 240)])
def test_skew_is_seen_soon(share, median, mean):
    # METHODS §7 at −20; at −40 the uniform mixture, simulated: none may be 1.2 times as slow.
    x = binary(9, share, looks=12 * median)
    test = BettingTest(0.5, groups=STREAMS)
    test.update_many(x)
    assert test.alarms.all()
    assert np.median(test.alarm_at) < 1.2 * median
    assert test.alarm_at.mean() < 1.2 * mean


@pytest.mark.parametrize("method", ["sr", "cusum"])
def test_false_alarms_of_change_detection_are_as_rare_as_promised(method):
    x = binary(10, 0.5)
    detector = ChangeDetector(0.5, groups=STREAMS, run_length=200, method=method)
    detector.update_many(x)
    assert x.size / detector.n_alarms.sum() > 200
    # a change after a long quiet time is seen soon all the same
    after = detector.update_many(binary(11, 0.6, looks=700)) >= 200
    assert after.any(axis=0).mean() > 0.95
    assert np.median(after.argmax(axis=0)) < {"sr": 90, "cusum": 300}[method]
