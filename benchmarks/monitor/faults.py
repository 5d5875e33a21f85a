"""What an event log loses when things go wrong around it, and whether that is counted.

    python benchmarks/monitor/faults.py [--quick] [--output FILE]

Applications, each a process of its own, record retrievals while they are killed (SIGKILL at a
random moment, 300 times, into one log), while another process locks the file for a minute, while
the disk is full (a limit on the size of files fails writes as a full disk does), while folder and
file may not be written (as a user without rights where this runs as root), while the clock is set
back, and in forked workers. A retrieval is acknowledged when it was
taken (it is not among those counted as dropped) and ``flush()`` returned True after it.

Every retrieval has a number, so that what is read afterwards tells which are present:

- acknowledged and not present: 0;
- not present, not counted in ``dropped``: 0, but for killed processes, which lose what they had not
  acknowledged and cannot count it;
- exceptions that reached the application: 0; the longest that recording one retrieval took;
- after each fault the file passes SQLite's integrity check and its counts add up.

The checks are checked: rows are taken out of a copy of the log, and they must find that.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import random
import resource
import shutil
import signal
import sqlite3
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from rag_sourcebias.core.data import DocTags, RankedList
from rag_sourcebias.observe.events import RetrievalEvent
from rag_sourcebias.observe.log.event_log import EventLog
from rag_sourcebias.observe.log.reading import log_summary, read_events, read_rollups

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "speed"))
from rounds import finish

TAGS = (DocTags(source="human"), DocTags(source="llm:x"))
NOBODY = 65_534


class Application:
    """Records numbered retrievals, and notes what reaches it."""

    def __init__(self, log: EventLog, part: int = 0) -> None:
        self.log, self.part = log, part
        self.recorded = self.acknowledged = self.asked_at = self.exceptions = 0
        self.slowest = 0.0

    def record(self, n: int = 1) -> None:
        for _ in range(n):
            ranked = RankedList(query_id=f"{self.part:08x}{self.recorded:08x}", doc_ids=("a", "b"))
            event = RetrievalEvent(ranked=ranked, tags=TAGS, labels={"collection": "docs"})
            start = time.perf_counter()
            try:
                self.log.observe(event)
            except Exception:  # noqa: BLE001 - any of them would have reached an application
                self.exceptions += 1
            self.slowest = max(self.slowest, time.perf_counter() - start)
            self.recorded += 1

    def acknowledge(self, timeout: float | None = 60.0) -> bool:
        done = self.log.flush(timeout)
        if done:
            self.asked_at = self.recorded
            self.acknowledged = self.recorded - self.log.dropped.total
        return done

    def found(self) -> dict:
        return {
            "part": self.part,
            "recorded": self.recorded,
            "acknowledged": self.acknowledged,
            "asked_at": self.asked_at,
            "counted": self.log.dropped.total,
            "exceptions": self.exceptions,
            "slowest": self.slowest,
        }


def in_process(work: Callable[[], list[dict]]) -> list[dict]:
    """Run an application in a process of its own, and return what it found."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        code = 1
        try:
            with os.fdopen(write, "wb") as stream:
                pickle.dump(work(), stream)
            code = 0
        finally:
            os._exit(code)
    os.close(write)
    with os.fdopen(read, "rb") as stream:
        data = stream.read()
    if os.waitpid(child, 0)[1]:
        raise SystemExit("an application of this benchmark failed")
    return pickle.loads(data)


def present(path: Path) -> dict[int, list[int]]:
    """Numbers of the retrievals in a log, by application."""
    parts: dict[int, list[int]] = {}
    for query in read_events(path).query_ids.tolist():
        parts.setdefault(int(query[:8], 16), []).append(int(query[8:], 16))
    return parts


def sound(path: Path) -> bool:
    """Whether the file is whole and its counts are those of its retrievals."""
    with closing(sqlite3.connect(path)) as database:
        whole = database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    n = log_summary(path).n_written
    return whole and read_rollups(path).retrievals.sum() == n == len(read_events(path))


