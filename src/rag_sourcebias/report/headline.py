"""The whole report in one or two sentences."""

from __future__ import annotations

from collections.abc import Sequence

from rag_sourcebias.report.format import count, join, shorten
from rag_sourcebias.report.meaning import correction_scope, family_size
from rag_sourcebias.report.verdicts import Verdict, verdicts
from rag_sourcebias.report.view import names_of
from rag_sourcebias.types.reports import SkewReport

__all__ = ["headline"]

_MAX_NAMED = 3
_MAX_NAME = 60


def headline(report: SkewReport) -> str:
    """Return what a reader in a hurry should take away, no more certain than it is.

    Only systems as deployed are counted; variants explain them.
    """
    every = verdicts(report)
    found = [v for v in every if v.system.variant == "mixed"] or list(every)
    if not found:
        return "No two sources were compared."
    strong = [v for v in found if v.kind == "prefers"]
    rest = [v for v in found if v.kind != "prefers"]
    where = f"At {found[0].cell.measure} over {count(report.data.n_queries)} queries"
    variant = found[0].system.variant
    alone = family_size(report, variant) == 1
    scope = "" if alone else f" {correction_scope(report, variant)}"
    if not strong:
        first = f"{where}, no {_noun(report)} is significant{scope}"
    else:
        first = f"{where}, {_clauses(report, strong)} (significant{scope}){_control(strong)}"
    return f"{first}. {_clauses(report, rest)}." if rest else f"{first}."


def _clauses(report: SkewReport, found: Sequence[Verdict]) -> str:
    groups: dict[str, list[Verdict]] = {}
    for verdict in found:
        groups.setdefault(_predicate(report, verdict, one=True), []).append(verdict)
    parts = []
    for group in groups.values():
        parts.append(f"{_who(group)} {_predicate(report, group[0], one=len(group) == 1)}")
    return "; ".join(parts)


def _control(found: Sequence[Verdict]) -> str:
    """Say for which of them the sole-corpus control fails."""
    failed = [v for v in found if v.unequal_alone]
    if not failed:
        return ""
    who = "" if len(failed) == len(found) else f" for {_who(failed)}"
    return f", though{who} the two corpora differ even when searched alone"


def _who(found: Sequence[Verdict]) -> str:
    if len(found) > _MAX_NAMED:
        return f"{len(found)} systems"
    return join([shorten(v.subject, _MAX_NAME) for v in found])


def _predicate(report: SkewReport, verdict: Verdict, *, one: bool) -> str:
    rewrites = report.data.design == "rewrites"
    names, cell, s = names_of(report), verdict.cell, "s" if one else ""
    winner = names[cell.baseline if verdict.direction == "baseline" else cell.other]
    if verdict.kind == "prefers":
        text = f"prefer{s} {winner} text" if rewrites else f"rank{s} {winner} text higher"
    elif verdict.kind == "leans":
        towards = f"{winner} text" if rewrites else f"ranking {winner} text higher"
        text = f"lean{s} towards {towards}, not significantly"
    elif verdict.kind == "none":
        text = f"show{s} no measurable {_noun(report)}"
    else:
        text = "cannot be judged"
    for way in dict.fromkeys(e.direction for e in verdict.elsewhere):
        at = join([e.measure for e in verdict.elsewhere if e.direction == way])
        higher = names[cell.baseline if way == "baseline" else cell.other]
        if way != verdict.direction:
            text += f", but at {at} {higher} text ranks significantly higher"
        elif verdict.kind == "leans":
            text += f", but at {at} significantly"
    return text


def _noun(report: SkewReport) -> str:
    return "preference" if report.data.design == "rewrites" else "difference in rank"
