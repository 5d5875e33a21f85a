"""Events of one key become one observation, in bounded memory."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from rag_sourcebias.core.errors import DataError
from rag_sourcebias.stats.aggregation import Aggregator


def plain(observations):
    return [(o.key, o.values.tolist(), o.n_events) for o in observations]


def open_now(aggregator):
    return len(aggregator.to_dict()["state"]["open"])


def test_events_of_a_key_are_averaged_until_its_time_is_over():
    aggregator = Aggregator(groups=2, max_seconds=10)
    assert aggregator.add("a", [1, 0], now=100) == []
    assert aggregator.add("b", [0.5, 0.5], now=104) == []
    assert aggregator.add("a", [0, 1], now=109.9) == []
    assert plain(aggregator.close(now=110)) == [("a", [0.5, 0.5], 2)]
    assert plain(aggregator.add("c", [1, 0], now=114)) == [("b", [0.5, 0.5], 1)]
    assert plain(aggregator.flush()) == [("c", [1, 0], 1)]
    assert (
        aggregator.n_events,
        aggregator.n_observations,
        open_now(aggregator),
    ) == (4, 3, 0)


def test_baselines_are_averaged_when_all_events_have_one():
    aggregator = Aggregator(max_events=2)
    aggregator.add("a", [1], now=0, null=[0.2])
    (full,) = aggregator.add("a", [0], now=0, null=[0.4])
    assert full.null.tolist() == pytest.approx([0.3])
    for first, second in (([0.2], None), (None, [0.2])):
        aggregator.add(first and "x", [1], now=0, null=first)
        (some,) = aggregator.add(first and "x", [0], now=0, null=second)
        assert some.null is None


def test_a_key_that_returns_is_a_repeat_while_it_is_remembered():
    aggregator = Aggregator(max_seconds=1, remember=2)
    for now, key in enumerate("abc"):
        aggregator.add(key, [1], now=10 * now)
    aggregator.close(now=100)
    assert aggregator.add("c", [0], now=101) == []
    assert (aggregator.n_repeats, open_now(aggregator)) == (1, 0)
    aggregator.add("a", [0], now=102)  # forgotten: b and c are remembered
    assert (aggregator.n_repeats, open_now(aggregator)) == (1, 1)
    aggregator.close(now=200)  # a is remembered now, b (older than c, which returned) is not
    aggregator.add("c", [0], now=201)
    aggregator.add("b", [0], now=202)
    assert (aggregator.n_repeats, open_now(aggregator)) == (2, 1)


def test_without_memory_a_full_bucket_is_followed_by_the_next():
    aggregator = Aggregator(max_events=3, remember=0)
    done = [o for i in range(10) for o in aggregator.add("all", [i / 10], now=i)]
    assert [o.values.tolist() for o in done] == [
        [pytest.approx(0.1)],
        [pytest.approx(0.4)],
        [pytest.approx(0.7)],
    ]
    assert (aggregator.n_repeats, open_now(aggregator)) == (0, 1)


def test_memory_is_bounded_and_nothing_is_lost_silently():
    aggregator = Aggregator(max_seconds=1e9, max_open=50, remember=20)
    emitted = sum(len(aggregator.add(key, [1], now=key)) for key in range(1000))
    assert open_now(aggregator) == 50
    assert emitted == aggregator.n_closed_early == aggregator.n_observations == 950
    assert len(aggregator.to_dict()["state"]["closed"]) == 20
    total = emitted + len(aggregator.flush())
    assert total + aggregator.n_repeats == aggregator.n_events == 1000


def test_every_event_is_counted_once():
    rng = np.random.default_rng(13)
    aggregator = Aggregator(max_seconds=30, max_events=4, max_open=40, remember=100)
    seen = 0
    for step in range(5000):
        done = aggregator.add(int(rng.zipf(1.3)) % 400, [rng.random()], now=step)
        seen += sum(o.n_events for o in done)
    seen += sum(o.n_events for o in aggregator.flush())
    assert seen + aggregator.n_repeats == aggregator.n_events == 5000
    assert aggregator.n_repeats > 0


def test_a_clock_that_goes_backwards_stands_still():
    aggregator = Aggregator(max_seconds=10)
    aggregator.add("a", [1], now=100)
    aggregator.add("b", [1], now=40)
    assert aggregator.close(now=50) == []
    assert [o.key for o in aggregator.close(now=110)] == ["a", "b"]
    assert aggregator.close(now=math.nan) == []


def test_a_restart_keeps_buckets_and_their_age():
    first = Aggregator(groups=2, max_seconds=10, remember=5)
    first.add("old", [1, 0], now=1)
    first.close(now=60)
    first.add("a", [1, 0], now=100, null=[0.5, 0.5])
    first.add("b", [0, 1], now=106)
    stored = json.loads(json.dumps(first.to_dict(), allow_nan=False))
    second = Aggregator.from_dict(stored, now=7.0)
    assert second.to_dict() == first.to_dict()
    assert second.add("old", [1, 1], now=8) == []
    assert second.n_repeats == 1
    second.add("a", [0, 1], now=9)
    (done,) = second.close(now=11.5)
    assert plain([done]) == [("a", [0.5, 0.5], 2)]
    assert open_now(Aggregator.from_dict(Aggregator().to_dict(), now=0)) == 0


def test_bad_events_change_nothing():
    aggregator = Aggregator(groups=2)
    for values in ([0.5], [0.5, 1.1], [math.nan, 0], [0.1, 0.2, 0.3]):
        with pytest.raises(DataError, match=r"an event needs 2 numbers in \[0, 1\]"):
            aggregator.add("a", values, now=0)
    with pytest.raises(DataError, match=r"an event needs 2 numbers"):
        aggregator.add("a", [1, 0], now=0, null=[0.5])
    with pytest.raises(DataError, match="now must be a finite number of seconds, got nan"):
        aggregator.add("a", [1, 0], now=math.nan)
    assert (aggregator.n_events, open_now(aggregator)) == (0, 0)


def test_bad_settings_and_states_are_refused():
    for settings in ({"groups": 0}, {"max_seconds": 0}, {"max_open": 0}, {"remember": -1}):
        with pytest.raises(DataError, match="must be at least 1"):
            Aggregator(**settings)
    good = Aggregator().to_dict()
    for bad in ({"open": [["a", 1]]}, {"closed": 3}, {"n_events": None}):
        with pytest.raises(DataError, match="stored state of an aggregator"):
            Aggregator.from_dict({**good, "state": {**good["state"], **bad}}, now=0)
