"""Skew and quality by debias weight or strength ([K] Fig. 8 and 9), and where skew vanishes."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from rag_sourcebias.core.data import FloatArray
from rag_sourcebias.core.errors import DataError, InsufficientDataError
from rag_sourcebias.core.finding import Interval
from rag_sourcebias.debias.data import (
    MIN_SEEDS,
    QUALITIES,
    DebiasConfig,
    DebiasPoint,
    DebiasScores,
    DebiasSearch,
)
from rag_sourcebias.infer.equivalence import CrossedMean
from rag_sourcebias.infer.findings import InferCode
from rag_sourcebias.infer.means import clustered_mean, relative_delta_interval


def debias_curve(
    scores: Mapping[float, Sequence[DebiasScores]],
    *,
    searched: str,
    data: str,
    config: DebiasConfig | None = None,
) -> DebiasSearch:
    """Return skew and quality by weight, with intervals for new queries and new seeds.

    Relative Δ is that of NDCG at ``config.skew_cutoff``, quality is NDCG at
    ``config.quality_cutoff``.

    Parameters
    ----------
    scores : mapping of float to sequence of DebiasScores
        By weight or strength: 0, the unchanged system, and at least one more. One item for each
        training seed, in one order; one alone for a method without seeds. The untrained system
        is repeated for every seed.
    searched, data : str
        What was searched over and on which data, as reports name them.
    config : DebiasConfig, optional

    Raises
    ------
    DataError
        If weight 0, a seed of a weight or a query of a system is missing.
    InsufficientDataError
        With two seeds, or too few queries for an interval of Relative Δ.
    """
    config = config or DebiasConfig()
    weights = sorted(scores)
    if len(weights) < 2 or weights[0] != 0:
        raise DataError(
            f"weights {weights} must hold 0, the unchanged system that the others are compared "
            "with, and at least one more"
        )
    n_seeds = len(scores[0.0])
    if any(len(of_weight) != n_seeds for of_weight in scores.values()):
        counts = [len(scores[weight]) for weight in weights]
        raise DataError(
            f"weights {weights} have {counts} systems; every weight needs the same seeds"
        )
    if 1 < n_seeds < MIN_SEEDS:
        raise InsufficientDataError(
            f"{n_seeds} seeds do not show how much results vary between trainings; train every "
            f"weight with at least {MIN_SEEDS} seeds",
            n=n_seeds,
            n_needed=MIN_SEEDS,
        )
    if len({found.query_ids for of_weight in scores.values() for found in of_weight}) != 1:
        raise DataError("the systems were scored on different queries; rows are paired by query")
    points = tuple(_point(weight, scores[weight], config) for weight in weights)
    return DebiasSearch(
        searched=searched,
        data=data,
        target=config.target,
        n_seeds=n_seeds,
        points=points,
        zero_crossing=zero_crossing(points, target=config.target),
    )


def _point(weight: float, scores: Sequence[DebiasScores], config: DebiasConfig) -> DebiasPoint:
    level = config.confidence_level

    def rows(name: str, cutoff: int) -> FloatArray:
        values = np.stack([found.of(name, cutoff) for found in scores])
        return np.minimum(values, 1.0)  # a measure that divides sums may exceed 1 by rounding

    def quality(name: str) -> Interval:
        values = rows(name, config.quality_cutoff)
        fixed = clustered_mean(values.mean(axis=0), confidence_level=level, bounds=(0.0, 1.0))
        return _over_seeds(fixed, values, float, lambda end: min(max(end, 0.0), 1.0))

    human_only, llm_only, mixed = map(quality, QUALITIES)
    human, other = (rows(name, config.skew_cutoff) for name in ("baseline", "other"))
    return DebiasPoint(
        weight=weight,
        relative_delta=relative_delta_over_seeds(human, other, confidence_level=level),
        human_only=human_only,
        llm_only=llm_only,
        mixed=mixed,
    )


def relative_delta_over_seeds(
    human: FloatArray, llm: FloatArray, *, confidence_level: float
) -> Interval:
    """Relative Δ of the mean over seeds, with an interval for new queries and new seeds.

    The interval of :func:`~rag_sourcebias.relative_delta_interval` for the scores
    averaged over seeds, widened on the scale of ln(h / l) by what random seeds add to the
    variance of its influence values.

    Parameters
    ----------
    human, llm : float64 arrays of shape (seeds, queries)
    """
    fixed = relative_delta_interval(
        human.mean(axis=0), llm.mean(axis=0), confidence_level=confidence_level
    )
    h, m = float(human.mean()), float(llm.mean())
    if min(h, m) == 0:
        return fixed
    return _over_seeds(fixed, human / h - llm / m, _log_ratio, _percent)


def _over_seeds(
    fixed: Interval,
    influence: FloatArray,
    scale: Callable[[float], float],
    back: Callable[[float], float],
) -> Interval:
    """Widen an interval for the seeds there are, on a scale, by what random seeds add.

    Parameters
    ----------
    influence : float64 array of shape (seeds, queries)
        On the estimate, on that scale.
    """
    if len(influence) == 1:
        return fixed
    added = CrossedMean.of(influence).seed_part((1 - fixed.confidence_level) / 2) ** 0.5
    lower, estimate, upper = (scale(v) for v in (fixed.lower, fixed.estimate, fixed.upper))
    return replace(
        fixed,
        lower=min(back(estimate - math.hypot(estimate - lower, added)), fixed.lower),
        upper=max(back(estimate + math.hypot(upper - estimate, added)), fixed.upper),
        method=InferCode.WITH_SEEDS(method=fixed.method),
        assumptions=(*fixed.assumptions, InferCode.SEEDS_SAMPLED()),
    )


def zero_crossing(points: Sequence[DebiasPoint], *, target: float) -> Interval | None:
    """Weight at which Relative Δ, linear between neighbouring weights, first meets the target.

    Its interval holds every weight whose interpolated interval holds the target (from the lowest
    to the highest): a set that inverts pointwise intervals covers the one true crossing at their
    level, and interpolated ends are never too close.

    Returns
    -------
    Interval or None
        None where the curve does not meet the target.
    """
    weights = np.array([p.weight for p in points])
    deltas = [p.relative_delta for p in points]
    middle, lower, upper = np.array([(d.estimate, d.lower, d.upper) for d in deltas]).T - target
    segments = [slice(i, i + 2) for i in range(len(points) - 1)]
    crossings = [at for part in segments if (at := _root(weights[part], middle[part])) is not None]
    if not crossings:
        return None
    possible = [
        end for part in segments for end in _not_excluded(weights[part], lower[part], upper[part])
    ]
    times = len(set(crossings))
    notes = (
        (lower[0] <= 0 <= upper[0], InferCode.ZERO_POSSIBLE()),
        (lower[-1] <= 0 <= upper[-1], InferCode.BEYOND_POSSIBLE()),
        (times > 1, InferCode.CROSSES_AGAIN(n=times)),
    )
    first = deltas[0]
    return Interval(
        estimate=crossings[0],
        lower=min(*possible, crossings[0]),
        upper=max(*possible, crossings[0]),
        confidence_level=first.confidence_level,
        method=InferCode.CROSSING(),
        n_labeled=first.n_labeled,
        assumptions=(*first.assumptions, InferCode.WEIGHTS_LINEAR()),
        notes=tuple(note for applies, note in notes if applies),
    )


def _log_ratio(percent: float) -> float:
    share = percent / 200
    return math.copysign(math.inf, share) if abs(share) >= 1 else 2 * math.atanh(share)


def _percent(log_ratio: float) -> float:
    return 200 * math.tanh(log_ratio / 2)


def _root(weights: FloatArray, values: FloatArray) -> float | None:
    """Where the line through two points is 0, if between them."""
    if values[0] == 0:
        return float(weights[0])
    if values[1] == 0:
        return float(weights[1])
    if values[0] * values[1] > 0:
        return None
    return float(weights[0] + (weights[1] - weights[0]) * values[0] / (values[0] - values[1]))


def _not_excluded(weights: FloatArray, lower: FloatArray, upper: FloatArray) -> list[float]:
    """Ends of the weights on one segment where lower ≤ 0 ≤ upper."""
    inside = [0.0, 1.0]
    for first, last in (upper, -lower):  # both must be at least 0
        if first < 0 and last < 0:
            return []
        if first < 0:
            inside[0] = max(inside[0], first / (first - last))
        elif last < 0:
            inside[1] = min(inside[1], first / (first - last))
    if inside[0] > inside[1]:
        return []
    return [float(weights[0] + share * (weights[1] - weights[0])) for share in inside]
