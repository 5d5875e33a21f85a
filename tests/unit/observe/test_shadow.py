"""A candidate asked beside the retriever that answers: numbers, failures, limits, threads."""

import asyncio
import gc
import math
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from rag_sourcebias.core.data import DocTags
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.observe.shadow import Shadow
from rag_sourcebias.observe.tags import MemoryTagStore
from rag_sourcebias.observe.unobserved import is_suppressed, suppress

pytestmark = pytest.mark.usefixtures("quiet")
TAGS = {"h": DocTags(source="human"), "l": DocTags(source="llm:x")}


@pytest.fixture
def quiet(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    with caplog.at_level("CRITICAL", logger="rag_sourcebias.observe"):
        yield


def read(found: Any) -> tuple[list[str], list[DocTags]]:
    """Ids as they are; the first letter says the source."""
    return list(found), [TAGS.get(doc_id[0], DocTags()) for doc_id in found]


def shadow(depth: int = 10, capacity: int = 100, tag_store: Any = None) -> Shadow:
    return Shadow(read, depth=depth, tag_store=tag_store, capacity=capacity)


def returning(*ids: str) -> Callable[[], list[str]]:
    return lambda: list(ids)


def exposure(ids: Sequence[str], letter: str) -> float:
    weights = [1 / math.log2(rank + 1) for rank in range(1, len(ids) + 1)]
    return sum(w for w, one in zip(weights, ids, strict=True) if one[0] == letter) / sum(weights)


def test_every_number_is_that_of_its_definition() -> None:
    rng, compared, rows = np.random.default_rng(1), shadow(depth=5), []
    for _ in range(80):
        lists = [
            [f"{'h' if i % 3 else 'l'}{i}" for i in rng.choice(12, size=7, replace=False)]
            for _ in range(2)
        ]
        compared.answered(lists[0], returning(*lists[1]))
        top = [one[:5] for one in lists]
        shares = [exposure(ids, letter) for ids in top for letter in "hl"]
        rows.append([len(set(top[0]) & set(top[1])) / 5, *shares])
    assert compared.close()
    means, found = np.mean(rows, axis=0), compared.comparison.summary()
    assert (found.n_queries, found.n_empty, found.n_failed, found.n_dropped) == (80, 0, 0, 0)
    assert found.overlap == pytest.approx(means[0])
    assert found.current == pytest.approx({"human": means[1], "llm:x": means[2]})
    assert found.candidate == pytest.approx({"human": means[3], "llm:x": means[4]})


def test_a_document_counts_at_its_best_rank_and_lists_of_other_lengths_are_compared() -> None:
    compared = shadow()
    compared.answered(["a", "a", "b"], returning("b", "a", "c", "d"))
    compared.answered(["a"], returning())
    assert compared.close()
    found = compared.comparison.summary()
    assert (found.n_queries, found.n_empty, found.overlap) == (1, 1, 0.5)
    assert shadow().comparison.summary().overlap is None


@pytest.mark.parametrize("error", [LookupError("x"), SystemExit(1), asyncio.CancelledError()])
def test_what_the_candidate_raises_is_counted_and_the_next_query_compared(
    error: BaseException,
) -> None:
    def failing() -> list[str]:
        raise error

    compared = shadow()
    for ask in (failing, returning("a"), failing):
        compared.answered(["a"], ask)
    assert compared.close()
    found = compared.comparison.summary()
    assert (found.n_queries, found.n_failed, found.n_dropped) == (1, 2, 0)


def test_unreadable_results_are_counted() -> None:
    compared = shadow()
    compared.answered(["a"], lambda: None)
    compared.answered(None, returning("a"))
    assert compared.close()
    assert compared.comparison.dropped.by_reason == {
        "result of the shadow could not be read": 1,
        "answer could not be read": 1,
    }
    assert compared.comparison.summary().n_dropped == 2


def test_a_slow_candidate_delays_nothing_and_its_queue_is_bounded() -> None:
    asked, go_on = threading.Event(), threading.Event()

    def slow() -> list[str]:
        asked.set()
        go_on.wait(20)
        return ["a"]

    compared = shadow(capacity=5)
    compared.answered(["a"], slow)
    assert asked.wait(10)
    started = time.perf_counter()
    for _ in range(500):
        compared.answered(["a"], slow)
    assert time.perf_counter() - started < 1  # one wait alone would take 20
    assert compared.flush(0.01) is False
    assert compared.comparison.dropped.by_reason == {"queue is full": 496}
    go_on.set()
    assert compared.close(10)
    assert compared.comparison.summary().n_queries == 5


def test_closing_does_not_wait_for_a_candidate_that_hangs() -> None:
    go_on, compared = threading.Event(), shadow()
    for _ in range(3):
        compared.answered(["a"], lambda: go_on.wait(20))
    started = time.perf_counter()
    assert compared.close(0.1) is False
    assert time.perf_counter() - started < 5
    assert compared.comparison.dropped.by_reason["queue closed before it was empty"] >= 2
    go_on.set()


def test_the_candidate_is_asked_unobserved_and_in_a_context_of_its_own() -> None:
    seen: list[tuple[bool, str]] = []

    def candidate() -> list[str]:
        seen.append((is_suppressed(), threading.current_thread().name))
        return []

    compared = shadow()
    compared.answered(["a"], candidate)
    with suppress():  # not a query of a user
        compared.answered(["a"], candidate)
    compared.close()
    compared.answered(["a"], candidate)
    assert seen == [(True, "rag-sourcebias-queue")]


def test_tags_come_from_a_store_first() -> None:
    store = MemoryTagStore()
    store.put([("a", DocTags(source="llm:x"))])
    compared = shadow(tag_store=store)
    compared.answered(["a", "b"], returning("h", "a"))
    compared.close()
    found = compared.comparison.summary()
    assert list(found.current) == ["", "llm:x"]
    assert list(found.candidate) == ["human", "llm:x"]


def test_a_shadow_nobody_holds_ends_its_thread() -> None:
    before = set(threading.enumerate())  # threads of other tests may end meanwhile
    compared = shadow()
    compared.answered(["a"], returning("a"))
    assert compared.flush(10)
    (thread,) = set(threading.enumerate()) - before
    gone = weakref.ref(compared)
    del compared
    gc.collect()
    assert gone() is None
    thread.join(10)
    assert not thread.is_alive()


def test_wrong_options_are_refused() -> None:
    with pytest.raises(DataError, match="capacity must be at least 1, got 0"):
        shadow(capacity=0)
    with pytest.raises(DataError, match="depth must be at least 1, got 0"):
        shadow(depth=0)
