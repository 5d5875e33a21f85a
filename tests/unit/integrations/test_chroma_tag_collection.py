"""Tags in place, on real Chroma collections."""

from __future__ import annotations

import itertools
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chroma_folder import shared_client

from rag_sourcebias.core.data import DocTags
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.core.tags import to_metadata
from rag_sourcebias.observe.tags import open_tag_store
from rag_sourcebias.tagging.documents import taggers_fingerprint
from rag_sourcebias.tagging.rules import IdTagger

pytest.importorskip("chromadb")


from rag_sourcebias_integrations.chroma.collections import open_client
from rag_sourcebias_integrations.chroma.tagging import tag_collection

pytestmark = pytest.mark.frameworks

numbers = itertools.count()


def doc_id(i: int) -> str:
    return f"d{i // 2}#{'human' if i % 2 else 'llm:gpt-x'}"


def make(n: int = 20, *, client: Any = None, metadata: bool = True, name: str | None = None) -> Any:
    client = client or shared_client()
    collection = client.create_collection(
        name or f"tagging-{next(numbers)}", embedding_function=None
    )
    vectors = np.random.default_rng(n).normal(size=(n, 8)).astype(np.float32)
    for start in range(0, n, 5_000):
        rows = range(start, min(n, start + 5_000))
        collection.add(
            ids=[doc_id(i) for i in rows],
            embeddings=vectors[rows.start : rows.stop],
            documents=[f"text {i}" for i in rows],
            metadatas=[{"source": f"u/{i}", "n": i, "ok": True} for i in rows]
            if metadata
            else None,
        )
    return collection


def contents(collection: Any) -> dict[str, tuple[Any, Any, Any]]:
    found = collection.get(include=["documents", "metadatas", "embeddings"])
    rows = zip(found["documents"], found["metadatas"], found["embeddings"], strict=True)
    return dict(zip(found["ids"], rows, strict=True))


def by_source(source: str | None, *, style: str | None = None) -> Any:
    def tag(doc_id: str, text: str, metadata: Any) -> DocTags:
        return DocTags(source=source, style=style, origin="declared" if source else None)

    return tag


def test_tags_are_written_and_nothing_else_is_touched() -> None:
    collection = make(21)
    before = contents(collection)
    result = tag_collection(collection, IdTagger(), batch_size=5)
    assert (result.n_documents, result.n_written, result.n_unchanged) == (21, 21, 0)
    assert result.sources == {"human": 10, "llm:gpt-x": 11}
    assert (result.n_untagged, result.n_missing, result.backup) == (0, 0, None)
    after = contents(collection)
    assert list(after) == list(before)
    for key, (text, metadata, vector) in before.items():
        assert after[key][0] == text
        assert np.array_equal(after[key][2], vector)
        assert {k: v for k, v in after[key][1].items() if not k.startswith("rsb_")} == metadata
    assert after["d3#human"][1] == before["d3#human"][1] | {
        "rsb_source": "human",
        "rsb_pair_id": "d3",
        "rsb_origin": "declared",
        "rsb_tagger": result.fingerprint,
    }
    assert result.fingerprint == taggers_fingerprint(IdTagger())


def test_a_second_pass_writes_nothing_and_counts_the_same() -> None:
    collection = make(9)
    first = tag_collection(collection, IdTagger())
    asked: list[str] = []

    def never(doc_id: str, text: str, metadata: Any) -> None:
        asked.append(doc_id)

    never.fingerprint = IdTagger().fingerprint  # type: ignore[attr-defined]
    again = tag_collection(collection, never)
    assert (again.n_written, again.n_unchanged, again.sources) == (0, 9, first.sources)
    assert asked == []


def test_a_tagger_that_takes_many_texts_is_given_many() -> None:
    class Detector:
        fingerprint = "detector"

        def __init__(self) -> None:
            self.sizes: list[int] = []

        def __call__(self, doc_id: str, text: str, metadata: Any) -> DocTags | None:
            return self.tag_many([text])[0]

        def tag_many(self, texts: list[str]) -> list[DocTags | None]:
            self.sizes.append(len(texts))
            return [
                DocTags(source="human", origin="detected") if text.endswith("7") else None
                for text in texts
            ]

    detector, collection = Detector(), make(1_200)
    result = tag_collection(collection, [detector, by_source(None, style="plain")], batch_size=700)
    assert detector.sizes == [256, 256, 188, 256, 244]
    assert (result.sources, result.styles) == ({"human": 120}, {"plain": 1_200})
    right = {doc_id(i) for i in range(1_200) if i % 10 == 7}
    assert set(collection.get(where={"rsb_source": "human"}, include=[])["ids"]) == right


def test_the_tags_of_others_are_kept_unless_overwrite_is_said() -> None:
    collection = make(12)
    other = to_metadata(DocTags(source="llm:old", origin="declared"))
    other["rsb_tagger"] = taggers_fingerprint(by_source("llm:old"))
    collection.update(ids=["d5#human"], metadatas=[other])
    old = taggers_fingerprint(by_source("llm:old"))
    before = [row[1] for row in contents(collection).values()]
    with pytest.raises(DataError, match=rf"'d5#human' carries tags of.*{old}.*overwrite=True"):
        tag_collection(collection, IdTagger(), batch_size=4)
    assert [row[1] for row in contents(collection).values()] == before  # not a page was written


