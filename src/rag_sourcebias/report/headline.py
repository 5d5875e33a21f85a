"""The whole report in one or two sentences."""

from __future__ import annotations

from collections.abc import Sequence

from rag_sourcebias.report.format import count, join, number, roughly, shorten
from rag_sourcebias.report.meaning import family_size, family_text
from rag_sourcebias.report.verdicts import Verdict, verdicts
from rag_sourcebias.types.reports import SkewReport
from rag_sourcebias.types.verdicts import SkewCode

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
    groups: dict[str, list[Verdict]] = {}
    for verdict in found:
        groups.setdefault(verdict.short, []).append(verdict)
    where = f"At {report.config.primary_measure} over {count(report.data.n_queries)} queries"
    clauses = [_clause(report, group) for group in groups.values()]
    scope = ""
    if family_size(report, found[0].system.variant) > 1 and report.config.correction != "none":
        scope = f" (corrected over {family_text(report, found[0].system.variant)})"
    return f"{where}{scope}: {'; '.join(clauses)}."


def _clause(report: SkewReport, group: Sequence[Verdict]) -> str:
    who = (
        f"{len(group)} systems"
        if len(group) > _MAX_NAMED
        else join([shorten(v.subject, _MAX_NAME) for v in group])
    )
    first = group[0]
    one = len(group) == 1
    match first.code:
        case SkewCode.CANNOT_TELL:
            needed = [v.found.n_needed for v in group if v.found is not None]
            most = max((n for n in needed if n is not None), default=None)
            tail = "" if most is None else f" (about {roughly(most)} queries are needed)"
            return f"for {who} the data cannot tell{tail}"
        case SkewCode.REFUSED:
            return f"for {who} there is no verdict"
        case SkewCode.ALIKE:
            margin = number(report.config.margin)
            return f"{who} treat{'s' if one else ''} both sources alike within ±{margin} points"
        case _:
            return f"{who} {first.short if one else first.short.replace('favours', 'favour', 1)}"
