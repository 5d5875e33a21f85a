"""Intervals for Relative Δ where few queries carry the information."""

from __future__ import annotations

from rag_sourcebias.errors import DataError
from rag_sourcebias.inference.pairs import SAMPLED, ScorePair
from rag_sourcebias.inference.quantiles import beta_quantile
from rag_sourcebias.types.intervals import Interval

__all__ = ["effective_counts", "exact", "rare_differences"]

# At most this part of the smaller relative variance may be explained by what both sources share;
# it keeps the effective counts finite when the two columns are proportional.
_MAX_SHARED = 0.9


def exact(pair: ScorePair, level: float) -> Interval:
    """Clopper–Pearson interval on the queries that one of the two sources won.

    Given the number of queries won at all, wins of the baseline are binomial with probability
    h/(h + l), and Relative Δ is 200 (2q − 1): no approximation is involved.

    Raises
    ------
    DataError
        If a score is not 0 or 1, or both sources score on one query.
    """
    if not pair.exclusive:
        raise DataError(
            "the exact interval needs scores of 0 and 1 of which at most one per query is 1 "
            "(binary judgments at cutoff 1, no ties)"
        )
    wins, losses = int(pair.baseline.sum()), int(pair.other.sum())
    tail = (1 - level) / 2
    lower = beta_quantile(tail, wins, losses + 1) if wins else 0.0
    upper = beta_quantile(1 - tail, wins + 1, losses) if losses else 1.0
    return pair.interval(200 * (2 * lower - 1), 200 * (2 * upper - 1), level, "exact", (SAMPLED,))


def effective_counts(pair: ScorePair, level: float) -> Interval:
    """Interval that treats each sum of scores as a count, for means near 0.

    A sum of scores s with sum of squares v is treated as s²/v events of equal size, as in
    intervals for weighted sums of Poisson counts (Fay & Feuer 1997; for ratios Fay 1999): the
    ratio of two such sums is a scaled F variable. For each end, one query of the largest
    possible score is added to the source that the end is pessimistic about, so a source that was
    rarely or never seen is not taken to be absent. With scores of 0 and 1 of which at most one
    per query is 1 this is the Clopper–Pearson interval.
    """
    lower = -_upper_end(pair, level, mirrored=True)
    upper = _upper_end(pair, level, mirrored=False)
    return pair.interval(
        lower, upper, level, "effective counts", (SAMPLED, "a sum of scores varies like a count")
    )


def _upper_end(pair: ScorePair, level: float, *, mirrored: bool) -> float:
    """Upper end for the ratio of the first source to the second, as Relative Δ."""
    first, second = (pair.other, pair.baseline) if mirrored else (pair.baseline, pair.other)
    top = pair.largest
    sum_1, square_1 = float(first.sum()) + top, float(first @ first) + top**2
    sum_2, square_2 = float(second.sum()), float(second @ second)
    if square_2 == 0:
        return 200.0
    part_1, part_2 = square_1 / sum_1**2, square_2 / sum_2**2
    # Σ h·l is at least 0: scores that rise together make the ratio more certain, never less.
    shared = min(float(first @ second) / (sum_1 * sum_2), _MAX_SHARED * min(part_1, part_2))
    count_1, count_2 = 1 / (part_1 - shared), 1 / (part_2 - shared)
    p = beta_quantile((1 + level) / 2, count_1, count_2)
    # ratio = sum_1/sum_2 · F, F = (p/count_1)/((1 − p)/count_2), Δ = 200 (ratio − 1)/(ratio + 1)
    numerator, denominator = sum_1 * p / count_1, sum_2 * (1 - p) / count_2
    return 200 * (numerator - denominator) / (numerator + denominator)


def rare_differences(pair: ScorePair, level: float) -> Interval:
    """Interval for when nearly all queries score the two sources in one ratio.

    Twins that always tie give Δ = 0 with no variation at all, which is not certainty: a share of
    up to 1 − ((1 − level)/2)^(1/n) of all queries could differ and not have been seen. With r
    the commonest share h/(h + l), Δ = 200 (2r − 1) + 400 E[(r_i − r)(h_i + l_i)]/E[h + l]; the
    chance of a query above r is bounded by Clopper–Pearson, and such a query adds at most
    (1 − r) times the largest score (below r: −r times).
    """
    common, above, below = pair.departures
    tail = 1 - (1 - level) / 2

    def bound(count: int) -> float:
        return beta_quantile(tail, count + 1, pair.n - count) if count < pair.n else 1.0

    centre = 200 * (2 * common - 1)
    scale = 400 * pair.largest / (pair.h + pair.l)
    return pair.interval(
        centre - scale * common * bound(below),
        centre + scale * (1 - common) * bound(above),
        level,
        "rare differences",
        (SAMPLED, "the mean of both scores together is known well"),
    )
