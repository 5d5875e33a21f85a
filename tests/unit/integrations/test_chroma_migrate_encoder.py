"""Another encoder for a collection: copy, verify, switch, roll back."""

from __future__ import annotations

import itertools
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hashing_encoder import HashingEncoder

from rag_sourcebias.core.errors import DataError

pytest.importorskip("chromadb")

from chromadb.errors import NotFoundError

from rag_sourcebias_integrations.chroma.collections import open_client
from rag_sourcebias_integrations.chroma.embeddings import EncoderEmbeddingFunction
from rag_sourcebias_integrations.chroma.follow import follow_collection
from rag_sourcebias_integrations.chroma.migration import migrate_encoder

pytestmark = pytest.mark.frameworks

numbers = itertools.count()
OLD, NEW = HashingEncoder(128), HashingEncoder(512)  # without a collision of the words here


@pytest.fixture
def client(tmp_path: Path) -> Any:
    return open_client(tmp_path / "db")


def make(client: Any, n: int = 40, **options: Any) -> Any:
    collection = client.create_collection(
        "shop", embedding_function=EncoderEmbeddingFunction(OLD), **options
    )
    collection.add(
        ids=[f"d{i}" for i in range(n)],
        documents=[f"word{i} word{i % 7} text" for i in range(n)],
        metadatas=[{"n": i, "ok": True} if i % 3 else None for i in range(n)],
    )
    return collection


def rows(collection: Any) -> list[Any]:
    found = collection.get(include=["documents", "metadatas"])
    return sorted(zip(found["ids"], found["documents"], found["metadatas"], strict=True), key=str)


def collections(client: Any) -> list[str]:
    return sorted(collection.name for collection in client.list_collections())


def test_the_copy_has_the_same_content_and_settings_and_new_vectors(client: Any) -> None:
    hnsw = {"space": "ip", "ef_search": 33, "max_neighbors": 5, "ef_construction": 44}
    old = make(client, configuration={"hnsw": hnsw}, metadata={"owner": "me"})
    before, steps = rows(old), []
    migration = migrate_encoder(old, NEW, client=client, batch_size=15, on_progress=steps.append)
    assert (migration.name, migration.n_documents, migration.state) == ("shop", 40, "ready")
    assert re.fullmatch(r"shop--rsb-[0-9a-f]{8}", migration.shadow_name)
    assert steps == [15, 30, 40]
    assert rows(migration.new) == before == rows(old)
    assert migration.new.metadata == {"owner": "me"}
    found = migration.new.configuration_json["hnsw"]
    assert {key: found[key] for key in hnsw} == hnsw
    got = migration.new.get(include=["embeddings", "documents"])
    assert np.allclose(got["embeddings"], NEW.encode_documents(got["documents"]))
    assert collections(client) == ["shop", migration.shadow_name]


def test_switch_and_roll_back(client: Any) -> None:
    old = make(client)
    migration = migrate_encoder(old, NEW, client=client)
    with pytest.raises(DataError, match="'shop' is ready, not switched"):
        migration.roll_back()
    new = migration.switch()
    assert new.name == "shop"
    assert client.get_collection("shop").id == new.id != old.id
    kept = [name for name in collections(client) if name not in {"shop", "shop--rsb-ledger"}]
    assert len(kept) == 1
    assert re.fullmatch(r"shop--before-\d{8}T\d{6}", kept[0])
    opened = client.get_collection("shop", embedding_function=EncoderEmbeddingFunction(NEW))
    assert opened.query(query_texts=["word5 word5"], n_results=1)["ids"] == [["d5"]]
    with pytest.raises(DataError, match="'shop' is switched, not ready"):
        migration.switch()
    assert migration.roll_back().id == old.id
    assert client.get_collection("shop").id == old.id
    assert set(collections(client)) == {"shop", migration.shadow_name, "shop--rsb-ledger"}
    with pytest.raises(DataError, match="is rolled back, not ready"):
        migration.switch()
    again = migrate_encoder(client.get_collection("shop"), NEW, client=client)
    assert again.switch().id == new.id


def test_finish_alone_deletes_and_leaves_nothing_behind(client: Any) -> None:
    migration = migrate_encoder(make(client), NEW, client=client)
    with pytest.raises(DataError, match="'shop' is ready, not switched or rolled back"):
        migration.finish()
    new = migration.switch()
    assert len(collections(client)) == 3  # the ledger too
    with pytest.raises(DataError, match=r"quiet=-1 is negative"):
        migration.finish(quiet=-1)
    assert migration.finish(quiet=0).id == new.id
    assert collections(client) == ["shop"]
    assert migration.state == "finished"
    again = migrate_encoder(new, HashingEncoder(256), client=client)
    again.switch()
    again.roll_back(EncoderEmbeddingFunction(NEW))
    assert again.finish(quiet=0).id == new.id
    assert collections(client) == ["shop"]


