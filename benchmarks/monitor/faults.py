"""What an event log loses when processes end and operators work on its files, and what it counts.

    python benchmarks/monitor/faults.py [--quick] [--output FILE]

A retrieval is *acknowledged* when the call of the application has returned. Every one has a number,
so that what is read afterwards tells which are there.

- Ends of processes: servers that are stopped straight after their last answer, and pools; a
  server that is not installed here is left out.
- Operators: four processes write while the log is moved, copied, emptied, replaced or damaged, in
  twelve ways. Files that somebody else brought must be the same bytes afterwards; every file that
  the log began or moved must be named in a log record; what the damage itself took is counted
  apart, as far as no other file has it.
- 8,000 requests over four workers, two of them killed: labels and exposure, too.
- A file that is locked, a disk that is full, a folder that is only read (a limit on the size of
  files fails writes as a full disk does): what is lost is counted, and nothing is raised.

The check is checked: rows are taken out of a copy of a log, and it must find that.
"""

from __future__ import annotations

import argparse
import http.client
import importlib.util
import logging
import math
import multiprocessing
import os
import random
import resource
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

from rag_sourcebias.core.data import DocTags, RankedList
from rag_sourcebias.core.errors import SourceBiasError
from rag_sourcebias.observe.events import RetrievalEvent
from rag_sourcebias.observe.log.event_log import EventLog
from rag_sourcebias.observe.log.journal import folder_of
from rag_sourcebias.observe.log.reading import log_summary, read_events, read_rollups

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "speed"), str(HERE)]
from rounds import finish  # noqa: E402

APP = HERE / "faults_app.py"
NOBODY = 65_534
FORK = multiprocessing.get_context("fork")


# What is there afterwards.


def row(what: str, runs: int, acknowledged: int, **found: int) -> dict:
    """One row of the results; whatever ``found`` names must be 0, but for what starts with n_."""
    found = {name: int(n) for name, n in found.items()}
    bad = {name: n for name, n in found.items() if not name.startswith("n_")}
    return {
        "what": what,
        "runs": runs,
        "acknowledged": acknowledged,
        **found,
        "met": not any(bad.values()),
        "ours": f"{acknowledged:,} acknowledged",
        "reference": "",
        "value": ", ".join(f"{name} {n:,}" for name, n in found.items()),
        "target": "nothing lost, raised, doubled or changed",
    }


def is_sound(path: Path) -> bool:
    """Whether the file is whole and its counts are those of its retrievals."""
    with closing(sqlite3.connect(path)) as database:
        whole = database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    n = log_summary(path).n_written
    return whole and read_rollups(path).retrievals.sum() == n == len(read_events(path))


def sessions(path: Path) -> Counter[int]:
    """How often each number is in a log of ``faults_app``."""
    labels = read_events(path).event_labels
    return Counter(map(int, labels["session"].tolist() if labels else ()))


def checked(path: Path, answered: list[int]) -> dict[str, int]:
    there = sessions(path)
    lost = len(set(answered) - set(there))
    return {"lost": lost, "twice": there.total() - len(there), "unsound": not is_sound(path)}


# Ends of processes.


def started(arguments: list[str], path: Path, **options: object) -> subprocess.Popen:
    environment = {**os.environ, "FAULTS_LOG": str(path), "PYTHONPATH": os.pathsep.join(sys.path)}
    environment["FAULTS_ANSWERED"] = str(path.with_name("answered"))
    return subprocess.Popen(
        [sys.executable, *arguments],
        env=environment,
        cwd=path.parent,
        stderr=subprocess.DEVNULL,
        text=True,
        **options,
    )


def free_port() -> int:
    with closing(socket.socket()) as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def asked(port: int, numbers: list[int], answered: list[int]) -> None:
    """Ask a server for each number; where a worker goes meanwhile, ask again."""
    for number in numbers:
        for _ in range(400):
            try:
                client = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
                client.request("GET", f"/{number}")
                if client.getresponse().read() == b"done":
                    answered.append(number)
                    break
            except (OSError, http.client.HTTPException):
                time.sleep(0.05)
            finally:
                client.close()


