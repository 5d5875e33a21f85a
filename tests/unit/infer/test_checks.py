from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from rag_sourcebias.core.completions import JudgedItems
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.infer.judged import difference_interval
from rag_sourcebias.infer.samples import (
    JudgedSample,
    _shape_check,
    check_items,
    check_random_labels,
    check_scale,
    how_drawn,
    is_constant,
    residual_share,
)


def test_scale_names_how_many_and_which():
    values = np.array([1.0, np.nan, 5.0, 7.0, -1.0])
    check_scale(values, -1, 7, ids="abcde")
    with pytest.raises(DataError) as error:
        check_scale(values, 1, 5, ids="abcde")
    assert str(error.value) == (
        "2 human label(s) outside the scale 1 … 5, first 7 of item 'd'; correct them, or state "
        "the scale they are on"
    )


def checked(labeled, unlabeled, labeled_groups=(), unlabeled_groups=()):
    """Notes on labelled items beside others."""
    values = np.concatenate([labeled, unlabeled])
    groups = [*labeled_groups, *unlabeled_groups] or None
    return check_random_labels(values, np.arange(len(values)) < len(labeled), groups=groups)


def test_constant_judges():
    assert is_constant(np.array([0.3, np.nan, 0.1 + 0.2]))
    assert is_constant(np.full(3, np.nan))
    assert is_constant(np.full(2, 1e9))
    assert not is_constant(np.array([0.3, 0.31]))


@pytest.mark.parametrize("seed", range(5))
def test_distribution_gap_is_that_of_scipy(seed):
    rng = np.random.default_rng(seed)
    for x, y in [
        (rng.normal(size=30), rng.normal(size=400)),
        (rng.normal(size=400), rng.normal(0.5, 1, size=60)),
        (rng.integers(0, 4, 25) * 1.0, rng.integers(0, 5, 100) * 1.0),
    ]:
        p, note = _shape_check(x, y)
        exact = stats.ks_2samp(x, y, method="asymp")
        assert f"{exact.statistic:.2g})" in note
        assert p == pytest.approx(exact.pvalue, abs=0.06)


POOLS = {
    "normal": lambda rng: rng.normal(size=2000),
    "skewed": lambda rng: rng.exponential(size=2000),
    "heavy tails": lambda rng: rng.standard_cauchy(2000),
    "rare verdict": lambda rng: (rng.random(2000) < 0.02) * 1.0,
    "even verdict": lambda rng: (rng.random(2000) < 0.5) * 1.0,
    "grades": lambda rng: rng.choice(4, 2000, p=[0.6, 0.25, 0.1, 0.05]) * 1.0,
}


@pytest.mark.parametrize("name", POOLS)
@pytest.mark.parametrize("n", [10, 40, 1500])
def test_false_alarms_are_rare(name, n):
    """At most 1 % by design; 300 draws may show up to 9 (P of more at 1 %: 0.0003)."""
    rng = np.random.default_rng(n)
    pool = POOLS[name](rng)
    groups = rng.choice(["a", "b", "c", "rare"], 2000, p=[0.6, 0.29, 0.1, 0.01])
    alarms = 0
    for _ in range(300):
        order = rng.permutation(2000)
        a, b = order[:n], order[n:]
        alarms += bool(
            checked(
                pool[a],
                pool[b],
                labeled_groups=groups[a].tolist(),
                unlabeled_groups=groups[b].tolist(),
            )
        )
    assert alarms <= 9


def test_a_shift_is_found_and_named():
    rng = np.random.default_rng(0)
    pool = rng.normal(size=5000)
    easy = np.argsort(-pool + rng.normal(size=5000))  # labelled first: what the judge liked
    notes = checked(pool[easy[:50]], pool[easy[50:]])
    (note,) = notes
    assert note.startswith("the judge values of labelled items (mean 1.")
    assert "and unlabelled items (mean -0.022" in note
    assert "do not look drawn at random" in note


def test_groups_are_named_even_where_every_expected_count_is_small():
    rng = np.random.default_rng(3)
    systems = [f"s{i % 12}" for i in range(1200)]
    values = rng.normal(size=1220)
    notes = checked(values[:20], values[20:], labeled_groups=["s3"] * 20, unlabeled_groups=systems)
    assert len(notes) == 1
    assert notes[0].startswith(
        "group 's3' makes up 100.0% of the labelled and 8.3% of the unlabelled items (p = "
    )


