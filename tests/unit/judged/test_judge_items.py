import dataclasses
import math
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from judged_reports import mean_of
from scipy.stats import binom, hypergeom

from rag_sourcebias.core.completions import JudgedItems
from rag_sourcebias.core.errors import DataError, InsufficientDataError
from rag_sourcebias.infer.findings import InferCode
from rag_sourcebias.infer.judged import compare_systems, mean_interval, unpaired_difference_interval
from rag_sourcebias.infer.means import normal_quantile
from rag_sourcebias.infer.samples import how_drawn, residual_share
from rag_sourcebias.judged.audit import (
    JudgedValues,
    judge_items_with_intervals,
    labels_saved,
)
from rag_sourcebias.judged.data import JudgedConfig
from rag_sourcebias.judged.page import first

FAST = JudgedConfig()


def answers(n=300, labeled=60, seed=0, missing=0):
    """Three systems answer the same questions; the judge flatters the third."""
    rng = np.random.default_rng(seed)
    ease = rng.normal(0, 0.5, n)
    ids, human, judge, groups, clusters = [], [], [], [], []
    known = set(rng.choice(n, labeled, replace=False).tolist())
    for code, (system, level) in enumerate((("a", 3.0), ("b", 3.4), ("c", 2.6))):
        truth = level + ease + rng.normal(0, 0.4, n)
        seen = truth + (1.0 if system == "c" else 0.0) + rng.normal(0, 0.3, n)
        for q in range(n):
            ids.append(f"{q}-{system}")
            human.append(truth[q] if q in known else np.nan)
            judge.append(np.nan if code == 0 and q < missing else seen[q])
            groups.append(system)
            clusters.append(f"q{q}")
    return JudgedItems(
        ids=tuple(ids),
        human=np.array(human),
        judge=np.array(judge),
        groups=tuple(groups),
        clusters=tuple(clusters),
    )


def test_each_system_is_corrected_by_its_own_labels():
    items = answers()
    report = judge_items_with_intervals(items, measure="quality", config=FAST)
    for system in "abc":
        found = mean_of(report, "quality", system)
        rows = np.array(items.groups) == system
        y, f = items.human[rows], items.judge[rows]
        known = ~np.isnan(y)
        assert found.interval == mean_interval(y[known], f[known], f[~known])
        assert found.judge_alone == pytest.approx(f.mean())
    assert (
        mean_of(report, "quality", "c").judge_alone > mean_of(report, "quality", "c").interval.upper
    )
    assert mean_of(report, "quality", "a").labels_saved > 0


def test_systems_on_the_same_questions_are_compared_in_pairs():
    items = answers()
    report = judge_items_with_intervals(items, config=FAST)
    assert [(c.first, c.second) for c in report.comparisons] == [
        ("a", "b"), ("a", "c"), ("b", "c"),
    ]  # fmt: skip
    human, judge = (values.reshape(3, -1).T for values in (items.human, items.judge))
    known = ~np.isnan(human[:, 0])
    expected = compare_systems(human[known], judge[known], judge[~known])
    for c, gap, low, high in zip(
        report.comparisons, expected.difference, expected.lower, expected.upper, strict=True
    ):
        assert (c.interval.estimate, c.interval.lower, c.interval.upper) == (gap, low, high)
        assert c.family == 3
        first, second = "abc".index(c.first), "abc".index(c.second)
        gaps = (values[known, first] - values[known, second] for values in (human, judge))
        assert c.interval.correlation == pytest.approx(np.corrcoef(*gaps)[0, 1])
    assert report.comparisons[2].interval.lower > 0  # the flattered system is worse


def test_the_labels_that_tell_the_two_best_apart_narrow_the_interval_by_their_root():
    items = answers(labeled=14)
    (ranks,) = judge_items_with_intervals(items, config=FAST).ranks
    human, judge = (values.reshape(3, -1).T for values in (items.human, items.judge))
    known = ~np.isnan(human[:, 0])
    found = compare_systems(human[known], judge[known], judge[~known])
    top = {"abc".index(name) for name in ranks.systems[:2]}
    place = [{a, b} == top for a, b in zip(found.first, found.second, strict=True)].index(True)
    half = (found.upper[place] - found.lower[place]) / 2
    needed = math.ceil(14 * (half / abs(found.difference[place])) ** 2)
    assert 14 < needed <= 280
    assert ranks.to_tell == needed


