"""What an audit of a judge says in words."""

from __future__ import annotations

from rag_sourcebias.intervals.scale_checks import is_constant
from rag_sourcebias.types.arrays import FloatArray
from rag_sourcebias.types.intervals import Interval
from rag_sourcebias.types.judge_bias import BiasDifference

__all__ = ["verdict_notes"]


def verdict_notes(
    y: FloatArray,
    f: FloatArray,
    pearson: Interval | None,
    differences: tuple[BiasDifference, ...],
    *,
    useful_from: float,
    missing: int,
    level: float,
) -> list[str]:
    """Return the notes a reader needs before trusting the judge."""
    notes = []
    if is_constant(f):
        notes.append(
            f"the judge is useless: it gives {f[0]:g} to every labelled item; use labels alone"
        )
    elif is_constant(y):
        notes.append(
            f"every human label is {y[0]:g}: nothing can be said about how the judge orders items"
        )
    elif pearson is not None and abs(pearson.estimate) <= useful_from:
        notes.append(
            f"the judge is useless: |r| = {abs(pearson.estimate):.3f} is no more than 1/√(n − 2) = "
            f"{useful_from:.3f}; use labels alone"
        )
    elif pearson is not None and not pearson.excludes(0.0):
        notes.append(
            f"it is not certain that the judge orders items at all: the interval of r, "
            f"[{pearson.lower:.3f}, {pearson.upper:.3f}], holds 0"
        )
    elif pearson is not None and pearson.estimate < 0:
        notes.append(
            f"the judge orders items the wrong way round (r = {pearson.estimate:.2f}); check the "
            "direction of its scale"
        )
    if differences and differences[0].p_adjusted < 1 - level:
        first = differences[0]
        notes.append(
            f"the judge is not equally biased to every group: {first.group} against {first.other} "
            f"{first.difference.estimate:+.3g} (adjusted p = {first.p_adjusted:.2g}); estimate the "
            "correction per group"
        )
    if missing:
        notes.append(
            f"{missing} of {len(y) + missing} labelled items have no judge value; they are left "
            "out here, and they are rarely missing at random"
        )
    return notes
