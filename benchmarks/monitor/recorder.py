"""How fast is the durable event log, and what does it cost the application?

    python benchmarks/monitor/recorder.py [--quick] [--output FILE]

Retrievals of 10 documents with 3 labels: one append to the journal; sustained rate through the
journal into SQLite beside bare batched inserts (one row per document) in the same run; a million
left in journals by a process that was killed: how soon they can be asked for, and are all taken in;
time of dashboard views over a log of 10 million retrievals. Writes the file recorder.json of
benchmarks/results. Exit status 1 when a target is missed (never with ``--quick``).
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

import numpy as np

from rag_sourcebias.core.codec import environment
from rag_sourcebias.core.data import DocTags
from rag_sourcebias.core.tags import to_metadata
from rag_sourcebias.observe.events import RetrievalEvent
from rag_sourcebias.observe.log.event_log import EventLog
from rag_sourcebias.observe.log.reading import iter_events, log_summary, read_events, read_rollups
from rag_sourcebias.observe.log.schema import (
    Batch,
    TagCodes,
    insert_segments,
    open_for_writing,
    segments_of,
)
from rag_sourcebias.observe.log.writing import add_to_rollups, counted
from rag_sourcebias.observe.observers import CollectingObserver
from rag_sourcebias.observe.recorder import Recorder

RESULTS = Path(__file__).resolve().parent.parent / "results"
DEPTH, BATCH, DAY = 10, 1_000, 86_400
TAGS = [(s, t) for s in ("human", "llm:a", "llm:b") for t in ("plain", "formal", None)]
ROUTES = 6
BARE = "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; CREATE TABLE t"


def events_of(n: int) -> list[RetrievalEvent]:
    """As instrumentations make them: tags of a store, labels of their own, scores left out."""
    rng = np.random.default_rng(0)
    pool = [to_metadata(DocTags(source=s, style=t)) for s, t in TAGS]
    picks, docs = rng.integers(0, len(pool), (n, DEPTH)), rng.integers(0, 5_000, (n, DEPTH))
    collected = CollectingObserver(capacity=n)
    recorders = [
        Recorder(
            collected,
            labels={"route": f"r{route}", "collection": "docs", "tenant": "t"},
            query_key=bytes(16),
            queue=False,
        )
        for route in range(ROUTES)
    ]
    for i in range(n):
        recorders[i % ROUTES].record(
            tuple(f"d{d}" for d in docs[i]), [pool[k] for k in picks[i]], query=f"{i}"
        )
    return list(collected.events)


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """Seconds and CPU seconds of the process."""
    start, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - start, time.process_time() - cpu


def logged(folder: Path, events: list[RetrievalEvent], **options: object) -> None:
    log = EventLog(folder / "ours.db", **options)
    for event in events:
        log.observe(event)
    if not log.close(600) or log.dropped.total:
        raise SystemExit(f"the log lost events: {log.dropped.by_reason}")


def bare(folder: Path, columns: str, rows: list[tuple], batch: int) -> None:
    marks = ",".join("?" * len(rows[0]))
    with closing(sqlite3.connect(folder / "bare.db")) as database:
        database.executescript(f"{BARE} ({columns})")
        for start in range(0, len(rows), batch):
            with database:
                database.executemany(f"INSERT INTO t VALUES ({marks})", rows[start : start + batch])


def row(what: str, value: str, target: str = "", met: bool | None = None) -> dict:
    return {"what": what, "value": value, "target": target, "met": met}


def sustained(n: int, rounds: int) -> list[dict]:
    per_document = [(i, k, i % len(TAGS)) for i in range(n) for k in range(DEPTH)]
    works: dict[str, Callable[[Path, list[RetrievalEvent]], None]] = {
        "log": logged,
        "log, hashed document ids": lambda f, events: logged(f, events, documents="hashed"),
        "bare, one row per document": lambda f, _: bare(
            f, "q, rank, tag", per_document, BATCH * DEPTH
        ),
    }
    seconds: dict[str, list[tuple[float, float]]] = {name: [] for name in works}
    for turn in range(rounds + 1):
        for name in list(works) if turn % 2 else list(reversed(works)):
            # Never the same ones: an event remembers what it was asked for.
            events = events_of(n) if name.startswith("log") else []
            with tempfile.TemporaryDirectory() as folder:
                result = timed(partial(works[name], Path(folder), events))
            if turn:
                seconds[name].append(result)
    rows = []
    ours = [s for s, _ in seconds["log"]]
    for name, results in seconds.items():
        rate = n / statistics.median(s for s, _ in results)
        cpu = statistics.median(c for _, c in results) / n * 1e6
        ratio = statistics.median(s / o for (s, _), o in zip(results, ours, strict=True))
        target, met = "", None
        if name == "log":
            target, met = "at least 20,000 a second", rate >= 20_000
        elif name == "bare, one row per document":
            target, met = "ours at least a tenth as fast", ratio >= 0.1
        rows.append(
            row(
                f"sustained: {name}",
                f"{rate:,.0f} a second, {cpu:.1f} µs CPU each; log is {ratio:.2f} × that",
                target,
                met,
            )
        )
    return rows


def appends(n: int) -> list[dict]:
    """Time of one call of ``observe``: alone, and while the thread takes in what it left."""
    events = events_of(min(n, 20_000))
    rows = []
    for what, flush_seconds in (("nothing else runs", 3_600.0), ("taken in beside it", 0.2)):
        took = np.zeros(n)
        with tempfile.TemporaryDirectory() as folder:
            log = EventLog(Path(folder) / "log.db", flush_seconds=flush_seconds)
            for i in range(n):
                event = events[i % len(events)]
                start = time.perf_counter()
                log.observe(event)
                took[i] = time.perf_counter() - start
                if flush_seconds < 1:
                    time.sleep(0.0002)
            log.close(60)
        p50, p99, worst = np.quantile(took, [0.5, 0.99, 1]) * 1e6
        is_target = flush_seconds > 1
        rows.append(
            row(
                f"one append, {what}",
                f"p50 {p50:.1f} µs, p99 {p99:.1f} µs, worst {worst / 1e3:.1f} ms",
                "p50 at most 15 µs" if is_target else "",
                bool(p50 <= 15) if is_target else None,
            )
        )
    return rows


def left(n: int) -> list[dict]:
    """What a killed process left in its journal: read at once, and taken in by readers alone."""
    events = events_of(20_000)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.db"
        child = os.fork()
        if child == 0:
            log = EventLog(path, flush_seconds=3_600, journal_bytes=10**10)
            for i in range(n):
                log.observe(events[i % len(events)])
            os.kill(os.getpid(), signal.SIGKILL)
        os.waitpid(child, 0)
        start, slowest, found, asked = time.perf_counter(), 0.0, 0, 0
        while found < n:
            for view in (
                lambda: log_summary(path).n_written,
                lambda: len(read_rollups(path).starts),
            ):
                seconds, _ = timed(view)
                slowest = max(slowest, seconds)
                asked += 1
            found = log_summary(path).n_written
        whole = time.perf_counter() - start
    what = f"{n:,} left in journals"
    return [
        row(f"{what}: slowest of {asked} reads", f"{slowest:.1f} s", "3 s", slowest <= 3),
        row(f"{what}: all taken in", f"after {whole:.1f} s", "30 s", whole <= 30),
    ]


def filled(path: Path, n: int, routes: int = ROUTES) -> None:
    """Write n retrievals over 30 days, by the code of the log without events."""
    rng = np.random.default_rng(1)
    database = open_for_writing(path, busy_seconds=5)
    database.execute("BEGIN")
    database.execute("INSERT INTO tags VALUES (0, 'other', 'other')")
    database.executemany(
        "INSERT INTO tags VALUES (?, ?, ?)", [(i, *t) for i, t in enumerate(TAGS, 1)]
    )
    database.executemany(
        "INSERT INTO labels VALUES (?, ?)",
        [(i, json.dumps({"route": f"r{i}"})) for i in range(routes)],
    )
    start, gap = 1_800_000_000 * 1_000_000, 30 * DAY * 1_000_000 / n
    for first in range(0, n, 4_096):
        count = min(4_096, n - first)
        tags = rng.integers(1, len(TAGS) + 1, count * DEPTH).astype(np.uint8).tobytes()
        queries = rng.bytes(8 * count).hex()
        batch = Batch(
            times=start + (np.arange(first, first + count) * gap).astype(np.int64),
            label_codes=rng.integers(0, routes, count).astype(np.uint16),
            lengths=np.full(count, DEPTH),
            tags=tags,
            query_ids=[queries[i : i + 16] for i in range(0, len(queries), 16)],
            doc_ids=None,
            stages=np.zeros(count, np.uint8),
            requests=[""] * count,
        )
        insert_segments(database, segments_of(batch, first=first + 1))
        add_to_rollups(database, counted(batch, (), TagCodes(), {}))
    last = int(batch.times[-1])
    database.executemany("INSERT INTO state VALUES (?, ?)", [("next", n + 1), ("last", last)])
    database.execute("COMMIT")
    database.close()


def views(n: int) -> list[dict]:
    start = 1_800_000_000.0
    end = start + 30 * DAY
    route = {"route": "r1"}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.db"
        took, _ = timed(lambda: filled(path, n))
        size = path.stat().st_size / n
        rows = [
            row(
                f"log of {n:,} retrievals over 30 days",
                f"{size:.0f} bytes each with rollups, made in {took:.0f} s",
            )
        ]
        for what, view in {
            "summary": lambda: log_summary(path),
            "30 days by hour and source": lambda: read_rollups(path, step=3_600),
            "30 days by day and style": lambda: read_rollups(path, step=DAY, by="style"),
            "30 days by hour, one route": lambda: read_rollups(path, step=3_600, labels=route),
            "a day by minute": lambda: read_rollups(path, since=end - DAY),
            "a week in steps of 10 minutes": lambda: read_rollups(
                path, since=end - 7 * DAY, step=600
            ),
            "the retrievals of an hour": lambda: read_events(path, since=end - 3_600),
            "the retrievals of an hour, one route": lambda: read_events(
                path, since=end - 3_600, labels=route
            ),
        }.items():
            seconds = statistics.median(timed(view)[0] for _ in range(3))
            rows.append(row(f"view: {what}", f"{seconds * 1e3:.0f} ms", "under 1 s", seconds < 1))
        scan, _ = timed(lambda: sum(len(part) for part in iter_events(path)))
        rows.append(row("reading every retrieval", f"{scan:.1f} s"))
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    quick = options.quick
    rows = sustained(20_000 if quick else 200_000, 1 if quick else 3)
    rows += appends(20_000 if quick else 100_000)
    rows += left(50_000 if quick else 1_000_000)
    rows += views(200_000 if quick else 10_000_000)
    for one in rows:
        verdict = {None: "", True: "met", False: "MISSED"}[one["met"]]
        print(f"{one['what']:45} {one['value']:55} {one['target']:28} {verdict}")
    output = options.output or (None if quick else RESULTS / "recorder.json")
    if output is not None:
        record = {"environment": environment(), "rows": rows}
        output.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    return int(not quick and any(one["met"] is False for one in rows))


if __name__ == "__main__":
    sys.exit(main())
