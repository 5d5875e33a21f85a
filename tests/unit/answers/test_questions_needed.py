"""Questions that would tell whether a score rewards the style of correct answers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from rag_sourcebias.answers.audit import questions_needed
from rag_sourcebias.answers.data import AnswerConfig, AnswerScores


@pytest.mark.parametrize("noise", [0.8, 1.2])
def test_systems_that_score_alike_are_called_so_from_a_number_of_questions(noise: float) -> None:
    """A spread of |z| standard errors and 1.96 more stay below a tenth of the spread within.

    Two systems of equal means, ± their half difference apart: |z| is that of a normal variable,
    and with .025 the test of equal means tells them apart instead.
    """
    rng = np.random.default_rng(0)
    difference = rng.normal(size=100)
    difference = noise * (difference - difference.mean()) / difference.std(ddof=1)
    ease = rng.normal(size=100)
    columns = np.stack([ease + difference / 2, ease - difference / 2], axis=1)
    answers = AnswerScores(
        question_ids=tuple(str(i // 2) for i in range(200)),
        systems=("a", "b") * 100,
        scores=columns.ravel(),
        correct=np.ones(200),
        words=np.full(200, 3),
    )
    within = np.sqrt(columns.var(axis=0, ddof=1).mean())
    alike = stats.norm.ppf(0.5 + (0.8 - 0.025) / 2)
    expected = (noise / 2 * (alike + stats.norm.ppf(0.975)) / (0.1 * within)) ** 2
    needed = [questions_needed(answers, AnswerConfig(seed=seed)) for seed in range(6)]
    assert np.mean(needed) == pytest.approx(expected, rel=0.1)
