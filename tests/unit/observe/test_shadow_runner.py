"""Asking a second retriever in the background: roles, failures, limits, threads."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from rag_sourcebias.core.data import DocTags
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.observe.events import hash_query
from rag_sourcebias.observe.shadow import ShadowRunner
from rag_sourcebias.observe.unobserved import is_suppressed, suppress
from rag_sourcebias.tagging.stores import MemoryTagStore

pytestmark = pytest.mark.usefixtures("quiet")
HUMAN = DocTags(source="human")
Search = Callable[[str], list[str]]


@pytest.fixture
def quiet(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    with caplog.at_level("CRITICAL", logger="rag_sourcebias.observe"):
        yield


def read(found: Any) -> tuple[list[str], list[DocTags]]:
    return list(found), [HUMAN if doc_id == "h" else DocTags() for doc_id in found]


def search(runner: ShadowRunner[Search], query: str) -> list[str]:
    """What an adapter does."""
    side, active, other = runner.roles()
    started = time.perf_counter()
    found = active(query)
    runner.answered(
        side,
        found,
        query=query,
        seconds=time.perf_counter() - started,
        ask=lambda: other(query),
    )
    return found


def made(current: Search, candidate: Search, **options: Any) -> ShadowRunner[Search]:
    return ShadowRunner(current, candidate, read=read, **options)


def ab(query: str) -> list[str]:
    return ["a", "b"]


def hab(query: str) -> list[str]:
    return ["h", "a", "b"]


def test_switch_and_roll_back_change_who_answers_and_not_the_sides() -> None:
    runner = made(ab, hab)
    shown = [search(runner, "q")]
    runner.switch()
    runner.switch()
    assert runner.active == "candidate"
    shown.append(search(runner, "q"))
    runner.roll_back()
    assert runner.active == "current"
    shown.append(search(runner, "q"))
    assert runner.close() is True
    assert shown == [["a", "b"], ["h", "a", "b"], ["a", "b"]]
    found = runner.comparison.summary()
    assert (found.n_queries, found.overlap, found.first_changed) == (3, pytest.approx(2 / 3), 1)
    human = found.exposure[1]
    assert (human.source, human.current, human.n_changed) == ("human", 0, 3)
    assert human.candidate > 0.4
    assert search(runner, "q") == ["a", "b"]  # goes on answering
    assert runner.comparison.summary().n_queries == 3
    assert runner.dropped.total == 0


@pytest.mark.parametrize("error", [LookupError("x"), SystemExit(1), asyncio.CancelledError()])
def test_what_the_shadow_raises_is_counted_and_the_next_query_compared(
    error: BaseException,
) -> None:
    def failing(query: str) -> list[str]:
        if query == "fail":
            raise error
        return ["a"]

    runner = made(ab, failing)
    for query in ("fail", "q", "fail"):
        assert search(runner, query) == ["a", "b"]
    assert runner.close()
    found = runner.comparison.summary()
    assert (found.n_queries, found.n_failed, found.n_dropped) == (1, 2, 0)


def test_unreadable_results_are_counted() -> None:
    runner = made(ab, lambda query: None)  # type: ignore[arg-type, return-value]
    search(runner, "q")
    assert runner.close()
    assert runner.dropped.by_reason == {"result of the shadow could not be read": 1}
    runner = made(lambda query: None, ab)  # type: ignore[arg-type, return-value]
    assert search(runner, "q") is None
    assert runner.dropped.by_reason == {"answer could not be read": 1}
    assert runner.comparison.summary().n_dropped == 1


def test_a_slow_shadow_delays_nothing_and_its_queue_is_bounded() -> None:
    asked, go_on = threading.Event(), threading.Event()

    def slow(query: str) -> list[str]:
        asked.set()
        go_on.wait(20)
        return ["a"]

    runner = made(ab, slow, capacity=5)
    search(runner, "first")
    assert asked.wait(10)
    started = time.perf_counter()
    for _ in range(500):
        search(runner, "q")
    assert time.perf_counter() - started < 1  # one wait alone would take 20
    assert runner.dropped.by_reason == {"queue is full": 496}
    assert runner.flush(0.01) is False
    go_on.set()
    assert runner.flush(10)
    found = runner.comparison.summary()
    assert (found.n_queries, found.n_dropped) == (5, 496)
    runner.close()


def test_closing_does_not_wait_for_a_shadow_that_hangs() -> None:
    go_on = threading.Event()

    def hanging(query: str) -> list[str]:
        go_on.wait(20)
        return []

    runner = made(ab, hanging)
    for _ in range(3):
        search(runner, "q")
    started = time.perf_counter()
    assert runner.close(0.1) is False
    assert time.perf_counter() - started < 5
    assert runner.dropped.by_reason["queue closed before it was empty"] >= 2
    go_on.set()


def test_the_shadow_runs_unobserved_and_in_a_context_of_its_own() -> None:
    seen: list[tuple[bool, str]] = []

    def candidate(query: str) -> list[str]:
        seen.append((is_suppressed(), threading.current_thread().name))
        return []

    runner = made(ab, candidate)
    search(runner, "q")
    with suppress():
        search(runner, "not a query of a user")
    runner.close()
    assert seen == [(True, "rag-sourcebias-queue")]


def test_a_share_of_the_queries_is_compared_the_same_ones_for_a_seed() -> None:
    def compared(**options: Any) -> list[str]:
        asked: list[str] = []

        def candidate(query: str) -> list[str]:
            asked.append(query)
            return []

        runner = made(ab, candidate, capacity=1000, **options)
        for i in range(400):
            search(runner, str(i))
        runner.close()
        found = runner.comparison.summary()
        assert found.n_unsampled == 400 - len(asked)
        return asked

    tenth = compared(share=0.1)
    assert 20 <= len(tenth) <= 62  # 40 ± 3.5 standard errors
    assert compared(share=0.1) == tenth != compared(share=0.1, rng=1)
    assert compared(share=0) == []
    assert len(compared()) == 400


def test_tags_come_from_a_store_first_and_queries_are_hashed() -> None:
    store = MemoryTagStore()
    store.put([("a", DocTags(source="llm:x"))])
    key = b"0123456789abcdef"
    runner = made(ab, hab, tag_store=store, query_key=key)
    search(runner, "the text of a query")
    runner.close()
    found = runner.comparison.summary()
    assert [row.source for row in found.exposure] == ["", "human", "llm:x"]
    assert found.most_changed[0][0] == hash_query("the text of a query", key=key)
    assert "the text" not in str(vars(runner.comparison)) + str(found.to_dict())


def test_a_runner_nobody_holds_ends_its_thread() -> None:
    before = set(threading.enumerate())  # threads of other tests may end meanwhile
    runner = made(ab, hab)
    search(runner, "q")
    assert runner.flush(10)
    (thread,) = set(threading.enumerate()) - before
    gone = weakref.ref(runner)
    del runner
    gc.collect()
    assert gone() is None
    thread.join(10)
    assert not thread.is_alive()


def test_switching_under_eight_threads_loses_and_mixes_nothing() -> None:
    runner = made(ab, hab, capacity=10_000)
    wrong: list[list[str]] = []

    def work() -> None:
        for _ in range(200):
            found = search(runner, "q")
            if found not in (["a", "b"], ["h", "a", "b"]):
                wrong.append(found)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        runner.switch()
        runner.roll_back()
    assert runner.close(30)
    found = runner.comparison.summary()
    assert wrong == []
    assert (found.n_queries, found.n_failed, found.n_dropped) == (1600, 0, 0)
    human = found.exposure[1]
    assert (human.current, human.n_changed) == (0, 1600)  # whoever answered


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"share": 1.5}, r"share 1.5 is outside \[0, 1\]"),
        ({"share": float("nan")}, "share nan is outside"),
        ({"capacity": 0}, "capacity must be at least 1, got 0"),
        ({"query_key": b"short"}, "the key must have 16 to 64 bytes, got 5"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        made(ab, hab, **options)
