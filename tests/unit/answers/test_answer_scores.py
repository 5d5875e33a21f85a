"""The columns of AnswerScores: what they count."""

from __future__ import annotations

import math

import numpy as np

from rag_sourcebias.answers.data import AnswerScores

NAN = math.nan


def answers(**changes):
    """Two systems, two questions."""
    columns = {
        "question_ids": ("q1", "q1", "q2", "q2"),
        "systems": ("b", "a", "b", "a"),
        "scores": np.array([0.9, 0.4, NAN, 0.2]),
        "correct": np.array([1, 0, NAN, 0]),
        "words": np.array([2, 30, 0, 7]),
    }
    return AnswerScores(**{**columns, **changes})


def test_columns_and_counts():
    found = answers()
    assert len(found) == 4
    assert found.system_names == ("b", "a")  # in the order of first occurrence
    assert found.system_codes.tolist() == [0, 1, 0, 1]
    assert found.question_codes.tolist() == [0, 0, 1, 1]
    assert found.scored.tolist() == [True, True, False, True]


def test_an_answer_without_words_takes_no_part_even_with_a_score_and_a_verdict():
    found = answers(scores=np.array([0.9, 0.4, 0.3, 0.2]), correct=np.array([1, 0, 1, 0]))
    assert found.scored.tolist() == [True, True, False, True]
