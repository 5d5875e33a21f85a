"""What lies under a log's path or beside it: nothing that was recorded is lost, or in it twice."""

import errno
import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from command_line import succeed
from test_event_log_faults import is_sound, plain

from rag_sourcebias.core.data import RankedList
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.monitor.follow import LogFollower
from rag_sourcebias.monitor.monitor import SkewMonitor
from rag_sourcebias.monitor.rotating import rotate_log
from rag_sourcebias.observe.events import RetrievalEvent
from rag_sourcebias.observe.log import journal
from rag_sourcebias.observe.log.event_log import EventLog
from rag_sourcebias.observe.log.journal import folder_of, journals_of
from rag_sourcebias.observe.log.reading import log_summary, read_events

pytestmark = pytest.mark.skipif(os.name == "nt", reason="open files cannot be moved there")


def numbers(path: Path) -> list[int]:
    return sorted(int(i, 16) for i in read_events(path).query_ids)


def record(log: EventLog, start: int, stop: int) -> None:
    for i in range(start, stop):
        log.observe(RetrievalEvent(ranked=RankedList(query_id=f"{i:016x}", doc_ids=())))


def test_more_than_a_batch_is_taken_in_whole(tmp_path: Path) -> None:
    with EventLog(tmp_path / "log.db", flush_seconds=3_600) as log:
        for _ in range(20_000):
            log.observe(plain(labels={f"l{i}": "y" * 200 for i in range(3)}))
        assert sum(file.stat().st_size for file in journals_of(log.path)) > 9_000_000
        assert log.flush()
        assert log_summary(log.path).n_written == 20_000


def test_journals_that_are_removed_are_written_again_and_taken_in_once(tmp_path: Path) -> None:
    log = EventLog(tmp_path / "log.db", flush_seconds=3_600)
    record(log, 0, 5)
    assert log.flush()
    record(log, 5, 10)
    shutil.rmtree(folder_of(log.path))
    record(log, 10, 15)
    folder_of(log.path).rename(tmp_path / "elsewhere")
    assert log.close()
    assert numbers(log.path) == list(range(15))
    assert not folder_of(log.path).exists()


def test_a_journal_that_cannot_be_begun_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = EventLog(tmp_path / "log.db", flush_seconds=3_600)
    write = os.write
    for n in (0, 7):  # a disk without any room, and with little

        def full(file: int, data: bytes, n: int = n) -> int:
            if not n:
                raise OSError(errno.ENOSPC, "no space left")
            return write(file, data[:n])

        with monkeypatch.context() as patch:
            patch.setattr(journal.os, "write", full)
            record(log, 100, 103)
        assert journals_of(log.path) == []
    record(log, 0, 3)
    with monkeypatch.context() as patch:  # half a line is not one
        patch.setattr(journal.os, "write", full)
        record(log, 100, 101)
    record(log, 3, 5)
    assert log.close()
    assert numbers(log.path) == list(range(5))
    assert log_summary(log.path).dropped == {"journal could not be written": 7}


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.EOPNOTSUPP])
def test_a_file_system_without_locks_is_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, code: int
) -> None:
    def flock(_file: int, _what: int) -> None:
        raise OSError(code, "no locks")

    monkeypatch.setattr(journal.fcntl, "flock", flock)
    path = tmp_path / "log.db"
    with EventLog(path) as one, EventLog(path) as two:
        for i in range(5):
            record(one, i, i + 1)
            record(two, 10 + i, 11 + i)
            assert one.flush()
            assert two.flush()
    assert numbers(path) == [*range(5), *range(10, 15)]
    assert len(caplog.records) == 1
    assert "is on a file system without locks" in log_summary(path).notes[0]


def overlay(path: Path, copy: Path) -> None:  # as `cp` does, between two pages of ours
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("DELETE FROM segments WHERE first = (SELECT max(first) FROM segments)")


def first_page(path: Path, copy: Path) -> None:
    with path.open("r+b") as file:
        file.seek(100)
        file.write(b"\xff" * 500)


