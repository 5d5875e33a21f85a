"""Another encoder, or a projection, for a collection: copy, verify, switch, roll back."""

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
from rag_sourcebias.retrieval.projection import ProjectedEncoder, SourceProjection

pytest.importorskip("chromadb")

from chromadb.errors import NotFoundError

from rag_sourcebias_integrations.chroma.collections import open_client
from rag_sourcebias_integrations.chroma.embeddings import EncoderEmbeddingFunction
from rag_sourcebias_integrations.chroma.follow import follow_collection
from rag_sourcebias_integrations.chroma.migration import migrate_encoder, migrate_projection

pytestmark = pytest.mark.frameworks

OLD, NEW = HashingEncoder(128), HashingEncoder(512)  # without a collision of the words here


@pytest.fixture
def client(tmp_path: Path) -> Any:
    return open_client(tmp_path / "db")


def make(client: Any, n: int = 40, *, encoder: Any = OLD, **options: Any) -> Any:
    collection = client.create_collection(
        "shop", embedding_function=EncoderEmbeddingFunction(encoder), **options
    )
    collection.add(
        ids=[f"d{i}" for i in range(n)],
        documents=[f"word{i} word{i % 7} text" for i in range(n)],
        metadatas=[{"n": i, "ok": True} if i % 3 else None for i in range(n)],
    )
    return collection


def rows(collection: Any) -> list[Any]:
    found = collection.get(include=["documents", "metadatas", "uris"])
    columns = (found["ids"], found["documents"], found["metadatas"], found["uris"] or found["ids"])
    return sorted(zip(*columns, strict=True), key=str)


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
    # what a framework calls embed_documents is enough
    old = migration.roll_back(lambda texts: OLD.encode_documents(texts).tolist())
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
    migrate_encoder(old, encoder, client=client).switch()
    asked = {text for call in encoder.calls for text in call}
    assert asked == {node.get_content(MetadataMode.EMBED) for node in nodes}


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


# A projection for a collection: its stored vectors, its copy, and what is refused


ENCODER = HashingEncoder(64)


def projection(dimension: int = 64, **options: Any) -> SourceProjection:
    direction = np.random.default_rng(1).normal(size=(dimension, 2))
    direction = np.linalg.qr(direction)[0].astype(np.float32)
    given = {"strength": 1.0, "encoder": "hashing-64", **options}
    return SourceProjection(
        directions=direction, method="pca", n_pairs=40, reliability=0.9, **given
    )


class Unit(HashingEncoder):
    """Vectors of length 1, as most encoders give them."""

    def _encode(self, texts: Any) -> np.ndarray:
        rows = super()._encode(texts)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def vectors(collection: Any) -> dict[str, np.ndarray]:
    found = collection.get(include=["embeddings"])
    return dict(zip(found["ids"], found["embeddings"], strict=True))


@pytest.mark.parametrize("kind", [HashingEncoder, Unit])
@pytest.mark.parametrize("space", ["cosine", "l2", "ip"])
def test_the_copy_holds_the_projected_vectors_of_the_stored_ones(
    client: Any, space: str, kind: type[HashingEncoder]
) -> None:
    hnsw = {"space": space, "ef_search": 33, "max_neighbors": 5, "ef_construction": 44}
    encoder = kind(64)
    old = make(client, encoder=encoder, configuration={"hnsw": hnsw}, metadata={"owner": "me"})
    encoder.calls.clear()
    steps: list[int] = []
    found = projection(strength=0.7)
    debiased = ProjectedEncoder(encoder, found)
    migration = migrate_projection(
        old, found, client=client, encoder=debiased, batch_size=15, on_progress=steps.append
    )
    assert (migration.name, migration.n_documents, migration.state) == ("shop", 40, "ready")
    assert steps == [15, 30, 40]
    assert sum(map(len, encoder.calls)) <= 2 * 16  # two samples, not the collection
    assert rows(migration.new) == rows(old)
    assert migration.new.metadata == {"owner": "me"}
    index = migration.new.configuration_json["hnsw"]
    assert {key: index[key] for key in hnsw} == hnsw
    stored, copied = vectors(old), vectors(migration.new)
    for doc_id, vector in stored.items():
        expected = found.apply(np.asarray([vector], np.float32))[0]
        assert np.allclose(copied[doc_id], expected, atol=1e-6)
    assert max(np.linalg.norm(copied[doc_id] - stored[doc_id]) for doc_id in stored) > 0.05
    new = migration.switch()
    query = "word5 word5 text"
    nearest = new.query(query_texts=[query], n_results=1)["ids"][0]
    assert nearest == ["d5"]
    assert migration.roll_back().id == old.id


def test_queries_of_the_copy_are_projected(client: Any) -> None:
    old, found = make(client, encoder=ENCODER), projection()
    debiased = ProjectedEncoder(ENCODER, found)
    new = migrate_projection(old, found, client=client, encoder=debiased).new
    by_text = new.query(query_texts=["word9 word2"], n_results=9)
    by_vector = new.query(query_embeddings=debiased.encode_queries(["word9 word2"]), n_results=9)
    assert by_text["ids"] == by_vector["ids"]
    assert np.allclose(by_text["distances"], by_vector["distances"])


