"""The search for a debias weight as data: what goes in, and the curves and choice that come out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rag_sourcebias.errors import DataError
from rag_sourcebias.types.arrays import FloatArray
from rag_sourcebias.types.intervals import Interval
from rag_sourcebias.types.serial import from_plain, to_plain
from rag_sourcebias.types.tests import NoninferiorityTest

__all__ = ["QUALITIES", "DebiasCandidate", "DebiasPoint", "DebiasSearch"]

QUALITIES = ("human-only", "llm-only", "mixed")
_ROUNDING = 1e-9  # a measure that divides sums may exceed 1 by this
_COLUMNS = ("baseline", "other", "human_only", "llm_only", "mixed")


@dataclass(frozen=True, kw_only=True, eq=False)
class DebiasCandidate:
    """Per-query scores of one weight (or strength), one row per training seed.

    Row s and column q of every array, and of every other candidate, belong to the same seed and
    the same query. An array of shape (n,) is read as one row.

    Parameters
    ----------
    weight : float
        At least 0; 0 is the unchanged method that the others are compared with.
    baseline, other : float64 arrays of shape (seeds, n)
        Scores in [0, 1] on the mixed corpus of the human versions and of the LLM versions
        ([K] §3.1: one target source at a time).
    human_only, llm_only : float64 arrays of shape (seeds, n)
        Quality on a corpus of one source.
    mixed : float64 array of shape (seeds, n) or None
        Quality on the mixed corpus with both versions relevant; the mean of ``baseline`` and
        ``other`` where None.
    unchanged : tuple of str
        Qualities that the method cannot change by construction, out of ``"human-only"``,
        ``"llm-only"`` and ``"mixed"``: an offset on the scores of one source keeps the order
        within each source. They must equal those of weight 0 and pass without a test.
    seeds : tuple of int
        Names of the rows; empty where they have none.
    query_ids : tuple of str
        Names of the columns; empty where they have none.

    Raises
    ------
    DataError
        If arrays differ in shape or hold a value that is not a number in [0, 1].
    """

    weight: float
    baseline: FloatArray = field(repr=False)
    other: FloatArray = field(repr=False)
    human_only: FloatArray = field(repr=False)
    llm_only: FloatArray = field(repr=False)
    mixed: FloatArray | None = field(default=None, repr=False)
    unchanged: tuple[str, ...] = ()
    seeds: tuple[int, ...] = ()
    query_ids: tuple[str, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        if not (math.isfinite(self.weight) and self.weight >= 0):
            raise DataError(f"weight {self.weight!r} must be a number of at least 0")
        for name in _COLUMNS:
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, self._checked(name, value))
        if self.mixed is None:
            object.__setattr__(self, "mixed", (self.baseline + self.other) / 2)
        unknown = [name for name in self.unchanged if name not in QUALITIES]
        if unknown:
            raise DataError(f"unchanged {unknown} is no quality; there are {list(QUALITIES)}")
        rows, columns = self.baseline.shape
        for kind, names, size in (
            ("seeds", self.seeds, rows),
            ("query_ids", self.query_ids, columns),
        ):
            if names and (len(names) != size or len(set(names)) != size):
                raise DataError(
                    f"weight {self.weight:g}: {kind} must be {size} different names, "
                    f"got {len(names)} ({len(set(names))} different)"
                )

    def _checked(self, name: str, value: FloatArray) -> FloatArray:
        array: FloatArray = np.atleast_2d(np.asarray(value, dtype=np.float64))
        shape = np.atleast_2d(self.baseline).shape
        if array.shape != shape or array.ndim != 2:
            raise DataError(
                f"weight {self.weight:g}: {name} has shape {array.shape}, baseline {shape}; "
                "every array needs one row per seed and one column per query, in one order"
            )
        bad = np.argwhere(~((array >= 0) & (array <= 1 + _ROUNDING)))
        if len(bad):
            row, column = bad[0]
            raise DataError(
                f"weight {self.weight:g}: {name} of seed row {row}, query column {column} is "
                f"{array[row, column]}; scores must be numbers in [0, 1]"
            )
        return np.minimum(array, 1.0)

    @property
    def shape(self) -> tuple[int, int]:
        """Seeds and queries."""
        rows, columns = self.baseline.shape
        return rows, columns

    def of(self, quality: str) -> FloatArray:
        """Quality ``"human-only"``, ``"llm-only"`` or ``"mixed"``, shape (seeds, n)."""
        column: FloatArray = getattr(self, quality.replace("-", "_"))
        return column


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
    tests : tuple of NoninferiorityTest
        Against weight 0, one per quality; empty for weight 0.
    p_value, p_adjusted : float or None
        Largest p of the tests, and the same adjusted over the weights where they share queries
        with the choice. None for weight 0.
    admitted : bool
        Whether the weight may be chosen.
    refusal : str or None
        Which tests failed and by how much.
    """

    weight: float
    relative_delta: Interval
    human_only: Interval
    llm_only: Interval
    mixed: Interval
    tests: tuple[NoninferiorityTest, ...]
    p_value: float | None
    p_adjusted: float | None
    admitted: bool
    refusal: str | None = None


@dataclass(frozen=True, kw_only=True)
class DebiasSearch:
    """Which weight makes a retriever indifferent to the source, and what that costs.

    Parameters
    ----------
    target : float
        Relative Δ aimed at, in percent.
    relative_margin : float
    level : float
        Of the non-inferiority tests.
    n_seeds : int
    points : tuple of DebiasPoint
        By weight, measured on the queries that are reported.
    selection : tuple of DebiasPoint
        By weight, measured on the queries used for choosing; equal to ``points`` without a split.
    split : bool
        Whether choosing and reporting used different queries.
    selected : float or None
        Admitted weight with the smallest |Relative Δ − target|; None where no weight above 0 was
        admitted.
    chosen : float or None
        ``selected`` where the reported queries confirm it.
    chosen_relative_delta : Interval or None
        Of ``selected``, at a level that allows for the choice.
    zero_crossing : Interval or None
        Weight at which the interpolated Relative Δ meets the target.
    refusal : str or None
        Why nothing was chosen.
    assumptions, notes : tuple of str
    """

    target: float
    relative_margin: float
    level: float
    n_seeds: int
    points: tuple[DebiasPoint, ...]
    selection: tuple[DebiasPoint, ...]
    split: bool
    selected: float | None
    chosen: float | None
    chosen_relative_delta: Interval | None
    zero_crossing: Interval | None
    refusal: str | None = None
    assumptions: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def point(self, weight: float) -> DebiasPoint:
        """Return the reported point of one weight."""
        for point in self.points:
            if point.weight == weight:
                return point
        raise DataError(
            f"no weight {weight!r} was tried; there are {[p.weight for p in self.points]}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return dict(to_plain(self))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> DebiasSearch:
        """Read what :meth:`to_dict` wrote."""
        return from_plain(cls, data)
