"""A Chroma database opened as a store of documents."""

from __future__ import annotations

import base64
import socket
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from rag_sourcebias.core.data import DocTags
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.tagging.documents import WritableStore
from rag_sourcebias.tagging.rules import IdTagger

pytest.importorskip("chromadb")

import chromadb

from rag_sourcebias_integrations.chroma.collections import open_client
from rag_sourcebias_integrations.chroma.tagging import open_store

pytestmark = pytest.mark.frameworks


@pytest.fixture
def place(tmp_path: Path) -> str:
    client = open_client(tmp_path / "db")
    collection = client.create_collection("docs", embedding_function=None)
    collection.add(
        ids=["a#human", "b#llm:x", "c"],
        embeddings=[[1.0], [2.0], [3.0]],
        documents=["text a", None, "text c"],
        metadatas=[{"k": 1}, None, {"k": 3}],
    )
    return str(tmp_path / "db")


def test_documents_and_tags_are_read_and_written(place: str, tmp_path: Path) -> None:
    store = open_store(place)
    assert isinstance(store, WritableStore)
    assert (store.name, len(store)) == ("chroma:docs", 3)
    assert list(store.documents()) == [
        ("a#human", "text a", {"k": 1}),
        ("b#llm:x", "", {}),
        ("c", "text c", {"k": 3}),
    ]
    assert [tags for _, tags in store.tags()] == [DocTags()] * 3
    steps: list[int] = []
    assert store.tag([IdTagger()], dry_run=True).n_written == 3
    assert store.tag([IdTagger()], on_progress=steps.append).sources == {"human": 1, "llm:x": 1}
    assert steps == [3]
    assert dict(open_store(place, "docs").tags()) == {
        "a#human": DocTags(source="human", pair_id="a", origin="declared"),
        "b#llm:x": DocTags(source="llm:x", pair_id="b", origin="declared"),
        "c": DocTags(),
    }
    again = store.tag([IdTagger(r"(?P<style>\w)$")], overwrite=True, backup=tmp_path / "old.sqlite")
    assert again.styles == {"n": 1, "x": 1, "c": 1}


def test_a_collection_has_to_be_named_where_there_are_several(place: str) -> None:
    open_client(place).create_collection("more", embedding_function=None)
    with pytest.raises(DataError, match=r"has 2 collections, name one of them: docs, more"):
        open_store(place)
    with pytest.raises(DataError, match=r"no collection 'dcos'; there are docs, more"):
        open_store(place, "dcos")
    assert open_store(place, "more").name == "chroma:more"


def test_a_server_that_is_not_there_is_named() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{probe.getsockname()[1]}"
    with pytest.raises(DataError, match=rf"{url}.*cannot be reached"):
        open_store(url)
    for secret in (
        url.replace("//", "//bob:hunter2@"),
        url.replace("http://", "ftp://bob:hunter2@"),
        url.replace("//", "//bob:hunter2@") + "x",
    ):
        with pytest.raises(DataError) as caught:
            open_store(secret)
        assert "hunter2" not in str(caught.value)


def test_user_and_password_of_an_address_are_sent_and_not_shown() -> None:
    seen: list[str] = []

    class Refuses(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(self.headers.get("Authorization", ""))
            self.send_error(403)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Refuses) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with pytest.raises(DataError) as caught:
            open_store(f"http://bob:hunter2@127.0.0.1:{server.server_port}")
        server.shutdown()
    assert seen[0] == "Basic " + base64.b64encode(b"bob:hunter2").decode()
    assert "hunter2" not in str(caught.value)
    assert seen[0].split()[1] not in str(caught.value)


def test_a_store_that_this_process_has_open_otherwise_says_what_to_do(tmp_path: Path) -> None:
    other = chromadb.config.Settings(allow_reset=True)
    client = chromadb.PersistentClient(str(tmp_path), settings=other)
    client.create_collection("docs", embedding_function=None)
    with pytest.raises(DataError, match=r"different settings\); .* use ChromaStore\(collection\)"):
        open_store(str(tmp_path))
