"""Before and after a mitigation, as data: what changed in skew and what it cost in quality."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from rag_sourcebias.errors import DataError
from rag_sourcebias.types.debias import DebiasSearch
from rag_sourcebias.types.debias_scores import DebiasScores
from rag_sourcebias.types.debias_training import TrainingHistory
from rag_sourcebias.types.intervals import Interval
from rag_sourcebias.types.reports import DataSummary
from rag_sourcebias.types.serial import from_versioned, to_plain
from rag_sourcebias.types.tests import NoninferiorityTest

__all__ = [
    "DEBIAS_SCHEMA_VERSION",
    "DebiasConfig",
    "DebiasDataset",
    "DebiasMethod",
    "DebiasOutcome",
    "DebiasReport",
    "QualityChange",
    "SkewChange",
]

DEBIAS_SCHEMA_VERSION = 1


@dataclass(frozen=True, kw_only=True)
class DebiasConfig:
    """Settings of a before/after comparison.

    Parameters
    ----------
    baseline_source : str
    cutoffs : tuple of int
        Of NDCG; the two following ones are added where they are missing.
    skew_cutoff : int
        Cutoff at which Relative Δ must come near the target.
    quality_cutoff : int
        Cutoff at which quality must be kept.
    target : float
        Relative Δ aimed at, percent.
    tolerance : float
        Points of Relative Δ around the target that count as reached.
    relative_margin : float
        Largest loss of quality accepted, as a share of the quality before.
    level : float
        Error probability of the non-inferiority tests.
    confidence_level : float
    ties : {"expected", "trec"}
    gain : {"linear", "exponential"}
    resamples : int
        Of the permutation tests.
    seed : int
    """

    baseline_source: str = "human"
    cutoffs: tuple[int, ...] = (1, 3, 5, 10)
    skew_cutoff: int = 5
    quality_cutoff: int = 10
    target: float = 0.0
    tolerance: float = 3.0
    relative_margin: float = 0.01
    level: float = 0.05
    confidence_level: float = 0.95
    ties: Literal["expected", "trec"] = "expected"
    gain: Literal["linear", "exponential"] = "linear"
    resamples: int = 10_000
    seed: int = 0

    def __post_init__(self) -> None:
        wanted = {*self.cutoffs, self.skew_cutoff, self.quality_cutoff}
        if min(wanted) < 1:
            raise DataError(f"cutoffs {sorted(wanted)} must be at least 1")
        object.__setattr__(self, "cutoffs", tuple(sorted(wanted)))
        if not self.tolerance > 0:
            raise DataError(f"tolerance {self.tolerance!r} must be above 0 points of Relative Δ")


@dataclass(frozen=True, kw_only=True)
class DebiasMethod:
    """What was done to a system.

    Parameters
    ----------
    name : str
        Of the system that came out, as in the outcomes.
    kind : {"projection", "training", "calibration", "model"}
        ``"model"`` where it is not known how the model was made.
    settings : mapping of str to str
    fitted_on : str
        Name of the data it was fitted on; empty if not known.
    n_pairs : int or None
        Pairs it was fitted on.
    encode_cost : float or None
        Time to encode, as a multiple of the time before; None where it was not measured.
    """

    name: str
    kind: Literal["projection", "training", "calibration", "model"]
    settings: Mapping[str, str]
    fitted_on: str = ""
    n_pairs: int | None = None
    encode_cost: float | None = None


@dataclass(frozen=True, kw_only=True)
class SkewChange:
    """Relative Δ of NDCG at one cutoff, before and after.

    Parameters
    ----------
    cutoff : int
    before, after : Interval or None
        Percent. ``before`` is None in the outcome of the unchanged system; either is None where it
        was refused.
    change : Interval or None
        After minus before, in points, paired by query.
    p_value, p_adjusted : float or None
        Paired permutation test of no change; adjusted over the report's family.
    refusal : str or None
        Why an interval is missing.
    """

    cutoff: int
    before: Interval | None
    after: Interval | None
    change: Interval | None = None
    p_value: float | None = None
    p_adjusted: float | None = None
    refusal: str | None = None


@dataclass(frozen=True, kw_only=True)
class QualityChange:
    """Mean NDCG before and after, paired by query.

    Parameters
    ----------
    quality : {"human-only", "llm-only", "mixed"}
    cutoff : int
    before, after : float
        Means in [0, 1].
    difference : Interval or None
        After minus before, in [-1, 1].
    p_value : float or None
        Paired sign-flip test of no difference.
    test : NoninferiorityTest or None
        Whether a loss of the accepted share is excluded; None at other than the quality cutoff.
    refusal : str or None
        Why interval or test is missing.
    """

    quality: str
    cutoff: int
    before: float
    after: float
    difference: Interval | None
    p_value: float | None
    test: NoninferiorityTest | None = None
    refusal: str | None = None

    @property
    def relative(self) -> float | None:
        """Change in percent of the mean before; None where that is 0."""
        return None if self.before == 0 else 100 * (self.after / self.before - 1)


@dataclass(frozen=True, kw_only=True, eq=False)
class DebiasOutcome:
    """One system on one data set.

    Parameters
    ----------
    scores : DebiasScores
    skew : tuple of SkewChange
        One per cutoff.
    quality : tuple of QualityChange
        Three per cutoff, by cutoff; empty for the unchanged system.
    n_seen : int
        Judged pairs of the data set that the method was fitted on.
    """

    scores: DebiasScores
    skew: tuple[SkewChange, ...]
    quality: tuple[QualityChange, ...] = ()
    n_seen: int = 0

    @property
    def name(self) -> str:
        """Of the system."""
        return self.scores.name

    def skew_at(self, cutoff: int) -> SkewChange:
        """Return the skew at one cutoff."""
        for found in self.skew:
            if found.cutoff == cutoff:
                return found
        raise DataError(f"no cutoff {cutoff}; there are {[s.cutoff for s in self.skew]}")

    def quality_at(self, quality: str, cutoff: int) -> QualityChange:
        """Return one quality at one cutoff."""
        for found in self.quality:
            if (found.quality, found.cutoff) == (quality, cutoff):
                return found
        raise DataError(f"no {quality!r} at cutoff {cutoff} for system {self.name!r}")


@dataclass(frozen=True, kw_only=True, eq=False)
class DebiasDataset:
    """All systems on one data set.

    Parameters
    ----------
    data : DataSummary
    other : str
        Source compared with the baseline.
    n_pairs : int
        Pairs of which a version is judged relevant.
    outcomes : tuple of DebiasOutcome
        The unchanged system first.
    warnings : tuple of str
    """

    data: DataSummary
    other: str
    n_pairs: int
    outcomes: tuple[DebiasOutcome, ...]
    warnings: tuple[str, ...] = ()

    def outcome(self, name: str) -> DebiasOutcome:
        """Return one system by name."""
        for found in self.outcomes:
            if found.name == name:
                return found
        raise DataError(f"no system {name!r}; there are {[o.name for o in self.outcomes]}")


@dataclass(frozen=True, kw_only=True, eq=False)
class DebiasReport:
    """Proof of what a mitigation changed.

    Parameters
    ----------
    kind : {"debias"}
    config : DebiasConfig
    methods : tuple of DebiasMethod
        One per changed system, in the order of the outcomes.
    datasets : tuple of DebiasDataset
    family : str
        Over which tests p-values are adjusted, in words.
    n_tests : int
    search : DebiasSearch or None
        The curves of [K] Fig. 8 and 9 where a weight or strength was searched for.
    searched : str
        What was searched over, such as ``"debias weight"`` or ``"strength"``; empty without search.
    search_data : str
        Name of the data the search was judged on.
    training : tuple of TrainingHistory
    environment : mapping of str to str
    created : str
        ISO 8601 time.
    warnings : tuple of str
    """

    schema_version: int = DEBIAS_SCHEMA_VERSION
    kind: Literal["debias"] = "debias"
    config: DebiasConfig
    methods: tuple[DebiasMethod, ...]
    datasets: tuple[DebiasDataset, ...]
    family: str
    n_tests: int
    environment: Mapping[str, str]
    created: str
    search: DebiasSearch | None = None
    searched: str = ""
    search_data: str = ""
    training: tuple[TrainingHistory, ...] = ()
    warnings: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return dict(to_plain(self))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> DebiasReport:
        """Read what :meth:`to_dict` wrote.

        Raises
        ------
        UnsupportedVersionError
            If it was written by a release with another schema.
        """
        return from_versioned(cls, data, version=DEBIAS_SCHEMA_VERSION, what="debias report")
