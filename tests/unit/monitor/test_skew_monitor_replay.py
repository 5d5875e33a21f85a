"""Back-testing: logs, runs and events through the code that watches live retrievals."""

import json
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rag_sourcebias.core.data import DocTags, RankedList, Run, TagTable
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.measure.relevance import exposure
from rag_sourcebias.monitor.data import RANK_LIMITS, MonitorSnapshot
from rag_sourcebias.monitor.follow import replay
from rag_sourcebias.monitor.log.event_log import EventLog
from rag_sourcebias.monitor.monitor import SkewMonitor
from rag_sourcebias.monitor.settings import CorpusShare, PoolShare, ReferenceWindow
from rag_sourcebias.observe.events import RetrievalEvent
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


def check_against_offline(run: Run, tags: TagTable) -> None:
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


def test_a_run_gives_the_totals_of_the_offline_measure() -> None:
    run = small_run(1)
    check_against_offline(run, tagged(run.doc_ids))


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
    with EventLog(tmp_path / "log.db", event_labels=("session",), batch=100) as log:
        for event, at in events:
            log.record(event, at=at)
    expected, found = (SkewMonitor(**settings, clock=lambda: 0.0) for _ in range(2))
    expected.record_many(events)
    expected.flush()
    assert replay(tmp_path / "log.db", found) == len(events)
    assert json.dumps(found.to_dict()) == json.dumps(expected.to_dict())
