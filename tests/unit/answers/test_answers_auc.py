"""AUC within systems against a literal count of pairs, and its influences against deletion."""

from __future__ import annotations

import numpy as np
import pytest

from rag_sourcebias.answers.data import AnswerScores
from rag_sourcebias.answers.measure import question_auc
from rag_sourcebias.core.errors import InsufficientDataError


def answers(n=60, *, seed=0, shift=0.0, share=(0.8, 0.5, 0.6)):
    """Return answers of three systems; scores know the system and nothing else."""
    rng = np.random.default_rng(seed)
    k = len(share)
    correct = rng.random((n, k)) < share
    scores = np.round(rng.normal(size=(n, k)) + shift * np.asarray(share), 1)
    return AnswerScores(
        question_ids=tuple(str(i // k) for i in range(n * k)),
        systems=("a", "b", "c") * n,
        scores=scores.ravel(),
        correct=correct.astype(float).ravel(),
        words=np.full(n * k, 3),
    )


def literal(given, *, within):
    wins = pairs = 0.0
    for i in np.flatnonzero(given.correct == 1):
        for j in np.flatnonzero(given.correct == 0):
            if not within or given.systems[i] == given.systems[j]:
                wins += np.sign(given.scores[i] - given.scores[j]) / 2 + 0.5
                pairs += 1
    return wins / pairs


@pytest.mark.parametrize("within", [False, True])
def test_against_a_literal_count(within):
    given = answers(shift=3.0)
    found = question_auc(given, within_systems=within)
    assert found.auc == pytest.approx(literal(given, within=within))
    assert found.influence.mean() == pytest.approx(0, abs=1e-12)


def test_without_a_pair_of_one_system_there_is_nothing_to_compare():
    given = AnswerScores(
        question_ids=("1", "1"),
        systems=("a", "b"),
        scores=np.array([0.9, 0.1]),
        correct=np.array([1.0, 0.0]),
        words=np.array([3, 3]),
    )
    assert question_auc(given).auc == 1
    with pytest.raises(InsufficientDataError, match="both of the same system are needed"):
        question_auc(given, within_systems=True)
