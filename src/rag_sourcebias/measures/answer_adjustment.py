"""A correctness score without what length and style add to it (METHODS §3).

Among correct answers to the same question a difference in score is style. The adjustment learns
from these differences how the score falls with length, and subtracts that. Where one system alone
writes answers of some length, what is its own and what is length cannot be told apart, and both
go; ``within_systems`` learns from the lengths within each system only, and leaves the former.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError, InsufficientDataError
from rag_sourcebias.types.answers import AnswerScores
from rag_sourcebias.types.arrays import FloatArray, IntArray

__all__ = ["StyleAdjustment", "cross_fit_adjustment", "fit_adjustment"]

_PER_COEFFICIENT = 5  # answers beyond the first of each question, for every coefficient
_CONSTANT = 1e-9  # a spread below this share of the values is rounding


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StyleAdjustment:
    """What the style of an answer adds to its score; made by :func:`fit_adjustment`.

    Parameters
    ----------
    shortest, longest : float
        ln(1 + words) of the correct answers it was fitted on; beyond them the offset is constant.
    knots : tuple of float
        ln(1 + words) where the slope changes.
    covariates : tuple of str
        Other properties, each linear.
    coefficients : float64 array of shape (1 + knots + covariates,)
        Of ln(1 + words), of the change at each knot, of each covariate.
    center : float
        Makes the mean offset of the fitted answers 0: the score keeps its level.
    n_answers, n_questions : int
        Correct answers behind it, and their questions, each with at least two.
    encoder : str
        Fingerprint of the encoder whose similarities it was fitted on; empty where it is not
        known, or where the scores come from something else.
    """

    shortest: float
    longest: float
    knots: tuple[float, ...]
    covariates: tuple[str, ...]
    coefficients: FloatArray
    center: float
    n_answers: int
    n_questions: int
    encoder: str = ""

    def offset(self, answers: AnswerScores) -> FloatArray:
        """What style adds to the score of each answer; shape (len(answers),)."""
        span = (self.shortest, self.longest)
        return _terms(answers, span, self.knots, self.covariates) @ self.coefficients - self.center

    def apply(self, answers: AnswerScores) -> AnswerScores:
        """Return the answers with the offset subtracted from their scores.

        Raises
        ------
        DataError
            If the answers lack a covariate of the fit.
        """
        return answers.with_scores(answers.scores - self.offset(answers))


def fit_adjustment(
    answers: AnswerScores, *, within_systems: bool = False, encoder: str = ""
) -> StyleAdjustment:
    """Learn from correct answers to the same questions what style adds to the score.

    Least squares of score − mean over the question on the same differences of ln(1 + words),
    linear between knots at its quartiles, and of the covariates. Wrong and unjudged answers are
    not used.

    Parameters
    ----------
    answers : AnswerScores
        Scores in any unit, with verdicts of people; several systems for each question.
    within_systems : bool
        Take out the mean of each system too, so that only answers of one system of different
        length say what length does. It removes less, and nothing that length does not explain.
    encoder : str
        Fingerprint of the encoder behind the scores, kept with the adjustment.

    Raises
    ------
    InsufficientDataError
        If too few questions have several correct answers.

    Examples
    --------
    >>> words = np.tile([1, 5, 20, 60], 30)
    >>> given = AnswerScores(
    ...     question_ids=tuple(f"q{i // 4}" for i in range(120)),
    ...     systems=("a", "b", "c", "d") * 30,
    ...     scores=1 - 0.1 * np.log1p(words),
    ...     correct=np.ones(120),
    ...     words=words,
    ... )
    >>> np.ptp(fit_adjustment(given).apply(given).scores).round(6)
    np.float64(0.0)
    """
    used = answers.scored & (answers.correct == 1)
    used &= (np.bincount(answers.question_codes, weights=used) > 1)[answers.question_codes]
    n = int(np.count_nonzero(used))
    questions = answers.question_codes[used]
    n_questions = len(np.unique(questions))
    covariates = tuple(answers.covariates)
    lengths = np.log1p(answers.words[used]) if n else np.zeros(1)
    span = (float(lengths.min()), float(lengths.max()))
    inner = np.unique(np.quantile(lengths, [0.25, 0.5, 0.75]))
    knots = tuple(inner[(inner > span[0]) & (inner < span[1])].tolist())
    needed = _PER_COEFFICIENT * (1 + len(knots) + len(covariates))
    if within_systems:
        needed += len(answers.system_names) - 1
    if n - n_questions < needed:
        raise InsufficientDataError(
            f"{n} correct, scored answers to {n_questions} question(s) with several of them are "
            f"too few to learn what style adds; {needed} more answers than questions are needed",
            n=n - n_questions,
            n_needed=needed,
        )
    chosen = answers.take(used)
    terms = _terms(chosen, span, knots, covariates)
    scores, within = _within(chosen.scores, questions), _within(terms, questions)
    if within_systems:
        own = _within(np.eye(len(chosen.system_names))[chosen.system_codes], questions)
        within = within - own @ np.linalg.lstsq(own, within, rcond=1e-9)[0]
    # A constant column differs from its mean by rounding only, which must not become a slope.
    moved = within.std(axis=0) > _CONSTANT * (1e-300 + np.abs(terms).max(axis=0))
    scale = np.where(moved, within.std(axis=0), np.inf)
    coefficients = np.linalg.lstsq(within / scale, scores, rcond=1e-9)[0] / scale
    return StyleAdjustment(
        shortest=span[0],
        longest=span[1],
        knots=knots,
        covariates=covariates,
        coefficients=coefficients,
        center=float((terms @ coefficients).mean()),
        n_answers=n,
        n_questions=n_questions,
        encoder=encoder,
    )


def cross_fit_adjustment(
    answers: AnswerScores,
    *,
    folds: int = 5,
    within_systems: bool = False,
    rng: np.random.Generator | int = 0,
) -> AnswerScores:
    """Adjust each answer with a fit that has not seen its question.

    Parameters
    ----------
    folds : int
        Parts into which the questions are dealt at random.
    within_systems : bool
        As for :func:`fit_adjustment`.

    Returns
    -------
    AnswerScores
        In the same order, with adjusted scores.

    Raises
    ------
    DataError
        If there are fewer questions than folds, or fewer than 2 folds.
    InsufficientDataError
        If the questions outside some fold are too few for a fit.
    """
    codes = answers.question_codes
    n = int(codes.max()) + 1
    if not 2 <= folds <= n:
        raise DataError(f"folds {folds} must be between 2 and the number of questions, {n}")
    part = np.random.default_rng(rng).permutation(n) % folds
    scores = np.empty(len(answers))
    for fold in range(folds):
        inside = (part == fold)[codes]
        fit = fit_adjustment(answers.take(~inside), within_systems=within_systems)
        scores[inside] = fit.apply(answers.take(inside)).scores
    return answers.with_scores(scores)


def _terms(
    answers: AnswerScores,
    span: tuple[float, float],
    knots: tuple[float, ...],
    covariates: tuple[str, ...],
) -> FloatArray:
    """One column per coefficient."""
    lacking = [name for name in covariates if name not in answers.covariates]
    if lacking:
        raise DataError(
            f"the adjustment was fitted with covariate {lacking[0]!r}, which these answers lack; "
            f"they have {list(answers.covariates)}"
        )
    length = np.clip(np.log1p(answers.words), *span)
    columns = [length, *(np.maximum(length - knot, 0.0) for knot in knots)]
    return np.column_stack(columns + [answers.covariates[name] for name in covariates])


def _within(values: FloatArray, groups: IntArray) -> npt.NDArray[Any]:
    """Values minus the mean of their group, along the first axis."""
    _, code = np.unique(groups, return_inverse=True)
    columns = values.reshape(len(values), -1)
    sums = np.column_stack([np.bincount(code, weights=column) for column in columns.T])
    centred = columns - (sums / np.bincount(code)[:, None])[code]
    return centred.reshape(values.shape)
