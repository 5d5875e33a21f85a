"""What a judged evaluation found: intervals for means, comparisons and single queries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError, UnsupportedVersionError
from rag_sourcebias.types.intervals import Interval
from rag_sourcebias.types.judge_audit import JudgeAudit
from rag_sourcebias.types.serial import from_plain, to_plain

__all__ = [
    "JUDGED_SCHEMA_VERSION",
    "CoveragePoint",
    "JudgedComparison",
    "JudgedConfig",
    "JudgedMean",
    "JudgedReport",
    "QueryIntervals",
]

JUDGED_SCHEMA_VERSION = 1
FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class JudgedConfig:
    """Settings of a judged evaluation.

    Parameters
    ----------
    method : str
        A method of :func:`rag_sourcebias.intervals.mean_interval`.
    target : {"population", "pool", "unlabeled"}
    confidence_level : float
    gain : {"exponential", "linear"}
        Gain of grade r in DCG and NDCG: 2^r − 1, or r.
    min_grade : int
        Lowest grade that counts as relevant in P, MAP, MRR and recall.
    per_query : bool
        Whether intervals of single queries are wanted (DCG and P only).
    coverage_runs : int
        Simulated evaluations per size for the width and coverage curves; 0 for none.
    seed : int
    """

    method: str = "regression"
    target: Literal["population", "pool", "unlabeled"] = "population"
    confidence_level: float = 0.95
    gain: Literal["exponential", "linear"] = "exponential"
    min_grade: int = 1
    per_query: bool = True
    coverage_runs: int = 200
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.confidence_level < 1:
            raise DataError(f"confidence_level {self.confidence_level} is outside (0, 1)")
        if self.min_grade < 1:
            raise DataError(f"min_grade {self.min_grade} must be at least 1")


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


@dataclass(frozen=True, kw_only=True, eq=False)
class JudgedReport:
    """The result of a judged evaluation.

    Parameters
    ----------
    kind : {"items", "ranking"}
        Answers or other items with one value each; or rankings with labelled documents.
    n_labeled, n_unlabeled, n_judge_missing : int
        Items, or queries and (for the last) pairs.
    audits : mapping of str to JudgeAudit
        How the judge compares with people, by measure (items) or under ``"grades"`` (ranking).
    warnings : tuple of str
        What the reader must know before trusting a number.
    """

    schema_version: int
    kind: Literal["items", "ranking"]
    name: str
    config: JudgedConfig
    n_labeled: int
    n_unlabeled: int
    n_judge_missing: int
    means: tuple[JudgedMean, ...]
    comparisons: tuple[JudgedComparison, ...]
    per_query: tuple[QueryIntervals, ...]
    curves: tuple[CoveragePoint, ...]
    audits: Mapping[str, JudgeAudit]
    environment: Mapping[str, str]
    created: str
    warnings: tuple[str, ...] = ()

    def mean(self, measure: str, system: str = "") -> JudgedMean:
        """Return one mean."""
        for found in self.means:
            if found.measure == measure and found.system == system:
                return found
        raise DataError(
            f"no mean of {measure!r} for system {system!r}; there are "
            f"{[(m.measure, m.system) for m in self.means]}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return dict(to_plain(self))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> JudgedReport:
        """Read what :meth:`to_dict` wrote.

        Raises
        ------
        UnsupportedVersionError
            If it was written by a release with another schema.
        """
        version = data.get("schema_version")
        if version != JUDGED_SCHEMA_VERSION:
            raise UnsupportedVersionError(
                f"judged report schema version {version!r} cannot be read; "
                f"this release reads version {JUDGED_SCHEMA_VERSION}"
            )
        return from_plain(cls, data)
