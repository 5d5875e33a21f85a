"""Audits whose documents must be encoded: what workers save where the work is.

    python benchmarks/scale/encoding.py [--quick]

Real words in random order, 40 a document, with all-MiniLM-L6-v2; one thread a process.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

from corpus import write
from run import ENGINES, audit, numbers

from rag_sourcebias.intake.samples import load_sample

RESULT = Path(__file__).parents[1] / "results" / "scale_encoding.json"
OPTIONS = ["--retriever", "dense:all-MiniLM-L6-v2", "--no-length-matched"]


def main() -> int:
    """Run the study and store it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shards", type=int, default=16, help="of 1,024 documents")
    parser.add_argument("--quick", action="store_true", help="two shards; writes nothing")
    asked = parser.parse_args()
    shards = 2 if asked.quick else asked.shards
    words = sorted({w for text in load_sample().corpus.texts for w in re.findall("[a-z]+", text)})
    found: dict[str, Any] = {}
    first: dict[str, Any] | None = None
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder / "data", 1_024 * shards, words=words)
        for engine, chosen in ENGINES.items():
            # A work folder and a cache of its own: nothing is there already.
            work, report = folder / engine, folder / f"{engine} report"
            options = [*chosen, "--shard-documents", "1024", *OPTIONS]
            found[engine] = audit(folder / "data", work, report, options)
            said = numbers(report)
            first = first or said
            found[engine]["same_numbers"] = said == first
            print(engine, found[engine], flush=True)
    one, two = found["ray, 1 worker"]["seconds"], found["ray, 2 workers"]["seconds"]
    result = {
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "documents": 1_024 * shards,
        "words": 40,
        "engines": found,
        "ray_2_workers_over_1": round(one / two, 2),
        "all_the_same_numbers": all(engine["same_numbers"] for engine in found.values()),
    }
    print(json.dumps(result, indent=2))
    if not asked.quick:
        RESULT.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    return 0 if result["all_the_same_numbers"] else 1


if __name__ == "__main__":
    sys.exit(main())
