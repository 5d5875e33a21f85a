"""Store the numbers of every verb, or compare them with stored ones.

    python benchmarks/equality/run.py --store before.json
    python benchmarks/equality/run.py --against before.json
    python benchmarks/equality/run.py --only interval --against before.json

The verbs run on the bundled samples, on small inputs that are drawn here, and on the real data sets
where RAG_SOURCEBIAS_DATA names their folder. Every float that was stored must reappear to 1e-12,
wherever it stands; what lies at a place of ``CHANGED`` changed on purpose and is left out.
"""

from __future__ import annotations

import argparse
import bisect
import contextlib
import csv
import gzip
import io
import json
import math
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from rag_sourcebias.cli import main
from rag_sourcebias.core.data import DocTags, RankedList
from rag_sourcebias.observe.events import RetrievalEvent
from rag_sourcebias.observe.log.event_log import EventLog

ENCODER = "all-MiniLM-L6-v2"
DATA = os.environ.get("RAG_SOURCEBIAS_DATA", "nowhere")
#: Too common to tell that a number reappeared.
TRIVIAL = {0.0, 1.0, 0.5, 0.95, 0.05, 5.0}
RELATIVE = 1e-12
_ENDS = "r and kappa have jackknife intervals on Fisher's scale"
_JUDGE = {
    **dict.fromkeys(
        ("kappa", "kappa_quadratic", "alpha_ordinal"),
        "one kappa is left, with quadratic weights",
    ),
    **dict.fromkeys(("spearman", "kendall", "auc"), "of forms of correlation, Pearson's is left"),
    **dict.fromkeys(("pearson.lower", "pearson.upper"), _ENDS),
    "with_closest": "which judge is like which is not told",
    "calibration": "of a calibration, shares of grades and the slope are left",
    **dict.fromkeys(("human_mean", "judge_mean", "ranks.judge"), "left out: nobody read them"),
}
EVERYTHING = "everything"
#: Commands as they are said today, by what they were called when numbers were stored.
RENAMED = {
    **{
        f"audit-source: audit source {words} --report REPORT": (
            f"audit-source: audit source {words} --copies no --report REPORT"
        )
        for words in (
            "--dataset outfox-essays --retriever bm25",
            "DATA/nq-utd --retriever bm25",
            "DATA/nfcorpus --split dev --retriever bm25 --interval bootstrap --measure "
            "NDCG,MAP,MRR,P,Recall --cutoffs 5,10 --correction bh --ties trec",
        )
    },
    "judge: judge audit audited.csv --output anchors.json --json JSON": (
        "judge: judge audit audited.csv --json JSON"
    ),
    "judge: judge audit moved.csv --against anchors.json --json JSON": (
        "judge: judge audit moved.csv --against audited.csv"
    ),
}
#: Ends of places whose numbers changed on purpose, by a part of the command ("" for all), each with
#: the reason.
CHANGED: dict[str, dict[str, str]] = {
    "audit-source": dict.fromkeys(
        ("centred.expected_baseline", "centred.expected_other"), "left out: nobody read them"
    ),
    "judge": _JUDGE,
    "interval": _JUDGE
    | dict.fromkeys(
        ("judges.correlation", "judges.without"), "what each judge adds is left to judge audit"
    ),
    "debias": {"encode_cost": "a time"},
    "labels --sample": {EVERYTHING: "plans with the default interval"},
    "labels --run": {EVERYTHING: "plans of documents are held against one other way"},
    "monitor replay": {EVERYTHING: "a CUSUM of half-days in place of the test of blocks"},
    "nfcorpus --split dev": dict.fromkeys(
        (
            *("interval.lower", "interval.upper", "win_rate.lower", "win_rate.upper"),
            *("p_value", "p_adjusted", "information"),
        ),
        "documents that queries share have effects, whose variance is estimated by moments",
    ),
}

