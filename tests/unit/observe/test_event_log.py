"""The durable log of retrievals: what is written, counted and read back, labels included."""

import json
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from command_line import succeed

from rag_sourcebias.core.data import DocTags, RankedList
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.monitor.follow import replay
from rag_sourcebias.monitor.monitor import SkewMonitor
from rag_sourcebias.observe.events import RetrievalEvent, hash_query
from rag_sourcebias.observe.log.event_log import EventLog
from rag_sourcebias.observe.log.reading import (
    Rollups,
    iter_events,
    log_summary,
    read_events,
    read_rollups,
)
from rag_sourcebias.observe.observers import ExposureObserver
from rag_sourcebias.observe.recorder import Recorder

NOON = 1_800_000_000.0 - 1_800_000_000.0 % 3_600


POOL = [DocTags(source=s, style=t) for s in ("human", "llm:a", None) for t in ("plain", None)]


def event(i: int, rng: np.random.Generator | None = None, **labels: str) -> RetrievalEvent:
    rng = np.random.default_rng(i) if rng is None else rng
    n = int(rng.integers(0, 12))
    return RetrievalEvent(
        ranked=RankedList(query_id=f"{i:016x}", doc_ids=tuple(f"d{j}" for j in range(n))),
        tags=tuple(POOL[k] for k in rng.integers(0, len(POOL), n)),
        labels=labels,
        monotonic=0.0,
    )


def plain(i: int = 0, **kwargs: object) -> RetrievalEvent:
    return RetrievalEvent(
        ranked=RankedList(query_id=f"{i:016x}", doc_ids=("a", "b")),
        tags=(DocTags(source="human"), DocTags(source="llm:a")),
        **kwargs,
    )


def agree(rollups: Rollups, observer: ExposureObserver) -> None:
    counts = observer.counts()
    assert rollups.retrievals.sum() == counts.n_retrievals
    assert rollups.empty.sum() == counts.n_empty
    assert set(rollups.groups) == set(counts.groups)
    for column, name in enumerate(rollups.groups):
        expected = counts.groups[name]
        assert rollups.documents[:, column].sum() == expected.documents
        assert rollups.first[:, column].sum() == expected.first
        assert rollups.exposure[:, column].sum() == pytest.approx(expected.exposure, rel=1e-12)


@pytest.mark.parametrize("by", ["source", "style"])
@pytest.mark.parametrize("step", [60, 180, 600, 86_400 * 7])
def test_rollups_agree_with_the_exposure_observer(tmp_path: Path, by: str, step: int) -> None:
    observer = ExposureObserver(by=by)
    with EventLog(tmp_path / "log.db") as log:
        for i in range(1_000):
            told = event(i, route=f"r{i % 3}")
            observer.observe(told)
            log.record(told, at=NOON + 17 * i)
    agree(read_rollups(tmp_path / "log.db", by=by, step=step), observer)


