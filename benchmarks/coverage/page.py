"""docs/coverage.md, from the results."""

from __future__ import annotations

import json
import os
from pathlib import Path
from statistics import mean

import bars
import decisions
import plots
import simulated
import sweeps


def promised(found: dict, real: dict | None, figures: dict, *, folder: Path | None) -> list[dict]:
    """Every bar, in the order of the first table."""
    record = _oracles(folder)
    return [
        *found["bars"],
        *(real["bars"] if real else []),
        *(bars.of_oracles(record, real["sets"]) if real and record else []),
        *figures["bars"],
    ]


def _oracles(folder: Path | None) -> dict | None:
    """What oracles.py wrote, if it did."""
    stored = folder / "oracles.json" if folder else None
    return json.loads(stored.read_text("utf-8")) if stored and stored.exists() else None


def page(found: dict, real: dict | None, figures: dict, *, folder: Path, at: Path) -> str:
    """Markdown of the whole page; pictures are referred to relative to it."""
    picture = Path(os.path.relpath(folder.resolve(), at.resolve().parent)).as_posix()
    parts = [
        INTRODUCTION,
        "## What is promised, and what was measured",
        bars.table(promised(found, real, figures, folder=folder)),
        "## Methods and number of labels",
        f"![Width and coverage against the number of labels]({picture}/coverage-labels.svg)",
        LABELS_NOTE,
        *(labels_table(figures["figure 2"], source) for source in sources(figures)),
        "## Simulated judges",
        SIMULATOR_NOTE,
        table_1(found["table 1"]),
        default_table(found["default"]),
        "Judges that say little or nothing (TREC-DL preset, 112 unlabelled; population, pool):",
        odd_table(found["odd judges"]),
        skewed_note(found["skewed"]),
        skewed_table(found["skewed"]),
    ]
    if real is not None:
        parts += [
            "## Real data, resampled",
            f"![Coverage on real sets]({picture}/coverage-real.svg)",
            REAL_NOTE,
            families_table(real["sets"]),
            "Every set, default method, population mean; coverage / mean width:",
            sets_table(real["sets"]),
        ]
        if record := _oracles(folder):
            parts += [widths_note(record), *widths_table(record), WORLDS_NOTE, worlds_table(record)]
            parts += [worlds_end(record), lowest_note(record)]
    for name, part in (
        ("differences", decisions.differences_part),
        ("systems", decisions.systems_part),
        ("judges", decisions.judges_part),
        ("labels", decisions.labels_part),
        ("swayed", decisions.swayed_part),
    ):
        stored = folder / f"{name}.json"
        if stored.exists():
            parts += part(json.loads(stored.read_text(encoding="utf-8")))
    parts += [
        "## Worse and better judges",
        f"![Width and coverage with worse and better judges]({picture}/coverage-judges.svg)",
        JUDGES_NOTE,
        "## Single queries",
        f"![Intervals of single queries]({picture}/coverage-queries.svg)",
        QUERIES_NOTE,
        per_query_table(found["per query"]),
        "## Labels spread over documents",
        DOCUMENTS_NOTE,
        documents_table(found["documents"]),
        "## The perturbed gain",
        f"![Expected gain against lambda]({picture}/coverage-gains.svg)",
        "Gains 0, 1, 3, 7, 15 under the perturbation of [R] Eq. 16–19 (their Fig. 1).",
        "## Made by",
        f"`python benchmarks/coverage/run.py` with {facts(found['environment'])}.",
    ]
    return "\n\n".join(parts) + "\n"


INTRODUCTION = """# Do the intervals cover?

A 95 % interval should hold the true value in 95 of 100 samples, and be as narrow as that allows.
Here that is counted: on simulated judged rankings, whose truth is known, and on real data sets with
a human value for every item, resampled as if they were a population. Every run draws fresh data.
[R] is Oosterhuis et al., *Reliable Confidence Intervals for Information Retrieval Evaluation Using
Generative A.I.*, KDD 2024. Coverage of 500 runs is known to ± .02, of 1,500 to ± .01."""

LABELS_NOTE = """Coverage below .7 is drawn at .7. The dotted green line holds CRC to the mean of
the unlabelled queries, which it is meant for; its interval leaves out their own sampling error.
Below 10 labels the default gives no interval here, as the scale of DCG is not known. Coverage /
mean width of the population mean (500 runs; queries with 112 unlabelled ones, Robust04 125):"""

SIMULATOR_NOTE = """The presets meet Table 1 of [R] (`benchmarks/coverage/simulator.py`): mean
DCG@10 by human / judge labels."""