def judged(what: str, path: Path, applications: list[dict], *, killed: bool = False) -> dict:
    """One row: what was recorded, acknowledged, present and counted."""
    there = present(path)
    missing = unaccounted = n_present = 0
    for one in applications:
        numbers = there.pop(one["part"], [])
        n_present += len(numbers)
        until_then = len(set(numbers) & set(range(one["asked_at"])))
        missing += max(one["acknowledged"] - until_then, 0)
        if killed:
            missing += numbers != list(range(len(numbers)))  # what was lost is the end
        else:
            unaccounted += abs(one["recorded"] - len(set(numbers)) - one["counted"])
            unaccounted += len(numbers) - len(set(numbers))
    unaccounted += sum(map(len, there.values()))
    total = {key: sum(one[key] for one in applications) for key in ("recorded", "acknowledged")}
    counted = sum(one["counted"] for one in applications)
    exceptions = sum(one["exceptions"] for one in applications)
    row = {
        "what": what,
        **total,
        "present": n_present,
        "counted": counted,
        "acknowledged_missing": missing,
        "unaccounted": unaccounted,
        "exceptions": exceptions,
        "slowest_ms": round(1e3 * max(one["slowest"] for one in applications), 2),
        "sound": bool(sound(path)),
    }
    in_file = sum(log_summary(path).dropped.values())
    row["met"] = not (missing or unaccounted or exceptions) and row["sound"] and in_file == counted
    return row


def killed(folder: Path, *, kills: int) -> Iterator[dict]:
    """Kill an application again and again; each goes on with the log of the one before."""
    path, draw = folder / "killed.db", random.Random(0)
    applications = []
    for part in range(kills):
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            app = Application(EventLog(path, flush_seconds=0.005, busy_seconds=30), part)
            while True:
                app.record(draw.randrange(1, 40))
                if app.acknowledge():
                    os.write(write, pickle.dumps(app.found()).ljust(400, b"\0"))
        os.close(write)
        told = b""
        while len(told) < 400:  # it runs
            told += os.read(read, 400 - len(told))
        time.sleep(draw.uniform(0.0, 0.06))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        with os.fdopen(read, "rb") as stream:
            told += stream.read()
        last = len(told) // 400 - 1
        applications.append(pickle.loads(told[400 * last : 400 * (last + 1)]))
        if part % 25 == 24 and not sound(path):
            raise SystemExit(f"the log is damaged after kill {part + 1}")
    yield judged(f"killed {kills} times", path, applications, killed=True)
    copy = folder / "copy.db"
    shutil.copy(path, copy)
    with closing(sqlite3.connect(copy)) as database, database:
        database.execute("DELETE FROM segments WHERE first = (SELECT max(first) / 2 FROM segments)")
        database.execute(
            "DELETE FROM segments WHERE first = (SELECT first FROM segments "
            "WHERE first > (SELECT max(first) / 2 FROM segments) ORDER BY first LIMIT 1)"
        )
    control = judged("a batch taken out", copy, applications, killed=True)
    if control["met"] or not control["acknowledged_missing"]:
        raise SystemExit("the check does not see that a batch is missing")


def locked(path: Path, *, seconds: float) -> list[dict]:
    app = Application(EventLog(path, busy_seconds=0.5))
    app.record(100)
    app.acknowledge()
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        last = time.monotonic() + seconds
        while time.monotonic() < last:
            app.record(20)
            time.sleep(0.05)
        if app.acknowledge(0.1):
            raise SystemExit("acknowledged while the file was locked")
        other.execute("ROLLBACK")
    app.acknowledge()
    app.log.close()
    return [app.found()]


def full(path: Path) -> list[dict]:
    app = Application(EventLog(path, flush_seconds=0.01))
    app.record(50)
    app.acknowledge()
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4_096, most))
    app.record(2_000)
    if app.acknowledge(1.0):
        raise SystemExit("acknowledged while the disk was full")
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    app.acknowledge()
    app.record(50)
    app.acknowledge()
    app.log.close()
    return [app.found()]


