"""Do plans of labels keep their promise?

    python benchmarks/coverage/labels.py [--runs RUNS] [--out FOLDER]

The real sets of the folder named by RAG_SOURCEBIAS_DATA and simulated worlds, resampled as
populations with fresh draws. Writes labels.json to FOLDER (default: benchmarks/results). Exit
status 1 when a bar is missed.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import parallel  # sets the number of threads before numpy is imported

import numpy as np  # isort: skip
from real_sets import RealSet, real_sets
from run import asked, finish
from scipy.special import bdtr

from rag_sourcebias.core.errors import InsufficientDataError
from rag_sourcebias.core.finding import Interval
from rag_sourcebias.infer.judged import mean_interval
from rag_sourcebias.judged.plan import ASSURANCE, plan_item_labels

FAMILIES = ("evouna", "pandalm", "openqa_eval", "dl_human_llm", "interval_labels")
POOL = 1_500  # items of a plan, labelled and not
PLANS = ((15, 40), (15, 120), (30, 120), (30, 300), (60, 200))  # pilot, labels of the oracle
CHANCE = 0.001  # of missing a bar that holds exactly
FAR = 3.09  # standard errors that a mean is above its true value with this chance


def worlds() -> list[RealSet]:
    """Simulated judges from useless to nearly perfect, of graded and of binary values."""
    rng, size = np.random.default_rng(0), 20_000
    made = []
    for r in (0.0, 0.5, 0.9):
        f = rng.normal(size=size)
        y = r * f + math.sqrt(1 - r * r) * rng.normal(size=size)
        made.append(RealSet(f"simulated/normal, r = {r}", y, f))
    y = rng.gamma(1.0, 1.0, size)
    made.append(RealSet("simulated/exponential", y, y + rng.normal(size=size)))
    for share, accuracy in ((0.5, 0.5), (0.5, 0.9), (0.9, 0.8), (0.7, 0.95)):
        y = (rng.random(size) < share).astype(float)
        f = np.where(rng.random(size) < accuracy, y, 1 - y)
        name = f"simulated/share {share}, judge right {accuracy}"
        made.append(RealSet(name, y, f, (0.0, 1.0)))
    return made


@cache
def populations() -> list[RealSet]:
    sets = real_sets(Path(os.environ["RAG_SOURCEBIAS_DATA"]))
    return [*(s for s in sets if s.name.split("/")[0] in FAMILIES), *worlds()]


def interval(y: np.ndarray, f: np.ndarray, labeled: np.ndarray) -> Interval:
    return mean_interval(y[labeled], f[labeled], f[~labeled])


def plan_cells(*, index: int, runs: int) -> list[dict]:
    """How often a plan's half-width is reached, and its labels against those of an oracle.

    The half-width wanted is the one that 80 % of draws of so many labels reach; an oracle that
    knows the population would label as many.
    """
    data = populations()[index]
    rows = []
    for pilot, wanted in PLANS:
        rng = np.random.default_rng([12, index, pilot, wanted])

        def drawn(rng: np.random.Generator = rng) -> tuple[np.ndarray, np.ndarray]:
            chosen = rng.integers(0, len(data.y), POOL)
            return data.y[chosen], data.yhat[chosen]

        def half(y: np.ndarray, f: np.ndarray, n: int) -> float:
            try:
                return interval(y, f, np.arange(POOL) < n).half_width
            except InsufficientDataError:
                return math.inf

        goal = float(np.quantile([half(*drawn(), wanted) for _ in range(runs)], ASSURANCE))
        found = []
        for _ in range(runs):
            y, f = drawn()
            try:
                n = plan_item_labels(y[:pilot], f[:pilot], POOL - pilot, half_width=goal).n_labels
            except InsufficientDataError:
                continue
            found.append((n, half(y, f, n) <= goal, n > pilot))
        if not found:  # every pilot was refused, as a few with rare errors may be
            continue
        n, reached, above = np.array(found, dtype=float).T
        rows.append(
            {
                "set": data.name,
                "asked": runs,
                "pilot": pilot,
                "oracle": wanted,
                "plans": len(found),
                "reached": round(float(reached.mean()), 4),
                "above floor": int(above.sum()),
                "reached above floor": round(float(reached[above > 0].mean()), 4)
                if above.any()
                else None,
                "labels": round(float(n.mean()) / wanted, 4),
                "error": round(float(n.std()) / wanted / math.sqrt(len(found)), 4),
            }
        )
    return rows


def below(share: float, runs: int, bar: float) -> bool:
    """Whether so small a share would be seen once in 1,000 if the true one were the bar."""
    return bool(bdtr(round(share * runs), runs, bar) < CHANCE)


def bars(plans: list[dict]) -> list[dict]:
    """What must hold in every cell, and how many cells do not."""

    def misses(rows: list[dict], wrong: Callable[[dict], bool]) -> list[str]:
        return [" ".join(f"{v}" for v in list(r.values())[:3]) for r in rows if wrong(r)]

    more = [row for row in plans if row["above floor"]]
    return [
        {
            "what": "half-width reached, lowest true rate .75",
            "value": min(r["reached"] for r in plans),
            "missed": misses(plans, lambda r: below(r["reached"], r["plans"], 0.75)),
        },
        {
            "what": "half-width reached above the floor, highest true rate .90",
            "value": max(r["reached above floor"] for r in more),
            "missed": misses(
                more, lambda r: below(1 - r["reached above floor"], r["above floor"], 0.10)
            ),
        },
        {
            "what": "mean labels / oracle's, highest true mean 1.5",
            "value": max(r["labels"] for r in plans),
            "missed": misses(plans, lambda r: r["labels"] - FAR * r["error"] > 1.5),
        },
    ]


def main() -> int:
    options = asked("Do plans of labels keep their promise?", 1000, "pilots of each cell")
    jobs = [{"index": i, "runs": options.runs} for i in range(len(populations()))]
    rows = parallel.everywhere(plan_cells, jobs)
    return finish(options.out / "labels.json", {"bars": bars(rows), "plans": rows})


if __name__ == "__main__":
    sys.exit(main())
