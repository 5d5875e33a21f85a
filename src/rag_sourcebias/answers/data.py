"""Answers as texts and as scores, and what an audit of correctness scores found, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.codec import Stored
from rag_sourcebias.core.data import BoolArray, FloatArray, IntArray
from rag_sourcebias.core.errors import (
    DataError,
    check_level,
    check_settings,
    require_at_least,
    setting,
)
from rag_sourcebias.core.finding import Evidence, Interval
from rag_sourcebias.infer.means import group_codes
from rag_sourcebias.infer.texts import TextStatistic

# Answers of several systems to the same questions, scored by a machine and judged by people.


@dataclass(frozen=True, kw_only=True, eq=False)
class AnswerScores:
    """One row per answer: its question, the system that gave it, its score, the human verdict.

    Parameters
    ----------
    question_ids, systems : tuples of str, length n
        No pair occurs twice.
    scores : float64 array of shape (n,)
        Correctness by machine, such as cosine(embed(reference), embed(answer)), in any unit;
        higher is better. NaN where there is none.
    correct : float64 array of shape (n,)
        Human verdict: 1 correct, 0 wrong, NaN where nobody judged.
    words : int64 array of shape (n,)
        Length of the answer. One without words has no style: it takes part in no measure, with or
        without a score, and is counted.
    clusters : int64 array of shape (n,), optional
        Number of the cluster of each answer's question, such as its topic.
    """

    question_ids: tuple[str, ...]
    systems: tuple[str, ...]
    scores: FloatArray
    correct: FloatArray
    words: IntArray
    clusters: IntArray | None = None

    def __len__(self) -> int:
        return len(self.question_ids)

    @property
    def system_names(self) -> tuple[str, ...]:
        """The systems, in the order in which they first occur."""
        return tuple(dict.fromkeys(self.systems))

    @property
    def system_codes(self) -> IntArray:
        """Index of each row's system in :attr:`system_names`; shape (n,)."""
        return _codes(self.systems)

    @property
    def question_codes(self) -> IntArray:
        """Index of each row's question, in the order of first occurrence; shape (n,)."""
        return _codes(self.question_ids)

    @property
    def units(self) -> IntArray:
        """What each row shares with rows that it may depend on: its cluster, or its question."""
        return self.question_codes if self.clusters is None else self.clusters

    @property
    def scored(self) -> BoolArray:
        """Which answers have words and a score."""
        return ~np.isnan(self.scores) & (self.words > 0)

    def clusters_of(self, rows: IntArray) -> IntArray | None:
        """Codes of the clusters of questions whose answers are ``rows``, of shape (n, systems)."""
        return None if self.clusters is None else group_codes(self.clusters[rows[:, 0]])

    def take(self, rows: npt.NDArray[np.integer[Any]] | BoolArray) -> AnswerScores:
        """Return some of the answers, chosen by index or by mask."""
        index = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
        return replace(
            self,
            question_ids=tuple(self.question_ids[i] for i in index),
            systems=tuple(self.systems[i] for i in index),
            scores=self.scores[index],
            correct=self.correct[index],
            words=self.words[index],
            clusters=None if self.clusters is None else self.clusters[index],
        )


def _codes(names: tuple[str, ...]) -> IntArray:
    place = {name: code for code, name in enumerate(dict.fromkeys(names))}
    return np.fromiter((place[name] for name in names), np.int64, count=len(names))


# Statistics of correctness scores that a report holds; computed in ``measures``.


class AnswerUse(StrEnum):
    """Whether a score tells right from wrong, by the interval of its AUC within systems.

    Useless is an AUC below .55: the interval lies below it, above it, or on both sides.
    """

    SEPARATES = "separates"
    USELESS = "useless"
    CANNOT_TELL = "cannot_tell"
    UNTESTED = "untested"


class AnswerStyle(StrEnum):
    """Whether equally correct answers of different systems score alike.

    Too few questions; the interval of the unfairness lies above 0 (slight where the unfairness is
    below a tenth of a standard deviation within systems); lies below that tenth; or neither.
    """

    TOO_FEW = "too_few"
    REWARDS = "rewards"
    SLIGHT = "slight"
    ALIKE = "alike"
    CANNOT_TELL = "cannot_tell"


class AdjustmentCode(StrEnum):
    """What the adjustment does.

    There is none; the AUC within systems falls, beyond chance or by .005; there was no clear
    effect to remove; the spread falls by a fifth or more; or it does not.
    """

    ABSENT = "absent"
    COSTS = "costs"
    IDLE = "idle"
    CUTS = "cuts"
    FAILS = "fails"


@dataclass(frozen=True, kw_only=True)
class AnswerFinding:
    """The verdict on one score, with what is not in its intervals.

    Parameters
    ----------
    use : AnswerUse
    style : AnswerStyle
        Of the raw score.
    left : AnswerStyle or None
        Of the adjusted score.
    adjustment : AdjustmentCode
    n_questions : int
        Questions that all systems answered correctly.
    n_needed : int or None
        Such questions with which ``style`` is decided four times in five; None where it is.
    """

    use: AnswerUse
    style: AnswerStyle
    left: AnswerStyle | None
    adjustment: AdjustmentCode
    n_questions: int
    n_needed: int | None


