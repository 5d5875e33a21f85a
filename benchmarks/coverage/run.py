"""Do the intervals cover, and how wide are they?

    python benchmarks/coverage/run.py [--quick | --redraw | --only PART] [--out FOLDER]

Simulated judged rankings with a known truth, and the real sets of the folder named by
RAG_SOURCEBIAS_DATA, resampled as populations. Writes coverage.json, coverage_real.json,
coverage_figures.json and the plot to FOLDER (default: benchmarks/results), and docs/coverage.md
with its tables; --quick makes few runs and writes only where --out says, --redraw makes page and
plot from stored results. Exit status 1 when a bar is missed (never with --quick).
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path

import parallel  # sets the number of threads before numpy is imported

import numpy as np  # isort: skip
import bars
import page
import plots
import resampled
import simulated
import simulator
import sweeps
from evidence import write as publish

from rag_sourcebias.core.codec import environment

ROOT = Path(__file__).parents[2]
DATA = "RAG_SOURCEBIAS_DATA"
NAMES = ("coverage", "coverage_real", "coverage_figures")


def simulated_results(runs: int) -> dict:
    """Everything the bars of the simulator are read from."""
    truths = {
        name: simulated.true_mean(name, n_queries=2_000_000 if runs >= 1000 else 200_000)
        for name in ("TREC-DL", "Robust04")
    }

    def truth(preset: str) -> float:
        return truths.get(preset, truths["TREC-DL"])

    presets = simulated.BAR_PRESETS
    default = [
        {"preset": p, "judge": None, "n": n, "n_unlabeled": pool, "n_runs": runs, "truth": truth(p)}
        for p in presets
        for pool in simulated.POOLS
        for n in simulated.SIZES
    ]
    odd = [
        {
            "preset": "TREC-DL",
            "judge": judge,
            "n": n,
            "n_unlabeled": 112,
            "n_runs": max(runs // 3, 20),
            "truth": truth("TREC-DL"),
        }
        for judge in simulated.JUDGES
        for n in simulated.SIZES
    ]
    per_query = [
        {"preset": p, "n": n, "n_runs": max(runs // 2, 20)}
        for p in presets
        for n in (20, 39, 50, 112)
    ]
    skewed = [
        {"sigma": sigma, "rho": rho, "n": n, "n_runs": runs}
        for sigma in simulated.SIGMAS
        for rho in simulated.RHOS
        for n in simulated.SIZES
    ]
    documents = [
        {
            "preset": p,
            "judge": judge,
            "n_labels": 500,
            "n_queries": 1000,
            "n_runs": max(runs // (2 if judge is None else 5), 20),
            "truth": truth(p),
        }
        for p, judge in [
            *((p, None) for p in presets),
            ("TREC-DL", "one-hot"),
            ("TREC-DL", "inverted"),
            ("TREC-DL", "constant"),
        ]
    ]
    everywhere = parallel.everywhere
    return {
        "true means": {name: round(value, 4) for name, value in truths.items()},
        "table 1": {
            name: simulator.table_1(name, np.random.default_rng(1), n_queries=10_000)
            for name in presets
        },
        "default": everywhere(simulated.default_cell, default),
        "odd judges": everywhere(simulated.default_cell, odd),
        "skewed": everywhere(simulated.skewed_cell, skewed),
        "per query": everywhere(simulated.per_query_cell, per_query),
        "documents": everywhere(simulated.document_cell, documents),
    }


def figure_results(runs: int, sources: tuple[str, ...]) -> dict:
    """Fig. 1 to 4 of [R]."""
    started = time.perf_counter()
    jobs = [{"name": s, "n": n, "n_runs": runs} for s in sources for n in sweeps.SIZES]
    seconds: dict[str, float] = {}
    sweep: list[dict] = []
    for name in sources:
        began = time.perf_counter()
        sweep += parallel.everywhere(
            sweeps.sweep_cell, [job for job in jobs if job["name"] == name]
        )
        seconds[name] = round(time.perf_counter() - began, 1)
    judges = [
        {"name": s, "kind": kind, "strength": strength, "n_runs": runs}
        for s in sources
        for kind in ("adversarial", "oracle")
        for strength in sweeps.STEPS
    ]
    return {
        "figure 2, seconds": seconds,
        "figure 1": sweeps.gain_curves(),
        "figure 2": [row for row in sweep if row["failed"] < row["runs"]],
        "figure 3": parallel.everywhere(sweeps.judge_cell, judges),
        "figure 4": {name: sweeps.per_query_panels(name) for name in sources},
        "seconds": round(time.perf_counter() - started, 1),
    }


BY_SIZE = ("n", "coverage", "width", "failed", "r", "limit")


def folded(rows: list[dict]) -> list[dict]:
    """Rows that differ in n only, as one with lists."""
    found: dict[tuple, dict] = {}
    for row in rows:
        head = {k: v for k, v in row.items() if k not in BY_SIZE}
        line = found.setdefault(tuple(head.values()), head | {name: [] for name in BY_SIZE})
        for name in BY_SIZE:
            line[name].append(row.get(name))
    return [{k: v for k, v in row.items() if v != [None] * len(row["n"])} for row in found.values()]


def unfolded(rows: list[dict]) -> list[dict]:
    """What ``folded`` was given."""
    return [
        row | {name: row[name][i] for name in BY_SIZE if name in row}
        for row in rows
        for i in range(len(row["n"]))
    ]


def write(path: Path, record: dict) -> None:
    """Indented, with one line for every row of results."""
    parts = []
    for key, value in record.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            rows = ",\n    ".join(json.dumps(row, ensure_ascii=False) for row in value)
            text = f"[\n    {rows}\n  ]"
        else:
            text = json.dumps(value, ensure_ascii=False)
        parts.append(f"  {json.dumps(key, ensure_ascii=False)}: {text}")
    path.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")


def asked(description: str, runs: int, draws: str = "draws of each cell") -> argparse.Namespace:
    """Return the options of a script beside this one."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--runs", type=int, default=runs, help=draws)
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results")
    return parser.parse_args()


