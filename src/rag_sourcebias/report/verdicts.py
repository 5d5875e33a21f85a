"""What was found, in one plain sentence per system and other source: the wording of its code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rag_sourcebias.report.format import (
    count,
    delta,
    interval,
    number,
    p_clause,
    roughly,
    score,
    split_measure,
)
from rag_sourcebias.report.view import label, names_of, others_of
from rag_sourcebias.types.reports import SkewCell, SkewReport, SoleCorpusCheck, SystemSkew
from rag_sourcebias.types.verdicts import SkewCode, SkewVerdict

__all__ = ["Direction", "Verdict", "leading_cells", "verdicts"]

Direction = Literal["baseline", "other"]
_DIRECTIONS: dict[SkewCode, Direction] = {
    SkewCode.FAVOURS_BASELINE: "baseline",
    SkewCode.FAVOURS_OTHER: "other",
}
_CLOSE = 0.05  # points of Relative Δ that look alike with one decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The wording of one system's verdict against one other source.

    Parameters
    ----------
    subject : str
        System with its variant, and the other source where there are several.
    found : SkewVerdict or None
        None in reports of version 0.1.
    short : str
        A few words.
    text : str
        The finding without its subject.
    control : SoleCorpusCheck or None
        Control that fails: the sources differ even when each is searched alone.
    """

    subject: str
    system: SystemSkew
    other: str
    found: SkewVerdict | None
    short: str
    text: str
    control: SoleCorpusCheck | None

    @property
    def code(self) -> SkewCode:
        """What can be said."""
        return SkewCode.REFUSED if self.found is None else self.found.code

    @property
    def direction(self) -> Direction | None:
        """Which source is favoured, if either."""
        return _DIRECTIONS.get(self.code)

    @property
    def sentence(self) -> str:
        """The finding as a full sentence."""
        joint = " " if self.code in (*_DIRECTIONS, SkewCode.ALIKE) else ": "
        return f"{self.subject}{joint}{self.text}."


def leading_cells(report: SkewReport, system: SystemSkew, other: str) -> tuple[SkewCell, ...]:
    """Return the cells of the primary measure's kind against one source, by rising cutoff."""
    leading = split_measure(report.config.primary_measure)[0]
    chosen = [
        c for c in system.cells if c.other == other and split_measure(c.measure)[0] == leading
    ]
    return tuple(sorted(chosen, key=lambda c: split_measure(c.measure)[1] or 0))


def verdicts(report: SkewReport) -> tuple[Verdict, ...]:
    """Return one verdict per system, variant and other source, in the order of the report."""
    return tuple(
        _worded(report, system, other)
        for system in report.systems
        for other in others_of(report)
        if any(cell.other == other for cell in system.cells)
    )


def _worded(report: SkewReport, system: SystemSkew, other: str) -> Verdict:
    names = names_of(report)
    found = next((v for v in system.verdicts if v.other == other), None)
    control = None
    if found is None:
        short = "no verdict"
        text = (
            "no verdict in this report of version 0.1, whose test measured unequal numbers of "
            "relevant documents as well; run the audit again"
        )
    else:
        short, text = _short(report, found), _text(report, system, found)
        control = _unequal_alone(report, system, other) if found.code in _DIRECTIONS else None
    if control is not None:
        harder = control.baseline if control.mean_baseline < control.mean_other else other
        short += f", but {names[harder]} text is harder to find even on its own"
        text += (
            f"; searched alone, the two corpora differ too ({control.measure} "
            f"{score(control.mean_baseline)} against {score(control.mean_other)}, "
            f"{p_clause(control.p_value)}), so this may not be source bias alone"
        )
    several = len(others_of(report)) > 1
    return Verdict(
        subject=label(system) + (f" (against {names[other]})" if several else ""),
        system=system,
        other=other,
        found=found,
        short=short,
        text=text,
        control=control,
    )


def _winner(report: SkewReport, found: SkewVerdict) -> str:
    side = found.baseline if _DIRECTIONS[found.code] == "baseline" else found.other
    return names_of(report)[side]


def _short(report: SkewReport, found: SkewVerdict) -> str:
    match found.code:
        case SkewCode.FAVOURS_BASELINE | SkewCode.FAVOURS_OTHER:
            return f"favours {_winner(report, found)} text"
        case SkewCode.ALIKE:
            return f"treats both alike within ±{number(found.margin, digits=0)}"
        case SkewCode.CANNOT_TELL:
            return "cannot tell"
        case SkewCode.REFUSED:
            return "no verdict"


def _text(report: SkewReport, system: SystemSkew, found: SkewVerdict) -> str:
    queries = f"{count(found.n_queries)} queries"
    if found.code is SkewCode.REFUSED:
        return f"no verdict: {(found.refusal or '').rstrip('.')}"
    numbers = (
        f"centred Relative Δ of {found.measure} {delta(found.centred_delta)} "
        f"{interval(found.interval)}{_published(system, found)}"
    )
    if found.code is SkewCode.ALIKE:
        margin = number(found.margin)
        return f"treats both sources alike within ±{margin} points: {numbers}; {queries}"
    tested = p_clause(found.p_value)
    if found.n_tests > 1 and report.config.correction != "none":
        tested += f", {p_clause(found.p_adjusted, name='adjusted p')} over {found.n_tests} tests"
    if found.code is SkewCode.CANNOT_TELL:
        needed = (
            ""
            if found.n_needed is None
            else f", about {roughly(found.n_needed)} are needed for a verdict"
        )
        return f"cannot tell: {numbers}, {tested}; {queries}{needed}"
    return f"favours {_winner(report, found)} text: {numbers}, {tested}; {queries}"


def _published(system: SystemSkew, found: SkewVerdict) -> str:
    """Show Relative Δ as published where it is another number."""
    value = system.cell(found.measure, found.other).relative_delta
    if value is None or found.centred_delta is None or abs(value - found.centred_delta) < _CLOSE:
        return ""
    return f" (published form {delta(value)})"


def _controls(report: SkewReport, system: SystemSkew) -> tuple[SoleCorpusCheck, ...]:
    """Return a system's sole-corpus checks; a variant without any falls back to its system's."""
    if system.sole_corpus:
        return system.sole_corpus
    twins = (s.sole_corpus for s in report.systems if s.name == system.name and s.sole_corpus)
    return next(twins, ())


def _unequal_alone(report: SkewReport, system: SystemSkew, other: str) -> SoleCorpusCheck | None:
    """Return the control of the primary measure if it fails.

    Only rewrites are meant to be found equally well: for other designs it says nothing new.
    """
    if report.data.design != "rewrites":
        return None
    level = 1 - report.config.confidence_level
    for check in _controls(report, system):
        if check.other == other and check.measure == report.config.primary_measure:
            return check if check.p_value is not None and check.p_value < level else None
    return None
