from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rag_sourcebias.core.completions import JudgedItems
from rag_sourcebias.core.errors import DataError, InsufficientDataError
from rag_sourcebias.stats.means import mean_interval
from rag_sourcebias.stats.regression import fit_regression
from rag_sourcebias.stats.samples import JudgedSample
from rag_sourcebias.stats.strata import draw_items, item_strata


def items(judge, **columns):
    columns.setdefault("human", np.full(len(judge), np.nan))
    return JudgedItems(ids=tuple(map(str, range(len(judge)))), judge=np.asarray(judge), **columns)


def test_strata_are_quantiles_of_the_judge_value():
    judge = np.random.default_rng(0).permutation(100.0 * np.arange(60))
    strata = item_strata(items(judge), 3)
    assert strata.sizes.tolist() == [20, 20, 20]
    assert np.array_equal(strata.stratum, judge.astype(int) // 2000)
    assert not np.array_equal(strata.stratum, np.arange(60) // 20)


def test_equal_values_stay_together_and_unjudged_items_stand_alone():
    judge = np.array([0.0] * 10 + [1.0] * 87 + [np.nan] * 3)
    strata = item_strata(items(judge), 5)
    assert strata.sizes.tolist() == [10, 87, 3]
    assert item_strata(items(np.r_[judge, 2.0]), 5).sizes.tolist() == [10, 88, 3]
    assert item_strata(items(np.full(9, np.nan)), 5).sizes.tolist() == [9]
    lonely = item_strata(items(np.r_[-1.0, judge[:97], np.nan]), 50)
    assert lonely.sizes.min() >= 2


def test_clusters_are_units_and_groups_are_cut_apart():
    judge = np.arange(120.0)
    names = tuple("ab"[i % 2] for i in range(120))
    own = item_strata(items(judge, groups=names), 2)
    assert own.sizes.tolist() == [30, 30, 30, 30]
    assert [own.part[i] for i in (0, 1)] == [0, 1]
    assert {*own.stratum[::2].tolist()} == {0, 1}
    questions = tuple(str(i // 2) for i in range(120))
    whole = item_strata(items(judge, groups=names, clusters=questions), 2)
    assert whole.sizes.tolist() == [30, 30]
    assert np.array_equal(whole.unit[::2], whole.unit[1::2])


@pytest.mark.parametrize(("n", "drawn"), [(10, [10]), (14, [5, 9]), (30, [10, 20]), (60, [20, 40])])
def test_a_rare_value_gets_more_than_its_share(n, drawn):
    judge = np.repeat([0.0, 1.0], [80, 320])
    found = draw_items(items(judge), n, rng=1)
    assert found.drawn.tolist() == drawn
    assert len(found.rows) == n
    if len(drawn) > 1:
        assert np.count_nonzero(judge[found.rows] == 0) == drawn[0]


def test_every_item_has_the_chance_that_is_told():
    rng = np.random.default_rng(3)
    judge = np.where(rng.random(90) < 0.2, 0.0, 1.0)
    judge[:4] = np.nan
    taken = np.zeros(90)
    runs = 3000
    for _ in range(runs):
        found = draw_items(items(judge), 20, rng=rng)
        taken[found.rows] += 1
    strata = found.strata
    chance = (found.drawn / strata.sizes)[strata.stratum]
    error = np.sqrt(chance * (1 - chance) / runs)
    assert np.all(np.abs(taken / runs - chance) < 4.5 * error + 1e-12)
    assert np.any(np.abs(taken / runs - 20 / 90) > 4.5 * error)  # a random draw is another one


def test_items_labelled_before_are_part_of_the_draw():
    rng = np.random.default_rng(4)
    judge = rng.normal(size=300)
    human = np.full(300, np.nan)
    before = rng.choice(300, 20, replace=False)
    human[before] = 1.0
    found = draw_items(items(judge, human=human), 40, rng=5)
    assert len(found.rows) == 40
    assert np.isin(before, found.rows).all()
    assert not np.isin(before, draw_items(items(judge), 40, rng=5).rows).all()


def test_whole_clusters_are_drawn():
    judge = np.random.default_rng(6).normal(size=300)
    questions = tuple(str(i // 3) for i in range(300))
    found = draw_items(items(judge, clusters=questions), 60, rng=0)
    assert found.drawn.sum() == 20
    assert np.bincount(found.rows // 3)[np.unique(found.rows // 3)].tolist() == [3] * 20


def test_refusals():
    many = items(np.arange(100.0))
    with pytest.raises(DataError, match="101 items to label, but only 100"):
        draw_items(many, 101, rng=0)
    with pytest.raises(InsufficientDataError, match="needs 10 items, about 10 items") as caught:
        draw_items(many, 9, rng=0)
    assert caught.value.n_needed == 10
    three = replace(many, groups=tuple("abc"[i % 3] for i in range(100)))
    with pytest.raises(InsufficientDataError, match="10 items of each of 3 groups, about 30"):
        draw_items(three, 29, rng=0)
    fives = replace(many, clusters=tuple(str(i // 5) for i in range(100)))
    with pytest.raises(InsufficientDataError, match="10 clusters, about 50 items"):
        draw_items(fives, 49, rng=0)
    done = replace(many, human=np.where(np.arange(100) < 30, 1.0, np.nan))
    with pytest.raises(DataError, match="but 30 are labelled already; ask for more"):
        draw_items(done, 30, rng=0)
    with pytest.raises(DataError, match="strata of their own, such as 'x'"):
        draw_items(replace(many, strata=("x",) * 100), 30, rng=0)


def test_within_strata_the_variance_is_that_of_stratified_means():
    """With a judge that is constant within strata: Σ W² s²/k, the literal definition."""
    rng = np.random.default_rng(7)
    stratum = np.repeat([0, 1, 2], [4, 7, 12])
    pool = np.repeat([0, 1, 2], [100, 200, 300])
    y = rng.normal(stratum, 1.0 + stratum)
    sample = JudgedSample.build(
        y, stratum, pool, strata=stratum.tolist(), strata_unlabeled=pool.tolist()
    )
    fit = fit_regression(sample, "unlabeled")
    shares = np.bincount(pool) / len(pool)
    parts = [y[stratum == h] for h in range(3)]
    total = np.bincount(pool)
    expected = sum(
        w**2 * part.var(ddof=1) / len(part) * (1 + len(part) / size)
        for w, part, size in zip(shares, parts, total, strict=True)
    )
    assert fit.estimate[0] == pytest.approx(sum(shares * [part.mean() for part in parts]))
    assert fit.covariance[0, 0] == pytest.approx(expected)
    assert fit.degrees == len(y) - 3
    whole = fit_regression(JudgedSample.build(y, stratum, pool), "unlabeled")
    assert whole.covariance[0, 0] != pytest.approx(expected, rel=0.01)


def test_clusters_of_one_item_are_single_items():
    rng = np.random.default_rng(8)
    stratum = np.repeat([0, 1], [6, 14])
    y, pool = rng.normal(stratum, 1.0), np.repeat([0.0, 1.0], [60, 140])
    strata = {"strata": stratum.tolist(), "strata_unlabeled": pool.astype(int).tolist()}
    clusters = {
        "clusters": list(range(20)),
        "clusters_unlabeled": list(range(20, 220)),
    }
    alone = mean_interval(y, stratum, pool, **strata)
    single = mean_interval(y, stratum, pool, **strata, **clusters)
    assert single.half_width == pytest.approx(alone.half_width, rel=0.02)
    assert single.estimate == pytest.approx(alone.estimate)
