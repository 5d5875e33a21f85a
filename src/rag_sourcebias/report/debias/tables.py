"""Skew and quality before and after as tables of text."""

from __future__ import annotations

from collections.abc import Iterator

from rag_sourcebias.report.debias.names import (
    data_name,
    delta_ends,
    loss,
    percent,
    percent_ends,
    quality_names,
)
from rag_sourcebias.report.debias.verdicts import (
    alpha,
    quality_kind,
    significant,
    skew_kind,
    verdicts,
)
from rag_sourcebias.report.debias.wording import short
from rag_sourcebias.report.format import MISSING, count, level, number, p_value, score
from rag_sourcebias.report.tables import Table
from rag_sourcebias.types.debias_report import (
    DebiasDataset,
    DebiasOutcome,
    DebiasReport,
    QualityChange,
    SkewChange,
)

__all__ = [
    "all_quality_table",
    "quality_caption",
    "quality_table",
    "refusals",
    "skew_caption",
    "skew_table",
    "verdicts_table",
]


_NEW = {"transfer": "yes", "held out": "pairs only", "fitted": "no", "overlap": "no"}


def verdicts_table(report: DebiasReport) -> Table:
    """Return every system on every data set with its verdict."""
    names = quality_names(report)
    rows = [
        (
            v.system,
            data_name(report, v.dataset),
            short(report, v),
            _NEW.get(v.role, "not known"),
            MISSING if v.skew.before is None else number(v.skew.before.estimate, signed=True),
            delta_ends(v.skew.after),
            *(
                MISSING if (q := v.of(name)) is None else percent(q.change.relative)
                for name in names
            ),
        )
        for v in verdicts(report)
    ]
    columns = ("system", "data", "verdict", "new data", "before", "after", *names.values())
    return Table(columns=columns, rows=tuple(rows), n_heads=4)


def skew_table(report: DebiasReport) -> Table:
    """Return Relative Δ before and after at every cutoff."""
    rows = []
    for dataset in report.datasets:
        for outcome in dataset.outcomes[1:] or dataset.outcomes:
            where = _where(report, dataset, outcome)
            rows += [(where, f"@{s.cutoff}", *_skew(report, s)) for s in outcome.skew]
    columns = ("system and data", "NDCG", "before", "after", "change", "p", "adjusted p")
    return Table(columns=columns, rows=tuple(rows), n_heads=2)


def _where(report: DebiasReport, dataset: DebiasDataset, outcome: DebiasOutcome) -> str:
    return f"{outcome.name} on {data_name(report, dataset)}"


def _skew(report: DebiasReport, s: SkewChange) -> tuple[str, ...]:
    reached = skew_kind(report.config, s) in ("reached", "uncertain")
    return (
        delta_ends(s.before),
        delta_ends(s.after) + (" ✓" if reached else ""),
        delta_ends(s.change) + ("*" if significant(report, s) else ""),
        p_value(s.p_value),
        p_value(s.p_adjusted),
    )


def skew_caption(report: DebiasReport) -> str:
    """Return the key below the table of Relative Δ."""
    c = report.config
    return (
        f"Relative Δ of NDCG with {level(c.confidence_level)} intervals. ✓ within "
        f"{c.tolerance:g} points of {c.target:g} with an interval that covers it. * adjusted p "
        f"of the change below {alpha(report):.3g}"
    )


def quality_table(report: DebiasReport) -> Table:
    """Return every quality at the quality cutoff with its test."""
    rows = [
        row
        for where, q in _qualities(report)
        if q.cutoff == report.config.quality_cutoff
        for row in [(*where, *_quality(q), *_test(report, q))]
    ]
    margin = loss(report.config.relative_margin)
    columns = (
        "system and data",
        "quality",
        "before",
        "after",
        "change",
        "p",
        "bound",
        f"loss of {margin} excluded",
        "needed",
    )
    return Table(columns=columns, rows=tuple(rows), n_heads=2)


def quality_caption(report: DebiasReport) -> str:
    """Return the key below the table of qualities."""
    c = report.config
    return (
        f"NDCG@{c.quality_cutoff} ×100, change in percent with {level(c.confidence_level)} "
        f"interval; p of no change, not adjusted. Bound: one-sided, at {level(1 - c.level)}. "
        "Needed: queries with which no change at all would pass with probability 80%"
    )


def all_quality_table(report: DebiasReport) -> Table:
    """Return every quality at every cutoff; no rows where there is only the quality cutoff."""
    found = list(_qualities(report))
    cutoffs = {q.cutoff for _, q in found}
    rows = tuple((*where, f"@{q.cutoff}", *_quality(q)) for where, q in found if len(cutoffs) > 1)
    columns = ("system and data", "quality", "NDCG", "before", "after", "change", "p")
    return Table(columns=columns, rows=rows, n_heads=3)


def _qualities(report: DebiasReport) -> Iterator[tuple[tuple[str, str], QualityChange]]:
    names = quality_names(report)
    for dataset in report.datasets:
        for outcome in dataset.outcomes[1:]:
            for q in outcome.quality:
                name = names.get(q.quality, q.quality)
                yield (_where(report, dataset, outcome), name), q


def _quality(q: QualityChange) -> tuple[str, ...]:
    return score(q.before), score(q.after), percent_ends(q), p_value(q.p_value)


def _test(report: DebiasReport, q: QualityChange) -> tuple[str, ...]:
    if q.test is None:
        return MISSING, "not tested", MISSING
    needed = q.test.n_needed
    return (
        f"{number(q.test.lower, signed=True)}%",
        {"kept": "yes", "lost": "no: it is shown"}.get(quality_kind(report.config, q), "no"),
        count(needed) if quality_kind(report.config, q) == "open" else MISSING,
    )


def refusals(report: DebiasReport) -> tuple[tuple[str, str], ...]:
    """Return (where, why) of every interval or test that is missing."""
    names, found = quality_names(report), []
    for dataset in report.datasets:
        for outcome in dataset.outcomes:
            where = _where(report, dataset, outcome)
            found += [(f"{where}, {what}", why) for what, why in _missing(outcome, names)]
    return tuple(dict.fromkeys(found))


def _missing(outcome: DebiasOutcome, names: dict[str, str]) -> Iterator[tuple[str, str]]:
    for s in outcome.skew:
        if s.refusal:
            yield f"Relative Δ@{s.cutoff}", s.refusal
    reasons: dict[tuple[str, str], list[int]] = {}
    for q in outcome.quality:
        if q.refusal:
            reasons.setdefault((names.get(q.quality, q.quality), q.refusal), []).append(q.cutoff)
    for (name, why), cutoffs in reasons.items():
        yield f"{name} NDCG@{', @'.join(map(str, cutoffs))}", why
