"""Key figures of reports, and what their intervals say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rag_sourcebias.core.values import Interval
from rag_sourcebias.debias.data import (
    DebiasConfig,
    DebiasDataset,
    DebiasOutcome,
    DebiasReport,
)

SKEW_AT, QUALITY_AT = 5, 10
TOLERANCE = DebiasConfig().tolerance


def ends(interval: Interval | None, digits: int = 2) -> list[float] | None:
    """Estimate, lower and upper end."""
    if interval is None:
        return None
    return [round(float(x), digits) for x in (interval.estimate, interval.lower, interval.upper)]


def rows(report: DebiasReport) -> list[dict]:
    """One row per LLM source and system."""
    kinds = {method.name: method.kind for method in report.methods}
    return [
        {"source": data.other, "kind": kinds.get(outcome.name, "unchanged")} | row(outcome)
        for data in report.datasets
        for outcome in data.outcomes
    ]


def row(outcome: DebiasOutcome) -> dict:
    skew = {s.cutoff: s for s in outcome.skew}
    found = {
        "system": outcome.name,
        "queries": len(outcome.scores.query_ids),
        "relative_delta": {str(k): ends(s.after or s.before) for k, s in skew.items()},
    }
    if not outcome.quality:
        found["quality"] = {
            name: round(100 * float(outcome.scores.of(name, QUALITY_AT).mean()), 2)
            for name in ("human-only", "llm-only", "mixed")
        }
        return found
    found["change_of_relative_delta"] = ends(skew[SKEW_AT].change)
    found["p_adjusted"] = skew[SKEW_AT].p_adjusted
    quality = {q.quality: q for q in outcome.quality if q.cutoff == QUALITY_AT}
    found["quality"] = {name: round(100 * q.after, 2) for name, q in quality.items()}
    found["quality_change"] = {
        name: {
            "percent": None if q.relative is None else round(q.relative, 2),
            "points": None if q.difference is None else [
                round(100 * x, 2) for x in ends(q.difference, 6)
            ],
            "loss_excluded": bool(q.test and q.test.passed),
        }
        for name, q in quality.items()
    }  # fmt: skip
    found["pairs_seen"] = outcome.n_seen
    return found


def verdict(delta: Sequence[float] | None) -> str:
    """What an interval of Relative Δ says; its estimate alone says nothing."""
    if not delta:
        return "–"
    _, lower, upper = delta
    if max(-lower, upper) <= TOLERANCE:
        return f"alike within ±{TOLERANCE:g}"
    if lower > 0:
        return "favours human text"
    return "favours LLM text" if upper < 0 else "cannot tell"


def table(tables: Mapping[str, Sequence[dict]]) -> str:
    """Everything as a Markdown table."""
    lines = [
        "| data | LLM source | system | Relative Δ NDCG@5 | change | human-only NDCG@10 | "
        "LLM-only | mixed | verdict |",
        f"|{'---|' * 9}",
    ]
    for data, found in tables.items():
        for r in found:
            change = r.get("quality_change", {})
            cells = [
                data,
                r["source"],
                r["system"],
                shown(r["relative_delta"][str(SKEW_AT)]),
                shown(r.get("change_of_relative_delta")),
                *(
                    f"{r['quality'][q]:.1f}" + (f" ({_percent(change[q])})" if q in change else "")
                    for q in ("human-only", "llm-only", "mixed")
                ),
                verdict(r["relative_delta"][str(SKEW_AT)]),
            ]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _percent(change: Mapping) -> str:
    return "–" if change["percent"] is None else f"{change['percent']:+.1f} %"


def shown(values: Sequence[float] | None) -> str:
    if not values:
        return "–"
    return f"{values[0]:+.1f} [{values[1]:+.1f}, {values[2]:+.1f}]"


def data_of(reports: Iterable[DebiasReport]) -> list[DebiasDataset]:
    return [data for report in reports for data in report.datasets]
