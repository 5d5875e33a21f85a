"""Several judges at once: coverage, and width beside their mean and the median judge.

    python benchmarks/coverage/judges.py [--runs RUNS] [--out FOLDER]

Real items that three judges or more scored (in the folder named by RAG_SOURCEBIAS_DATA) and
simulated ones are resampled as populations. Writes judges.json to FOLDER (default:
benchmarks/results). Exit status 1 when a bar is missed: a mean misses it when a normal test rejects
it at .001.
"""

from __future__ import annotations

import csv
import gzip
import os
import sys
from functools import cache
from pathlib import Path

import parallel  # sets the number of threads before numpy is imported

import numpy as np  # isort: skip
from real_sets import _mean_grade, _numbers, _per_query, _table
from run import asked, finish
from scipy.stats import binom

from rag_sourcebias.core.completions import mean_judge
from rag_sourcebias.infer.judged import mean_interval

SIZES = (10, 15, 30, 60, 120)
OTHERS = 300
CHANCE = 0.001
FAR = 3.09  # standard errors that a mean is above its true value with this chance
MEAN, MEDIAN = "width / mean's", "width / median judge's"
SIMULATED = ("3 alike", "36 that share errors", "one good, four bad", "one inverted", "binary")


def populations() -> list[str]:
    """Names of all sets."""
    tasks = [
        *(f"{a} {b}" for a in ("GEval", "SocREval") for b in ("cosmos", "drop", "esnli", "gsm8k")),
        *(f"Summeval {b}" for b in ("coherence", "consistency", "fluency", "relevance")),
    ]
    prompts = [f"prompts, {k} of 165" for k in (3, 9, 36)]
    years = ["DL dl19", "DL dl20"]
    return [*tasks, *prompts, *years, *(f"simulated, {kind}" for kind in SIMULATED)]


@cache
def population(name: str) -> tuple[np.ndarray, np.ndarray, tuple[float, float] | None]:
    """Human values (n,), judge values (n, p) with NaN where one failed, and the range if known."""
    if name.startswith("simulated"):
        return *_simulated(name.removeprefix("simulated, ")), None
    data = Path(os.environ["RAG_SOURCEBIAS_DATA"])
    if name.startswith("prompts"):
        return *_prompts(data, int(name.split()[1])), (0.0, 3.0)
    if name.startswith("DL"):
        rows = list(_table(data / "dl_human_llm" / f"{name.split()[1]}.tsv.gz"))
        judges = ("umbrela_gpt4", "umbrela_gpt4o", "umbrela_llama32")
        y, *f = (_per_query(rows, column, "NDCG") for column in ("human", *judges))
        return y, np.stack(f, axis=1), (0.0, 1.0)
    tables = [
        _numbers(data / f"judge_logits/model_logits__{m}__{name.replace(' ', '_')}_logits.csv.gz")
        for m in ("4omini", "dsr1", "qwen")
    ]
    judged = [_mean_grade(table[:, :5]) for table in tables]
    if name.startswith("Summeval"):
        for model in ("4o", "4omini"):  # five prompts each, five rows per item
            stem = f"prompt_sensitivity__logits__{model}_{name.split()[1]}.csv.gz"
            judged += list(_mean_grade(_numbers(data / "judge_logits" / stem)).reshape(-1, 5).T)
    return tables[0][:, 5], np.stack(judged, axis=1), (1.0, 5.0)


def _prompts(data: Path, k: int) -> tuple[np.ndarray, np.ndarray]:
    path = data / "prompt_sensitivity" / "dl20_pairs_prompts.tsv.gz"
    with gzip.open(path, "rt", encoding="utf-8") as file:
        _, *rows = csv.reader(file, delimiter="\t")
    values = np.array([[float(cell or "nan") for cell in row[3:]] for row in rows])
    usual = np.flatnonzero(np.isnan(values).mean(axis=0) < 0.2)  # some prompts saw few pairs
    chosen = np.sort(np.random.default_rng(k).choice(usual, k, replace=False))
    return np.array([float(row[2]) for row in rows]), values[:, chosen]


def _simulated(kind: str) -> tuple[np.ndarray, np.ndarray]:
    rng, size = np.random.default_rng(0), 20_000
    truth = rng.normal(size=size)
    if kind == "36 that share errors":
        shared = rng.normal(0, 0.9, (size, 1))
        return truth, truth[:, None] + shared + rng.normal(0, 1, (size, 36))
    if kind == "one good, four bad":
        return truth, truth[:, None] + rng.normal(size=(size, 5)) * [0.4, 5, 5, 5, 5]
    if kind == "one inverted":
        return truth, (truth[:, None] + rng.normal(size=(size, 3))) * [1, 1, -1]
    if kind == "binary":
        y = (truth > 0.5).astype(float)
        return y, np.where(rng.random((size, 4)) < 0.8, y[:, None], 1 - y[:, None])
    return truth, truth[:, None] + rng.normal(0, 1.5, (size, 3))