_SOURCE = ("audit", "source")
_RUN = ("--run", "demo.run", "--qrels", "demo.qrels", "--tags", "demo.tsv")
_POOL = ("--run", "bm25.run", "--labels", "judge.tsv")
_METHODS = ("regression", "labels", "ppi", "ppi++", "ppi-crossfit", "ppi-paper", "bootstrap")
#: The commands of each verb; REPORT is a folder, JSON a file, of the command's own.
VERBS: dict[str, tuple[tuple[str, ...], ...]] = {
    "audit-source": (
        (*_SOURCE, *_RUN, "--report", "REPORT"),
        (*_SOURCE, "--sample", "--retriever", "bm25", "--report", "REPORT"),
        (*_SOURCE, "--sample", "--retriever", f"dense:{ENCODER}", "--report", "REPORT"),
        (
            *(*_SOURCE, "--dataset", "outfox-essays", "--retriever", "bm25"),
            *("--copies", "no", "--report", "REPORT"),
        ),
        (*_SOURCE, f"{DATA}/nq-utd", "--engine", "local", "--report", "REPORT"),
        (
            *(*_SOURCE, f"{DATA}/nq-utd", "--retriever", "bm25"),
            *("--copies", "no", "--report", "REPORT"),
        ),
        (
            *(*_SOURCE, f"{DATA}/nfcorpus", "--split", "dev", "--retriever", "bm25"),
            *("--interval", "bootstrap", "--measure", "NDCG,MAP,MRR,P,Recall"),
            *("--cutoffs", "5,10", "--correction", "bh", "--ties", "trec"),
            *("--copies", "no", "--report", "REPORT"),
        ),
    ),
    "audit-style": (
        ("audit", "style", "--sample", "--encoder", ENCODER, "--report", "REPORT"),
        ("audit", "style", f"{DATA}/nq-utd-styles/styles.jsonl", "--report", "REPORT"),
    ),
    "audit-answers": (
        ("audit", "answers", "--sample", "--encoder", ENCODER, "--report", "REPORT"),
        (
            *("audit", "answers", "answers.csv", "--judge", "sim", "--judge", "noise"),
            *("--report", "REPORT"),
        ),
    ),
    "explain": (
        ("explain", "--sample", "--report", "REPORT"),
        ("explain", f"{DATA}/nq-utd", "--encoder", "none", "--report", "REPORT"),
    ),
    "interval": (
        ("interval", "--sample", "--json", "JSON"),
        ("interval", "items.csv", "--target", "pool", "--json", "JSON"),
        *(("interval", "items.csv", "--method", name, "--json", "JSON") for name in _METHODS),
        *(("interval", "grades.csv", "--method", name, "--json", "JSON") for name in _METHODS),
        (
            *("interval", "grades.csv", "--bounds", "0,4", "--judge", "judge", "--judge", "other"),
            *("--json", "JSON"),
        ),
        (
            *("interval", *_POOL, "--qrels", "part.qrels", "--measure", "NDCG@10"),
            *("--measure", "DCG@10", "--json", "JSON"),
        ),
        (
            *("interval", *_POOL, "--qrels", "part.qrels", "--measure", "DCG@10"),
            *("--method", "crc", "--target", "unlabeled", "--json", "JSON"),
        ),
    ),
    "labels": (
        ("labels", "items.csv", "-n", "80", "-o", "drawn.csv"),
        ("labels", "--sample", "--half-width", "0.03"),
        ("labels", *_POOL, "--qrels", "part.qrels", "--half-width", "3"),
    ),
    "judge": (
        ("judge", "audit", "--sample", "--json", "JSON"),
        ("judge", "audit", "audited.csv", "--json", "JSON"),
        ("judge", "audit", "moved.csv", "--against", "audited.csv"),
    ),
    "check-pairs": (
        ("check-pairs", "--sample", "--encoder", ENCODER, "--report", "REPORT"),
        ("check-pairs", f"{DATA}/nq-utd", "--report", "REPORT"),
    ),
    "annotate": (
        (
            *("annotate", "--sample", "--annotators", "ann,bob,eve"),
            *("-o", "sheets"),
        ),
        ("annotate", "sheets", "--json", "JSON"),
    ),
    "debias": (
        ("debias", "--sample", "--output", "calibrated.json", "--report", "REPORT"),
        (
            *("debias", f"{DATA}/nq-utd", "--method", "project", "--projection", "mean"),
            *("--output", "projected", "--split", "test", "--on", f"{DATA}/nq-utd:test"),
            *("--force", "--report", "REPORT"),
        ),
        (
            *("debias", "--sample", "--method", "twins", "--output", "twins.sqlite"),
            *("--report", "REPORT"),
        ),
        (
            *("debias", f"{DATA}/nq-utd", "--method", "twins", "--encoder", "bm25"),
            *("--on", f"{DATA}/nq-utd:test", "--output", "words.sqlite"),
            *("--report", "REPORT"),
        ),
    ),
    "tag": (
        ("tag", "fit", "labelled.csv", "--output", "detector"),
        (
            *("tag", "apply", "--store", f"corpus:{DATA}/nq-utd", "--detector", "detector"),
            *("--unverified", "--sidecar", "tags.sqlite"),
        ),
        (*("start", f"corpus:{DATA}/nq-utd", "--sidecar", "tags.sqlite", "--json", "JSON"),),
    ),
    "monitor": (
        (
            *("monitor", "replay", "log.db", "--baseline", "shares:human=0.5,llm:x=0.5"),
            *("--json", "JSON"),
        ),
        ("monitor", "replay", "log.db", "--baseline", "reference:2000", "--json", "JSON"),
        ("start", "log.db", "--json", "JSON"),
    ),
}


