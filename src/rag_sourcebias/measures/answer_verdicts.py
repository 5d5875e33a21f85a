"""What a biased correctness score does to verdicts: pass or fail, and who is best."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np

from rag_sourcebias.errors import DataError, InsufficientDataError
from rag_sourcebias.measures.answers import paired_correct
from rag_sourcebias.types.answer_parts import RankInversions, ThresholdVerdicts
from rag_sourcebias.types.answers import AnswerScores
from rag_sourcebias.types.arrays import IntArray

__all__ = [
    "answered_by_all",
    "best_threshold",
    "rank_inversions",
    "threshold_verdicts",
    "verdict_flips",
]

_SAME = 1e-12  # means closer than this are tied: the order of summation decides between them


def threshold_verdicts(answers: AnswerScores, threshold: float) -> ThresholdVerdicts:
    """Pass rates per system at a threshold, and verdicts that style decided.

    Raises
    ------
    DataError
        If the threshold is not finite.
    InsufficientDataError
        If no question was answered correctly by every system.
    """
    _check_threshold(threshold)
    pairs = paired_correct(answers)
    passed = (pairs.scores >= threshold).sum(axis=1)

    def rates(verdict: int) -> tuple[float | None, ...]:
        rows = answers.scored & (answers.correct == verdict)
        k = len(pairs.systems)
        total = np.bincount(answers.system_codes[rows], minlength=k).tolist()
        good = answers.system_codes[rows & (answers.scores >= threshold)]
        hits = np.bincount(good, minlength=k).tolist()
        return tuple(h / n if n else None for h, n in zip(hits, total, strict=True))

    return ThresholdVerdicts(
        systems=pairs.systems,
        pass_correct=rates(1),
        pass_wrong=rates(0),
        n_questions=len(passed),
        n_flipped=int(np.count_nonzero((passed > 0) & (passed < len(pairs.systems)))),
    )


def best_threshold(answers: AnswerScores) -> float | None:
    """Threshold with the largest sum of passing correct and failing wrong answers, as shares.

    Chosen and judged on the same answers it looks a little better than it is (Youden 1950).

    Returns
    -------
    float or None
        Halfway between the two scores it separates; the lowest score where no threshold is better
        than passing everything. None without a correct or without a wrong answer.
    """
    usable = answers.scored & ~np.isnan(answers.correct)
    right = answers.correct[usable] == 1
    n1 = int(np.count_nonzero(right))
    n0 = len(right) - n1
    if not n0 or not n1:
        return None
    values, code = np.unique(answers.scores[usable], return_inverse=True)
    # Passing from values[i] on: the wrong below it fail, the correct below it are lost.
    wrong_below = np.cumsum(np.bincount(code[~right], minlength=len(values)))[:-1]
    right_below = np.cumsum(np.bincount(code[right], minlength=len(values)))[:-1]
    gain = np.concatenate(([0.0], wrong_below / n0 - right_below / n1))
    best = int(np.argmax(gain))
    if best == 0:
        return float(values[0])
    middle = float(values[best - 1] + (values[best] - values[best - 1]) / 2)
    return middle if middle > values[best - 1] else float(values[best])


def verdict_flips(
    before: AnswerScores,
    after: AnswerScores,
    threshold: float,
    *,
    threshold_after: float | None = None,
) -> tuple[IntArray, IntArray]:
    """Answers whose verdict changes between two scores, such as raw and adjusted.

    Parameters
    ----------
    before, after : AnswerScores
        The same answers in the same order.
    threshold : float
    threshold_after : float, optional
        Of the second score; by default the same.

    Returns
    -------
    to_pass, to_fail : int64 arrays
        Numbers of the rows that fail before and pass after, and the reverse, rising; rows without
        both scores are in neither.
    """
    later = threshold if threshold_after is None else threshold_after
    _check_threshold(threshold)
    _check_threshold(later)
    if (before.question_ids, before.systems) != (after.question_ids, after.systems):
        raise DataError("before and after must hold the same answers in the same order")
    both = before.scored & after.scored
    first, second = before.scores >= threshold, after.scores >= later
    return np.flatnonzero(both & ~first & second), np.flatnonzero(both & first & ~second)


def answered_by_all(answers: AnswerScores) -> IntArray:
    """Rows of the questions for which every system has a scored and judged answer.

    Returns
    -------
    int64 array of shape (questions, systems)

    Raises
    ------
    InsufficientDataError
        If there is no such question.
    """
    k = len(answers.system_names)
    usable = answers.scored & ~np.isnan(answers.correct)
    table = np.full((int(answers.question_codes.max()) + 1, k), -1, dtype=np.int64)
    table[answers.question_codes[usable], answers.system_codes[usable]] = np.flatnonzero(usable)
    rows: IntArray = table[(table >= 0).all(axis=1)]
    if not len(rows):
        raise InsufficientDataError(
            f"no question has a scored and judged answer of each of the {k} system(s)", n=0
        )
    return rows


def rank_inversions(answers: AnswerScores) -> RankInversions:
    """Compare the order of systems by score with that by human correctness.

    Only questions for which every system has a scored and judged answer count, so that no system
    is helped by easier questions.

    Raises
    ------
    InsufficientDataError
        If there is no such question.
    """
    systems = answers.system_names
    rows = answered_by_all(answers)
    score, human = answers.scores[rows].mean(axis=0), answers.correct[rows].mean(axis=0)
    inversions, n_pairs = [], 0
    for i, j in combinations(range(len(systems)), 2):
        by_score, by_people = float(score[i] - score[j]), float(human[i] - human[j])
        if min(abs(by_score), abs(by_people)) <= _SAME:
            continue
        n_pairs += 1
        if by_score * by_people < 0:
            best, other = (i, j) if by_people > 0 else (j, i)
            inversions.append((systems[best], systems[other]))
    return RankInversions(
        systems=systems,
        mean_scores=tuple(score.tolist()),
        correctness=tuple(human.tolist()),
        n_questions=len(rows),
        inversions=tuple(inversions),
        n_pairs=n_pairs,
    )


def _check_threshold(threshold: float) -> None:
    if not math.isfinite(threshold):
        raise DataError(f"threshold {threshold} must be a finite number on the scale of the score")
