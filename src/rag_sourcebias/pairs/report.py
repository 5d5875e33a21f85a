"""The report on a paired corpus, as users get it."""

from collections.abc import Iterator, Mapping

from rag_sourcebias.core.finding import Frame
from rag_sourcebias.pairs import page
from rag_sourcebias.pairs.data import PAIRS_SCHEMA_VERSION, PairResults
from rag_sourcebias.pairs.findings import outcome, warnings
from rag_sourcebias.pairs.frames import frames
from rag_sourcebias.report.document import Document
from rag_sourcebias.report.render import Outcome, Report


class PairReport(PairResults, Report):
    """What was found about a paired corpus."""

    _versioned = ("pair report", PAIRS_SCHEMA_VERSION)

    @property
    def frames(self) -> Mapping[str, Frame]:
        """Every table, by its name."""
        return frames(self)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to know before the corpus is used."""
        return tuple(map(str, warnings(self.sources)))

    def page(self) -> Document:
        """Return what there is to read, in its order."""
        return page.page(self)

    def _outcomes(self) -> Iterator[Outcome]:
        for part in self.sources:
            yield Outcome(
                subject=part.source,
                code=outcome(part),
                figure="share of broken pairs",
                value=part.broken_share,
                digits=3,
            )
