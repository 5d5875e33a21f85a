"""Several judges of the same items: their mean, what they say beyond it, and what each adds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from judged_reports import mean_of

from rag_sourcebias.core.completions import JudgedItems, mean_judge
from rag_sourcebias.core.data import LabelDistributions, Qrels, Run
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.infer.judged import fit_regression, mean_interval
from rag_sourcebias.infer.means import t_quantile
from rag_sourcebias.infer.samples import JudgedSample, combine_judges
from rag_sourcebias.judged.audit import judge_items_with_intervals, judge_ranking_with_intervals
from rag_sourcebias.judged.crc import JudgedRanking, measure_bounds
from rag_sourcebias.judged.data import JudgedConfig


def world(seed=0, size=400, noises=(1.0, 1.0, 1.0), failures=0.0):
    rng = np.random.default_rng(seed)
    truth = rng.normal(3, 1, size)
    judges = np.stack([truth + rng.normal(0, noise, size) for noise in noises], axis=1)
    judges[rng.random(judges.shape) < failures] = np.nan
    return truth, judges


def items_of(truth, judges, n=40, **options):
    return JudgedItems.of_judges(
        ids=tuple(map(str, range(len(truth)))),
        human=np.where(np.arange(len(truth)) < n, truth, np.nan),
        judges={f"judge {j}": column for j, column in enumerate(judges.T)},
        **options,
    )


def test_the_mean_is_over_standardised_values_of_those_that_answered():
    _, judges = world(failures=0.3)
    judges[0] = np.nan
    z = (judges - np.nanmean(judges, axis=0)) / np.nanstd(judges, axis=0)
    wanted = [np.mean(row[~np.isnan(row)]) if not np.isnan(row).all() else np.nan for row in z]
    wanted = np.nanmean(judges, axis=0).mean() + np.nanstd(judges, axis=0).mean() * np.array(wanted)
    np.testing.assert_allclose(mean_judge(judges), wanted)
    assert np.isnan(mean_judge(judges)[0])


def test_scales_and_constant_judges_do_not_matter():
    _, judges = world()
    mean = mean_judge(judges)
    other = mean_judge(np.c_[100 * judges[:, 0] - 7, judges[:, 1:], np.full(len(judges), 5.0)])
    assert np.corrcoef(mean, other)[0, 1] == pytest.approx(1)
    assert np.corrcoef(mean, np.c_[100 * judges[:, 0], judges[:, 1:]].mean(axis=1))[0, 1] < 0.99
    same = mean_judge(np.full((9, 2), 4.0))
    np.testing.assert_allclose(same, 4.0)


def test_up_to_20_labels_an_interval_is_that_of_the_mean():
    truth, judges = world()
    mean = mean_judge(judges)
    for n in (10, 20):
        found = mean_interval(truth[:n], judges[:n], judges[n:])
        assert found == mean_interval(truth[:n], mean[:n], mean[n:])
    more = mean_interval(truth[:60], judges[:60], judges[60:])
    assert more.lower != mean_interval(truth[:60], mean[:60], mean[60:]).lower


def test_one_judge_column_is_one_judge():
    truth, judges = world()
    single = mean_interval(truth[:30], judges[:30, :1], judges[30:, :1])
    assert single == mean_interval(truth[:30], judges[:30, 0], judges[30:, 0])
    items = items_of(truth, judges[:, :1])
    assert items.judges is None
    np.testing.assert_array_equal(items.judge, judges[:, 0])


@pytest.mark.parametrize("p", [3, 36])
@pytest.mark.parametrize("n", [25, 60, 1000])
def test_the_penalty_grants_so_many_slopes(n, p):
    _, judges = world(size=3000, noises=np.linspace(0.5, 3, p))
    x, penalty = combine_judges(judges, n, n)
    wanted = min(n / 20 - 1, p - 1)
    extra, ridge = x[:, 1:], penalty[1:]
    assert extra.shape[1] == p - 1
    weights = n * extra.var(axis=0)
    assert np.sum(weights / (weights + ridge)) == pytest.approx(wanted, rel=1e-6)
    covariance = np.cov(extra.T, ddof=0)
    np.testing.assert_allclose(covariance, np.diag(np.diag(covariance)), atol=1e-9)


def test_a_penalised_fit_is_ridge_regression_with_the_items_left_out():
    truth, judges = world(noises=(0.5, 1, 2, 3))
    n = 50
    x, penalty = combine_judges(judges, n, n)
    sample = replace(JudgedSample.build(truth[:n], x[:n], x[n:]), penalty=penalty)

    def estimate(keep):
        design = np.c_[np.ones(len(keep)), x[keep]]
        gram = design.T @ design + np.diag(np.r_[0.0, penalty])
        return np.r_[1.0, x.mean(axis=0)] @ np.linalg.solve(gram, design.T @ truth[keep])

    found = fit_regression(sample, "pool", leverage=1.0)
    rows = np.arange(n)
    assert found.estimate[0] == pytest.approx(estimate(rows))
    left_out = np.array([estimate(np.delete(rows, i)) for i in rows])
    variance = np.sum((estimate(rows) - left_out) ** 2) * (1 - n / len(truth))
    assert found.covariance[0, 0] == pytest.approx(variance)
    design = np.c_[np.ones(n), x[:n]]
    gram = design.T @ design
    spent = np.trace(gram @ np.linalg.inv(gram + np.diag(np.r_[0.0, penalty])))
    assert found.degrees == pytest.approx(n - spent)
    assert t_quantile(0.975, found.degrees) < t_quantile(0.975, n - 5)


def test_failures_are_a_column_where_they_are_seen_often_enough():
    truth, judges = world()
    judges[::3, 0] = np.nan
    x, penalty = combine_judges(judges, 15, 15)
    np.testing.assert_allclose(x[:, 1], np.isnan(judges).mean(axis=1))
    assert penalty.tolist() == [0, 0]
    few = judges.copy()
    few[:11, 0] = 3.0  # one failure among 15 labels
    assert combine_judges(few, 15, 15)[0].shape[1] == 1
    # what an item was like can decide whether a judge fails on it
    hard = truth < 2.5
    judges[:, 0] = np.where(hard, np.nan, truth + 1)
    seen = mean_interval(truth[:40], judges[:40], judges[40:])
    filled = np.where(np.isnan(judges), np.nanmean(judges, axis=0), judges)
    unseen = mean_interval(truth[:40], filled[:40], filled[40:])
    assert seen.upper - seen.lower < 0.95 * (unseen.upper - unseen.lower)


def test_a_report_warns_of_judges_that_tell_nothing_or_answer_on_other_scales():
    truth, judges = world(noises=(0.5, 2.0))
    flat = np.c_[judges, 10 * judges[:, 0] + 0.01, np.full(len(truth), 2.0)]
    report = judge_items_with_intervals(items_of(truth, flat), config=JudgedConfig())
    assert any(w.startswith("1 of 4 judges gave the same value") for w in report.warnings)
    assert any("judges answer on different scales ('judge 0' " in w for w in report.warnings)
    alike = judge_items_with_intervals(items_of(truth, judges), config=JudgedConfig())
    assert not any("judges" in w for w in alike.warnings)


def test_wrong_judges_are_refused():
    truth, judges = world()
    with pytest.raises(DataError, match=r"judge column 1 .* has no value"):
        mean_interval(truth[:30], judges[:30] * [1, np.nan, 1], judges[30:] * [1, np.nan, 1])
    with pytest.raises(DataError, match="infinite"):
        mean_interval(truth[:30], judges[:30] * [1, np.inf, 1], judges[30:])
    with pytest.raises(DataError, match="yhat has 3 columns, yhat_unlabeled shape"):
        mean_interval(truth[:30], judges[:30], judges[30:, :2])
    with pytest.raises(DataError, match=r"judge 'judge 1' has no value for any of 400 items"):
        items_of(truth, judges * [1, np.nan, 1])
    with pytest.raises(DataError, match=r"b values of shape \(3,\) for 2 ids"):
        JudgedItems.of_judges(
            ids=("x", "y"), human=np.ones(2), judges={"a": np.ones(2), "b": np.ones(3)}
        )


def ranked(seed=0, n_queries=60, n_docs=8):
    """Grades, two noisy judges of them (the second of four queries in five), and a run."""
    rng = np.random.default_rng(seed)
    grades = rng.integers(0, 3, (n_queries, n_docs))

    def judged(noise, queries):
        rows = []
        for q in queries:
            for d in range(n_docs):
                seen = int(np.clip(np.round(grades[q, d] + rng.normal(0, noise)), 0, 2))
                rows.append((f"q{q}", f"d{d}", 0.8 * np.eye(3)[seen] + 0.2 / 3))
        return LabelDistributions.from_rows(rows)

    judges = {"near": judged(0.5, range(n_queries)), "far": judged(1.5, range(n_queries * 4 // 5))}
    human = Qrels.from_rows(
        (f"q{q}", f"d{d}", int(grades[q, d])) for q in range(n_queries // 2) for d in range(n_docs)
    )
    scores = {f"q{q}": {f"d{d}": float(rng.random()) for d in range(n_docs)} for q in range(60)}
    return Run.from_dict(scores, name="bm25"), human, judges


def test_the_mean_of_distributions_is_over_the_judges_of_a_pair():
    _, _, judges = ranked()
    mean = LabelDistributions.mean_of([*judges.values()])

    def rows(labels):
        return {
            (labels.query_ids[q], labels.doc_ids[d]): p
            for q, d, p in zip(labels.query_codes, labels.doc_codes, labels.probs, strict=True)
        }

    each = [rows(labels) for labels in judges.values()]
    found = rows(mean)
    assert found.keys() == each[0].keys() | each[1].keys()
    for pair, probs in found.items():
        wanted = np.mean([judge[pair] for judge in each if pair in judge], axis=0)
        np.testing.assert_allclose(probs, wanted)
    assert LabelDistributions.mean_of([judges["near"]]) is judges["near"]
    other = LabelDistributions.from_rows([("q", "d", (0.5, 0.5))])
    with pytest.raises(DataError, match="judges with 2 and 3 grades cannot be averaged"):
        LabelDistributions.mean_of([judges["near"], other])


def test_rankings_take_several_judges():
    run, human, judges = ranked()
    config = JudgedConfig(per_query=False)
    report = judge_ranking_with_intervals([run], human, judges, measures=["DCG@5"], config=config)
    queries = judges["near"].query_ids
    columns = np.full((len(queries), 2), np.nan)
    for column, labels in enumerate(judges.values()):
        values = JudgedRanking.join(run, labels).values("DCG@5")
        columns[[queries.index(q) for q in labels.query_ids], column] = values
    people = LabelDistributions.from_qrels(human, n_grades=3)
    y = JudgedRanking.join(run, people).values("DCG@5")
    place = [queries.index(q) for q in people.query_ids]
    rest = np.setdiff1d(np.arange(len(queries)), place)
    wanted = mean_interval(y, columns[place], columns[rest], bounds=measure_bounds("DCG@5"))
    found = mean_of(report, "DCG@5", "bm25").interval
    assert (found.lower, found.upper) == pytest.approx((wanted.lower, wanted.upper))
    assert any("judge 'far' labelled 384 of 480 pairs" in w for w in report.warnings)
    assert not any("judge 'near'" in w for w in report.warnings)
