"""Intervals by glide-py, on draws that another process made and compares.

    python3.12 -m venv VENV && VENV/bin/pip install glide-py
    python benchmarks/neighbours/run.py --glide VENV/bin/python

glide-py needs Python 3.12, so it has a process and a Python of its own: this file imports nothing
of ours. It reads an archive of arrays ``y``, ``f`` (draws × labelled) and ``pool`` (draws × others)
from standard input, and prints the ends of each method for each draw, null where it refuses, with
the milliseconds of an interval.
"""

from __future__ import annotations

import io
import json
import sys
import time
from importlib.metadata import version

import numpy as np
from glide.estimators import PPIMeanEstimator, PTDMeanEstimator

METHODS = {
    "glide-py, PPI++": (PPIMeanEstimator, {}),
    "glide-py, PTD bootstrap": (PTDMeanEstimator, {"random_seed": 0}),
}


def ends(method: str, y: np.ndarray, f: np.ndarray, pool: np.ndarray) -> list[float] | None:
    kind, options = METHODS[method]
    human = np.concatenate([y, np.full(len(pool), np.nan)])
    try:
        found = kind().estimate(human, np.concatenate([f, pool]), **options).confidence_interval
    except ValueError:  # labels that are all alike
        return None
    return [float(found.lower_bound), float(found.upper_bound)]


def main() -> None:
    given = np.load(io.BytesIO(sys.stdin.buffer.read()))
    parts = [given[name] for name in ("y", "f", "pool")]
    made: dict[str, object] = {"version": version("glide-py"), "ends": {}, "ms": {}}
    for method in METHODS:
        started = time.process_time()
        made["ends"][method] = [ends(method, *draw) for draw in zip(*parts, strict=True)]
        seconds = time.process_time() - started
        made["ms"][method] = round(1000 * seconds / len(parts[0]), 3)
    print(json.dumps(made))


if __name__ == "__main__":
    main()
