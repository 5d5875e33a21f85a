"""What the views of the dashboard tell, asked through the application."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dashboard_calls import START, Asker, retrieval, shares, written

from rag_sourcebias._version import __version__
from rag_sourcebias.core.data import DocTags, RankedList
from rag_sourcebias.monitor.dashboard.server import create_app
from rag_sourcebias.monitor.dashboard.source import DashboardSource
from rag_sourcebias.monitor.follow import LogFollower
from rag_sourcebias.monitor.monitor import SkewMonitor
from rag_sourcebias.monitor.settings import CorpusShare
from rag_sourcebias.observe.log.event_log import EventLog
from rag_sourcebias.observe.log.reading import read_events

N = 900


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("dashboard") / "events.db"
    written(path, N, documents="plain")
    return path


@pytest.fixture(scope="module")
def follower(log: Path) -> LogFollower:
    return following(log)


def following(log: Path) -> LogFollower:
    monitor = SkewMonitor(
        baseline=CorpusShare({"human": 0.05, "llm:a": 0.9}),
        labels=("route",),
        confidence_level=0.9,
    )
    live = LogFollower(log, monitor)
    live.step()
    return live


@pytest.fixture(scope="module")
def ask(log: Path, follower: LogFollower) -> Iterator[Asker]:
    asker = Asker(create_app(DashboardSource(log, follower=follower)))
    yield asker
    asker.close()


def asked(source: DashboardSource, target: str) -> Any:
    asker = Asker(create_app(source))
    try:
        return asker(target)
    finally:
        asker.close()


def test_overview(ask: Asker, log: Path, follower: LogFollower) -> None:
    found = ask("/api/overview").json
    assert found["version"] == __version__
    assert found["generated_at"] > 1_700_000_000
    assert found["log"] == {
        "name": "events.db",
        "n_written": N,
        "n_kept": N,
        "n_later": 0,
        "since": START,
        "until": START + 30 * (N - 1),
        "size_bytes": found["log"]["size_bytes"],
        "dropped": {},
        "bad_tags": 0,
        **{key: {} for key in ("overflowed", "event_labels", "odd_sources")},
    }
    assert found["log"]["size_bytes"] >= log.stat().st_size
    assert found["follower"] == {"n_read": N, "behind": 0, "error": None, "dropped": {}}
    monitor = found["monitor"]
    assert (monitor["by"], monitor["confidence_level"]) == ("source", 0.9)
    assert monitor["baseline"] == "known shares: human 0.05, llm:a 0.9"
    snapshots = follower.monitor.snapshot()
    assert [s["labels"] for s in monitor["snapshots"]] == [{"route": "r0"}, {"route": "r1"}]
    assert monitor["snapshots"][0]["n_retrievals"] == N / 2 == snapshots[0].n_retrievals
    assert found["alarms_active"] == sum(g.alarm for s in snapshots for g in s.groups)
    assert found["label_sets"] == [{"route": "r0"}, {"route": "r1"}]
    assert found["document_ids"] == "plain"
    assert found["text_recorded"] is False


def test_what_is_not_read_yet(log: Path) -> None:
    live = LogFollower(log, SkewMonitor(labels=()))
    found = asked(DashboardSource(log, follower=live), "/api/overview").json
    assert found["follower"] == {"n_read": 0, "behind": N, "error": None, "dropped": {}}


@pytest.mark.parametrize("measure", ["exposure", "first"])
@pytest.mark.parametrize("by", ["source", "style"])
def test_series_are_the_shares_of_the_log(ask: Asker, log: Path, by: str, measure: str) -> None:
    found = ask(f"/api/series?by={by}&measure={measure}").json
    events = read_events(log)
    names = [tag[by == "style"] or "" for tag in events.tags]
    step = found["step_seconds"]
    hours = np.asarray((events.times - START) // step, int)
    weights = 1 / np.log2(events.ranks + 1) if measure == "exposure" else events.ranks == 1
    assert found["groups"] == sorted({names[code] for code in events.tag_codes})
    assert found["starts"] == [START + step * h for h in range(hours[-1] + 1)]
    assert (found["by"], found["measure"]) == (by, measure)
    for g, group in enumerate(found["groups"]):
        mine = np.array([names[code] == group for code in events.tag_codes])
        at = hours[events.rows]
        total = np.bincount(at, weights=weights)
        expected = np.bincount(at[mine], weights=weights[mine], minlength=len(total)) / total
        assert shares(found)[g] == pytest.approx(expected, abs=1e-12)
        assert found["documents"][g] == np.bincount(at[mine], minlength=len(total)).tolist()
    assert found["retrievals"] == np.bincount(hours).tolist()
    assert found["empty"] == np.bincount(hours[np.diff(events.offsets) == 0]).tolist()


def test_series_of_labels_and_times(ask: Asker) -> None:
    whole = ask("/api/series?label=route=r1").json
    assert sum(whole["retrievals"]) == N / 2
    assert whole["baseline"] == {"human": 0.05, "llm:a": 0.9}
    assert ask("/api/series?label=route=r1&label=collection=x").json["starts"] == []
    part = ask(f"/api/series?since={START + 600}&until={START + 1200}").json
    assert part["starts"] == [START + 600 + 60 * i for i in range(10)]
    assert ask("/api/series?label=route=none").json["groups"] == []
    assert ask("/api/series?by=style").json["baseline"] is None


@pytest.mark.parametrize(
    ("gap", "step"),
    [(1.0, 60), (60.0, 600), (120.0, 1_200), (3_600.0, 43_200), (86_400.0, 604_800)],
)
def test_auto_steps_are_at_most_400(tmp_path: Path, gap: float, step: int) -> None:
    written(tmp_path / "log.db", 390, gap=gap)
    found = asked(DashboardSource(tmp_path / "log.db"), "/api/series").json
    assert found["step_seconds"] == step
    assert len(found["starts"]) <= 400
    assert sum(found["retrievals"]) == 390


def test_auto_steps_are_hours_where_minutes_are_gone(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    written(path, 300)
    with closing(sqlite3.connect(path)) as database, database:
        for table in ("rollups", "traffic"):
            database.execute(
                f"DELETE FROM {table} WHERE width < 3600 AND start < ?", (START + 4_000,)
            )
    source = DashboardSource(path)
    found = asked(source, "/api/series").json
    assert found["step_seconds"] == 3_600
    assert sum(found["retrievals"]) == 300
    assert asked(source, f"/api/series?since={START + 5_000}").json["step_seconds"] == 120


def test_many_groups_are_put_together(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    with EventLog(path) as log:
        for i in range(600):
            tags = tuple(DocTags(source=f"llm:{k:02d}") for k in {i % 30, 0, i % 3})
            ranked = RankedList(query_id="", doc_ids=tuple(map(str, range(len(tags)))))
            event = retrieval(0).__class__(ranked=ranked, tags=tags)
            log.record(event, at=START + 10 * i)
    found = asked(DashboardSource(path), "/api/series").json
    assert len(found["groups"]) == 20
    assert {"llm:00", "llm:01", "llm:02", "other"} <= set(found["groups"])
    assert shares(found).sum(axis=0) == pytest.approx(1)
    assert sum(map(sum, found["documents"])) == len(read_events(path).tag_codes)


def test_alarms_come_newest_first(tmp_path: Path) -> None:
    written(tmp_path / "log.db", N, gap=1_800.0)
    follower = following(tmp_path / "log.db")
    source = DashboardSource(tmp_path / "log.db", follower=follower)
    assert asked(source, "/api/overview").json["alarms_active"] > 0
    found = asked(source, "/api/alarms?limit=2").json
    alarms = follower.monitor.alarms
    assert found["n"] == len(alarms) > 1
    assert [(a["group"], a["n"], a["at"]) for a in found["alarms"]] == [
        (a.group, a.n, a.at) for a in alarms[:-3:-1]
    ]


def pages(ask: Asker, query: str) -> tuple[list[dict[str, Any]], int]:
    found: list[dict[str, Any]] = []
    more, n = "", 0
    while True:
        page = ask(f"/api/retrievals?{query}{more}").json
        found += page["retrievals"]
        n += 1
        if page["next"] is None:
            return found, n
        more = f"&before={page['next']}"


def test_retrievals_come_newest_first_in_pages(ask: Asker) -> None:
    found, n = pages(ask, "limit=70")
    assert n == 13
    assert [r["number"] for r in found] == list(range(N, 0, -1))
    assert found[0] == {
        "number": N,
        "at": START + 30 * (N - 1),
        "query_id": f"{N - 1:016x}",
        "labels": {"route": "r1"},
        "documents": [],
    }
    one = found[N - 1 - 250]
    assert one["query_id"] == f"{250:016x}"
    assert one["documents"][1] == {
        "rank": 2,
        "source": None,
        "style": "plain",
        "doc_id": "d250-1",
    }


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize(("by", "group"), [("source", "human"), ("source", ""), ("style", "plain")])
def test_retrievals_of_a_group(ask: Asker, by: str, group: str, first: int) -> None:
    found, _ = pages(ask, f"by={by}&group={group}&first={first}&limit=200")
    every, _ = pages(ask, "limit=200")
    expected = [
        r
        for r in every
        if any((d[by] or "") == group and (not first or d["rank"] == 1) for d in r["documents"])
    ]
    assert found == expected
    assert (len(found) > 0) == (not (first and by == "style"))


def test_retrievals_of_labels_and_times(ask: Asker) -> None:
    since, until = START + 1_000, START + 2_000
    found, _ = pages(ask, f"since={since}&until={until}&label=route=r0")
    inside = [i for i in range(0, N, 2) if since <= START + 30 * i < until]
    assert [r["query_id"] for r in found] == [f"{i:016x}" for i in reversed(inside)]
    assert pages(ask, f"since={until + 1e6}") == ([], 1)
    assert pages(ask, f"until={START}") == ([], 1)
    assert pages(ask, "before=0") == ([], 1)
    assert pages(ask, "group=nobody") == ([], 1)


def test_the_work_of_a_page_is_bounded(ask: Asker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rag_sourcebias.monitor.dashboard.source._MOST_SCANNED", 100)
    page = ask("/api/retrievals?group=nobody").json
    assert page["retrievals"] == []
    assert 0 < page["next"] <= N - 99
    found, n = pages(ask, "group=human&first=1&limit=200")
    assert n > 2
    assert len(found) == sum(i % 3 == 0 and i % 10 != 9 for i in range(N))
    monkeypatch.setattr("rag_sourcebias.monitor.dashboard.source._MOST_DOCUMENTS", 12)
    page = ask("/api/retrievals?group=human").json
    assert len(page["retrievals"]) == 2
    assert page["next"] == page["retrievals"][-1]["number"]


def test_a_broken_part_does_not_hide_the_others(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    written(path, 150, documents="hashed")
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("UPDATE segments SET tags = x'ffff' WHERE first > 1 AND first < 60")
    source = DashboardSource(path)
    page = asked(source, "/api/retrievals?limit=200").json
    assert 50 <= len(page["retrievals"]) < 150
    assert asked(source, "/api/overview").json["document_ids"] == "hashed"


def test_a_log_that_is_not_there_yet(tmp_path: Path) -> None:
    source = DashboardSource(tmp_path / "log.db")
    found = asked(source, "/api/overview").json
    assert found["log"]["n_written"] == 0
    assert found["document_ids"] is None
    assert found["monitor"]["snapshots"] == []
    assert "not followed" in found["follower"]["error"]
    assert asked(source, "/api/alarms").json == {"alarms": [], "n": 0}
    for view in ("series", "retrievals"):
        answer = asked(source, f"/api/{view}")
        assert answer.status == 503
        assert answer.json == {
            "error": "what this view shows cannot be read now, or is not there yet"
        }


def test_an_empty_log(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    with EventLog(path) as log:
        log.record(retrieval(0), at=START)
    with closing(sqlite3.connect(path)) as database, database:
        for table in ("segments", "rollups", "traffic"):
            database.execute(f"DELETE FROM {table}")
        database.execute("INSERT INTO dropped VALUES ('tried', 1)")
    source = DashboardSource(path)
    found = asked(source, "/api/overview").json
    assert (found["log"]["n_kept"], found["log"]["since"]) == (0, None)
    assert found["log"]["dropped"] == {"tried": 1}
    assert asked(source, "/api/series").json["starts"] == []
    assert asked(source, "/api/retrievals").json == {"retrievals": [], "next": None}


def test_a_file_that_is_no_log_says_nothing_of_itself(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    path.write_bytes(b"a secret, and nothing that SQLite would read\n" * 30)
    for view in ("overview", "series", "retrievals"):
        answer = asked(DashboardSource(path), f"/api/{view}")
        assert answer.status == 503
        assert b"secret" not in answer.body
        assert str(tmp_path).encode() not in answer.body


def test_metrics(log: Path) -> None:
    answer = asked(DashboardSource(log), "/metrics")
    assert answer.status == 404
    assert "prometheus-client" in answer.json["error"]
    answer = asked(DashboardSource(log, metrics=lambda: b"a 1\n"), "/metrics")
    assert (answer.status, answer.body) == (200, b"a 1\n")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
