"""What was found, as a code with its numbers; sentences are made of these at the very end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from rag_sourcebias.core.values import Interval


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


class ChangeCode(StrEnum):
    """Why a verdict of version 0.1 differs from that of today on the same numbers.

    ``unequal_counts``: its test of source skew measured unequal numbers of relevant documents too.
    ``style_rule``: it named every style that differs from the original by a twentieth of the
    places, and did not ask first whether all are alike within a margin. ``auc``: it judged an
    adjustment by the AUC over all systems. ``interval``: its intervals changed their method with
    how many queries differ.
    """

    UNEQUAL_COUNTS = "unequal_counts"
    STYLE_RULE = "style_rule"
    AUC = "auc"
    INTERVAL = "interval"


@dataclass(frozen=True, kw_only=True)
class VerdictChange:
    """A verdict of version 0.1 that would differ now.

    Parameters
    ----------
    subject : str
        What was judged: a system, a score, a system on data.
    was, now : str
        Both verdicts, in a few words.
    numbers : mapping of str to float
        What they rest on.
    """

    code: ChangeCode
    subject: str
    was: str
    now: str
    numbers: Mapping[str, float]
