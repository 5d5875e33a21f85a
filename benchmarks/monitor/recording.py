"""What recording costs beside an earlier version of the library, in one run.

    git archive d769881 src integrations | tar x -C /tmp/before
    python benchmarks/monitor/recording.py --before /tmp/before [--quick] [--output FILE]

Both versions record the same retrievals of 10 tagged documents into an event log, in two processes
that take turns round by round (some 5 ms each, the earlier version first in every other round), so
that what else the machine does falls on both alike. CPU time per retrieval is counted on the thread
that records (``time.thread_time``) and of the whole process (``time.process_time``), which has the
log's writer in it. The figure is new / before: the median over rounds, and of that the median over
pairs of processes; their lowest and highest stand beside it.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve()
sys.path.insert(0, str(HERE.parent.parent / "speed"))
from rounds import finish, row  # noqa: E402

CASES = ("without labels", "a collection", "a session for every 5 retrievals")
MOST = 1.1
WARM = 5  # rounds that do not count
CODE = """
import gc, json, sys, tempfile, time
from pathlib import Path
from rag_sourcebias.monitor import EventLog
from rag_sourcebias.observe import Recorder

n, rounds, case = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
sources = ("human", "llm:x", "llm:y", "")
ids = [f"doc-{i}" for i in range(10)]
metadata = [{"rsb_source": sources[i % 4]} if sources[i % 4] else {} for i in range(10)]
with tempfile.TemporaryDirectory() as folder:
    log = EventLog(Path(folder) / "log.db")
    recorder = Recorder(log)
    told = {"collection": "docs"} if case == "a collection" else None
    for number in range(rounds):
        sys.stdin.readline()
        gc.collect()
        gc.disable()
        process, thread = time.process_time(), time.thread_time()
        for i in range(n):
            if case.startswith("a session"):
                told = {"collection": "docs", "session": f"s{(number * n + i) // 5}"}
            recorder.record(ids, metadata=metadata, labels=told)
        thread = time.thread_time() - thread
        assert log.flush(60)
        process = time.process_time() - process
        gc.enable()
        print(json.dumps((1e6 * thread / n, 1e6 * process / n)), flush=True)
    assert log.close()
    assert not log.dropped.total and not recorder.dropped.total
"""


def measured(old: Path, new: Path, *, n: int, rounds: int, case: str) -> np.ndarray:
    """CPU µs of a retrieval, shape (rounds, 2 versions, thread and process)."""
    children = []
    for code in (old, new):
        there = {"PYTHONPATH": f"{code / 'src'}{os.pathsep}{code / 'integrations'}"}
        children.append(
            subprocess.Popen(
                [sys.executable, "-c", CODE, str(n), str(rounds + WARM), case],
                env=os.environ | there,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        )
    found = np.empty((rounds + WARM, 2, 2))
    for number in range(rounds + WARM):
        for which in (0, 1) if number % 2 else (1, 0):
            child = children[which]
            child.stdin.write("\n")
            child.stdin.flush()
            found[number, which] = json.loads(child.stdout.readline())
    for child in children:
        child.stdin.close()
        if child.wait():
            raise RuntimeError(f"a version failed to record {case!r}, see above")
    return found[WARM:]


def compared(before: Path, case: str, *, pairs: int, n: int, rounds: int) -> list[dict]:
    found = [measured(before, HERE.parents[2], n=n, rounds=rounds, case=case) for _ in range(pairs)]
    rows = []
    for column, where in enumerate(("thread that records", "whole process")):
        ratios = [float(np.median(one[:, 1, column] / one[:, 0, column])) for one in found]
        old, new = (np.median([one[:, which, column] for one in found]) for which in (0, 1))
        ratio = statistics.median(ratios)
        rows.append(
            row(
                f"{case}, {where}",
                f"{new:.2f} µs",
                f"{old:.2f} µs before; pairs {min(ratios):.3f} to {max(ratios):.3f}",
                ratio,
                f"≤ {MOST:g} × before",
                ratio <= MOST,
            )
        )
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description="Recording, beside an earlier version.")
    parser.add_argument("--before", type=Path, required=True, help="folder of the earlier version")
    parser.add_argument("--quick", action="store_true", help="small sizes, no verdict")
    parser.add_argument("--output", type=Path, help="default: benchmarks/results/recording.json")
    options = parser.parse_args()
    size = {"pairs": 4, "n": 400, "rounds": 50}
    if not options.quick:
        size = {"pairs": 15, "n": 400, "rounds": 200}
    rows = [one for case in CASES for one in compared(options.before, case, **size)]
    return finish("recording", rows, quick=options.quick, output=options.output)


if __name__ == "__main__":
    sys.exit(main())
