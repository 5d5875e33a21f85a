"""What was found of each system, decided from adjusted p-values and sizes of differences.

A verdict rests on the original query style: each document style against the original. A style is
called favoured or silenced only when its adjusted p-value is below 1 − confidence level and it
ranks at least :data:`SLIGHT` of the scale away.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rag_sourcebias.report.style.view import (
    Compared,
    alpha,
    compared,
    original_row,
    significant_pairs,
)
from rag_sourcebias.types.style_parts import RankPair
from rag_sourcebias.types.style_report import StyleReport, StyleRow, StyleSystem

__all__ = ["EXACT_LIMIT", "SLIGHT", "Kind", "StyleVerdict", "least_p_value", "style_verdicts"]

SLIGHT = 0.05
"""Share of the k − 1 possible ranks below which a difference is called slight."""

EXACT_LIMIT = 14
"""Queries up to which the tests try all sign patterns instead of resamples."""

Kind = Literal["differs", "slight", "uneven", "none", "few", "tied", "empty"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StyleVerdict:
    """What can be said about one system.

    Parameters
    ----------
    kind : {"differs", "slight", "uneven", "none", "few", "tied", "empty"}
        ``"differs"``: styles are favoured or silenced. ``"slight"``: significant, but small.
        ``"uneven"``: styles differ, though none of them from the original (or there is none).
        ``"none"``: nothing is significant. ``"few"``: with so few queries nothing could be.
        ``"tied"``: every query ties all styles.
    row : StyleRow or None
        Of the original query style.
    favoured, silenced : tuple of Compared
        Ranked clearly above or below the original, the largest difference first.
    slight : tuple of Compared
        Significant but small differences.
    pair : RankPair or None
        The most different pair of styles, where it is significant.
    widest : float or None
        Largest distance from the original that an interval holds, in ranks.
    """

    system: StyleSystem
    kind: Kind
    row: StyleRow | None
    favoured: tuple[Compared, ...] = ()
    silenced: tuple[Compared, ...] = ()
    slight: tuple[Compared, ...] = ()
    pair: RankPair | None = None
    widest: float | None = None


def style_verdicts(report: StyleReport) -> tuple[StyleVerdict, ...]:
    """Return one verdict per system, in the order of the report."""
    return tuple(_verdict(report, system) for system in report.systems)


def least_p_value(n_queries: int, n_tests: int, *, resamples: int, correction: str) -> float:
    """Smallest adjusted p-value that a sign-flip test of so many queries can give.

    Parameters
    ----------
    n_tests : int
        Adjusted together.
    correction : {"holm", "bh", "none"}
        Holm multiplies the smallest by the number of tests; the others leave it when all are equal.
    """
    least = 2.0 ** (1 - n_queries) if n_queries <= EXACT_LIMIT else 1 / (1 + resamples)
    return min(1.0, least * (n_tests if correction == "holm" else 1))


def _verdict(report: StyleReport, system: StyleSystem) -> StyleVerdict:
    row = original_row(report, system)
    if row is None:
        return StyleVerdict(system=system, kind="empty", row=None)
    found = sorted(compared(report, row).values(), key=lambda c: -abs(c.difference))
    strong = [c for c in found if c.significant]
    limit = SLIGHT * (row.friedman.n_styles - 1)
    clear = [c for c in strong if abs(c.difference) >= limit]
    pairs = significant_pairs(report, system)
    known = [max(abs(c.lower), abs(c.upper)) for c in found if c.known]
    return StyleVerdict(
        system=system,
        kind=_kind(report, row, clear=bool(clear), strong=bool(strong), pairs=bool(pairs)),
        row=row,
        favoured=tuple(c for c in clear if c.difference < 0),
        silenced=tuple(c for c in clear if c.difference > 0),
        slight=tuple(c for c in strong if c not in clear),
        pair=pairs[0] if pairs else None,
        widest=max(known) if len(known) == len(found) and found else None,
    )


def _kind(report: StyleReport, row: StyleRow, *, clear: bool, strong: bool, pairs: bool) -> Kind:
    test = row.friedman
    if test.w is None:
        return "tied"
    if clear:
        return "differs"
    if strong:
        return "slight"
    if pairs or test.p_value < alpha(report):
        return "uneven"
    tests = len(row.against_original) or test.n_styles * (test.n_styles - 1) // 2
    least = least_p_value(
        test.n_queries,
        tests,
        resamples=report.config.resamples,
        correction=report.config.correction,
    )
    return "few" if least >= alpha(report) else "none"
