"""Following a log: everything once, whatever happens to log, state and process."""

import json
import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

import pytest
from dashboard_calls import START, retrieval, written

from rag_sourcebias.core.errors import DataError, UnsupportedVersionError
from rag_sourcebias.monitor import follow as follow_state
from rag_sourcebias.monitor.data import Alarm, MonitorSnapshot
from rag_sourcebias.monitor.follow import LogFollower, replay
from rag_sourcebias.monitor.monitor import SkewMonitor
from rag_sourcebias.monitor.settings import CorpusShare, ReferenceWindow
from rag_sourcebias.observe.log.event_log import EventLog

BASELINE = CorpusShare({"human": 0.05, "llm:a": 0.9})


def monitor(baseline: object = BASELINE) -> SkewMonitor:
    return SkewMonitor(baseline=baseline, labels=("route",))


def total(watched: SkewMonitor) -> int:
    return sum(snapshot.n_retrievals for snapshot in watched.snapshot())


class Sink:
    def __init__(self) -> None:
        self.alarms: list[Alarm] = []
        self.told: list[int] = []
        self.heard = threading.Event()

    def alarm(self, alarm: Alarm) -> None:
        self.alarms.append(alarm)

    def snapshots(self, snapshots: Iterable[MonitorSnapshot]) -> None:
        self.told.append(sum(s.n_retrievals for s in snapshots))
        if self.told[-1]:
            self.heard.set()

    def close(self) -> None:
        raise AssertionError("closing sinks is up to their owner")


def follower(path: Path, state: Path | None = None, **options: object) -> LogFollower:
    settings = {"save_seconds": 0, "sink_seconds": 0, **options}
    return LogFollower(path, monitor(), state=state, **settings)


def test_following_gives_what_a_replay_gives(tmp_path: Path) -> None:
    path, sink = tmp_path / "log.db", Sink()
    live = follower(path, sinks=sink)
    assert live.step() == 0
    assert live.error == "the log is not there yet"
    for part in range(4):
        written(path, 200, first=200 * part, gap=1_800.0)
        assert live.step() == 200
    assert live.step() == 0
    assert (live.n_read, live.behind_of(800), live.error) == (800, 0, None)
    offline = monitor()
    replay(path, offline)
    assert live.monitor.snapshot() == offline.snapshot()
    assert live.monitor.alarms == offline.alarms
    assert sink.alarms == list(offline.alarms)
    assert sink.alarms
    assert sink.told == [0, 200, 400, 600, 800, 800]
    live.close()


def test_a_restart_goes_on(tmp_path: Path) -> None:
    path, state = tmp_path / "log.db", tmp_path / "state.json"
    for part in range(3):
        written(path, 40, first=40 * part)
        with follower(path, state) as live:
            assert live.step() == 40
            assert live.n_read == 40 * (part + 1)
    offline = monitor()
    replay(path, offline)
    assert live.monitor.snapshot() == offline.snapshot()
    assert live.monitor.alarms == offline.alarms
    assert [p.name for p in tmp_path.iterdir() if "tmp" in p.name] == []


