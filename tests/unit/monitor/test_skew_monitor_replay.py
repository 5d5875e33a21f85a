"""Back-testing: logs, archives, runs and events through the code that watches live."""

import json
import sys
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from monitor_streams import TAGS

from rag_sourcebias.core.data import DocTags, RankedList, Run, TagTable
from rag_sourcebias.core.errors import DataError, MissingExtraError
from rag_sourcebias.measure.relevance import exposure
from rag_sourcebias.monitor.data import RANK_LIMITS, MonitorSnapshot
from rag_sourcebias.monitor.follow import parquet_events, replay
from rag_sourcebias.monitor.monitor import SkewMonitor
from rag_sourcebias.monitor.settings import CorpusShare, PoolShare, ReferenceWindow
from rag_sourcebias.observe.events import RetrievalEvent
from rag_sourcebias.observe.log.event_log import EventLog
from rag_sourcebias.observe.log.reading import read_events
from rag_sourcebias.observe.log.writing import write_parquet
from rag_sourcebias.observe.observers import ExposureObserver

NAMES = ("human", "llm:a", None)


def tagged(doc_ids: tuple[str, ...]) -> TagTable:
    """Give documents sources that depend on nothing but their ids."""
    codes = [zlib.crc32(doc_id.encode()) % 3 for doc_id in doc_ids]
    rows = [(doc_id, DocTags(source=NAMES[c])) for doc_id, c in zip(doc_ids, codes, strict=True)]
    return TagTable.from_tags(rows)


def small_run(seed: int, n: int = 300) -> Run:
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, 130, size=n)  # on both sides of every limit of ranks
    return Run.from_arrays(
        query_ids=[f"q{i}" for i in range(n)],
        query_codes=np.repeat(np.arange(n), lengths),
        doc_codes=np.concatenate([rng.permutation(150)[:length] for length in lengths]),
        doc_ids=[f"d{i}" for i in range(150)],
    )


def test_a_run_gives_the_totals_of_the_offline_measure() -> None:
    run = small_run(1)
    tags = tagged(run.doc_ids)
    monitor = SkewMonitor(labels=("collection",))
    assert replay(run, monitor, tags=tags, labels={"collection": run.name}) == len(run.query_ids)
    found = exposure(run, tags)
    (snapshot,) = monitor.snapshot()
    assert snapshot.labels == {"collection": run.name}
    assert snapshot.n_documents == len(run.doc_codes)
    assert snapshot.n_retrievals - snapshot.n_empty == len(found.query_index)
    shares = {g.group: g.share for g in snapshot.groups if g.measure == "exposure"}
    expected = dict(zip(found.sources, found.shares.mean(axis=1), strict=True))
    assert shares == pytest.approx({name: share for name, share in expected.items() if share > 0})
    check_counts(run, tags, snapshot)


def check_counts(run: Run, tags: TagTable, snapshot: MonitorSnapshot) -> None:
    """Counts and shares of first ranks by their definitions, and those of an observer."""
    documents: dict[str, int] = {}
    first: dict[str, int] = {}
    ranks: dict[str, list[int]] = {}
    for start, stop in zip(run.offsets, run.offsets[1:], strict=False):
        for rank, code in enumerate(run.doc_codes[start:stop], 1):
            name = tags.get(run.doc_ids[code]).source or ""
            documents[name] = documents.get(name, 0) + 1
            first[name] = first.get(name, 0) + (rank == 1)
            counts = ranks.setdefault(name, [0] * len(RANK_LIMITS))
            ranks[name] = [
                n + (rank <= limit) for n, limit in zip(counts, RANK_LIMITS, strict=True)
            ]
    assert {c.group: (c.documents, list(c.ranks)) for c in snapshot.counts} == {
        name: (n, ranks[name]) for name, n in documents.items()
    }
    answered = snapshot.n_retrievals - snapshot.n_empty
    shares = {g.group: g.share for g in snapshot.groups if g.measure == "first"}
    assert shares == pytest.approx({name: n / answered for name, n in first.items()})
    observer = ExposureObserver()
    observe_run(run, tags, observer)
    seen = observer.counts()
    assert (seen.n_retrievals, seen.n_empty) == (snapshot.n_retrievals, snapshot.n_empty)
    assert {n: (g.documents, g.first) for n, g in seen.groups.items()} == {
        n: (documents[n], first[n]) for n in documents
    }


def observe_run(run: Run, tags: TagTable, observer: ExposureObserver) -> None:
    for start, stop in zip(run.offsets, run.offsets[1:], strict=False):
        ids = tuple(run.doc_ids[code] for code in run.doc_codes[start:stop])
        ranked = RankedList(query_id="q", doc_ids=ids)
        observer.observe(RetrievalEvent(ranked=ranked, tags=tuple(map(tags.get, ids))))


