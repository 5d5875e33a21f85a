"""What may go wrong under a log: the application never notices, the counters say what was lost."""

import os
import sqlite3
import stat
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from rag_sourcebias.core.data import DocTags, RankedList
from rag_sourcebias.core.errors import UnsupportedVersionError
from rag_sourcebias.monitor.follow import LogFollower
from rag_sourcebias.monitor.monitor import SkewMonitor
from rag_sourcebias.observe.events import RetrievalEvent
from rag_sourcebias.observe.log.event_log import EventLog
from rag_sourcebias.observe.log.journal import folder_of
from rag_sourcebias.observe.log.reading import log_summary, read_events, read_rollups

START = """
import os, sys, time
from rag_sourcebias.observe import RetrievalEvent
from rag_sourcebias.observe.log.event_log import EventLog
from rag_sourcebias.core.data import DocTags, RankedList

def event(i, source="human"):
    return RetrievalEvent(ranked=RankedList(query_id=f"{i:016x}", doc_ids=("a",)),
                          tags=(DocTags(source=source),))
"""
KILLED = """
log = EventLog(sys.argv[1], flush_seconds=0.02)
i = 0
while True:
    log.observe(event(i))
    i += 1
    if i % 10 == 0:
        print("seen", i, flush=True)
        time.sleep(0.01)
    if i % 100 == 0 and log.flush(30):
        print("flushed", i, flush=True)
"""
FULL = """
import resource, signal
log = EventLog(sys.argv[1], flush_seconds=0.01, documents="plain")
for i in range(50):
    log.observe(event(i))
assert log.flush(30)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
_, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (os.path.getsize(sys.argv[2]), hard))
for i in range(50, 550):
    log.observe(event(i))
lost = log.dropped.by_reason["journal could not be written"]
assert lost == 500, log.dropped.by_reason
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
log.observe(event(550))
assert log.close(), log
"""
FORKED = """
import warnings
warnings.simplefilter("ignore")  # of forking beside a thread, which is what is tested
log = EventLog(sys.argv[1], flush_seconds=30)
for i in range(10):
    log.observe(event(i))
child = os.fork()
for i in range(100, 105):
    log.observe(event(i, "child" if child == 0 else "parent"))
assert log.flush(30)
if child == 0:
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
log.observe(event(20))
"""
WRITER = """
log = EventLog(sys.argv[1], flush_seconds=0.01, busy_seconds=30)
for i in range(2000):
    log.observe(event(i, sys.argv[2]))
    if i % 100 == 0:
        time.sleep(0.005)
assert log.close(30) and not log.dropped.total
"""


def plain(**kwargs: object) -> RetrievalEvent:
    return RetrievalEvent(
        ranked=RankedList(query_id="0" * 16, doc_ids=("a", "b")),
        **{"tags": (DocTags(source="human"), DocTags(source="llm:a")), **kwargs},
    )


def run(script: str, *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-B", "-c", START + script, *map(str, arguments)],
        stdout=subprocess.PIPE,
        text=True,
    )


