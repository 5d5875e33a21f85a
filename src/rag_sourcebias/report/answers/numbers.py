"""How the numbers of an answer-style report are written."""

from __future__ import annotations

import math

from rag_sourcebias.report.format import MISSING, ends_about_zero, number, score
from rag_sourcebias.report.format import interval as format_interval
from rag_sourcebias.types.answer_report import AnswerBias, AnswerScorer
from rag_sourcebias.types.intervals import Interval

__all__ = [
    "auc",
    "auc_ends",
    "change_ends",
    "correct_ends",
    "digits_of",
    "effect",
    "ends",
    "in_sds",
    "of_questions",
    "ordinal",
    "percent",
    "value",
    "with_ends",
]


def digits_of(scorer: AnswerScorer) -> int:
    """Return the decimals of a score: about two digits of its spread within systems, and one."""
    known = [b.spread.within_sd for b in (scorer.raw, scorer.adjusted) if b is not None]
    found = [sd for sd in (*known, scorer.raw.spread.unfairness) if sd]
    if not found or not math.isfinite(found[0]):
        return 3
    return min(6, max(0, math.ceil(1.5 - math.log10(found[0]))))


def value(scorer: AnswerScorer, number_: float | None, *, signed: bool = False) -> str:
    """Return a value in the unit of a score."""
    if number_ is None:
        return MISSING
    return number(number_, digits=digits_of(scorer), signed=signed)


def ends(scorer: AnswerScorer, interval: Interval | None) -> str:
    """Return the ends of an interval in the unit of a score, finer where they would look like 0."""
    return MISSING if interval is None else ends_about_zero(interval, digits=digits_of(scorer))


def with_ends(scorer: AnswerScorer, estimate: float, interval: Interval | None) -> str:
    """Return an estimate with the ends of its interval where there is one."""
    text = value(scorer, estimate)
    return text if interval is None else f"{text} {ends(scorer, interval)}"


def effect(in_sds_: float | None) -> str:
    """Return a difference in standard deviations, signed, two decimals."""
    return MISSING if in_sds_ is None else number(in_sds_, digits=2, signed=True)


def in_sds(bias: AnswerBias, number_: float) -> float | None:
    """Return a length on the scale of a score in its standard deviations within systems."""
    sd = bias.spread.within_sd
    return None if sd is None else number_ / sd


def auc(found: float | Interval | None) -> str:
    """Return an AUC with three decimals."""
    if found is None:
        return MISSING
    return number(found.estimate if isinstance(found, Interval) else found, digits=3)


def auc_ends(found: Interval | None) -> str:
    """Return an AUC with the ends of its interval."""
    return MISSING if found is None else f"{auc(found)} {format_interval(found, digits=3)}"


def change_ends(found: Interval) -> str:
    """Return a change of the AUC with the ends of its interval, all signed."""
    estimate, low, high = (
        number(v, digits=3, signed=True) for v in (found.estimate, found.lower, found.upper)
    )
    return f"{estimate} [{low}, {high}]"


def percent(share: float | None, *, digits: int | None = None) -> str:
    """Return a share as a percentage, with a decimal where it is small."""
    if share is None:
        return MISSING
    if digits is None:
        digits = 0 if abs(share) >= 0.0995 or share == 0 else 1
    return f"{number(100 * share, digits=digits)}%"


def of_questions(part: int, whole: int) -> str:
    """Return ``46% of the questions (602 of 1,312)``."""
    return f"{percent(part / whole)} of the questions ({part:,} of {whole:,})" if whole else MISSING


def ordinal(place: int) -> str:
    """Return ``1st``, ``2nd``, ``3rd``, ``4th``."""
    teen = place % 100 in (11, 12, 13)
    return f"{place}{'th' if teen else {1: 'st', 2: 'nd', 3: 'rd'}.get(place % 10, 'th')}"


def correct_ends(found: Interval | None) -> str:
    """Return a share of correct answers, ×100, with the ends of its interval."""
    if found is None:
        return MISSING
    return f"{score(found.estimate)} {format_interval(found, scale=100)}"
