"""The validity page, from the stored figures."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parents[1] / "results"
PARTS = {
    "source": "Rankings: does it favour a source?",
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


def load(part: str) -> dict[str, Any]:
    """Read the figures of one part; empty where it was never run."""
    path = RESULTS / f"validity_{part}.json"
    return json.loads(path.read_text()) if path.exists() else {"runs": 0, "rows": []}


def written() -> str:
    """Return the page."""
    lines = [
        "# Worlds of known truth",
        "",
        "The verdicts on rankings, changes, styles and correctness scores are tried in simulated "
        "worlds where the truth is known, through the function that a user calls. In a null world "
        "there is nothing to find; its twin has an effect planted. The worlds are ours: they do "
        "not show what happens in data with a dependence that is not named. A rate is compared "
        "with its bar by an exact binomial test at .001: **a bar is missed when a true rate on its "
        "good side is rejected**. The bar of a power is nine tenths of the oracle test's, which "
        "knows the null distribution; refused runs are counted on their own and not as found or "
        "covered.",
        "",
        "Figures without a bar are there for comparison: refusals below 100 queries, where 85 % of "
        "the queries are at zero, and of all but rankings; the pooled AUC, which decides nothing; "
        "and *useless* below 400 questions. Where no oracle stands beside it, the bar is .9, and "
        ".8 for *useless*.",
        "",
    ]
    for part, title in PARTS.items():
        data = load(part)
        if not data["rows"]:
            continue
        rows = data["rows"]
        barred = [row for row in rows if row["bar"] is not None and row["runs"]]
        missed = [row for row in barred if row["met"] is False]
        lines += [
            f"## {title}",
            "",
            f"{data['runs']:,} draws per cell; {len(barred)} figures with a bar, "
            f"{len(missed)} of them missed.",
            "",
            *_about(rows),
            *_tables(rows),
        ]
    return "\n".join(lines).rstrip() + "\n"


def _about(rows: list[dict[str, Any]]) -> list[str]:
    known = {row["world"]: row["about"] for row in rows if row.get("about")}
    return [*(f"- *{world}*: {about}" for world, about in known.items()), ""] if known else []


def _tables(rows: list[dict[str, Any]]) -> list[str]:
    """Return one table per kind of figure: a row per world, a column per number of queries."""
    lines: list[str] = []
    for kind, words in KINDS.items():
        chosen = [row for row in rows if row["kind"] == kind and row["runs"]]
        if not chosen:
            continue
        sizes = sorted({row["n"] for row in chosen})
        cells: dict[str, dict[int, str]] = defaultdict(dict)
        for row in chosen:
            cells[_label(row)][row["n"]] = _cell(row)
        bars = sorted({row["bar"] for row in chosen if row["bar"] is not None})
        bar = ""
        if kind == "power":
            bar = " (beside it the oracle’s)"
        elif bars:
            bar = f" (bar: {'at least' if chosen[0]['at_least'] else 'at most'} {bars[0]:g})"
        lines += [
            f"**{words[0].upper()}{words[1:]}**{bar}",
            "",
            "| world | " + " | ".join(f"n = {n}" for n in sizes) + " |",
            "|---|" + "---:|" * len(sizes),
            *(
                f"| {name} | " + " | ".join(found.get(n, "–") for n in sizes) + " |"
                for name, found in cells.items()
            ),
            "",
        ]
    return lines


def _label(row: dict[str, Any]) -> str:
    parts = [row["world"]]
    if "styles" in row:
        parts.append(f"{row['styles']} styles")
    if row.get("of"):
        parts.append(row["of"])
    return ", ".join(parts)


def _cell(row: dict[str, Any]) -> str:
    text = f"{row['rate']:.3f}"
    if row["kind"] == "power" and "oracle" in row:
        text += f" ({row['oracle']:.3f})"
    return f"**{text} missed**" if row["met"] is False else text
