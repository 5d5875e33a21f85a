"""Counts over time that a dashboard keeps: the same as counted anew, whatever came since."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from rag_sourcebias.core.data import DocTags, RankedList
from rag_sourcebias.monitor.log.erasing import erase_events
from rag_sourcebias.monitor.log.event_log import EventLog
from rag_sourcebias.monitor.log.reading import KeptCounts, Rollups, read_rollups
from rag_sourcebias.observe.events import RetrievalEvent

START = 1_800_000_000


def assert_same(one: Rollups, other: Rollups) -> None:
    assert one.groups == other.groups
    for name in ("starts", "documents", "first", "exposure", "retrievals", "empty", "kept"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-12)


@pytest.mark.parametrize("erase", [False, True])
def test_kept_counts_are_those_counted_anew(tmp_path: Path, erase: bool) -> None:
    rng, path, kept, now = np.random.default_rng(1), tmp_path / "log.db", KeptCounts(), START
    for number in range(8):
        with EventLog(path) as log:
            for _ in range(200):
                now += int(rng.integers(0, 200))
                source = ("human", "llm:a", f"llm:{number}")[rng.integers(3)]
                ranked = RankedList(query_id="", doc_ids=("a",) * int(rng.integers(3)))
                event = RetrievalEvent(
                    ranked=ranked,
                    tags=(DocTags(source=source),) * len(ranked.doc_ids),
                    labels={"tenant": f"t{rng.integers(4)}"},
                )
                log.record(event, at=now)
        if erase and number == 5:
            erase_events(path, {"tenant": "t1"})
        for _ in range(12):
            ends = np.sort(rng.integers(START - 5_000, now + 5_000, 2)).tolist()
            since, until = (end if rng.random() < 0.6 else None for end in ends)
            step = int(rng.choice([60, 600, 1_200, 7_200, 86_400]))
            labels = {"tenant": "t2"} if rng.random() < 0.3 else None
            asked = {"since": since, "until": until, "labels": labels, "step": step}
            assert_same(read_rollups(path, **asked, kept=kept), read_rollups(path, **asked))
    assert kept


def write(path: Path, rng: np.random.Generator, now: int) -> int:
    with EventLog(path) as log:
        for _ in range(150):
            now += int(rng.integers(0, 400))
            ranked = RankedList(query_id="", doc_ids=("a",) * int(rng.integers(3)))
            source = ("human", "llm:a")[rng.integers(2)]
            event = RetrievalEvent(
                ranked=ranked,
                tags=(DocTags(source=source),) * len(ranked.doc_ids),
                labels={"tenant": f"t{rng.integers(40)}", "app": "a"},
            )
            log.record(event, at=now)
    return now


def test_totals_are_sums_over_labels_whoever_wrote(tmp_path: Path) -> None:
    """A former release, which keeps no totals, may have written some of the log."""
    rng, path, now = np.random.default_rng(2), tmp_path / "log.db", START
    for former in (True, False, True, False, False):
        now = write(path, rng, now)
        with closing(sqlite3.connect(path)) as database, database:
            if former:
                database.execute("DROP TABLE totals")
    plain = tmp_path / "plain.db"
    shutil.copy(path, plain)
    with closing(sqlite3.connect(plain)) as database, database:
        database.execute("DROP TABLE totals")
    for step in (60, 600, 3_600, 86_400):
        for since, until in ((None, None), (START + 20_000, now - 20_000)):
            for labels in (None, {"app": "a"}, {"tenant": "t1"}, {"app": "b"}):
                asked = {"since": since, "until": until, "labels": labels, "step": step}
                assert_same(read_rollups(path, **asked), read_rollups(plain, **asked))
    with closing(sqlite3.connect(path)) as database, database:  # they are read where they are right
        database.execute("UPDATE totals SET exposure = 0")
    late = {"since": now - 20_000, "step": 60}
    assert (
        read_rollups(path, **late).exposure.sum() == 0 < read_rollups(plain, **late).exposure.sum()
    )
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("UPDATE totals SET first = first + 1")
    assert_same(read_rollups(path, **late), read_rollups(plain, **late))


def test_few_sets_of_labels_are_sought_or_all_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, labels = tmp_path / "log.db", {"tenant": "t3"}
    write(path, np.random.default_rng(3), START)
    sought = read_rollups(path, labels=labels)
    monkeypatch.setattr("rag_sourcebias.monitor.log.reading._MOST_SOUGHT", 0)
    assert sought.retrievals.sum() > 0
    assert_same(sought, read_rollups(path, labels=labels))