class CommandError(Exception):
    """A command that should give numbers gave none."""


def write_lines(path: Path, lines: list[str]) -> None:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_rows(path: Path, head: tuple[str, ...], rows: list[Any]) -> None:
    with path.open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows([head, *rows])


def write_run(folder: Path) -> None:
    """Write a run that ranks the human version first in 30 of 40 queries."""
    run, qrels, tags = [], [], ["doc_id\tsource\tpair_id"]
    for i in range(40):
        order = ("h", "l") if i < 30 else ("l", "h")
        for rank, kind in enumerate(order, start=1):
            run.append(f"q{i} Q0 {kind}{i} {rank} {10 - rank} demo")
        for kind, source in (("h", "human"), ("l", "llm:x")):
            qrels.append(f"q{i} 0 {kind}{i} 1")
            tags.append(f"{kind}{i}\t{source}\tp{i}")
    write_lines(folder / "demo.run", run)
    write_lines(folder / "demo.qrels", qrels)
    write_lines(folder / "demo.tsv", tags)


def write_tables(folder: Path) -> None:
    """Write answers of three systems, two-valued items, graded items and a judge that moved."""
    rng = np.random.default_rng(1)
    answers = []
    for i in range(60):
        for system, words in (("short", 2), ("middle", 12), ("long", 40)):
            correct = rng.random() < 0.8
            answer = " ".join(["Rome"] + ["word"] * (words - 1 + int(rng.integers(3))))
            score = 0.9 - 0.12 * np.log(words) + 0.1 * correct + 0.05 * rng.normal()
            verdict = "yes" if correct else "no"
            row = (f"q{i}", system, answer, "Rome", verdict, f"{score:.4f}", f"{rng.normal():.4f}")
            answers.append(row)
    head = ("question_id", "system", "answer", "reference", "correct", "sim", "noise")
    write_rows(folder / "answers.csv", head, answers)
    items = []
    for k in range(300):
        truth = int(rng.random() < 0.6)
        items.append((f"i{k}", truth if k < 60 else "", f"{0.6 * truth + 0.3 * rng.random():.4f}"))
    write_rows(folder / "items.csv", ("id", "human", "judge"), items)
    grades = []
    for k in range(200):
        grade = int(rng.binomial(4, 0.6))
        judge = min(max(grade + int(rng.integers(-1, 2)), 0), 4)
        other = min(max(grade + int(rng.integers(-2, 3)), 0), 4)
        grades.append((f"i{k}", grade if k < 40 else "", judge, other))
    write_rows(folder / "grades.csv", ("id", "human", "judge", "other"), grades)
    audited = [(f"i{k}", int(k % 3 > 0), (k % 3 > 0) * 0.8 + k % 7 * 0.02) for k in range(60)]
    write_rows(folder / "audited.csv", ("id", "human", "judge"), audited)
    moved = [(name, human, judge + (0.1 if human else 0.3)) for name, human, judge in audited]
    write_rows(folder / "moved.csv", ("id", "human", "judge"), moved)


