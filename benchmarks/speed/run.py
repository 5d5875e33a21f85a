"""Speed and memory, as ratios within one run on one machine.

    python benchmarks/speed/run.py [--quick] [--output FILE]

Prints a line for each and writes JSON with versions and machine. Exit status 1 when a target is
missed (never with ``--quick``, whose sizes are too small for the targets).
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytrec_eval
from interval_rows import interval_rows
from rounds import finish, row
from verb_rows import verb_rows
from workload import Workload

from rag_sourcebias.measure.relevance import source_scores

HERE = Path(__file__).parent
CUTOFF = 10
SAME = 1e-12


def best_seconds(*works: Callable[[], object], rounds: int) -> list[float]:
    """Best time of each piece of work, in turns, so that another load hits all of them alike."""
    best = [float("inf")] * len(works)
    for _ in range(rounds):
        for i, work in enumerate(works):
            start = time.perf_counter()
            work()
            best[i] = min(best[i], time.perf_counter() - start)
    return best


def milliseconds(seconds: float) -> str:
    return f"{1000 * seconds:.0f} ms"


def per_source(*, n_queries: int, n_sources: int, target: float, rounds: int) -> list[dict]:
    """Per-source NDCG@10 and MAP@10 against one prepared pytrec_eval pass per source.

    On both sides everything is prepared that can be: evaluators and run dictionaries there, Run,
    Qrels and TagTable here. Each evaluator holds the judgments of its source only, which is the
    quickest way to ask pytrec_eval for the masked score.
    """
    load = Workload(n_queries=n_queries, depth=100, n_sources=n_sources)
    run, qrels, tags, run_dict = load.run(), load.qrels(), load.tags(), load.run_dict()
    wanted = {f"ndcg_cut.{CUTOFF}", f"map_cut.{CUTOFF}"}
    passes = {s: pytrec_eval.RelevanceEvaluator(load.qrels_of(s), wanted) for s in load.sources}

    def ours(ties: str) -> object:
        return source_scores(
            run, qrels, tags, measures=("NDCG", "MAP"), cutoffs=(CUTOFF,), ties=ties
        )

    scores = ours("trec")
    theirs = {s: evaluator.evaluate(run_dict) for s, evaluator in passes.items()}
    for source in load.sources:
        for name, key in (
            (f"NDCG@{CUTOFF}", f"ndcg_cut_{CUTOFF}"),
            (f"MAP@{CUTOFF}", f"map_cut_{CUTOFF}"),
        ):
            values = np.array([theirs[source][q][key] for q in scores.query_ids])
            difference = float(np.abs(values - scores.of(name, source)).max())
            if difference > SAME:
                raise SystemExit(f"{name} of {source} differs from pytrec_eval by {difference}")
    reference, *ours_seconds = best_seconds(
        lambda: [evaluator.evaluate(run_dict) for evaluator in passes.values()],
        lambda: ours("trec"),
        lambda: ours("expected"),
        rounds=rounds,
    )
    size = f"{n_queries:,} queries × 100, {n_sources} sources"
    return [
        row(
            f"NDCG@10 + MAP@10, {size}, ties={ties!r}",
            milliseconds(seconds),
            f"pytrec_eval, {n_sources} passes: {milliseconds(reference)}",
            reference / seconds,
            f"≥ {target:g}×",
            reference / seconds >= target,
        )
        for ties, seconds in zip(("trec", "expected"), ours_seconds, strict=True)
    ]


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
    """Import time in fresh interpreters, as medians; ``audit`` loads every core module."""
    modules = ("numpy", "rag_sourcebias", "rag_sourcebias.source.audit")
    seconds: dict[str, list[float]] = {m: [] for m in modules}
    for _ in range(rounds):
        for module in modules:
            seconds[module].append(child(IMPORT, module)["seconds"])
    medians = {m: statistics.median(s) for m, s in seconds.items()}
    return [
        row(
            f"import {module}",
            milliseconds(medians[module]),
            f"import numpy: {milliseconds(medians['numpy'])}",
            medians[module] / medians["numpy"],
            "< 2×",
            medians[module] < 2 * medians["numpy"],
        )
        for module in modules[1:]
    ]


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
        *per_source(n_queries=n_queries, n_sources=2, target=8, rounds=rounds),
        *per_source(n_queries=n_queries, n_sources=10, target=35, rounds=rounds),
        *bootstrap(n=n_queries, resamples=n_queries),
        *imports(rounds=rounds),
        *memory(n_queries=n_queries),
        *interval_rows(row, quick=quick),
        *verb_rows(row, quick=quick),
    ]
    return finish("speed", rows, quick=quick, output=options.output)


if __name__ == "__main__":
    sys.exit(main())
