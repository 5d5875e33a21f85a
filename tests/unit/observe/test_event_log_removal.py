"""What leaves a log: by size and age into an archive, and by label to the last byte."""

import json
import sqlite3
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from command_line import refused, succeed

from rag_sourcebias.core.data import DocTags, RankedList
from rag_sourcebias.core.errors import DataError, MissingExtraError
from rag_sourcebias.monitor.erasing import erase_events
from rag_sourcebias.monitor.follow import LogFollower, parquet_events
from rag_sourcebias.monitor.monitor import SkewMonitor
from rag_sourcebias.observe.events import RetrievalEvent, hash_query, read_key
from rag_sourcebias.observe.log.event_log import EventLog
from rag_sourcebias.observe.log.reading import log_summary, read_events, read_rollups, reading
from rag_sourcebias.observe.log.schema import SEGMENT_COLUMNS
from rag_sourcebias.observe.log.writing import archive_segments

MIDNIGHT = 1_800_000_000.0 - 1_800_000_000.0 % 86_400


def event(i: int, n: int = 3) -> RetrievalEvent:
    return RetrievalEvent(
        ranked=RankedList(query_id=f"{i:016x}", doc_ids=tuple(f"doc{j}-{i}" for j in range(n))),
        tags=tuple(DocTags(source=("human", None)[j % 2], style="plain") for j in range(n)),
        labels={"route": f"r{i % 2}"},
    )


def wait_until(path: Path, n_kept: int) -> None:
    for _ in range(200):
        if log_summary(path).n_kept == n_kept:
            return
        time.sleep(0.02)
    raise AssertionError(f"{log_summary(path).n_kept} retrievals are left, not {n_kept}")


