"""What version 0.1 concluded from the numbers of a report, where it is concluded otherwise now.

Reports of version 0.1 are known by what they lack: a centred figure, a finding, today's intervals.
"""

from __future__ import annotations

from collections.abc import Iterator

from rag_sourcebias.errors import InsufficientDataError
from rag_sourcebias.inference.answer_finding import AUC_LOSS, answer_finding
from rag_sourcebias.inference.friedman import friedman_test
from rag_sourcebias.inference.ratio import relative_delta_interval
from rag_sourcebias.inference.style_finding import style_finding
from rag_sourcebias.types.answer_parts import AdjustmentCode
from rag_sourcebias.types.answer_report import AnswerBiasReport
from rag_sourcebias.types.debias_report import DebiasConfig, DebiasReport
from rag_sourcebias.types.intervals import Interval
from rag_sourcebias.types.reports import SkewReport
from rag_sourcebias.types.style_report import StyleReport
from rag_sourcebias.types.verdicts import ChangeCode, VerdictChange

__all__ = ["changed_verdicts"]

_SLIGHT = 0.05  # share of the k - 1 places below which version 0.1 named no style
_WIDE = 3.0  # tolerances; a wider half interval says little
_METHODS = ("delta", "exact")  # of Relative Δ in a report on a mitigation


def changed_verdicts(report: object) -> tuple[VerdictChange, ...]:
    """Return the verdicts of version 0.1 that would differ now; none of a report of today.

    Reports of rewritten pairs, of what distinguishes texts, and of judges draw their conclusions
    from the same numbers by the same rules as before.
    """
    match report:
        case SkewReport():
            return tuple(_of_sources(report))
        case StyleReport():
            return tuple(_of_styles(report))
        case AnswerBiasReport():
            return tuple(_of_scores(report))
        case DebiasReport():
            return tuple(_of_mitigations(report))
    return ()


def _of_sources(report: SkewReport) -> Iterator[VerdictChange]:
    alpha = round(1 - report.config.confidence_level, 12)
    for system in report.systems:
        for other in dict.fromkeys(cell.other for cell in system.cells):
            cells = [c for c in system.cells if c.other == other]
            names = [c.measure.partition("@")[0] for c in cells]
            leading = "NDCG" if "NDCG" in names else names[0]
            # Version 0.1 tested every cutoff, and named all at which it found something.
            for cell in (c for c, name in zip(cells, names, strict=True) if name == leading):
                value, p = cell.relative_delta, cell.p_adjusted
                if cell.centred is None and value is not None and p is not None and p < alpha:
                    winner = cell.baseline if value > 0 else other
                    variant = "" if system.variant == "mixed" else f", {system.variant}"
                    yield VerdictChange(
                        code=ChangeCode.UNEQUAL_COUNTS,
                        subject=f"{system.name}{variant}",
                        was=f"{winner} text ranked higher",
                        now="no verdict",
                        numbers={f"Relative Δ of {cell.measure}": value, "adjusted p": p},
                    )
                    break


def _of_styles(report: StyleReport) -> Iterator[VerdictChange]:
    config = report.config
    alpha = round(1 - config.confidence_level, 12)
    for system in report.systems:
        row = next((r for r in system.rows if r.query_style == config.original_query), None)
        if system.finding is not None or row is None:
            continue
        limit = _SLIGHT * (row.friedman.n_styles - 1)
        clear = [c for c in row.against_original if c.p_adjusted < alpha]
        before = [c for c in clear if abs(c.difference) >= limit]
        ranks = system.ranks[:, system.rows.index(row)]
        test = friedman_test(ranks) if config.ties == "average" else row.friedman
        found = style_finding(
            ranks,
            report.data.doc_styles,
            test=test,
            against_original=row.against_original,
            margin=config.margin,
            confidence_level=config.confidence_level,
            rng=config.seed,
        )
        named = {*found.favoured, *found.silenced}
        if named != {c.first for c in before}:
            yield VerdictChange(
                code=ChangeCode.STYLE_RULE,
                subject=system.name,
                was=f"{_count(len(before))} ranked higher or lower",
                now=f"{_count(len(named))}, {found.code.value.replace('_', ' ')}",
                numbers={"p of all styles together": test.p_value, "smallest difference": limit},
            )


def _count(n: int) -> str:
    return f"{n or 'no'} style{'s' * (n != 1)}"


_WITHOUT_COST = {
    AdjustmentCode.IDLE: "there is no clear effect to remove",
    AdjustmentCode.CUTS: "it cuts the spread",
    AdjustmentCode.FAILS: "it does not cut the spread",
}


def _of_scores(report: AnswerBiasReport) -> Iterator[VerdictChange]:
    for scorer in report.scorers:
        change = scorer.auc_change
        if scorer.finding is not None or scorer.adjusted is None or change is None:
            continue
        now = answer_finding(scorer).adjustment
        if (change.estimate <= -AUC_LOSS or change.upper < 0) and now in _WITHOUT_COST:
            yield VerdictChange(
                code=ChangeCode.AUC,
                subject=scorer.name,
                was="the adjustment costs AUC",
                now=f"{_WITHOUT_COST[now]}, its AUC within systems is not known",
                numbers={"change of the AUC over all systems": change.estimate},
            )


def _of_mitigations(report: DebiasReport) -> Iterator[VerdictChange]:
    c = report.config
    for dataset in report.datasets:
        for outcome in dataset.outcomes[1:]:
            before = outcome.skew_at(c.skew_cutoff).after
            if before is None or before.method not in _METHODS:
                continue
            rows = (outcome.scores.of(row, c.skew_cutoff) for row in ("baseline", "other"))
            try:
                after = relative_delta_interval(*rows, confidence_level=c.confidence_level)
            except InsufficientDataError:
                after = None
            was, now = _standing(c, before), _standing(c, after)
            if was != now:
                yield VerdictChange(
                    code=ChangeCode.INTERVAL,
                    subject=f"{outcome.name} on {dataset.data.name}",
                    was=was,
                    now=now,
                    numbers={
                        "half width then": before.half_width,
                        **({} if after is None else {"now": after.half_width}),
                    },
                )


def _standing(config: DebiasConfig, found: Interval | None) -> str:
    if found is None:
        return "no interval"
    if found.excludes(config.target):
        return "the interval excludes the target"
    if found.half_width > _WIDE * config.tolerance:
        return "the interval is wide"
    return "the interval covers the target"
