"""How much a correctness score rewards the system rather than the answer ([W] §5)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rag_sourcebias.errors import DataError, InsufficientDataError
from rag_sourcebias.types.answer_parts import AnswerSpread
from rag_sourcebias.types.answers import AnswerScores
from rag_sourcebias.types.arrays import FloatArray, IntArray

__all__ = [
    "PairedAnswers",
    "answer_spread",
    "correctness_auc",
    "paired_correct",
    "system_aucs",
]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PairedAnswers:
    """Scores of correct answers to the questions that every system answered correctly.

    Parameters
    ----------
    systems : tuple of str, length k
    question_ids : tuple of str, length m
    rows : int64 array of shape (m, k)
        Where each answer stands in the :class:`AnswerScores`.
    scores : float64 array of shape (m, k)
    """

    systems: tuple[str, ...]
    question_ids: tuple[str, ...]
    rows: IntArray
    scores: FloatArray


def paired_correct(answers: AnswerScores) -> PairedAnswers:
    """Take the questions that every system answered correctly, with a score.

    Raises
    ------
    InsufficientDataError
        If there is no such question.
    """
    systems = answers.system_names
    usable = answers.scored & (answers.correct == 1)
    table = np.full((int(answers.question_codes.max()) + 1, len(systems)), -1, dtype=np.int64)
    table[answers.question_codes[usable], answers.system_codes[usable]] = np.flatnonzero(usable)
    rows = table[(table >= 0).all(axis=1)]
    if not len(rows):
        counts = np.bincount(answers.system_codes[usable], minlength=len(systems)).tolist()
        shown = ", ".join(f"{s!r} {n}" for s, n in zip(systems, counts, strict=True))
        raise InsufficientDataError(
            f"no question has a correct, scored answer of every system (such answers: {shown}); "
            "leave out systems that answer little, or judge more answers",
            n=0,
        )
    return PairedAnswers(
        systems=systems,
        question_ids=tuple(answers.question_ids[i] for i in rows[:, 0]),
        rows=rows,
        scores=answers.scores[rows],
    )


def answer_spread(answers: AnswerScores, *, ddof: int = 0) -> AnswerSpread:
    """Mean score per system on correct answers, paired by question, and its spread.

    Parameters
    ----------
    ddof : int
        0 is the standard deviation of these systems ([W]), 1 estimates that of all systems such
        as these; must be less than the number of systems.

    Raises
    ------
    InsufficientDataError
        If no question was answered correctly by every system.
    """
    pairs = paired_correct(answers)
    n, k = pairs.scores.shape
    if not 0 <= ddof < k:
        raise DataError(f"ddof {ddof} must be at least 0 and less than the {k} system(s)")
    means = pairs.scores.mean(axis=0)
    within = float(np.sqrt(pairs.scores.var(axis=0, ddof=1).mean())) if n > 1 else 0.0
    # Equal scores differ by rounding from their mean.
    within_sd = within if within > 1e-12 * max(1.0, float(np.abs(means).max())) else None
    usable = answers.scored & (answers.correct == 1)
    counts = np.bincount(answers.system_codes[usable], minlength=k)
    effects = None if within_sd is None else (means - means.mean()) / within_sd
    return AnswerSpread(
        systems=pairs.systems,
        means=tuple(means.tolist()),
        n_correct=tuple(counts.tolist()),
        n_questions=n,
        unfairness=float(means.std(ddof=ddof)),
        within_sd=within_sd,
        effects=None if effects is None else tuple(effects.tolist()),
    )


def correctness_auc(answers: AnswerScores) -> float | None:
    """Probability that a correct answer scores above a wrong one, ties counting one half.

    Over all scored answers with a human verdict, of all systems together.

    Returns
    -------
    float or None
        In [0, 1]; None if there is no correct or no wrong answer.
    """
    usable = answers.scored & ~np.isnan(answers.correct)
    right = answers.correct[usable] == 1
    n1 = int(np.count_nonzero(right))
    n0 = len(right) - n1
    if not n0 or not n1:
        return None
    _, code, count = np.unique(answers.scores[usable], return_inverse=True, return_counts=True)
    mid_ranks = (np.cumsum(count) - (count - 1) / 2)[code]
    return (float(mid_ranks[right].sum()) - n1 * (n1 + 1) / 2) / (n1 * n0)


def system_aucs(answers: AnswerScores) -> dict[str, float | None]:
    """:func:`correctness_auc` among the answers of each system."""
    codes = answers.system_codes
    return {
        name: correctness_auc(answers.take(codes == code))
        for code, name in enumerate(answers.system_names)
    }
