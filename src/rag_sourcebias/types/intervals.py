"""One confidence interval with everything needed to defend it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from rag_sourcebias.errors import DataError
from rag_sourcebias.types.serial import from_plain, to_plain

__all__ = ["JUDGE_NOTES", "Interval", "JudgeFinding"]

JudgeFinding: TypeAlias = Literal["", "few", "constant", "weak"]
#: What a reader is told of a judge that was set aside, or that is of no use.
JUDGE_NOTES: Mapping[JudgeFinding, str] = {
    "few": "fewer than 10 labels: the judge was not used",
    "constant": "the judge is constant on the labelled items and was not used",
    "weak": "this judge is no better than none: labels alone are as good",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """An estimate with a two-sided confidence interval.

    Parameters
    ----------
    estimate, lower, upper : float
        In the unit of the estimated quantity; ``lower <= estimate <= upper``.
    confidence_level : float
        In (0, 1).
    method : str
        Name of the method, such as ``"delta"`` or ``"bootstrap"``.
    target : str
        What is estimated: ``"population"``, ``"pool"`` or ``"unlabeled"``.
    n_labeled : int
        Number of independent units (queries, labelled items) behind it.
    n_unlabeled : int
    assumptions : tuple of str
        What must hold for the stated confidence.
    correlation : float or None
        Between human and judge values on the labelled items, where a judge was used.
    notes : tuple of str
        What a reader should know before quoting the interval, such as that labels alone are
        better than this judge.
    judge : {"", "few", "constant", "weak"}
        What was found of the judge: set aside, as labels are few or it is constant on them; used,
        but its correlation is too weak to be of use. Else "".
    """

    estimate: float
    lower: float
    upper: float
    confidence_level: float
    method: str
    target: str = "population"
    n_labeled: int
    n_unlabeled: int = 0
    assumptions: tuple[str, ...] = ()
    correlation: float | None = None
    notes: tuple[str, ...] = ()
    judge: JudgeFinding = ""

    def __post_init__(self) -> None:
        if not 0.0 < self.confidence_level < 1.0:
            raise DataError(f"confidence_level {self.confidence_level!r} is outside (0, 1)")
        if any(math.isnan(v) for v in (self.estimate, self.lower, self.upper)):
            raise DataError(f"an interval may not hold NaN: {self}")
        if not self.lower <= self.estimate <= self.upper:
            raise DataError(
                f"interval [{self.lower}, {self.upper}] does not hold its estimate {self.estimate}"
            )

    @property
    def half_width(self) -> float:
        """Half the distance between the ends."""
        return (self.upper - self.lower) / 2

    def excludes(self, value: float) -> bool:
        """Whether ``value`` lies outside the interval."""
        return not self.lower <= value <= self.upper

    def __str__(self) -> str:
        facts = [f"{100 * self.confidence_level:.4g}%", self.method]
        if self.target != "population":
            facts.append(f"of the {self.target} items")
        facts.append(f"n = {self.n_labeled}")
        if self.n_unlabeled:
            facts[-1] += f" + {self.n_unlabeled} unlabelled"
        if self.correlation is not None:
            facts.append(f"judge r = {self.correlation:.2f}")
        facts += self.notes
        return f"{self.estimate:.4g} [{self.lower:.4g}, {self.upper:.4g}] ({', '.join(facts)})"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return dict(to_plain(self))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Interval:
        """Read what :meth:`to_dict` wrote."""
        return from_plain(cls, data)