def write_somehow(collection: Any) -> None:
    """Every kind of write; the number of documents stays the same."""
    collection.update(ids=["d1"], documents=["updated text"])
    collection.delete(ids=["d2"])
    collection.add(ids=["late"], documents=["late text"], metadatas=[{"late": 1}])
    collection.update(ids=["d4"], metadatas=[{"n": None, "more": "x"}])
    collection.upsert(ids=["d5"], documents=["upserted"], metadatas=[{"n": 5.5}])
    collection.update(ids=["d7"], metadatas=[{"n": None, "ok": None}])


def check_vectors(collection: Any, encoder: HashingEncoder) -> None:
    found = collection.get(include=["documents", "embeddings"])
    assert np.allclose(found["embeddings"], encoder.encode_documents(found["documents"]))


def test_what_is_written_after_the_copy_is_there_after_the_switch(client: Any) -> None:
    old = make(client)
    migration = migrate_encoder(old, NEW, client=client)
    write_somehow(old)
    before = rows(old)
    new = migration.switch()
    assert rows(new) == before
    check_vectors(new, NEW)


def test_what_is_written_after_the_switch_is_there_after_going_back(client: Any) -> None:
    old = make(client)
    migration = migrate_encoder(old, NEW, client=client)
    new = migration.switch()
    write_somehow(new)
    after = rows(new)
    assert rows(old) != after
    assert rows(migration.roll_back()) == after
    check_vectors(old, OLD)
    new.update(ids=["d9"], documents=["through a handle of the copy"])
    assert migration.carry() == 1
    assert old.get(ids=["d9"])["documents"] == ["through a handle of the copy"]
    check_vectors(old, OLD)


def test_a_handle_opened_before_the_switch_loses_nothing(client: Any) -> None:
    old = make(client)
    handle = client.get_collection("shop", embedding_function=EncoderEmbeddingFunction(OLD))
    migration = migrate_encoder(old, NEW, client=client)
    new = migration.switch()
    write_somehow(handle)
    assert rows(new) != rows(handle)
    assert migration.carry() == 6
    assert rows(new) == rows(handle)
    check_vectors(new, NEW)
    assert migration.carry() == 0
    handle.delete(ids=["d11"])
    handle.add(ids=["last"], documents=["last"])
    wanted = rows(handle)
    assert rows(migration.finish(quiet=0)) == wanted


def test_finish_is_refused_while_a_handle_opened_before_is_written_to(client: Any) -> None:
    handle = make(client)
    migration = migrate_encoder(handle, NEW, client=client)
    migration.switch()
    writer = threading.Timer(0.3, lambda: handle.add(ids=["late"], documents=["late"]))
    writer.start()
    with pytest.raises(DataError, match=r"1 documents of 'shop' were written within 1 s through"):
        migration.finish(quiet=1)
    writer.join()
    assert migration.state == "switched"
    assert client.get_collection("shop").get(ids=["late"])["documents"] == ["late"]
    assert len(collections(client)) == 3


def test_a_document_written_in_both_keeps_the_version_in_use(
    client: Any, caplog: pytest.LogCaptureFixture
) -> None:
    old = make(client)
    migration = migrate_encoder(old, NEW, client=client)
    new = migration.switch()
    old.update(ids=["d1", "d2"], documents=["old one", "old two"], metadatas=[{"by": "old"}] * 2)
    new.update(ids=["d1"], documents=["new one"])
    new.delete(ids=["d2"])
    new.update(ids=["d3"], documents=["new three"])
    old.delete(ids=["d3"])
    assert migration.carry() == 0
    assert "3 documents of 'shop' were written both through old and new handles" in caplog.text
    assert new.get(ids=["d1", "d2", "d3"])["documents"] == ["new one", "new three"]
    caplog.clear()
    assert migration.carry() == 0
    assert caplog.text == ""  # each is told once


def test_a_migration_that_is_killed_goes_on_in_another_process(client: Any) -> None:
    old = make(client)
    migrate_encoder(old, NEW, client=client).switch()
    old.add(ids=["late"], documents=["late"])
    again = migrate_encoder(client.get_collection("shop"), NEW, client=client)
    assert again.state == "switched"
    assert client.get_collection("shop").get(ids=["late"])["documents"] == ["late"]
    with pytest.raises(DataError, match=r"migration to another encoder .*finish it, or roll it"):
        migrate_encoder(client.get_collection("shop"), HashingEncoder(300), client=client)
    assert rows(again.roll_back(EncoderEmbeddingFunction(OLD))) == rows(again.new)


