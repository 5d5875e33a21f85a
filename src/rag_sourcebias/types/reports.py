"""What an audit found, as data: the report pages are views of these objects.

Every number that a report shows is derived from the per-query arrays stored here, so a reader can
recompute it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from rag_sourcebias.errors import DataError
from rag_sourcebias.types.serial import from_versioned, to_plain
from rag_sourcebias.types.skew import (
    AcrossSources,
    CentredDelta,
    ChanceSkew,
    ExposureShare,
    SettingSkew,
    SkewCell,
    SoleCorpusCheck,
    SourceScores,
    SystemSkew,
    TwinSkew,
)
from rag_sourcebias.types.text_stats import TextStatistic

__all__ = [
    "SCHEMA_VERSION",
    "AcrossSources",
    "AuditConfig",
    "CentredDelta",
    "ChanceSkew",
    "DataSummary",
    "ExposureShare",
    "SettingSkew",
    "SkewCell",
    "SkewReport",
    "SoleCorpusCheck",
    "SourceScores",
    "SystemSkew",
    "TwinSkew",
]

SCHEMA_VERSION = 1
"""Form of the source reports that this release writes and reads."""


@dataclass(frozen=True, kw_only=True)
class AuditConfig:
    """Settings of an audit.

    Parameters
    ----------
    baseline_source : str
    cutoffs : tuple of int
    measures : tuple of str
        Out of ``"NDCG"``, ``"MAP"``, ``"MRR"``, ``"P"``, ``"Recall"``.
    ties : {"expected", "trec"}
    gain : {"linear", "exponential"}
        NDCG gain of grade r: r, or 2^r − 1.
    confidence_level : float
    interval_method : {"auto", "delta", "bootstrap", "fieller", "exact"}
    correction : {"holm", "bh", "none"}
    resamples : int
        Permutations of the test (and bootstrap resamples when that method is chosen).
    margin : float
        Points of centred Relative Δ within which two sources count as treated alike.
    primary : str or None
        Measure that carries the verdict, such as ``"NDCG@5"``; all others are exploratory. None
        takes NDCG (or else the first measure) at the largest cutoff.
    merge_llms : bool
        Compare the baseline with all sources named ``"llm:<model>"`` together.
    browsing : tuple of str
        Attention models for exposure.
    seed : int
    """

    baseline_source: str = "human"
    cutoffs: tuple[int, ...] = (1, 3, 5)
    measures: tuple[str, ...] = ("NDCG", "MAP")
    ties: Literal["expected", "trec"] = "expected"
    gain: Literal["linear", "exponential"] = "linear"
    confidence_level: float = 0.95
    interval_method: Literal["auto", "delta", "bootstrap", "fieller", "exact"] = "auto"
    correction: Literal["holm", "bh", "none"] = "holm"
    resamples: int = 10_000
    margin: float = 5.0
    primary: str | None = None
    merge_llms: bool = False
    browsing: tuple[str, ...] = ("top-1", "top-5", "dcg")
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.cutoffs or min(self.cutoffs) < 1:
            raise DataError(f"cutoffs {self.cutoffs} must be one or more numbers of at least 1")
        if not 0 < self.confidence_level < 1:
            raise DataError(f"confidence_level {self.confidence_level} is outside (0, 1)")
        if self.resamples < 100:
            raise DataError(f"resamples {self.resamples} is too few for a test; use at least 100")
        if not 0 <= self.margin < math.inf:
            raise DataError(
                f"margin {self.margin} must be a number of at least 0 (points of Relative Δ within "
                "which sources count as treated alike)"
            )
        names = [f"{measure}@{k}" for measure in self.measures for k in self.cutoffs]
        if self.primary is not None and self.primary not in names:
            raise DataError(f"primary measure {self.primary!r} is none of those measured: {names}")

    @property
    def primary_measure(self) -> str:
        """Measure that carries the verdict."""
        leading = "NDCG" if "NDCG" in self.measures else self.measures[0]
        return self.primary or f"{leading}@{max(self.cutoffs)}"


@dataclass(frozen=True, kw_only=True)
class DataSummary:
    """The data behind a report.

    Parameters
    ----------
    documents : mapping of str to int
        Number of documents per source; ``""`` counts untagged ones.
    n_pairs : int
        Groups of documents that are versions of one another across sources.
    mean_words : mapping of str to float
        Mean document length in words per source; empty when no texts were given.
    """

    name: str
    design: Literal["rewrites", "independent", "unknown"]
    n_queries: int
    n_judgments: int
    documents: Mapping[str, int]
    n_pairs: int
    mean_words: Mapping[str, float]
    license: str = ""
    attribution: str = ""


@dataclass(frozen=True, kw_only=True, eq=False)
class SkewReport:
    """The result of an audit.

    Parameters
    ----------
    family : str
        Over which tests p-values are adjusted, in words.
    n_tests : int
    environment : mapping of str to str
        Versions of everything that influenced the numbers, and the machine.
    created : str
        ISO 8601 time.
    warnings : tuple of str
        What the reader must know before trusting a number.
    text_statistics : tuple of TextStatistic
        Of the texts of each source; empty where they were not asked for.
    """

    schema_version: int
    data: DataSummary
    config: AuditConfig
    systems: tuple[SystemSkew, ...]
    family: str
    n_tests: int
    environment: Mapping[str, str]
    created: str
    warnings: tuple[str, ...] = ()
    text_statistics: tuple[TextStatistic, ...] = ()

    def system(self, name: str, variant: str = "mixed") -> SystemSkew:
        """Return one system by name."""
        for system in self.systems:
            if system.name == name and system.variant == variant:
                return system
        raise DataError(
            f"no system {name!r} ({variant}); there are {[s.name for s in self.systems]}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return dict(to_plain(self))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> SkewReport:
        """Read what :meth:`to_dict` wrote.

        Raises
        ------
        UnsupportedVersionError
            If it was written by a release with another schema.
        """
        report = from_versioned(cls, data, version=SCHEMA_VERSION, what="report")
        for system in report.systems:
            scores = system.scores
            shape = (len(scores.measures), len(scores.sources), len(scores.query_ids))
            if scores.values.shape != shape:
                raise DataError(
                    f"system {system.name!r}: scores have shape {scores.values.shape}, "
                    f"expected {shape}"
                )
        return report
