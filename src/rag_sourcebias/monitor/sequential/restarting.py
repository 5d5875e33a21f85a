r"""Changes again and again: after an alarm the level is learnt anew.

A detector that goes on with its old baseline after a lasting change raises the same alarm again
and again. Here a group that raised one takes a window of new observations, from which an interval
for its new mean is made, missing it with probability ε/groups at most. From then on the detector
watches for departures from that interval, as from a baseline. So a lasting change is one alarm,
and going back is another; between two alarms of a group there are more than ``window``
observations, and what happens within a window is part of the level that is learnt.

Guarantee. Threshold A/(1 − ε) at a wanted run length A of a group. When the mean stays as it is
after an alarm, observations after the window know nothing of the errors of the interval; if the
interval holds the mean they are A/(1 − ε) on average up to the next alarm, or more (see
:mod:`~rag_sourcebias.monitor.sequential.change`), so they are A or more over both cases. False
alarms of a group are A observations apart on average in the long run, or more; of any of g groups
A/g. The first one, against a known baseline, comes after A/g or later on average.

Where each observation x brought its own baseline m, the new level is that of the difference: what
is watched is (x − m + 1)/2, in [0, 1], whose mean must stay the same. That of x may move with m.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError
from rag_sourcebias.monitor.sequential.change import ChangeDetector
from rag_sourcebias.monitor.sequential.null import NullMean, NullRange, as_range
from rag_sourcebias.monitor.sequential.reference import window_interval
from rag_sourcebias.monitor.sequential.rows import as_rows
from rag_sourcebias.monitor.sequential.state import read_state, rebuild, restore, write_state
from rag_sourcebias.types.arrays import FloatArray

__all__ = ["Change", "RestartingDetector"]

_POINTS = 401


class Change(NamedTuple):
    """An alarm: row of the batch, group, statistic, mean of the window before (None: baseline)."""

    row: int
    group: int
    statistic: float
    level: float | None


class RestartingDetector:
    """Raise an alarm soon after the mean of a group moves, then learn where it is now.

    Parameters
    ----------
    null : NullMean or None
        Baseline before the first alarm; None when each observation brings its own.
    groups : int
    run_length : float
        Observations between false alarms of one group on average, at least; greater than 1.
    window : int
        Observations from which a new level is learnt, 2 to 100,000. Longer ones know it better,
        so that smaller changes are seen afterwards: 1,000 of a share near .5 leave ± .05.
    window_error : float
        ε, strictly between 0 and 1.

    Attributes
    ----------
    n_alarms : ndarray of int, shape (groups,)
    """

    kind = "restarting-change"

    def __init__(
        self,
        null: NullMean | None = None,
        *,
        groups: int = 1,
        run_length: float = 10_000.0,
        window: int = 1_000,
        window_error: float = 0.01,
    ) -> None:
        if not 2 <= window <= 100_000:
            raise DataError(f"a window of changes has 2 to 100000 observations, got {window}")
        if not 0 < window_error < 1:
            raise DataError(f"window_error {window_error!r} is outside (0, 1)")
        self.null = None if null is None else as_range(null)
        if self.null is not None:
            self.null.to((groups,))
        self.groups, self.run_length = groups, float(run_length)
        self.window, self.window_error = window, window_error
        # e-CUSUM: a group in which nothing happens never raises an alarm there
        self._detector = ChangeDetector(
            groups=groups, run_length=run_length / (1 - window_error), method="cusum"
        )
        self._lower, self._upper = np.zeros(groups), np.ones(groups)
        self._level = np.zeros(groups)
        # What is watched, of groups that learn, and the sums of their observations themselves.
        self._windows: dict[int, array[float]] = {}
        self._sum = np.zeros(groups)

    @property
    def n_alarms(self) -> npt.NDArray[np.int64]:
        """Alarms so far."""
        return self._detector.n_alarms

    def update_many(
        self, values: npt.ArrayLike, *, null: npt.ArrayLike | None = None
    ) -> list[Change]:
        """Add observations, shape (n, groups), in order; return the alarms.

        Raises
        ------
        DataError
            If a value or baseline is not in [0, 1], or baselines are missing or superfluous.
        """
        rows = as_rows(values, self.groups)
        known = self.null if self.null is not None else null
        if known is None or (self.null is not None and null is not None):
            raise DataError("pass null= with the observations if, and only if, there is no other")
        lower, upper = as_range(known).to(rows.shape)
        found: list[Change] = []
        start = 0
        while start < len(rows):
            missing = [self.window - len(taken) for taken in self._windows.values()]
            part = slice(start, start + min([len(rows) - start, *missing]))
            start += self._take(rows[part], lower[part], upper[part], start, found)
        return found

    def _take(
        self, rows: FloatArray, low: FloatArray, high: FloatArray, start: int, found: list[Change]
    ) -> int:
        """Take observations until something happens; return how many those were."""
        moved = self.n_alarms > 0
        watched = np.where(moved, (rows - low + 1) / 2, rows) if self.null is None else rows
        # While a group learns its range is [0, 1], against which there is no evidence.
        ends = NullRange(np.where(moved, self._lower, low), np.where(moved, self._upper, high))
        path = self._detector.until_alarm(watched, null=ends)
        n = len(path)
        for group, taken in list(self._windows.items()):
            taken.extend(watched[:n, group].tolist())
            for value in rows[:n, group].tolist():  # one by one: parts change nothing
                self._sum[group] += value
            if len(taken) == self.window:
                self._restart(group)
        for group in np.flatnonzero(path[-1] >= self._detector.run_length).tolist():
            level = float(self._level[group]) if moved[group] else None
            found.append(Change(start + n - 1, group, float(path[-1, group]), level))
            self._windows[group], self._sum[group] = array("d"), 0.0
            self._lower[group], self._upper[group] = 0.0, 1.0
        return n

    def _restart(self, group: int) -> None:
        taken = np.array(self._windows.pop(group))
        level = 1 - self.window_error / self.groups
        ends = window_interval(taken, level, points=_POINTS)
        self._lower[group], self._upper[group] = ends
        self._level[group] = self._sum[group] / self.window

    def to_dict(self) -> dict[str, Any]:
        """Return settings and state as plain JSON values."""
        settings = {
            "null": None if self.null is None else self.null.to_plain(),
            "groups": self.groups,
            "run_length": self.run_length,
            "window": self.window,
            "window_error": self.window_error,
        }
        data = write_state(self.kind, settings, self._state())
        data["state"]["detector"] = self._detector.to_dict()
        data["state"]["windows"] = [
            [group, taken.tolist()] for group, taken in self._windows.items()
        ]
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> RestartingDetector:
        """Go on from what :meth:`to_dict` returned; errors as of the tests."""
        settings, state = read_state(data, cls.kind)
        made = rebuild(cls, settings)
        restore(made, made._state(), state)
        made._detector = ChangeDetector.from_dict(state.get("detector", {}))
        if made._detector.groups != made.groups:
            raise DataError("the stored detector does not fit the groups")
        try:
            for group, taken in state["windows"]:
                if not (0 <= group < made.groups and len(taken) < made.window):
                    raise DataError(f"stored window of group {group!r} does not fit")
                made._windows[group] = array("d", as_rows(taken, 1)[:, 0].tolist())
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, DataError):
                raise
            raise DataError(f"stored windows of a detector: {error!r:.80}") from None
        return made

    def _state(self) -> dict[str, Any]:
        ends = {"_lower": self._lower, "_upper": self._upper}
        return ends | {"_level": self._level, "_sum": self._sum}
