"""Labels with ever new values: no other label loses its own, and nothing is lost unseen."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from command_line import succeed

from rag_sourcebias.core.data import DocTags, RankedList
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.monitor.follow import replay
from rag_sourcebias.monitor.log.event_log import EventLog
from rag_sourcebias.monitor.log.reading import log_summary, read_events, read_rollups
from rag_sourcebias.monitor.monitor import SkewMonitor
from rag_sourcebias.observe.events import RetrievalEvent

TAGS = (DocTags(source="human"), DocTags(source="llm:a"))


def told(i: int, **labels: str) -> RetrievalEvent:
    ranked = RankedList(query_id=f"{i:016x}", doc_ids=("a", "b"))
    return RetrievalEvent(ranked=ranked, tags=TAGS, labels=labels)


def counted(path: Path, **labels: str) -> int:
    return int(read_rollups(path, labels=labels).retrievals.sum())


@pytest.mark.parametrize("name", ["session", "visit"])  # one that is set apart, one that overflows
def test_a_label_with_ever_new_values_costs_no_other_label(tmp_path: Path, name: str) -> None:
    path, n = tmp_path / "log.db", 3_000
    with EventLog(path, batch=100) as log:
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
