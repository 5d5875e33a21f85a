"""Observers: counts of what each source gets of the ranks, and several as one."""

import math

import pytest

from rag_sourcebias.core.data import DocTags, RankedList
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.observe.events import RetrievalEvent
from rag_sourcebias.observe.observers import (
    CollectingObserver,
    CountingObserver,
    ExposureObserver,
    ObserverGroup,
)


def event(*sources: str | None, style: str | None = None) -> RetrievalEvent:
    return RetrievalEvent(
        ranked=RankedList(query_id="", doc_ids=tuple(map(str, range(len(sources))))),
        tags=tuple(DocTags(source=source, style=style) for source in sources),
    )


def test_wrong_options() -> None:
    with pytest.raises(DataError, match="by 'model' is not one of source, style"):
        ExposureObserver(by="model")  # type: ignore[arg-type]
    with pytest.raises(DataError, match="max_groups must be at least 1, got 0"):
        ExposureObserver(max_groups=0)


def test_counts_follow_the_ranks() -> None:
    observer = ExposureObserver()
    observer.observe(event("human", "llm", None, "human"))
    observer.observe(event(None))
    observer.observe(event())
    counts = observer.counts()
    assert (counts.n_retrievals, counts.n_empty) == (3, 1)
    found = {name: (g.documents, g.first) for name, g in counts.groups.items()}
    assert found == {"": (2, 1), "human": (2, 1), "llm": (1, 0)}
    assert counts.groups["human"].exposure == pytest.approx(1 + 1 / math.log2(5))
    assert counts.groups[""].exposure == pytest.approx(1 / math.log2(4) + 1)
    assert sum(counts.shares().values()) == pytest.approx(1)
    assert ExposureObserver().counts().shares() == {}


def test_groups_beyond_the_limit_are_other() -> None:
    observer = ExposureObserver(max_groups=2)
    observer.observe(event("a", "b", "c", "d", "c"))
    found = {name: g.documents for name, g in observer.counts().groups.items()}
    assert found == {"a": 1, "b": 1, "other": 3}


# Several observers as one


def retrieved(*doc_ids: str) -> RetrievalEvent:
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
    told = [retrieved("a"), retrieved("b", "c"), retrieved()]
    for one in told:
        group.observe(one)
    assert list(first.events) == list(second.events) == told
    assert (count.n_events, count.n_documents, count.n_empty) == (3, 3, 1)
    assert group.observers == (first, second, count)


def test_what_one_raises_keeps_nothing_from_the_others() -> None:
    before, after = CountingObserver(), CountingObserver()
    group = ObserverGroup(
        before, Raising(RuntimeError("text of a user")), Raising(ValueError()), after
    )
    for _ in range(3):
        group.observe(retrieved("a"))
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
