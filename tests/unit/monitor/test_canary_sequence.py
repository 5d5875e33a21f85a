"""The confidence sequence of Relative Δ: exact against single tests, and held at all rounds."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from scipy.stats import binom

from rag_sourcebias.core.errors import DataError
from rag_sourcebias.monitor.canary import RelativeDeltaSequence, observations
from rag_sourcebias.stats.sequential import BettingInterval, BettingTest

VALUES = np.array([1.0, 0.63, 0.5, 0.43, 0.39, 0.0])  # NDCG@5 of one relevant document


def scores(seed: int, n: int, human=(3, 2, 1, 1, 1, 1), llm=(1, 2, 1, 1, 1, 3)) -> np.ndarray:
    rng = np.random.default_rng(seed)
    draw = lambda weights: rng.choice(VALUES, n, p=np.array(weights) / sum(weights))
    return np.column_stack([draw(human), draw(llm)])


def test_candidates_are_those_of_tests_of_their_own() -> None:
    given = scores(1, 60)
    sequence = RelativeDeltaSequence(points=21, reference=-10)
    for start in range(0, 60, 20):
        sequence.update(given[start : start + 20])
        lower, upper = sequence.interval()
        standing = []
        for share in sequence.shares:
            values = np.clip(
                (1 - share) * given[: start + 20, 0] + share * (1 - given[: start + 20, 1]), 0, 1
            )
            above = BettingTest(share, side="greater", confidence_level=0.975)
            below = BettingTest(share, side="less", confidence_level=0.975)
            found = max(above.update_many(values)[-1], below.update_many(values)[-1])
            standing.append(bool(found[0] < math.log(40)))
        first, last = np.flatnonzero(standing)[[0, -1]]
        assert all(standing[first : last + 1])  # an interval
        deltas = 400 * sequence.shares - 200
        assert lower == pytest.approx(deltas[first - 1] if first else -200)
        assert upper == pytest.approx(deltas[last + 1] if last + 1 < len(deltas) else 200)


def test_against_the_interval_of_a_mean() -> None:
    """With H = 1 − L the sum is 1 always, so Relative Δ is 400·E[H] − 200."""
    human = np.random.default_rng(2).uniform(size=200) ** 2
    sequence = RelativeDeltaSequence(points=201)
    sequence.update(np.column_stack([human, 1 - human]))
    mean = BettingInterval(points=201)
    mean.update_many(human)
    assert sequence.interval() == pytest.approx([400 * end - 200 for end in mean.interval()])
    assert sequence.estimate == pytest.approx(400 * human.mean() - 200)


def test_the_true_share_is_the_mean_of_its_observations() -> None:
    given = scores(3, 1_000)
    share = given[:, 0].sum() / given.sum()
    values = observations(given, np.array([share, 0.0, 1.0]))
    assert values[:, 0].mean() == pytest.approx(share, abs=1e-12)
    assert np.array_equal(values[:, 1], given[:, 0])
    assert np.array_equal(values[:, 2], 1 - given[:, 1])


def test_nothing_scored_says_nothing() -> None:
    sequence = RelativeDeltaSequence()
    assert (sequence.estimate, sequence.interval()) == (None, (-200.0, 200.0))
    sequence.update(np.zeros((500, 2)))
    assert (sequence.n, sequence.estimate) == (500, None)
    assert sequence.interval() == (-200.0, 200.0)
    assert (sequence.left_at, sequence.changed_at) == (0, 0)


def test_one_source_only_reaches_the_end_of_the_scale() -> None:
    sequence = RelativeDeltaSequence()
    sequence.update(np.tile([1.0, 0.0], (2_000, 1)))
    lower, upper = sequence.interval()
    assert sequence.estimate == 200
    assert lower > 190
    assert upper == 200


def test_bounds_hold_the_estimate_after_a_change() -> None:
    sequence = RelativeDeltaSequence(points=41)
    for scored in ([1.0, 0.0], [0.0, 1.0]):
        for _ in range(20):
            sequence.update(np.tile(scored, (20, 1)))
            lower, upper = sequence.interval()
            assert lower <= sequence.estimate <= upper


def test_alarm_comes_with_the_round_that_leaves_the_reference_and_stays() -> None:
    sequence = RelativeDeltaSequence(points=41, reference=-33)
    given = scores(4, 400)
    outside = []
    for start in range(0, 400, 20):
        sequence.update(given[start : start + 20])
        lower, upper = sequence.interval()
        outside.append(not lower < -33 < upper)
        assert (sequence.left_at > 0) == any(outside)
    assert sequence.left_at == 20 * (outside.index(True) + 1)
    assert not outside[0]
    assert sequence.evidence > math.log(20)


def test_a_change_after_a_quiet_time_is_seen_once() -> None:
    even = (1, 1, 1, 1, 1, 1)
    sequence = RelativeDeltaSequence(points=3, change_run_length=1_000)
    sequence.update(scores(5, 400, even, even))
    assert sequence.changed_at == 0
    sequence.update(scores(6, 2_000))
    first = sequence.changed_at
    assert 400 < first < 700
    assert sequence.change_evidence == pytest.approx(math.log(1_000))
    sequence.update(scores(7, 400))
    assert sequence.changed_at == first


@pytest.mark.parametrize("reference", [0.0, 12.5])
def test_state_goes_on_exactly(reference: float) -> None:
    straight = RelativeDeltaSequence(points=31, reference=reference, confidence_level=0.9)
    broken = RelativeDeltaSequence(points=31, reference=reference, confidence_level=0.9)
    given = scores(8, 300)
    for start in range(0, 300, 20):
        straight.update(given[start : start + 20])
        broken.update(given[start : start + 20])
        broken = RelativeDeltaSequence.from_dict(json.loads(json.dumps(broken.to_dict())))
    assert broken.to_dict() == straight.to_dict()
    assert broken.interval() == straight.interval()


def test_state_of_something_else() -> None:
    data = RelativeDeltaSequence(points=5).to_dict()
    with pytest.raises(DataError, match="expected the state of kind 'relative-delta', found 'x'"):
        RelativeDeltaSequence.from_dict(data | {"kind": "x"})
    with pytest.raises(DataError, match="needs 'parts'"):
        RelativeDeltaSequence.from_dict({k: v for k, v in data.items() if k != "parts"})
    other = RelativeDeltaSequence(points=7).to_dict()["parts"]
    with pytest.raises(DataError, match="tests of another grid"):
        RelativeDeltaSequence.from_dict(data | {"parts": other})


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"reference": 200.0}, r"reference 200.0 is outside \(-200, 200\)"),
        ({"reference": math.nan}, "reference nan is outside"),
        ({"points": 2}, "points must be at least 3, got 2"),
        ({"change_run_length": 1.0}, "run_length above 1"),
        ({"confidence_level": 1.0}, "confidence_level"),
    ],
)
def test_settings_out_of_range(kwargs, message) -> None:
    with pytest.raises(DataError, match=message):
        RelativeDeltaSequence(**kwargs)


@pytest.mark.parametrize("bad", [1.5, -0.1, math.nan])
def test_scores_out_of_range_change_nothing(bad: float) -> None:
    sequence = RelativeDeltaSequence(points=5)
    before = sequence.to_dict()
    with pytest.raises(DataError, match=r"scores must be in \[0, 1\]"):
        sequence.update([[0.5, 0.5], [bad, 0.5]])
    assert sequence.to_dict() == before


@pytest.mark.parametrize(
    ("human", "llm"), [((1,) * 6, (1,) * 6), ((1, 2, 1, 1, 1, 3), (6, 2, 0, 0, 1, 1))]
)
def test_bounds_hold_at_all_rounds_at_once(human, llm) -> None:
    streams, rounds = 200, 15
    means = [VALUES @ np.array(weights) / sum(weights) for weights in (human, llm)]
    true = 200 * (means[0] - means[1]) / sum(means)
    missed = 0
    for seed in range(streams):
        sequence, good = RelativeDeltaSequence(points=5), True
        given = scores(1_000 + seed, 20 * rounds, human, llm)
        for start in range(0, len(given), 20):
            sequence.update(given[start : start + 20])
            lower, upper = sequence.interval()
            good &= bool(lower <= true <= upper)
        missed += not good
    assert missed <= binom.ppf(0.999, streams, 0.05)