def served(arguments: list[str]) -> Callable[[Path, int], list[int]]:
    def run(path: Path, n: int) -> list[int]:
        port, answered = free_port(), []
        with started([part.format(port=port) for part in arguments], path) as server:
            parts = [list(range(start, n, 4)) for start in range(4)]
            threads = [threading.Thread(target=asked, args=(port, p, answered)) for p in parts]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            server.send_signal(signal.SIGTERM)
        return answered

    return run


def in_celery(path: Path, n: int) -> list[int]:
    arguments = ["-m", "celery", "-A", "faults_app:tasks", "worker", "--pool", "prefork"]
    arguments += ["-c", "2", "--max-tasks-per-child", "20", "--without-gossip", "--without-mingle"]
    sent = f"from faults_app import tasks\nfor i in range({n}): tasks.answered.delay(i)"
    with started(["-c", sent], path):
        pass
    file = path.with_name("answered")
    with started(arguments, path, stdout=subprocess.DEVNULL) as worker:
        last = time.monotonic() + 120
        while time.monotonic() < last:
            time.sleep(0.1)
            if file.exists() and len(file.read_text().split()) == n:
                break
        worker.send_signal(signal.SIGTERM)
    return [int(number) for number in file.read_text().split()]


def pooled(how: str) -> Callable[[Path, int], list[int]]:
    def run(path: Path, n: int) -> list[int]:
        with started([str(APP), str(path), how, str(n)], path, stdout=subprocess.PIPE) as it:
            return [int(line) for line in it.stdout]

    return run


def stopped(how: str) -> Callable[[Path, int], list[int]]:
    def run(path: Path, n: int) -> list[int]:
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        arguments = [str(APP), str(path), "terminated" if how == "terminate()" else "answer"]
        answered = []
        with started(arguments, path, **pipes) as it:
            for number in range(n):
                if how != "terminate()":
                    it.stdin.write(f"{number}\n")
                    it.stdin.flush()
                answered.append(int(it.stdout.readline()))
            if how == "kill -9":
                it.kill()
            it.stdin.close()
            answered += [int(line) for line in it.stdout if line.endswith("\n")]
        return answered

    return run


ASGI = ["faults_app:app", "--port", "{port}", "--lifespan", "off", "--log-level", "critical"]
GUNICORN = ["-m", "gunicorn", "faults_app:app", "-b", "127.0.0.1:{port}", "-w", "2"]
GUNICORN += [
    "-k",
    "uvicorn_worker.UvicornWorker",
    "--max-requests",
    "60",
    "--log-level",
    "critical",
]
ENDS: dict[str, tuple[str, int, Callable[[Path, int], list[int]]]] = {
    "uvicorn, SIGTERM": ("uvicorn", 20, served(["-m", "uvicorn", *ASGI])),
    "uvicorn with two workers, SIGTERM": (
        "uvicorn", 5, served(["-m", "uvicorn", *ASGI, "--workers", "2"]),
    ),
    "gunicorn with UvicornWorker, recycled, SIGTERM": ("uvicorn_worker", 5, served(GUNICORN)),
    "Celery, prefork, --max-tasks-per-child 20": ("celery", 3, in_celery),
    "multiprocessing pool, fork": ("json", 5, pooled("fork")),
    "multiprocessing pool, forkserver": ("json", 5, pooled("forkserver")),
    "os._exit": ("json", 5, stopped("os._exit")),
    "kill -9": ("json", 5, stopped("kill -9")),
    "terminate()": ("json", 5, stopped("terminate()")),
}  # fmt: skip


def ends(folder: Path, *, runs: int | None, n: int = 300) -> Iterator[dict]:
    for what, (module, usual, run) in ENDS.items():
        if importlib.util.find_spec(module) is None:
            print(f"{what}: {module} is not installed")
            continue
        found: Counter[str] = Counter()
        for turn in range(runs or usual):
            path = folder / f"{len(what)}-{what[0]}-{turn}" / "log.db"
            path.parent.mkdir()
            answered = run(path, n)
            found.update({"acknowledged": len(answered), "unanswered": max(n - len(answered), 0)})
            found.update(checked(path, answered))
        yield row(what, runs or usual, found.pop("acknowledged"), **found)


# Operators.


def event(part: int, number: int) -> RetrievalEvent:
    ranked = RankedList(query_id=f"{part:08x}{number:08x}", doc_ids=("a", "b"))
    return RetrievalEvent(ranked=ranked, tags=(DocTags(source="human"), DocTags(source="llm:x")))


