"""Pieces of work timed in turns, and what follows from the rounds."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from rag_sourcebias.core.codec import environment

RESULTS = Path(__file__).resolve().parent.parent / "results"


def in_turns(
    works: Mapping[str, Callable[[], object]],
    *,
    rounds: int,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, list[float]]:
    """Seconds of each piece of work per round, the order turned round every time.

    ``clock=time.process_time`` measures CPU time of all threads, which other load disturbs less.
    """
    seconds: dict[str, list[float]] = {name: [] for name in works}
    for number in range(rounds):
        order = list(works) if number % 2 == 0 else list(reversed(works))
        for name in order:
            start = clock()
            works[name]()
            seconds[name].append(clock() - start)
    return seconds


def row(what: str, ours: str, reference: str, value: float, target: str, met: bool | None) -> dict:
    """One line of a result file; ``met`` is None where nothing was asked for."""
    return {
        "what": what,
        "ours": ours,
        "reference": reference,
        "value": round(value, 4),
        "target": target,
        "met": None if met is None else bool(met),
    }


def finish(name: str, rows: list[dict], *, quick: bool, output: Path | None, **more: object) -> int:
    """Print the rows, write them unless they are quick ones, and return the exit status."""
    if output is None and not quick:
        output = RESULTS / f"{name}.json"
    if output is not None:
        record = {
            "environment": environment(),
            "quick": quick,
            "threads": os.environ.get("OMP_NUM_THREADS", "all"),
            "load_average": round(os.getloadavg()[0], 2),
            **more,
            "rows": rows,
        }
        output.write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    for one in rows:
        print(" | ".join(str(one[key]) for key in ("what", "ours", "reference", "value", "target")))
    return int(not quick and any(one["met"] is False for one in rows))
