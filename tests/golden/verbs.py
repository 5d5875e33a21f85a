"""What the commands print on small inputs, without what differs from machine to machine."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from answer_tables import HEAD, answer_rows
from command_line import inside, read_csv, write_csv, write_lines
from paired_texts import paired_dataset
from ranked_pairs import FILES, write_ranked_pairs
from rendering import FOLDER as REPORTS
from shifted_logs import write_log

from rag_sourcebias.pairs.writing import write_beir

FOLDER = Path(__file__).parent / "verbs"
_POOL = ("--run", "a.run", "--labels", "judge.tsv")
#: The commands of each file, in the order in which a user runs them.
VERBS: dict[str, tuple[tuple[str, ...], ...]] = {
    "audit-source": (
        ("audit", "source", *FILES),
        ("audit", "source", "nowhere"),
    ),
    "audit-answers": (
        (
            *("audit", "answers", "answers.csv", "--judge", "sim", "--judge", "noise"),
            *("--resamples", "200", "--no-text-statistics"),
        ),
    ),
    "audit-style": (("audit", "style", "--sample", "--resamples", "200"),),
    "start": (("start",),),
    "rewrite": (
        (
            *("rewrite", "pairs", "--model", "openai:gpt-4o-mini", "--output", "rewritten"),
            *("--price-in", "0.15", "--price-out", "0.60", "--dry-run"),
        ),
    ),
    "tag": (
        (
            "tag",
            "apply",
            "--store",
            "corpus:pairs",
            "--rules",
            "rules.yaml",
            "--sidecar",
            "t.sqlite",
        ),
        ("start", "corpus:pairs"),
    ),
    "interval": (("interval", "items.csv", "--measure", "correctness"),),
    "check-pairs": (("check-pairs", "pairs"),),
    "explain": (("explain", "pairs", "--encoder", "none"),),
    "labels": (
        ("labels", *_POOL, "--half-width", "1"),
        (
            *("labels", *_POOL, "-n", "150", "-o", "sheet.csv"),
            *("--queries", "queries.jsonl", "--documents", "docs.jsonl"),
        ),
        ("interval", "sheet.csv", *_POOL),
        ("labels", "items.csv", "-n", "80", "-o", "drawn.csv"),
    ),
    "annotate": (
        ("annotate", "--sample", "--annotators", "ann,bob", "-o", "sheets"),
        ("annotate", "sheets"),
    ),
    "judge": (
        ("judge", "audit", "audited.csv"),
        ("judge", "audit", "audited.csv", "--against", "audited.csv"),
        ("judge", "audit", "moved.csv", "--against", "audited.csv"),
    ),
    "monitor": (
        ("monitor", "replay", "log.db", "--baseline", "shares:human=0.5,llm:x=0.5"),
        ("start", "log.db"),
        ("monitor", "serve", "--alert-rules", "rules"),
    ),
    "report": tuple(("start", f"{kind}.json.gz") for kind in ("judged-mean", "pairs-clean")),
}


def _tables(folder: Path) -> None:
    rng = np.random.default_rng(1)
    write_csv(folder / "answers.csv", HEAD, answer_rows(60, rng))
    truth = (rng.random(300) < 0.6).astype(int)
    items = [
        (f"i{k}", y if k < 60 else "", f"{0.6 * y + 0.3 * rng.random() - 0.05:.4f}")
        for k, y in enumerate(truth)
    ]
    write_csv(folder / "items.csv", ("id", "human", "judge"), items)
    judged = [(f"i{k}", int(k % 3 > 0), (k % 3 > 0) * 0.8 + k % 7 * 0.02) for k in range(60)]
    write_csv(folder / "audited.csv", ("id", "human", "judge"), judged)
    moved = [(name, y, value + (0.1 if y else 0.3)) for name, y, value in judged]
    write_csv(folder / "moved.csv", ("id", "human", "judge"), moved)


def _pool(folder: Path) -> None:
    rng = np.random.default_rng(2)
    run, labels, docs = [], ["query_id\tdoc_id\tp0\tp1\tp2"], []
    for q in range(60):
        for d in range(10):
            probs = np.full(3, 0.1)
            probs[int(rng.binomial(2, 0.2 + 0.01 * q))] = 0.8
            run.append(f"q{q} Q0 q{q}d{d} {d + 1} {100 - d} a")
            labels.append(f"q{q}\tq{q}d{d}\t" + "\t".join(f"{p:.1f}" for p in probs))
            docs.append(json.dumps({"_id": f"q{q}d{d}", "text": f"text {d} of {q}"}))
    queries = [json.dumps({"_id": f"q{q}", "text": f"query {q}"}) for q in range(60)]
    for name, found in (
        ("a.run", run),
        ("judge.tsv", labels),
        ("docs.jsonl", docs),
        ("queries.jsonl", queries),
    ):
        write_lines(folder / name, found)


def _fill(folder: Path) -> None:
    """Answer the sheets that the commands before wrote."""
    for file in (folder / "sheet.csv", *sorted((folder / "sheets").glob("*.csv"))):
        if not file.exists():
            continue
        rows = read_csv(file)
        for number, row in enumerate(rows):
            for column in row:
                name = column.partition(":")[0]
                if name == "label":
                    row[column] = str(number % 3)
                elif name in ("relevance", "quality"):
                    row[column] = ("A", "B", "equal", "B")[number % 4]
        write_csv(file, list(rows[0]), [list(row.values()) for row in rows])


def prepared(folder: Path) -> Path:
    """Write the inputs of all commands."""
    write_ranked_pairs(folder, ["hl"] * 30 + ["lh"] * 10)
    write_log(folder / "log.db", 1_000)
    _tables(folder)
    _pool(folder)
    write_beir(paired_dataset(n=30), folder / "pairs")
    write_lines(
        folder / "rules.yaml",
        ["rules:", "  - when: {id: {regex: '@human$'}}", "    set: {source: human}"],
    )
    for report in ("judged-mean", "pairs-clean"):
        shutil.copy(REPORTS / f"{report}.json.gz", folder)
    return folder


def printed(name: str, folder: Path) -> str:
    """Return what the commands of a file print: output, then messages, then the exit code."""
    parts = []
    for args in VERBS[name]:
        code, output, messages = inside(*args, cwd=folder)
        _fill(folder)
        text = f"$ rag-sourcebias {' '.join(args)}\n{output}"
        text += f"--- messages\n{messages}" if messages.strip() else ""
        parts.append(f"{text.rstrip()}\n--- exit code {code}\n")
    said = "\n".join(parts).replace(str(folder), "FOLDER")
    # How long a stage takes is told on a busy machine only.
    lines = (line.rstrip() for line in said.splitlines() if not line.endswith(" so far"))
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    for variable in ("COLUMNS", "LINES", "FORCE_COLOR", "NO_COLOR"):
        os.environ.pop(variable, None)
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as made:
        where = prepared(Path(made))
        for verb in sys.argv[1:] or VERBS:
            (FOLDER / f"{verb}.txt").write_text(printed(verb, where), encoding="utf-8")
