"""What an audit of a judge found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rag_sourcebias.types.intervals import Interval
from rag_sourcebias.types.judge_bias import BiasDifference, GroupBias
from rag_sourcebias.types.judge_calibration import LabelCalibration
from rag_sourcebias.types.serial import from_plain, to_plain

__all__ = ["Agreement", "JudgeAudit"]


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
        else:
            gap = self.judge_mean - self.human_mean
            result.append(f"judge − human {gap:.4g}, too even over the items for an interval")
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
