"""What annotators said: the figures of [K] Table 3, agreement, and what to mind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rich.table import Table

from rag_sourcebias.cli.console import out
from rag_sourcebias.corpora.annotate_agreement import annotator_agreement
from rag_sourcebias.corpora.annotate_table import majority_tables
from rag_sourcebias.report.format import MISSING, interval, number, share, source_name
from rag_sourcebias.types.annotations import Annotations, MajorityTable, RaterAgreement
from rag_sourcebias.types.intervals import Interval
from rag_sourcebias.types.serial import to_plain

__all__ = ["AnnotationFigures", "figures", "print_figures"]

_NAMES = {
    "percent": "agreeing pairs of annotators",
    "krippendorff_alpha": "Krippendorff's alpha",
    "fleiss_kappa": "Fleiss' kappa",
    "gwet_ac1": "Gwet's AC1",
    "cohen_kappa": "Cohen's kappa",
}
_HABIT = 2.58  # standard deviations: one in a hundred questions without a habit


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotationFigures:
    """Everything that ``annotate read`` tells."""

    annotations: Annotations
    majorities: tuple[MajorityTable, ...]
    agreement: Mapping[str, tuple[RaterAgreement, ...]]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return {
            "sheet_id": self.annotations.sheet_id,
            "annotators": list(self.annotations.annotators),
            "n_units": len(self.annotations.units),
            "questions": [
                {
                    "question": table.question,
                    "n_answered": table.n_answered,
                    "n_unanswered": table.n_unanswered,
                    "n_first": table.n_first,
                    "n_second": table.n_second,
                    "majority": [
                        to_plain(m) for m in self.majorities if m.question == table.question
                    ],
                    "agreement": [to_plain(a) for a in self.agreement[table.question]],
                }
                for table in self.annotations.tables
            ],
        }


def figures(
    annotations: Annotations, *, min_answers: int | None, confidence_level: float, seed: int
) -> AnnotationFigures:
    """Compute majorities and agreement of every question."""
    return AnnotationFigures(
        annotations=annotations,
        majorities=majority_tables(
            annotations, min_answers=min_answers, confidence_level=confidence_level
        ),
        agreement={
            table.question: annotator_agreement(
                annotations, table.question, confidence_level=confidence_level, rng=seed
            )
            for table in annotations.tables
        },
    )


def print_figures(found: AnnotationFigures) -> None:
    """Print two tables for each question, and what was left out."""
    asked = found.annotations
    _say(f"{len(asked.units)} pairs, annotators: {', '.join(asked.annotators)}")
    for majority in found.majorities:
        _print_majority(majority)
    for table in asked.tables:
        _print_agreement(table.question, found.agreement[table.question])
        if table.n_unanswered:
            _say(f"{table.question}: {table.n_unanswered} of the questions asked have no answer")
        lead, n = abs(table.n_first - table.n_second), table.n_first + table.n_second
        if lead > _HABIT * n**0.5:
            _say(
                f"{table.question}: text A was chosen {table.n_first} times and text B "
                f"{table.n_second} times: order was random, so this is a habit of annotators"
            )


def _print_majority(majority: MajorityTable) -> None:
    of = "" if majority.source is None else f", {source_name(majority.source)}"
    if not majority.shares:
        _say(f"{majority.question}{of}: no pair has enough answers ({majority.n_too_few} too few)")
        return
    title = f"{majority.question}{of}: majority of {majority.n_units} pairs (all agreed)"
    table = Table(title=title, title_justify="left")
    for column in ("answer", "majority", "(all agreed)", "interval", "pairs"):
        table.add_column(column, justify="left" if column == "answer" else "right")
    for one in majority.shares:
        table.add_row(
            source_name(one.category) if ":" in one.category else one.category,
            share(one.share.estimate),
            MISSING if one.unanimous is None else f"({share(one.unanimous)})",
            _percent(one.share),
            str(one.n),
        )
    if majority.n_no_majority:
        n = majority.n_no_majority
        table.add_row("no majority", share(n / majority.n_units), "", "", str(n))
    out.print(table)
    if majority.n_too_few:
        _say(f"{majority.question}{of}: {majority.n_too_few} pairs left out for too few answers")


def _print_agreement(question: str, found: tuple[RaterAgreement, ...]) -> None:
    if all(one.value is None for one in found):
        _say(f"{question}: no agreement to measure: {found[0].note}")
        return
    table = Table(title=f"{question}: agreement", title_justify="left")
    for column in ("coefficient", "value", "interval", "pairs"):
        table.add_column(column, justify="left" if column == "coefficient" else "right")
    for one in found:
        who = f" {' / '.join(one.annotators)}" if one.name == "cohen_kappa" else ""
        table.add_row(
            f"{_NAMES[one.name]}{who}",
            MISSING if one.value is None else number(one.value, digits=2),
            interval(one.interval, digits=2),
            str(one.n_units),
        )
    out.print(table)
    for note in dict.fromkeys(one.note for one in found if one.note):
        _say(f"{question}: {note}")


def _percent(found: Interval) -> str:
    return f"[{share(found.lower)}, {share(found.upper)}]"


def _say(line: str) -> None:
    out.print(line, markup=False, highlight=False, soft_wrap=True)
