r"""The whole composition of two or more groups at once: the Dirichlet-multinomial mixture.

For shares x (non-negative, Σx = 1) with conditional mean p, Π (q_k/p_k)^(x_k) ≤ Σ x_k q_k/p_k,
whose mean is 1 for every composition q. Mixing q over Dirichlet(a) gives an e-process

    e_n = B(a + Σx) / B(a) / Π p_k^(Σ x_k),   B(a) = Π Γ(a_k) / Γ(Σ a_k)

that is exact for one-hot x (top-1 sources) and holds for exposure shares as well; with two groups
it is the Beta mixture.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError
from rag_sourcebias.monitor.sequential.process import SequentialTest
from rag_sourcebias.monitor.sequential.rows import as_rows
from rag_sourcebias.types.arrays import FloatArray

__all__ = ["CompositionTest", "dirichlet_log_e"]

_SUM = 1e-9


def dirichlet_log_e(totals: npt.ArrayLike, null: npt.ArrayLike, a: npt.ArrayLike) -> FloatArray:
    """Logarithm of the Dirichlet-multinomial e-value.

    Parameters
    ----------
    totals : array_like of shape (..., groups)
        Sums of the shares.
    null, a : array_like of shape (groups,)
        Baseline composition, and parameters of the mixing distribution.

    Returns
    -------
    ndarray of shape (...,)
    """
    from scipy.special import gammaln, xlogy

    totals, a = np.asarray(totals, np.float64), np.asarray(a, np.float64)
    parts = gammaln(a + totals) - gammaln(a) - xlogy(totals, np.asarray(null, np.float64))
    whole = a.sum()
    return np.asarray(parts.sum(-1) - gammaln(whole + totals.sum(-1)) + gammaln(whole))


class CompositionTest(SequentialTest):
    """Is the composition still the baseline? One alarm for all groups.

    Parameters
    ----------
    null : array_like of shape (members,)
        Baseline shares of at least two groups, positive, with sum 1.
    strength : float
        Observations that the mixing distribution is worth.
    confidence_level : float
    """

    kind = "composition"
    totals: FloatArray

    def __init__(
        self, null: npt.ArrayLike, *, strength: float = 50.0, confidence_level: float = 0.95
    ) -> None:
        self.null = np.array(null, np.float64)
        if self.null.ndim != 1 or len(self.null) < 2:
            raise DataError(f"a composition needs the shares of at least 2 groups, got {null!r}")
        if not (self.null > 0).all() or abs(self.null.sum() - 1) > _SUM:
            raise DataError(f"baseline shares must be positive with sum 1, got {null!r}")
        if not (np.isfinite(strength) and strength > 0):
            raise DataError(f"strength must be a positive number, got {strength}")
        self.strength = float(strength)
        super().__init__(groups=1, confidence_level=confidence_level)

    def update_many(self, values: npt.ArrayLike) -> FloatArray:
        """Add compositions, shape (n, members), rows with sum 1.

        Returns
        -------
        ndarray of shape (n, 1)

        Raises
        ------
        DataError
            If a share is not in [0, 1] or a row has another sum.
        """
        rows = as_rows(values, len(self.null))
        sums = rows.sum(axis=1)
        if np.any(np.abs(sums - 1) > _SUM):
            bad = int(np.argmax(np.abs(sums - 1)))
            raise DataError(f"shares of observation {bad} have sum {sums[bad]:.9g}, not 1")
        return self._note(self._advance(rows)) if len(rows) else rows[:, :1]

    def _advance(self, rows: FloatArray) -> FloatArray:
        totals = np.cumsum(np.vstack([self.totals, rows]), axis=0)[1:]
        self.totals = totals[-1].copy()
        return dirichlet_log_e(totals, self.null, self.strength * self.null)[:, None]

    def _clear(self) -> None:
        self.totals = np.zeros(len(self.null))

    def _state(self) -> dict[str, Any]:
        return {"totals": self.totals}

    def _settings(self) -> dict[str, Any]:
        return {"null": self.null.tolist(), "strength": self.strength}
