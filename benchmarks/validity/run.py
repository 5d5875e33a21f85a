"""All worlds of known truth through the public verbs, and the page that shows them.

    python benchmarks/validity/run.py              # about three hours on two cores; resumable
    python benchmarks/validity/run.py --runs 100   # minutes: every world, wide error
    python benchmarks/validity/run.py --redraw     # the page from the stored figures

The exit status is 1 where a bar is missed.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from page import PARTS, load, table, written

sys.path.append(str(Path(__file__).resolve().parents[1] / "shared"))
from evidence import write

HERE = Path(__file__).parent


def main() -> int:
    """Run the parts asked for and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5_000, help="draws per cell")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--only", nargs="*", choices=PARTS, default=list(PARTS))
    parser.add_argument("--redraw", action="store_true", help="measure nothing")
    parser.add_argument("--page", type=Path, default=HERE.parents[1] / "docs" / "validity.md")
    asked = parser.parse_args()
    for part in () if asked.redraw else asked.only:
        print(f"worlds: {part}", flush=True)
        command = [sys.executable, str(HERE / f"{part}.py"), "--runs", str(asked.runs)]
        subprocess.run([*command, "--workers", str(asked.workers)], check=True, cwd=HERE)
    write(asked.page, written(), {"validity": table()})
    missed = [row for part in PARTS for row in load(part)["rows"] if row["met"] is False]
    for row in missed:
        print("missed:", {key: row[key] for key in ("world", "n", "kind", "rate", "bar")})
    return bool(missed)


if __name__ == "__main__":
    raise SystemExit(main())
