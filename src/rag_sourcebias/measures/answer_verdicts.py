"""What a biased correctness score does to verdicts: pass or fail, and who is best."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError, InsufficientDataError
from rag_sourcebias.measures.answers import paired_correct
from rag_sourcebias.types.answer_parts import RankInversions, ThresholdVerdicts
from rag_sourcebias.types.answers import AnswerScores

__all__ = [
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


def verdict_flips(
    before: AnswerScores, after: AnswerScores, threshold: float
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Answers whose verdict changes between two scores, such as raw and adjusted.

    Parameters
    ----------
    before, after : AnswerScores
        The same answers in the same order.

    Returns
    -------
    to_pass, to_fail : int64 arrays
        Rows that fail before and pass after, and the reverse; rows without both scores are in
        neither.
    """
    _check_threshold(threshold)
    if (before.question_ids, before.systems) != (after.question_ids, after.systems):
        raise DataError("before and after must hold the same answers in the same order")
    both = before.scored & after.scored
    first, second = before.scores >= threshold, after.scores >= threshold
    return np.flatnonzero(both & ~first & second), np.flatnonzero(both & first & ~second)


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
    usable = answers.scored & ~np.isnan(answers.correct)
    counts = np.bincount(answers.question_codes, weights=usable)
    rows = (counts == len(systems))[answers.question_codes]
    if not rows.any():
        raise InsufficientDataError(
            f"no question has a scored and judged answer of each of the {len(systems)} system(s)",
            n=0,
        )
    codes = answers.system_codes[rows]
    n = len(codes) // len(systems)
    score = np.bincount(codes, weights=answers.scores[rows]) / n
    human = np.bincount(codes, weights=answers.correct[rows]) / n
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
        n_questions=n,
        inversions=tuple(inversions),
        n_pairs=n_pairs,
    )


def _check_threshold(threshold: float) -> None:
    if not math.isfinite(threshold):
        raise DataError(f"threshold {threshold} must be a finite number on the scale of the score")
