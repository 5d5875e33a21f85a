"""Points and zero crossing of a debias search ([K] Fig. 8 and 9), queries and seeds random."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rag_sourcebias.errors import DataError
from rag_sourcebias.inference.clusters import clustered_mean
from rag_sourcebias.inference.multiplicity import adjust_p_values
from rag_sourcebias.inference.noninferiority import CrossedMean, noninferiority_test
from rag_sourcebias.inference.ratio import relative_delta_interval
from rag_sourcebias.types.arrays import FloatArray
from rag_sourcebias.types.debias import QUALITIES, DebiasCandidate, DebiasPoint
from rag_sourcebias.types.intervals import Interval
from rag_sourcebias.types.tests import NoninferiorityTest

__all__ = ["debias_points", "relative_delta_over_seeds", "zero_crossing"]

_ROUNDING = 1e-9
_SEEDS = "seeds are a random sample of the seeds that could have been used"


def debias_points(
    candidates: Sequence[DebiasCandidate],
    *,
    relative_margin: float,
    level: float,
    confidence_level: float,
    adjust: bool,
) -> tuple[DebiasPoint, ...]:
    """Measure and test every weight; the first candidate is the reference.

    Parameters
    ----------
    candidates : sequence of DebiasCandidate
        By weight, aligned, the first one of weight 0.
    adjust : bool
        Whether a weight is admitted by Holm's p over all weights (any of them may then be
        chosen with these queries) or by its own.
    """
    reference = candidates[0]
    tests = [
        tuple(
            _test(candidate, reference, quality, relative_margin=relative_margin, level=level)
            for quality in QUALITIES
        )
        for candidate in candidates[1:]
    ]
    # Intersection-union: all hypotheses must be rejected, so the largest p counts as it is.
    largest = [max(test.p_value for test in of_weight) for of_weight in tests]
    adjusted = adjust_p_values(largest, correction="holm" if adjust else "none")
    points = [_point(reference, confidence_level)]
    for candidate, of_weight, p, p_adjusted in zip(
        candidates[1:], tests, largest, adjusted, strict=True
    ):
        admitted = p_adjusted is not None and p_adjusted <= level
        points.append(
            replace(
                _point(candidate, confidence_level),
                tests=of_weight,
                p_value=p,
                p_adjusted=p_adjusted,
                admitted=admitted,
                refusal=None if admitted else _why(of_weight, p_adjusted, level),
            )
        )
    return tuple(points)


def relative_delta_over_seeds(candidate: DebiasCandidate, *, confidence_level: float) -> Interval:
    """Relative Δ of the mean over seeds, with an interval for new queries and new seeds.

    The interval of :func:`~rag_sourcebias.inference.relative_delta_interval` for the scores
    averaged over seeds, widened on the scale of ln(h / l) by what random seeds add to the
    variance of its influence values.
    """
    human, llm = candidate.baseline, candidate.other
    fixed = relative_delta_interval(
        human.mean(axis=0), llm.mean(axis=0), confidence_level=confidence_level
    )
    h, m = float(human.mean()), float(llm.mean())
    if candidate.shape[0] == 1 or min(h, m) == 0:
        return fixed
    added = CrossedMean.of(human / h - llm / m).seed_part((1 - confidence_level) / 2) ** 0.5
    lower, estimate, upper = (_log_ratio(v) for v in (fixed.lower, fixed.estimate, fixed.upper))
    return replace(
        fixed,
        lower=min(_percent(estimate - math.hypot(estimate - lower, added)), fixed.lower),
        upper=max(_percent(estimate + math.hypot(upper - estimate, added)), fixed.upper),
        method=f"{fixed.method}, queries × seeds",
        assumptions=(*fixed.assumptions, _SEEDS),
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
    ends = np.array(
        [
            (p.relative_delta.estimate, p.relative_delta.lower, p.relative_delta.upper)
            for p in points
        ]
    )
    middle, lower, upper = (ends - target).T
    crossings = [
        at
        for i in range(len(points) - 1)
        if (at := _root(weights[i : i + 2], middle[i : i + 2])) is not None
    ]
    if not crossings:
        return None
    possible = [
        end
        for i in range(len(points) - 1)
        for end in _not_excluded(weights[i : i + 2], lower[i : i + 2], upper[i : i + 2])
    ]
    notes = []
    if lower[0] <= 0 <= upper[0]:
        notes.append("weight 0 is not excluded")
    if lower[-1] <= 0 <= upper[-1]:
        notes.append("may lie beyond the largest weight tried")
    if len(set(crossings)) > 1:
        notes.append(f"the curve meets the target {len(set(crossings))} times; the first is given")
    first = points[0].relative_delta
    return Interval(
        estimate=crossings[0],
        lower=min(*possible, crossings[0]),
        upper=max(*possible, crossings[0]),
        confidence_level=first.confidence_level,
        method="inverted interpolated intervals",
        n_labeled=first.n_labeled,
        assumptions=(*first.assumptions, "Relative Δ is linear between neighbouring weights"),
        notes=tuple(notes),
    )


def _point(candidate: DebiasCandidate, confidence_level: float) -> DebiasPoint:
    """Return the curves' values of one weight, untested as for the reference."""
    human_only, llm_only, mixed = (
        _quality(candidate.of(quality), confidence_level) for quality in QUALITIES
    )
    return DebiasPoint(
        weight=candidate.weight,
        relative_delta=relative_delta_over_seeds(candidate, confidence_level=confidence_level),
        human_only=human_only,
        llm_only=llm_only,
        mixed=mixed,
        tests=(),
        p_value=None,
        p_adjusted=None,
        admitted=True,
    )


