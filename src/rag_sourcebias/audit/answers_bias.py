"""Everything that can be said about one correctness score."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import combinations
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from rag_sourcebias.audit.answers_auc import auc_interval
from rag_sourcebias.errors import InsufficientDataError
from rag_sourcebias.inference import (
    clustered_difference,
    clustered_mean,
    spread_interval,
)
from rag_sourcebias.inference.answer_finding import SMALL
from rag_sourcebias.inference.planning import queries_to_tell
from rag_sourcebias.inference.quantiles import normal_quantile
from rag_sourcebias.inference.spread import MIN_ROWS
from rag_sourcebias.measures.answer_length import length_correlation
from rag_sourcebias.measures.answer_verdicts import (
    answered_by_all,
    best_threshold,
    rank_inversions,
    threshold_verdicts,
)
from rag_sourcebias.measures.answers import (
    PairedAnswers,
    answer_spread,
    paired_correct,
    system_aucs,
)
from rag_sourcebias.types.answer_parts import AnswerSpread, RankInversions
from rag_sourcebias.types.answer_report import AnswerBias, AnswerConfig, SystemDifference
from rag_sourcebias.types.answers import AnswerScores
from rag_sourcebias.types.intervals import Interval

__all__ = ["attempt", "measure_bias", "questions_needed"]

T = TypeVar("T")


def attempt(compute: Callable[[], T], notes: list[str], what: str) -> T | None:
    """Compute, or note why there is too little data for it."""
    try:
        return compute()
    except InsufficientDataError as error:
        notes.append(f"{what}: {error}")
        return None


def measure_bias(
    answers: AnswerScores, config: AnswerConfig, *, notes: list[str], called: str
) -> AnswerBias:
    """Measure what one score rewards besides correctness.

    Parameters
    ----------
    notes : list of str
        What a reader must know is appended.
    called : str
        The score in such notes, as "raw score".

    Raises
    ------
    InsufficientDataError
        If no question was answered correctly by every system.
    """
    pairs = paired_correct(answers)
    spread = answer_spread(answers, ddof=config.ddof)
    level, n = config.confidence_level, len(pairs.scores)
    threshold = _threshold(answers, config, notes, called)
    inversions = attempt(lambda: rank_inversions(answers), notes, f"{called}, order of systems")
    if inversions is not None:
        beyond = _beyond_chance(answers, inversions, level)
        inversions = replace(inversions, beyond_chance=beyond)
    return AnswerBias(
        spread=spread,
        means=tuple(
            attempt(
                partial(clustered_mean, column, np.arange(n), confidence_level=level),
                notes,
                f"{called}, mean of {name!r}",
            )
            for name, column in zip(pairs.systems, pairs.scores.T, strict=True)
        ),
        unfairness=attempt(
            lambda: spread_interval(
                pairs.scores,
                ddof=config.ddof,
                confidence_level=level,
                resamples=config.resamples,
                rng=config.seed,
            ),
            notes,
            f"{called}, unfairness",
        ),
        differences=_differences(pairs, spread, config, notes, called),
        length_correlation=length_correlation(answers),
        auc=attempt(lambda: auc_interval(answers, confidence_level=level), notes, f"{called}, AUC"),
        auc_within=attempt(
            lambda: auc_interval(answers, confidence_level=level, within_systems=True),
            notes,
            f"{called}, AUC within systems",
        ),
        system_aucs=system_aucs(answers),
        threshold=threshold,
        verdicts=threshold_verdicts(answers, threshold),
        inversions=inversions,
    )


def questions_needed(answers: AnswerScores, config: AnswerConfig) -> int:
    """Questions answered correctly by all systems that would tell whether a score rewards style."""
    columns = paired_correct(answers).scores
    if len(columns) < MIN_ROWS:
        return MIN_ROWS
    within = float(np.sqrt(columns.var(axis=0, ddof=1).mean()))
    tail = (1 - config.confidence_level) / 2
    quantile = normal_quantile(1 - tail)

    def alike(
        found: npt.NDArray[np.float64], queries: int, contrast: float
    ) -> npt.NDArray[np.bool_]:
        error = contrast / np.sqrt(queries * columns.shape[1])
        small: npt.NDArray[np.bool_] = found.std(axis=-1) + quantile * error < SMALL * within
        return small

    return queries_to_tell(columns, alpha=tail, alike=alike, rng=config.seed)


def _threshold(answers: AnswerScores, config: AnswerConfig, notes: list[str], called: str) -> float:
    if config.threshold is not None:
        return config.threshold
    best = best_threshold(answers)
    if best is not None:
        notes.append(
            f"{called}, threshold {best:.3g}: the one that separates correct from wrong best among "
            "these same answers; on others it will do a little worse"
        )
        return best
    middle = float(np.median(answers.scores[answers.scored & (answers.correct == 1)]))
    notes.append(
        f"{called}, threshold {middle:.3g}: the median score of correct answers; without wrong "
        "answers there is nothing to choose it by"
    )
    return middle


def _differences(
    pairs: PairedAnswers,
    spread: AnswerSpread,
    config: AnswerConfig,
    notes: list[str],
    called: str,
) -> tuple[SystemDifference, ...]:
    everyone = np.arange(len(pairs.scores))
    found = []
    for i, j in combinations(range(len(pairs.systems)), 2):
        gap = pairs.scores[:, i] - pairs.scores[:, j]
        first, second = pairs.systems[i], pairs.systems[j]
        interval = attempt(
            partial(clustered_mean, gap, everyone, confidence_level=config.confidence_level),
            notes,
            f"{called}, difference of {first!r} and {second!r}",
        )
        if interval is not None:
            effect = None if spread.within_sd is None else interval.estimate / spread.within_sd
            found.append(
                SystemDifference(first=first, second=second, difference=interval, effect=effect)
            )
    return tuple(found)


def _beyond_chance(
    answers: AnswerScores, found: RankInversions, level: float
) -> tuple[tuple[str, str], ...]:
    """Return the inversions that are more than noise: both orders are beyond chance."""
    rows = answered_by_all(answers)
    place = {name: i for i, name in enumerate(found.systems)}
    everyone = np.arange(len(rows))

    def ahead(interval: Interval | None) -> bool:
        return interval is not None and interval.lower > 0

    sure = []
    for better, worse in found.inversions:
        first, second = rows[:, place[better]], rows[:, place[worse]]
        human = answers.correct[first] - answers.correct[second]
        score = answers.scores[second] - answers.scores[first]
        try:
            both = ahead(clustered_difference(human, everyone, confidence_level=level)) and ahead(
                clustered_mean(score, everyone, confidence_level=level)
            )
        except InsufficientDataError:
            both = False
        if both:
            sure.append((better, worse))
    return tuple(sure)