def test_items_without_a_judge_value_are_kept_and_counted():
    items = answers(missing=30)
    report = judge_items_with_intervals(items, config=FAST)
    assert report.n_judge_missing == 30
    assert "no value for 30 of 900 items, first '0-a'" in report.warnings[0]
    assert mean_of(report, "score", "a").interval.n_labeled == 60
    y, f = items.human[:300], items.judge[:300]
    filled, known = np.where(np.isnan(f), np.nanmean(f), f), ~np.isnan(y)
    wanted = mean_interval(y[known], filled[known], filled[~known])
    assert mean_of(report, "score", "a").interval.estimate == pytest.approx(wanted.estimate)


def test_labels_chosen_by_the_judge_are_noticed():
    items = answers()
    human = np.where(items.judge > 3.5, 3.0, np.nan)
    human[~np.isnan(human)] += np.random.default_rng(0).normal(size=np.sum(items.judge > 3.5))
    chosen = JudgedItems(ids=items.ids, human=human, judge=items.judge)
    report = judge_items_with_intervals(chosen, config=FAST)
    assert any("do not look drawn at random" in warning for warning in report.warnings)


def repeated(n=60, copies=3):
    """Each of two systems answers every question several times."""
    rng = np.random.default_rng(2)
    truth = (rng.random(2 * n * copies) < 0.6).astype(float)
    judge = np.where(rng.random(len(truth)) < 0.8, truth, 1 - truth)
    question = np.tile(np.repeat(np.arange(n), copies), 2)
    return JudgedItems(
        ids=tuple(map(str, range(len(truth)))),
        human=np.where(question < 25, truth, np.nan),
        judge=judge,
        groups=tuple(np.repeat(["a", "b"], n * copies).tolist()),
        clusters=tuple(f"q{q}" for q in question),
    )


def test_refusals():
    items = answers()
    nobody = JudgedItems(ids=items.ids, human=np.full(900, np.nan), judge=items.judge)
    with pytest.raises(InsufficientDataError, match="none of the 900 items has a human label"):
        judge_items_with_intervals(nobody, config=FAST)
    silent = JudgedItems(ids=items.ids, human=items.human, judge=np.full(900, np.nan))
    with pytest.raises(DataError, match="none of the 900 items has a judge value"):
        judge_items_with_intervals(silent, config=FAST)
    with pytest.raises(DataError, match="outside the scale"):
        judge_items_with_intervals(items, bounds=(0, 3), config=FAST)
    lonely = answers(labeled=1)
    with pytest.raises(InsufficientDataError, match="group 'a': 1 human label"):
        judge_items_with_intervals(lonely, config=FAST)


def judged(y, f, n, **config):
    """Return the one mean of binary items of which the first ``n`` are labelled."""
    human = np.where(np.arange(len(y)) < n, y, np.nan)
    items = JudgedItems(ids=tuple(map(str, range(len(y)))), human=human, judge=f)
    (mean,) = judge_items_with_intervals(items, config=JudgedConfig(**config)).means
    return mean


def test_a_perfect_judge_saves_less_than_the_pool():
    truth = np.random.default_rng(0).integers(0, 2, 200).astype(float)
    few, more = (judged(truth, truth, n, target="pool") for n in (12, 100))
    widths = [mean.labels_alone.half_width / mean.interval.half_width for mean in (few, more)]
    for mean, n, ratio in zip((few, more), (12, 100), widths, strict=True):
        share = n / 200
        at_most = round(n / (share + (1 - share) / ratio**2) - n)
        assert 0 <= mean.labels_saved < at_most < 200 - n
    assert more.labels_saved > 0


def test_savings_are_cautious_and_none_where_labels_tell_nothing():
    rng = np.random.default_rng(4)
    y = (rng.random(500) < 0.7).astype(float)
    f = np.where(rng.random(500) < 0.85, y, 1 - y)
    for n in (60, 200):
        mean = judged(y, f, n)
        by_width = n * ((mean.labels_alone.half_width / mean.interval.half_width) ** 2 - 1)
        assert 0 < mean.labels_saved < by_width
    agreed = judged(np.ones(500), f, 15)
    assert agreed.labels_saved == 0
    assert judged(y, f, 9).labels_saved == 0
    for useless in (rng.random(500), rng.integers(0, 2, 500).astype(float)):
        assert judged(y, useless, 60).labels_saved <= 0