def write_on(path: Path, part: int, ready: object, stop: object, told: object) -> None:
    """Record until told to stop; say how many were recorded, and how many of them were dropped."""
    handler = logging.FileHandler(path.with_name("records"))
    logging.getLogger("rag_sourcebias").addHandler(handler)
    log, number, raised = EventLog(path, flush_seconds=0.03), 0, 0
    ready.wait(60)
    while not stop.is_set():
        for _ in range(5):
            try:
                log.observe(event(part, number))
            except Exception:  # noqa: BLE001 - it would have reached the application
                raised += 1
            number += 1
        time.sleep(0.002)
    log.close(60)
    told.put((part, number, log.dropped.total, raised))


def numbers_in(path: Path) -> Counter[str]:
    """Query ids in the file of a log, read around what is damaged and without this library."""
    rows: dict[int, bytes] = {}
    for order in ("ASC", "DESC"):
        try:
            with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as database:
                query = f"SELECT first, n, queries FROM segments ORDER BY first {order}"
                for first, n, queries in database.execute(query):
                    if isinstance(queries, bytes) and len(queries) == 8 * n:
                        rows[first] = queries
        except sqlite3.Error:
            continue
    return Counter(q[i : i + 8].hex() for q in rows.values() for i in range(0, len(q), 8))