def test_overwriting_keeps_the_old_tags_in_a_tag_store(tmp_path: Path) -> None:
    collection, backup = make(6), tmp_path / "old" / "tags.sqlite"
    tag_collection(collection, by_source("llm:old", style="plain"))
    with pytest.raises(DataError, match="backup="):
        tag_collection(collection, IdTagger(), overwrite=True)
    dry = tag_collection(collection, IdTagger(), overwrite=True, dry_run=True, backup=backup)
    assert (dry.n_written, dry.backup, backup.exists()) == (6, None, False)
    result = tag_collection(collection, IdTagger(), overwrite=True, backup=backup, batch_size=4)
    assert (result.n_written, result.backup) == (6, str(backup))
    kept = open_tag_store(backup)
    assert (
        kept.get([doc_id(i) for i in range(6)])
        == [DocTags(source="llm:old", style="plain", origin="declared")] * 6
    )
    # a tag that is no longer known loses its key
    assert "rsb_style" not in collection.get(ids=["d0#human"])["metadatas"][0]


def test_a_backup_that_is_something_else_is_not_written_to(tmp_path: Path) -> None:
    collection, backup = make(2), tmp_path / "notes.sqlite"
    tag_collection(collection, by_source("llm:old"))
    backup.write_text("dear diary\n")
    with pytest.raises(DataError, match=r"notes\.sqlite is"):
        tag_collection(collection, IdTagger(), overwrite=True, backup=backup)
    assert backup.read_text() == "dear diary\n"


def test_equal_tags_without_a_fingerprint_are_taken_over_and_others_are_not() -> None:
    collection = make(2)
    mine = {"rsb_source": "human", "rsb_pair_id": "d0", "rsb_origin": "declared"}
    collection.update(ids=["d0#human"], metadatas=[mine])
    assert tag_collection(collection, IdTagger()).n_written == 2
    other = make(2)
    other.update(ids=["d0#human"], metadatas=[{"rsb_style": "plain"}])
    with pytest.raises(DataError, match=r"'d0#human' carries tags that name no taggers"):
        tag_collection(other, IdTagger())


def test_documents_deleted_meanwhile_are_counted_and_those_they_shift_are_not_lost() -> None:
    collection = make(30)
    deleted = [doc_id(i) for i in (1, 2, 12)]

    def tag(i: str, text: str, metadata: Any) -> DocTags:
        if metadata["n"] == 10:  # while the second page is being tagged
            collection.delete(ids=deleted)
            collection.add(ids=["new#human"], embeddings=[[0.5] * 8], metadatas=[{"n": 99}])
        return DocTags(source="human", origin="declared")

    tag.fingerprint = "t"  # type: ignore[attr-defined]
    result = tag_collection(collection, tag, batch_size=10)
    assert (result.n_missing, result.missing_ids) == (1, (doc_id(12),))
    assert result.n_written == 30  # two of the first page were deleted after it was done
    assert result.n_documents == 31
    done = collection.get(where={"rsb_tagger": result.fingerprint}, include=[])["ids"]
    assert len(done) == collection.count() == 28


KILLED = """
import sys, time
import chromadb
from rag_sourcebias.tagging import IdTagger
from rag_sourcebias_integrations.chroma import tag_collection

def pause(done):
    print(done, flush=True)
    if done >= 40:
        time.sleep(60)

collection = chromadb.PersistentClient(sys.argv[1]).get_collection("half")
tag_collection(collection, IdTagger(), batch_size=20, on_progress=pause)
"""


def test_a_killed_pass_goes_on_where_it_stopped(tmp_path: Path) -> None:
    collection = make(100, client=open_client(tmp_path), name="half")
    with subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", KILLED, str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert [process.stdout.readline() for _ in range(2)] == ["20\n", "40\n"]
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
    steps: list[int] = []
    result = tag_collection(collection, IdTagger(), batch_size=20, on_progress=steps.append)
    assert (result.n_unchanged, result.n_written, result.n_documents) == (40, 60, 100)
    assert steps == [20, 40, 60, 80, 100]
    assert result.sources == {"human": 50, "llm:gpt-x": 50}
    assert len(collection.get(where={"rsb_tagger": result.fingerprint}, include=[])["ids"]) == 100


def test_an_interrupted_overwrite_goes_on_with_its_backup(tmp_path: Path) -> None:
    collection, backup = make(20), tmp_path / "old.sqlite"
    tag_collection(collection, by_source("llm:old"))

    def stop(done: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tag_collection(
            collection, IdTagger(), overwrite=True, backup=backup, batch_size=8, on_progress=stop
        )
    result = tag_collection(collection, IdTagger(), overwrite=True, backup=backup, batch_size=8)
    assert (result.n_written, result.n_unchanged) == (12, 8)
    assert len(open_tag_store(backup)) == 20


def test_a_tagger_that_fails_names_the_document() -> None:
    def broken(doc_id: str, text: str, metadata: Any) -> DocTags:
        return DocTags(confidence=float("inf"))

    collection = make(3)
    with pytest.raises(DataError, match=r"document 'd0#\S+': tagger .*broken: confidence"):
        tag_collection(collection, broken)
    assert "rsb_tagger" not in collection.get(ids=["d0#human"])["metadatas"][0]


def test_tags_damaged_by_hand_are_named() -> None:
    collection = make(2)
    tag_collection(collection, IdTagger())
    collection.update(ids=["d0#human"], metadatas=[{"rsb_origin": "hearsay"}])
    with pytest.raises(DataError, match="document 'd0#human': rsb_origin 'hearsay'"):
        tag_collection(collection, IdTagger())


class OfNumpy:
    fingerprint = "of numpy"

    def __call__(self, doc_id: str, text: str, metadata: Mapping[str, object]) -> DocTags:
        return DocTags(source="human", origin="detected", confidence=np.float32(0.5))  # type: ignore[arg-type]


def test_a_number_of_numpy_is_stored() -> None:
    collection = make(1)
    tag_collection(collection, OfNumpy())
    assert collection.get(limit=1)["metadatas"][0]["rsb_confidence"] == 0.5