def write_pool(folder: Path) -> None:
    """Write a run of TREC DL 2019 with grades of 15 queries and the votes of three judges."""
    with gzip.open(f"{DATA}/dl_human_llm/dl19.tsv.gz", "rt", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream, delimiter="\t"))
    judges = ("umbrela_gpt4", "umbrela_gpt4o", "umbrela_llama32")
    labelled = sorted({row["qid"] for row in rows if row["human"]})[:15]
    run, qrels, votes = [], [], ["query_id\tdoc_id\tp0\tp1\tp2\tp3"]
    for row in rows:
        if not (row["human"] and row["BM25_rank"]):
            continue
        run.append(f"{row['qid']} Q0 {row['docid']} {row['BM25_rank']} {row['BM25_score']} bm25")
        if row["qid"] in labelled:
            qrels.append(f"{row['qid']} 0 {row['docid']} {row['human']}")
        given = [int(row[name]) for name in judges]
        shares = "\t".join(f"{given.count(grade) / 3!r}" for grade in range(4))
        votes.append(f"{row['qid']}\t{row['docid']}\t{shares}")
    run.sort(key=lambda line: (line.split()[0], int(line.split()[3])))
    write_lines(folder / "bm25.run", run)
    write_lines(folder / "part.qrels", qrels)
    write_lines(folder / "judge.tsv", votes)


def write_labelled(folder: Path) -> None:
    """Write 160 passages by people and their rewrites, for a detector to learn from."""
    lines = Path(f"{DATA}/crowdrag-rewrites/pairs.jsonl").read_text(encoding="utf-8").splitlines()
    rows = []
    for pair in map(json.loads, lines):
        rows.append((pair["human"], "human", pair["query_id"]))
        rows.append((pair["doc_styles"]["0"], "llm:claude", pair["query_id"]))
    write_rows(folder / "labelled.csv", ("text", "source", "group"), rows)


def write_log(folder: Path) -> None:
    """Write two weeks of retrievals whose share of human documents falls in the second."""
    rng = np.random.default_rng(0)
    ranked = RankedList(query_id="", doc_ids=tuple(f"d{i}" for i in range(10)))
    human, llm = DocTags(source="human"), DocTags(source="llm:x")
    with EventLog(folder / "log.db") as log:
        for i in range(5600):
            share = 0.5 if i < 2800 else 0.8
            tags = tuple(llm if rng.random() < share else human for _ in range(10))
            event = RetrievalEvent(ranked=ranked, tags=tags, labels={"collection": "docs"})
            log.record(event, at=1_790_000_000.0 + 216.0 * i)


def fill_sheets(folder: Path) -> None:
    """Answer the blind sheets that ``annotate`` wrote."""
    for file in sorted((folder / "sheets").glob("*.csv")):
        with file.open(newline="", encoding="utf-8") as stream:
            rows = list(csv.DictReader(stream))
        for number, row in enumerate(rows):
            for column in row:
                if column.partition(":")[0] in ("relevance", "quality"):
                    row[column] = ("A", "B", "equal", "B")[(number + len(file.stem)) % 4]
        write_rows(file, tuple(rows[0]), [list(row.values()) for row in rows])


def run(words: tuple[str, ...], folder: Path) -> tuple[int, str]:
    """Run a command in this process, in the folder; its exit code and all that it printed."""
    printed = io.StringIO()
    before, sys.argv = sys.argv, ["rag-sourcebias", *words]
    try:
        with (
            contextlib.chdir(folder),
            contextlib.redirect_stdout(printed),
            contextlib.redirect_stderr(printed),
        ):
            main()
        code = 0
    except SystemExit as end:
        code = int(end.code or 0)
    finally:
        sys.argv = before
    return code, printed.getvalue()


