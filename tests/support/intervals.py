"""Intervals with ends of one's own, as if a method had found them."""

from __future__ import annotations

import numpy as np
from scipy.stats import norm

from rag_sourcebias.core.finding import Interval
from rag_sourcebias.infer.findings import InferCode


def between(
    lower: float,
    upper: float,
    *,
    estimate: float | None = None,
    n: int = 100,
    level: float = 0.95,
    method: InferCode = InferCode.LABELS_T,
) -> Interval:
    """Return an interval; its estimate is the middle unless given."""
    return Interval(
        estimate=(lower + upper) / 2 if estimate is None else estimate,
        lower=lower,
        upper=upper,
        confidence_level=level,
        method=method(),
        n_labeled=n,
    )


def around(estimate: float, half: float, *, n: int = 100) -> Interval:
    return between(estimate - half, estimate + half, estimate=estimate, n=n)


def normal(estimate: float, sd: float, *, limit: float = np.inf) -> Interval:
    """Return the 95 % interval of a normal estimate, cut at what is possible."""
    middle, low, high = np.clip(estimate + np.array([0, -1, 1]) * 1.96 * sd, -limit, limit).tolist()
    return between(low, high, estimate=middle, n=160, method=InferCode.DELTA)


def similar_p(rng: np.random.Generator, found: Interval) -> float:
    """Return a p-value like that of another test of the same: it may disagree at the border."""
    sd = max((found.upper - found.lower) / 3.92, 1e-9)
    return float(2 * norm.sf(abs(found.estimate) / sd * rng.uniform(0.85, 1.15)))