def test_events_come_back_as_they_were(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    events = [event(i, route=f"r{i % 3}") for i in range(500)]
    with EventLog(path, documents="plain") as log:
        for i, told in enumerate(events):
            log.record(told, at=NOON + i / 4)
    read = read_events(path)
    assert read.numbers.tolist() == list(range(1, 501))
    np.testing.assert_allclose(read.times, NOON + np.arange(500) / 4, atol=1e-6)
    assert read.query_ids.tolist() == [f"{i:016x}" for i in range(500)]
    for i, told in enumerate(events):
        part = slice(read.offsets[i], read.offsets[i + 1])
        assert [read.tags[c] for c in read.tag_codes[part]] == [
            (t.source, t.style) for t in told.tags
        ]
        assert tuple(read.doc_ids[part]) == told.ranked.doc_ids
        assert read.ranks[part].tolist() == list(range(1, len(told.tags) + 1))
        assert read.labels[read.label_codes[i]] == told.labels


def test_a_log_is_read_by_time_and_label_in_parts(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    with EventLog(path) as log:
        for i in range(9_000):
            log.record(plain(i, labels={"route": f"r{i % 3}", "tenant": "t"}), at=NOON + i)
    parts = list(iter_events(path))
    assert max(map(len, parts)) <= 4_096
    assert sum(map(len, parts)) == 9_000
    some = read_events(path, since=NOON + 100, until=NOON + 5_000, labels={"route": "r1"})
    assert some.query_ids.tolist() == [f"{i:016x}" for i in range(100, 5_000) if i % 3 == 1]
    assert len(some.tag_codes) == 2 * len(some)
    assert some.offsets[-1] == len(some.tag_codes)
    assert len(read_events(path, labels={"route": "none"})) == 0
    assert len(read_events(path, since=NOON + 10_000).tag_codes) == 0
    rollups = read_rollups(path, since=NOON + 120, until=NOON + 3_600, labels={"route": "r1"})
    assert rollups.retrievals.sum() == (3_600 - 120) / 3
    assert rollups.starts[[0, -1]].tolist() == [NOON + 120, NOON + 3_540]
    np.testing.assert_allclose(rollups.shares().sum(axis=1), 1)
    assert read_rollups(path, labels={"route": "none"}).documents.shape == (0, 0)


def test_totals_are_exact_under_eight_threads(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    observer = ExposureObserver()
    log = EventLog(path, flush_seconds=0.01)

    def work(number: int) -> None:
        rng = np.random.default_rng(number)
        for i in range(1_000):
            told = event(number * 1_000 + i, rng)
            observer.observe(told)
            log.observe(told)
            if i % 250 == 0:
                assert log.flush(30)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()

    for thread in threads:
        thread.join()
    assert log.close(30)
    agree(read_rollups(path), observer)
    assert sorted(read_events(path).query_ids) == [f"{i:016x}" for i in range(8_000)]
    assert log.dropped.total == 0


def test_a_recorder_writes_into_a_log(tmp_path: Path) -> None:
    with EventLog(tmp_path / "log.db") as log:
        recorder = Recorder(log, labels={"collection": "c"}, query_key=b"k" * 16)
        recorder.record(["a", "b"], metadata=[{"rsb_source": "human"}, None], query="who?")
        recorder.record([], query="who?")
    read = read_events(log.path)
    assert recorder.dropped.total == 0
    assert [read.tags[c][0] for c in read.tag_codes] == ["human", None]
    assert [read.labels[c] for c in read.label_codes] == [{"collection": "c"}] * 2
    assert read.query_ids.tolist() == [hash_query("who?", key=b"k" * 16)] * 2
    assert abs(read.times[-1] - time.time()) < 60
    assert b"who?" not in log.path.read_bytes()


@pytest.mark.parametrize("documents", ["hashed", "none"])
def test_document_ids_are_kept_as_told(tmp_path: Path, documents: str) -> None:
    path = tmp_path / "log.db"
    with EventLog(path, documents=documents) as log:
        for i in range(3):
            log.observe(plain(i))
    ids = read_events(path).doc_ids
    if documents == "none":
        assert ids is None
    else:
        assert ids.reshape(3, 2).tolist() == [ids[:2].tolist()] * 3
        assert all(len(i) == 16 for i in ids)
        assert ids[0] != ids[1]
    assert b'"a"' not in path.read_bytes()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"flush_seconds": 0}, r"flush_seconds must be in \(0, 3600\], got 0"),
        ({"documents": "text"}, "documents 'text' is not one of"),
        ({"max_documents": 0}, "max_documents must be 1 to 65535, got 0"),
        ({"max_tags": 300}, "max_tags must be 1 to 200, got 300"),
        ({"max_label_sets": 0}, "max_label_sets must be 1 to 30000, got 0"),
        ({"file_mode": 0o400}, "file_mode must let the owner read and write"),
        ({"journal_bytes": 10}, "journal_bytes must be at least 1000000, got 10"),
        ({"max_label_values": 0}, "max_label_values must be 1 to 10000, got 0"),
        ({"event_labels": "session"}, "event_labels must be a sequence of names, got 'session'"),
        ({"max_bytes": 10}, "max_bytes must be at least 1000000, got 10"),
        ({"max_age": -1}, "max_age must be a positive number of seconds, got -1"),
    ],
)
def test_settings_out_of_range(tmp_path: Path, options: dict, message: str) -> None:
    with pytest.raises(DataError, match=message):
        EventLog(tmp_path / "log.db", **options)


