"""The validity page and its table, from the stored figures."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1] / "shared"))
from evidence import grid

RESULTS = Path(__file__).parents[1] / "results"
PARTS = {
    "source": "Rankings: does it favour a source?",
    "holes": "Judgments with holes: are they taken for a skew?",
    "copies": "Copies of one source: is it taken for a skew?",
    "dependence": "Topics and documents of uneven sizes: does it favour a source?",
    "change": "Before and after: did the skew change?",
    "style": "Styles: does it favour some?",
    "answers": "Correctness scores: what do they reward?",
}
KINDS = {
    "size": "says so though there is nothing",
    "rejection": "p below .05 though there is nothing",
    "favours": "“favours” though there is nothing",
    "wrong sign": "“favours” the wrong one",
    "alike at margin": "“alike” with the truth on the margin",
    "coverage": "intervals that hold the truth",
    "power": "finds what was planted",
    "refusal": "refuses",
}
HEAD = """\
# Worlds of known truth

The verdicts on rankings, changes, styles and correctness scores are tried in simulated worlds where
the truth is known, through the function that a user calls. In a null world there is nothing to
find; its twin has an effect planted. The worlds are ours: they do not show what happens in data
with a dependence that is not named. A rate is compared with its bar by an exact binomial test at
.001: **a bar is missed when a true rate on its good side is rejected**. The bar of a power is nine
tenths of the oracle test's, which knows the null distribution (.9 where there is no oracle, .8 for
*useless* and popular documents; with holes what stands at the world); refused runs are counted on
their own and not as found or covered.

Below, the worst figure of each kind; all of them, by world and number of queries, are in
[validity.csv](evidence/validity.csv). Figures without a bar are there for comparison: refusals
below 100 queries, where 85 % of the queries are at zero, and of all but rankings; the pooled AUC,
which decides nothing; and *useless* below 400 questions."""


def load(part: str) -> dict[str, Any]:
    """Read the figures of one part; empty where it was never run."""
    path = RESULTS / f"validity_{part}.json"
    return json.loads(path.read_text()) if path.exists() else {"runs": 0, "rows": []}


def written() -> str:
    """Return the page."""
    parts = [HEAD]
    for part, title in PARTS.items():
        rows = [row for row in load(part)["rows"] if row["runs"]]
        if not rows:
            continue
        barred = [row for row in rows if row["bar"] is not None]
        missed = [row for row in barred if row["met"] is False]
        parts += [
            f"## {title}",
            f"{draws(rows)} draws per cell; {len(barred)} figures with a bar, "
            f"{len(missed)} of them missed.",
            *about(rows),
            summary(rows),
            *pooled(rows),
            *one_by_one(rows),
            *(f"Missed: {label(row)}, n = {row['n']}: {row['rate']:.3f}." for row in missed),
        ]
    return "\n\n".join(parts) + "\n"


def draws(rows: list[dict[str, Any]]) -> str:
    """Say how often a world and number of queries was drawn, from the least to the most."""
    most: dict[tuple[str, int], int] = {}
    for row in rows:
        cell = row["world"], row["n"]
        most[cell] = max(row["runs"], most.get(cell, 0))
    return " to ".join(f"{n:,}" for n in sorted({min(most.values()), max(most.values())}))


def about(rows: list[dict[str, Any]]) -> list[str]:
    """Say what the worlds are, where their names do not."""
    known = {row["world"]: row["about"] for row in rows if row.get("about")}
    return ["\n".join(f"- *{world}*: {words}" for world, words in known.items())] if known else []


def summary(rows: list[dict[str, Any]]) -> str:
    """Return the worst figure of each kind, among those with a bar where some have one."""
    lines = []
    for kind, words in KINDS.items():
        chosen = [row for row in rows if row["kind"] == kind]
        barred = [row for row in chosen if row["bar"] is not None]
        if not chosen:
            continue
        worst = min(barred or chosen, key=margin if kind == "power" else badness)
        bar = "none" if worst["bar"] is None else f"{worst['bar']:.3g}"
        if worst["bar"] is not None:
            bar = f"{'at least' if worst['at_least'] else 'at most'} {bar}"
        lines.append(
            [words, len(chosen), f"{worst['rate']:.3f}", bar, f"{label(worst)}, n = {worst['n']}"]
        )
    return grid(["figure", "cells", "worst", "bar", "where"], lines)


def pooled(rows: list[dict[str, Any]]) -> list[str]:
    """Say how often the pooled AUC, which decides nothing, would mislead."""
    misled = [row["rate"] for row in rows if row.get("of") == "pooled AUC"]
    if not misled:
        return []
    return [
        "The AUC over all systems together, which decides nothing here, would have said of a score "
        f"of style alone that it tells right from wrong in up to {max(misled):.3f} of draws. "
        "With 60 questions the unfairness is refused in most draws: too few are answered correctly "
        "by all systems."
    ]


def one_by_one(rows: list[dict[str, Any]]) -> list[str]:
    """Say how often copies that are counted one by one make a blind ranker look biased."""
    worst: dict[int, float] = {}
    for row in rows:
        if row.get("of", "").endswith("one by one"):
            worst[row["n"]] = max(row["rate"], worst.get(row["n"], 0.0))
    if not worst:
        return []
    rates = ", ".join(f"{rate:.3f} (n = {n})" for n, rate in worst.items())
    return [
        "Counted one by one the copies make this ranker, which knows no source, one that favours a "
        f"source in up to {rates} of draws."
    ]


def margin(row: dict[str, Any]) -> float:
    """How far a power lies above its bar, which differs between cells."""
    return row["rate"] - (row["bar"] or 0.0)


def badness(row: dict[str, Any]) -> float:
    """Order rates from the worst to the best."""
    return row["rate"] if row["at_least"] else -row["rate"]


def label(row: dict[str, Any]) -> str:
    """Return the world of a figure, and what of it was counted."""
    parts = [row["world"]]
    if "styles" in row:
        parts.append(f"{row['styles']} styles")
    if row.get("of"):
        parts.append(row["of"])
    return ", ".join(parts)


def table() -> list[dict[str, object]]:
    """Return every figure as a row."""
    return [
        {
            "part": part,
            "figure": KINDS[row["kind"]],
            "world": row["world"],
            "styles": row.get("styles", ""),
            "of": row.get("of", ""),
            "n": row["n"],
            "rate": row["rate"],
            "runs": row["runs"],
            "oracle": row.get("oracle", ""),
            "bar": "" if row["bar"] is None else row["bar"],
            "met": "" if row["met"] is None else row["met"],
        }
        for part in PARTS
        for row in load(part)["rows"]
        if row["runs"]
    ]
