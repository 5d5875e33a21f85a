"""How many items to label, with a judge and without, from a pilot of labelled items."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError, InsufficientDataError
from rag_sourcebias.inference.quantiles import check_level, normal_quantile
from rag_sourcebias.intervals.plan.item_curves import Curves, positive, smallest
from rag_sourcebias.intervals.plan.item_plan import ItemPlan
from rag_sourcebias.types.arrays import FloatArray

__all__ = ["plan_item_labels"]

MOST = 1 << 40  # more items than anyone will label
_FEWEST_ITEMS = 10


def plan_item_labels(
    y: npt.ArrayLike,
    yhat: npt.ArrayLike,
    n_unlabeled: int,
    *,
    half_width: float,
    target: Literal["population", "pool"] = "population",
    confidence_level: float = 0.95,
) -> ItemPlan:
    """How many items to label for a half-width of their mean, with a judge and without.

    From the pilot: e the residual of y regressed on yhat with slope b, M = pilot + unlabelled.
    With the judge Var(e)/n + b²·Var(yhat)/M (population) or Var(e)(1/n − 1/M) (pool), t(n − 2);
    without Var(y)/n or Var(y)(1/n − 1/M), t(n − 1). The judge often saves no more than 0–10 %
    of the labels: a correlation r saves about r² of them, and less where labels alone would soon
    exhaust the pool.

    Parameters
    ----------
    y, yhat : float arrays of shape (n,)
        Human and judge values of the pilot, 10 items or more, drawn at random.
    n_unlabeled : int
        Items with a judge value only; labels to come are drawn from them.
    half_width : float
        Wanted, in the unit of y.
    target : str
    confidence_level : float

    Returns
    -------
    ItemPlan

    Raises
    ------
    DataError
        If arrays differ in length or are not finite, or the half-width is not positive.
    InsufficientDataError
        If the pilot is too small or its human values are all alike, or the pool is too small for
        the half-width (with the number of items needed).
    """
    check_level(confidence_level)
    if target not in ("population", "pool"):
        raise DataError(f"target {target!r} is not one of population, pool")
    human, judge = _pilot_values(y, yhat)
    if n_unlabeled < 0:
        raise DataError(f"n_unlabeled {n_unlabeled} is negative")
    wanted = positive(half_width)
    n, spread = len(human), float(human.var(ddof=1))
    r = _pilot_correlation(human, judge)
    pool = n + int(n_unlabeled)
    curves = Curves(spread, n, pool, target, 0.5 + confidence_level / 2)
    without = smallest(curves.alone, wanted, 3, MOST) or MOST
    found = smallest(curves.with_judge(r), wanted, 3, pool)
    if found is None:
        raise InsufficientDataError(
            f"labelling all {pool} items gives ±{curves.with_judge(r)(pool):.3g}; "
            f"±{wanted:.3g} needs about {without} items",
            n=pool,
            n_needed=without,
        )
    low, high = _correlation_range(r, n)
    saved = [
        1 - (smallest(curves.with_judge(end), wanted, 3, pool) or without) / without
        for end in (low, high)
    ]
    return ItemPlan(
        n_judge=found,
        n_alone=without,
        half_width=wanted,
        saved_low=saved[0],
        saved_high=saved[1],
        correlation=r,
        target=target,
        confidence_level=confidence_level,
        n_pilot=n,
        assumptions=(
            f"the pilot of {n} items and the labels to come are random draws from the same items",
        ),
    )


def _pilot_values(y: npt.ArrayLike, yhat: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    human, judge = np.asarray(y, dtype=np.float64), np.asarray(yhat, dtype=np.float64)
    if human.ndim != 1 or human.shape != judge.shape:
        raise DataError(
            f"pilot of {human.shape} human and {judge.shape} judge values; expect pairs"
        )
    bad = np.flatnonzero(~(np.isfinite(human) & np.isfinite(judge)))
    if len(bad):
        raise DataError(
            f"{len(bad)} pilot pair(s) are not finite, first at position {int(bad[0])}: "
            f"({human[bad[0]]}, {judge[bad[0]]}); leave them out"
        )
    if len(human) < _FEWEST_ITEMS:
        raise InsufficientDataError(
            f"a pilot of {len(human)} pairs tells too little; {_FEWEST_ITEMS} are needed",
            n=len(human),
            n_needed=_FEWEST_ITEMS,
        )
    if float(np.ptp(human)) == 0.0:
        raise InsufficientDataError(
            f"all {len(human)} human values of the pilot are {human[0]:g}: their spread cannot be "
            "estimated; label more items",
            n=len(human),
        )
    return human, judge


def _pilot_correlation(human: FloatArray, judge: FloatArray) -> float:
    a, b = human - human.mean(), judge - judge.mean()
    if float(np.ptp(judge)) <= 1e-12 * max(1.0, float(np.abs(judge).max())):
        return 0.0
    return float(np.clip(a @ b / math.sqrt(float(a @ a) * float(b @ b)), -1.0, 1.0))


def _correlation_range(r: float, n: int) -> tuple[float, float]:
    """95 % interval for |r| (Fisher's z); the saving depends on r² alone."""
    if abs(r) >= 1:
        return 1.0, 1.0
    center, reach = math.atanh(abs(r)), normal_quantile(0.975) / math.sqrt(n - 3)
    return math.tanh(max(center - reach, 0.0)), math.tanh(center + reach)