@dataclass(frozen=True, kw_only=True)
class AnswerSpread:
    """Mean scores of systems on answers that are all correct: any difference is style.

    Parameters
    ----------
    systems : tuple of str, length k
    means : tuple of float, length k
        Paired by question.
    n_correct : tuple of int, length k
        Scored correct answers of each system, in all.
    n_questions : int
        Questions that all systems answered correctly; the means are over these.
    unfairness : float
        Standard deviation of the means ([W] Fig. 7), in the unit of the score.
    within_sd : float or None
        Standard deviation of scores within a system, pooled; None with fewer than 2 questions or
        where it is 0.
    effects : tuple of float or None
        (mean − mean of the means) / within_sd: comparable between encoders whose cosines have
        different ranges. The difference of two is Cohen's d of the two systems; their standard
        deviation (ddof 0) is Cohen's f.
    """

    systems: tuple[str, ...]
    means: tuple[float, ...]
    n_correct: tuple[int, ...]
    n_questions: int
    unfairness: float
    within_sd: float | None
    effects: tuple[float, ...] | None


@dataclass(frozen=True, kw_only=True)
class ThresholdVerdicts:
    """Verdicts "correct if the score is at least ``threshold``".

    Parameters
    ----------
    systems : tuple of str, length k
    pass_correct, pass_wrong : tuples of float or None, length k
        Share of the correct and of the wrong answers of each system that pass; None where it has
        none.
    n_questions : int
        Questions that every system answered correctly.
    n_flipped : int
        Of these, the questions on which some answers pass and others fail: all are correct, so
        the style decided.
    """

    systems: tuple[str, ...]
    pass_correct: tuple[float | None, ...]
    pass_wrong: tuple[float | None, ...]
    n_questions: int
    n_flipped: int


@dataclass(frozen=True, kw_only=True)
class RankInversions:
    """The order of systems by mean score against their order by human correctness.

    Parameters
    ----------
    systems : tuple of str, length k
    mean_scores, correctness : tuples of float, length k
        Over the same questions.
    n_questions : int
        Questions for which every system has a scored and judged answer.
    inversions : tuple of pairs of str
        (better by people, better by score): pairs of systems in opposite orders. A tie in either
        is no inversion.
    n_pairs : int
        Pairs of systems that differ in both.
    beyond_chance : tuple of pairs of str
        The inversions that chance does not explain: both orders are beyond it.
    """

    systems: tuple[str, ...]
    mean_scores: tuple[float, ...]
    correctness: tuple[float, ...]
    n_questions: int
    inversions: tuple[tuple[str, str], ...]
    n_pairs: int
    beyond_chance: tuple[tuple[str, str], ...] = ()


# What an audit of correctness scores found, as data.


ANSWER_SCHEMA_VERSION = 1


@dataclass(frozen=True, kw_only=True)
class AnswerConfig:
    """Settings of an audit of correctness scores.

    Parameters
    ----------
    threshold : float or None
        "Correct" is a score of at least this. None: per scorer, the one that separates correct
        from wrong answers best (largest sum of the two rates).
    adjust : bool
        Whether the style-adjusted score is computed.
    folds : int
        Groups of questions of the cross-fitted adjustment.
    ddof : int
        Of the unfairness, the standard deviation of the system means ([W] Fig. 7).
    confidence_level : float
    resamples : int
    seed : int
    """

    threshold: float | None = setting(
        None,
        "Correct is a score of at least this. Default: the one that separates correct from wrong "
        "answers best.",
        panel="Scores",
    )
    adjust: bool = setting(
        True, "Also compute the score without the part that style explains.", panel="Adjustment"
    )
    folds: int = setting(5, "Groups of questions of the cross-fitting.", panel="Adjustment")
    ddof: int = 0
    confidence_level: float = setting(0.95, "")
    resamples: int = setting(10_000, "Of bootstrap and permutation tests.")
    seed: int = setting(0, "")

    def __post_init__(self) -> None:
        check_level(self.confidence_level)
        require_at_least(100, resamples=self.resamples)
        check_settings(
            (self.folds >= 2, "folds", f"{self.folds} must be at least 2"),
            (self.ddof in (0, 1), "ddof", f"{self.ddof} must be 0 or 1"),
        )


@dataclass(frozen=True, kw_only=True)
class AnsweringSystem:
    """One system whose answers are scored.

    Parameters
    ----------
    n_answers : int
        All its answers.
    n_correct, n_wrong : int
        Answers that people marked correct, and wrong.
    n_empty : int
        Answers without words.
    mean_words : float
        Of all its answers that have words.
    mean_words_correct : float or None
    """

    name: str
    n_answers: int
    n_correct: int
    n_wrong: int
    n_empty: int
    mean_words: float
    mean_words_correct: float | None