REAL_NOTE = """One dot for each set; dotted line: .93. Items are drawn with replacement, questions
as a whole where answers share one; cells of the default below .94 were measured again with
5,000 fresh runs. With `bounds` the range of the human values was given. Without, it is taken
from the values seen where most labels sit at one end of their scale, such as SummEval fluency
and consistency: there few labels do not show how far the others fall. The constants of the score
interval (two pseudo-items with a judge; 75 % of the largest variance and fewer than 20 labels away
from the end for nearly two-valued labels) and how the correction for skewness fades with the number
of labels were chosen while looking at these sets, so that coverage here is no independent
confirmation of them."""

WORLDS_NOTE = """With room on one set, a rule must still cover .94 on others whose labels look the
same. Simulated populations of two values, the judge's as well (30 labels), and of grades 5, 4 and
1, of whose lowest the judge sees half (15, 30 and 60 labels, scale given): coverage of our
intervals, and of the same intervals drawn in. Lowest; cells below .94 by an exact test at .001:"""

JUDGES_NOTE = """Top: probability moved to the grades the judge thinks unlikely (β). Bottom:
probability moved to the human grade (τ); at τ = 1 the judge is perfect, only sampling error is
left, and CRC, which has no term for it, has width 0."""

QUERIES_NOTE = """Default rule, sorted by the human value. Even with a usable judge an interval for
one query spans much of what is possible. Coverage / mean width:"""

DOCUMENTS_NOTE = """500 labelled documents of 1,000 queries, against 50 whole queries of 10
documents, which cost as many labels. Coverage / mean width:"""


def facts(environment: dict) -> str:
    return ", ".join(f"{k} {v}" if k != "machine" else v for k, v in environment.items())


def sources(figures: dict) -> list[str]:
    return list(dict.fromkeys(row["source"] for row in figures["figure 2"]))


def both(row: dict | None) -> str:
    """Coverage / width, and how many samples got no interval."""
    if row is None or row["coverage"] is None:
        return "–"
    refused = row.get("failed", 0) or sum(row.get("failures", {}).values())
    width = row["width"]
    shown = f"{width:.3g}" if 0 < width < 1e4 else ("0" if width <= 0 else "> 10⁴")
    return f"{row['coverage']:.3f} / {shown}" + (f" ({refused} refused)" if refused else "")


def labels_table(rows: list[dict], source: str) -> str:
    sizes = (10, 20, 30, 40, 60, 100)
    found = {(r["method"], r["n"]): r for r in rows if r["source"] == source}
    methods = [*plots.LOOKS, f"{sweeps.CRC}, unlabelled"]
    lines = [
        [plots.NAMES.get(m, "… for the unlabelled"), *(both(found.get((m, n))) for n in sizes)]
        for m in methods
    ]
    return f"{plots.TITLES[source]}:\n\n" + bars.grid(
        ["method", *(f"n = {n}" for n in sizes)], lines
    )


def table_1(presets: dict) -> str:
    rankers = ("random", "BM25", "judge", "perfect")
    rows = [["[R], TREC-DL", "3.16 / 6.86", "8.25 / 12.93", "12.81 / 23.73", "19.00 / 17.44", ""]]
    rows += [["[R], Robust04", "0.99 / 2.96", "2.71 / 4.32", "3.23 / 7.17", "5.70 / 4.65", ""]]
    for name, facts_ in presets.items():
        means = facts_["DCG@10 by human, by judge"]
        cells = [f"{means[r][0]:.2f} / {means[r][1]:.2f}" for r in rankers]
        rows.append([name, *cells, str(facts_["BM25: correlation"])])
    return bars.grid(["preset", *rankers, "correlation, BM25"], rows)


def default_table(rows: list[dict]) -> str:
    methods = (simulated.DEFAULT, simulated.RECALIBRATED, "labels", "ppi-paper")
    found = {(r["preset"], r["target"], r["n_unlabeled"], r["n"], r["method"]): r for r in rows}
    keys = sorted(
        {key[:4] for key in found}, key=lambda k: (simulated.BAR_PRESETS.index(k[0]), k[1:])
    )
    lines = [
        [k[0], k[1], str(k[2]), str(k[3]), *(both(found.get((*k, m))) for m in methods)]
        for k in keys
    ]
    head = [
        "preset",
        "target",
        "unlabelled",
        "n",
        "default",
        "judge recalibrated",
        "labels",
        "PPI [R]",
    ]
    return "Coverage / mean width:\n\n" + bars.grid(head, lines)


