"""What was found, in one plain sentence per system and other source.

The verdict rests on the leading measure (NDCG where there is one) at the smallest cutoff, and
mentions other cutoffs that are significant. "Prefers" is said only when the adjusted p-value is
below 1 − confidence level, and only of data whose sources say the same thing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

from rag_sourcebias.report.format import number, p_clause, score, split_measure
from rag_sourcebias.report.view import label, names_of, others_of, significant
from rag_sourcebias.report.wording import Phrases
from rag_sourcebias.types.reports import SkewCell, SkewReport, SoleCorpusCheck, SystemSkew

__all__ = ["NARROW", "Direction", "Elsewhere", "Kind", "Verdict", "leading_cells", "verdicts"]

NARROW = 10.0
"""Half width of Relative Δ up to which an interval around 0 is called "no preference"."""

Kind = Literal["prefers", "leans", "none", "unknown", "undefined"]
Direction = Literal["baseline", "other"]


class Elsewhere(NamedTuple):
    """Another cutoff at which the difference is significant."""

    measure: str
    direction: Direction


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What can be said about one system and one other source.

    Parameters
    ----------
    subject : str
        System with its variant, and the other source where there are several.
    kind : {"prefers", "leans", "none", "unknown", "undefined"}
    direction : str or None
        Which source ranks higher, ``"baseline"`` or ``"other"``; None where nothing can be said.
    short : str
        A few words.
    text : str
        The finding without its subject.
    elsewhere : tuple of Elsewhere
        Other cutoffs at which the difference is significant, in either direction.
    unequal_alone : bool
        Whether the sources differ even when each is searched alone.
    cell : SkewCell
        What the verdict rests on.
    """

    subject: str
    system: SystemSkew
    kind: Kind
    direction: Direction | None
    short: str
    text: str
    elsewhere: tuple[Elsewhere, ...]
    unequal_alone: bool
    cell: SkewCell

    @property
    def sentence(self) -> str:
        """The finding as a full sentence."""
        joint = ": " if self.kind in ("unknown", "undefined") else " "
        return f"{self.subject}{joint}{self.text}."


def leading_cells(report: SkewReport, system: SystemSkew, other: str) -> tuple[SkewCell, ...]:
    """Return the cells of the leading measure against one source, by rising cutoff."""
    cells = [c for c in system.cells if c.other == other]
    found = {split_measure(c.measure)[0] for c in cells}
    leading = next((n for n in ("NDCG", *report.config.measures) if n in found), None)
    chosen = [c for c in cells if leading in (None, split_measure(c.measure)[0])]
    return tuple(sorted(chosen, key=lambda c: split_measure(c.measure)[1] or 0))


def verdicts(report: SkewReport) -> tuple[Verdict, ...]:
    """Return one verdict per system, variant and other source, in the order of the report."""
    return tuple(
        _verdict(report, system, cells)
        for system in report.systems
        for other in others_of(report)
        if (cells := leading_cells(report, system, other))
    )


def _direction(value: float | None) -> Direction | None:
    if value is None or number(value) == number(0):
        return None
    return "baseline" if value > 0 else "other"


def _kind(report: SkewReport, cell: SkewCell) -> Kind:
    if cell.relative_delta is None:
        return "undefined"
    if cell.interval is None:
        return "unknown"
    direction = _direction(cell.relative_delta)
    if direction is not None and significant(report, cell):
        return "prefers"
    if cell.interval.half_width <= NARROW and not cell.interval.excludes(0):
        return "none"
    return "unknown" if direction is None else "leans"


def _verdict(report: SkewReport, system: SystemSkew, cells: tuple[SkewCell, ...]) -> Verdict:
    cell, kind, names = cells[0], _kind(report, cells[0]), names_of(report)
    direction = _direction(cell.relative_delta) if kind in ("prefers", "leans") else None
    sources = (
        (cell.baseline, cell.other) if direction == "baseline" else (cell.other, cell.baseline)
    )
    say = Phrases(
        report=report,
        variant=system.variant,
        cell=cell,
        winner=names[sources[0]],
        loser=names[sources[1]],
    )
    text = {
        "prefers": say.prefers,
        "leans": say.leans,
        "none": say.none,
        "unknown": lambda: say.unknown(significant=significant(report, cell)),
        "undefined": say.undefined,
    }[kind]()
    parts = [text]
    ways: dict[Direction, list[SkewCell]] = {}
    for other in cells[1:]:
        way = _direction(other.relative_delta)
        if way is not None and significant(report, other):
            ways.setdefault(way, []).append(other)
    for way, chosen in ways.items():
        same = None if direction is None else way == direction
        parts.append(say.elsewhere(chosen, baseline=way == "baseline", same=same))
    check = _unequal_alone(report, system, cells) if direction is not None else None
    if check is not None:
        parts.append(
            f"searched alone, the two corpora differ too ({check.measure} "
            f"{score(check.mean_baseline)} against {score(check.mean_other)}, "
            f"{p_clause(check.p_value)}), so this may not be source bias alone"
        )
    several = len(others_of(report)) > 1
    return Verdict(
        subject=label(system) + (f" (against {names[cell.other]})" if several else ""),
        system=system,
        kind=kind,
        direction=direction,
        short=_short(say, kind) + (", though the control differs" if check else ""),
        text="; ".join(parts),
        elsewhere=tuple(Elsewhere(c.measure, w) for w, found in ways.items() for c in found),
        unequal_alone=check is not None,
        cell=cell,
    )


def _short(say: Phrases, kind: Kind) -> str:
    if kind == "prefers":
        return f"prefers {say.winner} text" if say.rewrites else f"ranks {say.winner} text higher"
    if kind == "leans":
        return f"leans towards {say.winner} text, not significant"
    if kind == "none":
        return "no measurable preference" if say.rewrites else "no measurable difference"
    return "cannot tell" if kind == "unknown" else "Relative Δ undefined"


def _controls(report: SkewReport, system: SystemSkew) -> tuple[SoleCorpusCheck, ...]:
    """Return a system's sole-corpus checks; a variant without any falls back to its system's."""
    if system.sole_corpus:
        return system.sole_corpus
    twins = (s.sole_corpus for s in report.systems if s.name == system.name and s.sole_corpus)
    return next(twins, ())


def _unequal_alone(
    report: SkewReport, system: SystemSkew, cells: tuple[SkewCell, ...]
) -> SoleCorpusCheck | None:
    """Return the control that fails, judged at the largest cutoff, the steadiest.

    Only rewrites are meant to be found equally well: for other designs it says nothing new.
    """
    if report.data.design != "rewrites":
        return None
    name = split_measure(cells[0].measure)[0]
    checks = [
        c
        for c in _controls(report, system)
        if c.other == cells[0].other and split_measure(c.measure)[0] == name
    ]
    if not checks:
        return None
    steady = max(checks, key=lambda c: split_measure(c.measure)[1] or 0)
    level = 1 - report.config.confidence_level
    return steady if steady.p_value is not None and steady.p_value < level else None
