"""The parts of a judged evaluation: means, comparisons, single queries, curves."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from rag_sourcebias.types.arrays import FloatArray
from rag_sourcebias.types.intervals import Interval

__all__ = ["CoveragePoint", "JudgedComparison", "JudgedMean", "QueryIntervals"]


@dataclass(frozen=True, kw_only=True)
class JudgedMean:
    """The mean of one measure for one system.

    Parameters
    ----------
    measure : str
        Such as ``"correctness"`` or ``"NDCG@10"``.
    system : str
        Run, system or group; ``""`` when there is one.
    interval : Interval
        The answer, by the method of the configuration.
    labels_alone : Interval or None
        From the human labels without the judge; None when they cannot give one.
    judge_alone : float
        Mean judge value of all items, uncorrected.
    labels_saved : int or None
        Human labels that labels alone would need for the same width, minus those used. Negative
        when the judge made things worse; None when there is no ``labels_alone``.
    """

    measure: str
    system: str
    interval: Interval
    labels_alone: Interval | None
    judge_alone: float
    labels_saved: int | None


@dataclass(frozen=True, kw_only=True)
class JudgedComparison:
    """Two systems, or two sources within a system, compared on one measure.

    Parameters
    ----------
    kind : {"difference", "relative_delta"}
        Mean difference (first minus second), or Relative Δ in percent.
    system : str
        Where two sources are compared: the run. ``""`` for a difference of systems.
    """

    kind: Literal["difference", "relative_delta"]
    measure: str
    system: str
    first: str
    second: str
    interval: Interval


@dataclass(frozen=True, kw_only=True, eq=False)
class QueryIntervals:
    """An interval for every query (conformal risk control, [R] §6).

    Parameters
    ----------
    query_ids : tuple of str
    estimate, lower, upper : float64 arrays of shape (n_queries,)
    human : float64 array of shape (n_queries,)
        NaN where the query has no human labels.
    highest : float
        Largest value the measure can take, for scale.
    rule : str
    assumptions : tuple of str
    """

    measure: str
    system: str
    query_ids: tuple[str, ...]
    estimate: FloatArray = field(repr=False)
    lower: FloatArray = field(repr=False)
    upper: FloatArray = field(repr=False)
    human: FloatArray = field(repr=False)
    highest: float
    rule: str
    confidence_level: float
    assumptions: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class CoveragePoint:
    """What a method would do with n labels, by resampling the labelled items.

    Parameters
    ----------
    coverage : float
        Share of simulated intervals that held the mean of the labelled items.
    mean_width : float
    """

    measure: str
    system: str
    method: str
    n: int
    coverage: float
    mean_width: float
