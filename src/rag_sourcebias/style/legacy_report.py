"""The report of a style audit, until its pages are rebuilt on findings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rag_sourcebias.core.finding import Frame
from rag_sourcebias.report import legacy
from rag_sourcebias.report.document import Document
from rag_sourcebias.report.files import Outcome, Report
from rag_sourcebias.style.data import StyleCode, StyleResults
from rag_sourcebias.style.report import document


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class StyleReport(Report, StyleResults):
    """The result of a style audit, which shows itself."""

    def page(self) -> Document:
        """Return what there is to read, in its order."""
        return document(self)

    @property
    def frames(self) -> dict[str, Frame]:
        """The first table of the page, every figure, every query, and cases with texts."""
        styles = {"query_style": self.data.query_styles, "doc_style": self.data.doc_styles}
        return legacy.frames(self.page(), {
            "figures": legacy.figures(self),
            "queries": (
                row
                for system in self.systems
                for row in legacy.values(
                    system.ranks, {"query_id": system.query_ids, **styles}, system=system.name
                )
            ),
            "cases": (
                row
                for system in self.systems
                for row in legacy.cases(system.evidence, system=system.name)
            ),
        })  # fmt: skip

    def _outcomes(self) -> Iterator[Outcome]:
        for system in self.systems:
            found = system.finding
            row = next(r for r in system.rows if r.query_style == self.config.original_query)
            favours = found.code is StyleCode.FAVOURS
            yield Outcome(
                system.name,
                found.code.value,
                "unfairness",
                row.unfairness_interval,
                row.unfairness.score,
                digits=2,
                words=f"favours style {found.best}" if favours else "",
            )
