"""The whole report in a few sentences, no more certain than its intervals."""

from __future__ import annotations

from rag_sourcebias.report.debias.choice import best_system, choice_sentence, transfer_sentence
from rag_sourcebias.report.debias.names import (
    called,
    data_name,
    delta_ends,
    percent,
    quality_names,
)
from rag_sourcebias.report.debias.verdicts import DebiasVerdict
from rag_sourcebias.report.format import count, delta, join
from rag_sourcebias.types.debias_report import DebiasReport

__all__ = ["headline"]

_NAMED = 3


def headline(report: DebiasReport) -> str:
    """Return what a reader in a hurry should take away."""
    best = best_system(report)
    if best is None:
        if not report.datasets:
            return "Nothing was compared."
        return f"No changed system was compared. {_unchanged(report)}"
    parts = [choice_sentence(report), _numbers(report, best.verdicts)]
    parts.append(transfer_sentence(report, best))
    return " ".join(p for p in parts if p)


def _unchanged(report: DebiasReport) -> str:
    clauses = []
    for dataset in report.datasets[:_NAMED]:
        if dataset.outcomes:
            now = dataset.outcomes[0].skew_at(report.config.skew_cutoff).after
            clauses.append(f"{delta_ends(now)} on {called(data_name(report, dataset))}")
    if not clauses:
        return ""
    return f"As it is, Relative Δ of NDCG@{report.config.skew_cutoff} is {join(clauses)}."


def _numbers(report: DebiasReport, found: tuple[DebiasVerdict, ...]) -> str:
    """Say what the best system does to skew and quality on each data set."""
    cutoff = report.config.skew_cutoff
    shown = [v for v in found[:_NAMED] if v.skew.after is not None]
    if not shown:
        return ""
    clauses = [_clause(report, v, brief=len(shown) > 1) for v in shown]
    rest = len(found) - _NAMED
    tail = f"; {count(rest)} more data set{'s' if rest > 1 else ''} below" if rest > 0 else ""
    return f"With it Relative Δ of NDCG@{cutoff} goes {'; '.join(clauses)}{tail}."


def _clause(report: DebiasReport, verdict: DebiasVerdict, *, brief: bool) -> str:
    before = verdict.skew.before
    text = f"to {delta_ends(verdict.skew.after)}"
    if before is not None:
        text = f"from {delta(before.estimate)} {text}"
    cost = _cost(report, verdict, brief=brief)
    role = {
        "fitted": ", where it was fitted",
        "held out": ", on pairs that it was not fitted on",
        "transfer": ", which is new to it",
    }
    where = f"{called(data_name(report, verdict.dataset))}{role.get(verdict.role, '')}"
    return f"{text} on {where}{cost}"


def _cost(report: DebiasReport, verdict: DebiasVerdict, *, brief: bool) -> str:
    known = [q.change for q in verdict.quality if q.change.relative is not None]
    if not known:
        return ""
    names, measure = quality_names(report), f"NDCG@{report.config.quality_cutoff}"
    if brief:
        worst = min(known, key=lambda q: q.relative or 0.0)
        return f" (worst {measure}: {names[worst.quality]} {percent(worst.relative)})"
    return f" ({measure}: {', '.join(f'{names[q.quality]} {percent(q.relative)}' for q in known)})"
