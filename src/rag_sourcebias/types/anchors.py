"""Fixed items by which drift of a judge is seen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError
from rag_sourcebias.types.intervals import Interval
from rag_sourcebias.types.serial import from_plain, to_plain

__all__ = ["ANCHOR_SCHEMA", "AnchorSet", "DriftCheck"]

ANCHOR_SCHEMA = 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AnchorSet:
    """Items with the human value, the judge value at calibration, and the calibration.

    Parameters
    ----------
    schema_version : int
    ids : tuple of str
        Unique.
    human, judge : float64 arrays of shape (n,)
        Finite.
    slope, intercept : float
        ĉ(f) = intercept + slope · f, whose mean error on the anchors was 0.
    settings : mapping of str to str
        What identifies the judge.
    """

    schema_version: int
    ids: tuple[str, ...]
    human: npt.NDArray[np.float64]
    judge: npt.NDArray[np.float64]
    slope: float
    intercept: float
    settings: Mapping[str, str]

    def __post_init__(self) -> None:
        n = len(self.ids)
        if len(set(self.ids)) < n:
            raise DataError("an anchor id occurs twice; keep one")
        for name in ("human", "judge"):
            values = getattr(self, name)
            if values.shape != (n,) or not np.isfinite(values).all():
                raise DataError(f"{name} values of the {n} anchors must be {n} finite numbers")

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return dict(to_plain(self))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> AnchorSet:
        """Read what :meth:`to_dict` wrote."""
        return from_plain(cls, data)


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftCheck:
    """What became of a judge on its anchors.

    Parameters
    ----------
    n, n_missing : int
        Anchors with and without a new judge value.
    share_changed : float
        Share of anchors whose judge value changed.
    shift : Interval
        Mean change of the judge value, now − then.
    error_shift : Interval
        Change of E[y − ĉ(f)], the mean error of the calibrated judge.
    error_now : float
        Mean of y − ĉ(f) with the new values.
    correlation_then, correlation_now : float
        With the human values; 0 for a constant.
    tilt_p_value : float or None
        Whether the change depends on the value itself (harsher on weak items, milder on good
        ones); such drift can leave the mean error of the anchors alone and still move that of
        other items. None where the change is constant.
    margin : float or None
    stable : bool
        Whether E[y − ĉ(f)] stayed within the margin (or, without one, is not seen to have moved)
        and the judge answered on at least 90 % of the anchors.
    """

    n: int
    n_missing: int
    share_changed: float
    shift: Interval
    error_shift: Interval
    error_now: float
    correlation_then: float
    correlation_now: float
    tilt_p_value: float | None
    margin: float | None
    stable: bool

    def __str__(self) -> str:
        state = "stable" if self.stable else "drifted"
        tilt = "" if self.tilt_p_value is None else f", tilt p = {self.tilt_p_value:.2g}"
        return (
            f"judge {state} on {self.n} anchors ({self.n_missing} without an answer): "
            f"E[y − ĉ(f)] moved by {self.error_shift}; {self.share_changed:.0%} of the judge "
            f"values changed, mean change {self.shift.estimate:.4g}{tilt}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return dict(to_plain(self))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> DriftCheck:
        """Read what :meth:`to_dict` wrote."""
        return from_plain(cls, data)
