"""Statistics of correctness scores that a report holds; computed in ``measures``."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = [
    "AdjustmentCode",
    "AnswerFinding",
    "AnswerSpread",
    "AnswerStyle",
    "AnswerUse",
    "RankInversions",
    "ThresholdVerdicts",
]


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


@dataclass(frozen=True, slots=True, kw_only=True)
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
    n_needed: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
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
    beyond_chance : tuple of pairs of str, or None
        The inversions that chance does not explain: both orders are beyond it. None in reports of
        version 0.1, whose notes say how many.
    """

    systems: tuple[str, ...]
    mean_scores: tuple[float, ...]
    correctness: tuple[float, ...]
    n_questions: int
    inversions: tuple[tuple[str, str], ...]
    n_pairs: int
    beyond_chance: tuple[tuple[str, str], ...] | None = None
