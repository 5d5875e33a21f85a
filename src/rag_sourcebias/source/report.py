"""The report of a source audit, as its users have it: rows that show themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from rag_sourcebias.core.finding import Frame
from rag_sourcebias.report.document import Document
from rag_sourcebias.report.report import Outcome, Report
from rag_sourcebias.source import page
from rag_sourcebias.source.data import SkewResults
from rag_sourcebias.source.findings import SourceCode, others_of


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class SkewReport(SkewResults, Report):
    """The result of a source audit; its parameters are those of what it stores."""

    @property
    def frames(self) -> Mapping[str, Frame]:
        """Every table, by its name; the first has the verdicts."""
        return page.frames(self)

    def page(self) -> Document:
        """Return everything there is to say, in the order in which it is read."""
        return page.page(self)

    def _outcomes(self) -> Iterator[Outcome]:
        several = len(others_of(self)) > 1
        for system in self.systems:
            for verdict in system.verdicts if system.variant == "mixed" else ():
                subject, words = system.name, ""
                if several:
                    subject = str(SourceCode.SUBJECT(system=subject, other=verdict.other))
                if verdict.favoured:
                    words = str(SourceCode.FAVOURED(source=verdict.favoured))
                yield Outcome(
                    subject,
                    verdict.code.value,
                    str(SourceCode.FIGURE(measure=verdict.measure)),
                    verdict.interval,
                    verdict.centred_delta,
                    words=words,
                )
