"""Audits of a large corpus by each engine: time, memory, and whether the numbers are the same."""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from multiprocessing import Process
from pathlib import Path
from typing import Any

from corpus import DIMENSION, N_QUERIES, write

RESULT = Path(__file__).parents[1] / "results" / "scale.json"
ENGINES = {
    "local": ["--engine", "local"],
    "ray, 1 worker": ["--engine", "ray", "--workers", "1"],
    "ray, 2 workers": ["--engine", "ray", "--workers", "2"],
}


def audit(folder: Path, work: Path, report: Path, options: list[str]) -> dict[str, float]:
    """Run the command of the README in a process of its own."""
    command = [
        *(sys.executable, "-m", "rag_sourcebias", "audit", "source", str(folder), *options),
        *("--work-folder", str(work), "--report", str(report)),
    ]
    # One thread a process, so that workers are what is compared.
    env = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    start = time.perf_counter()
    process = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL)
    # Of this process alone: Ray's workers are no children of it.
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{' '.join(command)} failed with status {status}")
    seconds = time.perf_counter() - start
    return {"seconds": round(seconds, 1), "peak_mb": round(usage.ru_maxrss / 1024)}


def numbers(report: Path) -> dict[str, Any]:
    """Return what a report says, without when and by what it was made."""
    data: dict[str, Any] = json.loads((report / "report.json").read_text(encoding="utf-8"))
    return {
        key: value
        for key, value in data.items()
        if key not in ("created", "document", "environment")
    }


def study(n_documents: int, folder: Path, engines: list[str]) -> dict[str, Any]:
    """Audit one corpus by some engines."""
    started = time.perf_counter()
    # In a process of its own: what a process starts is billed for the memory of its parent.
    writer = Process(target=write, args=(folder / "data", n_documents))
    writer.start()
    writer.join()
    print(f"wrote {n_documents:,} documents in {time.perf_counter() - started:.0f} s", flush=True)
    given = f"documents={folder / 'data/documents.npy'},queries={folder / 'data/queries.npy'}"
    retriever = ["--retriever", f"given:vectors,{given}"]
    found: dict[str, Any] = {}
    first: dict[str, Any] | None = None
    for name in engines:
        work, report = folder / "work", folder / "report"
        found[name] = audit(folder / "data", work, report, [*ENGINES[name], *retriever])
        said = numbers(report)
        first = first or said
        found[name]["same_numbers"] = said == first
        found[name]["work_folder_mb"] = round(
            sum(path.stat().st_size for path in work.rglob("*") if path.is_file()) / 2**20
        )
        shutil.rmtree(work)
        print(name, found[name], flush=True)
    return found


def main() -> int:
    """Run the study and store it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--quick", action="store_true", help="20,000 documents; writes nothing")
    asked = parser.parse_args()
    n_documents = 20_000 if asked.quick else asked.documents
    with tempfile.TemporaryDirectory() as name:
        small = study(max(n_documents // 10, 4_000), Path(name) / "small", ["local"])
        large = study(n_documents, Path(name) / "large", list(ENGINES))
    one, two = large["ray, 1 worker"]["seconds"], large["ray, 2 workers"]["seconds"]
    growth = large["local"]["peak_mb"] - small["local"]["peak_mb"]
    result = {
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "documents": n_documents,
        "queries": N_QUERIES,
        "dimension": DIMENSION,
        "engines": large,
        "a_tenth_of_the_documents": small,
        "ray_2_workers_over_1": round(one / two, 2),
        "bytes_of_memory_per_document": round(
            growth * 2**20 / (n_documents - max(n_documents // 10, 4_000))
        ),
        "all_the_same_numbers": all(r["same_numbers"] for r in (*large.values(), *small.values())),
    }
    print(json.dumps(result, indent=2))
    if not asked.quick:
        RESULT.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    return 0 if result["all_the_same_numbers"] else 1


if __name__ == "__main__":
    sys.exit(main())
