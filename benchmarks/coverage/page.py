"""docs/coverage.md and its tables, from the results."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import bars

sys.path.append(str(Path(__file__).resolve().parents[1] / "shared"))
from evidence import grid

Row = Mapping[str, object]
# What other scripts of this folder write, each with bars of its own or cells that are told below.
PARTS = ("differences", "systems", "judges", "labels")


def parts(folder: Path) -> dict[str, dict]:
    """Return what the other scripts of this folder wrote."""
    return {
        name: json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
        for name in PARTS
        if (folder / f"{name}.json").exists()
    }


def promised(found: dict, real: dict | None) -> list[dict]:
    """Return every bar of run.py, in the order of the table."""
    return [*found["bars"], *(real["bars"] if real else [])]


def page(found: dict, real: dict | None, figures: dict, *, folder: Path, at: Path) -> str:
    """Return the page; its picture is referred to relative to it."""
    picture = Path(os.path.relpath(folder.resolve(), at.resolve().parent)).as_posix()
    others = parts(folder)
    failed = [
        tail_note(found["skewed"]),
        *(real_note(real["sets"]) if real else []),
        crc_note(figures["figure 2"]),
        few_labels_note(figures["figure 2"]),
        *(difference_notes(others["differences"]) if "differences" in others else []),
        *(bar_notes(others)),
    ]
    written = [
        INTRODUCTION,
        "## What was promised, and what came out",
        bar_table(promised(found, real), others),
        f"![Width and coverage against the number of labels]({picture}/coverage-labels.svg)",
        LABELS_NOTE,
        "## What failed, and where intervals mislead",
        "\n".join(f"- {' '.join(note.split())}" for note in failed),
        "## The tables",
        TABLES,
        f"Made by `python benchmarks/coverage/run.py` with {facts(found['environment'])}.",
    ]
    return "\n\n".join(written) + "\n"


INTRODUCTION = """# Do the intervals cover?

A 95 % interval should hold the true value in 95 of 100 samples, and be as narrow as that allows.
Here that is counted: on simulated judged rankings, whose truth is known, and on real data sets
with a human value for every item, resampled as if they were a population. *Population* is the
mean of all items that could have been drawn, *pool* that of the items at hand. [R] is Oosterhuis
et al., *Reliable Confidence Intervals for Information Retrieval Evaluation Using Generative
A.I.*, KDD 2024. Coverage of 500 runs is known to ± .02, of 1,500 to ± .01. Where a bar is a true
rate, it is missed when an exact test rejects the rate at .001.

The constants of the default were chosen while looking at the real sets, so that coverage there is
no independent confirmation of them.

Figures are of commit `c7949f66`. The default is computed more plainly since, and covers less from
few labels (10, unbounded normal values: .935, before .955): not counted anew."""

LABELS_NOTE = """\
Coverage below .7 is drawn at .7; the dotted green line holds CRC to the mean of the unlabelled
queries, which it is meant for. Below 10 labels the default gives no interval here, as the scale
of DCG is not known."""

TABLES = """- [coverage-methods.csv](evidence/coverage-methods.csv): every method on four sources of
  judged rankings, 3 to 112 labels ([R] Fig. 2)
- [coverage-simulated.csv](evidence/coverage-simulated.csv): the default beside labels alone and PPI
  on four simulated judges; judges that say little or nothing; values with a long tail; single
  queries; labels spread over documents
- [coverage-real.csv](evidence/coverage-real.csv): the default on every real set
- [coverage-differences.csv](evidence/coverage-differences.csv): differences of two systems, beside
  an oracle that knows the slope (`differences.py`)
- [coverage-systems.csv](evidence/coverage-systems.csv): all differences of several systems at once
  (`systems.py`)
- [coverage-judges.csv](evidence/coverage-judges.csv): several judges beside their mean and the
  median judge (`judges.py`)
