"""What recording costs beside an earlier version of the library, in one run.

    git archive ab3cd5f src integrations | tar x -C /tmp/before
    python benchmarks/monitor/recording.py --before /tmp/before [--quick] [--output FILE]

Both versions record the same retrievals of 10 tagged documents into an event log, in processes of
their own that take turns; the earlier one goes first in every other pair. CPU time per retrieval is
counted on the thread that records (``time.thread_time``) and of the whole process
(``time.process_time``), which has the log's writer in it. The figure is the median over pairs of
new / before, with the lowest decile of each: work of other processes makes the same code cost more.
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
MOST = 1.0
CODE = """
import gc, json, sys, tempfile, time
from pathlib import Path
from rag_sourcebias.instrument import Recorder
from rag_sourcebias.monitor.log.event_log import EventLog

n, rounds, case = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
sources = ("human", "llm:x", "llm:y", "")
ids = [f"doc-{i}" for i in range(10)]
metadata = [{"rsb_source": sources[i % 4]} if sources[i % 4] else {} for i in range(10)]
found = []
with tempfile.TemporaryDirectory() as folder:
    log = EventLog(Path(folder) / "log.db")
    recorder = Recorder(log)
    told = {"collection": "docs"} if case == "a collection" else None
    for number in range(rounds + 1):
        gc.collect()
        gc.disable()
        process, thread = time.process_time(), time.thread_time()
        for i in range(n):
            if case.startswith("a session"):
                told = {"collection": "docs", "session": f"s{(number * n + i) // 5}"}
            recorder.record(ids, metadata=metadata, labels=told)
        thread = time.thread_time() - thread
        assert log.flush(60)
        found.append((1e6 * thread / n, 1e6 * (time.process_time() - process) / n))
        gc.enable()
    assert log.close()
    assert not log.dropped.total and not recorder.dropped.total
print(json.dumps(found[1:]))
"""


def measured(code: Path, *, n: int, rounds: int, case: str) -> np.ndarray:
    """CPU µs of a retrieval on the recording thread and in the process, shape (rounds, 2)."""
    there = {"PYTHONPATH": f"{code / 'src'}{os.pathsep}{code / 'integrations'}"}
    done = subprocess.run(
        [sys.executable, "-c", CODE, str(n), str(rounds), case],
        env=os.environ | there,
        capture_output=True,
        text=True,
        check=True,
    )
    return np.array(json.loads(done.stdout))


def compared(before: Path, case: str, *, pairs: int, n: int, rounds: int) -> list[dict]:
    now = HERE.parents[2]
    found: dict[Path, list[np.ndarray]] = {before: [], now: []}
    for pair in range(pairs):
        for code in (before, now)[:: 1 if pair % 2 else -1]:
            found[code].append(measured(code, n=n, rounds=rounds, case=case))
    rows = []
    for column, where in enumerate(("thread that records", "whole process")):
        old, new = (
            [float(np.quantile(one[:, column], 0.1)) for one in found[code]]
            for code in (before, now)
        )
        ratio = statistics.median(b / a for a, b in zip(old, new, strict=True))
        lowest = min(new) / min(old)
        rows.append(
            row(
                f"{case}, {where}",
                f"{min(new):.2f} µs",
                f"{min(old):.2f} µs before; lowest by lowest {lowest:.3f}",
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
    size = {"pairs": 4, "n": 400, "rounds": 30}
    if not options.quick:
        size = {"pairs": 10, "n": 400, "rounds": 60}
    rows = [one for case in CASES for one in compared(options.before, case, **size)]
    return finish("recording", rows, quick=options.quick, output=options.output)


if __name__ == "__main__":
    sys.exit(main())