@pytest.mark.parametrize("damage", [overlay, first_page])
def test_a_damaged_log_is_moved_aside_and_begun_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, damage: Callable[[Path, Path], None]
) -> None:
    log = EventLog(tmp_path / "log.db", flush_seconds=3_600)
    for i in range(3):
        record(log, i, i + 1)
        assert log.flush()
    damage(log.path, tmp_path)
    (before,) = (log.path.read_bytes(),)
    record(log, 3, 4)
    assert log.close()
    assert numbers(log.path) == [0, 1, 2, 3]
    (aside,) = tmp_path.glob("log.damaged-*.db")
    assert aside.read_bytes() == before
    assert str(aside) in caplog.text
    assert f"files beside it: {aside.name}" in succeed("start", str(log.path), cwd=tmp_path)


def test_a_killed_batch_is_not_written_into_somebody_elses_file(tmp_path: Path) -> None:
    path, other = tmp_path / "log.db", tmp_path / "other.db"
    log = EventLog(path, flush_seconds=3_600)
    record(log, 0, 3_000)
    assert log.flush()
    with closing(sqlite3.connect(path, isolation_level=None)) as killed:
        killed.execute("PRAGMA cache_size = 1")
        killed.execute("BEGIN")
        killed.execute("CREATE TABLE t AS SELECT randomblob(9000) FROM segments, labels, state")
        shutil.copy(tmp_path / "log.db-journal", tmp_path / "kept")
    with closing(sqlite3.connect(other)) as database, database:
        database.execute("CREATE TABLE theirs AS SELECT randomblob(90000)")
    before = other.read_bytes()
    other.replace(path)
    shutil.move(tmp_path / "kept", tmp_path / "log.db-journal")
    record(log, 3_000, 3_001)
    assert log.close()
    assert path.read_bytes() == before
    assert numbers(tmp_path / "log-2.db") == list(range(3_001))
    with pytest.raises(DataError, match="is no event log"):
        EventLog(path)
    with closing(sqlite3.connect(path)) as database:  # SQLite itself would have
        database.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    assert path.read_bytes() != before


def test_journals_of_another_release_are_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    folder_of(path).mkdir()
    theirs = folder_of(path) / f"{1:020d}-1-aa.jsonl"
    theirs.write_bytes(b'{"log": 9}\n[1]\n')
    with EventLog(path) as log:
        record(log, 0, 2)
    assert theirs.read_bytes() == b'{"log": 9}\n[1]\n'
    found = log_summary(path)
    assert (found.n_written, found.dropped) == (2, {})
    assert "is left where it is: version 9, this release reads 2" in found.notes[0]
    is_sound(path)


def test_a_log_is_rotated_while_it_is_written_and_followed(tmp_path: Path) -> None:
    path, old = tmp_path / "log.db", tmp_path / "old.db"
    with EventLog(path, flush_seconds=3_600) as log:
        with LogFollower(path, SkewMonitor()) as follower:
            record(log, 0, 5)
            follower.step()
            record(log, 5, 8)
            assert rotate_log(path, old) == old
            record(log, 8, 10)
            follower.step()
        assert numbers(old) == list(range(8))
        assert numbers(path) == [8, 9]
        assert read_events(path).numbers.tolist() == [9, 10]
        assert follower.monitor.snapshot()[0].n_retrievals == 7  # three went before it looked
        assert follower.dropped.total == 3
        before = old.read_bytes(), path.read_bytes()
        with pytest.raises(DataError, match=r"old\.db is there already; name one that is not"):
            rotate_log(path, old)
        with pytest.raises(DataError, match=r"cannot be moved to .*none.*db.*same file system"):
            rotate_log(path, tmp_path / "none" / "x.db")
        assert (old.read_bytes(), path.read_bytes()) == before
    said = succeed("monitor", "rotate", str(path), cwd=tmp_path)
    (named,) = tmp_path.glob("log-20*.db")
    assert str(named) in said.replace("\n", "")
    assert (numbers(named), numbers(path)) == ([8, 9], [])
    assert set(tmp_path.iterdir()) == {path, old, named}
