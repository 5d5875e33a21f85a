"""Do all differences of several systems hold at once, and is the ranking better than its parts?

    python benchmarks/coverage/systems.py [--runs RUNS] [--out FOLDER]

Real systems (NDCG@10 of the runs on TREC DL 2019 and 2020 by people and by a judge; answers of
EVOUNA, the judge being "a golden answer occurs"; mean grades of SummEval summaries by three people
and by gpt-4o-mini) of the folder named by RAG_SOURCEBIAS_DATA, and simulated ones, resampled as
populations: each run draws the systems, n labelled items and 200
others. Writes systems.json to FOLDER (default: benchmarks/results). Exit status 1 when a bar is
missed: a rate misses its bar when an exact binomial test rejects it at .001.
"""

from __future__ import annotations

import os
import sys
from collections import defaultdict
from functools import cache
from pathlib import Path

import parallel  # sets the number of threads before numpy is imported

import numpy as np  # isort: skip
from real_sets import _json, _mean_grade, _numbers, _occurs, _table
from run import asked, finish
from scipy.stats import binom, kendalltau

from rag_sourcebias.infer.judged import compare_systems, difference_interval

SYSTEMS = ("fid", "gpt35", "chatgpt", "gpt4", "newbing")
SIZES = (10, 15, 20, 30, 60, 120)
OTHERS = 200
CHANCE = 0.001
RESAMPLES = 2_000


@cache
def population(name: str) -> tuple[np.ndarray, np.ndarray, tuple[float, float] | None]:
    """Human and judge values, one row per item and one column per system, and their range."""
    kind, _, of = name.partition(" ")
    data = Path(os.environ["RAG_SOURCEBIAS_DATA"])
    if kind == "DL":
        return *_deep_learning(data, of), (0.0, 1.0)
    if kind == "EVOUNA":
        return *_evouna(data, of), (0.0, 1.0)
    if kind == "SummEval":
        path = data / f"judge_logits/model_logits__4omini__Summeval_{of}_logits.csv.gz"
        table = _numbers(path)  # one row per text and system, text by text
        people, judge = table[:, 5], _mean_grade(table[:, :5])
        return people.reshape(-1, 16), judge.reshape(-1, 16), (1.0, 5.0)
    return _simulated(of)


def _deep_learning(data: Path, year: str) -> tuple[np.ndarray, np.ndarray]:
    grades: dict[str, dict[str, dict[str, float]]] = {"human": {}, "umbrela_gpt4o": {}}
    for row in _table(data / f"dl_human_llm/dl{year}.tsv.gz"):
        for who, found in grades.items():
            if row[who]:
                found.setdefault(row["qid"], {})[row["docid"]] = float(row[who])
    runs: dict[str, dict[str, list]] = defaultdict(lambda: defaultdict(list))
    for row in _table(data / f"dl_runs/rankllm_runs_dl{year}_top20.tsv.gz"):
        runs[row["system"]][row["qid"]].append((int(row["rank"]), row["docid"]))
    weights = 1 / np.log2(np.arange(2, 12))

    def ndcg(labels: dict[str, float], ranked: list) -> float:
        gains = [2 ** labels.get(doc, 0.0) - 1 for _, doc in sorted(ranked)[:10]]
        ideal = sorted((2**grade - 1 for grade in labels.values()), reverse=True)[:10]
        best = float(np.dot(ideal, weights[: len(ideal)]))
        return float(np.dot(gains, weights[: len(gains)])) / best if best else 0.0

    queries = sorted(grades["human"])
    human, judge = (
        np.array([[ndcg(found[q], run[q]) for run in runs.values()] for q in queries])
        for found in grades.values()
    )
    return human, judge


def _evouna(data: Path, name: str) -> tuple[np.ndarray, np.ndarray]:
    items = [
        item
        for item in _json(data / f"evouna/{name}.json.gz")
        if not item["improper"] and all(item[f"judge_{s}"] is not None for s in SYSTEMS)
    ]
    human = [[float(item[f"judge_{s}"]) for s in SYSTEMS] for item in items]
    judge = [
        [float(_occurs(item["golden_answer"], item[f"answer_{s}"] or "")) for s in SYSTEMS]
        for item in items
    ]
    return np.array(human), np.array(judge)


def _simulated(of: str) -> tuple[np.ndarray, np.ndarray, tuple[float, float] | None]:
    """``binary`` or ``graded``, the number of systems, their spread, and the judge's error.

    ``favoured``: binary, and the judge errs for the first system only, whose wrong items it passes.
    """
    kind, m, spread, error = of.split(", ")
    rng, size = np.random.default_rng(0), 20_000
    levels = float(spread) * np.linspace(-1, 1, int(m)) + 0.5
    z = 0.8 * rng.normal(size=(size, 1)) + 0.6 * rng.normal(size=(size, int(m))) + levels
    if kind == "favoured":
        y = (z > 0).astype(float)
        passed = (rng.random(size) < float(error)) & (y[:, 0] == 0)
        f = y.copy()
        f[passed, 0] = 1.0
        return y, f, (0.0, 1.0)
    if kind == "binary":
        y = (z > 0).astype(float)
        return y, np.where(rng.random(y.shape) < float(error), 1 - y, y), (0.0, 1.0)
    y = np.exp(z / 2)
    return y, y + float(error) * rng.normal(size=y.shape), None


def drawn(y_all: np.ndarray, m: int, n: int, run: int) -> tuple[np.ndarray, np.ndarray]:
    """Systems and items of one draw, labelled items first."""
    rng = np.random.default_rng([m, n, run])
    chosen = np.sort(rng.choice(y_all.shape[1], m, replace=False))
    return chosen, rng.integers(0, len(y_all), n + OTHERS)