def test_the_oldest_go_when_the_log_grows_too_large(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    with EventLog(path, documents="plain", max_bytes=1_000_000) as log:
        for start in range(0, 20_000, 1_000):
            for i in range(start, start + 1_000):
                log.record(event(i), at=MIDNIGHT + i)
            assert log.flush(30)
    assert path.stat().st_size < 1_400_000  # what came last is written before old ones go
    found = log_summary(path)
    assert found.n_written == 20_000
    assert 2_000 < found.n_kept < 20_000
    read = read_events(path)
    assert read.numbers.tolist() == list(range(20_001 - len(read), 20_001))
    assert read_rollups(path, step=3_600).documents.sum() == 60_000  # totals stay
    minutes = read_rollups(path)
    assert minutes.starts[-1] == MIDNIGHT + 19_980
    # those of the minutes that retrievals are left of
    assert len(read) <= minutes.retrievals.sum() < len(read) + 60


def test_retrievals_go_when_they_are_too_old(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    with EventLog(path) as log:
        for i in range(1_000):
            log.record(event(i), at=MIDNIGHT + i)
            if i % 100 == 99:
                assert log.flush(30)
    with EventLog(path, max_age=500, clock=lambda: MIDNIGHT + 1_000) as log:
        log.record(event(1_000), at=MIDNIGHT + 1_000)
        assert log.flush(30)
        wait_until(path, 501)
    assert read_events(path).times.min() == MIDNIGHT + 500
    assert read_rollups(path).starts.tolist() == [MIDNIGHT + 60 * i for i in range(8, 17)]
    assert read_rollups(path, step=3_600).retrievals.sum() == 1_001


def test_what_goes_is_in_the_archive(tmp_path: Path) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    path, folder = tmp_path / "log.db", tmp_path / "archive"
    log = EventLog(path, documents="plain")
    with log:
        for i in range(300):
            log.record(event(i, n=i % 4), at=MIDNIGHT + 43_200 + 600 * i)
            if i % 50 == 49:
                assert log.flush(30)
    expected = read_events(path)
    clock = lambda: MIDNIGHT + 43_200 + 600 * 300 + 86_400.0
    with EventLog(path, documents="plain", max_age=86_400, archive=folder, clock=clock) as log:
        log.record(event(300), at=clock())
        assert log.flush(30)
        wait_until(path, 1)
    days = sorted(p.name for p in folder.iterdir())
    assert days == ["date=2027-01-15", "date=2027-01-16", "date=2027-01-17"]
    rows = sorted(pq.read_table(folder).to_pylist(), key=lambda r: r["number"])
    assert [r["number"] for r in rows] == list(range(1, 301))
    for i, row in enumerate(rows):
        assert row["query_id"] == f"{i:016x}"
        assert row["sources"] == [("human", None)[j % 2] for j in range(i % 4)]
        assert row["doc_ids"] == [f"doc{j}-{i}" for j in range(i % 4)]
        assert json.loads(row["labels"]) == {"route": f"r{i % 2}"}
        assert row["time"].timestamp() == pytest.approx(expected.times[i], abs=1e-6)
        assert row["time"].date().isoformat() == str(row["date"])


def test_an_interrupted_archive_holds_nothing_twice(tmp_path: Path) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    path, folder = tmp_path / "log.db", tmp_path / "archive"
    with EventLog(path) as log:
        for i in range(6):
            log.record(event(i), at=MIDNIGHT + i)
            assert log.flush(30)
    with reading(path) as database:
        rows = database.execute(f"SELECT {SEGMENT_COLUMNS} FROM segments ORDER BY first").fetchall()
        assert len(rows) == 6
        archive_segments(database, folder, rows[:3])  # and died before it could remove them
        archive_segments(database, folder, rows[:5])
        archive_segments(database, folder, rows[:5])
    numbers = pq.read_table(folder).column("number").to_pylist()
    assert sorted(numbers) == [1, 2, 3, 4, 5]
    with EventLog(tmp_path / "other.db") as log:
        log.record(event(0), at=MIDNIGHT)
    with reading(tmp_path / "other.db") as database:  # another log has numbers of its own
        archive_segments(
            database, folder, database.execute(f"SELECT {SEGMENT_COLUMNS} FROM segments").fetchall()
        )
    assert sorted(pq.read_table(folder).column("number").to_pylist()) == [1, 1, 2, 3, 4, 5]


def test_an_archive_that_cannot_be_written_keeps_the_log(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    path, blocked = tmp_path / "log.db", tmp_path / "archive"
    blocked.write_text("a file where the folder should be", encoding="utf-8")
    with EventLog(path) as log:
        log.record(event(0), at=MIDNIGHT)
    later = MIDNIGHT + 1_000_000.0
    with EventLog(path, max_age=10, archive=blocked, clock=lambda: later) as log:
        log.record(event(1), at=later)
        assert log.flush(30)
        time.sleep(0.2)
        log.record(event(2), at=later)
        assert log.flush(30)
    assert log_summary(path).n_kept == 3
    assert log.dropped.total == 0


def test_errors_of_archives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "log.db"
    with pytest.raises(DataError, match="archive receives what max_age or max_bytes removes"):
        EventLog(path, archive=tmp_path)
    EventLog(path).close()
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"\[parquet\]"):
        EventLog(path, max_age=10, archive=tmp_path)


# Deletion by label: what is asked for is gone to the last byte, and nothing else


N = 600
SECRET, USER = "session-of-somebody", "user-of-somebody"


def told(i: int) -> RetrievalEvent:
    mine = i % 6 == 0
    return RetrievalEvent(
        ranked=RankedList(query_id=f"{i:016x}", doc_ids=tuple(f"{i}-{j}" for j in range(i % 4))),
        tags=tuple(DocTags(source="human") for _ in range(i % 4)),
        labels={
            "collection": f"c{i % 2}",
            "user": USER if mine else f"u{i % 5}",
            "session": SECRET if mine else f"s{i}",
        },
    )


def holding(folder: Path, text: str) -> list[str]:
    return sorted(
        str(p.relative_to(folder))
        for p in folder.rglob("*")
        if p.is_file() and text.encode() in p.read_bytes()
    )


def facts(path: Path) -> list[object]:
    read = read_events(path)
    ids = [read.doc_ids[a:b].tolist() for a, b in zip(read.offsets, read.offsets[1:], strict=False)]
    rows = range(len(read))
    return list(
        zip(
            read.numbers.tolist(),
            read.times.tolist(),
            read.query_ids.tolist(),
            ids,
            [read.tag_codes[a:b].tolist() for a, b in zip(read.offsets, read.offsets[1:])],  # noqa: B905
            [read.labels_at(row) for row in rows],
            strict=True,
        )
    )


@pytest.mark.parametrize("documents", ["plain", "hashed"])
def test_what_is_deleted_is_gone_and_nothing_else_is(tmp_path: Path, documents: str) -> None:
    path = tmp_path / "log.db"
    with EventLog(path, documents=documents) as log:
        for i in range(N):
            log.record(told(i), at=1_800_000_000.0 + i)
        assert log.flush(30)
        before = facts(path)
        assert holding(tmp_path, SECRET)
        assert holding(tmp_path, USER)
        for labels in ({"session": SECRET}, {"user": USER}):
            n = erase_events(path, labels)
            assert n == (N // 6 if "session" in labels else 0)  # the same retrievals
        assert facts(path) == [one for one in before if one[-1]["session"] != SECRET]
        assert holding(tmp_path, SECRET) == holding(tmp_path, USER) == []
        found = log_summary(path)
        assert (found.n_written, found.n_kept) == (N, N - N // 6)
        # counts stay, under what is left of the labels
        assert read_rollups(path).retrievals.sum() == N
        assert read_rollups(path, labels={"collection": "c0"}).retrievals.sum() == N // 2
        assert {"collection": "c0"} in found.labels
        # the log that is open goes on, and does not count under a name that is gone
        log.observe(told(0))
        assert log.flush(30)
    assert read_events(path).labels_at(-1) == told(0).labels
    assert read_rollups(path, labels={"user": USER}).retrievals.sum() == 1
    assert read_events(path).numbers[-1] == N + 1
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_archive_and_state_forget_too(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    path, archive, state = tmp_path / "log.db", tmp_path / "archive", tmp_path / "state.json"
    monitor = SkewMonitor(labels=("user",))
    with EventLog(path, max_bytes=1_000_000, archive=archive) as log:
        for i in range(N):
            log.observe(told(i))
        assert log.flush(30)
        with LogFollower(path, monitor, state=state, save_seconds=0) as follower:
            follower.step()
        with log._taking, closing(log._writer.open()) as database:  # a part goes to the archive
            log._writer._remove(database, until=None, n=4)
    assert {"log.db", "state.json"} <= set(holding(tmp_path, USER))
    assert sum(SECRET in event.labels.values() for event, _ in parquet_events(archive)) > 50
    assert erase_events(path, {"session": SECRET}, archive=archive, state=state) == N // 6
    assert erase_events(path, {"user": USER}, archive=archive, state=state) == 0
    assert holding(tmp_path, USER) == holding(tmp_path, SECRET) == []
    assert sum(1 for _ in parquet_events(archive)) + len(read_events(path)) == N - N // 6
    kept = json.loads(state.read_text())["monitor"]["watches"]
    assert [watch["labels"] for watch in kept] == [{"user": f"u{i}"} for i in (1, 2, 3, 4, 0)]
    with LogFollower(path, monitor, state=state) as again:
        assert again.step() == 0
    assert not list(parquet_events(archive, labels={"session": SECRET}))
    assert list(parquet_events(archive, labels={"session": "s1"}))


def test_what_cannot_be_deleted_is_said(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    with EventLog(path) as log:
        for i in range(30):
            log.observe(told(i))
    with pytest.raises(DataError, match="say which retrievals"):
        erase_events(path, {})
    with pytest.raises(DataError, match="'other' stands for all values beyond the cap"):
        erase_events(path, {"user": "other"})
    with pytest.raises(DataError, match="is not there"):
        erase_events(tmp_path / "none.db", {"user": "u"})
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN")
        other.execute("SELECT count(*) FROM segments").fetchone()
        with pytest.raises(DataError, match="stop what reads or writes it"):
            erase_events(path, {"session": SECRET}, busy_seconds=0.1)
    erase_events(path, {"session": SECRET})
    assert not holding(tmp_path, SECRET)


def test_the_command(tmp_path: Path) -> None:
    path, key = tmp_path / "log.db", tmp_path / "key"
    key.write_text("0123456789abcdef0123456789abcdef\n")
    with EventLog(path, hashed_labels=("session",), key=read_key(key)) as log:
        for i in range(30):
            log.observe(told(i))
    assert not holding(tmp_path, SECRET)
    hidden = hash_query(SECRET, key=read_key(key))
    assert len(read_events(path, labels={"session": hidden})) == 5
    ask = ("monitor", "replay", "--forget", str(path), "--label", f"session={SECRET}")
    assert "0 retrievals deleted" in succeed(*ask, cwd=tmp_path)
    assert "5 retrievals deleted" in succeed(*ask, "--key-file", str(key), cwd=tmp_path)
    assert not holding(tmp_path, hidden)
    assert "--label 'session'" in refused(
        "monitor", "replay", "--forget", str(path), "--label", "session", cwd=tmp_path
    )


def test_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAG_SOURCEBIAS_KEY", raising=False)
    with pytest.raises(DataError, match="no key: set RAG_SOURCEBIAS_KEY, or name a file"):
        read_key()
    monkeypatch.setenv("RAG_SOURCEBIAS_KEY", "too short")
    with pytest.raises(
        DataError, match="the key in RAG_SOURCEBIAS_KEY must have 16 to 64 bytes, got 9"
    ):
        read_key()
    with pytest.raises(DataError, match="cannot be read"):
        read_key(tmp_path / "none")
    with pytest.raises(DataError, match="hashed_labels needs key="):
        EventLog(tmp_path / "log.db", hashed_labels=("session",))
    with pytest.raises(DataError, match="key must have 16 to 64 bytes, got 3"):
        EventLog(tmp_path / "log.db", key=b"key")
    found = {}
    for name, key in (("none", None), ("a", b"a" * 16), ("b", b"b" * 16)):
        with EventLog(tmp_path / f"{name}.db", documents="hashed", key=key) as log:
            log.observe(told(3))
        found[name] = read_events(log.path).doc_ids.tolist()
    assert len({tuple(ids) for ids in found.values()}) == 3