def test_silent_where_nothing_can_be_said():
    few, many = np.arange(7.0) + 100, np.zeros(50)
    assert checked(few, many) == ()
    assert checked(np.ones(20), np.ones(30)) == ()
    assert checked(np.full(20, np.nan), many) == ()
    one = {"labeled_groups": ["a"] * 20, "unlabeled_groups": ["a"] * 30}
    assert checked(np.ones(20), np.ones(30), **one) == ()


def clustered_items(rng, **options):
    """60 of 300 questions labelled, with all their 10 answers; answers to a question are alike."""
    question = np.repeat(np.arange(300), 10)
    judge = np.repeat(rng.normal(size=300), 10) + rng.normal(0, 0.3, 3000)
    chosen = np.isin(question, rng.permutation(300)[:60])
    return JudgedItems(
        ids=tuple(map(str, range(3000))),
        human=np.where(chosen, 1.0, np.nan),
        judge=judge,
        clusters=tuple(map(str, question)),
        **options,
    )


def test_clusters_labelled_as_a_whole_are_compared_as_a_whole():
    rng = np.random.default_rng(5)
    alarms = naive = 0
    for _ in range(100):
        items = clustered_items(rng)
        alarms += bool(check_items(items))
        naive += bool(checked(items.judge[items.labeled], items.judge[~items.labeled]))
    assert alarms <= 4
    assert naive >= 20
    easy = np.where(items.judge > 1, 1.0, np.nan)
    assert check_items(replace(items, human=easy))


def test_items_without_clusters_use_groups():
    rng = np.random.default_rng(6)
    n = 500
    items = JudgedItems(
        ids=tuple(map(str, range(n))),
        human=np.where(np.arange(n) < 60, 0.0, np.nan),
        judge=rng.normal(size=n),
        groups=tuple("a" if i < 50 else "b" for i in range(n)),
    )
    (note,) = check_items(items)
    assert note.startswith("group 'a' makes up 83.3% of the labelled and 0.0% of the unlabelled")
    assert check_items(replace(items, human=np.zeros(n))) == ()
    assert check_items(replace(items, human=np.full(n, np.nan))) == ()


def test_a_million_items_take_a_fraction_of_a_second():
    rng = np.random.default_rng(4)
    pool = rng.normal(size=1_000_000)
    checked(pool[:50], pool[50:100])  # import scipy.special
    start = time.perf_counter()
    assert checked(pool[:200], pool[200:]) == ()
    assert time.perf_counter() - start < 1.0  # about 0.1 s on a quiet machine


def test_clusters_of_both_sides_have_one_code_each():
    y = np.arange(5.0)
    sample = JudgedSample.build(
        y, y, np.arange(6.0), clusters=list("bbaac"), clusters_unlabeled=list("xacxyb")
    )
    assert sample.cluster.tolist() == [1, 1, 0, 0, 2]
    known, other = sample.cluster_unlabeled[[1, 2, 5]], sample.cluster_unlabeled[[0, 3, 4]]
    assert known.tolist() == [0, 2, 1]
    assert other.tolist() == [3, 3, 4]


@pytest.mark.parametrize(("n", "n_pool"), [(4, 6), (5, 5)])
def test_clusters_are_as_many_as_the_items(n, n_pool):
    y = np.arange(5.0)
    with pytest.raises(DataError, match=f"{n} and {n_pool} clusters for 5 labelled and 6 other"):
        JudgedSample.build(
            y, y, np.arange(6.0), clusters=range(n), clusters_unlabeled=range(n_pool)
        )


def test_what_a_judge_misses_does_not_depend_on_the_scale_of_people():
    y = np.repeat([0.0, 1.0], 15)
    for judge in (y, y + np.random.default_rng(0).normal(size=30)):
        assert residual_share(4 * y + 1, judge) == pytest.approx(residual_share(y, judge))


def test_items_that_are_all_labelled_were_drawn_one_by_one():
    assert how_drawn(np.arange(6), np.ones(6, dtype=bool)) == "items"


def test_a_judge_who_is_right_on_most_differences_may_part_from_people_on_others():
    """What 10 of 14 labels show is no more than that; a judge who is nearly right shows more."""
    rng = np.random.default_rng(0)
    y = rng.integers(1, 6, (14, 2)).astype(float)
    judge, pool = y.copy(), rng.integers(1, 6, (200, 2)).astype(float)
    judge[:4, 0] += 2.0
    right = difference_interval(y, judge, pool).half_width
    nearly = difference_interval(y, judge + rng.normal(0, 1e-3, y.shape), pool).half_width
    assert right > 1.15 * nearly