@pytest.mark.parametrize(
    ("read", "message"),
    [
        (lambda p: read_rollups(p, by="model"), "by 'model' is not one of"),
        (lambda p: read_rollups(p, step=90), "step must be a multiple of 60 seconds, got 90"),
        (lambda p: read_rollups(p, since=float("nan")), "seconds since 1970, got nan"),
        (lambda p: read_events(p, until=1e13), "seconds since 1970, got 1000000"),
        (lambda p: read_events(p.with_name("none.db")), "none.db is not there"),
        (lambda p: read_events(p.with_name("torn.db")), "torn.db cannot be read: no such table"),
        (lambda p: read_events(p.with_name("text.db")), "not an event log"),
        (lambda p: read_events(p.with_name("sql.db")), "another program's SQLite file"),
        (lambda p: EventLog(p.with_name("text.db")), "not an event log"),
        (lambda p: EventLog(p.with_name("sql.db")), "another program's SQLite file"),
        (lambda p: EventLog(p.parent), "is a folder; expected a file"),
    ],
)
def test_what_cannot_be_read_or_opened(
    tmp_path: Path, read: Callable[[Path], object], message: str
) -> None:
    path = tmp_path / "log.db"
    EventLog(path).close()
    (tmp_path / "text.db").write_text("some words, and more of them " * 100, encoding="utf-8")
    EventLog(tmp_path / "torn.db").close()
    database = sqlite3.connect(tmp_path / "torn.db")
    database.execute("DROP TABLE segments")
    database.close()
    database = sqlite3.connect(tmp_path / "sql.db")
    database.execute("CREATE TABLE mine (a)")
    database.close()
    with pytest.raises(DataError, match=message):
        read(path)


# Labels with ever new values: no other label loses its own, and nothing is lost unseen


TAGS = (DocTags(source="human"), DocTags(source="llm:a"))


def told(i: int, **labels: str) -> RetrievalEvent:
    ranked = RankedList(query_id=f"{i:016x}", doc_ids=("a", "b"))
    return RetrievalEvent(ranked=ranked, tags=TAGS, labels=labels)


def counted(path: Path, **labels: str) -> int:
    return int(read_rollups(path, labels=labels).retrievals.sum())


