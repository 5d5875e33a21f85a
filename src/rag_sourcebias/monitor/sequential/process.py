"""What every sequential test shares: rows in, evidence out, alarms by Ville's inequality.

An e-process is non-negative, starts at 1 and has expectation at most 1 at every stopping time under
the null. So the probability that it *ever* reaches 1/α is at most α (Ville 1939), however often
one looks. All values are natural logarithms.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError
from rag_sourcebias.inference.quantiles import check_level
from rag_sourcebias.monitor.sequential.rows import as_rows
from rag_sourcebias.monitor.sequential.state import read_state, rebuild, restore, write_state
from rag_sourcebias.types.arrays import FloatArray, IntArray

__all__ = ["SequentialTest"]


class SequentialTest(ABC):
    """Evidence against a null for each of several groups, in constant memory per group.

    Every group has an alarm level of its own: watching g groups, build the test at
    ``1 - (1 - confidence_level) / g``, or watch the average with ``AverageTest``.

    Parameters
    ----------
    groups : int
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
    """

    kind: ClassVar[str]
    bounded: ClassVar[bool] = True

    def __init__(self, *, groups: int, confidence_level: float) -> None:
        check_level(confidence_level)
        if groups < 1:
            raise DataError(f"groups must be at least 1, got {groups}")
        self.groups = groups
        self.confidence_level = confidence_level
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
        self._clear()

    def update(self, values: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """Add one observation of every group (a number, or shape (groups,)); return ``alarms``."""
        self.update_many(np.reshape(np.asarray(values, np.float64), (1, -1)))
        return self.alarms

    def update_many(self, values: npt.ArrayLike) -> FloatArray:
        """Add observations, shape (n, groups) or (n,) for one group, in order.

        Returns
        -------
        ndarray of shape (n, groups)
            Evidence after each of them, the same as from single updates.

        Raises
        ------
        DataError
            If the shape does not fit or a value is not allowed; nothing is added then.
        """
        rows = as_rows(values, self.groups, bounded=self.bounded)
        return self._note(self._advance(rows)) if len(rows) else rows

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
        settings = {"confidence_level": self.confidence_level, **self._settings()}
        return write_state(self.kind, settings, self._shared() | self._state())

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
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
        restore(test, test._shared() | test._state(), state)
        return test

    def _shared(self) -> dict[str, Any]:
        return {"n": self.n, "log_e": self.log_e, "peak": self.peak, "alarm_at": self.alarm_at}

    @abstractmethod
    def _advance(self, rows: FloatArray) -> FloatArray:
        """Take rows of shape (n, groups), n at least 1, into the state; return the evidence."""

    @abstractmethod
    def _clear(self) -> None:
        """Set the members named in ``_state`` to those of no observation."""

    @abstractmethod
    def _state(self) -> dict[str, Any]:
        """Members that change, by name."""

    @abstractmethod
    def _settings(self) -> dict[str, Any]:
        """Arguments of the constructor beside the level, as plain values."""
