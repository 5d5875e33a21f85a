"""What a judged evaluation, an audit of a judge and a check for drift found, as data."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from rag_sourcebias.core.codec import Stored, environment, timestamp
from rag_sourcebias.core.data import FloatArray
from rag_sourcebias.core.errors import SettingError, check_level, require_at_least
from rag_sourcebias.core.finding import Evidence, Interval
from rag_sourcebias.report.legacy import estimate, p_clause

# The parts of a judged evaluation: means, comparisons, single queries.


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
        Human labels that labels alone would need for the same width, minus those used: at
        least, in about 80 % of draws. Negative when the judge made things worse; None when there
        is no ``labels_alone``.
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
    family: int = 1


@dataclass(frozen=True, kw_only=True)
class JudgedRanks:
    """Systems in order of one measure, with the ranks that the data leave each.

    Parameters
    ----------
    systems : tuple of str
        Best first.
    score : tuple of float
        Estimated mean, from which they are ordered.
    best, worst : tuple of int
        Lowest and highest possible rank; all hold at once with the confidence level.
    tau, tau_lower, tau_upper : float
        Kendall's τ between the judge's means and the corrected ones before they are drawn towards
        the judge, and its interval.
    to_tell : int or None
        Labelled items after which the first two would be told apart if they differ as much as
        estimated; None where they are told apart already or no such number is in sight.
    """

    measure: str
    systems: tuple[str, ...]
    score: tuple[float, ...]
    best: tuple[int, ...]
    worst: tuple[int, ...]
    tau: float
    tau_lower: float
    tau_upper: float
    confidence_level: float
    n_labeled: int
    to_tell: int | None


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
    estimate: FloatArray
    lower: FloatArray
    upper: FloatArray
    human: FloatArray
    highest: float
    rule: str
    confidence_level: float
    assumptions: tuple[str, ...]


# How far a judge is above or below people, by group.


@dataclass(frozen=True, kw_only=True)
class GroupBias:
    """Mean judge − human difference of one group.

    ``bias`` is None where the differences have no spread to estimate from.
    """

    group: str
    n: int
    bias: Interval | None


@dataclass(frozen=True, kw_only=True)
class BiasDifference:
    """Bias of one group minus that of another (``"rest"``: all other items).

    ``p_adjusted`` is Holm-adjusted over the differences of the audit.
    """

    group: str
    other: str
    difference: Interval
    p_value: float
    p_adjusted: float


# What an audit of a judge found.


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """Chance-corrected agreement of human and judge on the same grades.

    Parameters
    ----------
    n_grades : int
        Different grades that occur.
    rounded : bool
        Whether judge values were rounded to the nearest human grade first.
    exact : Interval
        Share of items with the same grade.
    kappa : Interval or None
        Cohen's kappa, weighted by squared distance; None where the judge gives one grade only.
    """

    n_grades: int
    rounded: bool
    exact: Interval
    kappa: Interval | None

    def rows(self) -> Iterator[tuple[str, str]]:
        """Return what was found, and its value."""
        rounded = ", judge rounded" if self.rounded else ""
        same = f"share with the same of {self.n_grades} grades{rounded}"
        yield same, estimate(self.exact, digits=2)
        yield "Cohen's κ, quadratic weights", estimate(self.kappa, digits=2)


@dataclass(frozen=True, kw_only=True)
class JudgeBias:
    """Something that sways a judge, and by how much.

    Parameters
    ----------
    kind : str
        As in :func:`rag_sourcebias.judged.judge_audit.judge_biases`.
    n : int
        Items it was measured on.
    effect : Interval
        In units of the judge value; for ``"flips"`` a share.
    p_value, p_adjusted : float or None
        Of no effect; Holm-adjusted over the biases of the audit. None for ``"flips"``.
    family : str
        The judge's own, for ``"self_preference"``.
    """

    kind: Literal["length", "verbosity", "self_preference", "first_place", "flips"]
    n: int
    effect: Interval
    p_value: float | None = None
    p_adjusted: float | None = None
    family: str = ""

    def row(self) -> tuple[str, str]:
        """Return what sways the judge, and by how much."""
        what = {
            "length": "judge − human, per doubling of length",
            "verbosity": "judge value, per doubling of length at equal human value",
            "self_preference": f"judge value of its own family ({self.family}) above others, at "
            "equal human value",
            "first_place": "judge value of the same thing shown first instead of second",
            "flips": "share of verdicts that change with the order",
        }[self.kind]
        return f"{what} ({self.n} items)", _tested(self.effect, self.p_adjusted)


def _tested(difference: Interval, p_adjusted: float | None) -> str:
    """Return a difference with its interval and its adjusted p-value."""
    if p_adjusted is None:
        return estimate(difference, digits=3)
    ends = estimate(difference, digits=3, signed=True)
    return f"{ends}, {p_clause(p_adjusted, name='adjusted p')}"


@dataclass(frozen=True, kw_only=True)
class JudgeAudit(Stored):
    """A judge held against human labels.

    Parameters
    ----------
    n : int
        Items with a human label and a judge value.
    n_clusters : int
        Independent units among them.
    n_judge_missing : int
        Labelled items the judge gave no usable answer for.
    pearson : Interval or None
        None where human or judge values are constant.
    useful_from : float
        1/√(n − 2): with |Pearson's r| no greater, labels alone give a narrower interval.
    bias : Interval or None
        Mean judge − human; None where it has no spread to estimate from, or on another scale.
    groups : tuple of GroupBias
        None on another scale.
    differences : tuple of BiasDifference
        Smallest p first.
    agreement : Agreement or None
        None where the judge answers on another scale.
    slope : float or None
        Of people's values on the judge's: 1 is calibrated, below 1 over-confident.
    notes : tuple of str
    sways : tuple of JudgeBias
        Length, order, family: what the file has columns for.
    same_scale : bool
        Whether the judge seems to answer on the scale of people. Where it does not, differences
        are those of the judge brought to their scale by its line.
    """

    n: int
    n_clusters: int
    n_judge_missing: int
    pearson: Interval | None
    useful_from: float
    bias: Interval | None
    groups: tuple[GroupBias, ...]
    differences: tuple[BiasDifference, ...]
    agreement: Agreement | None
    slope: float | None
    notes: tuple[str, ...]
    sways: tuple[JudgeBias, ...] = ()
    same_scale: bool = True

    @property
    def useless(self) -> bool:
        """Whether labels alone are better than this judge."""
        return self.pearson is None or abs(self.pearson.estimate) <= self.useful_from

    def __str__(self) -> str:
        return "\n".join((*self.notes, *(f"{what}: {value}" for what, value in self.rows())))

    def rows(self) -> Iterator[tuple[str, str]]:
        """Return what was found, and its value; what is not known is left out."""
        yield "labelled items", f"{self.n:,} in {self.n_clusters:,} independent units"
        if self.pearson is not None:
            yield "Pearson's r", estimate(self.pearson, digits=2)
        if self.agreement is not None:
            yield from self.agreement.rows()
        if self.bias is not None:
            yield "judge − human", estimate(self.bias, digits=3, signed=True)
        for group in self.groups:
            yield f"judge − human in {group.group}", estimate(group.bias, digits=3, signed=True)
        for found in self.differences:
            value = _tested(found.difference, found.p_adjusted)
            yield f"judge − human, {found.group} less {found.other}", value
        if not self.same_scale:
            yield "judge − human", "not compared: the judge answers on another scale"
        elif self.slope is not None:
            yield "calibration: slope of people on the judge (1: calibrated)", f"{self.slope:.2f}"
        for bias in self.sways:
            yield bias.row()


# What a judged evaluation found: intervals for means, comparisons and single queries.


JUDGED_SCHEMA_VERSION = 1


@dataclass(frozen=True, kw_only=True)
class JudgedConfig:
    """Settings of a judged evaluation.

    Parameters
    ----------
    method : str
        A method of :func:`rag_sourcebias.mean_interval`, or ``"crc"``: conformal risk control of
        Oosterhuis et al. (KDD 2024), for target ``"unlabeled"``; it under-covers.
    target : {"population", "pool", "unlabeled"}
    confidence_level : float
    gain : {"exponential", "linear"}
        Gain of grade r in DCG and NDCG: 2^r − 1, or r.
    min_grade : int
        Lowest grade that counts as relevant in P, MAP, MRR and recall.
    per_query : bool
        Whether intervals of single queries are wanted (DCG and P only).
    baseline : str
        System that every other one is compared with; ``""``: all pairs, and ranks.
    seed : int
    """

    method: str = "regression"
    target: Literal["population", "pool", "unlabeled"] = "population"
    confidence_level: float = 0.95
    gain: Literal["exponential", "linear"] = "exponential"
    min_grade: int = 1
    per_query: bool = True
    baseline: str = ""
    seed: int = 0

    def __post_init__(self) -> None:
        check_level(self.confidence_level)
        require_at_least(1, min_grade=self.min_grade)
        if self.method == "crc" and self.target != "unlabeled":
            raise SettingError(
                "method",
                f"'crc' bounds the mean of what has no human label, not target "
                f"{self.target!r}; choose target 'unlabeled', or method 'regression'",
            )


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class JudgedResults(Stored):
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
    ranks : tuple of JudgedRanks
        One per measure where three systems or more share their items.

    evidence : tuple of Evidence
        Labelled items on which the judge is furthest off.
    same_scale : bool
        Whether the judge seems to answer on the scale of people: only then are the two compared.
    inputs : str
        What of the command line ``labels`` takes as well; empty where there was none.
    """

    _versioned = ("judged report", JUDGED_SCHEMA_VERSION)

    schema_version: int = JUDGED_SCHEMA_VERSION
    kind: Literal["items", "ranking"]
    name: str
    config: JudgedConfig
    n_labeled: int
    n_unlabeled: int
    n_judge_missing: int
    means: tuple[JudgedMean, ...]
    comparisons: tuple[JudgedComparison, ...]
    per_query: tuple[QueryIntervals, ...] = ()
    audits: Mapping[str, JudgeAudit]
    environment: Mapping[str, str] = field(default_factory=environment)
    created: str = field(default_factory=timestamp)
    warnings: tuple[str, ...] = ()
    ranks: tuple[JudgedRanks, ...] = ()

    evidence: tuple[Evidence, ...] = ()
    same_scale: bool = True
    inputs: str = ""


