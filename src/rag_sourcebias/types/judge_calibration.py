"""How well the probabilities of a judge fit what people say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rag_sourcebias.types.intervals import Interval
from rag_sourcebias.types.serial import from_plain, to_plain

__all__ = ["GradeCalibration", "LabelCalibration", "ReliabilityBin"]


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
