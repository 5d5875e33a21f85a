"""docs/neighbours.md, from the results; no figure stands in this file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from neighbours_features import COLUMNS, FEATURES

sys.path.append(str(Path(__file__).resolve().parents[1] / "shared"))
from evidence import grid

HOW = """\
# Beside the neighbours

The same work by neighbouring packages and by this library, in one process, in turns. Written by
`python benchmarks/neighbours/run.py`; every figure is in `benchmarks/results/neighbours.json`.
Times are CPU times of this process. No machine is quite idle, so ratios below 1.5 are called
alike."""


def milliseconds(value: float) -> str:
    return f"{value:,.0f} ms" if value >= 10 else f"{value:.2g} ms"


def faster(ours: float, theirs: float) -> str:
    """Who is how many times as fast; less than a busy machine's noise is called alike."""
    ratio, who = (theirs / ours, "ours") if theirs >= ours else (ours / theirs, "theirs")
    if ratio < 1.5:
        return "alike"
    return f"{who}, {ratio:.1f}×" if ratio < 10 else f"{who}, {ratio:.0f}×"


def size(row: dict[str, Any]) -> str:
    return f"{row['queries']:,} queries"


def rankings(found: dict[str, Any]) -> str:
    prepared = [
        (
            f"{size(row)}, {row['sources']} sources",
            milliseconds(row["ms"]["ours"]),
            milliseconds(row["ms"]["ours, ties averaged"]),
            milliseconds(row["ms"]["pytrec_eval"]),
            milliseconds(row["ms"]["ir_measures"]),
            faster(row["ms"]["ours"], row["ms"]["pytrec_eval"]),
        )
        for row in found["prepared"]
    ]
    plain = [
        (
            f"{size(row)}, {what}",
            milliseconds(row[key]["ours"]),
            milliseconds(row[key]["pytrec_eval"]),
            faster(row[key]["ours"], row[key]["pytrec_eval"]),
        )
        for row in found["from dictionaries"]
        for what, key in (("two sources", "two sources"), ("all documents together", "overall"))
    ]
    difference = max(row["difference"] for row in found["prepared"])
    return f"""\
## NDCG@10 and MAP@10 per source: ir_measures, pytrec_eval

The values are the same: per query and source they differ by {
        difference:.1g} at most. The neighbours
score one source by giving them only its judgments, once per source. With everything prepared on all
sides (evaluators and dictionaries there, columns here), lists of 100 documents:

{
        grid(
            (
                "lists",
                "ours",
                "ours, ties averaged",
                "pytrec_eval",
                "ir_measures",
                "faster than pytrec_eval",
            ),
            prepared,
        )
    }

From plain dictionaries, nothing prepared. Here our side also builds its columns and the tags of all
100,000 documents, and theirs is given judgments already split by source:

{grid(("lists", "ours", "pytrec_eval", "faster"), plain)}

Run pytrec_eval or ir_measures where dictionaries are scored once without sources, and for the
measures that we lack."""


def ppi(found: dict[str, Any]) -> str:
    names = list(dict.fromkeys(row["method"] for row in found["coverage"]))
    cells = {(r["kind"], r["labels"], r["method"]): r for r in found["coverage"]}
    settings = dict.fromkeys((r["kind"], r["labels"]) for r in found["coverage"])
    rows = [
        (
            f"{kind}, {labels} labels",
            *(
                f"{100 * cells[kind, labels, name]['coverage']:.1f}; "
                f"{cells[kind, labels, name]['width']:.3g}"
                for name in names
            ),
        )
        for kind, labels in settings
    ]
    speed = [(name, f"{value:.2f} ms") for name, value in found["ms"].items()]
    return f"""\
## Intervals from few labels: ppi_py

With the formula and quantiles of ppi_py (`ppi_interval(…, lam=None, normal=True)`) we give its
bounds: they differ by {found["difference"]:.1g} at most. Our default is another method, regression
on the judge with t quantiles and a correction for skewness. How often 95 % intervals hold the
population mean, in percent, and their mean width, over {found["draws"]:,} simulated sets with
{found["pool"]:,} unlabelled items:

{grid(("labels", *names), rows)}

Where all labels agree, the intervals of ppi_py and of labels alone shrink to a point and are
counted as such (at 90 % and 15 labels that is one set in five). Ours
is told the range of verdicts (`bounds=(0, 1)`). Widths compare only where both methods hold their
level.

{grid(("one interval, 50 labels", "time"), speed)}"""


def ragas(found: dict[str, Any]) -> str:
    rows = [
        (
            r["system"],
            r["words"],
            f"{100 * r['correct']:.0f} %",
            f"{r['similarity of correct answers']:.3f}",
        )
        for r in found["systems"]
    ]
    order = sorted(found["systems"], key=lambda r: r["similarity of correct answers"])
    worst, best = order[0], order[-1]
    apart = best["similarity of correct answers"] - worst["similarity of correct answers"]
    estimate, low, high = (f"{100 * v:.1f}" for v in found["interval"])
    return f"""\
## A score alone: ragas

ragas' semantic similarity of {found["answers"]} answers of EVOUNA (NQ), with the same encoder on
both sides (all-MiniLM-L6-v2): the values differ by {found["difference"]:.1g} at most. `evaluate`
takes {found["seconds"]["ragas"]:.1f} s of CPU, `reference_similarity`, which encodes each distinct
text once, {found["seconds"]["ours"]:.1f} s.

The mean score is {found["mean"]:.3f}. What it cannot tell: how many answers are correct (people
say {100 * found["correct"]:.1f} %; from {found["labels"]} of their labels our interval, with this
score as the judge, is {estimate} % [{low}, {high}]), how sure the mean is, and how much of it is
style. By system:

{grid(("system", "words per answer", "correct", "similarity of its correct answers"), rows)}

Equally correct, those of {best["system"]} ({best["words"]} words) score {apart:.3f} above those of
{worst["system"]} ({worst["words"]} words); [Audit a correctness score](answers.md) measures that,
with intervals, and takes off what length explains. What ragas has and we lack is in the table
below."""


def features(versions: dict[str, str]) -> str:
    rows = [(what, *marks.split()) for what, marks in FEATURES]
    named = ("pytrec-eval-terrier", "ir-measures", "ppi-python", "ragas")
    which = ", ".join(f"{name} {versions[name]}" for name in named if name in versions)
    return f"""\
## Who offers what

Y yes, p in part, · not found; by reading {which}.

{grid(("", *COLUMNS), rows)}"""


def page(found: dict[str, Any]) -> str:
    """Markdown of the whole page."""
    machine = found["environment"]
    parts = [
        HOW,
        f"Machine: {machine['machine']}, Python {machine['python']}, numpy {machine['numpy']}, "
        f"threads: {found['threads']}; load average {found['load_average']:.1f} at the end.",
        rankings(found["rankings"]),
        ppi(found["ppi"]),
        *([ragas(found["ragas"])] if "ragas" in found else []),
        features(machine),
    ]
    return "\n\n".join(parts) + "\n"
