"""What reading costs with its checks and limits, beside the version that had none, in one run.

    git archive ab3cd5f src integrations | tar x -C /tmp/before
    python benchmarks/speed/reading.py --before /tmp/before [--quick] [--output FILE]

Both versions read the same files in processes of their own that take turns; the earlier one goes
first in every other pair. Of each process counts the least CPU time of several reads. The figure is
the median over pairs of new / before, with the least of all processes beside it.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from rounds import finish, row

MOST = 1.05
CASES = {
    "BEIR folder": "read_beir(folder / 'beir')",
    "TREC run": "read_run(folder / 'run.txt')",
    "TREC run, gzip": "read_run(folder / 'run.txt.gz')",
    "judged items, CSV": "read_judged_items(folder / 'items.csv')",
    "judged items, JSON lines": "read_judged_items(folder / 'items.jsonl')",
    "judged items, Parquet": "read_judged_items(folder / 'items.parquet')",
    "tags, JSON lines": "read_tags(folder / 'tags.jsonl')",
}
CODE = """
import json, sys, time
from pathlib import Path
from rag_sourcebias.io.beir import read_beir
from rag_sourcebias.judged.files import read_judged_items
from rag_sourcebias.io.trec import read_run
from rag_sourcebias.io.trec import read_tags
folder, rounds, found = Path(sys.argv[1]), int(sys.argv[2]), {}
for case, call in json.loads(sys.argv[3]).items():
    work = eval("lambda: " + call)
    work()
    seconds = []
    for _ in range(rounds):
        start = time.process_time()
        work()
        seconds.append(time.process_time() - start)
    found[case] = min(seconds)
print(json.dumps(found))
"""


def write_files(folder: Path, n: int) -> None:
    """Write 2 n documents, n lines of a run, and 3 n items and tags."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    words = np.array(["river", "stone", "of", "the", "electoral", "Straße", "model", "answers"])
    texts = [" ".join(rng.choice(words, 90)) for _ in range(200)]
    (folder / "beir/corpus").mkdir(parents=True)
    (folder / "beir/qrels").mkdir()

    def lines(name: str, rows: list[dict[str, object]]) -> None:
        (folder / name).write_text("".join(json.dumps(one) + "\n" for one in rows))

    for source in ("human", "gpt"):
        rows = [{"_id": f"d{i}", "title": "", "text": texts[i % 200]} for i in range(n)]
        lines(f"beir/corpus/{source}.jsonl", rows)
    lines("beir/queries.jsonl", [{"_id": f"q{i}", "text": texts[i % 200]} for i in range(n // 10)])
    judged = "".join(f"q{i}\td{i}\t1\n" for i in range(n // 10))
    (folder / "beir/qrels/test.tsv").write_text("query-id\tcorpus-id\tscore\n" + judged)
    run = "".join(
        f"q{i // 100} Q0 d{i * 7 % n} {i % 100 + 1} {100 - i % 100} bm25\n" for i in range(10 * n)
    )
    (folder / "run.txt").write_text(run)
    (folder / "run.txt.gz").write_bytes(gzip.compress(run.encode(), 6))
    items = [(f"i{i}", i * 7 % 100 / 100, i % 2 if i < 500 else None) for i in range(6 * n)]
    table = "".join(f"{a},{b},{'' if c is None else c}\n" for a, b, c in items)
    (folder / "items.csv").write_text("id,judge,human\n" + table)
    lines("items.jsonl", [{"id": a, "judge": b, "human": c} for a, b, c in items])
    columns = dict(zip(("id", "judge", "human"), zip(*items, strict=True), strict=True))
    pq.write_table(pa.table({k: list(v) for k, v in columns.items()}), folder / "items.parquet")
    sources = ("human", "llm:claude")
    lines("tags.jsonl", [{"doc_id": f"d{i}", "source": sources[i % 2]} for i in range(6 * n)])


def measured(code: Path, folder: Path, rounds: int) -> dict[str, float]:
    """CPU seconds of each case with one version."""
    done = subprocess.run(
        [sys.executable, "-c", CODE, str(folder), str(rounds), json.dumps(CASES)],
        env=os.environ | {"PYTHONPATH": f"{code / 'src'}{os.pathsep}{code / 'integrations'}"},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def main() -> int:
    parser = argparse.ArgumentParser(description="Reading, beside an earlier version.")
    parser.add_argument("--before", type=Path, required=True, help="folder of the earlier version")
    parser.add_argument("--quick", action="store_true", help="small sizes, no verdict")
    parser.add_argument("--output", type=Path, help="default: benchmarks/results/reading.json")
    options = parser.parse_args()
    now = Path(__file__).resolve().parents[2]
    found: dict[Path, list[dict[str, float]]] = {options.before: [], now: []}
    with tempfile.TemporaryDirectory() as folder:
        write_files(Path(folder), 2_000 if options.quick else 30_000)
        for pair in range(3 if options.quick else 10):
            for code in (options.before, now)[:: 1 if pair % 2 else -1]:
                found[code].append(measured(code, Path(folder), 3))
    rows = []
    for case in CASES:
        old, new = ([one[case] for one in found[code]] for code in (options.before, now))
        ratio = statistics.median(b / a for a, b in zip(old, new, strict=True))
        rows.append(
            row(
                case,
                f"{min(new) * 1e3:.0f} ms",
                f"{min(old) * 1e3:.0f} ms before; least by least {min(new) / min(old):.3f}",
                ratio,
                f"≤ {MOST:g} × before",
                ratio <= MOST,
            )
        )
    return finish("reading", rows, quick=options.quick, output=options.output)


if __name__ == "__main__":
    sys.exit(main())