@pytest.mark.parametrize("target", ["population", "pool"])
def test_saved_labels_by_their_definition(target):
    """Widths fall with the square root of the labels; the judge explains its lower 80 % bound."""
    rng = np.random.default_rng(6)
    y = rng.normal(size=400)
    f = y + rng.normal(0, 0.6, 400)
    n, labeled = 50, 50 / 400
    mean = judged(y, f, n, target=target)
    left, error = residual_share(y[:n], f[:n])
    most = left * math.exp(normal_quantile(0.8) * error)
    by_items = labeled if target == "population" else 0  # more labels leave the items' own part
    times = (mean.labels_alone.half_width / mean.interval.half_width) ** 2
    times *= (1 - by_items) * left + by_items
    times = min(times, 1) / ((1 - by_items) * most + by_items)
    part = labeled if target == "pool" else 0
    assert mean.labels_saved == round(n / (part + (1 - part) / times) - n) > 0


def test_an_interval_of_a_point_saves_no_number_of_labels():
    alike = np.tile([0.0, 1.0], 50)
    values = JudgedValues(np.where(np.arange(100) < 40, alike, np.nan), alike)
    wide = judged(alike, alike, 40).labels_alone
    point = dataclasses.replace(wide, lower=wide.estimate, upper=wide.estimate)
    assert labels_saved(point, wide, values) is None
    assert labels_saved(wide, point, values) is None
    half = dataclasses.replace(wide, lower=(wide.lower + wide.estimate) / 2, upper=wide.estimate)
    for n in (9, 10):
        narrow = dataclasses.replace(half, n_labeled=n)
        assert (labels_saved(narrow, wide, values) > 0) == (n == 10)


