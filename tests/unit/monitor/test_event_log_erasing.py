"""Deletion by label: what is asked for is gone to the last byte, and nothing else."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from command_line import refused, succeed

from rag_sourcebias.core.data import DocTags, RankedList
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.monitor.follow import LogFollower, parquet_events
from rag_sourcebias.monitor.log.erasing import erase_events
from rag_sourcebias.monitor.log.event_log import EventLog
from rag_sourcebias.monitor.log.reading import log_summary, read_events, read_rollups
from rag_sourcebias.monitor.monitor import SkewMonitor
from rag_sourcebias.observe.events import RetrievalEvent, hash_query, read_key

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
    with EventLog(path, batch=100, documents=documents) as log:
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
    with EventLog(path, batch=100, max_bytes=1_000_000, archive=archive) as log:
        for i in range(N):
            log.observe(told(i))
        assert log.flush(30)
        with LogFollower(path, monitor, state=state, save_seconds=0) as follower:
            follower.step()
        writer = log._writer
        with log._writing:  # all but a part goes to the archive
            writer._remove(writer.open(), until=None, n=4)
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
    with EventLog(path, batch=10) as log:
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
