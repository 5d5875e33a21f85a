"""What an audit of a judge found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rag_sourcebias.types.intervals import Interval
from rag_sourcebias.types.serial import from_plain, to_plain

__all__ = [
    "Agreement",
    "BiasDifference",
    "GradeCalibration",
    "GroupBias",
    "JudgeAudit",
    "LabelCalibration",
    "ReliabilityBin",
]


@dataclass(frozen=True, slots=True, kw_only=True)
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
    kappa, kappa_linear, kappa_quadratic : Interval or None
        Cohen's kappa, unweighted and weighted by distance; None where undefined (both always give
        the same single grade) or where too many resamples are.
    alpha_ordinal, alpha_interval : Interval or None
        Krippendorff's alpha.
    """

    n_grades: int
    rounded: bool
    exact: Interval
    kappa: Interval | None
    kappa_linear: Interval | None
    kappa_quadratic: Interval | None
    alpha_ordinal: Interval | None
    alpha_interval: Interval | None


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


@dataclass(frozen=True, slots=True, kw_only=True)
class ReliabilityBin:
    """Items whose predicted value is alike: what was predicted and what was seen, on average."""

    n: int
    predicted: float
    observed: float


@dataclass(frozen=True, slots=True, kw_only=True)
class GradeCalibration:
    """Calibration of the probability of one grade.

    Parameters
    ----------
    predicted_share, observed_share : float
        Mean probability the judge gives, and share people give.
    difference : Interval or None
        Predicted − observed share.
    ece : float
        Expected calibration error over ``bins``, in [0, 1].
    ece_if_calibrated : float
        Mean of the same where labels are drawn from the judge's own probabilities: the part of
        ``ece`` that is only noise.
    brier, reliability, resolution, uncertainty, within_bins : float
        brier = reliability − resolution + uncertainty + within_bins (Murphy 1973; the last term,
        Stephenson et al. 2008, is what binning leaves).
    bins : tuple of ReliabilityBin
    """

    grade: int
    predicted_share: float
    observed_share: float
    difference: Interval | None
    ece: float
    ece_if_calibrated: float
    brier: float
    reliability: float
    resolution: float
    uncertainty: float
    within_bins: float
    bins: tuple[ReliabilityBin, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelCalibration:
    """Calibration of label distributions against human grades.

    Parameters
    ----------
    n : int
        Pairs judged by both.
    grades : tuple of GradeCalibration
    brier : float
        Σ over grades of the squared error, in [0, 2]; the sum of the grades' ``brier``.
    rps : float
        Ranked probability score over the L − 1 cumulative shares, divided by L − 1, in [0, 1].
    rps_of_shares : float
        The same for a judge that always answers with the observed shares.
    gain_error : Interval or None
        Predicted − observed mean gain.
    gain_slope : float or None
        Slope of the observed gain on the predicted gain; 1 is calibrated, below 1 over-confident.
        None where the predicted gain is constant.
    gain_bins : tuple of ReliabilityBin
    """

    n: int
    grades: tuple[GradeCalibration, ...]
    brier: float
    rps: float
    rps_of_shares: float
    gain_error: Interval | None
    gain_slope: float | None
    gain_bins: tuple[ReliabilityBin, ...]

    @property
    def rps_skill(self) -> float:
        """1 − rps / rps_of_shares: 0 is no better than the observed shares, 1 is perfect."""
        return 1 - self.rps / self.rps_of_shares if self.rps_of_shares > 0 else 0.0

    @property
    def ece(self) -> float:
        """Mean of the grades' expected calibration errors."""
        return sum(g.ece for g in self.grades) / len(self.grades)

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> list[str]:
        """Say what was found, one finding a line."""
        result = [
            f"label distributions of {self.n} items: ranked probability skill "
            f"{self.rps_skill:.3f} (0: no better than the observed shares)"
        ]
        if self.gain_error is not None:
            result.append(f"predicted − observed mean gain {self.gain_error}")
        if self.gain_slope is not None:
            result.append(
                f"slope of observed on predicted gain {self.gain_slope:.3f} (1: calibrated)"
            )
        result += [
            f"grade {g.grade}: predicted {g.predicted_share:.1%}, observed {g.observed_share:.1%}, "
            f"calibration error {g.ece:.3f} ({g.ece_if_calibrated:.3f} would be noise)"
            for g in self.grades
        ]
        return result

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return dict(to_plain(self))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> LabelCalibration:
        """Read what :meth:`to_dict` wrote."""
        return from_plain(cls, data)


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeAudit:
    """A judge held against human labels.

    Parameters
    ----------
    n : int
        Items with a human label and a judge value.
    n_clusters : int
        Independent units among them.
    n_judge_missing : int
        Labelled items the judge gave no usable answer for.
    pearson, spearman : Interval or None
        None where human or judge values are constant.
    kendall : float or None
        τ-b.
    useful_from : float
        1/√(n − 2): with |Pearson's r| no greater, labels alone give a narrower interval.
    human_mean, judge_mean : float
    bias : Interval or None
        Mean judge − human; None where it has no spread to estimate from.
    groups : tuple of GroupBias
    differences : tuple of BiasDifference
        Smallest p first.
    agreement : Agreement or None
        None where the judge answers on another scale.
    auc : Interval or None
        Of the judge value, where human labels are 0 and 1.
    calibration : LabelCalibration or None
        Where human labels are 0 and 1 and judge values are graded in [0, 1].
    notes : tuple of str
    """

    n: int
    n_clusters: int
    n_judge_missing: int
    pearson: Interval | None
    spearman: Interval | None
    kendall: float | None
    useful_from: float
    human_mean: float
    judge_mean: float
    bias: Interval | None
    groups: tuple[GroupBias, ...]
    differences: tuple[BiasDifference, ...]
    agreement: Agreement | None
    auc: Interval | None
    calibration: LabelCalibration | None
    notes: tuple[str, ...]

    @property
    def useless(self) -> bool:
        """Whether labels alone are better than this judge."""
        return self.pearson is None or abs(self.pearson.estimate) <= self.useful_from

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return dict(to_plain(self))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> JudgeAudit:
        """Read what :meth:`to_dict` wrote."""
        return from_plain(cls, data)

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> list[str]:
        """Say what was found, one finding a line."""
        result = [f"{self.n} labelled items in {self.n_clusters} independent units", *self.notes]
        if self.pearson is not None and self.spearman is not None:
            result += [f"Pearson {self.pearson}", f"Spearman {self.spearman}"]
        if self.bias is not None:
            result.append(f"judge − human {self.bias}")
        result += [
            f"judge − human in {g.group} {g.bias}" for g in self.groups if g.bias is not None
        ]
        result += [
            f"{d.group} against {d.other} {d.difference}, adjusted p = {d.p_adjusted:.2g}"
            for d in self.differences
            if d.p_adjusted < 1 - d.difference.confidence_level
        ]
        if self.agreement is not None:
            kinds = ("exact", "kappa", "kappa_linear", "kappa_quadratic", "alpha_ordinal")
            result += [
                f"{kind.replace('_', ' ')} {value}"
                for kind in kinds
                if (value := getattr(self.agreement, kind)) is not None
            ]
        if self.auc is not None:
            result.append(f"AUC {self.auc}")
        if self.calibration is not None:
            result += self.calibration.lines()
        return result
