"""Conformal ranks in exact rationals.

⌈(n + 1)(1 − α)⌉ and ⌊(n + 1)α/2⌋ jump at whole numbers, where floating point rounds either way:
0.05 · 280 / 2 is 7, not 7.000000000000001 or 6.999999999999999. The confidence level is therefore
read as the decimal number it was written as.
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil, floor

from rag_sourcebias.errors import CalibrationError
from rag_sourcebias.inference.quantiles import check_level

__all__ = ["misses_per_side", "paper_misses", "score_rank", "tail_mass"]


def tail_mass(confidence_level: float) -> Fraction:
    """Return α = 1 − the level, exactly."""
    check_level(confidence_level)
    return 1 - Fraction(repr(float(confidence_level)))


def score_rank(n: int, confidence_level: float) -> int:
    """Return ⌈(n + 1)(1 − α)⌉, the rank of the conformal score; at most n.

    Raises
    ------
    CalibrationError
        If n < 1/α − 1.
    """
    alpha = tail_mass(confidence_level)
    if (n + 1) * alpha < 1:
        raise _too_few(n, ceil(1 / alpha - 1), confidence_level, "labelled queries")
    return ceil((n + 1) * (1 - alpha))


def misses_per_side(n: int, confidence_level: float) -> int:
    """Return ⌊(n + 1)α/2⌋ − 1, the queries a bound may miss with one correction for each side.

    Raises
    ------
    CalibrationError
        If n < 2/α − 1.
    """
    alpha = tail_mass(confidence_level)
    rank = floor((n + 1) * alpha / 2)
    if rank < 1:
        raise _too_few(n, ceil(2 / alpha - 1), confidence_level, "labelled queries")
    return rank - 1


def paper_misses(n: int, confidence_level: float, *, what: str = "labelled queries") -> int:
    """Return the largest count with count / n ≤ ½(α − (1 − α)/n) ([R] Eq. 24).

    [R] prints "<" in Eq. 15; the guarantee holds with "≤", which alone makes n = 1/α − 1 enough.

    Raises
    ------
    CalibrationError
        If the threshold is negative, n < 1/α − 1: no λ exists.
    """
    alpha = tail_mass(confidence_level)
    misses = floor((n * alpha - (1 - alpha)) / 2)
    if misses < 0:
        raise _too_few(n, ceil(1 / alpha - 1), confidence_level, what)
    return misses


def _too_few(n: int, needed: int, level: float, what: str) -> CalibrationError:
    return CalibrationError(
        f"{n} {what} cannot support a {100 * level:.4g}% conformal interval: no lambda meets the "
        f"threshold; at least {needed} are needed"
    )
