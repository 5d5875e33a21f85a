"""Sentences about one changed system on one data set."""

from __future__ import annotations

from rag_sourcebias.report.debias.names import (
    data_name,
    loss,
    method_of,
    percent,
    quality_names,
)
from rag_sourcebias.report.debias.skew_words import skew_sentence, target, worse
from rag_sourcebias.report.debias.verdicts import DebiasVerdict, QualityVerdict, falls
from rag_sourcebias.report.format import count, join, number
from rag_sourcebias.types.debias_report import DebiasReport

__all__ = [
    "criteria",
    "quality_sentence",
    "role_sentence",
    "short",
    "verdict_sentence",
    "verdict_text",
]


def criteria(report: DebiasReport) -> str:
    """Return what a system has to do to meet all criteria."""
    c, names = report.config, quality_names(report)
    margin = loss(c.relative_margin)
    return (
        f"Relative Δ of NDCG@{c.skew_cutoff} within {c.tolerance:g} points of {target(c)} and its "
        f"interval covers {target(c)}; {names['human-only']} and {names['llm-only']} "
        f"NDCG@{c.quality_cutoff} fall by at most {margin}, mixed NDCG@{c.quality_cutoff} does "
        "not fall"
    )


def short(report: DebiasReport, verdict: DebiasVerdict) -> str:
    """Return the verdict in a few words."""
    if verdict.kind == "missed" and worse(report, verdict):
        skew = "further off than before"
    else:
        skew = {
            "reached": "target reached",
            "uncertain": "target reached, but uncertain",
            "close": "close, a rest is measurable",
            "missed": "target not reached",
            "overcorrected": "over-corrected",
            "unknown": "cannot be judged",
        }[verdict.kind]
    names = quality_names(report)
    lost = [names[q.change.quality] for q in verdict.quality if q.kind == "lost"]
    if lost:
        which = "" if len(lost) == len(verdict.quality) else f"{join(lost)} "
        return f"{skew}; {which}quality lost"
    if not verdict.quality:
        return skew
    fallen = [
        names[q.change.quality]
        for q in verdict.quality
        if q.kind != "unknown" and falls(report.config, q.change)
    ]
    if fallen:
        return f"{skew}; {join(fallen)} quality falls"
    if all(q.kind == "kept" for q in verdict.quality):
        return f"{skew}; quality kept"
    if any(q.kind == "unknown" for q in verdict.quality):
        return f"{skew}; quality not tested"
    return f"{skew}; loss of quality not excluded"


def quality_sentence(report: DebiasReport, verdict: DebiasVerdict) -> str:
    """Return what each quality did, and whether a loss of the margin is excluded."""
    if not verdict.quality:
        return "Quality was not measured."
    c = report.config
    margin = loss(c.relative_margin)
    names = quality_names(report)
    changes = [f"{names[q.change.quality]} {percent(q.change.relative)}" for q in verdict.quality]
    text = f"NDCG@{c.quality_cutoff} changes by {join(changes)}"
    open_ = [q for q in verdict.quality if q.kind != "kept"]
    if not open_:
        which = "all three" if len(verdict.quality) == 3 else "each"
        return f"{text}; a loss of {margin} or more is excluded for {which}."
    kept = [names[q.change.quality] for q in verdict.quality if q.kind == "kept"]
    if kept:
        text += f"; a loss of {margin} or more is excluded for {join(kept)}"
    else:
        text += f"; a loss of {margin} or more is excluded for none"
    parts = [_not_kept(report, q) for q in open_ if q.kind != "lost"]
    lost = [names[q.change.quality] for q in open_ if q.kind == "lost"]
    if lost:
        verb = "is" if len(lost) == 1 else "are"
        parts.append(f"{join(lost)} {verb} shown to lose more than that")
    return f"{text}; {'; '.join(parts)}."


def _not_kept(report: DebiasReport, found: QualityVerdict) -> str:
    name = quality_names(report)[found.change.quality]
    test = found.change.test
    if test is None:
        return f"{name} was not tested ({found.change.refusal or 'no reason given'})"
    text = f"{name} may have lost up to {number(max(-test.lower, 0.0))}%"
    if test.n_needed is not None and test.n_needed > test.n_queries:
        text += f" (about {count(test.n_needed)} queries instead of {count(test.n_queries)} could "
        text += "settle it)"
    return text


def role_sentence(report: DebiasReport, verdict: DebiasVerdict) -> str:
    """Return whether the data are new to the method."""
    seen, judged = verdict.outcome.n_seen, verdict.dataset.n_pairs
    method = method_of(report, verdict.system)
    overlap = (
        f"{count(seen)} of {count(judged)} judged pairs were seen in fitting, so that part of the "
        "effect may be memory"
        if seen
        else ""
    )
    if verdict.role == "transfer" and method is not None:
        same = method.fitted_on == verdict.dataset.data.name
        what = "other generating models" if same else method.fitted_on
        return f"A transfer test: the method was fitted on {what}."
    if verdict.role == "held out" and method is not None:
        return f"None of its judged pairs was seen in fitting, on {method.fitted_on}."
    if verdict.role == "fitted":
        text = "The method was fitted on these data"
        return f"{text}; {overlap}." if overlap else f"{text}, though on none of the judged pairs."
    if overlap:
        return f"{overlap[:1].upper()}{overlap[1:]}."
    return "It is not known what the method was fitted on."


def verdict_text(report: DebiasReport, verdict: DebiasVerdict) -> str:
    """Return everything about one system on one data set, without the names of the two."""
    parts = (
        skew_sentence(report, verdict),
        quality_sentence(report, verdict),
        role_sentence(report, verdict),
    )
    return " ".join(p for p in parts if p)


def verdict_sentence(report: DebiasReport, verdict: DebiasVerdict) -> str:
    """Return everything about one system on one data set."""
    name = data_name(report, verdict.dataset)
    return f"{verdict.system} on {name}: {verdict_text(report, verdict)}"
