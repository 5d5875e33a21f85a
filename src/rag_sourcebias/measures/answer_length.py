"""Whether a correctness score follows the length of answers that are all correct."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from rag_sourcebias.types.answers import AnswerScores
from rag_sourcebias.types.arrays import FloatArray

__all__ = ["length_correlation"]


def length_correlation(answers: AnswerScores) -> float | None:
    """Spearman correlation of score and words among correct answers to the same question.

    Answers are ranked within their question (mid-ranks for ties), ranks are taken as differences
    from the question's mean rank, and these are correlated over all questions. With one question
    it is Spearman's coefficient.

    Returns
    -------
    float or None
        In [−1, 1], negative when shorter answers score higher; None where no question has correct
        answers that differ in both.

    Examples
    --------
    >>> answers = AnswerScores(
    ...     question_ids=("q",) * 3,
    ...     systems=("a", "b", "c"),
    ...     scores=[0.9, 0.7, 0.4],
    ...     correct=[1, 1, 1],
    ...     words=[2, 9, 30],
    ... )
    >>> length_correlation(answers)
    -1.0
    """
    used = answers.scored & (answers.correct == 1)
    if not used.any():
        return None
    _, question = np.unique(answers.question_codes[used], return_inverse=True)
    score = _centred_ranks(answers.scores[used], question)
    words = _centred_ranks(answers.words[used].astype(np.float64), question)
    size = float(np.sqrt((score**2).sum() * (words**2).sum()))
    if size == 0:
        return None
    return max(-1.0, min(1.0, float((score * words).sum()) / size))


def _centred_ranks(values: FloatArray, groups: npt.NDArray[np.int64]) -> FloatArray:
    """Mid-ranks within each group, minus their mean."""
    order = np.lexsort((values, groups))
    new_group = np.diff(groups[order], prepend=-1) != 0
    new_value = new_group | (np.diff(values[order], prepend=np.nan) != 0)
    block = np.cumsum(new_value) - 1
    middle = np.bincount(block, weights=np.arange(len(values))) / np.bincount(block)
    places = np.empty(len(values))
    places[order] = middle[block]
    means = np.bincount(groups, weights=places) / np.bincount(groups)
    centred: FloatArray = places - means[groups]
    return centred
