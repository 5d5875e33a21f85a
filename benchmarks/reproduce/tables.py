"""The page of results, and its tables."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1] / "shared"))
from evidence import grid

VERDICTS = ("OK", "OKish", "CANNOT TELL", "FAIL", "SKIPPED")
PASSED = ("OK", "OKish")
HEAD = """\
# Do the papers' tables and figures come out?

Written by `python benchmarks/reproduce/run.py --page docs/results.md`; do not edit it by hand.

One entry for each table, figure and identity of the three papers that this library builds on: [K]
Dai et al., *Neural Retrievers are Biased Towards LLM-Generated Content*, KDD 2024; [R] Oosterhuis
et al., *Reliable Confidence Intervals for Information Retrieval Evaluation Using Generative A.I.*,
KDD 2024; [W] Cao, *Writing Style Matters*, WSDM 2025. Published figures are compared with ours,
made on data and models that can be had here, which are mostly not the papers'. A check is **OK**,
**OKish** (within a wider tolerance named beforehand) or **FAIL**; **CANNOT TELL** where the
interval is too wide for either; **SKIPPED** where something is missing: the same command runs it
once that is there.

Every check with its verdict, what was measured, its control and what is missing is in
[reproduction.csv](evidence/reproduction.csv), the published figures and ours in
[reproduction-figures.csv](evidence/reproduction-figures.csv)."""

GRADES = {
    "same data and model": "the published number, from the same data with the same model",
    "other data, interval excludes zero": (
        "the published sign or bound, on other data or with other models, by a 95 % interval that "
        "excludes zero, or lies inside the bounds, at every point asked"
    ),
    "sign only": (
        "a sign, an order, a shape or a nearby value, on other data or with other models, without "
        "an interval to exclude chance"
    ),
    "identity": (
        "arithmetic, a definition or a prompt of the paper; a simulation built to match a number"
    ),
}


def page(record: Mapping[str, Any]) -> str:
    """Return the results page, from a stored record."""
    rows = record["rows"]
    papers = [row for row in rows if not row["own"]]
    own = [row for row in rows if row["own"]]
    software = ", ".join(f"{k} {v}" for k, v in record["environment"].items() if k != "machine")
    parts = [
        HEAD,
        "## What came out",
        headline(papers),
        graded(papers),
        "The same for what no paper claims: figures of our own, measured earlier by other code, "
        "and what we ask of the library's methods and data beyond the papers:",
        graded(own),
        controls(rows),
        "## What failed",
        "\n".join(failures(rows)),
        "## What is missing",
        missing(rows),
        f"Made with {software} on {record['environment'].get('machine', 'a machine')}.",
    ]
    return "\n\n".join(parts) + "\n"


def tables(record: Mapping[str, Any]) -> dict[str, list[dict[str, object]]]:
    """Return every check, and every figure of both sides, as rows."""
    return {
        "reproduction": [check_row(record, row) for row in record["rows"]],
        "reproduction-figures": [
            row for name, entry in record["entries"].items() for row in figures(name, entry)
        ],
    }


def check_row(record: Mapping[str, Any], row: Mapping[str, Any]) -> dict[str, object]:
    entry = record["entries"][row["entry"]]
    control = row.get("control", {})
    return {
        "entry": row["entry"],
        "paper": entry["paper"],
        "what": entry["what"],
        "check": row["says"],
        "series": row["series"],
        "grade": row["grade"],
        "verdict": row["verdict"],
        "measured": row["why"],
        "passed by chance": row.get("chance", ""),
        "control": control.get("is", ""),
        "verdict of the control": control.get("verdict", ""),
        "why it fails": row.get("because", ""),
    }


def figures(name: str, entry: Mapping[str, Any]) -> list[dict[str, object]]:
    """Return a row for each figure of an entry; one that was not made says why."""
    rows: list[dict[str, object]] = []
    for side in ("published", "ours"):
        for series, found in entry[side].items():
            about = {"entry": name, "side": side, "series": series}
            if "why" in found:
                rows.append(about | {"not made": found["why"]})
                continue
            for i, x in enumerate(found["x"]):
                row = about | {"x": x, "y": found["y"][i]}
                if found.get("lower") and found["lower"][i] is not None:
                    row |= {"lower": found["lower"][i], "upper": found["upper"][i]}
                rows.append(row)
    return rows


def headline(rows: Sequence[dict]) -> str:
    """Say what the checks of the papers add up to, the hardest first."""
    same, interval, sign, identity = (
        Counter(row["verdict"] for row in rows if row["grade"] == grade) for grade in GRADES
    )
    by_chance = [row["chance"] for row in rows if "chance" in row]
    passed = sum(row["verdict"] in PASSED for row in rows if "chance" in row)
    told = [
        f"**On the papers' own data with their own models, {made(same)} of {same.total()} checks "
        f"could be made here{f', {agreed(same)} passed' if made(same) else ''}.**",
        f"On other data or with other models, {agreed(interval)} of {made(interval)} checks agree "
        f"with the paper by their interval, {interval['FAIL']} disagree, and for "
        f"{interval['CANNOT TELL']} the interval cannot tell. "
        f"Of the checks without an interval, {agreed(sign)} of {made(sign)} agree; "
        f"{passed} of {len(by_chance)} that ask for a sign or an order, where coins and random "
        f"orders would pass {sum(by_chance):.0f}.",
        f"{agreed(identity)} of {made(identity)} identities hold. A pass on an identity is not a "
        "reproduction.",
    ]
    return "\n\n".join(told)


def made(found: Counter) -> int:
    return found.total() - found["SKIPPED"]


def agreed(found: Counter) -> int:
    return sum(found[verdict] for verdict in PASSED)


def graded(rows: Sequence[dict]) -> str:
    """Return the verdicts by grade."""
    lines = []
    for grade, what in GRADES.items():
        found = Counter(row["verdict"] for row in rows if row["grade"] == grade)
        lines.append([grade, what, *(found[verdict] or "" for verdict in VERDICTS)])
    return grid(["grade", "what is asked", *VERDICTS], lines)


def controls(rows: Iterable[dict]) -> str:
    """Say how many checks reject what they must reject."""
    tried = [row["control"]["verdict"] for row in rows if "control" in row]
    rejected = sum(verdict in ("FAIL", "CANNOT TELL") for verdict in tried)
    return (
        "Every check that was made was also made on a control, which comes from something broken: "
        "labels shuffled, a random reranker, a constant encoder, values out of order, a wrong "
        f"formula. {rejected} of {len(tried)} controls were rejected."
    )


def failures(rows: Iterable[dict]) -> list[str]:
    """Return what failed in each entry, with the reason as far as it is known."""
    found: dict[tuple[str, str], list[dict]] = {}
    for row in rows:
        if row["verdict"] == "FAIL":
            why = " ".join(row.get("because", "not explained").split())
            found.setdefault((row["entry"], why), []).append(row)
    lines = []
    for (entry, why), failed in found.items():
        asked = "; ".join(dict.fromkeys(row["says"] for row in failed))
        lines.append(f"- **{entry}** ({asked}): {why.rstrip('.')}.")
    return lines or ["Nothing."]


def missing(rows: Iterable[dict]) -> str:
    """Say how many checks were skipped, and in which entries."""
    skipped = Counter(row["entry"] for row in rows if row["verdict"] == "SKIPPED")
    return (
        f"{skipped.total()} checks were skipped, for data sets that are not published or not here, "
        "models that are not here, answers of people and figures that are not printed: "
        f"{', '.join(skipped) or 'none'}."
    )
