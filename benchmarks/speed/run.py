"""Speed and memory, as ratios within one run on one machine.

    python benchmarks/speed/run.py [--quick] [--output FILE]

Prints a line for each and writes JSON with versions and machine. Exit status 1 when a target is
missed (never with ``--quick``, whose sizes are too small for the targets).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

from interval_rows import interval_rows
from joined import ratios
from rounds import finish, row
from verb_rows import verb_rows

HERE = Path(__file__).parent


def milliseconds(seconds: float) -> str:
    return f"{1000 * seconds:.0f} ms"


def scoring(n_queries: int, n_sources: int) -> list[dict]:
    """NDCG@10 and MAP@10 of each source beside one pytrec_eval pass per source (joined.py)."""
    size = f"{n_queries:,} queries × 100, {n_sources} sources"
    targets = {"prepared": 8 if n_sources == 2 else 30, "with its join": 4, "from dictionaries": 1}
    return [
        row(f"NDCG@10 + MAP@10, {size}, {way}", "", "pytrec_eval", times, f"≥ {targets[way]}×",
            times >= targets[way])
        for way, times in ratios(n_queries, n_sources).items()
    ]  # fmt: skip


def child(code: str, *arguments: object) -> dict:
    """Run code in a fresh interpreter; it prints one JSON object."""
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=True,
        cwd=HERE,
    )
    return json.loads(done.stdout)


BOOTSTRAP = """
import json, sys, time, tracemalloc
import numpy as np
from rag_sourcebias.infer.means import bootstrap_means
n, resamples = map(int, sys.argv[1:])
columns = np.random.default_rng(0).random((n, 2))
bootstrap_means(columns[:10], resamples=10, rng=0)
times = []
for _ in range(3):
    start = time.perf_counter()
    bootstrap_means(columns, resamples=resamples, rng=0)
    times.append(time.perf_counter() - start)
tracemalloc.start()
bootstrap_means(columns, resamples=resamples, rng=0)
print(json.dumps({"seconds": min(times), "peak": tracemalloc.get_traced_memory()[1]}))
"""


def bootstrap(*, n: int, resamples: int) -> list[dict]:
    """Query-cluster bootstrap; a matrix of n × resamples counts would be the naive way."""
    found = child(BOOTSTRAP, n, resamples)
    matrix = n * resamples * 8
    return [
        row(
            f"cluster bootstrap, {resamples:,} resamples of {n:,} queries",
            f"{found['seconds']:.2f} s",
            "",
            found["seconds"],
            "< 2 s",
            found["seconds"] < 2,
        ),
        row(
            "… its peak memory",
            f"{found['peak'] / 1e6:.0f} MB",
            f"n × B matrix: {matrix / 1e6:,.0f} MB",
            found["peak"] / matrix,
            "< 0.1 of the matrix",
            found["peak"] < 0.1 * matrix,
        ),
    ]


IMPORT = """
import json, sys, time
start = time.perf_counter()
__import__(sys.argv[1])
print(json.dumps({"seconds": time.perf_counter() - start}))
"""


def imports(*, rounds: int) -> list[dict]:
    """Import time in fresh interpreters, the best of each."""
    ours, numpy = (
        min(child(IMPORT, module)["seconds"] for _ in range(rounds))
        for module in ("rag_sourcebias", "numpy")
    )
    reference = f"import numpy: {milliseconds(numpy)}"
    return [
        row("import rag_sourcebias", milliseconds(ours), reference, ours / numpy, "≤ 1×",
            ours <= numpy)
    ]  # fmt: skip


MEMORY = """
import json, sys, tracemalloc
from workload import Workload
from rag_sourcebias.measure.relevance import source_scores
load = Workload(n_queries=int(sys.argv[1]), depth=100, n_sources=2)
tags, rows = load.tags(), load.qrels_of(*load.sources)
from rag_sourcebias.core.data import Qrels
tracemalloc.start()
run, qrels = load.run(), Qrels.from_dict(rows)
held = tracemalloc.get_traced_memory()[0]
source_scores(run, qrels, tags, measures=("NDCG", "MAP"), cutoffs=(10,))
print(json.dumps({"held": held, "peak": tracemalloc.get_traced_memory()[1]}))
"""


def memory(*, n_queries: int) -> list[dict]:
    """Building a Run and Qrels from columns, joining and scoring them."""
    found = child(MEMORY, n_queries)
    return [
        row(
            f"peak memory of {n_queries * 100:,} (query, document) pairs: Run, Qrels, scores",
            f"{found['peak'] / 1e6:.0f} MB",
            f"held afterwards: {found['held'] / 1e6:.0f} MB",
            found["peak"] / 1e6,
            "< 200 MB",
            found["peak"] < 200e6,
        )
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description="Speed and memory of the core.")
    parser.add_argument("--quick", action="store_true", help="small sizes, no verdict")
    parser.add_argument("--output", type=Path, help="default: benchmarks/results/speed.json")
    options = parser.parse_args()
    quick = options.quick
    n_queries = 1_000 if quick else 10_000
    rounds = 3 if quick else 7
    rows = [
        *scoring(n_queries, 2),
        *scoring(n_queries, 10),
        *bootstrap(n=n_queries, resamples=n_queries),
        *imports(rounds=rounds),
        *memory(n_queries=n_queries),
        *interval_rows(row, quick=quick),
        *verb_rows(row, quick=quick),
    ]
    return finish("speed", rows, quick=quick, output=options.output)


if __name__ == "__main__":
    sys.exit(main())
