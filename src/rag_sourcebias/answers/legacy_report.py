"""The report on correctness scores, until its pages are rebuilt on findings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rag_sourcebias.answers.data import AnswerBiasResults, AnswerScorer, AnswerUse
from rag_sourcebias.answers.report import document
from rag_sourcebias.core.finding import Frame
from rag_sourcebias.report import legacy
from rag_sourcebias.report.document import Document
from rag_sourcebias.report.files import Outcome, Report


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class AnswerBiasReport(Report, AnswerBiasResults):
    """The result of an audit of correctness scores, which shows itself."""

    def page(self) -> Document:
        """Return what there is to read, in its order."""
        return document(self)

    @property
    def frames(self) -> dict[str, Frame]:
        """The first table of the page, every figure, every query, and cases with texts."""
        return legacy.frames(self.page(), {
            "figures": legacy.figures(self),
            "queries": (row for scorer in self.scorers for row in self._scores(scorer)),
            "cases": (
                row
                for scorer in self.scorers
                for row in legacy.cases(scorer.evidence, scorer=scorer.name)
            ),
        })  # fmt: skip

    def _scores(self, scorer: AnswerScorer) -> Iterator[dict[str, Any]]:
        """Yield every answer with its score, and its adjusted score where there is one."""
        columns = {"score": scorer.scores}
        if len(scorer.adjusted_scores):
            columns["adjusted"] = scorer.adjusted_scores
        ids = zip(self.question_ids, self.answer_systems, strict=True)
        for at, (question, system) in enumerate(ids):
            row = {"scorer": scorer.name, "question_id": question, "system": system}
            yield row | {name: float(scores[at]) for name, scores in columns.items()}

    def _outcomes(self) -> Iterator[Outcome]:
        for scorer in self.scorers:
            if (found := scorer.finding) is not None:
                useless = found.use is AnswerUse.USELESS
                yield Outcome(
                    scorer.name,
                    (found.use if useless else found.style).value,
                    "AUC within systems" if useless else "unfairness",
                    scorer.raw.auc_within if useless else scorer.raw.unfairness,
                    digits=3,
                    words={"rewards": "rewards style", "slight": "rewards style slightly"}.get(
                        "" if useless else found.style.value, ""
                    ),
                )
