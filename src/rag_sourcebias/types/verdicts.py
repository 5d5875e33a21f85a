"""What was found, as a code with its numbers; sentences are made of these at the very end."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from rag_sourcebias.types.intervals import Interval

__all__ = ["SkewCode", "SkewVerdict"]


class SkewCode(StrEnum):
    """What can be said about one retriever and two sources.

    The first that applies: the interval lies inside the margin, or the test against no skew is
    significant, or neither.
    """

    ALIKE = "alike"
    FAVOURS_BASELINE = "favours_baseline"
    FAVOURS_OTHER = "favours_other"
    CANNOT_TELL = "cannot_tell"
    REFUSED = "refused"


@dataclass(frozen=True, kw_only=True)
class SkewVerdict:
    """The verdict on one primary measure, with everything it rests on.

    Parameters
    ----------
    code : SkewCode
    measure : str
        The primary measure, such as ``"NDCG@5"``.
    baseline, other : str
        Sources compared.
    centred_delta : float or None
        Chance-centred Relative Δ in percent, positive when the baseline ranks higher.
    interval : Interval or None
        Of ``centred_delta``.
    margin : float
        Points of centred Relative Δ within which the sources count as treated alike.
    p_value, p_adjusted : float or None
        Of no skew, by inverting the interval; adjusted over the primary measures of the report.
    n_tests : int
        Primary tests of the report, over which ``p_adjusted`` is adjusted.
    n_queries : int
        Queries with relevant documents of both sources.
    n_needed : int or None
        Where nothing can be told: queries with which a verdict is reached four times in five.
    refusal : str or None
        Why there is no interval, and the remedy.
    """

    code: SkewCode
    measure: str
    baseline: str
    other: str
    centred_delta: float | None
    interval: Interval | None
    margin: float
    p_value: float | None
    p_adjusted: float | None
    n_tests: int
    n_queries: int
    n_needed: int | None = None
    refusal: str | None = None