@dataclass(frozen=True, kw_only=True)
class SystemDifference:
    """Mean scores of two systems on questions that both of them, and all others, got right.

    Parameters
    ----------
    first, second : str
    difference : Interval
        First minus second, in the unit of the score.
    effect : float or None
        In standard deviations within systems (Cohen's d).
    """

    first: str
    second: str
    difference: Interval
    effect: float | None


@dataclass(frozen=True, kw_only=True)
class AnswerBias:
    """What one score, raw or adjusted, rewards besides correctness.

    Parameters
    ----------
    spread : AnswerSpread
        Over answers that are all correct, paired by question.
    means : tuple of Interval or None, one per system
    unfairness : Interval or None
        Standard deviation of the system means.
    differences : tuple of SystemDifference
    length_correlation : float or None
        Spearman, of score and words over correct answers, within questions.
    auc : Interval or None
        Probability that a correct answer scores above a wrong one; resampled by question.
    auc_within : Interval or None
        The same between answers of one system, over all pairs.
    system_aucs : mapping of str to (float or None)
    threshold : float
    verdicts : ThresholdVerdicts
    inversions : RankInversions or None
    """

    spread: AnswerSpread
    means: tuple[Interval | None, ...]
    unfairness: Interval | None
    differences: tuple[SystemDifference, ...]
    length_correlation: float | None
    auc: Interval | None
    system_aucs: Mapping[str, float | None]
    threshold: float
    verdicts: ThresholdVerdicts
    inversions: RankInversions | None
    auc_within: Interval | None


def widest_difference(bias: AnswerBias) -> SystemDifference | None:
    """Return the widest difference of two systems, if its interval excludes 0."""
    widest = max(bias.differences, key=lambda d: abs(d.difference.estimate), default=None)
    return widest if widest and widest.difference.excludes(0) else None


def extremes(bias: AnswerBias) -> tuple[str, str] | None:
    """Return the systems whose correct answers score highest and lowest; None for one system.

    Those of the widest difference if its interval excludes 0, else those of the means.
    """
    if widest := widest_difference(bias):
        sides = (widest.first, widest.second)
        return sides if widest.difference.estimate > 0 else sides[::-1]
    ranked = sorted(zip(bias.spread.means, bias.spread.systems, strict=True))
    return (ranked[-1][1], ranked[0][1]) if len(ranked) > 1 else None


@dataclass(frozen=True, kw_only=True, eq=False)
class AnswerScorer:
    """One correctness score, such as the cosine of one encoder.

    Parameters
    ----------
    scores, adjusted_scores : float64 arrays of shape (n,)
        In the order of the report's answers; NaN where there is none. The second is empty without
        an adjustment.
    raw : AnswerBias
    adjusted : AnswerBias or None
    adjustment : str
        How scores were adjusted, in words.
    spread_cut : float or None
        1 − adjusted unfairness / raw unfairness.
    notes : tuple of str
    auc_change_within : Interval or None
        AUC within systems of the adjusted score minus that of the raw one, paired by question.
    finding : AnswerFinding or None
        The verdict.
    """

    name: str
    settings: Mapping[str, str]
    scores: npt.NDArray[np.float64]
    adjusted_scores: npt.NDArray[np.float64]
    raw: AnswerBias
    adjusted: AnswerBias | None = None
    adjustment: str = ""
    spread_cut: float | None = None
    notes: tuple[str, ...] = ()
    auc_change_within: Interval | None = None
    finding: AnswerFinding | None = None
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class AnswerBiasResults(Stored):
    """The result of an audit of correctness scores.

    Parameters
    ----------
    kind : {"answers"}
        Tells report files apart.
    question_ids, answer_systems : tuples of str, length n
    correct, words : arrays of shape (n,)
    systems : tuple of AnsweringSystem
    scorers : tuple of AnswerScorer
    text_statistics : tuple of TextStatistic
        Per system, against the reference; over answers people marked correct.
    inputs : str
        Answers and scores as the command takes them; empty where it cannot.
    """

    _versioned = ("answer report", ANSWER_SCHEMA_VERSION)

    schema_version: int
    name: str
    config: AnswerConfig
    question_ids: tuple[str, ...]
    answer_systems: tuple[str, ...]
    correct: npt.NDArray[np.float64]
    words: npt.NDArray[np.int64]
    systems: tuple[AnsweringSystem, ...]
    scorers: tuple[AnswerScorer, ...]
    environment: Mapping[str, str]
    created: str
    text_statistics: tuple[TextStatistic, ...] = ()
    license: str = ""
    attribution: str = ""
    warnings: tuple[str, ...] = ()
    kind: Literal["answers"] = "answers"
    inputs: str = ""

    def scorer(self, name: str) -> AnswerScorer:
        """Return one scorer by name."""
        for scorer in self.scorers:
            if scorer.name == name:
                return scorer
        raise DataError(f"no scorer {name!r}; there are {[s.name for s in self.scorers]}")
