"""What all forms of prediction-powered inference share."""

from __future__ import annotations

import numpy.typing as npt

from rag_sourcebias.errors import DataError, InsufficientDataError
from rag_sourcebias.intervals.values import as_values, judge_correlation
from rag_sourcebias.types.arrays import FloatArray
from rag_sourcebias.types.intervals import Interval

__all__ = ["DISTINCT", "RANDOM", "ppi_result", "ppi_samples"]

DISTINCT = "the unlabelled items are other items from the same distribution"
RANDOM = "the labelled items are drawn at random from the judged pool"


def ppi_samples(
    y: npt.ArrayLike, yhat: npt.ArrayLike, pool: npt.ArrayLike
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Check the three samples PPI takes."""
    human, judge, others = as_values("y", y), as_values("yhat", yhat), as_values("pool", pool)
    if len(human) != len(judge):
        raise DataError(f"{len(human)} human values and {len(judge)} judge values of them")
    for name, size in (("labelled", len(human)), ("judged", len(others))):
        if size < 2:
            raise InsufficientDataError(
                f"{size} {name} item(s): PPI needs at least 2", n=size, n_needed=2
            )
    return human, judge, others


def ppi_result(
    estimate: float,
    half: float,
    *,
    confidence_level: float,
    method: str,
    target: str,
    human: FloatArray,
    judge: FloatArray,
    n_pool: int,
    assumptions: tuple[str, ...],
    notes: tuple[str, ...] = (),
) -> Interval:
    """Build the interval around an estimate."""
    return Interval(
        estimate=estimate,
        lower=estimate - half,
        upper=estimate + half,
        confidence_level=confidence_level,
        method=method,
        target=target,
        n_labeled=len(human),
        n_unlabeled=n_pool,
        assumptions=assumptions,
        correlation=judge_correlation(human, judge),
        notes=notes,
    )
