"""The parts of a variance, and what is forecast of more labels, against worlds of known truth."""

import numpy as np
import pytest

from rag_sourcebias.core.completions import JudgedItems
from rag_sourcebias.judged.audit import judge_items_with_intervals
from rag_sourcebias.judged.comparisons import JudgedValues, ledger_of
from rag_sourcebias.judged.data import JudgedConfig
from rag_sourcebias.stats.means import mean_interval

N, POOL, NOISE = 60, 300, 0.6


def values(seed, n=N, pool=POOL, *, votes=1):
    """Human values of variance 1; each vote of the judge adds noise of its own."""
    rng = np.random.default_rng(seed)
    y = rng.normal(5, 1, n + pool)
    seen = y[:, None] + NOISE * rng.normal(size=(n + pool, votes))
    y = np.where(np.arange(n + pool) < n, y, np.nan)
    return JudgedValues(y, seen.mean(1), judges=seen if votes > 1 else None)


def of(found, **options):
    interval = mean_interval(found.y, found.f, found.f_unlabeled, **options)
    return interval, ledger_of(found, interval)


def test_parts_are_those_of_the_world():
    found = [of(values(seed, votes=3))[1] for seed in range(200)]
    total = N + POOL
    slope = 1 / (1 + NOISE**2 / 3)
    residual = 1 - slope
    labels = residual * (1 / N - 1 / total)
    judges = slope**2 * NOISE**2 / 3 * (1 / N - 1 / total)
    variance = 1 / total + labels
    mean = [np.mean([getattr(x, part) for x in found]) for part in ("items", "labels", "judges")]
    assert mean[0] == pytest.approx(1 / total / variance, abs=0.05)
    assert mean[2] == pytest.approx(judges / variance, abs=0.05)
    assert sum(mean) == pytest.approx(1)
    single = of(values(0))[1]
    assert single.judges is None
    assert single.within_clusters is None


@pytest.mark.parametrize("target", ["population", "pool"])
def test_forecasts_come_true(target):
    now = [of(values(s), target=target) for s in range(200)]
    later = [of(values(s, N + 10, POOL - 10), target=target)[0] for s in range(200, 400)]
    told = np.mean([ledger.next[0].half_width for _, ledger in now])
    seen = np.mean([interval.half_width for interval in later])
    before = np.mean([interval.half_width for interval, _ in now])
    assert told == pytest.approx(seen, rel=0.03)
    assert before != pytest.approx(seen, rel=0.03)  # leaving it as it is would be noticed
    if target == "pool":
        assert [step.what for step in now[0][1].next] == ["labels"]
        assert now[0][1].items == 0
        return
    more = [of(values(s, N, POOL + 1000))[0].half_width for s in range(200, 400)]
    told = np.mean([ledger.next[1].half_width for _, ledger in now])
    assert told == pytest.approx(np.mean(more), rel=0.03)


def test_reruns_of_a_judge_come_true():
    now = [of(values(s, votes=2)) for s in range(200)]
    later = np.mean([of(values(s, votes=5))[0].half_width for s in range(200)])
    told = np.mean([ledger.next[2].half_width for _, ledger in now])
    before = np.mean([interval.half_width for interval, _ in now])
    assert told == pytest.approx(later, rel=0.05)
    assert before > 1.1 * later


def test_clusters_have_a_part_of_their_own():
    rng = np.random.default_rng(4)
    code = np.repeat(np.arange(200), 4)
    truth = rng.normal(size=200)[code] + 2 * rng.normal(size=800)
    human = np.where(code < 50, truth, np.nan)
    items = JudgedItems(
        ids=tuple(map(str, range(800))),
        human=human,
        judge=truth + 0.5 * rng.normal(size=800),
        clusters=tuple(map(str, code)),
    )
    report = judge_items_with_intervals(items, config=JudgedConfig())
    ledger = report.means[0].ledger
    assert ledger.within_clusters == pytest.approx(ledger.items, rel=0.6)  # 2²/4 against 1
    assert ledger.items + ledger.within_clusters + ledger.labels == pytest.approx(1)


def test_nothing_is_divided_where_nothing_is_left():
    found = values(0, 20, 0)
    assert of(found)[1] is None  # every item labelled
    few = values(0, 9)
    assert ledger_of(few, mean_interval(few.y, few.f, few.f_unlabeled, bounds=(0, 10))) is None
