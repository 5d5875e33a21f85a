"""What a source audit finds: rows of numbers, sentences, and which of them the numbers allow."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.codec import Stored
from rag_sourcebias.core.data import FloatArray
from rag_sourcebias.core.errors import (
    DataError,
    check_level,
    check_settings,
    require_at_least,
    require_one_of,
    setting,
)
from rag_sourcebias.core.finding import (
    CORRECTIONS,
    Code,
    Evidence,
    Finding,
    Interval,
    short_names,
)
from rag_sourcebias.infer.means import SkewCode
from rag_sourcebias.infer.texts import TextStatistic
from rag_sourcebias.intake.belong import what_lacks
from rag_sourcebias.measure.relevance import MEASURES, SourceScores, check_cutoffs
from rag_sourcebias.measure.texts import DataSummary

# Decisions.


def _figure(interval: Interval | None, value: float | None) -> Interval | float | None:
    return value if interval is None else interval


class _Valued:
    """A value that may have an interval."""

    value: float | None
    interval: Interval | None

    @property
    def figure(self) -> Interval | float | None:
        """Value with its interval, or alone where that was refused."""
        return _figure(self.interval, self.value)


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
    holes : bool
        Whether the answer is another with the unjudged counted, so that nothing can be told.
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
    holes: bool = False

    @property
    def figure(self) -> Interval | float | None:
        """Centred Relative Δ with its interval, or alone where that was refused."""
        return _figure(self.interval, self.centred_delta)

    @property
    def favoured(self) -> str:
        """Source that is favoured; "" where none is."""
        return {1: self.baseline, -1: self.other}.get(self.side, "")

    @property
    def side(self) -> int:
        """1 where the baseline is favoured, −1 where the other source is, 0 where neither is."""
        return {SkewCode.FAVOURS_BASELINE: 1, SkewCode.FAVOURS_OTHER: -1}.get(self.code, 0)


# What was found for one retriever: scores per source, Relative Δ, twins, exposure.


@dataclass(frozen=True, kw_only=True)
class CentredDelta(_Valued):
    """Relative Δ beyond what permuted source labels would give.

    100 · Σ ((m₁ − e₁) − (m₂ − e₂)) / (½ Σ (e₁ + e₂)) over queries with relevant documents of both
    sources; e is a measure's mean over all exchanges of source labels among the relevant documents
    of one grade. With one copy of each document it is the published Relative Δ of NDCG.

    Parameters
    ----------
    value : float or None
        In percent, positive when the baseline ranks higher; not limited to ±200. None when no
        relevant document of either source was retrieved.
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
    interval: Interval | None
    refusal: Finding | None
    n_queries: int
    information: float = 1.0


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
class Holes(_Valued):
    """What nobody judged of what was retrieved, and what it may change.

    Parameters
    ----------
    other : str
        Source compared with the baseline.
    cutoff : int
        That of the primary measure.
    judged_baseline, judged_other : float or None
        Judged@k: share of the documents of a source on the first k ranks that were judged, in
        [0, 1]; None where none stands there.
    value : float or None
        Centred Relative Δ with every retrieved document that was not judged counted relevant at
        the rate of the judged ones of its source in its bin of ranks; None where none was judged.
    interval : Interval or None
    p_value, p_adjusted : float or None
        Of no skew, so; adjusted over the primary measures of the report.
    difference : Interval or None
        What ``value`` has more than centred Relative Δ of the judgments as they are.
    turns_at : float or None
        Share of the unjudged documents of both sources which, if relevant, give another verdict,
        in [0, 1]; None where none up to a half does.
    """

    other: str
    cutoff: int
    judged_baseline: float | None
    judged_other: float | None
    value: float | None
    interval: Interval | None
    p_value: float | None
    p_adjusted: float | None
    difference: Interval | None
    turns_at: float | None

    @property
    def apart(self) -> bool:
        """Whether counting the unjudged changes more than drawing other queries may."""
        return self.difference is not None and self.difference.excludes(0.0)


@dataclass(frozen=True, kw_only=True)
class SettingSkew(_Valued):
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


@dataclass(frozen=True, kw_only=True)
class AcrossSources(_Valued):
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


Variant = Literal["mixed", "exact", "length-matched", "together"]


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
    variant : {"mixed", "exact", "length-matched", "together"}
        ``"mixed"`` the baseline with one other source, in one index; ``"together"`` with all other
        sources in it, where there are several; ``"exact"`` the same encoder with exact search,
        reported when the approximate index returned something else; ``"length-matched"`` pairs cut
        to equal length.
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
    holes : tuple of Holes
        One per other source; none where judgments have no holes, or name relevant documents alone.
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
    holes: tuple[Holes, ...] = ()
    across: AcrossSources | None = None
    evidence: tuple[Evidence, ...] = ()

    @property
    def against(self) -> str:
        """Sources compared with the baseline, in words."""
        return ", ".join(chance.other for chance in self.chance)

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
        require_one_of("correction", self.correction, CORRECTIONS)
        for measure in self.measures:
            require_one_of("measures", measure, MEASURES)
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

    def of_primary(self) -> AuditConfig:
        """Return the settings with the primary measure alone."""
        measure, _, cutoff = self.primary_measure.partition("@")
        return replace(self, measures=(measure,), cutoffs=(int(cutoff),))


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
    inputs : str
        How a command names the data; empty where none can.
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
    inputs: str = ""

    def system(self, name: str, variant: str = "mixed", *, other: str = "") -> SystemSkew:
        """Return one system by name; of several other sources that with ``other``, or the first."""
        for system in self.systems:
            same = system.name == name and system.variant == variant
            if same and (not other or other in system.scores.sources):
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