def test_a_log_gives_what_the_events_gave(tmp_path: Path) -> None:
    run = small_run(2, 2_000)
    tags = tagged(run.doc_ids)
    events = []
    for i, (start, stop) in enumerate(zip(run.offsets, run.offsets[1:], strict=False)):
        ids = tuple(run.doc_ids[code] for code in run.doc_codes[start:stop])
        events.append(
            RetrievalEvent(
                ranked=RankedList(query_id=f"{i}", doc_ids=ids),
                tags=tuple(tags.get(doc_id) for doc_id in ids),
                labels={"collection": "ab"[i % 2], "tenant": "u"},
            )
        )
    baseline = CorpusShare({"human": 0.9, "llm:a": 0.05})  # far off: there are alarms
    live, later, part = (SkewMonitor(baseline=baseline) for _ in range(3))
    with EventLog(tmp_path / "log.db") as log:
        for i, event in enumerate(events):
            log.record(event, at=1_000.0 * (i + 1))
            live.record(event, at=1_000.0 * (i + 1))
    assert replay(tmp_path / "log.db", later) == len(events)
    assert later.snapshot() == live.snapshot()
    assert later.alarms == live.alarms != ()
    n = replay(
        tmp_path / "log.db", part, labels={"collection": "a"}, since=101_000.0, until=201_000.0
    )
    assert n == 50 == part.snapshot()[0].n_retrievals
    direct = SkewMonitor(baseline=baseline)
    assert replay(iter(events), direct) == len(events)
    counts = [snapshot.counts for snapshot in direct.snapshot()]
    assert counts == [snapshot.counts for snapshot in live.snapshot()]


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    run, monitor = small_run(3), SkewMonitor()
    with pytest.raises(DataError, match="a run needs it"):
        replay(run, monitor)
    with pytest.raises(DataError, match="tags= belongs to a run"):
        replay([], monitor, tags=tagged(run.doc_ids))
    with pytest.raises(DataError, match="are for event logs"):
        replay([], monitor, since=0.0)
    with pytest.raises(DataError, match="events have their own"):
        replay([], monitor, labels={"a": "b"})
    with pytest.raises(DataError, match=r"none\.db"):
        replay(tmp_path / "none.db", monitor)
    assert monitor.snapshot() == ()


@pytest.mark.parametrize(
    "settings",
    [
        {"baseline": ReferenceWindow(200), "labels": ("tenant",), "topics": "topic"},
        {"baseline": CorpusShare({"human": 0.5, "llm:a": 0.3}), "labels": ()},
        {"baseline": PoolShare(3), "labels": ("tenant", "session")},
        {"labels": ("none",), "by": "style"},
    ],
)
def test_columns_of_a_log_give_bit_for_bit_what_its_events_gave(
    tmp_path: Path, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With labels kept aside, users, topics, empty retrievals, and documents beyond caps."""
    monkeypatch.setattr("rag_sourcebias.monitor.monitor._MOST_LABEL_SETS", 5)
    monkeypatch.setattr("rag_sourcebias.monitor.monitor.MOST_DOCUMENTS", 4)
    monkeypatch.setattr("rag_sourcebias.monitor.settings.MOST_GROUPS", 1)
    rng, sources = np.random.default_rng(4), (*NAMES, "llm:b")
    events = []
    for i in range(1_500):
        labels = {"tenant": f"t{rng.integers(3)}", "session": f"s{rng.integers(80)}"}
        if i % 3:
            labels["topic"] = f"topic {rng.integers(12)}"
        tags = tuple(
            DocTags(source=sources[int(c)], style=f"{c % 2}" if c else None)
            for c in rng.integers(4, size=rng.integers(7))
        )
        ranked = RankedList(query_id=f"{rng.integers(40):016x}", doc_ids=("",) * len(tags))
        events.append((RetrievalEvent(ranked=ranked, tags=tags, labels=labels), 1e9 + 700.0 * i))
    with EventLog(tmp_path / "log.db", event_labels=("session",)) as log:
        for event, at in events:
            log.record(event, at=at)
    expected, found = (SkewMonitor(**settings, clock=lambda: 0.0) for _ in range(2))
    expected.record_many(events)
    expected.flush()
    assert replay(tmp_path / "log.db", found) == len(events)
    assert json.dumps(found.to_dict()) == json.dumps(expected.to_dict())


# Replaying the Parquet files that event logs leave behind


MIDNIGHT = 1_800_057_600.0
DAY = 86_400
STEP = 600.0
N = 300  # a bit more than two days
SETTINGS: dict[str, Any] = {
    "baseline": CorpusShare({"human": 0.1}),
    "labels": ("route",),
}


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
    with EventLog(path, documents="plain") as found:
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
