"""What readers got is counted once a request, in every way in which retrievals are watched."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rag_sourcebias.core.data import DocTags, RankedList
from rag_sourcebias.monitor.command import log_lines
from rag_sourcebias.monitor.dashboard.source import DashboardSource, Part
from rag_sourcebias.monitor.follow import LogFollower, replay
from rag_sourcebias.monitor.monitor import SkewMonitor
from rag_sourcebias.observe.events import RetrievalEvent
from rag_sourcebias.observe.log.event_log import EventLog
from rag_sourcebias.observe.log.reading import log_summary, read_events, read_rollups
from rag_sourcebias.observe.observers import CountingObserver, ExposureObserver

START = 1_790_000_000.0
N = 600
POOL = (DocTags(source="human"), DocTags(source="llm:a"), DocTags())


def stages(rng: np.random.Generator, name: int) -> list[RetrievalEvent]:
    """Return the stages of one request: some have one, some three, some end empty."""
    tags = tuple(POOL[i] for i in rng.integers(0, 3, 10))
    ids = tuple(f"d{i}" for i in range(10))
    first = RetrievalEvent(
        ranked=RankedList(query_id="", doc_ids=ids), tags=tags, request=f"{name:016x}"
    )
    found = [first]
    for stage in ("reranked", "shown")[: rng.integers(0, 3)]:
        # a reranker that favours LLM text
        keep = sorted(range(10), key=lambda i: (tags[i].source != "llm:a", i))[: rng.integers(0, 6)]
        ranked = RankedList(query_id="", doc_ids=tuple(ids[i] for i in keep))
        found.append(
            replace(
                first,
                ranked=ranked,
                tags=tuple(tags[i] for i in keep),
                stage=stage,
                earlier=found[-1],
            )
        )
    return found


def share(requests: list[list[RetrievalEvent]], which: int) -> float:
    """Return human text's share of exposure by hand, of one stage of each request."""
    human = every = 0.0
    for told in requests:
        weights = 1 / np.log2(np.arange(len(told[which].tags)) + 2)
        every += weights.sum()
        human += weights[[tags.source == "human" for tags in told[which].tags]].sum()
    return float(human / every)


@pytest.mark.parametrize("every", [7, 10_000])  # batches of events, which part requests, or one
def test_log_and_observers_agree_on_what_readers_got(tmp_path: Path, every: int) -> None:
    rng = np.random.default_rng(4)
    requests = [stages(rng, i) for i in range(N)]
    path = tmp_path / "log.db"
    exposure, count = ExposureObserver(), CountingObserver()
    n = 0
    with EventLog(path) as log:
        for i, told in enumerate(requests):
            for delay, event in enumerate(told):
                log.record(event, at=START + 100.0 * i + 50.0 * delay)
                exposure.observe(event)
                count.observe(event)
                n += 1
                if n % every == 0:
                    assert log.flush(30)
    truth = share(requests, -1)
    assert abs(truth - share(requests, 0)) > 0.05  # stages that are ignored would be seen here
    rollups = read_rollups(path, step=86_400 * 7)
    counted = rollups.exposure.sum(axis=0) / rollups.exposure.sum()
    assert counted[rollups.groups.index("human")] == pytest.approx(truth, abs=1e-9)
    assert rollups.retrievals.sum() == N == count.n_events == exposure.counts().n_retrievals
    assert exposure.counts().shares()["human"] == pytest.approx(truth, abs=1e-9)
    minutes = read_rollups(path)  # each in the minute in which its request was counted
    assert (minutes.documents >= 0).all()
    latest = read_events(path)
    assert len(latest) == N
    assert len(read_events(path, stage="retrieved")) == N
    assert len(read_events(path, stage="all")) == n
    assert (log_summary(path).n_written, log_summary(path).n_later) == (n, n - N)
    weights = 1 / np.log2(latest.ranks + 1)
    human = latest.tag_codes == latest.tags.index(("human", None))
    assert weights[human].sum() / weights.sum() == pytest.approx(truth, abs=1e-9)
    monitor = SkewMonitor()
    assert replay(path, monitor) == N
    (snapshot,) = monitor.snapshot()
    assert snapshot.n_documents == len(latest.tag_codes)
    with LogFollower(path, SkewMonitor()) as follower:
        assert follower.step() == N
        assert follower.monitor.snapshot()[0].n_documents == len(latest.tag_codes)


def test_a_monitor_of_its_own_takes_the_latest_stage(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    requests = [stages(rng, i) for i in range(N)]
    monitor = SkewMonitor()
    monitor.record_many((event, START) for told in requests for event in told)
    monitor.record_many([(None, START), *((event, START) for event in requests[0])])  # broken
    (snapshot,) = monitor.snapshot()
    assert monitor.dropped.total == 1
    assert snapshot.n_retrievals == N + 1
    told = [*requests, requests[0]]
    assert snapshot.n_documents == sum(len(stages[-1].tags) for stages in told)


def by_hand(event: RetrievalEvent) -> float:
    weights = 1 / np.log2(np.arange(len(event.tags)) + 2)
    human = [tags.source == "human" for tags in event.tags]
    return float(weights[human].sum() / weights.sum()) if event.tags else float("nan")


def test_the_page_compares_the_stages_of_the_same_requests(tmp_path: Path) -> None:
    rng = np.random.default_rng(6)
    requests = [stages(rng, i) for i in range(N)]
    path = tmp_path / "log.db"
    with EventLog(path) as log:
        for i, told in enumerate(requests):
            for event in told:
                log.record(event, at=START + 100.0 * i)
    n_later = sum(len(told) - 1 for told in requests)
    (kept, *_) = log_lines(log_summary(path))
    assert kept.endswith(f"written, {n_later:,} of them later stages of a request")
    found = DashboardSource(path).stages(Part())
    several = [told for told in requests if len(told) > 1]
    assert found["requests"] == len(several) < N
    first, second, third = found["stages"]
    assert [one["stage"] for one in found["stages"]] == ["retrieved", "reranked", "shown"]
    human = first["groups"].index("human")
    before = np.array([by_hand(told[0]) for told in several])
    after = np.array([by_hand(told[1]) for told in several])
    assert first["shares"][human]["mean"] == pytest.approx(before.mean(), abs=1e-12)
    assert second["shares"][human]["mean"] == pytest.approx(np.nanmean(after), abs=1e-12)
    assert second["empty"] == np.isnan(after).sum() > 0
    change = (after - before)[~np.isnan(after)]
    half = 1.959963984540054 * change.std(ddof=1) / np.sqrt(len(change))
    told_change = second["changes"][human]
    assert told_change["mean"] == pytest.approx(change.mean(), abs=1e-12)
    assert told_change["upper"] - told_change["mean"] == pytest.approx(half, abs=1e-12)
    assert told_change["upper"] < 0  # the reranker favours LLM text
    assert third["requests"] == sum(len(told) == 3 for told in requests)


def test_the_page_says_nothing_of_stages_where_there_are_none(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    with EventLog(path) as log:
        log.observe(stages(np.random.default_rng(1), 1)[0])
    assert DashboardSource(path).stages(Part()) == {"stages": [], "requests": 0}
