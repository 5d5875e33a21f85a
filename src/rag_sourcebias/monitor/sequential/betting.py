r"""Means of values in [0, 1] against baselines that may differ by observation: betting.

Waudby-Smith & Ramdas (2024, JRSS-B 86:1): a capital of 1 is staked against the null, and
K_n = Π (1 + λ_i (x_i − m_i)) is an e-process when each λ_i is chosen before x_i is seen. Here the
stake on a mean above m is λ_i = c/m_i, below it −c/(1 − m_i), and the capital is split evenly over
fixed fractions c and both directions (their hedged capital, mixed over bets), so it grows nearly
as fast as with the best fraction known beforehand. The baseline m_i of an observation, such as the
share in the candidate pool of the same query, must be known without looking at x_i. With
a range of baselines bets above are laid against its upper, bets below against its lower end.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError
from rag_sourcebias.monitor.sequential.beta_mixture import Side, check_side
from rag_sourcebias.monitor.sequential.null import NullMean, as_range
from rag_sourcebias.monitor.sequential.process import SequentialTest
from rag_sourcebias.monitor.sequential.rows import as_rows, log_mean_exp
from rag_sourcebias.types.arrays import FloatArray

__all__ = ["FRACTIONS", "BettingTest", "log_payoffs"]

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


class BettingTest(SequentialTest):
    """Do values in [0, 1] have the means of their baselines? Each may have its own.

    Parameters
    ----------
    null : float, array_like of shape (groups,), NullRange or None
        Baseline; None when each observation brings its own to ``update``.
    groups : int
    side : {"two-sided", "greater", "less"}
    confidence_level : float

    Examples
    --------
    >>> test = BettingTest()
    >>> bool(test.update(0.9, null=0.4)[0])
    False
    """

    kind = "betting"
    _capital: FloatArray

    def __init__(
        self,
        null: NullMean | None = None,
        *,
        groups: int = 1,
        side: Side = "two-sided",
        confidence_level: float = 0.95,
    ) -> None:
        check_side(side)
        self.side: Side = side
        self.null = None if null is None else as_range(null)
        super().__init__(groups=groups, confidence_level=confidence_level)
        if self.null is not None:
            self.null.to((groups,))

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

    def _advance(self, rows: FloatArray) -> FloatArray:
        return self.update_many(rows)

    def _clear(self) -> None:
        sides = 2 if self.side == "two-sided" else 1
        self._capital = np.zeros((self.groups, sides * len(FRACTIONS)))

    def _state(self) -> dict[str, Any]:
        return {"_capital": self._capital}

    def _settings(self) -> dict[str, Any]:
        null = None if self.null is None else self.null.to_plain()
        return {"null": null, "groups": self.groups, "side": self.side}