def numbers_of(words: tuple[str, ...], place: Path, folder: Path) -> Any:
    """Return what a command wrote as JSON; of one that writes none, the numbers it printed."""
    place.mkdir()
    names = {"REPORT": str(place), "JSON": str(place / "figures.json")}
    code, printed = run(tuple(names.get(word, word) for word in words), folder)
    if code not in (0, 1) or (code == 1 and words[0] not in ("debias", "judge")):
        raise CommandError(f"rag-sourcebias {' '.join(words)}\nended with {code}:\n{printed}")
    figures = [json.loads(file.read_text(encoding="utf-8")) for file in place.glob("*.json")]
    if figures:
        return figures[0]
    parts = printed.replace(",", " ").replace("[", " ").replace("]", " ").split()
    return [float(part.strip("%.")) for part in parts if is_number(part.strip("%."))]


def is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def measured(only: list[str]) -> dict[str, Any]:
    """Return the JSON of every command of the verbs asked for."""
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        for write in (write_run, write_tables, write_log):
            write(folder)
        if Path(DATA).is_dir():
            write_pool(folder)
            write_labelled(folder)
        for verb in only or VERBS:
            start = time.monotonic()
            for number, words in enumerate(VERBS[verb]):
                needs_data = DATA in " ".join(words) or "bm25.run" in words or verb == "tag"
                if needs_data and not Path(DATA).is_dir():
                    continue
                name = f"{verb}: {' '.join(words).replace(DATA, 'DATA')}"
                try:
                    found[name] = numbers_of(words, folder / f"{verb}-{number}", folder)
                except CommandError as error:
                    print(error, file=sys.stderr)
                fill_sheets(folder)
            print(f"{verb}: {time.monotonic() - start:.0f} s", file=sys.stderr)
    return found


def floats(value: Any, changed: dict[str, str], path: str = "") -> Iterator[tuple[float, str]]:
    """Yield the floats of a JSON value that tell something, each with its place."""
    if EVERYTHING in changed:
        return
    if isinstance(value, float) and math.isfinite(value) and abs(value) not in TRIVIAL:
        yield value, path
    elif isinstance(value, dict):
        for key, part in value.items():
            place = f"{path}.{key}"
            if not any(place.endswith(f".{end}") for end in changed):
                yield from floats(part, changed, place)
    elif isinstance(value, list):
        for part in value:
            yield from floats(part, changed, path)


def missing(old: Any, new: Any, changed: dict[str, str]) -> list[str]:
    """Return the places of old numbers that do not reappear."""
    present = sorted(number for number, _ in floats(new, {}))
    lost = []
    for number, place in floats(old, changed):
        reach = RELATIVE * max(1.0, abs(number))
        at = bisect.bisect_left(present, number - reach)
        if at == len(present) or present[at] > number + reach:
            lost.append(f"{place} {number!r}")
    return lost


def compared(old: dict[str, Any], new: dict[str, Any], only: list[str]) -> int:
    """Print which stored numbers are missing; return how many are."""
    count = 0
    for command, value in old.items():
        verb = command.partition(":")[0]
        if only and verb not in only:
            continue
        changed: dict[str, str] = {}
        for part, ends in CHANGED.items():
            if part in command:
                changed |= ends
        today = RENAMED.get(command, command)
        lost = missing(value, new[today], changed) if today in new else ["everything"]
        total = sum(1 for _ in floats(value, changed))
        print(f"{'lost' if lost else 'same'} {len(lost)} of {total}: {command}")
        ends = Counter(".".join(place.split()[0].split(".")[-3:]) for place in lost)
        for end, number in ends.most_common(40):
            print(f"    {number} at {end}")
        count += len(lost)
    return count


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--store", type=Path, help="write the numbers here")
    parser.add_argument("--against", type=Path, help="compare with the numbers stored here")
    parser.add_argument("--only", action="append", default=[], choices=list(VERBS))
    asked = parser.parse_args()
    results = measured(asked.only)
    if asked.store:
        asked.store.write_text(json.dumps(results), encoding="utf-8")
    if asked.against:
        stored = json.loads(asked.against.read_text(encoding="utf-8"))
        raise SystemExit(compared(stored, results, asked.only) > 0)
