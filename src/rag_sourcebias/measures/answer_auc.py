"""What each question contributes to the AUC of correct against wrong answers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import InsufficientDataError
from rag_sourcebias.types.answers import AnswerScores

__all__ = ["QuestionAUC", "question_auc"]

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class QuestionAUC:
    """An AUC as a mean over questions, to first order.

    Parameters
    ----------
    auc : float
        In [0, 1]; equal to :func:`~rag_sourcebias.measures.correctness_auc`.
    influence : float64 array of shape (n_questions,)
        Of each question with a usable answer, in the order of first occurrence. The error of the
        AUC is about the mean of these; their mean is 0. Two scores of the same answers are
        compared question by question.
    n_pairs : int
        Pairs of a question with a correct answer and another with a wrong one that can be formed
        so that no question is used twice: what there is of independent comparisons.
    """

    auc: float
    influence: FloatArray
    n_pairs: int


def question_auc(answers: AnswerScores) -> QuestionAUC:
    """Placements of DeLong et al. (1988), summed over the answers to a question (Obuchowski 1997).

    Answers to one question are easy or hard, and correct or wrong, together; only questions are
    independent.

    Raises
    ------
    InsufficientDataError
        If no scored answer, or every one, is correct.
    """
    usable = answers.scored & ~np.isnan(answers.correct)
    right = answers.correct[usable] == 1
    n1 = int(np.count_nonzero(right))
    n0 = len(right) - n1
    if not n0 or not n1:
        raise InsufficientDataError(
            f"of {len(right)} scored answers with a human verdict {n1} are correct and {n0} wrong; "
            "both are needed to see how well the score separates them",
            n=min(n0, n1),
            n_needed=1,
        )
    scores = answers.scores[usable]
    _, question = np.unique(answers.question_codes[usable], return_inverse=True)
    among_all = _mid_ranks(scores)
    placement = np.empty(len(scores))
    placement[right] = (among_all[right] - _mid_ranks(scores[right])) / n0
    placement[~right] = 1 - (among_all[~right] - _mid_ranks(scores[~right])) / n1
    auc = float(placement[right].mean())
    share = (placement - auc) / np.where(right, n1, n0)
    n = int(question.max()) + 1
    return QuestionAUC(
        auc=auc,
        influence=n * np.bincount(question, weights=share).astype(np.float64),
        n_pairs=min(len(np.unique(question[right])), len(np.unique(question[~right])), n // 2),
    )


def _mid_ranks(values: FloatArray) -> FloatArray:
    _, code, count = np.unique(values, return_inverse=True, return_counts=True)
    ranks: FloatArray = (np.cumsum(count) - (count - 1) / 2)[code]
    return ranks
