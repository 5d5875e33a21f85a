"""Count what a public verb says over many draws: in processes, resumable, with time left."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

# One thread each: the matrices are small, and idle threads would wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

CHUNK = 250  # draws after which what was counted is kept


def counted(
    work: Callable[..., dict[str, Any]],
    cells: Iterable[tuple[Any, ...]],
    *,
    runs: int,
    kept: Path,
    workers: int,
) -> dict[tuple[Any, ...], list[dict[str, Any]]]:
    """Run ``work(*cell, draws, seed)`` until each cell has its runs.

    Chunks are kept as JSON lines; a file of an earlier, stopped run is gone on with.
    """
    found: dict[tuple[Any, ...], list[dict[str, Any]]] = {tuple(cell): [] for cell in cells}
    if kept.exists():
        for line in kept.read_text().splitlines():
            chunk = json.loads(line)
            if tuple(chunk["cell"]) in found:
                found[tuple(chunk["cell"])].append(chunk)
    jobs = []
    for cell, chunks in found.items():
        seeds = {chunk["seed"] for chunk in chunks}
        wanted = -(-runs // CHUNK)
        jobs += [(cell, seed) for seed in range(wanted) if seed not in seeds]
    # All cells advance together, so that a stopped run shows every one of them.
    jobs.sort(key=lambda job: job[1])
    began = time.monotonic()
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context) as pool, kept.open("a") as file:
        futures = {
            pool.submit(work, *cell, min(CHUNK, runs), seed): (cell, seed) for cell, seed in jobs
        }
        for done, future in enumerate(as_completed(futures), 1):
            cell, seed = futures[future]
            chunk = {"cell": cell, "seed": seed, **future.result()}
            found[cell].append(chunk)
            file.write(json.dumps(chunk) + "\n")
            file.flush()
            if done % max(1, len(jobs) // 100) == 0:
                left = (time.monotonic() - began) / done * (len(jobs) - done)
                print(f"{done}/{len(jobs)} chunks, {left / 60:.0f} min left", file=sys.stderr)
    return found


def study(
    work: Callable[..., dict[str, Any]],
    cells: Iterable[tuple[Any, ...]],
    rows: Callable[[dict[tuple[Any, ...], list[dict[str, Any]]]], list[dict[str, Any]]],
    result: Path,
) -> None:
    """Count all cells as the command line asks, and write the figures."""
    parser = argparse.ArgumentParser(description=sys.modules["__main__"].__doc__)
    parser.add_argument("--runs", type=int, default=5_000, help="draws per cell")
    parser.add_argument("--workers", type=int, default=2)
    asked = parser.parse_args()
    kept = result.with_suffix(".partial.jsonl")
    found = counted(work, cells, runs=asked.runs, kept=kept, workers=asked.workers)
    figures = rows(found)
    result.write_text(json.dumps({"runs": asked.runs, "rows": figures}, indent=1) + "\n")
    for figure in figures:
        if figure["met"] is False:
            print("missed:", {key: value for key, value in figure.items() if key != "about"})
    kept.unlink()
