"""The phrases of which a verdict is made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rag_sourcebias.report.format import count, delta, interval, join, number, p_clause
from rag_sourcebias.report.meaning import correction_scope, family_size, family_text
from rag_sourcebias.report.view import names_of, others_of
from rag_sourcebias.types.reports import SkewCell, SkewReport

__all__ = ["Phrases", "cutoff_of"]


def cutoff_of(cell: SkewCell) -> str:
    """Return ``@5`` of ``NDCG@5``, nothing where the measure has no cutoff."""
    _, at, cutoff = cell.measure.partition("@")
    return f"{at}{cutoff}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Phrases:
    """Words for one cell of one report.

    Parameters
    ----------
    variant : str
        Of the system: each variant has its own family of tests.
    winner, loser : str
        Short names of the sources.
    """

    report: SkewReport
    variant: str
    cell: SkewCell
    winner: str
    loser: str

    @property
    def rewrites(self) -> bool:
        """Whether sources say the same thing: only then does a skew show a preference."""
        return self.report.data.design == "rewrites"

    def claim(self, *, leans: bool = False) -> str:
        """Return ``prefers LLM text`` or ``ranks LLM text higher``."""
        what = f"{self.winner} text"
        if len(others_of(self.report)) > 1:
            what += f" {'over' if self.rewrites else 'above'} {self.loser} text"
        elif not self.rewrites:
            what += " higher"
        if leans:
            return f"leans towards {what}" if self.rewrites else f"leans towards ranking {what}"
        return f"prefers {what}" if self.rewrites else f"ranks {what}"

    def prefers(self) -> str:
        """Return the finding of a significant difference."""
        return (
            f"{self.claim()}: {self._numbers()}, significant{self._scope()} "
            f"({self.tested(self.cell)}); {self._queries()}"
            + self._if_zero("the interval includes 0 all the same, so treat this as borderline")
        )

    def leans(self) -> str:
        """Return the finding of a difference that may be chance."""
        scope = self._scope()
        if scope and self.report.config.correction == "none":
            scope = f" even without correction for {family_text(self.report, self.variant)}"
        return (
            f"{self.claim(leans=True)}, but this is not significant{scope}: {self._numbers()}, "
            f"{self.tested(self.cell)}; {self._queries()}"
            + self._if_zero("the interval includes 0, so the opposite is possible")
        )

    def none(self) -> str:
        """Return the finding of an interval that is narrow and holds 0."""
        what = "preference" if self.rewrites else "difference"
        return (
            f"shows no measurable {what}: {self._numbers()}, {self.tested(self.cell)}; "
            f"{self._queries()}; differences inside the interval cannot be ruled out"
        )

    def unknown(self, *, significant: bool) -> str:
        """Return why nothing can be said."""
        if self.cell.interval is not None:
            return (
                f"cannot tell: {self._numbers()} points in no direction and the interval is wide; "
                f"{self._queries()}"
            )
        reason = (self.cell.refusal or "none was computed").rstrip(".")
        text = (
            f"cannot tell: no interval for Relative Δ{cutoff_of(self.cell)} ({reason}); the bare "
            f"estimate {delta(self.cell.relative_delta)} is not to be relied on"
        )
        if significant:
            text += (
                f"; the test of equal means is significant{self._scope()} "
                f"({self.tested(self.cell)}), the size of the difference is unknown"
            )
        return text

    def undefined(self) -> str:
        """Return the finding that neither source scores."""
        return (
            f"Relative Δ{cutoff_of(self.cell)} is undefined, because {self.cell.measure} is 0 for "
            f"both sources over all {count(self.cell.n_queries)} queries"
        )

    def elsewhere(self, cells: Sequence[SkewCell], *, baseline: bool, same: bool | None) -> str:
        """Return at which other cutoffs one source ranks significantly higher.

        ``same`` says whether that is the direction of the verdict, None if it has no direction.
        """
        at = join(
            [
                f"{cutoff_of(c)} ({delta(c.relative_delta)} {interval(c.interval)}, "
                f"{self.tested(c, brief=True)})"
                for c in cells
            ]
        )
        if same:
            return f"the same direction is significant at {at}"
        winner = names_of(self.report)[self.cell.baseline if baseline else self.cell.other]
        start = "" if same is None else "the opposite holds elsewhere: "
        return f"{start}{winner} text ranks significantly higher at {at}"

    def tested(self, cell: SkewCell, *, brief: bool = False) -> str:
        """Return the p-values of a cell; ``brief`` leaves the adjusted one only."""
        if self.report.config.correction == "none" or self._alone:
            return p_clause(cell.p_value)
        adjusted = p_clause(cell.p_adjusted, name="adjusted p")
        return adjusted if brief else f"{p_clause(cell.p_value)}, {adjusted}"

    @property
    def _alone(self) -> bool:
        return family_size(self.report, self.variant) == 1

    def _scope(self) -> str:
        return "" if self._alone else f" {correction_scope(self.report, self.variant)}"

    def _numbers(self) -> str:
        cell = self.cell
        return f"Relative Δ{cutoff_of(cell)} {delta(cell.relative_delta)} {interval(cell.interval)}"

    def _queries(self) -> str:
        have, needed = self.cell.n_queries, self.cell.n_needed
        if needed is None or needed <= have:
            return f"{count(have)} queries"
        target = number(self.report.config.target_half_width, digits=0)
        return f"{count(have)} queries, {count(needed)} needed for ±{target}"

    def _if_zero(self, text: str) -> str:
        bounds = self.cell.interval
        return "" if bounds is None or bounds.excludes(0) else f"; {text}"