@pytest.mark.parametrize(("segments", "batch"), [(2, 7), (1, 50)])
def test_a_log_is_read_in_parts(
    tmp_path: Path, segments: int, batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rag_sourcebias.observe.log.reading._MOST_SEGMENTS", segments)
    path, state, saved = tmp_path / "log.db", tmp_path / "state.json", []
    written(path, 200, batch=batch)
    live = follower(path, state)
    save = follow_state.write_position
    monkeypatch.setattr(
        "rag_sourcebias.monitor.follow.write_position",
        lambda file, position, kept, **mode: (
            saved.append(position.number),
            save(file, position, kept, **mode),
        ),
    )
    assert live.step() == 200
    assert len(saved) > 200 / batch / segments - 1
    assert saved == sorted(set(saved))
    offline = monitor()
    replay(path, offline)
    assert live.monitor.snapshot() == offline.snapshot()
    assert not live.dropped.total


def test_what_was_not_saved_is_read_again_and_counts_once(tmp_path: Path) -> None:
    path, state = tmp_path / "log.db", tmp_path / "state.json"
    written(path, 40)
    first = follower(path, state, save_seconds=3_600)
    first.step()  # saved: the first time is due at once
    written(path, 40, first=40)
    first.step()  # not saved, and the process is gone
    again = follower(path, state)
    assert total(again.monitor) == 40
    assert again.step() == 40
    assert total(again.monitor) == again.n_read == 80


KILLED = """
import os, sys
from pathlib import Path
from rag_sourcebias.monitor.follow import LogFollower
from rag_sourcebias.monitor.monitor import SkewMonitor
import rag_sourcebias.intake.files as files
sys.path[:0] = sys.argv[3:]
from test_follow import monitor
live = LogFollower(sys.argv[1], monitor(), state=Path(sys.argv[2]), save_seconds=0)
replace = Path.replace
def die(self, target):
    os.kill(os.getpid(), 9)
Path.replace = die
live.step()
"""


def test_kill_while_the_state_is_written(tmp_path: Path) -> None:
    path, state = tmp_path / "log.db", tmp_path / "state.json"
    written(path, 40)
    with follower(path, state) as live:
        live.step()
    before = state.read_bytes()
    written(path, 40, first=40)
    folders = [str(Path(__file__).parent), str(Path(__file__).parents[2] / "support")]
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(path), str(state), *folders],
        check=False,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert done.returncode == -9
    assert state.read_bytes() == before
    assert [p for p in tmp_path.iterdir() if p.name.endswith(".tmp")]
    with follower(path, state) as live:
        assert not [p for p in tmp_path.iterdir() if p.name.endswith(".tmp")]
        assert live.step() == 40
        assert total(live.monitor) == 80


def test_what_retention_took_is_counted(tmp_path: Path) -> None:
    path, state = tmp_path / "log.db", tmp_path / "state.json"
    written(path, 100)
    with follower(path, state) as live:
        live.step()
    written(path, 200, first=100)
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("DELETE FROM segments WHERE first <= 200")
    with follower(path, state) as live:
        n = live.step()
        lost = live.dropped.by_reason["removed before it was read"]
        assert n + lost == 200
        assert lost > 0
        assert live.behind_of(300) == 0
    with follower(path, state) as live:
        assert live.dropped.by_reason == {"removed before it was read": lost}
        with closing(sqlite3.connect(path)) as database, database:
            database.execute("DELETE FROM segments")
        assert live.step() == 0
        written(path, 10, first=300)
        with closing(sqlite3.connect(path)) as database, database:
            database.execute("DELETE FROM segments")
        assert live.step() == 0
        assert live.dropped.by_reason == {"removed before it was read": lost + 10}


def test_a_part_that_makes_no_sense_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    written(path, 150)
    with closing(sqlite3.connect(path)) as database, database:
        (first, n) = database.execute("SELECT first, n FROM segments LIMIT 1 OFFSET 1").fetchone()
        database.execute("UPDATE segments SET lengths = x'01' WHERE first = ?", (first,))
    live = follower(path)
    assert live.step() == 150 - n
    assert live.dropped.by_reason == {"could not be decoded": n}


@pytest.mark.parametrize("running", [True, False])
def test_another_log_under_the_same_path(
    tmp_path: Path, running: bool, caplog: pytest.LogCaptureFixture
) -> None:
    path, state = tmp_path / "log.db", tmp_path / "state.json"
    written(path, 700, gap=1_800.0)
    live = follower(path, state)
    live.step()
    alarms = live.monitor.alarms
    assert alarms
    for file in tmp_path.glob("log.db*"):
        file.unlink()
    if running:
        assert live.step() == 0
        assert live.error == "the log is not there yet"
    written(path, 120)
    if not running:
        live = follower(path, state)
    assert live.step() == 120
    assert live.n_read == total(live.monitor) == 120
    assert live.monitor.alarms[: len(alarms)] == alarms
    assert "starting anew" in caplog.text


