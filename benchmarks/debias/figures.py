"""Key figures of reports, the bar they are held to, and what follows in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rag_sourcebias.core.values import Interval
from rag_sourcebias.debias.data import DebiasDataset, DebiasOutcome, DebiasReport

SKEW_AT, QUALITY_AT = 5, 10
NEAR_ZERO = 3.0  # points of Relative Δ
LOSS = 1.0  # percent of human-only NDCG
BAR = (
    f"|Relative Δ NDCG@{SKEW_AT}| < {NEAR_ZERO:g} with an interval that holds 0, human-only "
    f"NDCG@{QUALITY_AT} down by at most {LOSS:g} %, mixed NDCG@{QUALITY_AT} not down"
)


def ends(interval: Interval | None, digits: int = 2) -> list[float] | None:
    """Estimate, lower and upper end."""
    if interval is None:
        return None
    return [round(float(x), digits) for x in (interval.estimate, interval.lower, interval.upper)]


def rows(report: DebiasReport) -> list[dict]:
    """One row per LLM source and system; the unchanged system has no verdict."""
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
    return found | {"met": met(found)}


def met(found: Mapping) -> dict:
    """Which parts of the bar a row meets."""
    delta = found["relative_delta"][str(SKEW_AT)]
    change = {name: q["percent"] for name, q in found["quality_change"].items()}
    parts = {
        "near zero": delta is not None and abs(delta[0]) < NEAR_ZERO,
        "interval holds 0": delta is not None and delta[1] <= 0 <= delta[2],
        "human-only kept": change["human-only"] is not None and change["human-only"] >= -LOSS,
        "mixed not down": change["mixed"] is not None and change["mixed"] >= 0,
    }
    return parts | {"all": all(parts.values())}


def findings(tables: Mapping[str, Sequence[dict]], home: str) -> list[str]:
    """What holds on the data set of the kind fitted on, and which of it transfers, in words."""
    verdicts = {
        data: {
            (r["system"], r["source"]): r
            for r in table
            if "met" in r and r["kind"] != "training"  # of these, weights are told, not runs
        }
        for data, table in tables.items()
    }
    at_home = verdicts.get(home, {})
    reached = [name for (name, _), r in at_home.items() if r["met"]["all"]]
    words = [
        f"{home}: {_listed(reached)} of {len(at_home)} systems meet the bar ({BAR})."
        if reached
        else f"{home}: no system of {len(at_home)} meets the bar ({BAR})."
    ]
    words += [f"{home}: {_short(r)}" for r in at_home.values() if not r["met"]["all"]]
    seen = {r["pairs_seen"] for r in at_home.values()} - {0}
    if seen:
        words.append(
            f"{home}: {max(seen):,} of its judged pairs were among those fitted on, except for the "
            "systems named unseen pairs, which were fitted on the few others"
        )
    for name in dict.fromkeys(name for name, _ in at_home):
        elsewhere = _transfer(name, verdicts, tables, home)
        if elsewhere:
            words.append(f"{name}, elsewhere: {elsewhere}")
    return words


def _transfer(name: str, verdicts: Mapping, tables: Mapping, home: str) -> str:
    parts = []
    for data, found in verdicts.items():
        for (system, source), r in found.items():
            if system != name or data == home:
                continue
            before = _before(tables[data], source)
            after = r["relative_delta"][str(SKEW_AT)][0]
            moved = "nearer to 0" if abs(after) < abs(before) - 0.5 else "no nearer to 0"
            verdict = "meets the bar" if r["met"]["all"] else f"{moved}, misses: {_missed(r)}"
            parts.append(f"{data} ({source}) {before:+.1f} → {after:+.1f}, {verdict}")
    return "; ".join(parts)


def _before(table: Iterable[dict], source: str) -> float:
    return next(
        r["relative_delta"][str(SKEW_AT)][0]
        for r in table
        if r["kind"] == "unchanged" and r["source"] == source
    )


def _short(r: Mapping) -> str:
    delta = shown(r["relative_delta"][str(SKEW_AT)])
    return f"{r['system']}: Relative Δ {delta}, misses: {_missed(r)}"


def _missed(r: Mapping) -> str:
    """Parts of the bar that are not met, quality with its change."""
    change = r["quality_change"]
    told = {
        "human-only kept": f"human-only kept ({change['human-only']['percent']} %)",
        "mixed not down": f"mixed not down ({change['mixed']['percent']} %)",
    }
    missed = [part for part, ok in r["met"].items() if not ok and part != "all"]
    return ", ".join(told.get(part, part) for part in missed)


def _listed(names: Sequence[str]) -> str:
    return f"{len(names)} ({'; '.join(names)})"


def table(tables: Mapping[str, Sequence[dict]]) -> str:
    """Everything as a Markdown table."""
    lines = [
        "| data | LLM source | system | Relative Δ NDCG@5 | change | human-only NDCG@10 | "
        "LLM-only | mixed | bar met |",
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
                "" if "met" not in r else "yes" if r["met"]["all"] else "no",
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
