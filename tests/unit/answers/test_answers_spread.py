"""Means on correct answers, their spread, and AUC, against literal definitions."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from rag_sourcebias.answers.data import AnswerScores
from rag_sourcebias.answers.measure import (
    answer_spread,
    correctness_auc,
    rank_inversions,
    system_aucs,
    threshold_verdicts,
)
from rag_sourcebias.core.errors import DataError, InsufficientDataError

NAN = math.nan


def table(scores, correct, systems=None, words=None):
    """Answers from matrices of questions × systems, rows shuffled; None leaves an answer out."""
    scores, correct = np.asarray(scores, dtype=float), np.asarray(correct, dtype=float)
    n, k = scores.shape
    names = systems or [f"s{j}" for j in range(k)]
    cells = [(i, j) for i in range(n) for j in range(k) if words is None or words[i][j] is not None]
    order = np.random.default_rng(3).permutation(len(cells))
    cells = [cells[i] for i in order]
    return AnswerScores(
        question_ids=tuple(f"q{i}" for i, _ in cells),
        systems=tuple(names[j] for _, j in cells),
        scores=np.array([scores[c] for c in cells]),
        correct=np.array([correct[c] for c in cells]),
        words=np.array([5 if words is None else words[i][j] for i, j in cells]),
    )


def random_table(seed, n=40, k=4):
    rng = np.random.default_rng(seed)
    scores = np.round(rng.normal(size=(n, k)), 1)  # ties
    correct = np.where(rng.random((n, k)) < 0.1, NAN, rng.random((n, k)) < 0.7)
    scores[rng.random((n, k)) < 0.05] = NAN
    return scores, correct


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("ddof", [0, 1])
def test_spread_is_the_literal_definition(seed, ddof):
    scores, correct = random_table(seed)
    found = answer_spread(table(scores, correct), ddof=ddof)
    rows = [
        i
        for i in range(len(scores))
        if all(c == 1 and not math.isnan(s) for s, c in zip(scores[i], correct[i], strict=True))
    ]
    kept = scores[rows]
    by_name = dict(zip(found.systems, found.means, strict=True))
    effects = dict(zip(found.systems, found.effects, strict=True))
    n_correct = dict(zip(found.systems, found.n_correct, strict=True))
    assert found.n_questions == len(rows) > 1
    sd = math.sqrt(sum(np.var(kept[:, j], ddof=1) for j in range(4)) / 4)
    for j in range(4):
        assert by_name[f"s{j}"] == pytest.approx(kept[:, j].mean())
        assert effects[f"s{j}"] == pytest.approx((kept[:, j].mean() - kept.mean()) / sd)
        usable = (correct[:, j] == 1) & ~np.isnan(scores[:, j])
        assert n_correct[f"s{j}"] == np.count_nonzero(usable)
    assert found.within_sd == pytest.approx(sd)
    assert found.unfairness == pytest.approx(np.std(kept.mean(axis=0), ddof=ddof))


def test_one_system_has_no_spread():
    found = answer_spread(table([[0.2], [0.6]], [[1], [1]]))
    assert found.means == pytest.approx((0.4,))
    assert (found.unfairness, found.effects) == (0, (0,))


def test_without_variation_there_is_no_standardised_effect():
    one = answer_spread(table([[0.2, 0.4]], [[1, 1]]))
    assert (one.within_sd, one.effects, one.unfairness) == (None, None, pytest.approx(0.1))
    same = answer_spread(table([[0.1, 0.3]] * 7, np.ones((7, 2))))
    assert (same.within_sd, same.effects) == (None, None)


def test_nobody_right_on_the_same_question():
    answers = table([[0.2, 0.4], [0.5, 0.1]], [[1, 0], [0, NAN]])
    with pytest.raises(InsufficientDataError, match=r"no question .*'s\d' [01], 's\d' [01]"):
        answer_spread(answers)
    with pytest.raises(InsufficientDataError, match="no question"):
        threshold_verdicts(answers, 0.5)


@pytest.mark.parametrize("seed", range(5))
def test_auc_agrees_with_scikit_learn(seed):
    scores, correct = random_table(seed)
    answers = table(scores, correct)
    known = ~np.isnan(scores) & ~np.isnan(correct)
    assert correctness_auc(answers) == pytest.approx(roc_auc_score(correct[known], scores[known]))
    for name, value in system_aucs(answers).items():
        j = int(name[1:])
        rows = known[:, j]
        assert value == pytest.approx(roc_auc_score(correct[rows, j], scores[rows, j]))


def test_auc_at_the_edges():
    assert correctness_auc(table([[0.5, 0.5]], [[1, 0]])) == 0.5
    assert correctness_auc(table([[0.9, 0.1]], [[1, 0]])) == 1.0
    assert correctness_auc(table([[0.9, 0.1]], [[1, 1]])) is None
    assert correctness_auc(table([[0.9, 0.1]], [[0, 0]])) is None
    assert correctness_auc(table([[0.9, NAN]], [[1, 0]])) is None


def test_threshold_verdicts():
    scores = [[0.9, 0.4], [0.5, 0.5], [0.2, 0.1], [0.8, 0.6]]
    correct = [[1, 1], [1, 1], [1, 1], [0, 1]]
    found = threshold_verdicts(table(scores, correct, words=np.full((4, 2), 3)), 0.5)
    order = [found.systems.index(name) for name in ("s0", "s1")]
    assert [found.pass_correct[i] for i in order] == [2 / 3, 2 / 4]
    assert [found.pass_wrong[i] for i in order] == [1.0, None]
    assert (found.n_questions, found.n_flipped) == (3, 1)


@pytest.mark.parametrize("threshold", [NAN, math.inf])
def test_a_threshold_must_be_finite(threshold):
    answers = table([[0.9, 0.4]], [[1, 1]])
    with pytest.raises(DataError, match="must be a finite number"):
        threshold_verdicts(answers, threshold)


@pytest.mark.parametrize("seed", range(5))
def test_rank_inversions_are_the_literal_definition(seed):
    scores, correct = random_table(seed, k=5)
    found = rank_inversions(table(scores, correct))
    rows = ~np.isnan(scores).any(axis=1) & ~np.isnan(correct).any(axis=1)
    s, c = scores[rows].mean(axis=0), correct[rows].mean(axis=0)
    wanted = set()
    for i, j in combinations(range(5), 2):
        if (s[i] - s[j]) * (c[i] - c[j]) < -1e-12:
            wanted.add((f"s{i}", f"s{j}") if c[i] > c[j] else (f"s{j}", f"s{i}"))
    assert set(found.inversions) == wanted
    assert found.n_questions == np.count_nonzero(rows)
    assert dict(zip(found.systems, found.mean_scores, strict=True))["s2"] == pytest.approx(s[2])
    assert dict(zip(found.systems, found.correctness, strict=True))["s2"] == pytest.approx(c[2])


def test_ties_are_no_inversions():
    found = rank_inversions(table([[0.3, 0.9, 0.9], [0.3, 0.9, 0.1]], [[1, 1, 0], [1, 1, 0]]))
    assert found.inversions == (("s0", "s2"),)  # s0 and s1 tie by people
    assert found.n_pairs == 2
    alone = rank_inversions(table([[0.3]], [[1]]))
    assert (alone.inversions, alone.n_pairs) == ((), 0)


def test_rank_inversions_need_a_common_question():
    with pytest.raises(InsufficientDataError, match="each of the 2 system"):
        rank_inversions(table([[0.3, NAN], [0.3, 0.2]], [[1, 1], [NAN, 1]]))
