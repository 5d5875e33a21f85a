"""Whatever holds tags is looked up, or refused at the call."""

from pathlib import Path

import pandas as pd
import pytest

import rag_sourcebias as rsb
from rag_sourcebias.core.data import DocTags
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.observe.observers import CollectingObserver
from rag_sourcebias.observe.tags import MemoryTagStore, SqliteTagStore

TAGS = {"a": "human", "b": "llm:gpt-4o"}


def given_as(kind: str, folder: Path) -> object:
    if kind == "dictionary":
        return TAGS
    if kind == "frame":
        return pd.DataFrame({"doc_id": list(TAGS), "source": list(TAGS.values())})
    if kind == "file":
        (folder / "tags.tsv").write_text("doc_id\tsource\na\thuman\nb\tllm:gpt-4o\n")
        return folder / "tags.tsv"
    store = MemoryTagStore() if kind == "store" else SqliteTagStore(folder / "tags.db")
    store.put((name, DocTags(source=source)) for name, source in TAGS.items())
    return store if kind == "store" else str(folder / "tags.db")


@pytest.mark.parametrize("kind", ["dictionary", "frame", "file", "store", "store's file"])
def test_every_carrier_of_tags_is_taken(kind: str, tmp_path: Path) -> None:
    observer = CollectingObserver()
    with rsb.instrument(lambda _: ["b", "a", "c"], observer, tags=given_as(kind, tmp_path)) as on:
        on.target("q")
    (event,) = observer.events
    assert [tags.source for tags in event.tags] == ["llm:gpt-4o", "human", None]
    assert event.bad_tags == 0


@pytest.mark.parametrize("tags", [7, "no-such-file.csv", len, {"a": ["x"]}])
def test_what_holds_no_tags_is_refused_at_the_call(tags: object) -> None:
    with pytest.raises(DataError):
        rsb.instrument(lambda _: ["a"], CollectingObserver(), tags=tags)
