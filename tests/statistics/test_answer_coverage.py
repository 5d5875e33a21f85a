"""Intervals of an answer audit on simulated answers whose population values are known."""

from __future__ import annotations

import numpy as np
import pytest
from simulation import FLOOR, acceptable

from rag_sourcebias.answers.audit import (
    auc_change_interval,
    auc_interval,
    measure_bias,
)
from rag_sourcebias.answers.data import AnswerConfig, AnswerScores
from rag_sourcebias.answers.measure import (
    answer_spread,
    correctness_auc,
    cross_fit_adjustment,
    fit_adjustment,
    question_auc,
)
from rag_sourcebias.core.errors import InsufficientDataError

pytestmark = pytest.mark.slow
RUNS = 250
MEAN_WORDS = np.array([2.0, 12.0, 15.0, 40.0])
OWN = np.array([0.05, 0.0, -0.05, 0.02])
CONFIG = AnswerConfig(resamples=1000)


def draw(rng, n, *, own=1.0, length=0.12, right=0.75, gap=0.25):
    """Questions differ in difficulty and in level; scores fall with length, rise if correct."""
    k = len(OWN)
    question, system = np.repeat(np.arange(n), k), np.tile(np.arange(k), n)
    words = 1 + rng.poisson(MEAN_WORDS[system] - 1) if length else np.full(n * k, 5)
    odds = np.log(right / (1 - right)) + rng.normal(size=n)[question]
    correct = (rng.random(n * k) < 1 / (1 + np.exp(-odds))).astype(float)
    noise = 0.1 * rng.normal(size=n)[question] + 0.12 * rng.normal(size=n * k)
    return AnswerScores(
        question_ids=tuple(map(str, question)),
        systems=tuple("abcd"[i] for i in system),
        scores=0.8 + own * OWN[system] - length * np.log1p(words) + gap * correct + noise,
        correct=correct,
        words=words,
    )


def holds(interval, truth):
    return interval is not None and not interval.excludes(truth)


@pytest.mark.parametrize("n", [120])
@pytest.mark.parametrize(("own", "length"), [(1.0, 0.12), (1.0, 0.0), (0.0, 0.0)])
def test_means_unfairness_differences_and_auc(n, own, length):
    rng = np.random.default_rng(n)
    big = draw(rng, 60_000, own=own, length=length)
    truth = answer_spread(big)
    spread, auc = truth.unfairness if own or length else 0.0, correctness_auc(big)
    hits = np.zeros(4)
    for run in range(RUNS):
        found = measure_bias(draw(rng, n, own=own, length=length), CONFIG, notes=[], called="score")
        at = run % 4
        pair = found.differences[run % 6]
        i, j = "abcd".index(pair.first), "abcd".index(pair.second)
        hits += [
            holds(found.means[at], truth.means[at]),
            holds(found.unfairness, spread),
            holds(pair.difference, truth.means[i] - truth.means[j]),
            holds(found.auc, auc),
        ]
    assert (hits / RUNS >= acceptable(FLOOR, RUNS)).all(), hits / RUNS


@pytest.mark.parametrize(("n", "right", "gap"), [(25, 0.6, 0.2), (60, 0.93, 0.2), (60, 0.7, 0.6)])
def test_auc_of_few_questions_few_wrong_answers_or_good_separation(n, right, gap):
    rng = np.random.default_rng(n)
    truth = correctness_auc(draw(rng, 60_000, right=right, gap=gap))
    hits = total = 0
    for _ in range(2 * RUNS):
        try:
            found = auc_interval(draw(rng, n, right=right, gap=gap))
        except InsufficientDataError:
            continue
        total += 1
        hits += holds(found, truth)
    assert total > 1.9 * RUNS
    assert hits / total >= acceptable(0.92, total), hits / total


def test_adjusted_unfairness_and_the_change_of_the_auc():
    """The truth is what an adjustment learned from all answers leaves."""
    rng = np.random.default_rng(9)
    big = draw(rng, 60_000)
    limit = fit_adjustment(big).apply(big)
    spread = answer_spread(limit).unfairness
    change = np.subtract(*(question_auc(a, within_systems=True).auc for a in (limit, big)))
    hits = np.zeros(2)
    for run in range(RUNS):
        before = draw(rng, 200)
        after = cross_fit_adjustment(before, rng=run)
        found = measure_bias(after, CONFIG, notes=[], called="score")
        hits += [holds(found.unfairness, spread), holds(auc_change_interval(before, after), change)]
    assert (hits / RUNS >= acceptable(0.92, RUNS)).all(), hits / RUNS
