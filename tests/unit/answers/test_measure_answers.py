"""What measure_answer_bias reports, on simulated answers whose truth is known."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from rag_sourcebias.answers.audit import auc_change_interval, auc_interval, measure_answer_bias
from rag_sourcebias.answers.data import AnswerConfig, AnswerScores
from rag_sourcebias.answers.measure import (
    best_threshold,
    length_correlation,
    question_auc,
)
from rag_sourcebias.core.errors import DataError, InsufficientDataError
from rag_sourcebias.core.texts import AnswerTexts

SYSTEMS = ("terse", "plain", "chatty")
MEAN_WORDS = np.array([2, 12, 40])
FAST = AnswerConfig(resamples=200)


def simulated(n=150, *, seed=0, right=0.8, slope=0.1, name="answers"):
    """Three systems, equally good; the score falls with length and rises when correct."""
    rng = np.random.default_rng(seed)
    k = len(SYSTEMS)
    system = np.tile(np.arange(k), n)
    words = np.maximum(1, rng.poisson(MEAN_WORDS[system]))
    correct = (rng.random(n * k) < right).astype(float)
    texts = AnswerTexts(
        question_ids=tuple(f"q{i // k}" for i in range(n * k)),
        systems=SYSTEMS * n,
        answers=tuple("word " * w for w in words),
        references=(("a word", "words"),) * (n * k),
        correct=correct,
        name=name,
    )
    scores = 0.7 - slope * np.log1p(words) + 0.2 * correct + 0.06 * rng.normal(size=n * k)
    return texts, scores


def measure(texts, scores, config=FAST, **options):
    return measure_answer_bias(
        {"s": scores}, texts, config=config, text_statistics=False, **options
    )


def as_scores(texts, scores):
    words = np.array([len(a.split()) for a in texts.answers])
    return AnswerScores(
        question_ids=texts.question_ids,
        systems=texts.systems,
        scores=scores,
        correct=texts.correct,
        words=words,
    )


@pytest.fixture(scope="module")
def found():
    texts, scores = simulated()
    return texts, scores, measure(texts, scores)


def test_the_numbers_are_those_of_their_definitions(found):
    texts, scores, report = found
    raw = report.scorer("s").raw
    table, correct = scores.reshape(-1, 3), texts.correct.reshape(-1, 3)
    paired = table[(correct == 1).all(axis=1)]
    assert [m.estimate for m in raw.means] == pytest.approx(paired.mean(axis=0))
    assert raw.unfairness.estimate == pytest.approx(paired.mean(axis=0).std())
    assert raw.spread.n_questions == len(paired)
    within = np.sqrt(paired.var(axis=0, ddof=1).mean())
    pair = next(d for d in raw.differences if (d.first, d.second) == ("terse", "chatty"))
    gap = paired[:, 0] - paired[:, 2]
    assert pair.difference.estimate == pytest.approx(gap.mean())
    error = gap.std(ddof=1) / math.sqrt(len(gap))
    assert pair.difference.half_width == pytest.approx(1.98 * error, rel=0.01)
    assert pair.effect == pytest.approx(gap.mean() / within)
    assert len(raw.differences) == 3
    right, wrong = scores[texts.correct == 1], scores[texts.correct == 0]
    assert raw.auc.estimate == pytest.approx((right[:, None] > wrong).mean())
    assert raw.auc.lower < raw.auc.estimate < raw.auc.upper
    assert raw.length_correlation < -0.7


def test_the_adjustment_removes_length_and_everything_is_measured_again(found):
    _, _, report = found
    scorer = report.scorer("s")
    raw, adjusted = scorer.raw, scorer.adjusted
    assert scorer.spread_cut == pytest.approx(
        1 - adjusted.spread.unfairness / raw.spread.unfairness
    )
    assert scorer.spread_cut > 0.85
    assert abs(adjusted.length_correlation) < 0.2
    assert adjusted.auc.estimate > raw.auc.estimate
    change = adjusted.auc_within.estimate - raw.auc_within.estimate
    assert scorer.auc_change_within.estimate == pytest.approx(change)
    assert adjusted.verdicts.n_flipped < raw.verdicts.n_flipped
    assert "cross-fitted" in scorer.adjustment
    assert abs(change) < adjusted.auc.estimate - raw.auc.estimate
    assert any("'chatty' are" in w and "long as those of 'terse'" in w for w in report.warnings)


def test_systems_that_score_inverts_are_named():
    rng = np.random.default_rng(1)
    texts, _ = simulated(300, right=0.6)
    better = np.tile([0.5, 0.6, 0.95], 300)  # the longest answers are the best
    texts = replace(texts, correct=(rng.random(900) < better).astype(float))
    words = np.array([len(a.split()) for a in texts.answers])
    scores = 0.7 - 0.1 * np.log1p(words) + 0.1 * texts.correct + 0.05 * rng.normal(size=900)
    scorer = measure(texts, scores).scorer("s")
    assert ("chatty", "terse") in scorer.raw.inversions.inversions
    assert ("chatty", "terse") in scorer.raw.inversions.beyond_chance
    assert set(scorer.raw.inversions.beyond_chance) <= set(scorer.raw.inversions.inversions)
    assert ("chatty", "terse") not in scorer.adjusted.inversions.inversions


def test_threshold_given_and_best():
    texts, scores = simulated()
    scorer = measure(texts, scores, AnswerConfig(threshold=0.5, resamples=200)).scorer("s")
    assert scorer.raw.threshold == scorer.adjusted.threshold == 0.5
    assert not any("threshold" in note for note in scorer.notes)
    scorer = measure(texts, scores).scorer("s")
    assert any("best among these same answers" in note for note in scorer.notes)
    right, wrong = scores[texts.correct == 1], scores[texts.correct == 0]
    gains = [(right >= t).mean() + (wrong < t).mean() for t in scores]
    reached = (right >= scorer.raw.threshold).mean() + (wrong < scorer.raw.threshold).mean()
    assert reached == pytest.approx(max(gains))


@pytest.mark.parametrize(
    ("scores", "correct", "threshold"),
    [
        ([0.1, 0.2, 0.8, 0.9], [0, 0, 1, 1], 0.5),
        ([0.1, 0.2, 0.8, 0.9], [1, 1, 0, 0], 0.1),
        ([0.5, 0.5, 0.5, 0.5], [1, 0, 1, 0], 0.5),
        ([1.0, 1.0, np.nextafter(1, 2), 2], [0, 0, 1, 1], np.nextafter(1, 2)),
        ([0.1, 0.2, 0.8, 0.9], [1, 1, 1, 1], None),
    ],
)
def test_best_threshold(scores, correct, threshold):
    answers = AnswerScores(
        question_ids=tuple("abcd"),
        systems=("s",) * 4,
        scores=np.array(scores),
        correct=np.array(correct),
        words=np.ones(4, dtype=int),
    )
    assert best_threshold(answers) == (threshold and pytest.approx(threshold, abs=0))


def test_question_auc_is_the_sum_over_pairs_and_its_influence_a_derivative():
    texts, scores = simulated(12, right=0.5)
    scores = np.round(scores, 1)  # ties
    answers = as_scores(texts, scores)
    found = question_auc(answers)
    rows = range(len(scores))
    pairs = [
        (scores[i] > scores[j]) + 0.5 * (scores[i] == scores[j])
        for i, j in product(rows, rows)
        if texts.correct[i] == 1 and texts.correct[j] == 0
    ]
    assert found.auc == pytest.approx(np.mean(pairs))
    assert found.influence.sum() == pytest.approx(0, abs=1e-9)
    # Counting one question a little more moves the AUC by its influence.
    step = 1e-6
    for q in range(12):
        weight = np.where(np.arange(len(scores)) // 3 == q, 1 + step, 1.0)
        top = bottom = 0.0
        for i, j in product(rows, rows):
            if texts.correct[i] == 1 and texts.correct[j] == 0:
                value = (scores[i] > scores[j]) + 0.5 * (scores[i] == scores[j])
                top += weight[i] * weight[j] * value
                bottom += weight[i] * weight[j]
        slope = (top / bottom - found.auc) / step
        assert found.influence[q] / 12 == pytest.approx(slope, abs=1e-4)


def test_scores_that_do_not_differ_have_no_interval():
    texts, scores = simulated(60)
    answers = as_scores(texts, scores)
    with pytest.raises(InsufficientDataError, match="do not differ in how well"):
        auc_interval(replace(answers, scores=np.zeros(180)))
    with pytest.raises(InsufficientDataError, match="do not differ"):
        auc_change_interval(answers, answers)


def test_length_correlation_is_spearman_within_questions():
    from scipy.stats import rankdata, spearmanr

    texts, scores = simulated(40, right=0.9)
    scores = np.round(scores, 1)
    answers = as_scores(texts, scores)
    x, y = [], []
    for q in range(40):
        rows = np.flatnonzero((np.arange(120) // 3 == q) & (texts.correct == 1))
        if len(rows):
            for values, out in ((scores, x), (answers.words, y)):
                ranks = rankdata(values[rows])
                out.extend(ranks - ranks.mean())
    assert length_correlation(answers) == pytest.approx(np.corrcoef(x, y)[0, 1])
    one = answers.take(np.flatnonzero(np.arange(120) < 3))
    if (one.correct == 1).all():
        assert length_correlation(one) == pytest.approx(spearmanr(one.scores, one.words)[0])
    assert length_correlation(replace(answers, scores=np.zeros(120))) is None
    assert length_correlation(replace(answers, scores=np.full(120, np.nan))) is None


def test_an_adjustment_fitted_elsewhere():
    texts, scores = simulated(150, seed=1, name="here")
    other, other_scores = simulated(150, seed=2, name="there")
    scorer = measure(texts, scores, fit_on=other, fit_scores={"s": other_scores}).scorer("s")
    assert "fitted on 'there'" in scorer.adjustment
    assert scorer.spread_cut > 0.85
    # What the others' scores say is what counts, not these.
    nothing = np.random.default_rng(0).normal(size=len(other))
    weak = measure(texts, scores, fit_on=other, fit_scores={"s": nothing}).scorer("s")
    assert weak.spread_cut < scorer.spread_cut
    few, few_scores = simulated(4, name="few")
    with pytest.raises(InsufficientDataError, match="no adjustment can be fitted on 'few': "):
        measure(texts, scores, fit_on=few, fit_scores={"s": few_scores})
    with pytest.raises(DataError, match="fit_on and fit_scores go together"):
        measure(texts, scores, fit_on=other)
    with pytest.raises(DataError, match="fit_scores lack scorer 's'; they have \\['t'\\]"):
        measure(texts, scores, fit_on=other, fit_scores={"t": other_scores})
    with pytest.raises(DataError, match="adjust=False switches off"):
        measure(
            texts,
            scores,
            AnswerConfig(adjust=False),
            fit_on=other,
            fit_scores={"s": other_scores},
        )


def test_without_adjustment():
    texts, scores = simulated()
    scorer = measure(texts, scores, AnswerConfig(adjust=False, resamples=200)).scorer("s")
    assert (scorer.adjusted, scorer.spread_cut) == (None, None)
    assert scorer.adjusted_scores.shape == (0,)
    assert not any("adjusted" in note for note in scorer.notes)


def test_no_wrong_answers():
    texts, scores = simulated()
    scorer = measure(replace(texts, correct=np.ones(len(texts))), scores).scorer("s")
    assert scorer.raw.auc is None
    assert scorer.auc_change_within is None
    assert set(scorer.raw.system_aucs.values()) == {None}
    assert scorer.raw.verdicts.pass_wrong == (None,) * 3
    assert scorer.raw.threshold == np.median(scores)
    assert any("raw score, AUC: of 450" in note and "0 wrong" in note for note in scorer.notes)
    assert any("without wrong answers" in note for note in scorer.notes)
    assert scorer.spread_cut > 0.85


def test_what_cannot_be_measured_is_refused():
    texts, scores = simulated(30)
    with pytest.raises(DataError, match="no scores were given"):
        measure_answer_bias({}, texts)
    with pytest.raises(DataError, match=r"scorer 's', answers 'answers': .*shape \(3,\)"):
        measure(texts, scores[:3])
    infinite = scores.copy()
    infinite[4] = np.inf
    with pytest.raises(DataError, match=r"scorer 's'.*a score is infinite"):
        measure(texts, infinite)
    with pytest.raises(DataError, match="scorer 's'"):
        measure(texts, ["high"] * 90)
    never = np.tile([1.0, 1.0, 0.0], 30)
    with pytest.raises(InsufficientDataError, match="'chatty' 0"):
        measure(replace(texts, correct=never), scores)


def test_missing_scores_and_empty_answers_are_counted():
    texts, scores = simulated()
    answers = list(texts.answers)
    answers[0], answers[4] = "", " ?! "
    scores = scores.copy()
    scores[[0, 8, 12]] = np.nan
    report = measure(replace(texts, answers=tuple(answers)), scores)
    scorer = report.scorer("s")
    assert [s.n_empty for s in report.systems] == [1, 1, 0]
    assert any("2 of 450 answers have no words" in w for w in report.warnings)
    assert any("2 of 450 answers have words but no score" in n for n in scorer.notes)
    assert np.isnan(scorer.adjusted_scores[[0, 8, 12]]).all()
    assert np.isfinite(np.delete(scorer.adjusted_scores, [0, 8, 12])).all()
    json.dumps(report.to_dict(), allow_nan=False)


def test_few_questions_give_what_they_allow():
    texts, scores = simulated(8, right=0.9)
    report = measure(texts, scores)
    scorer = report.scorer("s")
    assert any(
        "of 8 questions were answered correctly by all 3 systems" in w for w in report.warnings
    )
    assert scorer.raw.unfairness is None
    assert scorer.raw.spread.unfairness > 0
    assert all(mean is not None for mean in scorer.raw.means)
    assert any("raw score, unfairness: " in note for note in scorer.notes)
    tiny = measure(*simulated(3, right=1.0)).scorer("s")
    assert tiny.adjusted is None
    assert any(
        "adjusted score: 3 question(s) cannot be dealt into 5 folds" in n for n in tiny.notes
    )


def test_unjudged_answers_and_equal_systems():
    texts, scores = simulated()
    correct = texts.correct.copy()
    correct[:30] = np.nan
    report = measure(replace(texts, correct=correct), scores)
    assert any("30 of 450 answers have no human verdict" in w for w in report.warnings)
    assert report.systems[0].n_correct + report.systems[0].n_wrong == 140
    # Copies of one system: no difference, no interval for it, no crash.
    copied = scores.copy()
    copied[1::3] = scores[0::3]
    answers = list(texts.answers)
    answers[1::3] = texts.answers[0::3]
    same = measure(replace(texts, answers=tuple(answers)), copied).scorer("s")
    assert ("terse", "plain") not in [(d.first, d.second) for d in same.raw.differences]
    assert any("difference of 'terse' and 'plain'" in n for n in same.notes)
