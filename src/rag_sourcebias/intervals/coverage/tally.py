"""Counts of what a method did over simulated samples."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from rag_sourcebias.errors import CalibrationError, InsufficientDataError
from rag_sourcebias.types.intervals import Interval

__all__ = ["CoverageCell", "Tally"]

_EXACT = 1e-9  # an interval of a perfect judge has no width, but rounding


@dataclass(frozen=True, slots=True, kw_only=True)
class CoverageCell:
    """What one method did with samples of one size.

    Parameters
    ----------
    method : str
    n : int
        Labelled items (clusters, where given) in each sample.
    coverage : float
        Share of the intervals that hold the true value; 0 when none was returned.
    mean_width : float
        Mean distance between the ends.
    n_runs : int
        Samples drawn.
    failures : dict of str to int
        Why no interval was returned, and how often.
    """

    method: str
    n: int
    coverage: float
    mean_width: float
    n_runs: int
    failures: dict[str, int] = field(default_factory=dict)

    @property
    def n_failed(self) -> int:
        """Samples for which the method returned no interval."""
        return sum(self.failures.values())


class Tally:
    """Counts what a method did over simulated samples."""

    def __init__(self, method: str, n: int) -> None:
        self.method, self.n = method, n
        self.returned = self.covered = 0
        self.width = 0.0
        self.failures: Counter[str] = Counter()

    def add(self, lower: float, upper: float, truth: float) -> None:
        """Count one interval."""
        slack = _EXACT * max(1.0, abs(truth))
        self.returned += 1
        self.covered += bool(lower - slack <= truth <= upper + slack)
        self.width += upper - lower

    def attempt(self, work: Callable[[], Interval], truth: float) -> None:
        """Count the interval ``work`` returns, or why it returns none."""
        try:
            interval = work()
        except (InsufficientDataError, CalibrationError) as error:
            # numbers differ from sample to sample; the reason does not
            self.failures[re.sub(r"\d[\d.e+-]*", "#", str(error))] += 1
            return
        self.add(interval.lower, interval.upper, truth)

    def cell(self) -> CoverageCell:
        """Return what was counted."""
        share = max(self.returned, 1)
        return CoverageCell(
            method=self.method,
            n=self.n,
            coverage=self.covered / share,
            mean_width=self.width / share,
            n_runs=self.returned + self.failures.total(),
            failures=dict(self.failures),
        )