def _quality(values: FloatArray, confidence_level: float) -> Interval:
    seeds, n = values.shape
    fixed = clustered_mean(
        values.mean(axis=0), np.arange(n), confidence_level=confidence_level, bounds=(0.0, 1.0)
    )
    if seeds == 1:
        return fixed
    added = CrossedMean.of(values).seed_part((1 - confidence_level) / 2) ** 0.5
    centre = fixed.estimate
    return replace(
        fixed,
        lower=max(min(centre - math.hypot(centre - fixed.lower, added), fixed.lower), 0.0),
        upper=min(max(centre + math.hypot(fixed.upper - centre, added), fixed.upper), 1.0),
        method=f"{fixed.method}, queries × seeds",
        assumptions=(*fixed.assumptions, _SEEDS),
    )


def _test(
    candidate: DebiasCandidate,
    reference: DebiasCandidate,
    quality: str,
    *,
    relative_margin: float,
    level: float,
) -> NoninferiorityTest:
    treated, before = candidate.of(quality), reference.of(quality)
    test = noninferiority_test(
        treated, before, relative_margin=relative_margin, level=level, quality=quality
    )
    if quality not in candidate.unchanged:
        return test
    differs = np.argwhere(np.abs(treated - before) > _ROUNDING)
    if len(differs):
        row, column = differs[0]
        raise DataError(
            f"weight {candidate.weight:g}: {quality} is declared unchanged, but seed row {row}, "
            f"query column {column} went from {before[row, column]} to {treated[row, column]}"
        )
    return replace(test, p_value=0.0, lower=0.0, n_needed=None, note="unchanged by construction")


def _why(tests: Sequence[NoninferiorityTest], p_adjusted: float | None, level: float) -> str:
    reasons = [
        f"{test.quality} changed by {test.change:+.2f} %, a loss of {-test.lower:.2f} % is not "
        f"excluded{f' ({test.note})' if test.note else ''}, accepted is "
        f"{100 * test.relative_margin:g} %"
        for test in tests
        if not test.passed
    ]
    if not reasons:
        reasons = [f"every test passes alone, but not over all weights (p {p_adjusted:.3f})"]
    return f"not admitted at level {level:g}: " + "; ".join(reasons)


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