def odd_table(rows: list[dict]) -> str:
    found = {(r["judge"], r["n"], r["target"]): r for r in rows if r["method"] == simulated.DEFAULT}
    lines = [
        [
            j,
            *(
                f"{both(found[j, n, 'population'])}; {both(found[j, n, 'pool'])}"
                for n in simulated.SIZES
            ),
        ]
        for j in simulated.JUDGES
    ]
    return bars.grid(["judge", *(f"n = {n}" for n in simulated.SIZES)], lines)


def skewed_note(rows: list[dict]) -> str:
    """How many cells of skewed values are below .94."""
    below, alone = (
        sum(bars.rejected(r) for r in rows if r["method"] == method)
        for method in (simulated.DEFAULT, "labels")
    )
    return (
        "Values with a long tail, of which few labels show little (lognormal, standard deviation σ "
        "and correlation ρ with the judge on the logarithmic scale; no bounds, 300 unlabelled, "
        f"{rows[0]['runs']:,} runs): here the default does not keep its promise. In {below} of "
        f"{len(rows) // 2} cells its coverage is below .94 by an exact test at .001, that of "
        f"labels alone in {alone}. No method can mend this for all populations: where values have "
        "no known ends, a rare one that no label shows may be of any size, and no interval of "
        "finite width holds the mean at its level whatever the population (Bahadur & Savage 1956). "
        "`interval` warns where labels have a long tail (skewness above 1.25) and no bounds are "
        "given. Default; labels alone:"
    )


def skewed_table(rows: list[dict]) -> str:
    """Coverage and width of the default and of labels alone."""
    found = {(r["sigma"], r["rho"], r["n"], r["method"]): r for r in rows}
    lines = [
        [
            f"σ = {sigma}, ρ = {rho}",
            *(
                "; ".join(both(found[sigma, rho, n, m]) for m in (simulated.DEFAULT, "labels"))
                for n in simulated.SIZES
            ),
        ]
        for sigma in simulated.SIGMAS
        for rho in simulated.RHOS
    ]
    return bars.grid(["values", *(f"n = {n}" for n in simulated.SIZES)], lines)


def families_table(rows: list[dict]) -> str:
    """Lowest and mean coverage, and width against labels alone, by family and size."""
    plain = [r for r in rows if r["target"] == "population" and not r["scale"]]
    alone = {(r["set"], r["n"]): r["width"] for r in plain if r["method"] == "labels"}
    families = list(dict.fromkeys(r["set"].split("/")[0] for r in plain))
    sizes = sorted({r["n"] for r in plain})
    lines = []
    for family in families:
        for method in plots.LOOKS:
            chosen = [
                r for r in plain if r["set"].startswith(f"{family}/") and r["method"] == method
            ]
            if not chosen:
                continue
            cells = []
            for n in sizes:
                here = [r for r in chosen if r["n"] == n]
                ratio = mean(r["width"] / alone[r["set"], n] for r in here)
                covers = [r["coverage"] for r in here]
                wide = f"{ratio:.2f}" if ratio < 100 else "> 100"
                cells.append(f"{min(covers):.3f}, {mean(covers):.3f}, {wide}")
            lines.append([family, plots.NAMES[method], *cells])
    head = ["sets", "method", *(f"n = {n}" for n in sizes)]
    return (
        "Lowest coverage, mean coverage, mean width as a multiple of labels alone:\n\n"
        + bars.grid(head, lines)
    )


def sets_table(rows: list[dict]) -> str:
    chosen = [
        r
        for r in rows
        if r["method"] == "regression" and r["target"] == "population" and not r["scale"]
    ]
    scaled = {(r["set"], r["n"]): r for r in rows if r["method"] == "regression" and r["scale"]}
    sizes = sorted({r["n"] for r in chosen})
    found = {(r["set"], r["n"]): r for r in chosen}
    lines = []
    for name in dict.fromkeys(r["set"] for r in chosen):
        lines.append([name, *(both(found[name, n]) for n in sizes)])
        if (name, sizes[0]) in scaled:
            lines.append(["… with bounds", *(both(scaled[name, n]) for n in sizes)])
    return bars.grid(["set", *(f"n = {n}" for n in sizes)], lines)


def widths_note(record: dict) -> str:
    """How many cells are above their limit, and in how many of them more knowledge would help."""
    wider = bars.above(record)
    beyond = [r for r in wider if max(r["known slope"], r["known slope, true"]) > 1]
    drawn = (
        f"Cells in which the default's mean width was above its limit ({len(record['cells'])}: "
        "1.05·√(1 − r²N/(N + n)) times labels alone, or labels alone where r is .4 or more), drawn "
        f"afresh {max((r['runs'] for r in record['cells']), default=0):,} times: "
    )
    if not wider:
        return drawn + "none can be told from it by a normal test at .001."
    return (
        f"{drawn}in {len(wider)} it is above by "
        "a normal test at .001; the others cannot be told from it. Beside it an interval that is "
        "told the population's best slope, and learns the error only: its own mean width, and the "
        f"one at which it would cover .94; one of these is above 1 in {len(beyond)} of them, "
        "which even who knows the slope would miss. The last column is "
        "for who knows the error, too. All as multiples of the limit:"
    )


