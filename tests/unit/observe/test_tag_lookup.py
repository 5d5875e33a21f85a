"""Tags and ids of what was retrieved: read all at once, or looked up in a store."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rag_sourcebias.core.data import DocTags
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.core.tags import METADATA_KEYS, TAG_FIELDS, UNKNOWN, content_hash, from_metadata
from rag_sourcebias.observe import events as tag_lookup
from rag_sourcebias.observe.events import MetadataTags, TagLookup, named, text_id
from rag_sourcebias.observe.observers import CollectingObserver
from rag_sourcebias.observe.recorder import instrument
from rag_sourcebias.observe.tags import TABLE, MemoryTagStore, SqliteTagStore

HUMAN, LLM = DocTags(source="human"), DocTags(source="llm:x")


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


# Tags and ids of what was retrieved, read all at once, against reading each alone


VALUES = {
    "rsb_source": ["human", "llm:x", None, "", " ", 5, []],
    "rsb_style": ["plain", None, "", {}],
    "rsb_pair_id": ["p1", "p2", None, 7],
    "rsb_origin": ["declared", "detected", "guessed", None],
    "rsb_confidence": [0.5, 1, 2.0, None, "high"],
    "url": ["https://example.org"],
}
ROWS = st.lists(
    st.none()
    | st.fixed_dictionaries({}, optional={k: st.sampled_from(v) for k, v in VALUES.items()}),
    max_size=6,
)


def alone(row: dict[str, Any] | None) -> tuple[DocTags, int]:
    """The tags of one document, field by field, and how many of its values are bad."""
    tags, n_bad = UNKNOWN, 0
    if not row or (row.get("rsb_source") is None and row.get("rsb_style") is None):
        return tags, n_bad
    for key, field in zip(METADATA_KEYS, TAG_FIELDS, strict=True):
        try:
            value = getattr(from_metadata({key: row.get(key)}), field)
        except DataError:
            n_bad += 1
        else:
            tags = replace(tags, **{field: value})
    return tags, n_bad


FULL = dict(
    zip(METADATA_KEYS, ("human", "plain", "p1", "declared", 0.5), strict=True)
)  # and without each: read as itself, though all the others were seen
WITHOUT = [{k: v for k, v in FULL.items() if k != key} for key in FULL]


@example(batches=[[FULL], WITHOUT, [FULL, *WITHOUT]])
@example(batches=[[row] for row in WITHOUT] + [[FULL]])
@given(batches=st.lists(ROWS, max_size=4))
def test_tags_of_many_documents_are_those_of_each(batches) -> None:
    reader = MetadataTags()
    for rows in batches * 2:  # seen for the first time, and again
        expected = [alone(row) for row in rows]
        assert reader.read(iter(rows)) == (
            tuple(tags for tags, _ in expected),
            sum(n for _, n in expected),
        )


@given(
    given_ids=st.lists(
        st.none() | st.sampled_from(["a", "b", ""]) | st.integers(0, 3) | st.uuids(), max_size=6
    )
)
def test_ids_of_many_documents_are_those_of_each(given_ids) -> None:
    texts = [f"text {n}" for n in range(len(given_ids))]
    expected = [
        text_id(text) if found is None or found == "" else str(found)
        for found, text in zip(given_ids, texts, strict=True)
    ]
    for _ in range(2):
        assert named(iter(given_ids), iter(texts)) == tuple(expected)
