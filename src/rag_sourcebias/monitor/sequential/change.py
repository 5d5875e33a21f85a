r"""Changes after a long quiet time: e-detectors.

Shin, Ramdas & Rinaldo (arXiv:2203.03532; New England Journal of Statistics in Data Science 2).
With payoffs L_n of a bet, of mean at most 1 before the change, one starts a new capital at every
observation. Their sum M_n = (M_{n−1} + 1)·L_n is the e-SR detector, and with the largest one,
M_n = max(M_{n−1}, 1)·L_n, it is e-CUSUM. M_n − n is a supermartingale, so raising an alarm when
M_n ≥ A gives at least A observations on average between false alarms; an average of detectors
over bets, or over groups, has the same property. Here the bets are those of
:mod:`~rag_sourcebias.monitor.sequential.betting`, so baselines may differ by observation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError
from rag_sourcebias.monitor.sequential.beta_mixture import Side, check_side
from rag_sourcebias.monitor.sequential.betting import FRACTIONS, log_payoffs
from rag_sourcebias.monitor.sequential.null import NullMean, as_range
from rag_sourcebias.monitor.sequential.rows import as_rows
from rag_sourcebias.monitor.sequential.state import read_state, rebuild, restore, write_state
from rag_sourcebias.types.arrays import FloatArray

__all__ = ["ChangeDetector"]

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
