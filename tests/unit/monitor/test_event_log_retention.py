"""A log kept within its size and age, and the Parquet files that receive what leaves it."""

import json
import sys
import time
from pathlib import Path

import pytest

from rag_sourcebias.core.data import DocTags, RankedList
from rag_sourcebias.core.errors import DataError, MissingExtraError
from rag_sourcebias.monitor.log.event_log import EventLog
from rag_sourcebias.monitor.log.reading import log_summary, read_events, read_rollups
from rag_sourcebias.monitor.log.schema import SEGMENT_COLUMNS, reading
from rag_sourcebias.monitor.log.writing import archive_segments
from rag_sourcebias.observe.events import RetrievalEvent

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
    with EventLog(path, batch=200, documents="plain", max_bytes=1_000_000) as log:
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
    with EventLog(path, batch=10) as log:
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
    log = EventLog(path, documents="plain", batch=10)
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
