"""What a source audit found, as rows of numbers: what a report says and shows is made of these."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.codec import Stored
from rag_sourcebias.core.errors import (
    DataError,
    check_level,
    check_settings,
    require_at_least,
    setting,
)
from rag_sourcebias.core.finding import Evidence, Finding, Interval
from rag_sourcebias.infer.decide import SkewCode
from rag_sourcebias.infer.texts import TextStatistic
from rag_sourcebias.measure.relevance import SourceScores, check_cutoffs
from rag_sourcebias.measure.texts import DataSummary

# Decisions.


def _figure(interval: Interval | None, value: float | None) -> Interval | float | None:
    return value if interval is None else interval


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
    refusal : Finding or None
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
    refusal: Finding | None = None

    @property
    def figure(self) -> Interval | float | None:
        """Centred Relative Δ with its interval, or alone where that was refused."""
        return _figure(self.interval, self.centred_delta)

    @property
    def favoured(self) -> str:
        """Source that is favoured; "" where none is."""
        if self.code is SkewCode.FAVOURS_BASELINE:
            return self.baseline
        return self.other if self.code is SkewCode.FAVOURS_OTHER else ""


# What was found for one retriever: scores per source, Relative Δ, twins, exposure.


@dataclass(frozen=True, kw_only=True)
class CentredDelta:
    """Relative Δ beyond what permuted source labels would give.

    100 · Σ ((m₁ − e₁) − (m₂ − e₂)) / (½ Σ (e₁ + e₂)) over queries with relevant documents of both
    sources; e is a measure's mean over all exchanges of source labels among the relevant documents
    of one grade. With one copy of each document it is the published Relative Δ of NDCG.

    Parameters
    ----------
    value : float or None
        In percent, positive when the baseline ranks higher; not limited to ±200. None when no
        relevant document of either source was retrieved.
    expected_baseline, expected_other : float
        Mean e over the queries with both, in [0, 1].
    interval : Interval or None
        Its ``assumptions`` name the factors treated as random.
    refusal : Finding or None
        Why there is no interval, and the remedy.
    n_queries : int
        Queries with relevant documents of both sources.
    information : float
        Share of its independent information that each query (or cluster) keeps where documents
        are judged for several queries, in (0, 1].
    """

    value: float | None
    expected_baseline: float
    expected_other: float
    interval: Interval | None
    refusal: Finding | None
    n_queries: int
    information: float = 1.0

    @property
    def figure(self) -> Interval | float | None:
        """Value with its interval, or alone where that was refused."""
        return _figure(self.interval, self.value)


@dataclass(frozen=True, kw_only=True, eq=False)
class ChanceSkew:
    """Skew beyond chance per query: what centred Relative Δ is derived from.

    Parameters
    ----------
    other : str
        Source compared with the baseline.
    skew, base : float64 arrays of shape (M, nq)
        (m₁ − e₁) − (m₂ − e₂) and (e₁ + e₂)/2; 0 for queries that lack one of the sources.
    both : bool array of shape (nq,)
    """

    other: str
    skew: npt.NDArray[np.float64] = field(repr=False)
    base: npt.NDArray[np.float64] = field(repr=False)
    both: npt.NDArray[np.bool_] = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class SettingSkew:
    """The primary measure under another setting of the same retriever.

    Parameters
    ----------
    other : str
        Source compared with the baseline.
    setting : str
        Such as ``"k1=0.9, b=0.4"``.
    value : float or None
        Centred Relative Δ in percent.
    interval : Interval or None
    """

    other: str
    setting: str
    value: float | None
    interval: Interval | None

    @property
    def figure(self) -> Interval | float | None:
        """Value with its interval, or alone where that was refused."""
        return _figure(self.interval, self.value)


@dataclass(frozen=True, kw_only=True)
class AcrossSources:
    """Centred Relative Δ of the primary measure with the other sources as a sample of rewriters.

    Parameters
    ----------
    measure : str
    n_sources : int
    value : float
        Mean over the other sources, in percent.
    interval : Interval or None
        Of the mean over all rewriters of the kind; refused below 6.
    refusal : Finding or None
    """

    measure: str
    n_sources: int
    value: float
    interval: Interval | None
    refusal: Finding | None

    @property
    def figure(self) -> Interval | float | None:
        """Value with its interval, or alone where that was refused."""
        return _figure(self.interval, self.value)


@dataclass(frozen=True, kw_only=True)
class SkewCell:
    """Relative Δ of one measure between two sources ([K] §3.1).

    Parameters
    ----------
    measure : str
        Such as ``"NDCG@1"``.
    baseline, other : str
        Sources compared; positive Relative Δ means the baseline ranks higher.
    mean_baseline, mean_other : float
        Mean over queries, in [0, 1].
    relative_delta : float or None
        The published figure, in percent, in [-200, 200]; None when both means are 0. Where
        sources have unequal numbers of relevant documents it measures that too.
    interval : Interval or None
        For ``relative_delta``; None when it was refused, see ``refusal``.
    refusal : Finding or None
        Why there is no interval, and how much data would be enough.
    p_value : float or None
        Of no skew beyond chance, by inverting ``centred.interval``.
    p_adjusted : float or None
        Adjusted over the primary measures of the report; None for other measures, which are
        exploratory.
    n_queries : int
    n_needed : int or None
        Queries with which a verdict is reached four times in five; None where there is one.
    centred : CentredDelta
        Chance-centred Relative Δ, on which verdicts rest.
    """

    measure: str
    baseline: str
    other: str
    mean_baseline: float
    mean_other: float
    relative_delta: float | None
    interval: Interval | None
    refusal: Finding | None
    p_value: float | None
    p_adjusted: float | None
    n_queries: int
    n_needed: int | None
    centred: CentredDelta

    @property
    def figure(self) -> Interval | float | None:
        """Relative Δ with its interval, or alone where that was refused."""
        return _figure(self.interval, self.relative_delta)

    @property
    def significant(self) -> bool:
        """Whether the adjusted p-value is below one minus the confidence level."""
        interval = self.centred.interval
        if interval is None or self.p_adjusted is None:
            return False
        return self.p_adjusted < 1 - interval.confidence_level


@dataclass(frozen=True, kw_only=True, eq=False)
class TwinSkew:
    """Which of two versions of one relevant document ranks higher.

    Arrays have one entry per (query, relevant pair) with both versions in the corpus, of which at
    least one was retrieved.

    Parameters
    ----------
    n_pairs : int
        Entries of the arrays.
    n_unseen : int
        Pairs of which neither version was retrieved (they say nothing and are left out).
    win_rate : Interval or None
        P(other above baseline), ties count half, query-clustered, in [0, 1].
    margin : Interval or None
        Mean score difference other − baseline in standard deviations of the differences.
    win_rate_equal_length : Interval or None
        Win rate at equal length and mean overlap, by logistic regression.
    query_index : int64 array of shape (n_pairs,)
        Index into the system's ``scores.query_ids``.
    other_above : float64 array
        1, 0, or 0.5 on a tie.
    baseline_rank, other_rank : float64 array
        Expected rank; NaN when that version was not retrieved.
    log_length_ratio, overlap : float64 array
        ln(words of other / words of baseline), and the share of the baseline's words that the
        other version keeps ([K] Fig. 3b); empty when no texts were given.
    notes : tuple of Finding
        Why an interval is missing.
    """

    baseline: str
    other: str
    n_pairs: int
    n_unseen: int
    win_rate: Interval | None
    margin: Interval | None
    win_rate_equal_length: Interval | None
    query_index: npt.NDArray[np.int64] = field(repr=False)
    other_above: npt.NDArray[np.float64] = field(repr=False)
    baseline_rank: npt.NDArray[np.float64] = field(repr=False)
    other_rank: npt.NDArray[np.float64] = field(repr=False)
    log_length_ratio: npt.NDArray[np.float64] = field(repr=False)
    overlap: npt.NDArray[np.float64] = field(repr=False)
    notes: tuple[Finding, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ExposureShare:
    """Share of attention that one source receives, without judgments.

    Parameters
    ----------
    source : str
        ``""`` stands for untagged documents.
    browsing : str
        Attention model, such as ``"dcg"`` or ``"top-5"``.
    share : float
        Mean over queries of the source's share of attention, in [0, 1].
    corpus_share : float
        Share of the corpus, in [0, 1].
    difference : Interval or None
        ``share - corpus_share``.
    """

    source: str
    browsing: str
    share: float
    corpus_share: float
    difference: Interval | None


Variant = Literal["mixed", "exact", "length-matched"]


@dataclass(frozen=True, kw_only=True)
class SoleCorpusCheck:
    """Quality on the corpus of each source alone ([K] Table 2), paired per query.

    A large difference here means the rewrites changed what documents say, so that the mixed
    result is not source bias alone.

    Parameters
    ----------
    difference : Interval or None
        mean_baseline − mean_other.
    p_value : float or None
    """

    measure: str
    baseline: str
    other: str
    mean_baseline: float
    mean_other: float
    difference: Interval | None
    p_value: float | None


@dataclass(frozen=True, kw_only=True, eq=False)
class SystemSkew:
    """Everything found for one retriever or reranker.

    Parameters
    ----------
    name : str
    settings : mapping of str to str
        What would be needed to repeat the run (k1, dtype, maximum length, index parameters, …).
    variant : {"mixed", "exact", "length-matched"}
        ``"mixed"`` as deployed; ``"exact"`` the same encoder with exact search, reported when the
        approximate index returned something else; ``"length-matched"`` pairs cut to equal length.
    scores : SourceScores
    cells : tuple of SkewCell
    twins : tuple of TwinSkew
        One per other source that has pairs with the baseline.
    exposure : tuple of ExposureShare
    sole_corpus : tuple of SoleCorpusCheck
    awrf : float or None
        Attention-weighted rank fairness against corpus shares, in [0, 1], 1 is proportional.
    n_untagged : int
        Retrieved entries whose document has no source tag.
    n_duplicates : int
        Retrieved entries dropped because the query already held the document.
    n_empty : int
        Judged queries that returned nothing (they score 0 and count).
    notes : tuple of Finding
        Facts about this run that a reader must know.
    verdicts : tuple of SkewVerdict
        One per other source.
    chance : tuple of ChanceSkew
        One per other source.
    strip : tuple of SettingSkew
        What other usual settings of this retriever would have given.
    across : AcrossSources or None
        With two other sources or more.
    evidence : tuple of Evidence
        Queries that matter most for the primary measure, each with two documents and their ranks.
    """

    name: str
    settings: Mapping[str, str]
    variant: Variant
    scores: SourceScores
    cells: tuple[SkewCell, ...]
    twins: tuple[TwinSkew, ...]
    exposure: tuple[ExposureShare, ...]
    sole_corpus: tuple[SoleCorpusCheck, ...] = ()
    awrf: float | None = None
    n_untagged: int = 0
    n_duplicates: int = 0
    n_empty: int = 0
    notes: tuple[Finding, ...] = ()
    verdicts: tuple[SkewVerdict, ...] = ()
    chance: tuple[ChanceSkew, ...] = ()
    strip: tuple[SettingSkew, ...] = ()
    across: AcrossSources | None = None
    evidence: tuple[Evidence, ...] = ()

    def cell(self, measure: str, other: str) -> SkewCell:
        """Return the cell of one measure against one other source."""
        for cell in self.cells:
            if cell.measure == measure and cell.other == other:
                return cell
        raise DataError(f"{self.name}: no cell for {measure!r} against {other!r}")


# Settings, and the whole. Every number that a report shows is derived from the per-query arrays
# stored here, so a reader can recompute it.


#: Form of the source reports that this release writes and reads.
SCHEMA_VERSION = 2


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

    baseline_source: str = setting("human", "Source that the others are compared with.")
    cutoffs: tuple[int, ...] = setting((1, 3, 5), "Cutoffs k, separated by commas.")
    measures: tuple[str, ...] = setting(
        ("NDCG", "MAP"),
        "Out of NDCG, MAP, MRR, P, Recall; repeatable, or separated by commas.",
        option="measure",
    )
    ties: Literal["expected", "trec"] = setting(
        "expected", "expected (average over tied orders) or trec (as trec_eval)."
    )
    gain: Literal["linear", "exponential"] = "linear"
    confidence_level: float = setting(0.95, "")
    interval_method: Literal["auto", "delta", "bootstrap", "fieller", "exact"] = setting(
        "auto", "auto, delta, bootstrap, fieller or exact.", option="interval"
    )
    correction: Literal["holm", "bh", "none"] = setting("holm", "holm, bh or none.")
    resamples: int = 10_000
    margin: float = setting(
        5.0, "Points of centred Relative Δ within which sources count as treated alike."
    )
    primary: str | None = setting(
        None,
        "Measure that carries the verdict, such as NDCG@5; by default NDCG at the largest cutoff. "
        "All others are exploratory.",
    )
    merge_llms: bool = setting(False, "Compare the baseline with all sources llm:<model> together.")
    browsing: tuple[str, ...] = ("top-1", "top-5", "dcg")
    seed: int = setting(0, "")

    def __post_init__(self) -> None:
        names = [f"{measure}@{k}" for measure in self.measures for k in self.cutoffs]
        check_level(self.confidence_level)
        check_cutoffs(self.cutoffs)
        require_at_least(100, resamples=self.resamples)
        check_settings(
            (
                0 <= self.margin < math.inf,
                "margin",
                f"{self.margin} must be a number of at least 0 (points of Relative Δ within "
                "which sources count as treated alike)",
            ),
            (
                self.primary is None or self.primary in names,
                "primary",
                f"measure {self.primary!r} is none of those measured: {names}",
            ),
        )

    @property
    def primary_measure(self) -> str:
        """Measure that carries the verdict."""
        leading = "NDCG" if "NDCG" in self.measures else self.measures[0]
        return self.primary or f"{leading}@{max(self.cutoffs)}"


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class SkewResults(Stored):
    """Everything that a report stores.

    Parameters
    ----------
    n_tests : int
        Tests over which p-values of the primary measure are adjusted.
    environment : mapping of str to str
        Versions of everything that influenced the numbers, and the machine.
    created : str
        ISO 8601 time.
    findings : tuple of Finding
        What the reader must know of the data before trusting a number.
    text_statistics : tuple of TextStatistic
        Of the texts of each source; empty where they were not asked for.
    """

    _versioned = ("report", SCHEMA_VERSION)

    schema_version: int = SCHEMA_VERSION
    data: DataSummary
    config: AuditConfig
    systems: tuple[SystemSkew, ...]
    n_tests: int
    environment: Mapping[str, str]
    created: str
    findings: tuple[Finding, ...] = ()
    text_statistics: tuple[TextStatistic, ...] = ()

    def system(self, name: str, variant: str = "mixed") -> SystemSkew:
        """Return one system by name."""
        for system in self.systems:
            if system.name == name and system.variant == variant:
                return system
        raise DataError(
            f"no system {name!r} ({variant}); there are {[s.name for s in self.systems]}"
        )

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the reader must know before trusting a number, as sentences."""
        return tuple(str(finding) for finding in self.findings if finding.severity == "warning")

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read what :meth:`to_dict` wrote.

        Raises
        ------
        DataError
            If a field is missing or has the wrong shape.
        UnsupportedVersionError
            If it was written by a release with another schema.
        """
        report = super().from_dict(data)
        for system in report.systems:
            scores = system.scores
            shape = (len(scores.measures), len(scores.sources), len(scores.query_ids))
            if scores.values.shape != shape:
                raise DataError(
                    f"system {system.name!r}: scores have shape {scores.values.shape}, "
                    f"expected {shape}"
                )
        return report
