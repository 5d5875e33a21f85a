"""What each question contributes to the AUC of correct against wrong answers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rag_sourcebias.errors import InsufficientDataError
from rag_sourcebias.types.answers import AnswerScores
from rag_sourcebias.types.arrays import FloatArray

__all__ = ["QuestionAUC", "question_auc"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class QuestionAUC:
    """An AUC as a mean over questions, to first order.

    Parameters
    ----------
    auc : float
        In [0, 1]; over all systems equal to :func:`~rag_sourcebias.measures.correctness_auc`.
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


def question_auc(answers: AnswerScores, *, within_systems: bool = False) -> QuestionAUC:
    """Placements of DeLong et al. (1988), summed over the answers to a question (Obuchowski 1997).

    Answers to one question are easy or hard, and correct or wrong, together; only questions are
    independent.

    Parameters
    ----------
    within_systems : bool
        Compare answers of one system only, over all its pairs of a correct and a wrong answer.
        Otherwise a score also gains by putting systems that are often right above others.

    Raises
    ------
    InsufficientDataError
        If there is no pair of a correct and a wrong scored answer to compare.
    """
    usable = answers.scored & ~np.isnan(answers.correct)
    right = answers.correct == 1
    codes = answers.system_codes if within_systems else np.zeros(len(answers), dtype=np.int64)
    n1 = np.bincount(codes[usable & right], minlength=int(codes.max()) + 1)
    n0 = np.bincount(codes[usable & ~right], minlength=int(codes.max()) + 1)
    pairs = int(np.sum(n1 * n0))
    if not pairs:
        total = int(np.count_nonzero(usable))
        where = " of the same system" if within_systems else ""
        raise InsufficientDataError(
            f"of {total} scored answers with a human verdict {int(n1.sum())} are correct and "
            f"{int(n0.sum())} wrong; both{where} are needed to see how well the score separates "
            "them",
            n=int(min(n1.sum(), n0.sum())),
            n_needed=1,
        )
    usable &= (n1 * n0 > 0)[codes]
    share, auc = np.zeros(len(answers)), 0.0
    for code in np.flatnonzero(n1 * n0):
        good, bad = (np.flatnonzero(usable & (codes == code) & which) for which in (right, ~right))
        ranks = _mid_ranks(answers.scores[np.concatenate((good, bad))])
        share[good] = ranks[: len(good)] - _mid_ranks(answers.scores[good])
        share[bad] = len(good) - ranks[len(good) :] + _mid_ranks(answers.scores[bad])
        auc += float(share[good].sum()) / pairs
    opposite = np.where(right, n0[codes], n1[codes])
    share = (share - auc * opposite)[usable] / pairs
    _, question = np.unique(answers.question_codes[usable], return_inverse=True)
    n = int(question.max()) + 1
    sides = (np.unique(question[right[usable] == side]) for side in (True, False))
    return QuestionAUC(
        auc=auc,
        influence=n * np.bincount(question, weights=share).astype(np.float64),
        n_pairs=min(*(len(side) for side in sides), n // 2),
    )


def _mid_ranks(values: FloatArray) -> FloatArray:
    _, code, count = np.unique(values, return_inverse=True, return_counts=True)
    ranks: FloatArray = (np.cumsum(count) - (count - 1) / 2)[code]
    return ranks