- [coverage-plans.csv](evidence/coverage-plans.csv): pilots from which `labels` says how many labels
  are needed, beside an oracle (`labels.py`)"""


def tables(found: dict, real: dict | None, figures: dict, *, folder: Path) -> dict[str, list[Row]]:
    """Return the rows of every table."""
    others = parts(folder)
    simulated = ("default", "odd judges", "skewed", "per query", "documents")
    made: dict[str, list[Row]] = {
        "coverage-methods": figures["figure 2"],
        "coverage-simulated": [{"part": part} | row for part in simulated for row in found[part]],
    }
    if real is not None:
        made["coverage-real"] = [row for row in real["sets"] if row["method"] == "regression"]
    for name, stored in others.items():
        kind = "plans" if name == "labels" else name
        made[f"coverage-{kind}"] = stored["plans" if name == "labels" else "cells"]
    return made


def facts(environment: dict) -> str:
    return ", ".join(f"{k} {v}" if k != "machine" else v for k, v in environment.items())


def bar_table(rows: Sequence[dict], others: Mapping[str, dict]) -> str:
    """Return every bar with what was measured."""
    lines = [
        [row["what"], f"{row['value']:.4g}", row["target"], "yes" if row["met"] else "NO"]
        for row in rows
    ]
    for name, title in (
        ("systems", "several systems"),
        ("judges", "several judges"),
        ("labels", "plans of labels"),
    ):
        for row in others.get(name, {}).get("bars", ()):
            met = f"NO: {cells(row['missed'])}" if row["missed"] else "yes"
            lines.append([f"{title}: {row['what']}", f"{row['value']:.4g}", "", met])
    return grid(["what", "worst", "bar", "met"], lines)


def cells(missed: Sequence[str]) -> str:
    return f"{len(missed)} cell{'s' if len(missed) > 1 else ''}"


def tail_note(rows: Sequence[dict]) -> str:
    """Say in how many cells of skewed values coverage is too low."""
    below, alone = (
        sum(bars.rejected(row) for row in rows if row["method"] == method)
        for method in ("regression", "labels")
    )
    return (
        "**Long tails.** Of simulated lognormal values, of which few labels show the tail, the "
        f"default covers less than .94 in {below} of {len(rows) // 2} cells, labels alone in "
        f"{alone}. No finite interval can hold the mean of every such population (Bahadur & Savage "
        "1956); `interval` warns where the labels are skewed and no `bounds` are given."
    )


def real_note(rows: Sequence[dict]) -> list[str]:
    """Name the real sets in which the default covers too little."""
    low = [
        f"{row['set']} ({row['target']}, {row['n']} labels: {row['coverage']:.3f})"
        for row in rows
        if row["method"] == "regression" and bars.rejected(row)
    ]
    if not low:
        return []
    return [
        f"**Real sets.** The true rate is below .94 on {'; '.join(low)}: most of its queries "
        "have a "
        "low DCG, a few a very high one, and few labels often show none of them."
    ]


def crc_note(rows: Sequence[dict]) -> str:
    """Say what CRC for a whole data set covers."""

    def span(method: str) -> str:
        found = [row["coverage"] for row in rows if row["method"] == method and row["n"] >= 10]
        return f"{min(found):.2f} to {max(found):.2f}"

    return (
        "**CRC for a data set**, as [R] define it, has no term for the error of the test set: from "
        f"10 labels on it covers the population mean in {span('crc-paper')} of runs, the mean of "
        f"the unlabelled queries in {span('crc-paper, unlabelled')}."
    )


def few_labels_note(rows: Sequence[dict]) -> str:
    """Say where the methods that tune on the labels cover too little."""
    lowest = {
        method: min(
            row["coverage"] for row in rows if row["method"] == method and row["n"] in (10, 20)
        )
        for method in ("ppi++", "bootstrap", "regression")
    }
    return (
        f"**Few labels.** With 10 or 20 labels PPI++ covers as little as {lowest['ppi++']:.3f} and "
        f"the bootstrap of labels {lowest['bootstrap']:.3f}; the default's lowest there is "
        f"{lowest['regression']:.3f}."
    )


def difference_notes(found: dict) -> list[str]:
    """Say where the difference of two systems is not covered, not found, or cannot be both."""
    planted, worlds = found["cells"], found["worlds"]
    few = sum(map(bars.found_too_rarely, planted))
    low = [
        row
        for row in (*planted, *worlds)
        for target in ("coverage", "pool")
        if bars.rejected(row | {"coverage": row[target]})
    ]
    impossible = [row for row in planted if row["at most"] < 0.9 * row["oracle"]]
    there = min(row["coverage there"] for row in impossible)
    return [
        f"**Two systems.** Of {len(planted)} cells with a planted difference, "
        f"{len(planted) - few} find "
        "it in at least nine tenths of the draws in which an oracle does that knows the "
        f"population's slope. Over these and {len(worlds):,} cells of known difference, null ones "
        f"among them, {len(low)} of {2 * (len(planted) + len(worlds)):,} coverages are below .94.",
        f"In {len(impossible)} of those {len(planted)} cells no rule can find the difference so "
        "often and also cover .94 in the world without a difference whose labels look most "
        "alike: there "
        f"our intervals cover as little as {there:.2f}. Where a judge's errors are rare, far and "
        "in favour of one system, few labels cannot tell, and an interval may say that systems "
        "differ "
        "where they do not.",
    ]


def bar_notes(others: Mapping[str, dict]) -> list[str]:
    """Name the bars of other scripts that are missed."""
    return [
        f"**{name.capitalize()}.** Missed in {cells(row['missed'])}: {row['what']} "
        f"({'; '.join(row['missed'][:2])}{' …' if len(row['missed']) > 2 else ''})."
        for name, stored in others.items()
        for row in stored.get("bars", ())
        if row["missed"]
    ]
