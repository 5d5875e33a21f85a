"""Intervals for how well a score separates correct from wrong answers."""

from __future__ import annotations

import math

import numpy as np

from rag_sourcebias.errors import DataError, InsufficientDataError
from rag_sourcebias.inference.pairs import SAMPLED
from rag_sourcebias.inference.quantiles import t_quantile
from rag_sourcebias.measures.answer_auc import QuestionAUC, question_auc
from rag_sourcebias.types.answers import AnswerScores
from rag_sourcebias.types.intervals import Interval

__all__ = ["auc_change_interval", "auc_interval"]

_MIN_PAIRS = 5  # pairs of different questions, below which an error estimate means nothing
_NO_ERROR = 1e-12


def auc_interval(
    answers: AnswerScores, *, confidence_level: float = 0.95, within_systems: bool = False
) -> Interval:
    """AUC of correct against wrong answers, with an interval for resampled questions.

    The error comes from each question's influence (DeLong et al. 1988, clustered as Obuchowski
    1997), which costs one sort instead of thousands of resamples. The interval is symmetric in
    the logit, with t quantiles for the number of independent pairs of questions: simulated
    coverage of a nominal 95 % is .93–.97 from 10 such pairs on, but .90 at an AUC of .97 and .84 to
    .86 above .99 where only 2 % of the answers are wrong. With perfect separation it is the exact
    bound that the independent pairs allow.

    Raises
    ------
    InsufficientDataError
        Without correct or wrong answers, with fewer than 5 independent pairs of questions, or if
        no question differs from another.
    """
    found = _usable(answers, within_systems=within_systems)
    auc = found.auc
    tail = (1 - confidence_level) / 2
    if auc in (0.0, 1.0):
        method, bound = "exact, perfect separation", tail ** (1 / found.n_pairs)
        lower, upper = (bound, 1.0) if auc == 1 else (0.0, 1 - bound)
    else:
        method = "DeLong by question, logit"
        step = t_quantile(1 - tail, found.n_pairs - 1) * _error(found) / (auc * (1 - auc))
        middle = math.log(auc / (1 - auc))
        lower, upper = (_expit(middle + sign * step) for sign in (-1, 1))
    return Interval(
        estimate=auc,
        lower=min(lower, auc),
        upper=max(upper, auc),
        confidence_level=confidence_level,
        method=method,
        n_labeled=len(found.influence),
        assumptions=(SAMPLED,),
    )


def auc_change_interval(
    before: AnswerScores,
    after: AnswerScores,
    *,
    confidence_level: float = 0.95,
    within_systems: bool = False,
) -> Interval:
    """Change of the AUC from one score of the same answers to another, paired by question.

    Raises
    ------
    DataError
        If the two differ in which answers have a score.
    InsufficientDataError
        As for :func:`auc_interval`.
    """
    if not np.array_equal(before.scored, after.scored):
        raise DataError("before and after must score the same answers")
    first, second = (_usable(a, within_systems=within_systems) for a in (before, after))
    influence = second.influence - first.influence
    change = QuestionAUC(auc=0.5, influence=influence, n_pairs=first.n_pairs)
    estimate = second.auc - first.auc
    half = t_quantile(0.5 + confidence_level / 2, first.n_pairs - 1) * _error(change)
    return Interval(
        estimate=estimate,
        lower=max(estimate - half, -1.0),
        upper=min(estimate + half, 1.0),
        confidence_level=confidence_level,
        method="DeLong by question, paired",
        n_labeled=len(influence),
        assumptions=(SAMPLED,),
    )


def _usable(answers: AnswerScores, *, within_systems: bool) -> QuestionAUC:
    found = question_auc(answers, within_systems=within_systems)
    if found.n_pairs < _MIN_PAIRS:
        raise InsufficientDataError(
            f"the AUC is {found.auc:.3f}, but only {found.n_pairs} pair(s) of different questions "
            f"with a correct and a wrong answer can be formed; an interval needs {_MIN_PAIRS}",
            n=found.n_pairs,
            n_needed=_MIN_PAIRS,
        )
    return found


def _error(found: QuestionAUC) -> float:
    """Standard error, from influences whose mean is 0."""
    n = len(found.influence)
    error = math.sqrt(float(np.sum(found.influence**2)) / (n * (n - 1)))
    if error < _NO_ERROR:
        raise InsufficientDataError(
            f"the {n} questions do not differ in how well the score separates their answers, so "
            "nothing is known about how much they vary",
            n=n,
        )
    return error


def _expit(value: float) -> float:
    return 1 / (1 + math.exp(-value)) if value >= 0 else math.exp(value) / (1 + math.exp(value))
