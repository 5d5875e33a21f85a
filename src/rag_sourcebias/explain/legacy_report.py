"""The report on what distinguishes sources, until its pages are rebuilt on findings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rag_sourcebias.core.finding import Frame
from rag_sourcebias.explain.data import ExplainResults
from rag_sourcebias.explain.report import document
from rag_sourcebias.report import legacy
from rag_sourcebias.report.document import Document
from rag_sourcebias.report.files import Outcome, Report


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ExplainReport(Report, ExplainResults):
    """What distinguishes sources, which shows itself."""

    def page(self) -> Document:
        """Return what there is to read, in its order."""
        return document(self)

    @property
    def frames(self) -> dict[str, Frame]:
        """The first table of the page, every figure."""
        return legacy.frames(self.page(), {"figures": legacy.figures(self)})

    def _outcomes(self) -> Iterator[Outcome]:
        for found in self.sources:
            gap = None if found.decomposition is None else found.decomposition.gap
            code = "not_computed"
            if gap is not None:
                code = "scored_higher" if gap.estimate > 0 else "scored_lower"
                code = code if gap.excludes(0.0) else "cannot_tell"
            yield Outcome(found.source, code, "score gap", gap, digits=3)