def test_going_back_needs_what_embedded_the_original(client: Any) -> None:
    make(client)
    plain = client.get_collection("shop", embedding_function=None)
    migration = migrate_encoder(plain, NEW, client=client)
    migration.switch().add(ids=["late"], documents=["late"])
    with pytest.raises(DataError, match=r"what embedded the original is not known; give it: roll"):
        migration.roll_back()
    with pytest.raises(DataError, match=r"does not give the vectors that collection .*holds"):
        migration.roll_back(EncoderEmbeddingFunction(HashingEncoder(64)))
    assert migration.state == "switched"
    old = migration.roll_back(EncoderEmbeddingFunction(OLD))
    assert old.get(ids=["late"])["documents"] == ["late"]
    check_vectors(old, OLD)


class Between:
    """A collection; once it is renamed, somebody does something."""

    def __init__(self, collection: Any, then: Any) -> None:
        self._collection, self._then = collection, then

    def modify(self, **options: Any) -> None:
        self._collection.modify(**options)
        then, self._then = self._then, lambda: None
        then()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._collection, name)


def test_a_collection_made_between_the_renames_is_moved_aside_and_carried(client: Any) -> None:
    old = make(client)
    migration = migrate_encoder(old, NEW, client=client)
    made: list[Any] = []

    def usurp() -> None:
        other = client.get_or_create_collection(
            "shop", embedding_function=EncoderEmbeddingFunction(OLD)
        )
        other.upsert(ids=["d1", "mine"], documents=["upserted", "mine"], metadatas=[{"by": 1}] * 2)
        made.append(other)

    migration.old = Between(old, usurp)
    new = migration.switch()
    assert client.get_collection("shop").id == new.id
    assert new.count() == 41
    assert new.get(ids=["d1", "mine"])["documents"] == ["upserted", "mine"]
    made[0].add(ids=["later"], documents=["later"])  # its maker goes on with it
    made[0].delete(ids=["mine"])
    assert migration.carry() == 2
    assert new.get(ids=["later", "mine"])["ids"] == ["later"]
    check_vectors(new, NEW)
    migration.finish(quiet=0)
    assert collections(client) == ["shop"]


def test_a_handle_that_follows_the_name_needs_no_restart(client: Any) -> None:
    old = make(client)
    encoders = {128: EncoderEmbeddingFunction(OLD), 512: EncoderEmbeddingFunction(NEW)}
    handle = follow_collection(ByDimension(client, encoders), "shop", every=0)
    migration = migrate_encoder(old, NEW, client=client)
    handle.add(ids=["a"], documents=["before the switch"])
    new = migration.switch()
    handle.add(ids=["b"], documents=["after the switch"])
    assert new.get(ids=["a", "b"])["ids"] == ["a", "b"]
    assert old.get(ids=["b"])["ids"] == []
    assert handle.query(query_texts=["after the switch"], n_results=1)["ids"] == [["b"]]
    migration.roll_back()
    handle.update(ids=["b"], metadatas=[{"seen": 1}])
    assert old.get(ids=["b"])["metadatas"] == [{"seen": 1}]
    migration.finish(quiet=0)
    handle.delete(ids=["b"])
    assert handle.count() == 41
    with pytest.raises(NotFoundError):
        follow_collection(client, "ship", patience=0.1)


class ByDimension:
    """A client that opens the shop with the encoder of its vectors."""

    def __init__(self, client: Any, encoders: Any) -> None:
        self._client, self._encoders = client, encoders

    def get_collection(self, name: str, **options: Any) -> Any:
        found = self._client.get_collection(name, embedding_function=None)
        if options:
            return found
        length = len(found.get(limit=1, include=["embeddings"])["embeddings"][0])
        return self._client.get_collection(name, embedding_function=self._encoders[length])


def test_a_switch_that_fails_half_way_is_undone(client: Any) -> None:
    migration = migrate_encoder(make(client), NEW, client=client)
    client.delete_collection(migration.shadow_name)  # its second rename must fail
    client.create_collection(migration.shadow_name, embedding_function=None)
    with pytest.raises((DataError, NotFoundError)):
        migration.switch()
    assert migration.state == "ready"
    assert client.get_collection("shop").id == migration.old.id
    assert migration.old.name == "shop"


