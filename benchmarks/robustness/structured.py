"""Put structure and extremes into every column of tables, in files and in memory.

    python benchmarks/robustness/structured.py [--n 400] [--seed 0 …] [--only NAME …]

Where ``fuzz.py`` damages bytes, this damages values: lists, dictionaries, 3,000 brackets, numbers
of 400 digits, infinities, dates, bytes, nothing at all. Each table goes through files (CSV, JSON,
JSON lines, Parquet), through what programs hold (frames, columns, rows) and, for rankings, through
what a function returns. An input fails unless it is read, or refused in one sentence by an error of
this library. The control reads as one would without it, and has to fail.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import datetime
import decimal
import io
import json
import logging
import signal
import sys
import tempfile
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from fuzz import Tally, too_long

import rag_sourcebias as rsb

DEEP = 3_000  # brackets, more than Python's own reader of JSON takes

Rows = list[dict[str, Any]]
N = range(24)


class Deep:
    """Brackets in brackets, in JSON as they are and elsewhere as a list."""

    def __str__(self) -> str:
        return "[" * DEEP + "]" * DEEP

    def made(self) -> list[Any]:
        """Return the list."""
        found: list[Any] = []
        for _ in range(DEEP):
            found = [found]
        return found


VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 2, 2**31, 2**63, -(2**70), 10**400, 0.5, -0.0, 1e308, -1e308, 5e-324,
    float("nan"), float("inf"), float("-inf"), "", " ", "x", "NaN", "inf", "1e999", "9" * 5_000,
    "\x00", "\ud800", "\u202e", "[", "{}", "[1, 2]", '{"a": [1]}', "1,5", "٣", "d1", "q1",
    [], [1], ["d1", "d2"], [None], [[]], [0.5, "x"], {}, {"a": 1}, {"": []}, {"text": {"a": "b"}},
    Deep(), b"", b"\xff\xfe", (), ("d1", 0.5), {1, 2}, decimal.Decimal("1e5000"),
    decimal.Decimal("NaN"), datetime.date(1, 1, 1), datetime.datetime(9999, 12, 31, 23, 59, 59),
    np.float32("nan"), np.int64(-1), np.array([1.0, 2.0]), np.datetime64("NaT"), object(), 1 + 2j,
    pd.NA, pd.NaT, pd.Timestamp("2026-01-01"), range(3), lambda: None,
)  # fmt: skip


def damaged(rows: Rows, rng: Random) -> Rows:
    """Return a copy with other values in a column or two, or with columns lost, added, renamed."""
    found = [dict(row) for row in rows]
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        name = rng.choice(sorted(found[0]) or [""])
        what = rng.randrange(10)
        if what == 0:
            for row in found:
                row.pop(name, None)
        elif what == 1:
            other = rng.choice(("", "id", "score", "source", "text", "label", "x" * 3_000))
            found = [{other if key == name else key: row[key] for key in row} for row in found]
        elif what == 2:
            del found[rng.randrange(len(found)) :]
        else:
            value = rng.choice(VALUES)
            least = rng.choice((0.0, 0.0, 0.5, 0.95))  # all rows, half of them, or one or two
            for row in found:
                if rng.random() >= least:
                    row[name] = value if rng.random() < 0.9 else rng.choice(VALUES)
        if not found or not found[0]:
            return found
    return found


# What carries a table.


def _plain(value: Any) -> Any:
    """Return a value as JSON can hold it."""
    if isinstance(value, Deep):
        return "@deep@"
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple | set | range | np.ndarray):
        return [_plain(one) for one in value]
    if isinstance(value, bool | int | float | str) or value is None:
        return value
    return str(value)


def _json(value: Any) -> str:
    return json.dumps(_plain(value)).replace('"@deep@"', str(Deep()))


def _columns(rows: Rows) -> dict[str, list[Any]]:
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [_held(row.get(name)) for row in rows] for name in names}


def _held(value: Any) -> Any:
    return value.made() if isinstance(value, Deep) else value


def _csv(rows: Rows, path: Path) -> None:
    out = io.StringIO()
    columns = _columns(rows)
    writer = csv.writer(out)
    writer.writerow(columns)
    for row in rows:
        cells = (row.get(name) for name in columns)
        writer.writerow(["" if cell is None else str(cell) for cell in cells])
    path.write_bytes(out.getvalue().encode("utf-8", "surrogatepass"))


_HOLDS = (bool, int, float, str, bytes, list, dict, datetime.date)


def _arrow(cells: list[Any]) -> pa.Array:
    """Return cells as Arrow holds them, or as text: on brackets and decimals it may crash."""
    with contextlib.suppress(Exception):
        if all(cell is None or isinstance(cell, _HOLDS) for cell in cells):
            return pa.array(cells)
    texts = [None if cell is None else str(cell)[:9_000] for cell in cells]
    return pa.array([t and t.encode("utf-8", "replace").decode() for t in texts])


def _parquet(rows: Rows, path: Path) -> None:
    names = dict.fromkeys(name for row in rows for name in row)
    columns = {name: _arrow([row.get(name) for row in rows]) for name in names}
    try:
        pq.write_table(pa.table(columns), path)
    except pa.ArrowNotImplementedError:  # a dictionary without keys
        pq.write_table(
            pa.table({n: pa.array([str(c) for c in v.to_pylist()]) for n, v in columns.items()}),
            path,
        )


FILES: dict[str, Callable[[Rows, Path], object]] = {
    "csv": _csv,
    "json": lambda rows, path: path.write_text(_json(rows), "utf-8"),
    "jsonl": lambda rows, path: path.write_text("".join(f"{_json(r)}\n" for r in rows), "utf-8"),
    "parquet": _parquet,
}
HELD: dict[str, Callable[[Rows], Any]] = {
    "frame": lambda rows: pd.DataFrame(_columns(rows)),
    "columns": _columns,
    "rows": lambda rows: [{name: _held(cell) for name, cell in row.items()} for row in rows],
}


# The tables, and what reads them.


@dataclass(frozen=True)
class Table:
    """A valid table, and how it is read from a file or as it is held, where there is such a way."""

    rows: Rows
    of_file: Callable[[Path], object] | None = None
    of_held: Callable[[Any], object] | None = None


RESULTS = {f"q{i}": [f"h{i}", f"l{i}"] for i in N}
QRELS = {f"q{i}": [f"h{i}", f"l{i}"] for i in N}
TAGS = {f"{kind[0]}{i}": kind for i in N for kind in ("human", "llm:x")}
CORPUS = {doc: f"text of {doc}" for doc in TAGS}
QUERIES = {f"q{i}": f"what of {i}?" for i in N}
JUDGED = {"qrels": QRELS, "tags": TAGS}
DATA = {"corpus": CORPUS, "queries": QUERIES, **JUDGED}


def _audit(results: Any = None, data: Any = None, **more: Any) -> object:
    given = RESULTS if results is None else results
    return rsb.audit(given, JUDGED if data is None else data, cutoffs=[1], **more)


def _of_function(rows: Any) -> object:
    """Let a function return the hits of its query, the first of them damaged."""
    hits = list(rows)
    return rsb.audit(lambda _: hits[:4], DATA, cutoffs=[1], depth=4)


def _by_query(held: Any) -> dict[Any, Any]:
    found: dict[Any, Any] = {}
    rows = held.to_dict("records") if isinstance(held, pd.DataFrame) else held
    if isinstance(rows, dict):
        rows = [dict(zip(rows, cells, strict=True)) for cells in zip(*rows.values(), strict=True)]
    for row in rows:
        try:
            found.setdefault(row.get("query_id"), {})[row.get("doc_id")] = row.get("score")
        except TypeError:  # no key of a dictionary
            found["q1"] = row
    return found


_RUN = [
    {"query_id": f"q{i}", "doc_id": doc, "rank": rank, "score": 9.0 - rank}
    for i in N
    for rank, doc in enumerate((f"h{i}", f"l{i}"), 1)
]
_GRADES = [{"query_id": r["query_id"], "doc_id": r["doc_id"], "relevance": 1} for r in _RUN]
_SOURCES = [
    {"doc_id": doc, "source": source, "pair_id": doc[1:], "style": "news"}
    for doc, source in TAGS.items()
]
_ITEMS = [
    {"id": f"i{i}", "human": i % 2 if i < 30 else None, "judge": (i * 7 % 10) / 10,
     "group": "ab"[i % 2], "cluster": f"c{i // 4}"}
    for i in range(60)
]  # fmt: skip
_ANSWERS = [
    {"question_id": f"q{i}", "system": system, "answer": "so it is", "reference": "so",
     "correct": (i + k) % 2, "sim": (i * 3 % 10 + k) / 12}
    for i in N
    for k, system in enumerate(("a", "b"))
]  # fmt: skip
_STYLED = [
    {"query_id": f"q{i}", "query": f"what {i}?", "query_styles": {"formal": f"Which {i}?"},
     "human": f"text {i}", "doc_styles": {"loud": f"TEXT {i}"}}
    for i in N
]  # fmt: skip
_WIDE = [
    {"query_id": r["query_id"], "query": "why?", "doc_id": r["doc_id"], "text": r["doc_id"],
     "relevance": 1, "source": TAGS[r["doc_id"]]}
    for r in _RUN
]  # fmt: skip
_HITS = [
    {"id": f"h{i}", "score": 1 - i / 9, "text": f"text of h{i}", "metadata": {"id": f"h{i}"}}
    for i in range(4)
]
_LABELS = [{"query_id": r["query_id"], "doc_id": r["doc_id"], "p0": 0.25, "p1": 0.75} for r in _RUN]

TABLES: dict[str, Table] = {
    "run": Table(_RUN, rsb.read_run, _audit),
    "run by query": Table(_RUN, None, lambda held: _audit(_by_query(held))),
    "hits of a function": Table(_HITS, None, _of_function),
    "judgments": Table(_GRADES, rsb.read_qrels, lambda held: _audit(data=JUDGED | {"qrels": held})),
    "tags": Table(_SOURCES, rsb.read_tags, lambda held: _audit(data=JUDGED | {"tags": held})),
    "tags aside": Table(_SOURCES, None, lambda held: _audit(data={"qrels": QRELS}, tags=held)),
    "corpus": Table(
        [{"doc_id": doc, "title": "T", "text": text, "metadata": {"source": TAGS[doc]}}
         for doc, text in CORPUS.items()],
        None, lambda held: _audit(data=JUDGED | {"corpus": held}),
    ),
    "queries": Table(
        [{"query_id": name, "text": text} for name, text in QUERIES.items()],
        None, lambda held: _audit(data=DATA | {"queries": held}),
    ),
    "query and document": Table(_WIDE, None, lambda held: _audit(data=held)),
    "judged items": Table(
        _ITEMS, rsb.read_judged_items, rsb.interval,
    ),
    "answers": Table(_ANSWERS, rsb.read_answer_texts, None),
    "styled texts": Table(_STYLED, rsb.read_styled_texts, None),
    "label distributions": Table(_LABELS, rsb.read_label_distributions, None),
}  # fmt: skip


def attempts(name: str, carrier: str, folder: Path, *, n: int, seed: int, tally: Tally) -> None:
    """Read ``n`` damaged copies of a table through one carrier."""
    table: Any = TABLES[name]  # with this carrier
    for number in range(n):
        rng = Random(f"{name}/{carrier}/{seed}/{number}")
        rows = damaged(table.rows, rng)
        what = {"table": name, "carrier": carrier, "seed": seed, "input": number}
        if carrier in FILES:
            path = folder / f"{name.replace(' ', '-')}.{carrier}"
            FILES[carrier](rows, path)
            read = partial(table.of_file, path)
        else:
            try:
                held = HELD[carrier](rows)
            except Exception:  # noqa: BLE001 - pandas cannot hold it
                continue
            read = partial(table.of_held, held)
        tally.attempt(read, what, named=str(folder) if carrier in FILES else "")


def _control(seed: int) -> int:
    """Read items as one would without this library; return how often that fails."""
    failed = 0
    for number in range(200):
        rows = damaged(_ITEMS, Random(f"control/{seed}/{number}"))
        try:
            [float(row["judge"]) for row in rows]
        except Exception:  # noqa: BLE001 - whatever comes is counted
            failed += 1
    return failed


def _carriers(table: Table) -> Sequence[str]:
    return (*(FILES if table.of_file else ()), *(HELD if table.of_held else ()))


def main() -> int:
    """Run; the exit code is 1 when an input failed or the control passed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--n", type=int, default=500, help="damaged copies by table and carrier")
    parser.add_argument("--seed", type=int, nargs="+", default=[0])
    parser.add_argument("--only", nargs="*", help="names of tables")
    parser.add_argument("--out", type=Path, help="write what came out to this file")
    asked = parser.parse_args()
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGALRM, too_long)
    parts: dict[str, dict[str, Any]] = {}
    for name in asked.only or TABLES:
        tally = Tally()
        with tempfile.TemporaryDirectory() as place:
            for seed in asked.seed:
                for carrier in _carriers(TABLES[name]):
                    attempts(name, carrier, Path(place), n=asked.n, seed=seed, tally=tally)
        failed = dict(tally.kinds)
        parts[name] = {
            "read": tally.read, "refused": tally.refused, "failed": failed,
            "examples": tally.failures,
        }  # fmt: skip
        print(f"{name}: {tally.read} read, {tally.refused} refused, FAILED {failed}", flush=True)
        for example in tally.failures:
            print(f"   {example}", flush=True)
    found = {
        "seed": asked.seed,
        "read": sum(part["read"] for part in parts.values()),
        "refused": sum(part["refused"] for part in parts.values()),
        "unexpected": sum(sum(part["failed"].values()) for part in parts.values()),
        "control_failed": _control(asked.seed[0]),
        "tables": parts,
    }
    if asked.out is not None:
        asked.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(json.dumps({key: value for key, value in found.items() if key != "tables"}))
    return 1 if found["unexpected"] or not found["control_failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