def test_a_locked_log_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    written(path, 20)
    live = follower(path)
    path.rename(tmp_path / "away.db")
    path.write_bytes(b"this is no database, whatever its name says, and it is long enough" * 20)
    assert live.step() == 0
    assert live.error == "the log cannot be read now"
    path.unlink()
    (tmp_path / "away.db").rename(path)
    assert live.step() == 20
    assert live.error is None


def test_state_of_other_settings(tmp_path: Path) -> None:
    path, state = tmp_path / "log.db", tmp_path / "state.json"
    written(path, 20)
    with follower(path, state) as live:
        live.step()
    other = monitor(ReferenceWindow(50))
    with pytest.raises(DataError, match=r"other settings .* start anew"):
        LogFollower(path, other, state=state)
    with LogFollower(path, other, state=state, anew=True, save_seconds=0) as live:
        assert live.step() == 20
        assert live.settings["baseline"] == {"kind": "reference", "n": 50}
    with LogFollower(path, monitor(ReferenceWindow(50)), state=state) as live:
        assert live.step() == 0
        assert total(live.monitor) == 20


@pytest.mark.parametrize(
    ("content", "error", "words"),
    [
        (
            b"{",
            DataError,
            "is not the state file of a monitor .*; start anew, or name another state file",
        ),
        (b"[]", DataError, "is not the state file of a monitor; start anew"),
        (b'{"kind": "log-follower", "version": 9}', UnsupportedVersionError, "version 9"),
        (b'{"kind": "log-follower", "version": 1}', DataError, "state file of a monitor .*'log'"),
        (
            b'{"kind": "log-follower", "version": 1, "log": "3", "number": 7, "n_read": 7, '
            b'"updated": null, "dropped": {}, "monitor": {}}',
            DataError,
            r"state\.json is not the state file of a monitor: .*at 'log'",
        ),
    ],
)
def test_a_state_file_that_cannot_be_used(
    tmp_path: Path, content: bytes, error: type[Exception], words: str
) -> None:
    state = tmp_path / "state.json"
    state.write_bytes(content)
    with pytest.raises(error, match=words):
        follower(tmp_path / "log.db", state)
    assert follower(tmp_path / "log.db", state, anew=True).step() == 0


def test_a_state_file_that_cannot_be_written(tmp_path: Path) -> None:
    path, folder = tmp_path / "log.db", tmp_path / "folder"
    written(path, 20)
    live = follower(path, folder / "state.json")
    assert live.step() == 20
    assert live.error == "the state file cannot be written now"
    folder.mkdir()
    assert live.step() == 0
    assert live.error is None
    assert json.loads((folder / "state.json").read_text())["number"] == 20


def test_a_sink_that_raises_is_counted(tmp_path: Path) -> None:
    class Broken(Sink):
        def snapshots(self, snapshots: Iterable[MonitorSnapshot]) -> None:
            raise ValueError

        def alarm(self, alarm: Alarm) -> None:
            raise ValueError

    written(tmp_path / "log.db", 700, gap=1_800.0)
    live = follower(tmp_path / "log.db", sinks=Broken())
    assert live.step() == 700
    assert live.dropped.by_reason == {"sink raised": 1}
    assert live.monitor.dropped.by_reason == {"on_alarm raised": len(live.monitor.alarms)}


def test_the_thread_follows_while_others_write(tmp_path: Path) -> None:
    path, state, sink = tmp_path / "log.db", tmp_path / "state.json", Sink()
    live = LogFollower(path, monitor(), state=state, sinks=sink, interval=0.001, sink_seconds=0)
    live.start()
    with pytest.raises(DataError, match="started once"):
        live.start()
    with EventLog(path) as log:
        for i in range(500):
            log.record(retrieval(i, route="r0"), at=START + i)
        assert log.flush(60)
        assert sink.heard.wait(60)
    live.close()
    with follower(path, state) as rest:
        rest.step()
        assert rest.n_read == total(rest.monitor) == 500