KILLED = """
import sys, time
sys.path.insert(0, sys.argv[2])
from hashing_encoder import HashingEncoder
from rag_sourcebias_integrations.chroma import migrate_encoder
from rag_sourcebias_integrations.chroma.collections import open_client

def pause(done):
    print(done, flush=True)
    if done >= 20:
        time.sleep(60)

client = open_client(sys.argv[1])
collection = client.get_collection("shop", embedding_function=None)
migrate_encoder(collection, HashingEncoder(512), client=client, batch_size=10, on_progress=pause)
"""


def test_a_killed_migration_goes_on_and_sees_what_changed_since(
    client: Any, tmp_path: Path
) -> None:
    old = make(client)
    support = str(Path(__file__).parents[2] / "support")
    with subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", KILLED, str(tmp_path / "db"), support],
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert [process.stdout.readline() for _ in range(2)] == ["10\n", "20\n"]
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert client.get_collection(shadow_name(client), embedding_function=None).count() == 20
    old.update(ids=["d1"], documents=["another text"], metadatas=[{"n": None, "m": 1}])
    old.delete(ids=["d2", "d3"])
    encoder = HashingEncoder(512)
    migration = migrate_encoder(old, encoder, client=client, batch_size=20)
    assert rows(migration.new) == rows(old)
    assert migration.n_documents == 38
    assert sum(map(len, encoder.calls[:-1])) == 21  # d1 and those that were not done


def shadow_name(client: Any) -> str:
    return next(name for name in collections(client) if "--rsb-" in name)


def test_a_collection_that_is_written_to_all_the_time_is_not_switched(client: Any) -> None:
    old = make(client)
    migration = migrate_encoder(old, NEW, client=client)
    numbers = itertools.count()

    class Busy(Between):
        def get(self, **options: Any) -> Any:
            if options.get("offset") == 0:
                self._collection.add(ids=[f"late{next(numbers)}"], documents=["late"])
            return self._collection.get(**options)

    migration.old = Busy(old, lambda: None)
    with pytest.raises(DataError, match=r"written to in each of 10 rounds .*\['late\d+'\]"):
        migration.switch()
    assert client.get_collection("shop").id == old.id
    migration.old = old
    assert migration.switch().count() == 40 + next(numbers)


def test_an_encoder_that_gives_other_vectors_each_time_is_refused(client: Any) -> None:
    class Random(HashingEncoder):
        def _encode(self, texts: Any) -> np.ndarray:
            self.rng = getattr(self, "rng", np.random.default_rng(0))
            return self.rng.normal(size=(len(texts), 8)).astype(np.float32)

    with pytest.raises(DataError, match=r"'d0' is encoded to another vector than the copy holds"):
        migrate_encoder(make(client), Random(), client=client)


def test_llama_index_finds_what_it_would_have_embedded_itself(client: Any) -> None:
    chroma_store = pytest.importorskip("llama_index.vector_stores.chroma")
    from llama_index.core.schema import MetadataMode, TextNode
    from llama_index.core.vector_stores.types import VectorStoreQuery

    nodes = [
        TextNode(text=f"word{i} text", id_=f"n{i}", metadata={"topic": f"t{i}", "page": i})
        for i in range(20)
    ]
    for node in nodes:
        node.excluded_embed_metadata_keys = ["page"]
        node.embedding = OLD.encode_documents([node.get_content(MetadataMode.EMBED)])[0].tolist()
    old = client.create_collection("shop", embedding_function=None)
    chroma_store.ChromaVectorStore(chroma_collection=old).add(nodes)
    encoder = HashingEncoder(512)
    new = migrate_encoder(old, encoder, client=client).switch()
    asked = {text for call in encoder.calls for text in call}
    assert asked == {node.get_content(MetadataMode.EMBED) for node in nodes}
    store = chroma_store.ChromaVectorStore(
        chroma_collection=client.get_collection("shop", embedding_function=None)
    )
    vector = encoder.encode_queries(["topic: t7\n\nword7 text"])[0].tolist()
    found = store.query(VectorStoreQuery(query_embedding=vector, similarity_top_k=1))
    assert found.ids == ["n7"]
    assert found.nodes[0].get_content() == "word7 text"
    assert new.count() == 20


def test_the_recovery_command(client: Any, tmp_path: Path) -> None:
    make(client)
    command = [sys.executable, "-W", "ignore", "-m", "rag_sourcebias_integrations.chroma"]
    done = subprocess.run(
        [*command, str(tmp_path / "db"), "shop"], capture_output=True, text=True, check=True
    )
    assert done.stdout == "shop: 40 documents\n"
    refused = subprocess.run(
        [*command, str(tmp_path), "shop"], capture_output=True, text=True, check=False
    )
    assert refused.returncode == 2
    assert "holds no chroma.sqlite3" in refused.stderr