def test_savings_by_cluster_are_more_cautious():
    rng = np.random.default_rng(5)
    y = np.repeat(rng.normal(size=120), 4)
    f = y + np.repeat(rng.normal(0, 0.7, 120), 4)
    single, of_fours = (
        residual_share(y[:80], f[:80], clusters=clusters) for clusters in (None, np.arange(80) // 4)
    )
    assert single[0] == of_fours[0]
    assert of_fours[1] == pytest.approx(2 * single[1])


def test_how_labels_lie_in_clusters_is_told():
    rng = np.random.default_rng(0)
    code = np.repeat(np.arange(100), 5)
    whole = np.isin(code, rng.choice(100, 20, replace=False))
    single = np.isin(np.arange(500), rng.choice(500, 100, replace=False))
    two_steps = whole & (rng.random(500) < 0.6)
    found = [how_drawn(code, labeled) for labeled in (whole, single, two_steps)]
    assert found == ["clusters", "items", "both"]
    wrong = sum(
        how_drawn(code, np.isin(np.arange(500), rng.choice(500, 60, replace=False))) != "items"
        for _ in range(500)
    )
    assert wrong <= 5  # 3 standard errors, one-sided


def test_single_draws_from_a_finite_set_are_not_clusters():
    rng = np.random.default_rng(3)
    n, code = 500, np.repeat(np.arange(100), 5)
    truth = np.repeat(rng.normal(size=100), 5) + 0.3 * rng.normal(size=n)
    judge = truth + 0.5 * rng.normal(size=n)
    human = np.full(n, np.nan)
    chosen = rng.choice(n, 100, replace=False)
    human[chosen] = truth[chosen]
    items = JudgedItems(
        ids=tuple(map(str, range(n))), human=human, judge=judge, clusters=tuple(map(str, code))
    )
    alone = dataclasses.replace(items, clusters=None)
    pool = JudgedConfig(target="pool")
    both = [judge_items_with_intervals(x, config=pool) for x in (items, alone)]
    assert both[0].means == both[1].means
    wide, short = (
        mean_of(judge_items_with_intervals(x, config=FAST), "score") for x in (items, alone)
    )
    assert wide.interval.half_width > short.interval.half_width  # of a population they are clusters


def test_crc_of_items_moves_probabilities():
    rng = np.random.default_rng(1)
    truth = (rng.random(300) < 0.6).astype(float)
    judge = np.clip(0.5 + 0.5 * (truth - 0.5) + 0.2 * rng.normal(size=300), 0, 1)
    human = np.where(np.arange(300) < 100, truth, np.nan)
    items = JudgedItems(ids=tuple(map(str, range(300))), human=human, judge=judge)
    config = JudgedConfig(method="crc", target="unlabeled")
    found = judge_items_with_intervals(items, config=config).means[0].interval
    assert (found.target, found.method.code) == ("unlabeled", InferCode.CRC)
    assert found.lower < truth[100:].mean() < found.upper
    halves = replace(items, groups=("a", "b") * 150)
    apart = judge_items_with_intervals(halves, config=config)
    assert len(apart.means) == 2
    assert apart.comparisons == ()
    assert "groups are not compared: CRC has no interval of a difference" in apart.warnings
    with pytest.raises(DataError, match="between 0 and 1, and one is"):
        judge_items_with_intervals(answers(), config=config)
    with pytest.raises(DataError, match="independent, no clusters"):
        judge_items_with_intervals(repeated(), config=config)


def _apart(groups, n=100, labeled=30, seed=0):
    """Right and wrong answers to questions of each group's own."""
    rng = np.random.default_rng(seed)
    y = (rng.random(groups * n) < 0.7).astype(float)
    known = np.tile(np.arange(n) < labeled, groups)
    group = np.repeat([f"s{k}" for k in range(groups)], n)
    return JudgedItems(
        ids=tuple(map(str, range(len(y)))),
        human=np.where(known, y, np.nan),
        judge=np.where(rng.random(len(y)) < 0.15, 1 - y, y),
        groups=tuple(group.tolist()),
        clusters=tuple(f"q{i}" for i in range(len(y))),
    )


def test_groups_without_common_items_are_compared_as_independent_and_said_so():
    two, three = (judge_items_with_intervals(_apart(k), config=FAST) for k in (2, 3))
    assert any("pairs need each group once in every cluster" in w for w in two.warnings)
    assert not any(
        "independent" in w for w in judge_items_with_intervals(answers(), config=FAST).warnings
    )
    assert [c.family for c in three.comparisons] == [3, 3, 3]
    # the first two groups are the same data: among three differences each is wider
    same = [
        judge_items_with_intervals(items, config=FAST).comparisons[0].interval
        for items in (_apart(3), _apart(3).take(np.arange(200)))
    ]
    assert same[0].estimate == same[1].estimate
    assert same[0].half_width > 1.1 * same[1].half_width


def test_independent_differences_hold_all_at_once():
    """Four equal groups: some of six is missed in 5 % at most; without the family far more."""
    missed = np.zeros(2)
    for run in range(300):
        items = _apart(4, n=60, labeled=30, seed=run)
        y, f = items.human.reshape(4, 60), items.judge.reshape(4, 60)
        means = [mean_interval(y[k, :30], f[k, :30], f[k, 30:]) for k in range(4)]
        for place, family in enumerate((6, 1)):
            pairs = combinations(means, 2)
            found = [unpaired_difference_interval(*pair, family=family) for pair in pairs]
            missed[place] += any(interval.excludes(0) for interval in found)
    assert binom.sf(missed[0] - 1, 300, 0.05) >= 0.001
    assert binom.sf(missed[1] - 1, 300, 0.05) < 0.001


def test_the_first_screen_says_who_may_be_best_in_order_and_what_to_label_next():
    report = judge_items_with_intervals(answers(labeled=30), measure="quality", config=FAST)
    screen, ranks = first(report), report.ranks[0]
    places = dict(zip(ranks.systems, zip(ranks.best, ranks.worst, strict=True), strict=True))
    assert [row.name for row in screen.rows] == sorted(
        places, key=lambda s: (places[s], -mean_of(report, "quality", s).interval.estimate)
    )
    for row in screen.rows:
        best, worst = places[row.name]
        assert row.text.endswith(f"#{best}" if best == worst else f"#{best}–{worst}")
        assert (row.bar.side == "baseline") == (best == 1)
    ranked = (replace(ranks, best=(1, 1, 3), to_tell=75),)
    open_ = replace(report, ranks=ranked, inputs="answers.csv")
    said = first(open_).next
    assert "135 more labels would tell" in str(said)  # 45 more questions, answered by three systems
    assert said.command.endswith("labels answers.csv -n 225 --output sheet.csv")
    far = first(replace(open_, ranks=(replace(ranks, best=(1, 1, 3), to_tell=None),)))
    assert "too close for labels" in str(far.next)


def test_single_draws_reach_as_many_clusters_as_chance_has_it():
    """40 of 200 items in 50 clusters of 4: the hypergeometric mean less three errors at least."""
    reached = hypergeom.sf(0, 200, 4, 40)
    least = math.ceil(50 * reached - 3 * math.sqrt(50 * reached * (1 - reached)))
    clusters = np.arange(200) // 4
    for n_clusters, drawn in ((least, "items"), (least - 1, "both")):
        one_each = 4 * np.arange(n_clusters)
        more = np.concatenate([one_each + 1, one_each + 2])[: 40 - n_clusters]
        labeled = np.isin(np.arange(200), [*one_each, *more])
        assert labeled.sum() == 40
        assert how_drawn(clusters, labeled) == drawn
