"""The same work by the neighbours and by us, side by side.

    python benchmarks/neighbours/run.py            # results/neighbours.json, docs/neighbours.md
    python benchmarks/neighbours/run.py --quick    # small sizes, writes nothing
    python benchmarks/neighbours/run.py --page     # the page from the results there are

Needs the test dependencies and, for ragas, the real data named by ``RAG_SOURCEBIAS_DATA``. All
sides run in this process, in turns, with one thread where ``OMP_NUM_THREADS=1`` is set.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

from neighbours_page import page

from rag_sourcebias.core.codec import environment

ROOT = Path(__file__).resolve().parent.parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "neighbours.json"
PAGE = ROOT / "docs" / "neighbours.md"
PACKAGES = ("pytrec-eval-terrier", "ir-measures", "ppi-python", "ragas")


def measured(*, quick: bool) -> dict[str, Any]:
    """Every part that can run here."""
    from interval_rows_ppi import ppi_rows
    from ranking_rows import ranking_rows

    found: dict[str, Any] = {
        "rankings": ranking_rows(quick=quick),
        "ppi": ppi_rows(quick=quick),
    }
    data = os.environ.get("RAG_SOURCEBIAS_DATA")
    if data:
        from ragas_rows import ragas_rows

        found["ragas"] = ragas_rows(Path(data), quick=quick)
    return {
        "environment": environment() | {name: version(name) for name in PACKAGES},
        "threads": os.environ.get("OMP_NUM_THREADS", "all"),
        "load_average": round(os.getloadavg()[0], 2),
    } | found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, writes nothing")
    parser.add_argument("--page", action="store_true", help="only write the page")
    parser.add_argument("--intervals", action="store_true", help="that part; the rest as stored")
    options = parser.parse_args()
    if options.quick:
        print(page(measured(quick=True)))
        return 0
    if options.intervals:
        from interval_rows_ppi import ppi_rows

        found = json.loads(RESULTS.read_text(encoding="utf-8"))
        found["ppi"] = ppi_rows(quick=False)
    elif not options.page:
        found = measured(quick=False)
    if not options.page:
        text = json.dumps(found, indent=1, ensure_ascii=False)
        RESULTS.write_text(text + "\n", encoding="utf-8")
    found = json.loads(RESULTS.read_text(encoding="utf-8"))
    PAGE.write_text(page(found), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
