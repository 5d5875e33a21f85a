"""Alarms of one set of labels: against the baseline, and of change."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_sourcebias.monitor.sequential.betting import BettingTest
from rag_sourcebias.monitor.sequential.change import ChangeDetector
from rag_sourcebias.monitor.sequential.null import NullRange

__all__ = ["AlarmRules", "Raised"]

FloatArray = npt.NDArray[np.float64]
Raised = tuple[str, int, int, int, float]
"""Rule, column among those tested, row of the batch, number of the observation, evidence."""


class AlarmRules:
    """Evidence of every tested column against its baseline.

    With T columns (groups × measures) each is tested at 1 − α/T: the probability of any alarm
    of the rule "baseline" is at most α over all time (union bound). Change detectors run at T
    times the wanted run length: the sum of their statistics less T·n is a supermartingale, so
    the first false alarm of any of them comes after that many observations on average, or later.
    e-CUSUM, because a column in which nothing happens never raises an alarm there.

    Parameters
    ----------
    columns : int
        T.
    null : NullRange or None
        Baseline of each column; None when every observation brings its own.
    confidence_level : float
        Of one column.
    change_run_length : float or None
        Observations between false alarms of change on average; None watches no change.
    """

    def __init__(
        self,
        *,
        columns: int,
        null: NullRange | None,
        confidence_level: float,
        change_run_length: float | None,
    ) -> None:
        self.test = BettingTest(null, groups=columns, confidence_level=confidence_level)
        self.change: ChangeDetector | None = None
        if change_run_length is not None:
            run_length = change_run_length * columns
            self.change = ChangeDetector(
                null, groups=columns, run_length=run_length, method="cusum"
            )

    def update(self, values: FloatArray, null: FloatArray | None) -> list[Raised]:
        """Take observations of shape (n, T), n at least 1; return the alarms by row."""
        test, before = self.test, self.test.alarms
        log_e = test.update_many(values, null=null)
        first = test.n - len(values) + 1
        raised: list[Raised] = []
        for column in np.flatnonzero(test.alarms & ~before).tolist():
            n = int(test.alarm_at[column])
            raised.append(("baseline", column, n - first, n, float(log_e[n - first, column])))
        if self.change is not None:
            path = self.change.update_many(values, null=null)
            for row, column in np.argwhere(path >= self.change.run_length).tolist():
                evidence = math.log(path[row, column])
                raised.append(("change", column, row, first + row, evidence))
        return sorted(raised, key=lambda found: (found[2], found[0], found[1]))

    def to_dict(self) -> dict[str, Any]:
        """Return settings and state as plain JSON values."""
        change = None if self.change is None else self.change.to_dict()
        return {"test": self.test.to_dict(), "change": change}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> AlarmRules:
        """Go on from what :meth:`to_dict` returned; errors as of the tests."""
        rules = object.__new__(cls)
        rules.test = BettingTest.from_dict(data["test"])
        change = data["change"]
        rules.change = None if change is None else ChangeDetector.from_dict(change)
        return rules