@pytest.mark.parametrize("name", ["session", "visit"])  # one that is set apart, one that overflows
def test_a_label_with_ever_new_values_costs_no_other_label(tmp_path: Path, name: str) -> None:
    path, n = tmp_path / "log.db", 3_000
    with EventLog(path) as log:
        for i in range(n):
            log.observe(told(i, collection=f"c{i % 3}", **{name: f"s{i // 2}"}))
    assert [counted(path, collection=f"c{i}") for i in range(3)] == [n // 3] * 3
    found = log_summary(path)
    overflow = {} if name == "session" else {name: n - 2 * 1_000}
    assert (found.overflowed, found.dropped) == (overflow, {})
    assert found.event_labels == ({name: n} if name == "session" else overflow)
    # and every retrieval has its own value
    read = read_events(path)
    assert [read.labels_at(row) for row in range(0, n, 7)] == [
        {"collection": f"c{row % 3}", name: f"s{row // 2}"} for row in range(0, n, 7)
    ]
    for value in ("s0", "s1400"):
        assert len(read_events(path, labels={name: value})) == 2
    assert len(read_events(path, labels={name: "s1400", "collection": "c0"})) <= 1
    assert not len(read_events(path, labels={name: "nobody"}))
    monitor = SkewMonitor()
    replay(path, monitor)
    assert {s.labels["collection"]: s.n_retrievals for s in monitor.snapshot()} == {
        f"c{i}": n // 3 for i in range(3)
    }


def test_a_value_is_told_apart_everywhere_or_nowhere(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    with EventLog(path, max_label_values=5) as log:
        for i in range(200):
            log.observe(told(i, user=f"u{i % 10}", route=f"r{i % 4}"))
            log.flush()
    assert [counted(path, user=f"u{i}") for i in range(5)] == [20] * 5
    with pytest.raises(DataError, match="the value 'u5' of label 'user'"):
        counted(path, user="u5")
    assert len(read_events(path, labels={"user": "u5"})) == 20
    assert counted(path, user="other") == 100
    assert [counted(path, route=f"r{i}") for i in range(4)] == [50] * 4
    assert log_summary(path).overflowed == {"user": 100}


def test_sets_beyond_the_cap_give_up_the_label_with_the_most_values(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    with EventLog(path, max_label_sets=20) as log:
        for i in range(600):
            log.observe(told(i, user=f"u{i % 100}", route=f"r{i % 3}", **{f"n{i}": "x"}))
    labels = log_summary(path).labels
    assert len(labels) <= 2 * 20 + 1
    assert sum(counted(path, **one) > 0 for one in labels) == len(labels)
    assert counted(path) == 600
    read = read_events(path)
    users = [read.labels_at(row)["user"] for row in range(600)]
    assert users == [f"u{i % 100}" for i in range(600)]


def test_processes_agree_on_what_overflowed(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    with EventLog(path, max_label_values=3) as one, EventLog(path, max_label_values=3) as two:
        for i in range(60):
            (one if i % 2 else two).observe(told(i, user=f"u{i % 12}", route="r"))
            assert one.flush(30)
            assert two.flush(30)
    assert [counted(path, user=f"u{i}") for i in range(3)] == [5] * 3
    assert counted(path, user="other") == 45
    assert counted(path, route="r") == 60
    with closing(sqlite3.connect(path)) as database:
        assert database.execute(
            "SELECT count(DISTINCT labels), count(*) FROM labels"
        ).fetchone() == (
            5,
            5,
        )


def test_a_label_kept_with_retrievals_is_refused_where_only_counts_are(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    with EventLog(path) as log:
        log.observe(told(0, session="s1", route="r"))
    with pytest.raises(DataError, match="the value 's1' of label 'session' is kept with its"):
        read_rollups(path, labels={"session": "s1"})
    assert not len(read_rollups(path, labels={"route": "nobody"}).starts)


def test_event_labels_go_with_their_retrievals(tmp_path: Path) -> None:
    path, now = tmp_path / "log.db", [2e9]
    with EventLog(path, max_age=100.0, clock=lambda: now[0]) as log:
        log.observe(told(0, session="secret"))
        assert log.flush(30)
        now[0] += 1_000
        log._writer._looked = -np.inf
        log.observe(told(1))
        assert log.flush(30)
        log._writer.tidy(now=now[0])
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("SELECT count(*) FROM event_labels").fetchone() == (0,)
    assert log_summary(path).n_kept == 1


def test_the_summary_says_what_is_not_as_it_should_be(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    with EventLog(path, max_label_values=2) as log:
        for i in range(10):
            event = told(i, user=f"u{i}", session=f"s{i}")
            log.observe(replace(event, bad_tags=i, tags=(DocTags(source="GPT-4"), DocTags())))
    said = succeed("start", str(path), cwd=tmp_path)
    assert "kept with each retrieval, not counted by: session of 10, user of 8" in said
    assert "too many values, counted as 'other': user in 8 retrievals" in said
    assert "sources that are neither human nor llm:<model>: GPT-4 (10 documents)" in said
    assert "tags that could not be read, and are unknown: 45" in said
    plain = json.loads(succeed("start", str(path), "--json", "-", cwd=tmp_path))
    assert (plain["overflowed"], plain["bad_tags"]) == ({"user": 8}, 45)
    assert (plain["odd_sources"], plain["event_labels"]) == (
        {"GPT-4": 10},
        {"session": 10, "user": 8},
    )
    with EventLog(tmp_path / "well.db") as log:
        log.observe(told(0, collection="c"))
    quiet = succeed("start", str(tmp_path / "well.db"), cwd=tmp_path)
    assert not any(word in quiet for word in ("other", "neither", "read,", "counted"))
