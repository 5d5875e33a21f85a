"""What a judged evaluation found: intervals for means, comparisons and single queries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from rag_sourcebias.errors import DataError
from rag_sourcebias.types.intervals import JUDGE_NOTES
from rag_sourcebias.types.judge_audit import JudgeAudit
from rag_sourcebias.types.judged_parts import (
    CoveragePoint,
    JudgedComparison,
    JudgedMean,
    QueryIntervals,
)
from rag_sourcebias.types.serial import from_versioned, to_plain

__all__ = ["JUDGED_SCHEMA_VERSION", "JudgedConfig", "JudgedReport"]

JUDGED_SCHEMA_VERSION = 1


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
        report = from_versioned(cls, data, version=JUDGED_SCHEMA_VERSION, what="judged report")
        return replace(report, means=tuple(map(_with_finding, report.means)))


def _with_finding(mean: JudgedMean) -> JudgedMean:
    """Give what version 0.1 found of a judge, and only said, its code."""
    interval = mean.interval
    for code, note in JUDGE_NOTES.items():
        if note in interval.notes:
            interval = replace(interval, judge=code)
    return replace(mean, interval=interval)
