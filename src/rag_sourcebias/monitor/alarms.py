"""Alarms of one set of labels: against the baseline, and of change."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rag_sourcebias.monitor.sequential.betting import BettingTest
from rag_sourcebias.monitor.sequential.null import NullRange
from rag_sourcebias.monitor.sequential.reference import WINDOW_PART
from rag_sourcebias.monitor.sequential.restarting import RestartingDetector
from rag_sourcebias.types.arrays import FloatArray

__all__ = ["AlarmRules", "Raised"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Raised:
    """An alarm, before it is told.

    Parameters
    ----------
    rule : {"baseline", "change"}
    column : int
        Among those tested.
    row : int
        Of the batch.
    n : int
        Number of the observation.
    evidence : float
    level : float or None
        Mean share that the change left, where it was learnt after an earlier change.
    """

    rule: str
    column: int
    row: int
    n: int
    evidence: float
    level: float | None = None


class AlarmRules:
    """Evidence of every tested column against its baseline, and changes of its level.

    With T columns (groups × measures) each is tested at 1 − α/T: the probability of any alarm
    of the rule "baseline" is at most α over all time (union bound). Changes are looked for at T
    times the wanted run length, see
    :class:`~rag_sourcebias.monitor.sequential.restarting.RestartingDetector`; intervals of new
    levels may use up the same part of α as those of reference windows.

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
    change_window : int
        Observations from which a new level is learnt after a change.
    """

    def __init__(
        self,
        *,
        columns: int,
        null: NullRange | None,
        confidence_level: float,
        change_run_length: float | None,
        change_window: int,
    ) -> None:
        self.test = BettingTest(null, groups=columns, confidence_level=confidence_level)
        self.change: RestartingDetector | None = None
        if change_run_length is not None:
            self.change = RestartingDetector(
                null,
                groups=columns,
                run_length=change_run_length * columns,
                window=change_window,
                window_error=WINDOW_PART * (1 - confidence_level) * columns,
            )

    def update(self, values: FloatArray, null: FloatArray | None) -> list[Raised]:
        """Take observations of shape (n, T), n at least 1; return the alarms by row."""
        test, before = self.test, self.test.alarms
        log_e = test.update_many(values, null=null)
        first = test.n - len(values) + 1
        raised: list[Raised] = []
        for column in np.flatnonzero(test.alarms & ~before).tolist():
            n = int(test.alarm_at[column])
            evidence = float(log_e[n - first, column])
            raised.append(
                Raised(rule="baseline", column=column, row=n - first, n=n, evidence=evidence)
            )
        for row, column, statistic, level in (
            [] if self.change is None else self.change.update_many(values, null=null)
        ):
            raised.append(
                Raised(
                    rule="change",
                    column=column,
                    row=row,
                    n=first + row,
                    evidence=math.log(statistic),
                    level=level,
                )
            )
        return sorted(raised, key=lambda found: (found.row, found.rule, found.column))

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
        rules.change = None if change is None else RestartingDetector.from_dict(change)
        return rules