def other_program(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE theirs AS SELECT randomblob(50000) AS a")


def newer(path: Path) -> None:
    EventLog(path).close()
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA user_version = 9")


def overwritten(path: Path, page: int) -> None:
    with path.open("r+b") as file:
        file.seek(page * 4_096)
        file.write(b"\xff" * 4_096)
    path.touch()


def emptied(log: Path) -> None:
    os.truncate(log, 0)


def moved_and_created(log: Path, beside: Path) -> None:
    log.rename(beside)
    log.touch()


def copied_and_emptied(log: Path, beside: Path) -> None:
    shutil.copy(log, beside)
    emptied(log)


def copied_and_removed(log: Path, beside: Path) -> None:
    shutil.copy(log, beside)
    time.sleep(0.1)
    log.unlink()


def restored_in_place(log: Path, beside: Path) -> None:
    shutil.copyfile(beside, log)


def restored_by_replacement(log: Path, beside: Path) -> None:
    shutil.copy(beside, log.with_name("restored"))
    log.with_name("restored").replace(log)


def brought(make: Callable[[Path], object]) -> Callable[[Path, Path], None]:
    def act(log: Path, _: Path) -> None:
        theirs = log.with_name("theirs")
        make(theirs)
        shutil.copy(theirs, log.with_name("theirs.kept"))
        theirs.replace(log)

    return act


ACTIONS: dict[str, Callable[[Path, Path], object]] = {
    "mv": lambda log, beside: log.rename(beside),
    "mv and create": moved_and_created,
    "copytruncate": copied_and_emptied,
    "cp and rm": copied_and_removed,
    "an older copy restored in place": restored_in_place,
    "an older copy restored by replacement": restored_by_replacement,
    "another program's SQLite file": brought(other_program),
    "a text file": brought(lambda path: path.write_text("a shopping list\n" * 500)),
    "a newer schema": brought(newer),
    "a damaged page in the middle": lambda log, _: overwritten(log, log.stat().st_size // 8_192),
    "the first page damaged": lambda log, _: overwritten(log, 0),
    "the folder of journals removed": lambda log, _: shutil.rmtree(folder_of(log)),
}


def one_action(folder: Path, act: Callable[[Path, Path], object], pause: float) -> dict[str, int]:
    log, beside = folder / "log.db", folder / "beside.db"
    ready, stop, told = FORK.Barrier(5), FORK.Event(), FORK.Queue()
    writers = [
        FORK.Process(target=write_on, args=(log, part, ready, stop, told)) for part in range(4)
    ]
    for writer in writers:
        writer.start()
    ready.wait(60)
    time.sleep(pause)
    older = act in (restored_in_place, restored_by_replacement)
    if older:
        shutil.copy(log, beside)
        time.sleep(pause / 2)
    before = set(numbers_in(log))
    act(log, beside)
    theirs = log if folder.joinpath("theirs.kept").exists() else None
    damaged = shutil.copyfile(log, folder / "damaged.kept") if "damage" in folder.name else None
    time.sleep(pause)
    stop.set()
    counts = [told.get(timeout=90) for _ in writers]
    for writer in writers:
        writer.join()
    log_summary_or_none(log)  # whoever looks at it takes in what is left
    files = [file for file in folder.glob("*.db") if file != theirs]
    there = sum((numbers_in(file) for file in files), Counter())
    wanted = {f"{part:08x}{i:08x}" for part, n, *_ in counts for i in range(n)}
    missing = wanted - set(there)
    taken = before - set(numbers_in(damaged)) if damaged else set()
    records = folder.joinpath("records").read_text() if folder.joinpath("records").exists() else ""
    unnamed = [f for f in files if f not in (log, beside) and str(f) not in records]
    kept = folder / "theirs.kept"
    return {
        "acknowledged": len(wanted),
        "lost": len(missing - taken),
        "n_taken_by_damage": len(missing & taken),
        "raised": sum(raised for *_, raised in counts),
        "dropped": sum(dropped for *_, dropped, _ in counts),
        "twice_in_a_file": sum(max(numbers_in(f).values(), default=1) > 1 for f in files),
        "unnamed": len(unnamed),
        "changed": kept.exists() and kept.read_bytes() != log.read_bytes(),
    }


def log_summary_or_none(log: Path) -> None:
    try:
        log_summary(log)
    except SourceBiasError:
        return


def actions(folder: Path, *, runs: int, pause: float) -> Iterator[dict]:
    for place, (what, act) in enumerate(ACTIONS.items()):
        found: Counter[str] = Counter()
        for turn in range(runs):
            here = folder / f"{place}-{'damage' if 'damaged' in what else 'act'}-{turn}"
            here.mkdir()
            found.update(one_action(here, act, pause))
        yield row(what, runs, found.pop("acknowledged"), **found)


# 8,000 requests over four workers, two of them killed.


def requests(folder: Path, *, n: int) -> Iterator[dict]:
    path, answered = folder / "requests" / "log.db", []
    path.parent.mkdir()
    draw = random.Random(0)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}

    def worker(numbers: list[int], killed_at: int | None) -> None:
        arguments = [str(APP), str(path), "answer"]
        it = started(arguments, path, **pipes)
        for place, number in enumerate(numbers):
            if place == killed_at:
                it.stdin.write(f"{number}\n")
                it.stdin.flush()
                time.sleep(draw.uniform(0, 0.002))
                it.kill()
                answered.extend(int(line) for line in it.stdout if line.endswith("\n"))
                it = started(arguments, path, **pipes)  # as a server does
                continue
            it.stdin.write(f"{number}\n")
            it.stdin.flush()
            answered.append(int(it.stdout.readline()))
        it.stdin.close()
        it.wait()

    threads = [
        threading.Thread(
            target=worker, args=(list(range(part, n, 4)), n // 8 + part if part < 2 else None)
        )
        for part in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    os.environ["FAULTS_LOG"] = str(path)  # which the application opens when it is imported
    from faults_app import DOCUMENTS, SOURCES, labels_of, ranking

    read = read_events(path)
    wrong = sum(
        read.labels_at(i)
        != {"collection": "docs", **labels_of(int(read.event_labels["session"][i]))}
        for i in range(len(read))
    )
    there = sessions(path)
    truth: Counter[str] = Counter()
    for number in there.elements():
        for rank, name in enumerate(ranking(number), 1):
            truth[SOURCES[name]] += 1 / math.log2(rank + 1)
    assert set(SOURCES) == set(DOCUMENTS)
    rollups = read_rollups(path)
    exposure = dict(zip(rollups.groups, rollups.exposure.sum(axis=0), strict=True))
    off = sum(abs(exposure[name] / value - 1) > 1e-9 for name, value in truth.items())
    found = checked(path, answered)
    yield row(
        f"{n:,} requests, four workers, two killed",
        1,
        len(answered),
        **found,
        wrong_labels=wrong,
        exposure_off=off,
    )
    copy = path.with_name("copy.db")
    shutil.copy(path, copy)
    with closing(sqlite3.connect(copy)) as database, database:
        database.execute("DELETE FROM segments WHERE first = (SELECT max(first) FROM segments)")
    control = checked(copy, answered)
    if not (control["lost"] and control["unsound"]):
        raise SystemExit("the check does not see that a batch is missing")


# What does not let the log be written.


class Application:
    """Records retrievals, and notes what reaches it."""

    def __init__(self, path: Path, **options: object) -> None:
        self.recorded = self.raised = 0
        try:
            self.log = EventLog(path, flush_seconds=0.01, busy_seconds=0.5, **options)
        except Exception as error:
            raise SystemExit(f"the application could not start: {error}") from error

    def record(self, n: int) -> None:
        for _ in range(n):
            try:
                self.log.observe(event(0, self.recorded))
            except Exception:  # noqa: BLE001 - any of them would have reached an application
                self.raised += 1
            self.recorded += 1

    def found(self) -> tuple[int, int, int]:
        self.log.close(60)
        return self.recorded, self.log.dropped.total, self.raised


def locked(path: Path) -> tuple[int, int, int]:
    app = Application(path)
    app.record(100)
    app.log.flush()
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        for _ in range(100):
            app.record(20)
            time.sleep(0.05)
        other.execute("ROLLBACK")
    return app.found()


def full(path: Path) -> tuple[int, int, int]:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, most))
    app = Application(path)  # it starts
    app.record(500)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    app.record(50)
    return app.found()


def read_only(path: Path) -> tuple[int, int, int]:
    if os.geteuid() == 0:
        os.chown(path.parent, NOBODY, NOBODY)
        os.setuid(NOBODY)
    path.parent.chmod(0o500)
    app = Application(path)
    app.record(500)
    path.parent.chmod(0o700)
    app.record(50)
    return app.found()


def set_back(path: Path) -> tuple[int, int, int]:
    now = [2e9]
    app = Application(path, clock=lambda: now[0])
    for value in (2e9, 2e9 - 3_600, float("nan"), -5.0, 0.0, 2e9 + 60):
        now[0] = value
        app.record(100)
        app.log.flush()
    return app.found()


STATES: dict[str, Callable[[Path], tuple[int, int, int]]] = {
    "file locked by another program for five seconds": locked,
    "disk full from the start, then not": full,
    "folder read-only from the start, then not": read_only,
    "clock set back an hour, to 0, to no number": set_back,
}


def states(folder: Path) -> Iterator[dict]:
    for place, (what, work) in enumerate(STATES.items()):
        path = folder / f"state-{place}" / "log.db"
        path.parent.mkdir()
        told = FORK.Queue()
        child = FORK.Process(
            target=lambda *given: given[0].put(given[1](given[2])), args=(told, work, path)
        )
        child.start()
        recorded, counted, raised = told.get(timeout=90)
        child.join()
        n = log_summary(path).n_written
        yield row(
            what,
            1,
            recorded - counted,
            n_counted=counted,
            lost=recorded - counted - n,
            raised=raised,
            counted_otherwise_in_the_file=abs(sum(log_summary(path).dropped.values()) - counted),
            unsound=not is_sound(path),
        )


def measure(folder: Path, *, quick: bool) -> Iterator[dict]:
    yield from states(folder)
    yield from requests(folder, n=400 if quick else 8_000)
    yield from actions(folder, runs=1 if quick else 20, pause=0.15)
    yield from ends(folder, runs=1 if quick else None, n=60 if quick else 300)


def main() -> int:
    parser = argparse.ArgumentParser(description="What an event log loses, and counts.")
    parser.add_argument("--quick", action="store_true", help="small sizes, no verdict")
    parser.add_argument("--output", type=Path, help="default: benchmarks/results/faults.json")
    options = parser.parse_args()
    warnings.simplefilter("ignore", DeprecationWarning)  # of forking beside threads: the point
    logging.getLogger("rag_sourcebias").propagate = False
    rows = []
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        folder.chmod(0o755)  # for the user without rights
        for one in measure(folder, quick=options.quick):
            rows.append(one)
            print(f"{one['what']}: {one['ours']}, {one['value']}", flush=True)
    return finish("faults", rows, quick=options.quick, output=options.output)


if __name__ == "__main__":
    sys.exit(main())