def finish(path: Path, record: dict) -> int:
    """Write a record, print its bars, and return the exit status."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write(path, {"environment": environment(), **record})
    for row in record["bars"]:
        missed = "; ".join(row["missed"]) or "none"
        print(f"{row['what']}: {row['value']:.3f}; missed: {missed}")
    return int(any(row["missed"] for row in record["bars"]))


def real_results(runs: int) -> dict:
    """The real sets, resampled as populations."""
    n_sets = len(resampled.sets())
    jobs = [
        {
            "indices": list(range(k, n_sets, 16)),
            "n_runs": runs,
            "n_rival_runs": max(runs * 2 // 5, 20),
        }
        for k in range(16)
    ]
    cells = parallel.everywhere(resampled.set_cells, jobs)
    cells.sort(key=lambda row: row["set"])
    return {"sets": cells, "bars": bars.of_real_sets(cells)}


def measure(*, quick: bool, stored: tuple[dict, dict | None, dict] | None, only: str) -> tuple:
    """Run everything, or a part beside what is stored."""
    facts, given = {"environment": environment(), "quick": quick}, bool(os.environ.get(DATA))
    found, real, figures = stored or ({}, None, {})
    if only != "real":
        found = facts | simulated_results(30 if quick else 1500)
        found["bars"] = bars.of_simulations(found)
        sources = sweeps.SOURCES
        if not given:
            sources = tuple(s for s in sources if s in simulator.PRESETS)
        figures = facts | figure_results(20 if quick else 500, sources)
    if only != "simulated" and given:
        real = facts | real_results(20 if quick else 500)
    elif not given:
        print(f"{DATA} is not set: the real sets are left out", file=sys.stderr)
    return found, real, figures


def read(folder: Path) -> tuple[dict, dict | None, dict]:
    """What an earlier run wrote."""
    found, real, figures = (
        json.loads(path.read_text(encoding="utf-8")) if path.exists() else None
        for path in (folder / f"{name}.json" for name in NAMES)
    )
    if found is None or figures is None:
        raise SystemExit(f"{folder} holds no results")
    if real is not None:
        real["sets"] = unfolded(real["sets"])
        real["bars"] = bars.of_real_sets(real["sets"])
    found["bars"] = bars.of_simulations(found)
    return found, real, figures


def main() -> int:
    parser = argparse.ArgumentParser(description="Coverage and width of the intervals.")
    part = parser.add_mutually_exclusive_group()
    part.add_argument("--quick", action="store_true", help="few runs, no verdict")
    part.add_argument("--redraw", action="store_true", help="page and plot of stored results")
    part.add_argument("--only", choices=("simulated", "real"), help="that; the rest as stored")
    parser.add_argument("--out", type=Path, help="default: benchmarks/results")
    options = parser.parse_args()
    quick, out = options.quick, options.out
    if out is None and not quick:
        out = ROOT / "benchmarks" / "results"
    started = time.perf_counter()
    stored = read(out) if out and (options.redraw or options.only) else None
    found, real, figures = (
        stored
        if stored and options.redraw
        else measure(quick=quick, stored=stored, only=options.only or "")
    )
    rows = page.promised(found, real)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        if not options.redraw:
            cells = real and real | {"sets": folded(real["sets"])}
            for name, record in zip(NAMES, (found, cells, figures), strict=True):
                if record:
                    write(out / f"{name}.json", record)
        plots.draw(out, figures)
        target = ROOT / "docs" / "coverage.md" if options.out is None else out / "coverage.md"
        text = page.page(found, real, figures, folder=out, at=target)
        publish(target, text, page.tables(found, real, figures, folder=out))
    print(page.bar_table(rows, {}))
    print(f"{time.perf_counter() - started:.0f} s")
    return int(not quick and not all(r["met"] for r in rows))


if __name__ == "__main__":
    sys.exit(main())
