"""How alike two rankings of one query are."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["overlap", "rank_biased_overlap"]


def overlap(first: Sequence[str], second: Sequence[str]) -> float:
    """Documents in both rankings over documents in the longer one, in [0, 1].

    Parameters
    ----------
    first, second : sequence of str
        Different document ids; not both empty.
    """
    return len(set(first) & set(second)) / max(len(first), len(second))


def rank_biased_overlap(first: Sequence[str], second: Sequence[str], *, p: float) -> float:
    """Rank-biased overlap, extrapolated beyond the ends of both rankings, in [0, 1].

    RBO_EXT of Webber, Moffat & Zobel, "A similarity measure for indefinite rankings" (TOIS 2010),
    Equation 32: the agreement at depth d is weighted by p^(d − 1), and what lies below an end is
    taken to agree as much as what lies above it.

    Parameters
    ----------
    first, second : sequence of str
        Different document ids, best first. 0 when one is empty.
    p : float
        Persistence, in (0, 1); at .9 the first ten ranks have 86 % of the weight.
    """
    short, long = sorted((first, second), key=len)
    if not short:
        return 0.0
    seen_short: set[str] = set()
    seen_long: set[str] = set()
    common = common_short = 0
    agreement = total = 0.0
    weight = 1.0 - p
    for depth, doc_id in enumerate(long, start=1):
        seen_long.add(doc_id)
        if depth <= len(short):
            seen_short.add(short[depth - 1])
            # counted once each: by whichever of the two comes later
            common += (doc_id in seen_short) + (
                short[depth - 1] != doc_id and short[depth - 1] in seen_long
            )
            common_short = common
            agreement = common / depth
        else:
            common += doc_id in seen_short
            below = common_short * (depth - len(short)) / len(short)
            agreement = (common + below) / depth
        total += weight * agreement
        weight *= p
    return min(total + weight / (1.0 - p) * agreement, 1.0)
