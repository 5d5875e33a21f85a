"""The report of a judged evaluation, until its pages are rebuilt on findings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rag_sourcebias.core.finding import Frame
from rag_sourcebias.judged.data import JudgedResults
from rag_sourcebias.judged.report import document
from rag_sourcebias.report import legacy
from rag_sourcebias.report.document import Document
from rag_sourcebias.report.files import Outcome, Report

_PER_QUERY = ("estimate", "lower", "upper", "human")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class JudgedReport(Report, JudgedResults):
    """The result of a judged evaluation, which shows itself."""

    def page(self) -> Document:
        """Return what there is to read, in its order."""
        return document(self)

    @property
    def frames(self) -> dict[str, Frame]:
        """The first table of the page, every figure, every query, and cases with texts."""
        return legacy.frames(self.page(), {
            "figures": legacy.figures(self),
            "queries": self._queries(),
            "cases": legacy.cases(self.evidence),
        })  # fmt: skip

    def _queries(self) -> Iterator[dict[str, Any]]:
        for found in self.per_query:
            for at, query in enumerate(found.query_ids):
                row = {"measure": found.measure, "system": found.system, "query_id": query}
                yield row | {name: float(getattr(found, name)[at]) for name in _PER_QUERY}

    def _outcomes(self) -> Iterator[Outcome]:
        for mean in self.means:
            apart = mean.judge_alone - mean.interval.estimate
            code = "judge_too_high" if apart > 0 else "judge_too_low"
            if not mean.interval.excludes(mean.judge_alone):
                code = "judge_not_contradicted"
            several = len({other.measure for other in self.means}) > 1
            subject = f"{mean.system}, {mean.measure}" if several else mean.system or mean.measure
            yield Outcome(subject, code, mean.measure, mean.interval, digits=3)
