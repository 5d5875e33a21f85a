"""Replaying the Parquet files that event logs leave behind."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from monitor_streams import TAGS

from rag_sourcebias.core.data import DocTags, RankedList
from rag_sourcebias.core.errors import DataError, MissingExtraError
from rag_sourcebias.monitor.follow import parquet_events, replay
from rag_sourcebias.monitor.log.event_log import EventLog
from rag_sourcebias.monitor.log.reading import read_events
from rag_sourcebias.monitor.log.writing import write_parquet
from rag_sourcebias.monitor.monitor import SkewMonitor
from rag_sourcebias.monitor.settings import CorpusShare
from rag_sourcebias.observe.events import RetrievalEvent

MIDNIGHT = 1_800_057_600.0
DAY = 86_400
STEP = 600.0
N = 300  # a bit more than two days
SETTINGS: dict[str, Any] = {
    "baseline": CorpusShare({"human": 0.1}),
    "labels": ("route",),
}

pytestmark = pytest.mark.frameworks


def events(seed: int) -> list[RetrievalEvent]:
    rng, names = np.random.default_rng(seed), ("human", "llm:a", "x")
    found = []
    for i in range(N):
        tags = [TAGS[names[c]] for c in rng.integers(0, 3, rng.integers(0, 6))]
        tags = [DocTags() if rng.random() < 0.1 else tag for tag in tags]
        ranked = RankedList(
            query_id=f"q{i}" if i % 3 else "", doc_ids=tuple(f"{i}-{j}" for j in range(len(tags)))
        )
        labels = {"route": f"r{i % 2}", "user": "u"}
        found.append(RetrievalEvent(ranked=ranked, tags=tuple(tags), labels=labels))
    return found


def archived(folder: Path, seed: int, *, log: str, shift: float = 0.0) -> list[RetrievalEvent]:
    """Write files as a log would: several for each day."""
    given, path = events(seed), folder.parent / f"{log}.db"
    with EventLog(path, documents="plain", batch=N) as found:
        for i, event in enumerate(given):
            found.record(event, at=MIDNIGHT + shift + STEP * i)
    columns = read_events(path)
    for start in range(0, N, 80):
        numbers = (columns.numbers > start) & (columns.numbers <= start + 80)
        for day in np.unique(columns.times[numbers] // DAY):
            part = columns.take(numbers & (columns.times // DAY == day))
            write_parquet(part, folder, log=log)
    return given


def test_an_archive_gives_what_the_events_gave(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    folder = tmp_path / "archive"
    given = archived(folder, 1, log="00ab")
    assert len(list(folder.rglob("*.parquet"))) > 4
    live, later = SkewMonitor(**SETTINGS), SkewMonitor(**SETTINGS)
    for i, event in enumerate(given):
        live.record(event, at=MIDNIGHT + STEP * i)
    assert replay(folder, later) == N
    assert later.snapshot() == live.snapshot()
    assert later.alarms == live.alarms
    for (found, at), expected, i in zip(parquet_events(folder), given, range(N), strict=True):
        assert at == MIDNIGHT + STEP * i
        assert found.ranked.doc_ids == expected.ranked.doc_ids
        assert found.query_hash == expected.query_hash
        assert dict(found.labels) == dict(expected.labels)
        assert [t.source for t in found.tags] == [t.source for t in expected.tags]


def test_times_and_labels_can_be_chosen(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    folder = tmp_path / "archive"
    archived(folder, 2, log="00ab")
    monitor = SkewMonitor(**SETTINGS)
    bounds = {"since": MIDNIGHT + 100 * STEP, "until": MIDNIGHT + 200 * STEP}
    assert replay(folder, monitor, labels={"route": "r1"}, **bounds) == 50
    (snapshot,) = monitor.snapshot()
    assert (snapshot.labels, snapshot.n_retrievals) == ({"route": "r1"}, 50)
    one = sorted(folder.rglob("*.parquet"), key=lambda path: path.name)[0]
    assert replay(one, SkewMonitor()) == replay(str(one), SkewMonitor()) > 0


def test_logs_in_one_folder_are_merged_by_time(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    folder = tmp_path / "archive"
    archived(folder, 3, log="00aa")
    archived(folder, 4, log="00bb", shift=STEP / 2)
    times = [at for _, at in parquet_events(folder)]
    assert times == sorted(times)
    assert len(times) == 2 * N


def test_other_files_are_refused(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="holds no Parquet files"):
        replay(tmp_path / "empty", SkewMonitor())
    with pytest.raises(DataError, match=r"none\.parquet does not exist"):
        replay(tmp_path / "none.parquet", SkewMonitor())
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(DataError, match=r"broken\.parquet is not a file of retrievals"):
        replay(tmp_path / "broken.parquet", SkewMonitor())
    pq.write_table(pa.table({"a": [1]}), tmp_path / "other.parquet")
    with pytest.raises(DataError, match=r"other\.parquet: no columns \['time', 'labels'"):
        replay(tmp_path / "other.parquet", SkewMonitor())
    good: dict[str, list[Any]] = {
        "time": [np.datetime64("2027-01-01", "us")],
        "labels": ["{}"],
        "query_id": ["q"],
        "sources": [["human"]],
        "styles": [[None]],
    }
    for i, bad in enumerate(
        (
            {"labels": ["{"]},
            {"labels": ["[1]"]},
            {"labels": [None]},
            {"styles": [[None, None]]},
            {"sources": [None]},
            {"time": ["noon"]},
            {"labels": ['{"a": 1}']},
        )
    ):
        path = tmp_path / f"bad{i}.parquet"
        pq.write_table(pa.table(good | bad), path)
        with pytest.raises(DataError, match=rf"bad{i}\.parquet"):
            replay(path, SkewMonitor())
    pq.write_table(pa.table(good), tmp_path / "good.parquet")
    assert replay(tmp_path / "good.parquet", SkewMonitor()) == 1


def test_without_pyarrow_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.parquet").touch()
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.delitem(sys.modules, "pyarrow.parquet", raising=False)
    with pytest.raises(MissingExtraError, match=r"archives of event logs needs pyarrow"):
        replay(tmp_path, SkewMonitor())