def lowest_note(record: dict) -> str:
    """Why one cell covers too little."""
    whole, cut = record["lowest"]
    return (
        "The one cell below .94 by the test (dl19 umbrela_llama32 DCG@10, 20 labels, pool): "
        f"{whole['of'] - cut['items']} of its {whole['of']} queries have a DCG above 25, and 20 "
        f"labels often show none. Of {whole['runs']:,} fresh draws the interval lay below the "
        f"truth in {whole['below truth']:.3f} and above it in {whole['above truth']:.3f}; without "
        f"those queries in {cut['below truth']:.3f} and {cut['above truth']:.3f}. It is the long "
        "tail of the simulated values above, and `interval` warns of it when labels show it."
    )


def widths_table(record: dict) -> list[str]:
    """Cells that are wider than their limit, if any, beside estimates that know more."""
    head = ["set", "labels", "r", "coverage", "with t alone", "width", "slope known: width"]
    lines = [
        [
            row["set"] + (", with bounds" if row["scale"] else ""),
            str(row["n"]),
            f"{row['r']:.2f}",
            *(f"{row[key]:.3f}" for key in ("coverage", "t alone", "width")),
            *(f"{row[key]:.3f}" for key in ("known slope", "known slope, true")),
            f"{row['known slope and error, true']:.3f}",
        ]
        for row in bars.above(record)
    ]
    return (
        [bars.grid([*head, "… true at", "slope and error known: true at"], lines)] if lines else []
    )


def worlds_end(record: dict) -> str:
    """Why intervals of grades reach further than t."""
    graded = [row for row in record["worlds"] if row["kind"] == "grades" and row["n"] == 30]
    least = sorted(graded, key=lambda row: row["t alone"])[:3]
    shown = ", ".join(f"{row['t alone']:.2f} ({row['world']})" for row in least)
    below = sum(bars.rejected(row | {"coverage": row["t alone"]}) for row in graded)
    return (
        "Such grades are why an interval reaches as far as errors that few labels or none showed "
        "can put the mean. With t alone, at 30 labels, coverage would be below .94 by the test in "
        f"{below} of {len(graded)} such populations, with these shares of grades as little as "
        f"{shown}. Without a scale, and of a judge that never gives the lowest grade, nothing "
        "shows how far down it is: give `bounds`."
    )


def worlds_table(record: dict) -> str:
    """Coverage of the default's intervals as they are, and drawn in."""
    lines = []
    for kind in dict.fromkeys(row["kind"] for row in record["worlds"]):
        of = [row for row in record["worlds"] if row["kind"] == kind]
        lines.append([kind, str(len(of))])
        for i in range(len(record["drawn in"])):
            covered = [{"coverage": row["coverage"][i], "runs": row["runs"]} for row in of]
            below = sum(map(bars.rejected, covered))
            lines[-1].append(f"{min(row['coverage'] for row in covered):.3f}; {below}")
    shown = ["as it is" if k == 1 else f"× {k}" for k in record["drawn in"]]
    return bars.grid(["values", "cells", *shown], lines)


def per_query_table(rows: list[dict]) -> str:
    sizes = sorted({r["n"] for r in rows})
    found = {(r["preset"], r["rule"], r["n"]): r for r in rows}
    names = {
        "residual": "residual (default)",
        "recalibrated": "recalibrated",
        "two-sided": "two-sided, corrected",
        "paper": "rule of [R]",
    }
    lines = [
        [preset, names[rule], *(both(found[preset, rule, n]) for n in sizes)]
        for preset in simulated.BAR_PRESETS
        for rule in names
    ]
    return bars.grid(["preset", "rule", *(f"n = {n}" for n in sizes)], lines)


def documents_table(rows: list[dict]) -> str:
    methods = {
        "documents": "documents",
        "regression": "queries, default",
        "ppi-paper": "queries, PPI [R]",
    }
    found = {(r["preset"], r["judge"], r["target"], r["method"]): r for r in rows}
    keys = list(dict.fromkeys(key[:3] for key in found))
    lines = [
        [
            preset,
            judge or "as simulated",
            target,
            *(both(found.get((preset, judge, target, m))) for m in methods),
        ]
        for preset, judge, target in keys
    ]
    return bars.grid(["preset", "judge", "target", *methods.values()], lines)
