"""Counts of what each source or style gets of the ranks."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor

import pytest

from rag_sourcebias.core.data import DocTags, RankedList
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.observe.events import RetrievalEvent
from rag_sourcebias.observe.observers import ExposureObserver


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


def test_counts_are_a_snapshot_and_exact_under_threads() -> None:
    observer = ExposureObserver()
    early = observer.counts()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: observer.observe(event("a", "b")), range(800)))
    assert early.n_retrievals == 0
    counts = observer.counts()
    assert counts.n_retrievals == 800
    assert {name: g.documents for name, g in counts.groups.items()} == {"a": 800, "b": 800}
    assert counts.groups["b"].exposure == pytest.approx(800 / math.log2(3))
