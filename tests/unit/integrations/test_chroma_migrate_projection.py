"""A projection for a collection: its stored vectors, its copy, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hashing_encoder import HashingEncoder

from rag_sourcebias.core.errors import DataError
from rag_sourcebias.retrieval.projection import ProjectedEncoder, SourceProjection

pytest.importorskip("chromadb")


from rag_sourcebias_integrations.chroma.collections import open_client
from rag_sourcebias_integrations.chroma.embeddings import EncoderEmbeddingFunction
from rag_sourcebias_integrations.chroma.migration import migrate_projection

pytestmark = pytest.mark.frameworks

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


@pytest.fixture
def client(tmp_path: Path) -> Any:
    return open_client(tmp_path / "db")


def make(client: Any, n: int = 40, encoder: Any = ENCODER, **options: Any) -> Any:
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
    old, found = make(client), projection()
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
    old = make(client)

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
    old = make(client, 8)
    old.update(ids=["d5"], embeddings=np.ones((1, 64), np.float32))
    found = projection()
    with pytest.raises(DataError, match=r"1 of 8 documents, among them 'd5'"):
        migrate_projection(old, found, client=client, encoder=ProjectedEncoder(ENCODER, found))


def test_what_is_written_meanwhile_is_projected_and_comes_back(client: Any) -> None:
    old, found = make(client), projection()
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
