"""Several observers as one."""

from __future__ import annotations

import pytest

from rag_sourcebias.core.data import RankedList
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.observe.events import RetrievalEvent
from rag_sourcebias.observe.observers import (
    CollectingObserver,
    CountingObserver,
    ExposureObserver,
    ObserverGroup,
)


def event(*doc_ids: str) -> RetrievalEvent:
    return RetrievalEvent(ranked=RankedList(query_id="", doc_ids=doc_ids))


class Raising:
    inline = True

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def observe(self, event: RetrievalEvent) -> None:
        raise self.error


def test_every_observer_is_told_in_order() -> None:
    first, second, count = CollectingObserver(), CollectingObserver(), CountingObserver()
    group = ObserverGroup(first, second, count)
    told = [event("a"), event("b", "c")]
    for one in told:
        group.observe(one)
    assert list(first.events) == list(second.events) == told
    assert (count.n_events, count.n_documents) == (2, 3)
    assert group.observers == (first, second, count)


def test_what_one_raises_keeps_nothing_from_the_others() -> None:
    before, after = CountingObserver(), CountingObserver()
    group = ObserverGroup(
        before, Raising(RuntimeError("text of a user")), Raising(ValueError()), after
    )
    for _ in range(3):
        group.observe(event("a"))
    assert (before.n_events, after.n_events) == (3, 3)
    assert group.dropped.by_reason == {"observer raised": 6}


class Slow:
    """An observer that does not promise to be quick."""

    def observe(self, event: RetrievalEvent) -> None:
        pass


def test_a_group_is_quick_when_all_are() -> None:
    quick, slow = ExposureObserver(), Slow()
    assert ObserverGroup(quick).inline is True
    assert ObserverGroup(quick, slow).inline is False
    assert ObserverGroup(quick, ObserverGroup(slow)).inline is False
    assert ObserverGroup(quick, ObserverGroup(CountingObserver())).inline is True
    slow.inline = "yes"
    assert ObserverGroup(slow).inline is False


@pytest.mark.parametrize(
    ("observers", "message"),
    [
        ((), "needs at least one"),
        ((object(),), "is not an observer; expected an object with observe"),
        ((CountingObserver,), "is not an observer; expected an object with observe"),
    ],
)
def test_what_is_no_observer(observers: tuple, message: str) -> None:
    with pytest.raises(DataError, match=message):
        ObserverGroup(*observers)


def test_the_same_one_twice() -> None:
    count = CountingObserver()
    with pytest.raises(DataError, match="given twice; it would count every retrieval twice"):
        ObserverGroup(count, CountingObserver(), count)
