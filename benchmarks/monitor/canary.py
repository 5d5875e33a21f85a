"""How soon do canary probes see a skew, and do their intervals hold?

    python benchmarks/monitor/canary.py [--quick] [--output FILE]

Populations are the 160 queries of the bundled rewrites, each with its NDCG@5 for both sources from
a real BM25 retrieval of the mixed corpus. For a Relative Δ of −20 and −40 the two scores are
exchanged in as many queries as it takes; for 0 each query comes both ways. Writes
benchmarks/results/canary.json; exit status 1 when a target is missed (never with ``--quick``).
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from pathlib import Path

import numpy as np

from rag_sourcebias.io.samples import load_dataset
from rag_sourcebias.monitor.canary import (
    CanaryQueries,
    RelativeDeltaSequence,
    ask_queries,
    ask_retriever,
    score_answers,
)
from rag_sourcebias.monitor.probe import CanaryProbe
from rag_sourcebias.observe.events import DroppedEvents
from rag_sourcebias.retrieval.search import BM25Spec
from rag_sourcebias.stats.ranking import relative_delta

PER_ROUND = 20
LEVEL = 0.05
MEASURE = "NDCG@5"
TARGETS = (-20.0, -40.0)
QUIET = 100


def delta_of(scores: np.ndarray) -> float:
    return relative_delta(*scores.mean(axis=0).tolist()) or 0.0


def exchanged(scores: np.ndarray, target: float, rng: np.random.Generator) -> np.ndarray:
    """Exchange sources query by query, in random order, as long as that comes nearer."""
    found = scores.copy()
    for row in rng.permutation(len(scores)):
        tried = found.copy()
        tried[row] = tried[row, ::-1]
        if abs(delta_of(tried) - target) < abs(delta_of(found) - target):
            found = tried
    return found


def draw(rng: np.random.Generator, scores: np.ndarray) -> np.ndarray:
    return scores[rng.integers(len(scores), size=PER_ROUND)]


def delays(rng, populations: dict, streams: int, most: int) -> list[dict]:
    rows = []
    for target in TARGETS:
        scores, quiet = populations[target], populations[0.0]
        seen, changed = [], []
        for _ in range(streams):
            # The grid does not matter here: the reference is one of its points.
            sequence, rounds = RelativeDeltaSequence(points=3), 0
            while not sequence.left_at and rounds < most:
                sequence.update(draw(rng, scores))
                rounds += 1
            seen.append(rounds if sequence.left_at else np.inf)
            sequence = RelativeDeltaSequence(points=3)
            for _ in range(QUIET):
                sequence.update(draw(rng, quiet))
            rounds, false = 0, bool(sequence.changed_at)
            while not sequence.changed_at and rounds < most:
                sequence.update(draw(rng, scores))
                rounds += 1
            if not false:
                changed.append(rounds if sequence.changed_at else np.inf)
        rows.append(
            {
                "target": target,
                "relative_delta": round(delta_of(scores), 2),
                "streams": streams,
                "rounds until the alarm": summary(seen),
                f"rounds until a change after {QUIET} quiet rounds is seen": summary(changed),
            }
        )
    return rows


def summary(values: list[float]) -> dict:
    """``values`` are numbers of rounds, infinite where nothing was seen."""
    missed = int(np.isinf(values).sum())
    ends = np.quantile(values, [0.5, 0.9], method="higher")
    median, most = (float(end) if np.isfinite(end) else None for end in ends)
    return {"median": median, "90 %": most, "missed": missed}


def coverage(rng, populations: dict, streams: int, rounds: int) -> list[dict]:
    """Streams whose interval held the truth after every round, and those without an alarm."""
    rows = []
    for scores in populations.values():
        true, held, alarms, widths = delta_of(scores), 0, 0, []
        for _ in range(streams):
            sequence, good = RelativeDeltaSequence(points=81), True
            for _ in range(rounds):
                sequence.update(draw(rng, scores))
                lower, upper = sequence.interval()
                good &= lower <= true <= upper
            held += good
            alarms += sequence.left_at > 0
            widths.append(upper - lower)
        rows.append(
            {
                "relative_delta": round(true, 2),
                "streams": streams,
                "rounds": rounds,
                "held at all rounds": held / streams,
                "alarms against 0": alarms / streams,
                "median width at the end": float(np.median(widths)),
            }
        )
    return rows


def cost(queries: CanaryQueries, rounds: int) -> dict:
    """CPU of a round beyond the retriever, which is free here."""
    ids = list(queries.tags.doc_ids[:10])
    probe = CanaryProbe(lambda _: ids, queries, per_round=PER_ROUND, rng=1)
    probe.run_round()
    started = time.process_time()
    for _ in range(rounds):
        probe.run_round()
    return {"CPU per round, ms": round(1e3 * (time.process_time() - started) / rounds, 2)}


def bars(found: dict) -> list[dict]:
    rows = [
        {
            "what": f"intervals that held at all rounds, Relative Δ {row['relative_delta']}",
            "value": row["held at all rounds"],
            "target": f"≥ {1 - LEVEL}",
            "met": row["held at all rounds"] >= 1 - LEVEL,
        }
        for row in found["coverage"]
    ]
    null = found["coverage"][0]["alarms against 0"]
    rows.append(
        {"what": "false alarms", "value": null, "target": f"≤ {LEVEL}", "met": null <= LEVEL}
    )
    for row in found["delays"]:
        missed = row["rounds until the alarm"]["missed"]
        what = f"streams that saw no alarm at {row['target']}"
        rows.append({"what": what, "value": missed, "target": "0", "met": missed == 0})
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description="Coverage and delays of canary probes.")
    parser.add_argument("--quick", action="store_true", help="few streams, no verdict, no file")
    parser.add_argument("--output", type=Path, help="default: benchmarks/results/canary.json")
    options = parser.parse_args()
    streams, rounds = (20, 50) if options.quick else (400, 150)
    rng, started = np.random.default_rng(20_251_121), time.perf_counter()
    data = load_dataset("crowdrag-rewrites")
    queries = CanaryQueries.from_dataset(data)
    ask = ask_retriever(BM25Spec().build(data.corpus), depth=10)
    every = range(len(queries))
    dropped = DroppedEvents()
    answers = ask_queries(ask, queries, every, doc_id=None, timeout=None, dropped=dropped)
    scores = score_answers(queries, answers, MEASURE)
    populations = {0.0: np.concatenate([scores, scores[:, ::-1]])}  # exactly 0
    populations |= {target: exchanged(scores, target, rng) for target in TARGETS}
    found: dict = {
        "settings": {
            "data": data.name,
            "queries": len(queries),
            "retriever": "bm25",
            "measure": MEASURE,
            "relative_delta as retrieved": round(delta_of(scores), 2),
            "per_round": PER_ROUND,
            "confidence_level": 1 - LEVEL,
        },
        "delays": delays(rng, populations, streams, most=2_000),
        "coverage": coverage(rng, populations, streams // 2, rounds),
        "cost": cost(queries, 50),
    }
    found["bars"] = bars(found)
    found["settings"] |= {"seconds": round(time.perf_counter() - started, 1)}
    found["settings"] |= {"python": platform.python_version(), "numpy": np.__version__}
    text = json.dumps(found, indent=1, ensure_ascii=False)
    print(text)
    if options.output or not options.quick:
        default = Path(__file__).parents[1] / "results" / "canary.json"
        (options.output or default).write_text(text + "\n", encoding="utf-8")
    return 0 if options.quick or all(bar["met"] for bar in found["bars"]) else 1


if __name__ == "__main__":
    sys.exit(main())