def cells(name: str, m: int, n: int, runs: int) -> list[dict]:
    """One row: how often some difference, direction or rank was wrong, widths, and Kendall's τ."""
    y_all, f_all, bounds = population(name)
    missed = turned = ranks = single = 0
    widths, taus = [], []
    for run in range(runs):
        chosen, rows = drawn(y_all, m, n, run)
        y, f = y_all[rows][:, chosen], f_all[rows][:, chosen]
        truth = y_all[:, chosen].mean(0)
        found = compare_systems(y[:n], f[:n], f[n:], bounds=bounds, n_resamples=RESAMPLES, rng=run)
        gap = truth[found.first] - truth[found.second]
        missed += bool(((found.lower > gap + 1e-12) | (found.upper < gap - 1e-12)).any())
        turned += bool((((found.lower > 0) & (gap < 0)) | ((found.upper < 0) & (gap > 0))).any())
        above = (truth[None] > truth[:, None] + 1e-12).sum(1)
        below = (truth[None] < truth[:, None] - 1e-12).sum(1)
        ranks += bool(((found.best > m - below) | (found.worst < 1 + above)).any())
        widths.append(float(np.median(found.upper - found.lower)))
        scores = (found.score, f.mean(0), y[:n].mean(0))
        taus.append([kendalltau(s, truth).statistic for s in scores])
        if m == 5:
            pair = [0, 1]
            one = difference_interval(y[:n, pair], f[:n, pair], f[n:, pair], bounds=bounds)
            single += not one.lower - 1e-12 <= truth[0] - truth[1] <= one.upper + 1e-12
    tau = np.nanmean(np.array(taus, dtype=float), axis=0)
    return [
        {
            "population": name, "systems": m, "n": n, "runs": runs,
            "some difference missed": round(missed / runs, 4),
            "some direction wrong": round(turned / runs, 4),
            "some rank missed": round(ranks / runs, 4),
            "one difference missed": round(single / runs, 4) if m == 5 else None,
            "width": round(float(np.median(widths)), 4),
            "tau": round(float(tau[0]), 4),
            "tau of judge": round(float(tau[1]), 4),
            "tau of labels": round(float(tau[2]), 4),
        }
    ]  # fmt: skip


def allowed(row: dict) -> float:
    """Kendall's τ that a ranking is held to."""
    both = row["tau of judge"], row["tau of labels"]
    if abs(both[0] - both[1]) <= 0.10 and row["n"] < 30:
        return max(both) - 0.12
    few = row["systems"] < 10
    less = (0.08 if few else 0.02) if row["n"] >= 30 else (0.12 if few else 0.05)
    return max(both) - less


def bars(rows: list[dict]) -> list[dict]:
    """Each bar with its worst value and the cells that miss it."""

    def rate(what: str, at_most: float, among: list[dict] = rows, where_: str = "") -> dict:
        known = [row for row in among if row[what] is not None]
        wrong = [
            f"{r['population']}, {r['systems']} systems, n = {r['n']}: {r[what]}"
            for r in known
            if binom.sf(round(r[what] * r["runs"]) - 1, r["runs"], at_most) < CHANCE
        ]
        worst = max(row[what] for row in known)
        return {"what": f"{what}{where_}, at most {at_most:g}", "value": worst, "missed": wrong}

    ordered = [
        r for r in rows if ", 0, " not in r["population"]
    ]  # equal systems have neither order nor direction
    low = [
        f"{r['population']}, {r['systems']} systems, n = {r['n']}: {r['tau']}"
        for r in ordered
        if r["tau"] < allowed(r)
    ]
    gap = min(r["tau"] - max(r["tau of judge"], r["tau of labels"]) for r in ordered)
    return [
        rate("some difference missed", 0.06),
        rate("some direction wrong", 0.025, ordered, " where systems differ"),
        rate("some rank missed", 0.06),
        rate("one difference missed", 0.06),
        {"what": "Kendall's τ, less the better of judge and labels", "value": gap, "missed": low},
    ]


def main() -> int:
    options = asked("Differences and ranks of several systems.", 2000)
    few = [
        (name, m)
        for name in (
            "DL 19", "DL 20", "EVOUNA NQ", "EVOUNA TQ",
            *(f"SummEval {d}" for d in ("coherence", "consistency", "fluency", "relevance")),
        )
        for m in ((5,) if name.startswith("EVOUNA") else (5, 9))
    ]  # fmt: skip
    made = [
        (f"simulated {kind}, {m}, {spread}, {error}", m)
        for kind, error in (
            ("binary", 0.02), ("binary", 0.3), ("graded", 0.5), ("graded", 5), ("favoured", 0.1),
            ("favoured", 0.5),
        )
        for m in (5, 9)
        for spread in (0, 0.5)
    ]  # fmt: skip
    jobs = [
        {"name": name, "m": m, "n": n, "runs": options.runs}
        for name, m in (*few, *made)
        for n in SIZES
    ]
    jobs += [
        {"name": f"simulated {kind}, 63, 0.5, {error}", "m": 63, "n": n, "runs": options.runs // 5}
        for kind, error in (("binary", 0.1), ("graded", 0.5))
        for n in (30, 60)
    ]
    rows = parallel.everywhere(cells, jobs)
    record = {"runs": options.runs, "bars": bars(rows), "cells": rows}
    return finish(options.out / "systems.json", record)


if __name__ == "__main__":
    sys.exit(main())
