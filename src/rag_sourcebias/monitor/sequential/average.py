"""One alarm for all groups: the average of e-processes is an e-process, however they depend."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError
from rag_sourcebias.monitor.sequential.process import SequentialTest
from rag_sourcebias.monitor.sequential.rows import log_mean_exp
from rag_sourcebias.types.arrays import FloatArray

__all__ = ["AverageTest"]


class AverageTest(SequentialTest):
    """Is anything wrong in any group? It costs ln(groups) of the evidence of the worst group.

    Parameters
    ----------
    members : int
        Groups of the test whose evidence is averaged.
    confidence_level : float
        Of the one alarm.

    Notes
    -----
    Its rows are the evidence that the ``update_many`` of another test returns, shape (n, groups);
    that test keeps its own alarms, one per group.
    """

    kind = "average"
    bounded = False

    def __init__(self, *, members: int, confidence_level: float = 0.95) -> None:
        if members < 1:
            raise DataError(f"members must be at least 1, got {members}")
        self.members = members
        super().__init__(groups=1, confidence_level=confidence_level)

    def update_many(self, values: npt.ArrayLike) -> FloatArray:
        """Add evidence, shape (n, members); return that of the average, shape (n, 1)."""
        rows = np.asarray(values, np.float64)
        if rows.ndim != 2 or rows.shape[1] != self.members or np.isnan(rows).any():
            raise DataError(
                f"expected evidence of shape (n, {self.members}) without NaN, found {rows.shape}"
            )
        return self._note(self._advance(rows)) if len(rows) else rows[:, :1]

    def _advance(self, rows: FloatArray) -> FloatArray:
        return log_mean_exp(rows)[:, None]

    def _clear(self) -> None:
        """Nothing is kept beside the shared members."""

    def _state(self) -> dict[str, Any]:
        return {}

    def _settings(self) -> dict[str, Any]:
        return {"members": self.members}
