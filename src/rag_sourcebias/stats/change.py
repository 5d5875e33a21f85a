"""Changes again and again: after an alarm the level is learnt anew."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.arrays import FloatArray
from rag_sourcebias.core.errors import DataError, InsufficientDataError
from rag_sourcebias.core.values import check_level
from rag_sourcebias.stats.betting import FRACTIONS, BettingInterval, log_payoffs
from rag_sourcebias.stats.sequential import (
    NullMean,
    NullRange,
    Side,
    as_range,
    as_rows,
    check_side,
    read_state,
    rebuild,
    restore,
    write_state,
)

# Changes after a long quiet time: e-detectors.
# Shin, Ramdas & Rinaldo (arXiv:2203.03532; New England Journal of Statistics in Data Science 2).
# With payoffs L_n of a bet, of mean at most 1 before the change, one starts a new capital at every
# observation. Their sum M_n = (M_{n−1} + 1)·L_n is the e-SR detector, and with the largest one,
# M_n = max(M_{n−1}, 1)·L_n, it is e-CUSUM. M_n − n is a supermartingale, so raising an alarm when
# M_n ≥ A gives at least A observations on average between false alarms; an average of detectors
# over bets, or over groups, has the same property. Here the bets are those of
# :mod:`~rag_sourcebias.stats.betting`, so baselines may differ by observation.


_CHUNK = 1 << 18
_TRIED = 32  # rows whose payoffs are worked out before one of them raises an alarm


class ChangeDetector:
    """Raise an alarm soon after means leave their baselines, and start again.

    Parameters
    ----------
    null : NullMean or None
        Baseline; None when each observation brings its own.
    groups : int
    run_length : float
        Observations between false alarms on average, at least; greater than 1.
    method : {"sr", "cusum"}
        Sums of all starts (e-SR), or the best of them (e-CUSUM): never sooner, easier to explain.
    side : {"two-sided", "greater", "less"}
    joint : bool
        One alarm from the average over groups, instead of one for each.

    Attributes
    ----------
    n : int
    statistic : ndarray of shape (alarms watched,)
        Now; an alarm is raised at ``run_length``.
    n_alarms, last_alarm : ndarray of int
        Alarms so far, and the number of the observation of the last one, 0 without any.
    """

    kind = "change"

    def __init__(
        self,
        null: NullMean | None = None,
        *,
        groups: int = 1,
        run_length: float = 10_000.0,
        method: Literal["sr", "cusum"] = "sr",
        side: Side = "two-sided",
        joint: bool = False,
    ) -> None:
        check_side(side)
        if method not in ("sr", "cusum"):
            raise DataError(f"method {method!r} is neither 'sr' nor 'cusum'")
        if groups < 1 or not (np.isfinite(run_length) and run_length > 1):
            raise DataError(
                f"groups must be at least 1 and run_length above 1, got {groups} and {run_length}"
            )
        self.null = None if null is None else as_range(null)
        if self.null is not None:
            self.null.to((groups,))
        self.groups, self.run_length, self.method = groups, float(run_length), method
        self.side: Side = side
        self.joint = joint
        self.n = 0
        bets = len(FRACTIONS) * (2 if side == "two-sided" else 1)
        self._sums = np.zeros((groups, bets))
        self.n_alarms = np.zeros(1 if joint else groups, np.int64)
        self.last_alarm = np.zeros(1 if joint else groups, np.int64)

    @property
    def statistic(self) -> FloatArray:
        """Average over bets, and over groups when joint."""
        return self._average(self._sums)

    def update(
        self, values: npt.ArrayLike, *, null: NullMean | None = None
    ) -> npt.NDArray[np.bool_]:
        """Add one observation of every group; return where it raised an alarm."""
        rows = np.reshape(np.asarray(values, np.float64), (1, -1))
        raised: npt.NDArray[np.bool_] = self.update_many(rows, null=null)[0] >= self.run_length
        return raised

    def update_many(self, values: npt.ArrayLike, *, null: NullMean | None = None) -> FloatArray:
        """Add observations, shape (n, groups), in order.

        Returns
        -------
        ndarray of shape (n, alarms watched)
            The statistic after each, before starting again: an alarm where it reaches
            ``run_length``.

        Raises
        ------
        DataError
            If a value or baseline is not in [0, 1], or no baseline is known.
        """
        return self._run(values, null, stop=False)

    def until_alarm(self, values: npt.ArrayLike, *, null: NullMean | None = None) -> FloatArray:
        """Add observations as ``update_many`` does, none after the first that raises an alarm."""
        return self._run(values, null, stop=True)

    def _run(self, values: npt.ArrayLike, null: NullMean | None, *, stop: bool) -> FloatArray:
        rows = as_rows(values, self.groups)
        found = self.null if null is None else as_range(null)
        if found is None:
            raise DataError("this detector has no baseline: pass null= with the observations")
        lower, upper = found.to(rows.shape)
        path = np.empty((len(rows), len(self.n_alarms)))
        step = min(max(_CHUNK // self._sums.size, 1), _TRIED if stop else _CHUNK)
        for start in range(0, len(rows), step):
            part = slice(start, start + step)
            payoffs = np.exp(log_payoffs(rows[part], lower[part], upper[part], side=self.side))
            for row, payoff in enumerate(payoffs, start):
                path[row] = self._step(payoff)
                if stop and (path[row] >= self.run_length).any():
                    return path[: row + 1]
        return path

    def _step(self, payoff: FloatArray) -> FloatArray:
        before = self._sums + 1 if self.method == "sr" else np.maximum(self._sums, 1)
        self._sums = before * payoff
        self.n += 1
        statistic = self._average(self._sums)
        raised = statistic >= self.run_length
        if raised.any():
            self.n_alarms = self.n_alarms + raised
            self.last_alarm = np.where(raised, self.n, self.last_alarm)
            self._sums[np.broadcast_to(raised, self.groups)] = 0.0
        return statistic

    def _average(self, sums: FloatArray) -> FloatArray:
        each = sums.mean(axis=1)
        return np.asarray(each.mean(keepdims=True) if self.joint else each)

    def to_dict(self) -> dict[str, Any]:
        """Return settings and state as plain JSON values."""
        settings = {
            "null": None if self.null is None else self.null.to_plain(),
            "groups": self.groups,
            "run_length": self.run_length,
            "method": self.method,
            "side": self.side,
            "joint": self.joint,
        }
        return write_state(self.kind, settings, self._state())

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ChangeDetector:
        """Go on from what :meth:`to_dict` returned; errors as of the tests."""
        settings, state = read_state(data, cls.kind)
        found = rebuild(cls, settings)
        restore(found, found._state(), state)
        return found

    def _state(self) -> dict[str, Any]:
        members = {"n": self.n, "n_alarms": self.n_alarms, "last_alarm": self.last_alarm}
        return members | {"_sums": self._sums}


# A baseline from a frozen window of the past, with the error of that window.
# The window gives an interval that holds the true mean with probability 1 − αᵣ. Evidence against
# every mean inside it is an e-process when the interval holds, so watching at level 1 − αₛ gives a
# false alarm with probability at most αᵣ + αₛ over all time (union bound). By default αᵣ is a
# fifth of the whole: the interval is drawn once, while the stream is looked at for ever.


WINDOW_PART = 0.2


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReferenceWindow:
    """What a window of the past says about the means of its groups.

    Parameters
    ----------
    null : NullRange
        Baselines, shape (groups,), for a test of the stream.
    window_level, stream_level : float
        Levels of the interval of the window, for each group, and of the test of the stream.
    mean : ndarray of shape (groups,)
    n : int
    """

    null: NullRange
    window_level: float
    stream_level: float
    mean: FloatArray
    n: int


def reference_window(
    values: npt.ArrayLike,
    *,
    confidence_level: float = 0.95,
) -> ReferenceWindow:
    """Turn a window into baselines.

    Parameters
    ----------
    values : array_like of shape (n, groups) or (n,)
        Observations in [0, 1], at least 2; independent of those of the stream. Exact
        (Clopper & Pearson 1934) when all of a group are 0 or 1, by betting otherwise.
    confidence_level : float
        To be held by the window and the stream together, for each group.

    Raises
    ------
    InsufficientDataError
        If there are fewer than 2 observations.
    DataError
        If an argument is out of its range.
    """
    check_level(confidence_level)
    rows = np.asarray(values, np.float64)
    rows = as_rows(
        rows[:, None] if rows.ndim == 1 else rows, rows.shape[-1] if rows.ndim > 1 else 1
    )
    if len(rows) < 2:
        raise InsufficientDataError(
            f"a reference window needs at least 2 observations, there are {len(rows)}",
            n=len(rows),
            n_needed=2,
        )
    level = 1 - (1 - confidence_level) * WINDOW_PART
    ends = [window_interval(column, level) for column in rows.T]
    return ReferenceWindow(
        null=NullRange([low for low, _ in ends], [high for _, high in ends]),
        window_level=level,
        stream_level=1 - (1 - confidence_level) * (1 - WINDOW_PART),
        mean=rows.mean(axis=0),
        n=len(rows),
    )


def window_interval(column: FloatArray, level: float, *, points: int = 1001) -> tuple[float, float]:
    """Return an interval for the mean of observations in [0, 1], shape (n,), at this level.

    ``points`` are the candidates of an interval by betting: fewer are faster, and make it wider.
    """
    if not ((column == 0) | (column == 1)).all():
        betting = BettingInterval(confidence_level=level, points=points)
        betting.update_many(column)
        return betting.interval()
    from scipy.special import betaincinv

    n, ones, tail = len(column), float(column.sum()), (1 - level) / 2
    lower = float(betaincinv(ones, n - ones + 1, tail)) if ones > 0 else 0.0
    upper = float(betaincinv(ones + 1, n - ones, 1 - tail)) if ones < n else 1.0
    return lower, upper


# Changes again and again: after an alarm the level is learnt anew.
# A detector that goes on with its old baseline after a lasting change raises the same alarm again
# and again. Here a group that raised one takes a window of new observations, from which an
# interval for its new mean is made, missing it with probability ε/groups at most. From then on the
# detector watches for departures from that interval, as from a baseline. So a lasting change is
# one alarm, and going back is another; between two alarms of a group there are more than
# ``window`` observations, and what happens within a window is part of the level that is learnt.
# Guarantee. Threshold A/(1 − ε) at a wanted run length A of a group. When the mean stays as it is
# after an alarm, observations after the window know nothing of the errors of the interval; if the
# interval holds the mean they are A/(1 − ε) on average up to the next alarm, or more (see
# :mod:`~rag_sourcebias.stats.change`), so they are A or more over both cases. False alarms of a
# group are A observations apart on average in the long run, or more; of any of g groups A/g. The
# first one, against a known baseline, comes after A/g or later on average.
# Where each observation x brought its own baseline m, the new level is that of the difference:
# what is watched is (x − m + 1)/2, in [0, 1], whose mean must stay the same. That of x may move
# with m.


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
