import numpy as np
import pytest

from rag_sourcebias.core.completions import JudgedItems
from rag_sourcebias.core.errors import DataError, InsufficientDataError
from rag_sourcebias.judged.audit import judge_items_with_intervals
from rag_sourcebias.judged.data import JudgedConfig, JudgedReport
from rag_sourcebias.judged.plan import residual_share
from rag_sourcebias.stats.means import difference_interval, mean_interval

FAST = JudgedConfig(coverage_runs=0)


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
        found = report.mean("quality", system)
        rows = np.array(items.groups) == system
        y, f = items.human[rows], items.judge[rows]
        known = ~np.isnan(y)
        assert found.interval == mean_interval(y[known], f[known], f[~known])
        assert found.judge_alone == pytest.approx(f.mean())
    assert report.mean("quality", "c").judge_alone > report.mean("quality", "c").interval.upper
    assert report.mean("quality", "a").labels_saved > 0


def test_systems_on_the_same_questions_are_compared_in_pairs():
    items = answers()
    report = judge_items_with_intervals(items, config=FAST)
    assert [(c.first, c.second) for c in report.comparisons] == [
        ("a", "b"), ("a", "c"), ("b", "c"),
    ]  # fmt: skip
    human = items.human.reshape(3, -1)[[1, 2]].T
    judge = items.judge.reshape(3, -1)[[1, 2]].T
    known = ~np.isnan(human[:, 0])
    expected = difference_interval(human[known], judge[known], judge[~known])
    assert report.comparisons[2].interval == expected
    assert report.comparisons[2].interval.lower > 0  # the flattered system is worse


def test_items_without_a_judge_value_are_kept_and_counted():
    items = answers(missing=30)
    report = judge_items_with_intervals(items, config=FAST)
    assert report.n_judge_missing == 30
    assert "no value for 30 of 900 items, first '0-a'" in report.warnings[0]
    assert report.mean("score", "a").interval.n_labeled == 60
    worst = judge_items_with_intervals(items, config=FAST, missing="worst-case")
    mild, hull = report.mean("score", "a").interval, worst.mean("score", "a").interval
    assert hull.lower < mild.lower < mild.upper < hull.upper
    assert "worst case over 30" in str(hull)


def test_labels_chosen_by_the_judge_are_noticed():
    items = answers()
    human = np.where(items.judge > 3.5, 3.0, np.nan)
    human[~np.isnan(human)] += np.random.default_rng(0).normal(size=np.sum(items.judge > 3.5))
    chosen = JudgedItems(ids=items.ids, human=human, judge=items.judge)
    report = judge_items_with_intervals(chosen, config=FAST)
    assert any("do not look drawn at random" in warning for warning in report.warnings)


def test_curves_resample_the_labelled_items():
    config = JudgedConfig(coverage_runs=50)
    report = judge_items_with_intervals(answers(), config=config)
    sizes = {point.n for point in report.curves if point.system == "a"}
    assert min(sizes) == 10
    assert max(sizes) <= 60
    widths = {
        p.n: p.mean_width for p in report.curves if p.system == "a" and p.method == "regression"
    }
    assert widths[50] < widths[15]


def test_report_survives_json():
    import json

    report = judge_items_with_intervals(answers(), config=JudgedConfig(coverage_runs=20))
    again = JudgedReport.from_dict(json.loads(json.dumps(report.to_dict())))
    assert again.to_dict() == report.to_dict()


def test_refusals():
    items = answers()
    nobody = JudgedItems(ids=items.ids, human=np.full(900, np.nan), judge=items.judge)
    with pytest.raises(InsufficientDataError, match="none of the 900 items has a human label"):
        judge_items_with_intervals(nobody)
    silent = JudgedItems(ids=items.ids, human=items.human, judge=np.full(900, np.nan))
    with pytest.raises(DataError, match="none of the 900 items has a judge value"):
        judge_items_with_intervals(silent)
    with pytest.raises(DataError, match="outside the scale"):
        judge_items_with_intervals(items, bounds=(0, 3))
    lonely = answers(labeled=1)
    with pytest.raises(InsufficientDataError, match="group 'a': 1 human label"):
        judge_items_with_intervals(lonely)


def judged(y, f, n, **config):
    """Return the one mean of binary items of which the first ``n`` are labelled."""
    human = np.where(np.arange(len(y)) < n, y, np.nan)
    items = JudgedItems(ids=tuple(map(str, range(len(y)))), human=human, judge=f)
    (mean,) = judge_items_with_intervals(
        items, config=JudgedConfig(coverage_runs=0, **config)
    ).means
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
    useless = judged(y, rng.random(500), 60)
    assert useless.labels_saved <= 0


def test_savings_by_cluster_are_more_cautious():
    rng = np.random.default_rng(5)
    y = np.repeat(rng.normal(size=120), 4)
    f = y + np.repeat(rng.normal(0, 0.7, 120), 4)
    single, of_fours = (
        residual_share(y[:80], f[:80], clusters=clusters) for clusters in (None, np.arange(80) // 4)
    )
    assert single[0] == of_fours[0]
    assert of_fours[1] == pytest.approx(2 * single[1])
