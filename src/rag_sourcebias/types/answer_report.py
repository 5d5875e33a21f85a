"""What an audit of correctness scores found, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError
from rag_sourcebias.types.answer_parts import (
    AnswerFinding,
    AnswerSpread,
    RankInversions,
    ThresholdVerdicts,
)
from rag_sourcebias.types.intervals import Interval
from rag_sourcebias.types.serial import from_versioned, to_plain
from rag_sourcebias.types.text_stats import TextStatistic

__all__ = [
    "ANSWER_SCHEMA_VERSION",
    "AnswerBias",
    "AnswerBiasReport",
    "AnswerConfig",
    "AnswerScorer",
    "AnsweringSystem",
    "SystemCorrectness",
    "SystemDifference",
]

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
    labels : int or None
        Human labels per system for the intervals of human correctness; drawn from those there
        are. None: all there are.
    confidence_level : float
    resamples : int
    seed : int
    """

    threshold: float | None = None
    adjust: bool = True
    folds: int = 5
    ddof: int = 0
    labels: int | None = None
    confidence_level: float = 0.95
    resamples: int = 10_000
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.confidence_level < 1:
            raise DataError(f"confidence_level {self.confidence_level} is outside (0, 1)")
        if self.resamples < 100:
            raise DataError(f"resamples {self.resamples} is too few; use at least 100")
        if self.folds < 2:
            raise DataError(f"folds {self.folds} must be at least 2")
        if self.ddof not in (0, 1):
            raise DataError(f"ddof {self.ddof} must be 0 or 1")
        if self.labels is not None and self.labels < 2:
            raise DataError(f"labels {self.labels} per system is too few; at least 2 are needed")


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
        The same between answers of one system, over all pairs; not in reports of version 0.1.
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
    auc_within: Interval | None = None


@dataclass(frozen=True, kw_only=True)
class SystemCorrectness:
    """Human correctness of one system from few labels and many scores.

    Parameters
    ----------
    n_labeled, n_unlabeled : int
    labels_alone : Interval or None
    with_scores : Interval or None
        With a rectifier of the system's own.
    truth : float or None
        Where people judged every answer and only some labels were used.
    """

    system: str
    n_labeled: int
    n_unlabeled: int
    labels_alone: Interval | None
    with_scores: Interval | None
    truth: float | None


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
    n_flips : int
        Answers whose verdict the adjustment changes, each score at its own threshold.
    correctness : tuple of SystemCorrectness
    notes : tuple of str
    auc_change : Interval or None
        AUC of the adjusted score minus that of the raw one, paired by question.
    auc_change_within : Interval or None
        The same of the AUC within systems: the first also rises by putting systems side by side.
    finding : AnswerFinding or None
        The verdict; None in reports of version 0.1.
    """

    name: str
    settings: Mapping[str, str]
    scores: npt.NDArray[np.float64] = field(repr=False)
    adjusted_scores: npt.NDArray[np.float64] = field(repr=False)
    raw: AnswerBias
    adjusted: AnswerBias | None = None
    adjustment: str = ""
    spread_cut: float | None = None
    n_flips: int = 0
    correctness: tuple[SystemCorrectness, ...] = ()
    notes: tuple[str, ...] = ()
    auc_change: Interval | None = None
    auc_change_within: Interval | None = None
    finding: AnswerFinding | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class AnswerBiasReport:
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
    """

    schema_version: int
    name: str
    config: AnswerConfig
    question_ids: tuple[str, ...] = field(repr=False)
    answer_systems: tuple[str, ...] = field(repr=False)
    correct: npt.NDArray[np.float64] = field(repr=False)
    words: npt.NDArray[np.int64] = field(repr=False)
    systems: tuple[AnsweringSystem, ...]
    scorers: tuple[AnswerScorer, ...]
    environment: Mapping[str, str]
    created: str
    text_statistics: tuple[TextStatistic, ...] = ()
    license: str = ""
    attribution: str = ""
    warnings: tuple[str, ...] = ()
    kind: Literal["answers"] = "answers"

    def scorer(self, name: str) -> AnswerScorer:
        """Return one scorer by name."""
        for scorer in self.scorers:
            if scorer.name == name:
                return scorer
        raise DataError(f"no scorer {name!r}; there are {[s.name for s in self.scorers]}")

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return dict(to_plain(self))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> AnswerBiasReport:
        """Read what :meth:`to_dict` wrote.

        Raises
        ------
        UnsupportedVersionError
            If it was written by a release with another schema.
        """
        return from_versioned(cls, data, version=ANSWER_SCHEMA_VERSION, what="answer report")
