r"""Confidence sequence of Relative Δ, which is a ratio of two means, by betting.

With scores H, L in [0, 1] of the two sources, Relative Δ is 200·(E[H] − E[L])/(E[H] + E[L]), and
m = E[H]/(E[H] + E[L]) = ½ + Δ/400 is the human share of both. Queries are drawn independently, so
for the true m the numbers

    X_m = (1 − m)·H + m·(1 − L),  in [0, 1],  have the mean m,

because (1 − m)·E[H] = m·E[L]. Each candidate m of a grid is therefore tested by betting
(:mod:`~rag_sourcebias.monitor.sequential.betting`; Waudby-Smith & Ramdas 2024): no approximation,
and valid at all rounds at once by Ville's inequality. X_m − m = (1 − m)·H − m·L: the capital of
bets above m falls in m, that of bets below rises, so the candidates that stand are an interval;
its ends are candidates that fell, hence the grid makes it wider, never narrower.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError
from rag_sourcebias.inference.quantiles import check_level
from rag_sourcebias.measures.source import relative_delta
from rag_sourcebias.monitor.sequential.betting import BettingTest
from rag_sourcebias.monitor.sequential.change import ChangeDetector
from rag_sourcebias.monitor.sequential.state import read_state, rebuild, restore, write_state
from rag_sourcebias.types.arrays import FloatArray

__all__ = ["RelativeDeltaSequence", "observations"]


def observations(scores: FloatArray, shares: FloatArray) -> FloatArray:
    """Return X_m for scores of shape (n, 2) and shares of shape (points,): (n, points)."""
    found = (1 - shares) * scores[:, :1] + shares * (1 - scores[:, 1:])
    return np.clip(found, 0.0, 1.0)


class RelativeDeltaSequence:
    """Relative Δ of rounds so far, its bounds, and whether it left the reference or changed.

    The bounds are those of this moment, not the narrowest so far: the latter are empty once a
    retriever has changed for good, while these always hold the estimate.

    Parameters
    ----------
    reference : float
        In percent, strictly between −200 and 200.
    confidence_level : float
    points : int
        Candidates, evenly spread over [−200, 200]; 401 are one percent point apart.
    change_run_length : float
        Queries between false alarms of change, at least on average.

    Attributes
    ----------
    n : int
        Queries.
    total : ndarray of shape (2,)
        Sums of the scores.
    left_at : int
        Queries up to the first round after which the bounds did not hold the reference; else 0.
    changed_at : int
        Number of the query at which a change from the reference was seen first; else 0.
    """

    kind = "relative-delta"

    def __init__(
        self,
        *,
        reference: float = 0.0,
        confidence_level: float = 0.95,
        points: int = 401,
        change_run_length: float = 10_000.0,
    ) -> None:
        check_level(confidence_level)
        if not -200 < reference < 200:
            raise DataError(f"reference {reference!r} is outside (-200, 200); it is in percent")
        if points < 3:
            raise DataError(f"points must be at least 3, got {points}")
        self.reference, self.confidence_level = float(reference), confidence_level
        self.points, self.change_run_length = points, change_run_length
        share = 0.5 + self.reference / 400
        self.shares = np.unique(np.append(np.linspace(0.0, 1.0, points), share))
        self._at = int(np.searchsorted(self.shares, share))
        groups, level = len(self.shares), 1 - (1 - confidence_level) / 2
        self._above = BettingTest(
            self.shares, groups=groups, side="greater", confidence_level=level
        )
        self._below = BettingTest(self.shares, groups=groups, side="less", confidence_level=level)
        self._change = ChangeDetector(share, run_length=change_run_length)
        self.n, self.left_at, self.changed_at = 0, 0, 0
        self.total: FloatArray = np.zeros(2)

    @property
    def estimate(self) -> float | None:
        """Relative Δ so far, in percent; None before either source scored."""
        return relative_delta(*self.total.tolist())

    @property
    def evidence(self) -> float:
        """Logarithm of the e-value against the reference: the mean of both directions."""
        both = np.logaddexp(self._above.log_e[self._at], self._below.log_e[self._at])
        return float(both) - math.log(2)

    @property
    def change_evidence(self) -> float:
        """Logarithm of the change statistic; of its alarm level from the alarm on."""
        level = self.change_run_length if self.changed_at else float(self._change.statistic[0])
        return math.log(level) if level > 0 else 0.0

    def update(self, scores: npt.ArrayLike) -> None:
        """Add a round: scores of human and LLM documents, shape (n, 2), in [0, 1].

        Raises
        ------
        DataError
            If a score is not in [0, 1]; nothing is added then.
        """
        rows = np.asarray(scores, np.float64).reshape(-1, 2)
        if not ((rows >= 0) & (rows <= 1)).all():
            raise DataError("scores must be in [0, 1]")
        if not len(rows):
            return
        values = observations(rows, self.shares)
        self._above.update_many(values)
        self._below.update_many(values)
        moved = self._change.update_many(values[:, [self._at]])[:, 0] >= self.change_run_length
        if not self.changed_at and moved.any():
            self.changed_at = self.n + int(moved.argmax()) + 1
        self.n += len(rows)
        self.total = self.total + rows.sum(axis=0)
        here = max(self._above.log_e[self._at], self._below.log_e[self._at])
        if not self.left_at and here >= self._above.threshold:
            self.left_at = self.n

    def interval(self) -> tuple[float, float]:
        """Return the bounds at this moment, in percent."""
        threshold = self._above.threshold
        too_low = np.flatnonzero(self._above.log_e >= threshold)
        too_high = np.flatnonzero(self._below.log_e >= threshold)
        lower = float(self.shares[too_low[-1]]) if len(too_low) else 0.0
        upper = float(self.shares[too_high[0]]) if len(too_high) else 1.0
        return round(400 * lower - 200, 9), round(400 * upper - 200, 9)

    def to_dict(self) -> dict[str, Any]:
        """Return settings and state as plain JSON values."""
        parts = {
            "above": self._above.to_dict(),
            "below": self._below.to_dict(),
            "change": self._change.to_dict(),
        }
        return write_state(self.kind, self.settings, self._members()) | {"parts": parts}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> RelativeDeltaSequence:
        """Go on from what :meth:`to_dict` returned; errors as of the tests."""
        settings, state = read_state(data, cls.kind)
        found = rebuild(cls, settings)
        restore(found, found._members(), state)
        parts = data.get("parts")
        if not isinstance(parts, Mapping):
            raise DataError(f"the state of kind {cls.kind!r} needs 'parts'")
        above = BettingTest.from_dict(parts.get("above", {}))
        below = BettingTest.from_dict(parts.get("below", {}))
        if not above.groups == below.groups == len(found.shares):
            raise DataError(f"the state of kind {cls.kind!r} holds tests of another grid")
        found._above, found._below = above, below
        found._change = ChangeDetector.from_dict(parts.get("change", {}))
        return found

    @property
    def settings(self) -> dict[str, Any]:
        """Arguments of the constructor."""
        return {
            "reference": self.reference,
            "confidence_level": self.confidence_level,
            "points": self.points,
            "change_run_length": self.change_run_length,
        }

    def _members(self) -> dict[str, Any]:
        members = {"n": self.n, "left_at": self.left_at, "changed_at": self.changed_at}
        return members | {"total": self.total}