def cells(name: str, n: int, runs: int) -> list[dict]:
    """One row: coverage, and mean widths as multiples of two others'."""
    y_all, f_all, bounds = population(name)
    mean = mean_judge(f_all)
    mean = np.where(np.isnan(mean), np.nanmean(mean), mean)
    single = np.where(np.isnan(f_all), np.nanmean(f_all, axis=0), f_all)
    rng = np.random.default_rng([n, *name.encode()])
    alone = rng.permutation(single.shape[1])[:9]
    hits, widths = 0, []
    for run in range(runs):
        rows = rng.integers(0, len(y_all), n + OTHERS)
        head, tail = rows[:n], rows[n:]
        found = mean_interval(y_all[head], f_all[head], f_all[tail], bounds=bounds)
        hits += found.lower - 1e-12 <= y_all.mean() <= found.upper + 1e-12
        if run < runs // 5:
            each = [
                mean_interval(y_all[head], judge[head], judge[tail], bounds=bounds)
                for judge in (mean, *single.T[alone])
            ]
            widths.append([i.upper - i.lower for i in (found, *each)])
    ours, of_mean, *of_one = np.mean(widths, axis=0)
    median = float(np.median(of_one))
    own, theirs = np.array(widths).T[[0, 2 + int(np.argmin(np.abs(np.array(of_one) - median)))]]
    apart = own / median - ours / median * theirs / theirs.mean()
    between = np.corrcoef(single.T)[np.triu_indices(single.shape[1], 1)]
    r_one = np.median([np.corrcoef(y_all, judge)[0, 1] for judge in single.T])
    r_mean = np.corrcoef(y_all, mean)[0, 1]
    left = [1 - r**2 * OTHERS / (OTHERS + n) for r in (r_mean, r_one)]
    return [
        {
            "population": name, "judges": f_all.shape[1], "n": n, "runs": runs,
            "coverage": round(hits / runs, 4),
            "r between": round(float(between.mean()), 3),
            "r of median judge": round(float(r_one), 3),
            "r of mean": round(float(r_mean), 3),
            MEAN: round(float(ours / of_mean), 4),
            MEDIAN: round(float(ours / median), 4),
            "error": round(float(np.std(apart) / np.sqrt(len(widths))), 4),
            "known slopes": round(float(np.sqrt(left[0] / left[1])), 4),
        }
    ]  # fmt: skip


def bars(rows: list[dict]) -> list[dict]:
    """Each bar with its worst value and the cells that miss it."""
    where = lambda r: f"{r['population']}, n = {r['n']}"  # noqa: E731
    apart = [r for r in rows if r["r between"] <= 0.5]
    possible = [r for r in apart if r["known slopes"] <= 0.9]

    def wide(r: dict) -> bool:
        return r[MEDIAN] - FAR * r.get("error", 0.0) > 0.9

    return [
        {
            "what": "coverage, at least .94",
            "value": min(r["coverage"] for r in rows),
            "missed": [
                f"{where(r)}: {r['coverage']}"
                for r in rows
                if binom.cdf(round(r["coverage"] * r["runs"]), r["runs"], 0.94) < CHANCE
            ],
        },
        {
            "what": "width / that of the judges' mean, at most 1.05",
            "value": max(r[MEAN] for r in rows),
            "missed": [f"{where(r)}: {r[MEAN]}" for r in rows if r[MEAN] > 1.05],
        },
        *(
            {
                "what": f"width / the median judge's, at most .90, {what}",
                "value": max(r[MEDIAN] for r in some),
                "missed": [f"{where(r)}: {r[MEDIAN]}" for r in some if wide(r)],
            }
            for what, some in (
                ("mean r between judges at most .5", apart),
                ("… and the judges' mean, with known slopes, could", possible),
            )
        ),
    ]


def main() -> int:
    options = asked("Several judges of the same items.", 2000)
    jobs = [{"name": p, "n": n, "runs": options.runs} for p in populations() for n in SIZES]
    rows = parallel.everywhere(cells, jobs)
    record = {"runs": options.runs, "bars": bars(rows), "cells": rows}
    return finish(options.out / "judges.json", record)


if __name__ == "__main__":
    sys.exit(main())
