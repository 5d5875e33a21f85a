"""Data of debiasing: scores, curves by weight, and the report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, TypeVar

import numpy as np

from rag_sourcebias.core.codec import Stored
from rag_sourcebias.core.data import FloatArray
from rag_sourcebias.core.errors import DataError, SettingError, require_one_of, setting
from rag_sourcebias.core.finding import Interval
from rag_sourcebias.core.training import TrainingHistory
from rag_sourcebias.infer.equivalence import NoninferiorityTest
from rag_sourcebias.infer.means import SkewCode
from rag_sourcebias.measure.texts import DataSummary

_T = TypeVar("_T")
FIT, JUDGE = "What it is fitted on", "What it is judged on"  # panels of the help page


def _first(found: Iterable[_T], missing: str) -> _T:
    for item in found:
        return item
    raise DataError(missing)


# What one system scored on one data set, as a debiasing report needs it.


DEBIAS_ROWS = ("baseline", "other", "human-only", "llm-only", "mixed")


@dataclass(frozen=True, kw_only=True, eq=False)
class DebiasScores:
    """NDCG per query of one system.

    Parameters
    ----------
    name : str
        Of the system.
    query_ids : tuple of str, length n
    cutoffs : tuple of int, length K
    values : float64 array of shape (5, K, n)
        In [0, 1]. Rows are :data:`DEBIAS_ROWS`: the human and the LLM versions as the relevant
        documents of the mixed corpus ([K] §3.1), the corpus of each source alone, and the mixed
        corpus with both versions relevant.
    settings : mapping of str to str
        What a report must state of the system.
    judged : tuple of (float, float)
        Judged@k of both sources: share of the documents on the first ranks of the mixed corpus
        that were judged, in [0, 1]; 1 where none stands there, or holes cannot be told.
    filled : float64 array of shape (5, K, n) or None
        ``values`` with every retrieved document that was not judged counted relevant at the rate
        of its source, 0 throughout where nothing is known of one; None where all were judged, or
        judgments name relevant documents alone.
    """

    name: str
    query_ids: tuple[str, ...] = field(repr=False)
    cutoffs: tuple[int, ...]
    values: FloatArray = field(repr=False)
    settings: Mapping[str, str] = field(default_factory=dict)
    judged: tuple[float, float] = (1.0, 1.0)
    filled: FloatArray | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        shape = (len(DEBIAS_ROWS), len(self.cutoffs), len(self.query_ids))
        if self.values.shape != shape:
            raise DataError(
                f"system {self.name!r}: scores have shape {self.values.shape}, expected {shape}"
            )

    @property
    def counted(self) -> DebiasScores:
        """Scores with the unjudged counted, where there are any."""
        return self if self.filled is None else replace(self, values=self.filled, filled=None)

    def of(self, row: str, cutoff: int) -> FloatArray:
        """Per-query NDCG@cutoff of one row, shape (n,)."""
        require_one_of("row", row, DEBIAS_ROWS)
        if cutoff not in self.cutoffs:
            raise DataError(f"no cutoff {cutoff} here; there are {list(self.cutoffs)}")
        return np.asarray(self.values[DEBIAS_ROWS.index(row), self.cutoffs.index(cutoff)])


# Skew and quality by weight, as data.


QUALITIES = ("human-only", "llm-only", "mixed")
MIN_SEEDS = 3  # two say next to nothing of how much results vary between trainings


@dataclass(frozen=True, kw_only=True)
class DebiasPoint:
    """One weight on the curves of [K] Fig. 8 (Relative Δ) and Fig. 9 (quality).

    Parameters
    ----------
    weight : float
    relative_delta : Interval
        In percent, positive when the human versions rank higher.
    human_only, llm_only, mixed : Interval
        Mean quality in [0, 1].
    """

    weight: float
    relative_delta: Interval
    human_only: Interval
    llm_only: Interval
    mixed: Interval


@dataclass(frozen=True, kw_only=True)
class DebiasSearch(Stored):
    """What a method does to skew and quality by its weight or strength.

    Parameters
    ----------
    searched : str
        What was searched over, such as ``"debias weight"`` or ``"strength"``.
    data : str
        Name of the data it was judged on.
    target : float
        Relative Δ aimed at, in percent.
    n_seeds : int
    points : tuple of DebiasPoint
        By weight, 0 first.
    zero_crossing : Interval or None
        Weight at which the interpolated Relative Δ first meets the target.
    """

    searched: str
    data: str
    target: float
    n_seeds: int
    points: tuple[DebiasPoint, ...]
    zero_crossing: Interval | None = None


# Before and after a mitigation, as data: what changed in skew and what it cost in quality.


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
        Points around the target within which sources count as treated alike.
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

    baseline_source: str = setting("human", "Source that the other is compared with.", panel=FIT)
    cutoffs: tuple[int, ...] = setting(
        (1, 3, 5, 10), "Cutoffs k of NDCG; 5 (skew) and 10 (quality) are added.", panel=JUDGE
    )
    skew_cutoff: int = 5
    quality_cutoff: int = 10
    target: float = setting(0.0, "Relative Δ@5 aimed at, in percent.", panel=JUDGE)
    tolerance: float = setting(
        5.0, "Points around the target within which sources count as treated alike.", panel=JUDGE
    )
    relative_margin: float = setting(
        0.01,
        "Largest loss of NDCG@10 accepted, as a share; tested, on the human documents alone, on "
        "the LLM's alone and on both.",
        option="margin",
        panel=JUDGE,
    )
    level: float = 0.05
    confidence_level: float = setting(0.95, "Of intervals.", panel=JUDGE)
    ties: Literal["expected", "trec"] = "expected"
    gain: Literal["linear", "exponential"] = "linear"
    resamples: int = 10_000
    seed: int = setting(0, "Of resampling.", panel=JUDGE)

    def __post_init__(self) -> None:
        for name in ("relative_margin", "confidence_level"):
            if not 0 < (share := getattr(self, name)) < 1:
                raise SettingError(
                    name, f"{share:g} is outside (0, 1); write a share, such as 0.05"
                )
        if not -200 < self.target < 200:
            raise SettingError(
                "target", f"{self.target:g} is outside (-200, 200), the range of Relative Δ"
            )
        wanted = {*self.cutoffs, self.skew_cutoff, self.quality_cutoff}
        if min(wanted) < 1:
            raise SettingError("cutoffs", f"{sorted(wanted)} must be at least 1")
        object.__setattr__(self, "cutoffs", tuple(sorted(wanted)))
        if not self.tolerance > 0:
            raise SettingError(
                "tolerance", f"{self.tolerance!r} must be above 0 points of Relative Δ"
            )


@dataclass(frozen=True, kw_only=True)
class DebiasMethod:
    """What was done to a system.

    Parameters
    ----------
    name : str
        Of the system that came out, as in the outcomes.
    kind : {"projection", "training", "calibration", "twins", "model"}
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
    kind: Literal["projection", "training", "calibration", "twins", "model"]
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
    code : SkewCode
        What ``after`` says.
    worse : bool
        Whether it is shown to lie further from the target than ``before``.
    n_needed : int or None
        Where nothing can be told: queries with which a verdict is reached four times in five.
    holes : bool
        Whether ``code`` is another with the unjudged counted, so that nothing can be told.
    stands : bool
        Whether the change is significant with the unjudged counted too; ``worse`` holds both ways.
    """

    cutoff: int
    before: Interval | None
    after: Interval | None
    change: Interval | None = None
    p_value: float | None = None
    p_adjusted: float | None = None
    refusal: str | None = None
    code: SkewCode = SkewCode.REFUSED
    worse: bool = False
    n_needed: int | None = None
    holes: bool = False
    stands: bool = True


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
    holes : bool
        Whether what the test shows is not shown with the unjudged counted.
    """

    quality: str
    cutoff: int
    before: float
    after: float
    difference: Interval | None
    p_value: float | None
    test: NoninferiorityTest | None = None
    refusal: str | None = None
    holes: bool = False

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
        return _first(
            (found for found in self.skew if found.cutoff == cutoff),
            f"no cutoff {cutoff}; there are {[s.cutoff for s in self.skew]}",
        )

    def quality_at(self, quality: str, cutoff: int) -> QualityChange:
        """Return one quality at one cutoff."""
        return _first(
            (q for q in self.quality if (q.quality, q.cutoff) == (quality, cutoff)),
            f"no {quality!r} at cutoff {cutoff} for system {self.name!r}",
        )


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
        return _first(
            (found for found in self.outcomes if found.name == name),
            f"no system {name!r}; there are {[o.name for o in self.outcomes]}",
        )


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class DebiasResults(Stored):
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
    training : tuple of TrainingHistory
    environment : mapping of str to str
    created : str
        ISO 8601 time.
    warnings : tuple of str
    """

    _versioned = ("debias report", DEBIAS_SCHEMA_VERSION)

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
    training: tuple[TrainingHistory, ...] = ()
    warnings: tuple[str, ...] = ()