_TINY = 1e-12  # a difference of scores that rounding makes


class SourceCode(Code, home="source"):
    """Sentences of a source audit."""

    # Verdicts, each under the name of its SkewCode, and what goes with them.
    FAVOURS_BASELINE = (
        "Favours {baseline} text over {other} text: centred Relative Δ of {measure} "
        "{delta:signed} over {n_queries:query|queries}."
    )
    FAVOURS_OTHER = (
        "Favours {other} text over {baseline} text: centred Relative Δ of {measure} "
        "{delta:signed} over {n_queries:query|queries}."
    )
    FAVOURS_BASELINE_BUT = (
        "Favours {baseline} text over {other} text: centred Relative Δ of {measure} "
        "{delta:signed} over {n_queries:query|queries}; the other way, by intervals that exclude "
        "0: {contrary}."
    )
    FAVOURS_OTHER_BUT = (
        "Favours {other} text over {baseline} text: centred Relative Δ of {measure} "
        "{delta:signed} over {n_queries:query|queries}; the other way, by intervals that exclude "
        "0: {contrary}."
    )
    ALIKE = (
        "Treats {baseline} and {other} text alike, within ±{margin} points: centred Relative Δ of "
        "{measure} {delta:signed} over {n_queries:query|queries}."
    )
    CANNOT_TELL = (
        "Cannot tell which of {baseline} and {other} text is favoured, if either: centred Relative "
        "Δ of {measure} {delta:signed} over {n_queries:query|queries}."
    )
    REFUSED = "No verdict on {baseline} and {other} text: {refusal}."
    TESTED = "Test of no skew beyond chance: p {p:p=}."
    ADJUSTED = (
        "Test of no skew beyond chance: p {p:p=}, adjusted p {p_adjusted:p=} over "
        "{n_tests:test|tests}."
    )
    NEEDED = "About {n_needed:roughly} queries are needed for a verdict."
    CONTROL = (
        "Searched alone, the two corpora differ too ({measure} {mean_baseline:score} against "
        "{mean_other:score}, p {p:p=}), so this may not be source bias alone."
    )
    HOLES = (
        "Of the documents on the first {cutoff} ranks {judged_baseline:percent} of {baseline} and "
        "{judged_other:percent} of {other} text were judged; with the others counted at the rate "
        "of their source centred Relative Δ is {delta:signed}."
    )
    HOLES_OPEN = (
        "So the answer depends on documents that nobody judged: judge what stands on the first "
        "ranks."
    )
    HOLES_UNKNOWN = (
        "No retrieved document of some source was judged: what the unjudged ones are is unknown."
    )
    HOLES_TURN = (
        "The verdict turns where about {share:percent} of the retrieved documents that nobody "
        "judged are relevant, of both sources alike."
    )
    REPEAT = "{repeat}: {delta:signed}."
    REPEAT_TURNS = "{repeat} the verdict is another: {delta:signed}."
    SCOPE = "The verdict rests on {measure} over {n_queries:query|queries}."
    SCOPE_CORRECTED = (
        "The verdict rests on {measure} over {n_queries:query|queries}, corrected for "
        "{n_tests:test|tests}."
    )
    FAVOURED_TEXT = "favours {source} text"
    FAVOURED_TEXT_BUT = "favours {source} text, but the other way: {contrary}"
    FAVOURED = "favours {source}"
    FIGURE = "centred Δ of {measure}"
    AGAINST = "against {other}"

    # The first screen, without statistics.
    PAIRS = (
        "In {n_higher} of {n:pair|pairs}, {system:short} ranks the {higher} version above the "
        "{lower} version ({n_ties:tie|ties})."
    )
    QUERIES = (
        "In {n_higher} of {n:query|queries}, {system:short} ranks {higher} text above {lower} "
        "text ({n_ties:tie|ties})."
    )
    NOTHING_TO_COUNT = (
        "No query has relevant text of both sources, so there is nothing to count for "
        "{system:short}."
    )
    SEVERAL = (
        "Of {n:comparison|comparisons}, {baseline} text is favoured in {n_baseline}, {other} text "
        "in {n_other}, neither in {n_alike}; {n_open:is|are} open."
    )
    PLAIN_FAVOURS_BASELINE = (
        "Verdict: {system:short} favours {baseline} text, by more than chance explains."
    )
    PLAIN_FAVOURS_OTHER = (
        "Verdict: {system:short} favours {other} text, by more than chance explains."
    )
    PLAIN_FAVOURS_BASELINE_BUT = (
        "Verdict: {system:short} favours {baseline} text, by more than chance explains, but the "
        "other way: {contrary}."
    )
    PLAIN_FAVOURS_OTHER_BUT = (
        "Verdict: {system:short} favours {other} text, by more than chance explains, but the "
        "other way: {contrary}."
    )
    PLAIN_ALIKE = "Verdict: {system:short} treats both alike, within the margin of this audit."
    PLAIN_CANNOT_TELL = (
        "Cannot tell whether {system:short} favours either: {n_queries:query is|queries are} too "
        "few."
    )
    PLAIN_NEEDED = (
        "Cannot tell whether {system:short} favours either: {n_queries:query is|queries are} too "
        "few; about {n_needed:roughly} are needed."
    )
    PLAIN_HOLES = (
        "Cannot tell whether {system:short} favours either: judgments have holes, and the answer "
        "depends on what was not judged."
    )
    PLAIN_REFUSED = "No verdict: these data do not allow one (see “Verdicts”)."
    JUDGED = (
        "Of what stands on the first {cutoff} ranks, {judged_baseline:percent} of {baseline} and "
        "{judged_other:percent} of {other} text was judged."
    )
    HARDER = (
        "Even on its own, {source} text is harder to find: this may not be a preference for the "
        "source."
    )
    HARDER_FOR_SOME = (
        "Even on its own, {source} text is harder to find in {n} of {n_all:comparison|comparisons}:"
        " there this may not be a preference for the source."
    )
    GUESSED = "Sources are a detector's guesses: the count is not corrected for wrong ones."
    CONTRARY = (
        "In {n} of {n_all:comparison|comparisons} something in this report points the other way "
        "than the verdict (see “Verdicts”)."
    )
    TURNED = "The verdict weighs the top of each ranking and points the other way than the count."
    CONTENT = "The texts differ in content too, which may explain this."
    OPEN_NEEDED = "cannot tell; about {n_needed:roughly} queries are needed"
    SHOWN = (
        "Of the first {cutoff} that {system:short} shows, {shown:percent} is {baseline} text and "
        "{shown_other:percent} {other} text; of the corpus, {held:percent} and "
        "{held_other:percent}: {difference:points} and {difference_other:points} points."
    )
    HIGHER = "{source} text higher"
    SUBJECT = "{system} against {other}"
    EFFECT = (
        "How much higher {baseline} text is ranked than {other} text (percent of the average "
        "score), with {level:level} confidence."
    )
    REACH = "{reach:whole}"
    MORE_BELOW = "{n:comparison|comparisons} more under “Verdicts”."
    SIZE = (
        "{n_queries:query|queries}, {n_judgments:judgment|judgments}, "
        "{n_documents:document|documents}, design: {design}"
    )

    # What to do next.
    NEXT_CHECK = "Do both versions say the same? `rag-sourcebias check-pairs {data}`"
    NEXT_EXPLAIN = "What differs between them? `rag-sourcebias explain {data} --encoder none`"
    NEXT_REWRITE = (
        "Rule out content; what rewriting your documents takes: `rag-sourcebias rewrite {data} "
        "--model openai:gpt-4o-mini --output paired --dry-run`"
    )
    NEXT_JUDGE = "Judge what stands on the first ranks, of both sources, and audit again."
    NEXT_MORE = "Ask and judge more queries; each verdict says how many it takes."
    NEXT_READ = "Read the queries that decide it: “The queries behind it” in the report."
    NEXT_WATCH = "Keep watching your application: `rag-sourcebias monitor serve --help`"

    # What to know of a run and of the data.
    TIES_AVERAGED = (
        "Queries with tied scores by rank {rank}: {n} of {n_queries}. Ties are averaged over."
    )
    TIES_BROKEN = (
        "Queries with tied scores by rank {rank}: {n} of {n_queries}. Ties are broken by document "
        "id."
    )
    SHARED = (
        "Queries share judged documents: against {other}, the standard error is {factor:2} times "
        "that of independent queries (the interval allows for it)."
    )
    ONLY_RELEVANT = (
        "Judgments name relevant documents alone: what share of either source was looked at "
        "(Judged@k) is unknown, and all others count as not relevant."
    )
    APPROXIMATE = "The approximate index returned {share:percent} of the exact top {cutoff}."
    NOT_COMPUTED = "No {figure}: {refusal}."
    AS_READ = "{system}: {note}"
    CORRECTED = (
        "Relative Δ is corrected for wrong tags; pictures of single queries, twins and exposure "
        "are by the tags as they are."
    )
    VERIFIED = (
        "Sources of relevant documents: {n_declared} declared, {n_detected} by a detector, "
        "{n_verified} verified by people, who found {n_wrong} of these detected wrong; the "
        "intervals allow for wrong tags among the others."
    )
    RESTRICTED = (
        "Each source was compared alone in the rankings of all, the documents of the others left "
        "out: an index of two sources might rank otherwise."
    )
    ONE_INDEX = (
        "All sources stood in one index, where versions of one document compete with one another: "
        "--engine memory compares one source with the baseline at a time."
    )
    SIGNS_DIFFER = (
        "{system}, {measure}: alone beside the baseline {other} has centred Relative Δ "
        "{delta:signed}, in one index with all sources {together:signed}, as versions of one "
        "document compete with one another there."
    )
    NOT_REPEATED = (
        "Not all retrievers were also measured at equal length, which encodes half of the texts "
        "again: --length-matched (length_matched=True) does so."
    )
    NOT_CUT = (
        "Vectors were given, so pairs could not be cut to equal length: what length does is seen "
        "in the length-adjusted figures only."
    )

    # Why there is no figure.
    NEVER_TOGETHER = (
        "no query has relevant documents of both sources, so their ranks cannot be compared; judge "
        "documents of both for the same queries (copies take the grade of their original)"
    )
    NOTHING_RELEVANT = (
        "no relevant document of either source was retrieved within the cutoff, so Relative Δ is "
        "undefined (0 / 0)"
    )
    UNINFORMATIVE = (
        "{n} {units} carry the information of only {independent}: for the others nothing relevant "
        "was found within the cutoff, or they share documents; at least {n_least} are needed, "
        "about {n_needed} {units}, or a larger cutoff"
    )
    FEW_FOR_COVARIATES = (
        "adjusting for {n_covariates:covariate|covariates} needs at least {n_needed} queries with "
        "pairs, there are {n}"
    )
    ONE_WAY = (
        "{events} of {n_pairs:pair|pairs} went one way; a logistic regression needs at least "
        "{n_least} each way"
    )
    CONSTANT_COVARIATE = (
        "covariate {column} is {value:3} for every pair, so nothing is known about wins at {at:3}"
    )
    ALL_AGREE = (
        "all {n:query agrees|queries agree} exactly, so nothing is known about how much they vary; "
        "an interval needs queries that differ"
    )
    SEPARATED = (
        "the covariates separate wins from losses completely (or are collinear), so a win rate at "
        "equal length cannot be estimated from these pairs"
    )

    # How to read the tables and pictures.
    CARDS = (
        "Centred Relative Δ with its {level:level} interval. Bars run from −{reach:whole} "
        "({other} text ranked higher, left) to +{reach:whole} ({baseline} text, right); a "
        "filled dot and * mark what is significant after correction."
    )
    BARS = "−{reach:whole} … +{reach:whole}"
    CASES = (
        "Each query adds its difference to the figure: positive where {baseline} text ranks "
        "higher. One relevant document of each source is shown, with its rank; words of the "
        "query, and numbers, that the other text lacks are marked."
    )
    CUTOFFS = (
        "Each line is a {level:level} interval; filled marks are significant after correction; "
        "hollow ones are not, or were not tested. Circles lie on the {baseline} side, triangles "
        "on the other."
    )
    SLOPES = (
        "A line for each of these queries, from the score of its {baseline} documents to that of "
        "its {other} ones: where it falls, {baseline} text ranks higher."
    )
    BY_CUTOFF = "Centred Relative Δ of {measure} against {other}"
    SLOPES_OF = "{measure} ×100 by source, {system}"
    DIRECTION = "← {other} ranked higher | {baseline} ranked higher →"
    STAR = "* adjusted p below {alpha:level} ({correction} over {n_tests:test|tests})."
    STAR_UNCORRECTED = "* p below {alpha:level}, not corrected for {n_tests:test|tests}."
    EXPLORATORY = (
        "Intervals at {level:level} are not adjusted. {measure} carries the verdict, other "
        "measures are exploratory."
    )
    CASE = "{query}: {asked} ({ranks})"
    RANKS = "rank of {baseline}: {rank:whole}, of {other}: {rank_other:whole}"
    MISSING = "{measure} against {other}: {refusal}."
    REPEATED_SYSTEM = "{system} ({variant})"

    # Answers to what readers ask.
    DELTA = (
        "{searched} The quality of each ranking is scored twice: once counting only the relevant "
        "documents of one source, once only those of the other, each at the rank it really has. "
        "Relative Δ, as published, is the difference of the two "
        "mean scores in percent of their average. 0 means equal treatment, +200 means that only "
        "{baseline} documents were found, −200 that none of them were. Where one source has more "
        "relevant documents than the other, chance does not give 0: the centred figure subtracts "
        "what each source would score if source labels were permuted among the relevant documents "
        "of a query. With one copy of each document they are equal."
    )
    SEARCHED_TOGETHER = "The documents of all sources are ranked together."
    SEARCHED_ALONE = (
        "The documents of each other source are ranked together with the {baseline} ones, in an "
        "index of these two sources."
    )
    SEARCHED_RESTRICTED = (
        "The documents of each other source are ranked together with the {baseline} ones: in an "
        "index of these two sources where it could be built, for an application and finished runs "
        "in the ranking of all sources, without the documents of the others."
    )
    DECISION = (
        "It rests on the interval of centred Relative Δ of {measure}: inside ±{margin} points "
        "both sources are treated alike; beyond 0 one of them is favoured; otherwise these "
        "queries cannot tell. All other measures are exploratory."
    )
    SIGN = "Positive: {baseline} text is ranked higher. Negative: {other} text is ranked higher."
    NOISE = (
        "At @{cutoff} a query contributes one hit or none, so a handful of queries can move the "
        "value by tens of points. Read the interval, not the estimate, and look at the larger "
        "cutoffs: they use more of each ranking and are steadier."
    )
    COVERAGE = (
        "With {level:level} confidence each interval covers the value for all queries like these, "
        "one interval at a time: they are not widened for the number of comparisons. “Needed” "
        "estimates how many queries give a verdict four times in five, if any skew in the "
        "interval is as likely as it says; without any skew more are needed."
    )
    FAMILY = (
        "p belongs to no skew beyond chance: one minus the largest confidence level whose "
        "interval excludes 0. {n_tests:test belongs|tests belong} together: {measure} of all "
        "retrievers and sources of the mixed corpus. Repeats are corrected among themselves; "
        "other measures are exploratory and not corrected."
    )
    HOLM = (
        "Holm's correction controls the chance of even one false alarm among all of them; only an "
        "adjusted value below {alpha:level} is called significant. “Not significant” does not "
        "mean that there is no difference."
    )
    BH = (
        "Benjamini and Hochberg's correction controls the expected share of false alarms among "
        "the significant ones; only an adjusted value below {alpha:level} is called significant. "
        "“Not significant” does not mean that there is no difference."
    )
    NONE = (
        "No correction for the number of tests was asked for, so some of them fall below "
        "{alpha:level} by chance alone. The test says whether there is a difference, not how "
        "large it is."
    )

    OF_REWRITES = (
        "Each text has a twin of another source that is meant to say the same thing, so a skew is "
        "a preference for the source or its way of writing, as far as the twins really agree: the "
        "sole-corpus control and the length-matched values check that. It holds for this corpus, "
        "these queries and these generating models, and the direction can differ elsewhere."
    )
    OF_INDEPENDENT = (
        "The texts of different sources answer the same queries independently, so they differ in "
        "content and quality as well as in source. A skew shows which source this retriever ranks "
        "higher here; better or longer answers of one source would look the same."
    )
    OF_UNKNOWN = (
        "It is not known whether the texts of different sources say the same thing. A skew shows "
        "which source this retriever ranks higher here; better or longer answers of one source "
        "would look the same."
    )


