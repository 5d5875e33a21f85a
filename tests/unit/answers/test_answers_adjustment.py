"""The style adjustment where the truth is known."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from rag_sourcebias.answers.data import AnswerScores
from rag_sourcebias.answers.measure import (
    answer_spread,
    correctness_auc,
    cross_fit_adjustment,
    fit_adjustment,
)
from rag_sourcebias.core.errors import InsufficientDataError

MEAN_WORDS = np.array([2.0, 10.0, 20.0, 50.0])


def simulated(seed, *, effect, n=300, own=(0, 0, 0, 0), right=0.7):
    """Systems with typical lengths; score = question + right + own of system − effect(words)."""
    rng = np.random.default_rng(seed)
    k = len(own)
    question, system = np.repeat(np.arange(n), k), np.tile(np.arange(k), n)
    words = 1 + rng.poisson(MEAN_WORDS[system] - 1)
    rng.poisson(0.5 * (1 + system))  # keeps the draws that follow
    correct = (rng.random(n * k) < right).astype(float)
    scores = (
        0.2 * rng.normal(size=n)[question]
        + 0.4 * correct
        + np.asarray(own)[system]
        + 0.1 * rng.normal(size=n * k)
        - effect(words)
    )
    return AnswerScores(
        question_ids=tuple(f"q{i}" for i in question),
        systems=tuple("abcd"[i] for i in system),
        scores=scores,
        correct=correct,
        words=words,
    )


def none(words):
    return 0.0 * words


def log_effect(words):
    return 0.15 * np.log1p(words)


@pytest.mark.parametrize("effect", [log_effect, lambda w: 0.3 * np.minimum(w, 15) / 15])
def test_a_pure_length_effect_is_removed(effect):
    before = simulated(1, effect=effect, n=1000)
    after = cross_fit_adjustment(before)
    raw, clean = answer_spread(before), answer_spread(after)
    ideal = simulated(1, effect=none, n=1000)
    assert raw.unfairness > 0.1
    assert clean.unfairness < answer_spread(ideal).unfairness + 0.01
    assert clean.unfairness < 0.1 * raw.unfairness
    assert correctness_auc(before) < correctness_auc(ideal) - 0.02
    assert correctness_auc(after) == pytest.approx(correctness_auc(ideal), abs=0.005)
    assert clean.means == pytest.approx([np.mean(raw.means)] * 4, abs=0.03)  # the level stays


def test_the_fit_is_least_squares_within_questions():
    answers = simulated(4, effect=log_effect, n=80)
    fit = fit_adjustment(answers)
    right = answers.correct == 1
    ids = np.array(answers.question_ids)
    several = right & np.array([np.count_nonzero(right & (ids == q)) > 1 for q in ids])
    assert fit.n_answers == np.count_nonzero(several)
    assert fit.n_questions == len(set(ids[several]))
    x = np.log1p(answers.words[several])
    assert fit.knots == pytest.approx(np.quantile(x, [0.25, 0.5, 0.75]))
    dummies = (ids[several][:, None] == np.unique(ids[several])).astype(float)
    terms = np.column_stack([x, *(np.maximum(x - k, 0) for k in fit.knots)])
    literal = np.linalg.lstsq(np.hstack([terms, dummies]), answers.scores[several], rcond=None)[0]
    assert fit.coefficients == pytest.approx(literal[:4])
    assert fit.offset(answers.words)[several].mean() == pytest.approx(0, abs=1e-12)


def test_equal_lengths_change_nothing():
    given = simulated(6, effect=none)
    same = AnswerScores(
        question_ids=given.question_ids,
        systems=given.systems,
        scores=given.scores,
        correct=given.correct,
        words=np.full(len(given), 7),
    )
    np.testing.assert_allclose(cross_fit_adjustment(same).scores, given.scores, atol=1e-12)


def test_cross_fitting_keeps_a_question_out_of_its_own_fit():
    answers = simulated(7, effect=log_effect, n=60)
    rows = np.array(answers.question_ids) == "q3"
    other = replace(answers, scores=np.where(rows, 50 * answers.scores, answers.scores))
    change = answers.scores - cross_fit_adjustment(answers, rng=1).scores
    changed = other.scores - cross_fit_adjustment(other, rng=1).scores
    np.testing.assert_allclose(changed[rows], change[rows], atol=1e-9)
    assert np.abs(changed - change).max() > 0.1


def test_wrong_and_unjudged_answers_do_not_move_the_fit_but_are_adjusted():
    answers = simulated(8, effect=log_effect)
    used = answers.correct == 1
    other = replace(answers, scores=np.where(used, answers.scores, -9.0))
    unjudged = AnswerScores(
        question_ids=other.question_ids,
        systems=other.systems,
        scores=other.scores,
        correct=np.where(used, 1.0, math.nan),
        words=other.words,
    )
    for given in (other, unjudged):
        offset = fit_adjustment(given).offset(given.words)
        np.testing.assert_array_equal(offset, fit_adjustment(answers).offset(answers.words))


def test_too_little_is_refused():
    with pytest.raises(InsufficientDataError, match="0 correct, scored answers to 0 question"):
        fit_adjustment(simulated(0, effect=none, right=0.0))
    with pytest.raises(InsufficientDataError, match="too few to learn what style adds") as error:
        fit_adjustment(simulated(0, effect=none, n=300, own=(0,)))  # one system
    assert error.value.n == 0
    with pytest.raises(InsufficientDataError, match="20 more answers than questions"):
        fit_adjustment(simulated(0, effect=none, n=8))