# Whether a judge still judges as it did.


MOST_MISSING = 0.1  # of the items judged again: with more, drift cannot be ruled out


@dataclass(frozen=True, kw_only=True)
class DriftCheck(Stored):
    """What became of a judge on items that it judged before.

    Parameters
    ----------
    n, n_missing : int
        Items with and without a new judge value.
    share_changed : float
        Share of items whose judge value changed.
    shift : Interval
        Mean change of the judge value, now − then.
    error_shift : Interval
        Change of E[y − ĉ(f)], the mean error of the judge as calibrated then.
    correlation_then, correlation_now : float
        With the human values; 0 for a constant.
    margin : float or None
    stable : bool
        Whether E[y − ĉ(f)] stayed within the margin (or, without one, is not seen to have moved)
        and the judge answered on at least 90 % of the items.
    """

    n: int
    n_missing: int
    share_changed: float
    shift: Interval
    error_shift: Interval
    correlation_then: float
    correlation_now: float
    margin: float | None
    stable: bool

    @property
    def verdict(self) -> str:
        """Return whether the old calibration still holds, and why not."""
        if self.stable:
            return "stable: the calibration still holds"
        n = self.n + self.n_missing
        if self.n_missing > MOST_MISSING * n:
            return (
                f"the judge failed on {self.n_missing} of {n} items, more than "
                f"{MOST_MISSING:.0%}: drift cannot be ruled out; judge them again"
            )
        allowed = "0"
        if self.margin is not None:
            allowed = f"the margin ± {self.margin:g}"
        return (
            f"the judge has drifted: its mean error after calibration moved by "
            f"{self.error_shift.estimate:.4g} on {self.n} items, not within {allowed}; no "
            "interval is given on the old calibration: label a new sample and calibrate again"
        )

    def __str__(self) -> str:
        return (
            f"{self.n} items judged again, {self.n_missing} without a value, "
            f"{self.share_changed:.0%} changed\n"
            f"change of the judge value {self.shift}\n"
            f"change of the mean error after calibration {self.error_shift}\n"
            f"correlation with people {self.correlation_then:.2f} then, {self.correlation_now:.2f} "
            f"now\n{self.verdict}"
        )