@contextmanager
def forbidden(path: Path) -> Iterator[None]:
    for mode_of_folder, mode_of_files in ((0o500, 0o400), (0o700, 0o600)):
        for file in path.parent.iterdir():
            file.chmod(mode_of_files)
        path.parent.chmod(mode_of_folder)
        if mode_of_folder == 0o500:
            yield


def read_only(path: Path) -> list[dict]:
    if os.geteuid() == 0:
        os.chown(path.parent, NOBODY, NOBODY)
        os.setuid(NOBODY)
    app = Application(EventLog(path, flush_seconds=0.01, busy_seconds=0.5))
    app.record(50)
    app.acknowledge()
    child = os.fork()  # the log closes its file around a fork, and has to open it again
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    with forbidden(path):
        app.record(500)
        if app.acknowledge(1.0):
            raise SystemExit("acknowledged while the file was read-only")
    app.acknowledge()
    app.record(50)
    app.acknowledge()
    app.log.close()
    return [app.found()]


def set_back(path: Path) -> list[dict]:
    now = [2_000_000_000.0]
    app = Application(EventLog(path, clock=lambda: now[0]))
    for value in (2e9, 2e9 - 3_600, float("nan"), -5.0, 0.0, 2e9 + 60):
        now[0] = value
        app.record(100)
        app.acknowledge()
    app.log.close()
    return [app.found()]


def forked(path: Path) -> list[dict]:
    app = Application(EventLog(path, flush_seconds=0.01, busy_seconds=30))
    app.record(300)
    reads = []
    for part in range(1, 5):
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            mine = Application(app.log, part)
            before = app.log.dropped.total
            mine.record(500)
            mine.acknowledge()
            found = mine.found()
            found["counted"] -= before
            os.write(write, pickle.dumps(found))
            os._exit(0)
        os.close(write)
        reads.append((child, read))
        app.record(300)
    app.acknowledge()
    app.log.close()
    found = [app.found()]
    for child, read in reads:
        with os.fdopen(read, "rb") as stream:
            found.append(pickle.load(stream))
        os.waitpid(child, 0)
    return found


def measure(folder: Path, *, kills: int, seconds: float) -> list[dict]:
    rows = list(killed(folder, kills=kills))

    def case(what: str, name: str, work: Callable[[Path], list[dict]]) -> None:
        path = folder / name / "log.db"
        path.parent.mkdir()
        rows.append(judged(what, path, in_process(lambda: work(path))))

    case(f"locked {seconds:g} s", "locked", lambda p: locked(p, seconds=seconds))
    case(
        f"locked {seconds / 3:g} s, room for 2,000",
        "locked-small",
        lambda p: locked(p, seconds=seconds / 3),
    )
    case("disk full", "full", full)
    case("disk full, room for 500", "full-small", full)
    case("read-only folder and file", "read-only", read_only)
    case("clock set back", "clock", set_back)
    case("four forked workers", "forked", forked)
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description="What an event log loses, and counts.")
    parser.add_argument("--quick", action="store_true", help="small sizes, no verdict")
    parser.add_argument("--output", type=Path, help="default: benchmarks/results/faults.json")
    options = parser.parse_args()
    warnings.simplefilter("ignore", DeprecationWarning)  # of forking beside threads: the point
    size = {"kills": 10, "seconds": 2.0} if options.quick else {"kills": 300, "seconds": 60.0}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)  # for the user without rights
        rows = measure(folder, **size)
    for row in rows:
        print(json.dumps(row))
    for row in rows:  # as those of other benchmarks
        row.update(ours=f"{row['present']:,} present", reference="", value=row["unaccounted"])
        row["target"] = "acknowledged = present, lost = counted, no exception"
    return finish("faults", rows, quick=options.quick, output=options.output)


if __name__ == "__main__":
    sys.exit(main())
