"""Another encoder for a collection: copy, verify, switch, roll back."""

from __future__ import annotations

import itertools
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hashing_encoder import HashingEncoder

from rag_sourcebias.errors import DataError

pytest.importorskip("chromadb")

from rag_sourcebias_integrations.chroma import (
    EncoderEmbeddingFunction,
    migrate_encoder,
    restore_collection,
)
from rag_sourcebias_integrations.chroma.client import open_client

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
    kept = [name for name in collections(client) if name != "shop"]
    assert len(kept) == 1
    assert re.fullmatch(r"shop--before-\d{8}T\d{6}", kept[0])
    opened = client.get_collection("shop", embedding_function=EncoderEmbeddingFunction(NEW))
    assert opened.query(query_texts=["word5 word5"], n_results=1)["ids"] == [["d5"]]
    with pytest.raises(DataError, match="'shop' is switched, not ready"):
        migration.switch()
    assert migration.roll_back().id == old.id
    assert client.get_collection("shop").id == old.id
    assert collections(client) == ["shop", migration.shadow_name]
    with pytest.raises(DataError, match="is rolled back, not ready"):
        migration.switch()
    again = migrate_encoder(client.get_collection("shop"), NEW, client=client)
    assert again.switch().id == new.id


def test_without_keeping_the_old_one(client: Any) -> None:
    migration = migrate_encoder(make(client), NEW, client=client, keep_old=False)
    migration.switch()
    assert collections(client) == ["shop"]
    with pytest.raises(DataError, match=r"was deleted \(keep_old=False\)"):
        migration.roll_back()


def test_a_switch_that_fails_half_way_is_undone(client: Any) -> None:
    migration = migrate_encoder(make(client), NEW, client=client)
    client.delete_collection(migration.shadow_name)  # its second rename must fail
    client.create_collection(migration.shadow_name, embedding_function=None)
    migration.new.count = lambda: 40  # the first check is not what is tested here
    with pytest.raises(DataError, match=r"cannot be renamed to 'shop'"):
        migration.switch()
    assert migration.state == "ready"
    assert client.get_collection("shop").id == migration.old.id
    assert migration.old.name == "shop"


def test_a_switch_killed_between_its_renames_is_restored(client: Any) -> None:
    old = make(client)
    assert restore_collection(client, "shop").id == old.id
    old.modify(name="shop--before-20260101T000000")
    assert restore_collection(client, "shop").id == old.id
    assert client.get_collection("shop").count() == 40
    with pytest.raises(DataError, match=r"'ship' is missing and 0 collections.*\['shop'\]"):
        restore_collection(client, "ship")


KILLED = """
import sys, time
sys.path.insert(0, sys.argv[2])
from hashing_encoder import HashingEncoder
from rag_sourcebias_integrations.chroma import migrate_encoder
from rag_sourcebias_integrations.chroma.client import open_client

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


def test_a_collection_that_is_written_to_is_not_switched(client: Any) -> None:
    old = make(client)
    migration = migrate_encoder(old, NEW, client=client)
    old.add(ids=["late"], documents=["late"])
    with pytest.raises(DataError, match=r"holds 41 documents, its copy 40: it changed since"):
        migration.switch()
    assert migrate_encoder(old, NEW, client=client).switch().count() == 41


def test_documents_without_text_are_listed(client: Any) -> None:
    old = make(client)
    old.add(ids=["x", "y"], embeddings=[[0.0] * 128] * 2)
    with pytest.raises(DataError, match=r"2 documents have no stored text.*\['x', 'y'\]"):
        migrate_encoder(old, NEW, client=client)


def test_an_encoder_that_gives_other_vectors_each_time_is_refused(client: Any) -> None:
    class Random(HashingEncoder):
        def _encode(self, texts: Any) -> np.ndarray:
            self.rng = getattr(self, "rng", np.random.default_rng(0))
            return self.rng.normal(size=(len(texts), 8)).astype(np.float32)

    with pytest.raises(DataError, match=r"'d0' is encoded to another vector than the copy holds"):
        migrate_encoder(make(client), Random(), client=client)


def test_an_empty_collection_and_one_of_old_settings(client: Any) -> None:
    migration = migrate_encoder(empty(client), NEW, client=client)
    assert migration.n_documents == 0
    assert migration.new.configuration_json["hnsw"]["space"] == "cosine"
    assert migration.new.metadata == {"hnsw:space": "cosine", "owner": "me"}
    assert migration.switch().count() == 0


def empty(client: Any) -> Any:
    return client.create_collection(
        "shop", embedding_function=None, metadata={"hnsw:space": "cosine", "owner": "me"}
    )


def test_langchain_finds_the_new_vectors_under_the_old_name(client: Any) -> None:
    langchain = pytest.importorskip("langchain_chroma")
    from langchain_core.embeddings import Embeddings

    class Encoded(Embeddings):
        def __init__(self, encoder: HashingEncoder) -> None:
            self.encoder = encoder

        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return self.encoder.encode_documents(texts).tolist()

        def embed_query(self, text: str) -> list[float]:
            return self.encoder.encode_queries([text])[0].tolist()

    def store(encoder: HashingEncoder) -> Any:
        return langchain.Chroma(
            client=client,
            collection_name="shop",
            embedding_function=Encoded(encoder),
            collection_metadata={"hnsw:space": "cosine"},
        )

    texts = [f"word{i} text" for i in range(30)]
    store(OLD).add_texts(texts, metadatas=[{"n": i} for i in range(30)], ids=[*map(str, range(30))])
    migration = migrate_encoder(
        client.get_collection("shop", embedding_function=None), NEW, client=client
    )
    migration.switch()
    found = store(NEW).similarity_search("word17", k=1)[0]
    assert (found.id, found.page_content, found.metadata) == ("17", "word17 text", {"n": 17})
    store(NEW).add_texts(["word99 late"], ids=["99"])
    assert store(NEW).similarity_search("word99 late", k=1)[0].id == "99"
    migration.roll_back()
    assert store(OLD).similarity_search("word17", k=1)[0].id == "17"


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
