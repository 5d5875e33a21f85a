"""The report of a mitigation, until its pages are rebuilt on findings."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rag_sourcebias.core.finding import Frame
from rag_sourcebias.debias.data import DEBIAS_ROWS, DebiasResults
from rag_sourcebias.debias.report import document
from rag_sourcebias.debias.words import short, standings
from rag_sourcebias.report import legacy
from rag_sourcebias.report.document import Document
from rag_sourcebias.report.render import Outcome, Report


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class DebiasReport(Report, DebiasResults):
    """The result of a mitigation, which shows itself."""

    def page(self) -> Document:
        """Return what there is to read, in its order."""
        return document(self)

    @property
    def frames(self) -> dict[str, Frame]:
        """The first table of the page, every figure, and the score of every query."""
        return legacy.frames(self, self.page(), queries=self._queries())

    def _queries(self) -> Iterator[dict[str, Any]]:
        for dataset in self.datasets:
            for outcome in dataset.outcomes:
                scores = outcome.scores
                axes = {"row": DEBIAS_ROWS, "cutoff": scores.cutoffs, "query_id": scores.query_ids}
                names = {"dataset": dataset.data.name, "system": outcome.name}
                yield from legacy.values(scores.values, axes, **names)

    def _outcomes(self) -> Iterator[Outcome]:
        cutoff = self.config.skew_cutoff
        for found in standings(self):
            for v in found.verdicts:
                where = (
                    f"{v.system} on {v.dataset.data.name}" if len(self.datasets) > 1 else v.system
                )
                figure = f"Relative Δ of NDCG@{cutoff}"
                yield Outcome(where, v.verdict, figure, v.skew.after, words=short(v))