# What was compared, with all that a verdict rests on.


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """In how many pairs of versions, or queries, each source ranks higher and neither does."""

    unit: Literal["pair", "query"]
    baseline: int = 0
    other: int = 0
    ties: int = 0

    @property
    def n(self) -> int:
        """All that were counted."""
        return self.baseline + self.other + self.ties


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One system, two sources, and what explains or weakens the verdict.

    Parameters
    ----------
    holes : Holes or None
        What judgments with holes leave open.
    control : SoleCorpusCheck or None
        A control that fails: the sources differ even when each is searched alone.
    repeats : tuple of (SystemSkew, SkewVerdict)
        Of a system as deployed: at equal length, with exact search.
    """

    system: SystemSkew
    verdict: SkewVerdict
    tally: Tally
    holes: Holes | None = None
    control: SoleCorpusCheck | None = None
    repeats: tuple[tuple[SystemSkew, SkewVerdict], ...] = ()

    @property
    def contrary(self) -> tuple[str, ...]:
        """What points the other way than a verdict, by an interval that excludes 0."""
        verdict, system = self.verdict, self.system
        figures = [
            (each.setting, each.interval) for each in system.strip if each.other == verdict.other
        ]
        figures += [
            (REPEATS[again.variant].lower(), repeated.interval) for again, repeated in self.repeats
        ]
        figures += [
            ("each source searched alone", check.difference)
            for check in system.sole_corpus
            if (check.other, check.measure) == (verdict.other, verdict.measure)
        ]
        against = [
            name
            for name, each in figures
            if each and each.excludes(0.0) and verdict.side * each.estimate < 0
        ]
        shown = shown_of(system, verdict.favoured)
        if shown and shown.difference and shown.difference.upper < 0:
            against.append(f"exposure on {shown.browsing}")
        return tuple(against) if verdict.favoured else ()

    @property
    def harder(self) -> str:
        """Source that is harder to find on its own; "" where the control does not fail."""
        if self.control is None:
            return ""
        if self.control.mean_baseline < self.control.mean_other:
            return self.control.baseline
        return self.control.other

    @property
    def turned(self) -> bool:
        """Whether the verdict points the other way than the count."""
        lead = self.tally.baseline - self.tally.other
        return self.verdict.side * lead < 0


def comparisons(report: SkewResults) -> tuple[Comparison, ...]:
    """Return every system, repeats too, with every other source, in the order of the report."""
    return tuple(
        _comparison(report, system, verdict)
        for system in report.systems
        for verdict in system.verdicts
    )


def _comparison(report: SkewResults, system: SystemSkew, verdict: SkewVerdict) -> Comparison:
    repeats = tuple(
        (again, repeated)
        for again in report.systems
        if again.name == system.name and again.variant != system.variant == "mixed"
        for repeated in again.verdicts
        if repeated.other == verdict.other and repeated.code is not SkewCode.REFUSED
    )
    control = None
    if verdict.favoured and report.data.design == "rewrites":
        # only rewrites are meant to be found equally well
        failed = (
            check
            for check in system.sole_corpus
            if (check.other, check.measure) == (verdict.other, verdict.measure)
            and check.p_value is not None
            and check.p_value < 1 - report.config.confidence_level
        )
        control = next(failed, None)
    return Comparison(
        system=system,
        verdict=verdict,
        tally=_tally(system, verdict),
        holes=next((one for one in system.holes if one.other == verdict.other), None),
        control=control,
        repeats=repeats,
    )


def _tally(system: SystemSkew, verdict: SkewVerdict) -> Tally:
    """Count pairs of versions where there are any, else queries with texts of both sources."""
    for twin in system.twins:
        if twin.other == verdict.other and twin.n_pairs:
            return _counted("pair", 0.5 - twin.other_above)
    for chance in system.chance:
        if chance.other == verdict.other:
            row = system.scores.measures.index(verdict.measure)
            return _counted("query", chance.skew[row][chance.both])
    return Tally(unit="query")


def _counted(unit: Literal["pair", "query"], lead: FloatArray) -> Tally:
    baseline, other = int(np.sum(lead >= _TINY)), int(np.sum(lead <= -_TINY))
    return Tally(unit=unit, baseline=baseline, other=other, ties=len(lead) - baseline - other)


# Names.


def shown_of(system: SystemSkew, source: str) -> ExposureShare | None:
    """Return the share of a source on the ranks that a reader sees: the most that are counted."""
    tops = [
        each
        for each in system.exposure
        if each.source == source and each.browsing.startswith("top-")
    ]
    return max(tops, key=lambda each: int(each.browsing.removeprefix("top-")), default=None)


REPEATS = {
    "length-matched": "At equal length",
    "exact": "With exact search",
    "together": "In one index with all sources",
}


def others_of(report: SkewResults) -> tuple[str, ...]:
    """Return the sources compared with the baseline, in the order of the report."""
    return tuple(dict.fromkeys(v.other for system in report.systems for v in system.verdicts))


def names_of(report: SkewResults) -> dict[str, str]:
    """Return the short name of every source of the report."""
    known = [report.config.baseline_source, *others_of(report), *report.data.documents]
    return short_names(known)


def sides_of(report: SkewResults) -> tuple[str, str]:
    """Return the names of the baseline and of the other source; of several, what is any of them."""
    names, others = names_of(report), others_of(report)
    other = names[others[0]] if len(others) == 1 else "another source’s"
    return names[report.config.baseline_source], other


def label(system: SystemSkew) -> str:
    """Return the name of a system, with the variant where it is a repeat."""
    if system.variant == "mixed":
        return system.name
    return str(SourceCode.REPEATED_SYSTEM(system=system.name, variant=system.variant))


# Verdicts.


def verdict_sentences(report: SkewResults, comparison: Comparison) -> Iterator[Finding]:
    """Yield the verdict on one comparison with its numbers, and what goes with it."""
    names, verdict = names_of(report), comparison.verdict
    but = "_BUT" if comparison.contrary else ""
    yield SourceCode[verdict.code.name + but](
        severity="verdict",
        contrary=", ".join(comparison.contrary),
        baseline=names[verdict.baseline],
        other=names[verdict.other],
        measure=verdict.measure,
        delta=verdict.figure,
        margin=verdict.margin,
        n_queries=verdict.n_queries,
        refusal=verdict.refusal,
    )
    if verdict.code is SkewCode.REFUSED:
        return
    if verdict.code is not SkewCode.ALIKE:
        yield _tested(report, verdict)
    if verdict.code is SkewCode.CANNOT_TELL and verdict.n_needed is not None:
        yield SourceCode.NEEDED(n_needed=verdict.n_needed)
    yield from _of_holes(report, comparison)
    control = comparison.control
    if control is not None:
        yield SourceCode.CONTROL(
            measure=control.measure,
            mean_baseline=control.mean_baseline,
            mean_other=control.mean_other,
            p=control.p_value,
        )
    for again, repeated in comparison.repeats:
        same = repeated.code is verdict.code
        code = SourceCode.REPEAT if same else SourceCode.REPEAT_TURNS
        yield code(repeat=REPEATS[again.variant], delta=repeated.figure)


def _of_holes(report: SkewResults, comparison: Comparison) -> Iterator[Finding]:
    """Yield what was judged of the first ranks, and what the rest may change."""
    names, verdict, holes = names_of(report), comparison.verdict, comparison.holes
    if holes is None:
        return
    if holes.value is None:
        yield SourceCode.HOLES_UNKNOWN()
    elif holes.judged_baseline is not None and holes.judged_other is not None:
        yield SourceCode.HOLES(
            cutoff=holes.cutoff,
            judged_baseline=holes.judged_baseline,
            judged_other=holes.judged_other,
            baseline=names[verdict.baseline],
            other=names[verdict.other],
            delta=holes.figure,
        )
    if verdict.holes:
        yield SourceCode.HOLES_OPEN()
    elif holes.turns_at is not None:
        yield SourceCode.HOLES_TURN(share=holes.turns_at)


def _tested(report: SkewResults, verdict: SkewVerdict) -> Finding:
    if verdict.n_tests == 1 or report.config.correction == "none":
        return SourceCode.TESTED(p=verdict.p_value)
    return SourceCode.ADJUSTED(
        p=verdict.p_value, p_adjusted=verdict.p_adjusted, n_tests=verdict.n_tests
    )


def headline(report: SkewResults) -> Finding:
    """Return what the verdicts rest on."""
    corrected = report.n_tests > 1 and report.config.correction != "none"
    code = SourceCode.SCOPE_CORRECTED if corrected else SourceCode.SCOPE
    return code(
        measure=report.config.primary_measure,
        n_queries=report.data.n_queries,
        n_tests=report.n_tests,
    )


# The first screen.


def answer(report: SkewResults, found: Sequence[Comparison]) -> Finding:
    """Return what was counted for the only comparison, or the verdicts on several."""
    if len(found) == 1:
        return _count(report, found[0])
    baseline, other = sides_of(report)
    codes = Counter(comparison.verdict.code for comparison in found)
    return SourceCode.SEVERAL(
        n=len(found),
        baseline=baseline,
        other=other,
        n_baseline=codes[SkewCode.FAVOURS_BASELINE],
        n_other=codes[SkewCode.FAVOURS_OTHER],
        n_alike=codes[SkewCode.ALIKE],
        n_open=codes[SkewCode.CANNOT_TELL] + codes[SkewCode.REFUSED],
    )


def _count(report: SkewResults, comparison: Comparison) -> Finding:
    names, verdict, tally = names_of(report), comparison.verdict, comparison.tally
    system = comparison.system.name
    if not tally.n:
        return SourceCode.NOTHING_TO_COUNT(system=system)
    higher, lower = names[verdict.baseline], names[verdict.other]
    if tally.other > tally.baseline:
        higher, lower = lower, higher
    code = SourceCode.PAIRS if tally.unit == "pair" else SourceCode.QUERIES
    return code(
        system=system,
        n_higher=max(tally.baseline, tally.other),
        n=tally.n,
        n_ties=tally.ties,
        higher=higher,
        lower=lower,
    )


def plain_verdict(report: SkewResults, comparison: Comparison) -> Finding:
    """Return a verdict without a measure, a test or an interval."""
    names, verdict = names_of(report), comparison.verdict
    but = "_BUT" if comparison.contrary else ""
    code = SourceCode[f"PLAIN_{verdict.code.name}{but}"]
    if verdict.holes:
        code = SourceCode.PLAIN_HOLES
    elif verdict.code is SkewCode.CANNOT_TELL and verdict.n_needed is not None:
        code = SourceCode.PLAIN_NEEDED
    return code(
        severity="verdict",
        system=comparison.system.name,
        baseline=names[verdict.baseline],
        other=names[verdict.other],
        n_queries=verdict.n_queries,
        n_needed=verdict.n_needed,
        contrary=", ".join(comparison.contrary),
    )


def doubts(report: SkewResults, found: Sequence[Comparison]) -> Iterator[Finding]:
    """Yield what stands against the verdicts: what lacks, how tags are known, the design."""
    names = names_of(report)
    yield from what_lacks(system.notes for system in report.systems if system.variant == "mixed")
    yield from _least_judged(report, found)
    if report.data.origins.keys() & {"detected", "unverified"}:
        yield SourceCode.GUESSED()
    harder = Counter(comparison.harder for comparison in found if comparison.harder)
    for source, n in sorted(harder.items()):
        code = SourceCode.HARDER if n == len(found) else SourceCode.HARDER_FOR_SOME
        yield code(source=names[source], n=n, n_all=len(found))
    if any(comparison.turned for comparison in found):
        yield SourceCode.TURNED()
    contrary = sum(bool(comparison.contrary) for comparison in found)
    if contrary and len(found) > 1:
        yield SourceCode.CONTRARY(n=contrary, n_all=len(found))
    if report.data.design != "rewrites" and any(c.verdict.favoured for c in found):
        yield SourceCode.CONTENT()


def shown_first(report: SkewResults, found: Sequence[Comparison]) -> Iterator[Finding]:
    """Yield the shares of both sources on the ranks that a reader sees, and in the corpus."""
    names = names_of(report)
    for system, verdict in ((comparison.system, comparison.verdict) for comparison in found):
        baseline, other = shown_of(system, verdict.baseline), shown_of(system, verdict.other)
        if baseline is None or other is None:
            continue
        yield SourceCode.SHOWN(
            system=system.name,
            cutoff=baseline.browsing.removeprefix("top-"),
            baseline=names[verdict.baseline],
            other=names[verdict.other],
            shown=baseline.share,
            shown_other=other.share,
            held=baseline.corpus_share,
            held_other=other.corpus_share,
            difference=baseline.difference,
            difference_other=other.difference,
        )


def _least_judged(report: SkewResults, found: Sequence[Comparison]) -> Iterator[Finding]:
    """Yield Judged@k of the comparison in which least of a source was judged."""
    names = names_of(report)
    shares = [
        (min(holes.judged_baseline, holes.judged_other), holes)
        for holes in (comparison.holes for comparison in found)
        if holes is not None
        and holes.judged_baseline is not None
        and holes.judged_other is not None
    ]
    if not shares:
        return
    least, holes = min(shares, key=lambda pair: pair[0])
    if least < 1:
        yield SourceCode.JUDGED(
            cutoff=holes.cutoff,
            judged_baseline=holes.judged_baseline,
            judged_other=holes.judged_other,
            baseline=names[report.config.baseline_source],
            other=names[holes.other],
        )


def next_step(report: SkewResults, found: Sequence[Comparison]) -> Finding:
    """Return what follows from the verdicts: a command on the same data where there is one."""
    data = report.inputs
    if not report.data.mean_words or "--grade-scale" in data:
        data = ""  # no other command takes rankings, or grades of another scale
    # where judgments have holes nothing that is printed here helps
    codes = {comparison.verdict.code for comparison in found if not comparison.verdict.holes}
    if data and any(comparison.control for comparison in found):
        return SourceCode.NEXT_CHECK(data=data)
    if codes == {SkewCode.ALIKE}:
        return SourceCode.NEXT_WATCH()
    if not any(comparison.verdict.favoured for comparison in found):
        return SourceCode.NEXT_MORE() if codes else SourceCode.NEXT_JUDGE()
    if data and report.data.design == "rewrites" and "--dataset" not in data:
        return SourceCode.NEXT_EXPLAIN(data=data)
    # what is known to be by people is rewritten, of a folder and all its splits
    if data and "--" not in data and "" not in report.data.documents:
        return SourceCode.NEXT_REWRITE(data=data)
    return SourceCode.NEXT_READ()


# Notes.


def notes_of(system: SystemSkew) -> tuple[Finding, ...]:
    """Return what a reader must know of one run."""
    return (
        *(note for note in system.notes if note.severity == "note"),  # others stand at the top
        *(note for twin in system.twins for note in twin.notes),
    )


# How to read the report.


def star(report: SkewResults) -> Finding:
    """Return what a star stands for."""
    config = report.config
    code = SourceCode.STAR if config.correction != "none" else SourceCode.STAR_UNCORRECTED
    return code(
        alpha=1 - config.confidence_level,
        correction=CORRECTIONS[config.correction],
        n_tests=report.n_tests,
    )


def _searched(report: SkewResults) -> Finding:
    """Return which documents competed with one another."""
    said = {finding.code for finding in report.findings}
    if len(others_of(report)) == 1 or SourceCode.ONE_INDEX in said:
        return SourceCode.SEARCHED_TOGETHER()
    baseline, _ = sides_of(report)
    if SourceCode.RESTRICTED in said:
        return SourceCode.SEARCHED_RESTRICTED(baseline=baseline)
    return SourceCode.SEARCHED_ALONE(baseline=baseline)


def questions(report: SkewResults) -> tuple[tuple[str, Finding], ...]:
    """Return what readers ask, and the answers for this report."""
    config = report.config
    baseline, other = sides_of(report)
    measure, level = config.primary_measure, config.confidence_level
    corrected = SourceCode[config.correction.upper()]
    followed = SourceCode[f"OF_{report.data.design.upper()}"]
    return (
        ("What is Relative Δ?", SourceCode.DELTA(baseline=baseline, searched=_searched(report))),
        (
            "How is the verdict reached?",
            SourceCode.DECISION(measure=measure, margin=config.margin),
        ),
        ("Which sign means what?", SourceCode.SIGN(baseline=baseline, other=other)),
        ("Why is the smallest cutoff so noisy?", SourceCode.NOISE(cutoff=min(config.cutoffs))),
        ("What do the intervals cover?", SourceCode.COVERAGE(level=level)),
        (
            "Which tests belong together?",
            SourceCode.FAMILY(n_tests=report.n_tests, measure=measure),
        ),
        ("What does an adjusted p-value cover?", corrected(alpha=1 - level)),
        ("What follows from a skew here?", followed()),
    )
