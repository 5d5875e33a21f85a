"""Look-ups in a tag store: by id or by content, each document asked for once in a while."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing

import pytest

from rag_sourcebias.core.data import DocTags
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.core.tags import content_hash
from rag_sourcebias.observe import events as tag_lookup
from rag_sourcebias.observe.events import TagLookup, text_id
from rag_sourcebias.observe.observers import CollectingObserver
from rag_sourcebias.observe.recorder import instrument
from rag_sourcebias.observe.tags import TABLE, MemoryTagStore, SqliteTagStore

HUMAN, LLM, UNKNOWN = DocTags(source="human"), DocTags(source="llm:x"), DocTags()


class Asked(MemoryTagStore):
    def __init__(self) -> None:
        super().__init__()
        self.asked: list[list[str]] = []

    def get(self, doc_ids: Sequence[str]) -> list[DocTags]:
        self.asked.append(list(doc_ids))
        return super().get(doc_ids)


@pytest.fixture
def store() -> Asked:
    made = Asked()
    made.put([("a", HUMAN), ("b", LLM)], {"a": "The river.", "b": "Ein Fluss. 🌊"})
    return made


def test_ids_and_texts_are_looked_up_in_order(store) -> None:
    lookup = TagLookup(store)
    wanted = [
        "b",
        text_id("The river."),
        "no such",
        "a",
        text_id("unseen"),
        "b",
        text_id("Ein Fluss. 🌊"),
    ]
    assert lookup.get(wanted) == [LLM, HUMAN, UNKNOWN, HUMAN, UNKNOWN, LLM, LLM]
    assert store.asked == [["b", "no such", "a"]]
    assert lookup.get(["a", "b", "no such", "c"])[:2] == [HUMAN, LLM]
    assert store.asked[1:] == [["c"]]
    assert lookup.get([]) == []


def test_new_tags_are_seen_after_a_while(store, monkeypatch) -> None:
    now = [0.0]
    monkeypatch.setattr(tag_lookup.time, "monotonic", lambda: now[0])
    lookup = TagLookup(store, max_age=60)
    assert lookup.get(["c"]) == [UNKNOWN]
    store.put([("c", HUMAN)])
    now[0] = 59.0
    assert lookup.get(["c"]) == [UNKNOWN]
    now[0] = 61.0
    assert lookup.get(["c"]) == [HUMAN]


def test_memory_is_bounded(store) -> None:
    lookup = TagLookup(store, capacity=100)
    for n in range(0, 1000, 10):
        lookup.get([f"d{i}" for i in range(n, n + 10)])
        assert len(lookup._known) <= 110


def test_a_text_cannot_be_read_from_its_id() -> None:
    assert "river" not in text_id("The river.")
    assert text_id("The river.") != text_id("The river")
    assert text_id("a").startswith("text:")


def test_a_failure_is_not_remembered(store) -> None:
    class Once(Asked):
        def get(self, doc_ids: Sequence[str]) -> list[DocTags]:
            found = super().get(doc_ids)
            if len(self.asked) == 1:
                raise TimeoutError
            return found

    once = Once()
    once.put([("a", HUMAN)])
    lookup = TagLookup(once)
    with pytest.raises(TimeoutError):
        lookup.get(["a"])
    assert lookup.get(["a"]) == [HUMAN]


def test_ids_of_texts_are_those_of_their_content() -> None:
    assert text_id("a text") == "text:" + content_hash("a text").hex()


def test_a_damaged_row_of_a_store_costs_its_own_tag(tmp_path) -> None:
    store = SqliteTagStore(tmp_path / "tags.sqlite")
    rows = [("a", HUMAN), ("b", LLM), ("c", LLM)]
    store.put(rows, {"a": "The river.", "b": "A lake.", "c": "A sea."})
    with closing(sqlite3.connect(store.path)) as database, database:
        assert (
            database.execute(f"UPDATE {TABLE} SET confidence = 7 WHERE doc_id = 'b'").rowcount == 1
        )
    with pytest.raises(DataError, match=r"damaged .*row 'b'"):  # asked for itself it is refused
        store.get(["a", "b", "c"])

    observer, found = CollectingObserver(), [["c", "b", "a"], ["b"], ["a", "c"]]

    with instrument(lambda query: found.pop(0), observer, tags=store) as handle:
        for _ in range(3):
            handle.target("a query")
        assert handle.flush(10)
        assert handle.dropped.total == 0
    assert [event.tags for event in observer.events] == [
        (LLM, UNKNOWN, HUMAN),
        (UNKNOWN,),
        (HUMAN, LLM),
    ]
    assert [event.bad_tags for event in observer.events] == [1, 1, 0]
    lookup = TagLookup(store)
    assert lookup.get([text_id("A sea."), text_id("A lake.")]) == [LLM, UNKNOWN]
    assert lookup.damaged([text_id("A lake."), "a"]) == 1
