"""Tests and confidence sequences by betting, of means of values in [0, 1]."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.arrays import FloatArray, IntArray
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.core.values import check_level
from rag_sourcebias.stats.sequential import (
    NullMean,
    Side,
    as_range,
    as_rows,
    check_side,
    log_mean_exp,
    read_state,
    rebuild,
    restore,
    write_state,
)

# Means of values in [0, 1] against baselines that may differ by observation: betting.
# Waudby-Smith & Ramdas (2024, JRSS-B 86:1): a capital of 1 is staked against the null, and K_n = Π
# (1 + λ_i (x_i − m_i)) is an e-process when each λ_i is chosen before x_i is seen. Here the stake
# on a mean above m is λ_i = c/m_i, below it −c/(1 − m_i), and the capital is split evenly over
# fixed fractions c and both directions (their hedged capital, mixed over bets), so it grows nearly
# as fast as with the best fraction known beforehand. The baseline m_i of an observation, such as
# the share in the candidate pool of the same query, must be known without looking at x_i. With a
# range of baselines bets above are laid against its upper, bets below against its lower end.


# 2 % … 90 % of the largest stake that cannot ruin; a factor of about 2 apart.
FRACTIONS = tuple(float(c) for c in np.geomspace(0.02, 0.9, 6))
_SMALLEST_SHARE = 1e-3  # below it stakes stay as they are there: payoffs remain finite at m = 0
_CHUNK = 1 << 18


def log_payoffs(
    rows: FloatArray, lower: FloatArray, upper: FloatArray, *, side: Side = "two-sided"
) -> FloatArray:
    """Logarithm of what each bet multiplies its capital with.

    Parameters
    ----------
    rows, lower, upper : ndarray of shape (n, groups)
        Observations in [0, 1], and the ends of their baselines.

    Returns
    -------
    ndarray of shape (n, groups, bets)
        Bets on larger means, then on smaller ones; only one of them when one-sided.
    """
    fractions = np.array(FRACTIONS)
    parts = []
    if side != "less":
        parts.append((rows - upper) / np.maximum(upper, _SMALLEST_SHARE))
    if side != "greater":
        parts.append((lower - rows) / np.maximum(1 - lower, _SMALLEST_SHARE))
    return np.asarray(np.concatenate([np.log1p(part[..., None] * fractions) for part in parts], -1))


class BettingTest:
    """Do values in [0, 1] have the means of their baselines? Each may have its own.

    Memory per group is constant. Evidence is non-negative, starts at 1 and has expectation at
    most 1 at every stopping time under the null, so the probability that it *ever* reaches 1/α is
    at most α (Ville 1939), however often one looks. All values are natural logarithms. Every
    group has an alarm level of its own: watching g groups, build the test at
    ``1 - (1 - confidence_level) / g``.

    Parameters
    ----------
    null : float, array_like of shape (groups,), NullRange or None
        Baseline; None when each observation brings its own to ``update``.
    groups : int
    side : {"two-sided", "greater", "less"}
    confidence_level : float
        An alarm under the null has at most the remaining probability, over all time.

    Attributes
    ----------
    n : int
        Observations so far, of each group.
    log_e : ndarray of shape (groups,)
        Evidence now.
    peak : ndarray of shape (groups,)
        Largest evidence so far, at least 0: exp(−peak) is an always valid p-value.
    alarm_at : ndarray of int, shape (groups,)
        Number of the observation that raised the alarm, 0 where there was none.

    Examples
    --------
    >>> test = BettingTest()
    >>> bool(test.update(0.9, null=0.4)[0])
    False
    """

    kind = "betting"

    def __init__(
        self,
        null: NullMean | None = None,
        *,
        groups: int = 1,
        side: Side = "two-sided",
        confidence_level: float = 0.95,
    ) -> None:
        check_side(side)
        check_level(confidence_level)
        if groups < 1:
            raise DataError(f"groups must be at least 1, got {groups}")
        self.side: Side = side
        self.groups, self.confidence_level = groups, confidence_level
        self.null = None if null is None else as_range(null)
        if self.null is not None:
            self.null.to((groups,))
        self.reset()

    @property
    def threshold(self) -> float:
        """Logarithm of the evidence that raises an alarm."""
        return -math.log1p(-self.confidence_level)

    @property
    def alarms(self) -> npt.NDArray[np.bool_]:
        """Groups whose alarm was raised."""
        return self.alarm_at > 0

    def reset(self) -> None:
        """Forget everything; the guarantee then starts anew."""
        self.n = 0
        self.log_e = np.zeros(self.groups)
        self.peak = np.zeros(self.groups)
        self.alarm_at: IntArray = np.zeros(self.groups, np.int64)
        sides = 2 if self.side == "two-sided" else 1
        self._capital = np.zeros((self.groups, sides * len(FRACTIONS)))

    def update(
        self, values: npt.ArrayLike, *, null: NullMean | None = None
    ) -> npt.NDArray[np.bool_]:
        """Add one observation of every group; return ``alarms``."""
        self.update_many(np.reshape(np.asarray(values, np.float64), (1, -1)), null=null)
        return self.alarms

    def update_many(self, values: npt.ArrayLike, *, null: NullMean | None = None) -> FloatArray:
        """Add observations, each against its own baseline.

        Parameters
        ----------
        values : array_like of shape (n, groups), or (n,) for one group
        null : NullMean
            One baseline, one per group, or of the shape of ``values``; left out, that of the test.

        Returns
        -------
        ndarray of shape (n, groups)
            Evidence after each of them.

        Raises
        ------
        DataError
            If a value or baseline is not in [0, 1], or no baseline is known.
        """
        rows = as_rows(values, self.groups)
        lower, upper = self._ends(null, np.shape(values), rows.shape)
        step = max(_CHUNK // self._capital.size, 1)
        parts = []
        for start in range(0, len(rows), step):
            part = slice(start, start + step)
            new = log_payoffs(rows[part], lower[part], upper[part], side=self.side)
            path = np.cumsum(np.concatenate([self._capital[None], new]), axis=0)[1:]
            self._capital = path[-1].copy()
            parts.append(self._note(log_mean_exp(path)))
        return np.concatenate(parts) if parts else rows

    def _ends(
        self, null: NullMean | None, given: tuple[int, ...], shape: tuple[int, ...]
    ) -> tuple[FloatArray, FloatArray]:
        found = self.null if null is None else as_range(null)
        if found is None:
            raise DataError("this test has no baseline: pass null= with the observations")
        if len(given) == 1:  # one baseline per value of the only group
            lower, upper = found.to(given)
            return lower.reshape(shape), upper.reshape(shape)
        return found.to(shape)

    def _note(self, log_e: FloatArray) -> FloatArray:
        new = (self.alarm_at == 0) & (log_e.max(axis=0) >= self.threshold)
        first = (log_e >= self.threshold).argmax(axis=0)
        self.alarm_at = np.where(new, self.n + first + 1, self.alarm_at)
        self.n += len(log_e)
        self.log_e = log_e[-1].copy()
        self.peak = np.maximum(self.peak, log_e.max(axis=0))
        return log_e

    def to_dict(self) -> dict[str, Any]:
        """Return settings and state as plain JSON values."""
        settings = {
            "confidence_level": self.confidence_level,
            "null": None if self.null is None else self.null.to_plain(),
            "groups": self.groups,
            "side": self.side,
        }
        return write_state(self.kind, settings, self._state())

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> BettingTest:
        """Go on from what :meth:`to_dict` returned.

        Raises
        ------
        DataError
            If it is not the state of such a test.
        UnsupportedVersionError
            If another release wrote it.
        """
        settings, state = read_state(data, cls.kind)
        test = rebuild(cls, settings)
        restore(test, test._state(), state)
        return test

    def _state(self) -> dict[str, Any]:
        members = {"n": self.n, "log_e": self.log_e, "peak": self.peak, "alarm_at": self.alarm_at}
        return members | {"_capital": self._capital}


# Confidence sequence for the mean of values in [0, 1], by betting against every candidate mean.
# The capital of bets above m falls in m, that of bets below m rises in m; so the largest grid
# point at which the former has reached 2/α bounds the mean from below at level 1 − α/2 over all
# time, the smallest at which the latter has bounds it from above (Waudby-Smith & Ramdas 2024, §4).
# Ends are grid points outside the set: the grid makes the interval wider, never narrower.


class BettingInterval:
    """Running bounds of a mean whose observations lie in [0, 1].

    Parameters
    ----------
    confidence_level : float
        Probability that the bounds hold the mean at all times together.
    points : int
        Candidate means, evenly spread over [0, 1].
    """

    def __init__(self, *, confidence_level: float = 0.95, points: int = 201) -> None:
        check_level(confidence_level)
        if points < 3:
            raise DataError(f"points must be at least 3, got {points}")
        self.confidence_level, self.points = confidence_level, points
        self._grid = np.linspace(0.0, 1.0, points)
        self._capital = np.zeros((points, 2 * len(FRACTIONS)))

    def update_many(self, values: npt.ArrayLike) -> None:
        """Add observations, shape (n,), in order.

        Raises
        ------
        DataError
            If a value is not in [0, 1].
        """
        rows = as_rows(values, 1)
        step = max(_CHUNK // self._capital.size, 1)
        for start in range(0, len(rows), step):
            part = rows[start : start + step]
            null = np.broadcast_to(self._grid, (len(part), self.points))
            new = log_payoffs(np.broadcast_to(part, null.shape), null, null)
            # Sums one by one, so a batch gives bit for bit what single updates do.
            self._capital = np.cumsum(np.concatenate([self._capital[None], new]), axis=0)[-1].copy()

    def interval(self) -> tuple[float, float]:
        """Return the bounds at this moment, in [0, 1]."""
        threshold = math.log(2) - math.log1p(-self.confidence_level)
        above, below = np.split(self._capital, 2, axis=1)
        too_low = np.flatnonzero(log_mean_exp(above) >= threshold)
        too_high = np.flatnonzero(log_mean_exp(below) >= threshold)
        lower = float(self._grid[too_low[-1]]) if len(too_low) else 0.0
        upper = float(self._grid[too_high[0]]) if len(too_high) else 1.0
        return lower, upper
