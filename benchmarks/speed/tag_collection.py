"""Tagging a Chroma collection in place, against a bare loop of ``Collection.update``.

    python benchmarks/speed/tag_collection.py [--quick] [--output FILE]

Both sides write the same metadata in the same batches to fresh copies of one collection on disk, in
turns, each in a process of its own. Of the bare loop only the calls of ``update`` are timed: ids
and metadata are there. Exit status 1 when a target is missed (never with ``--quick``).
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import numpy as np

from rag_sourcebias.core.values import environment
from rag_sourcebias.tagging.documents import taggers_fingerprint
from rag_sourcebias.tagging.rules import IdTagger

HERE = Path(__file__).parent
DIMENSION = 24
TARGET = 1.2
MOST_MB = 100  # of memory that the pass may take beyond the bare loop
NAME = "documents"


def doc_id(i: int) -> str:
    return f"doc{i // 2}#{'human' if i % 2 else 'llm:gpt-x'}"


def tags(i: int) -> dict[str, str]:
    """What the pass writes for one document."""
    pair_id, _, source = doc_id(i).partition("#")
    return {
        "rsb_source": source,
        "rsb_pair_id": pair_id,
        "rsb_origin": "declared",
        "rsb_tagger": taggers_fingerprint(IdTagger()),
    }


def opened(place: str) -> object:
    import chromadb

    return chromadb.PersistentClient(place)


def build(place: str, n: int) -> None:
    client, rng = opened(place), np.random.default_rng(0)
    collection = client.create_collection(NAME, embedding_function=None)
    size = client.get_max_batch_size()
    for start in range(0, n, size):
        rows = range(start, min(n, start + size))
        collection.add(
            ids=[doc_id(i) for i in rows],
            embeddings=rng.normal(size=(len(rows), DIMENSION)).astype(np.float32),
            documents=[f"A short passage about subject {i % 997}, number {i}." for i in rows],
            metadatas=[{"source": f"https://example.org/{i}", "page": i % 40} for i in rows],
        )


def bare(place: str, n: int) -> float:
    client = opened(place)
    collection, size, seconds = client.get_collection(NAME), client.get_max_batch_size(), 0.0
    fixed = tags(0)
    for start in range(0, n, size):
        rows = range(start, min(n, start + size))
        ids = [doc_id(i) for i in rows]
        parts = [one.partition("#") for one in ids]
        metadatas = [fixed | {"rsb_source": s, "rsb_pair_id": p} for p, _, s in parts]
        begin = time.perf_counter()
        collection.update(ids=ids, metadatas=metadatas)
        seconds += time.perf_counter() - begin
    return seconds


def ours(place: str, n: int) -> float:
    from rag_sourcebias_integrations.chroma.tagging import tag_collection

    collection = opened(place).get_collection(NAME)
    begin = time.perf_counter()
    result = tag_collection(collection, IdTagger())
    seconds = time.perf_counter() - begin
    found = [collection.get(ids=[doc_id(i)])["metadatas"][0] for i in (0, n // 2, n - 1)]
    right = [{k: v for k, v in m.items() if k.startswith("rsb_")} for m in found]
    if result.n_documents != n or right != [tags(i) for i in (0, n // 2, n - 1)]:
        raise SystemExit(f"the pass did not do what the bare loop does: {result}")
    return seconds


def traced(place: str, n: int) -> float:
    """Peak of the memory that Python holds during the pass, in MB."""
    tracemalloc.start()
    ours(place, n)
    return tracemalloc.get_traced_memory()[1] / 1e6


WORK: dict[str, Callable[[str, int], float | None]] = {
    "build": build,
    "bare": bare,
    "ours": ours,
    "traced": traced,
}


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def work(kind: str, place: str, n: int) -> None:
    """Run in a child process: do one piece of work and print what it took."""
    if kind != "build":
        opened(place).get_collection(NAME).get(limit=1)
    before = peak_mb()
    seconds = WORK[kind](place, n)
    print(json.dumps({"seconds": seconds, "growth": peak_mb() - before, "peak": peak_mb()}))


def child(kind: str, place: Path, n: int) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", __file__, "--child", kind, str(place), str(n)],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def measure(folder: Path, n: int, *, rounds: int) -> dict:
    """Seconds, growth of peak memory and peak memory of each side, over fresh copies in turns."""
    original = folder / f"original-{n}"
    child("build", original, n)
    found = {kind: {"seconds": [], "growth": [], "peak": []} for kind in ("bare", "ours")}
    for number in range(rounds):
        for kind in ("bare", "ours") if number % 2 else ("ours", "bare"):
            copy = shutil.copytree(original, folder / "copy")
            for key, value in child(kind, copy, n).items():
                found[kind][key].append(round(value, 3))
            shutil.rmtree(copy)
    found["python_mb"] = round(child("traced", original, n)["seconds"], 2)
    shutil.rmtree(original)
    return found


def row(what: str, ours: str, reference: str, value: float, target: str, met: bool) -> dict:
    return {
        "what": what,
        "ours": ours,
        "reference": reference,
        "value": round(value, 4),
        "target": target,
        "met": bool(met),
    }


def rows(small: dict, large: dict, sizes: tuple[int, int]) -> list[dict]:
    kinds = ("ours", "bare")
    seconds = {kind: min(large[kind]["seconds"]) for kind in kinds}
    ratio = seconds["ours"] / seconds["bare"]
    growth = {kind: min(large[kind]["growth"]) for kind in kinds}
    extra = growth["ours"] - growth["bare"]
    extra_small = min(small["ours"]["growth"]) - min(small["bare"]["growth"])
    return [
        row(
            f"tag_collection, first tags of {sizes[1]:,} documents",
            f"{seconds['ours']:.1f} s",
            f"bare loop of update: {seconds['bare']:.1f} s",
            ratio,
            f"≤ {TARGET}×",
            ratio <= TARGET,
        ),
        row(
            "… peak of the memory that Python holds",
            f"{large['python_mb']:.1f} MB",
            f"{sizes[0]:,} documents: {small['python_mb']:.1f} MB",
            large["python_mb"] / small["python_mb"],
            f"≤ {TARGET}× (constant)",
            large["python_mb"] <= TARGET * small["python_mb"],
        ),
        row(
            "… growth of the process, most of it Chroma's own",
            f"{growth['ours']:.0f} MB",
            f"bare loop: {growth['bare']:.0f} MB; {extra_small:+.0f} MB beyond it at "
            f"{sizes[0]:,} documents",
            extra,
            f"< {MOST_MB} MB beyond the bare loop",
            extra < MOST_MB,
        ),
    ]


def main() -> int:
    if sys.argv[1:2] == ["--child"]:
        kind, place, n = sys.argv[2:]
        work(kind, place, int(n))
        return 0
    parser = argparse.ArgumentParser(description="Speed of tagging a Chroma collection in place.")
    parser.add_argument("--quick", action="store_true", help="small sizes, no verdict")
    parser.add_argument("--output", type=Path, help="default: benchmarks/results/…")
    options = parser.parse_args()
    sizes = (2_000, 10_000) if options.quick else (20_000, 100_000)
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        small = measure(Path(folder), sizes[0], rounds=1)
        large = measure(Path(folder), sizes[1], rounds=1 if options.quick else 3)
    found = rows(small, large, sizes)
    output = options.output
    if output is None and not options.quick:
        output = HERE.parent / "results" / "tag_collection.json"
    if output is not None:
        record = {
            "environment": environment() | {"chromadb": version("chromadb")},
            "quick": options.quick,
            "load_average": [round(load, 2), round(os.getloadavg()[0], 2)],
            "dimension": DIMENSION,
            "rounds": {str(sizes[0]): small, str(sizes[1]): large},
            "rows": found,
        }
        output.write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    for one in found:
        print(" | ".join(str(one[key]) for key in ("what", "ours", "reference", "value", "target")))
    return int(not options.quick and not all(one["met"] for one in found))


if __name__ == "__main__":
    sys.exit(main())