def is_sound(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert read_rollups(path).retrievals.sum() == log_summary(path).n_written


def test_a_killed_process_loses_nothing_and_damages_nothing(tmp_path: Path) -> None:
    path, before = tmp_path / "log.db", 0
    for pause in (0.05, 0.21, 1.0):
        with run(KILLED, path) as process:
            assert process.stdout is not None
            told = [process.stdout.readline()]
            time.sleep(pause)
            process.kill()
            told += process.stdout.readlines()
        last = {word: int(n) for word, n in (line.split() for line in told if line[-1:] == "\n")}
        read = read_events(path)
        is_sound(path)
        ids = [int(i, 16) for i in read.query_ids[before:]]
        assert ids == list(range(len(ids)))
        assert len(ids) >= last["seen"]  # what was seen was in the file system before
        before = len(read)
    assert before > 100


@pytest.mark.skipif(sys.platform == "win32", reason="needs limits of a process")
def test_a_full_disk_is_counted_and_the_application_goes_on(tmp_path: Path) -> None:
    path, full = tmp_path / "log.db", tmp_path / "full"
    full.write_bytes(b"x" * 512)
    with run(FULL, path, full) as process:
        assert process.wait(60) == 0
    is_sound(path)
    ids = [int(i, 16) for i in read_events(path).query_ids]
    assert ids == [*range(50), 550]
    assert log_summary(path).dropped == {"journal could not be written": 500}


def test_what_waits_is_written_when_the_interpreter_ends(tmp_path: Path) -> None:
    script = "EventLog(sys.argv[1], flush_seconds=30).observe(event(0))"  # held by nobody
    with run(script, tmp_path / "log.db") as process:
        assert process.wait(60) == 0
    assert log_summary(tmp_path / "log.db").n_written == 1


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork")
def test_a_forked_child_logs_on_its_own(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    with run(FORKED, path) as process:
        assert process.wait(60) == 0
    is_sound(path)
    rollups = read_rollups(path)
    assert rollups.groups == ("child", "human", "parent")
    assert rollups.documents.sum(axis=0).tolist() == [5, 11, 5]


def test_two_processes_write_while_another_reads(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    EventLog(path).close()
    seen = []
    with run(WRITER, path, "one") as one, run(WRITER, path, "two") as two:
        while one.poll() is None or two.poll() is None:
            seen.append(len(read_events(path)))
            time.sleep(0.02)
    assert (one.returncode, two.returncode) == (0, 0)
    assert seen == sorted(seen)
    is_sound(path)
    read = read_events(path)
    assert read.numbers.tolist() == list(range(1, 4_001))
    for source in ("one", "two"):
        mine = read.tag_codes == read.tags.index((source, None))
        assert read.query_ids[read.rows[mine]].tolist() == [f"{i:016x}" for i in range(2_000)]


def test_a_locked_log_keeps_the_application_going(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    log = EventLog(path, flush_seconds=0.01, busy_seconds=0.05)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        start = time.perf_counter()
        for _ in range(100):
            log.observe(plain())
        assert time.perf_counter() - start < 0.5
        assert not log.flush(0.2)
        other.execute("ROLLBACK")
    assert log.flush(30)
    assert log.dropped.total == 0
    assert log.close()
    assert log_summary(path).n_written == 100
    is_sound(path)


def test_what_waits_in_journals_is_bounded(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    log = EventLog(path, busy_seconds=0.05, journal_bytes=1_000_000)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        for _ in range(20_000):
            log.observe(plain(labels={"a": "y" * 200}))
        other.execute("ROLLBACK")
    lost = log.dropped.by_reason["journal could not be written"]
    assert 15_000 < lost < 19_000
    assert log.flush(30)
    for _ in range(300):  # what was taken in takes no room
        log.observe(plain())
    assert log.close()
    assert log_summary(path).n_written == 20_000 - lost + 300
    assert log_summary(path).dropped == {"journal could not be written": lost}


@pytest.mark.skipif(sys.platform == "win32", reason="modes of files")
def test_files_are_private_unless_told_otherwise(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        for name, mode in (("a", 0o600), ("b", 0o640)):
            path = tmp_path / name / "new" / "log.db"
            kwargs = {} if mode == 0o600 else {"file_mode": mode}
            state = path.with_name("state.json")
            with EventLog(path, **kwargs) as log:
                log.observe(plain())
                assert log.flush(30)
                with LogFollower(path, SkewMonitor(), state=state, save_seconds=0, **kwargs) as it:
                    it.step()
                (journal,) = folder_of(path).iterdir()
                files = [path, state, journal]
                assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {mode}
                folders = (path.parent, path.parent.parent, folder_of(path))
                modes = {stat.S_IMODE(folder.stat().st_mode) for folder in folders}
                assert modes == {0o700 if mode == 0o600 else 0o750}
            assert sorted(path.parent.iterdir()) == [path, state]
            for folder in (path.parent, path.parent.parent):
                assert stat.S_IMODE(folder.stat().st_mode) == (0o700 if mode == 0o600 else 0o750)
        state.chmod(0o644)  # asked for by hand
        with LogFollower(path, SkewMonitor(), state=state, save_seconds=0, anew=True) as follower:
            follower.step()
        assert stat.S_IMODE(state.stat().st_mode) == 0o644
        open_to_all = tmp_path / "old.db"
        open_to_all.touch()
        EventLog(open_to_all).close()
        assert stat.S_IMODE(open_to_all.stat().st_mode) == 0o644
    finally:
        os.umask(before)


def test_closing_a_locked_log_leaves_what_waits_in_journals(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    log = EventLog(path, flush_seconds=0.01, busy_seconds=0.05)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        for _ in range(7):
            log.observe(plain())
        assert not log.close()
        other.execute("ROLLBACK")
    log.observe(plain())
    assert log.dropped.by_reason == {"log is closed": 1}
    assert log_summary(path).n_written == 7


def test_a_log_that_was_removed_is_begun_again(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    with EventLog(path) as log:
        log.observe(plain())
        assert log.flush(30)
        path.unlink()
        log.observe(plain())
    assert log_summary(path).n_written == 2  # the journal had the first one still
    is_sound(path)


def test_times_never_fall_when_the_clock_does(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path, now = tmp_path / "log.db", [2_000_000_000.0]
    with EventLog(path, clock=lambda: now[0]) as log:
        for value in (2e9, 1e9, float("nan"), -5.0, 2e9 + 60):
            now[0] = value
            log.observe(plain())
            assert log.flush(30)
    times = read_events(path).times
    assert len(times) == 5
    assert [r.args[0] for r in caplog.records] == [pytest.approx(1e9, abs=10)]  # said once
    assert (np.diff(times) >= 0).all()
    np.testing.assert_allclose(times, [2e9] * 4 + [2e9 + 60], atol=5)


def test_poisoned_events_are_dropped_one_by_one(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    poisoned = [plain(monotonic="noon")]
    strange = [
        plain(tags=("human", DocTags(source="llm:a"))),
        plain(tags=(DocTags(style=["list"]), DocTags())),
        plain(monotonic=float("nan")),
        plain(monotonic=float("inf")),
        RetrievalEvent(
            ranked=RankedList(
                query_id=None,
                doc_ids=(None, 7, "\ud800"),
                scores=np.full(3, np.nan, np.float32),
            )
        ),
        RetrievalEvent(ranked=RankedList(query_id="q", doc_ids=("d",) * 5_000)),
    ]
    with EventLog(path, documents="plain") as log:
        for bad in poisoned:
            log.observe(bad)
            log.observe(plain())
        for odd in strange:
            log.observe(odd)
        log.observe(None)
        log.observe(plain(tags=(DocTags(source="\ud800"), DocTags()), labels={"a": "\ud800"}))
    lost = {"event could not be encoded": 2}
    assert log.dropped.by_reason == lost
    read = read_events(path)
    assert np.diff(read.offsets).tolist() == [2, 2, 2, 2, 2, 3, 1_000, 2]
    assert [read.tags[code] for code in read.tag_codes[2:6]] == [
        *[(None, None), ("llm:a", None)],
        *[(None, None), (None, None)],
    ]
    assert read.doc_ids[10:13].tolist() == ["", "7", "?"]
    assert log_summary(path).dropped == lost
    assert log_summary(path).bad_tags == 2
    is_sound(path)


def test_tags_beyond_the_cap_are_other(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    with EventLog(path, max_tags=3) as log:
        for i in range(500):
            tags = (DocTags(source="human", style=f"s{i}"), DocTags(source=f"m{i}"))
            log.observe(plain(tags=tags))
    found = log_summary(path)
    rollups = read_rollups(path)
    totals = dict(zip(rollups.groups, rollups.documents.sum(axis=0), strict=True))
    assert totals["human"] == 500  # its source is known still
    assert sum(totals.values()) == 1_000
    assert len(found.tags) == 256
    assert totals["other"] == 248  # beyond 256 codes
    assert found.odd_sources == {f"m{i}": 1 for i in range(252)}


def test_a_newer_log_is_left_alone_and_another_one_begun(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    EventLog(path).close()
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA user_version = 9")
    before = path.read_bytes()
    with EventLog(path) as log:
        log.observe(plain())
    assert path.read_bytes() == before
    assert log_summary(tmp_path / "log-2.db").n_written == 1
    with pytest.raises(UnsupportedVersionError, match="has version 9, this release reads up to 2"):
        read_events(path)