def test_the_copy_remembers_the_model_folder(client: Any, tmp_path: Path) -> None:
    pytest.importorskip("sentence_transformers")
    from static_model import static_model

    from rag_sourcebias.neural.loading import SentenceEncoder, write_projected_model

    plain = static_model(tmp_path / "plain", [f"w{i}" for i in range(40)])
    found = projection(16, encoder=SentenceEncoder(plain).fingerprint)
    folder = write_projected_model(plain, found, tmp_path / "debiased")
    old = client.create_collection(
        "shop", embedding_function=EncoderEmbeddingFunction(plain, device="cpu")
    )
    old.add(ids=[f"d{i}" for i in range(40)], documents=[f"w{i} w{i // 2}" for i in range(40)])
    other = projection(16, strength=0.5, encoder=found.encoder)
    with pytest.raises(DataError, match=r"encoder 'debiased' holds the projection 'pca:1.0:"):
        migrate_projection(old, other, client=client, encoder=folder)
    new = migrate_projection(old, found, client=client, encoder=folder).switch()
    expected = new.query(
        query_embeddings=ProjectedEncoder(SentenceEncoder(plain), found).encode_queries(["w3 w3"]),
        n_results=5,
    )
    opened = open_client(tmp_path / "db").get_collection("shop")  # from what Chroma stored
    by_text = opened.query(query_texts=["w3 w3"], n_results=5)
    assert by_text["ids"] == expected["ids"]
    assert np.allclose(by_text["distances"], expected["distances"], atol=1e-5)


def test_what_does_not_fit_is_refused_before_anything_is_written(client: Any) -> None:
    old = make(client, encoder=ENCODER)

    def refused(match: str, found: SourceProjection, encoder: Any, collection: Any = old) -> None:
        with pytest.raises(DataError, match=match):
            migrate_projection(collection, found, client=client, encoder=encoder)
        assert not [c.name for c in client.list_collections() if "--rsb-" in c.name]

    good = projection()
    debiased = ProjectedEncoder(ENCODER, good)
    small = projection(32, encoder="hashing-32")
    refused(
        r"'shop' was filled by 'hashing-64', but the projection was fitted on .*'hashing-32'",
        small,
        ProjectedEncoder(HashingEncoder(32), small),
    )
    unnamed = projection(32, encoder="")
    refused(
        r"vectors have 64 dimensions, the projection is for 32",
        unnamed,
        ProjectedEncoder(HashingEncoder(32), unnamed),
    )
    refused(r"holds the projection .*given is 'pca:0.5:", projection(strength=0.5), debiased)
    refused(r"'hashing' gives 32 dimensions, the collection has 64", good, HashingEncoder(32))
    refused(
        r"'hashing' does not give the projected vectors of 16 of 16 documents, among them 'd0'; "
        r"it must be the encoder that filled the collection, with this projection",
        good,
        ENCODER,
    )
    bare = client.create_collection("bare", embedding_function=None)
    bare.add(ids=["x", "y"], embeddings=np.eye(2, 64, dtype=np.float32))
    refused(r"first 2 documents of collection 'bare' have no stored text", good, debiased, bare)
    refused(
        r"1 documents have no stored vector.*\['d3'\].*migrate_encoder", good, debiased, Gap(old)
    )


class Gap:
    """A collection of which one vector cannot be read."""

    def __init__(self, collection: Any) -> None:
        self.collection = collection

    def get(self, **options: Any) -> Any:
        page = self.collection.get(**options)
        page["embeddings"] = [
            None if i == "d3" else v for i, v in zip(page["ids"], page["embeddings"], strict=True)
        ]
        return page

    def __getattr__(self, name: str) -> Any:
        return getattr(self.collection, name)


def test_one_document_of_another_encoder_is_found_by_the_sample(client: Any) -> None:
    old = make(client, 8, encoder=ENCODER)
    old.update(ids=["d5"], embeddings=np.ones((1, 64), np.float32))
    found = projection()
    with pytest.raises(DataError, match=r"1 of 8 documents, among them 'd5'"):
        migrate_projection(old, found, client=client, encoder=ProjectedEncoder(ENCODER, found))


def test_what_is_written_meanwhile_is_projected_and_comes_back(client: Any) -> None:
    old, found = make(client, encoder=ENCODER), projection()
    migration = migrate_projection(
        old, found, client=client, encoder=ProjectedEncoder(ENCODER, found)
    )
    old.add(ids=["late"], documents=["late"])
    new = migration.switch()
    old.update(ids=["d1"], embeddings=[np.ones(ENCODER.dimension)])  # a vector of its own
    old.update(ids=["d2"], documents=["another text"])
    assert migration.carry() == 2
    page = old.get(include=["embeddings"])
    held = new.get(ids=page["ids"], include=["embeddings"])
    held_by = dict(zip(held["ids"], held["embeddings"], strict=True))
    wanted = found.apply(np.asarray(page["embeddings"], np.float32))
    assert np.allclose([held_by[i] for i in page["ids"]], wanted, atol=1e-4)
    new.add(ids=["later"], documents=["later"])
    assert migration.roll_back(ENCODER).get(ids=["later"])["documents"] == ["later"]
    stored = old.get(ids=["later"], include=["embeddings"])["embeddings"]
    assert np.allclose(stored, ENCODER.encode_documents(["later"]))
