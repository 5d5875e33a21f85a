"""Events of one key while they are being collected, and what becomes of them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from rag_sourcebias.types.arrays import FloatArray

__all__ = ["Bucket", "Observation"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Observation:
    """Average of the events of one key.

    Parameters
    ----------
    key : hashable
    values : ndarray of shape (groups,)
    null : ndarray of shape (groups,) or None
        Average baseline, when all of the events brought one.
    n_events : int
    """

    key: Hashable
    values: FloatArray
    null: FloatArray | None
    n_events: int


@dataclass(slots=True)
class Bucket:
    """Sums of the events of one key.

    Parameters
    ----------
    opened : float
        Time of the first event, in seconds.
    n : int
    values : list of float
    null : list of float or None
        None as soon as one event brought no baseline.
    """

    opened: float
    n: int
    values: list[float]
    null: list[float] | None

    def add(self, values: Sequence[float], null: Sequence[float] | None) -> None:
        """Add one event."""
        self.n += 1
        self.values = [a + b for a, b in zip(self.values, values, strict=True)]
        if self.null is not None and null is not None:
            self.null = [a + b for a, b in zip(self.null, null, strict=True)]
        else:
            self.null = None

    def observation(self, key: Hashable) -> Observation:
        """Return the average."""
        # A mean of numbers in [0, 1] can leave it by a rounding error.
        mean = np.clip(np.array(self.values) / self.n, 0, 1)
        base = None if self.null is None else np.clip(np.array(self.null) / self.n, 0, 1)
        return Observation(key=key, values=mean, null=base, n_events=self.n)
