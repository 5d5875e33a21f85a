"""The columns of AnswerScores: what they accept, count and refuse."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rag_sourcebias.answers.data import AnswerScores
from rag_sourcebias.core.errors import DataError

NAN = math.nan


def answers(**changes):
    """Two systems, two questions."""
    columns = {
        "question_ids": ("q1", "q1", "q2", "q2"),
        "systems": ("b", "a", "b", "a"),
        "scores": [0.9, 0.4, NAN, 0.2],
        "correct": [1, 0, NAN, 0],
        "words": [2, 30, 0, 7],
    }
    return AnswerScores(**{**columns, **changes})


def test_columns_and_counts():
    found = answers(covariates={"emoji": [0, 1, 0, 2]})
    assert len(found) == 4
    assert found.system_names == ("b", "a")  # in the order of first occurrence
    assert found.system_codes.tolist() == [0, 1, 0, 1]
    assert found.question_codes.tolist() == [0, 0, 1, 1]
    assert found.scored.tolist() == [True, True, False, True]
    assert found.words.dtype == np.int64
    assert found.covariates["emoji"].tolist() == [0, 1, 0, 2]


def test_an_answer_without_words_takes_no_part_even_with_a_score_and_a_verdict():
    found = answers(scores=[0.9, 0.4, 0.3, 0.2], correct=[1, 0, 1, 0])
    assert found.scored.tolist() == [True, True, False, True]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"systems": ("b", "a")}, "2 systems for 4 question ids"),
        ({"scores": [1.0]}, r"scores of shape \(1,\) for 4 question ids"),
        ({"scores": ["x", "y", "z", "w"]}, "scores must be numbers"),
        (
            {"scores": [0.9, math.inf, math.inf, 0.2]},
            r"score inf of the answer of 'a' to question 'q1' is not accepted "
            r"\(2 such answer\(s\)\); expected a finite number, or NaN for no score",
        ),
        (
            {"correct": [1, 0.5, NAN, 0]},
            "human verdict 0.5 of the answer of 'a' to question 'q1'.*1 for correct, 0 for wrong",
        ),
        ({"words": [2, 30, -1, 7]}, "number of words -1 of the answer of 'b' to question 'q2'"),
        ({"words": [2, 30.5, 0, 7]}, "number of words 30.5"),
        ({"words": [2, 30, NAN, 7]}, "number of words nan"),
        ({"covariates": {"tone": [0, 1, NAN, 0]}}, "covariate 'tone' nan of the answer of 'b'"),
        ({"covariates": {"tone": [0]}}, "tone of shape"),
        (
            {"systems": ("b", "a", "b", "b")},
            "the answer of 'b' to question 'q2' occurs twice; keep one row per answer",
        ),
    ],
)
def test_bad_input_is_refused_by_name(changes, message):
    with pytest.raises(DataError, match=message):
        answers(**changes)


def test_judged_items():
    items = answers().judged_items()
    assert items.ids == ("q1/b", "q1/a", "q2/b", "q2/a")
    assert items.groups == ("b", "a", "b", "a")
    assert items.clusters == ("q1", "q1", "q2", "q2")
    assert (items.n_labeled, items.n_judge_missing) == (3, 1)
