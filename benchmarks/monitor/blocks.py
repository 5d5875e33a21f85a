"""How often does the monitor page somebody for nothing, and how soon does it see a shift?

    python benchmarks/monitor/blocks.py [--quick] [--streams N] [--data FOLDER] [--output FILE]
                                        [--resume]

Twelve kinds of traffic, 5,000 retrievals over two weeks, 2,000 streams each: how many have a page
(after seven days) or a notice (before) although nothing shifted; after which time shifts of 20 and
40 points of exposure share are told. Streams go through the test behind the monitor, which gives
what the monitor does (tests/statistics/test_monitor_traffic.py). Writes
benchmarks/results/blocks.json after each kind;
``--resume`` goes on with what is there. A bar fails where an exact binomial test rejects it at
.001: exit status 1 (never with ``--quick``).
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np
import streams
from scipy.stats import binomtest

from rag_sourcebias.core.codec import environment
from rag_sourcebias.monitor.blocks import BlockTest

RESULTS = Path(__file__).resolve().parent.parent / "results"
LEARN = 1_000
PAGES, NOTICES, REJECT = 0.05, 0.10, 0.001
FOUND = {-0.2: 0.80, -0.4: 0.95}
BARRED = ("independent", "sessions of 10", "Zipf repeats")
NOTICED = ("weekends −.20",)  # a first weekend is one: notices of it are no false ones
KINDS = ("without a shift", "shifts")


def found_documents(folder: Path) -> np.ndarray:
    """Ten documents of each NFCorpus query in the order of the file, by BM25, shape (n, 10)."""
    from rag_sourcebias.intake.beir import read_beir
    from rag_sourcebias.retrieval.search import BM25Spec

    dataset = read_beir(folder, split="train")
    run = BM25Spec().build(dataset.corpus).retrieve(dataset.queries, streams.DEPTH)
    rows = [
        run.doc_codes[start:stop]
        for start, stop in zip(run.offsets, run.offsets[1:], strict=False)
        if stop - start == streams.DEPTH
    ]
    return np.array(rows)


def by_blocks(one: streams.Traffic) -> list[tuple[int, str]]:
    test = BlockTest(2, learn=LEARN)
    units = None if one.user is None else one.user.tolist()
    return [(row, s.kind) for row, s in test.add_many(one.values(), one.at, units=units)]


def null_rates(world: str, n: int, documents: np.ndarray) -> dict:
    """Streams in which nothing shifts."""
    rng = np.random.default_rng(20_261_124)
    pages = notices = 0
    for _ in range(n):
        one = streams.traffic(rng, world, found=documents)
        kinds = [kind for _, kind in by_blocks(one)]
        pages += "page" in kinds
        notices += "notice" in kinds
    return {
        "world": world,
        "streams": n,
        "pages": pages / n,
        "notices": notices / n,
        "pages_p": float(binomtest(pages, n, PAGES, alternative="greater").pvalue),
        "notices_p": float(binomtest(notices, n, NOTICES, alternative="greater").pvalue),
    }


def found_shifts(world: str, shift: float, n: int, documents: np.ndarray) -> dict:
    """Streams in which the share moves after seven days; delays in retrievals."""
    rng = np.random.default_rng(20_261_125)
    start, delays, told = streams.SHIFT_AT, [], 0
    for _ in range(n):
        after = [
            (row, kind)
            for row, kind in by_blocks(streams.traffic(rng, world, shift=shift, found=documents))
            if row >= start
        ]
        first = [row for row, kind in after if kind != "resolved"]
        delays.append(first[0] - start + 1 if first else np.inf)
        told += len(after) == 1
    found = int(np.isfinite(delays).sum())
    bar = FOUND[shift]
    return {
        "world": world,
        "points": round(100 * shift),
        "streams": n,
        "found": found / n,
        "found_p": float(binomtest(found, n, bar, alternative="less").pvalue),
        "median_delay": float(np.median(delays)),
        "told_once": told / max(found, 1),
    }


def bars(null: list[dict], shifts: list[dict]) -> list[dict]:
    rows = []
    for r in null:
        for what, bar in (("pages", PAGES), ("notices", NOTICES)):
            if what == "notices" and r["world"] in NOTICED:
                continue
            rows.append(
                {
                    "what": f"{what} without a shift, {r['world']}",
                    "value": r[what],
                    "target": f"≤ {bar}",
                    "met": r[f"{what}_p"] >= REJECT,
                }
            )
    for r in shifts:
        if r["world"] not in BARRED:
            continue
        what = f"{r['points']} points found, {r['world']}"
        target = f"≥ {FOUND[r['points'] / 100]}"
        rows.append(
            {"what": what, "value": r["found"], "target": target, "met": r["found_p"] >= REJECT}
        )
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description="Pages, notices and delays on real traffic.")
    parser.add_argument("--quick", action="store_true", help="few streams, no verdict, no file")
    parser.add_argument("--streams", type=int, default=2_000, help="of each kind (2000)")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="data sets")
    parser.add_argument("--output", type=Path, help="default: benchmarks/results/blocks.json")
    parser.add_argument("--resume", action="store_true", help="keep the kinds that are there")
    options = parser.parse_args()
    n, few = (20, 10) if options.quick else (options.streams, options.streams // 10)
    target = options.output or (None if options.quick else RESULTS / "blocks.json")
    found = {"settings": {}, "without a shift": [], "shifts": [], "bars": []}
    if options.resume and target is not None and target.exists():
        found = json.loads(target.read_text(encoding="utf-8"))
    settings = environment() | {"retrievals": streams.RETRIEVALS, "days": streams.DAYS}
    found["settings"] = settings | {"seconds": found["settings"].get("seconds", 0.0)}
    done = {(row["world"], row.get("points")) for part in KINDS for row in found[part]}
    documents = found_documents(options.data / "nfcorpus")
    for shift, world in [(s, w) for s in (0.0, *FOUND) for w in streams.WORLDS]:
        if (world, round(100 * shift) if shift else None) in done:
            continue
        started = time.perf_counter()
        if not shift:
            row = null_rates(world, n, documents)
        else:
            barred = world in BARRED
            row = found_shifts(world, shift, n if barred and not options.quick else few, documents)
        print(row, file=sys.stderr, flush=True)
        found[KINDS[bool(shift)]].append(row)
        found["settings"]["seconds"] += round(time.perf_counter() - started, 1)
        found["bars"] = bars(found[KINDS[0]], found[KINDS[1]])
        text = json.dumps(found, indent=1, ensure_ascii=False)
        if target is not None:
            target.write_text(text + "\n", encoding="utf-8")
    print(json.dumps(found, indent=1, ensure_ascii=False))
    return 0 if options.quick or all(bar["met"] for bar in found["bars"]) else 1


if __name__ == "__main__":
    sys.exit(main())
