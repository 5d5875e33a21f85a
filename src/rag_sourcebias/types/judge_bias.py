"""How far a judge is above or below people, by group."""

from __future__ import annotations

from dataclasses import dataclass

from rag_sourcebias.types.intervals import Interval

__all__ = ["BiasDifference", "GroupBias"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupBias:
    """Mean judge − human difference of one group.

    ``bias`` is None where the differences have no spread to estimate from.
    """

    group: str
    n: int
    human_mean: float
    judge_mean: float
    bias: Interval | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BiasDifference:
    """Bias of one group minus that of another (``"rest"``: all other items).

    ``p_adjusted`` is Holm-adjusted over the differences of the audit.
    """

    group: str
    other: str
    difference: Interval
    p_value: float
    p_adjusted: float
