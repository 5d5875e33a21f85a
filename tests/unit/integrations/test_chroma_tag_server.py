"""Tagging and migrating on a real Chroma server."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chroma_server import chroma_server

from rag_sourcebias.core.errors import DataError
from rag_sourcebias.tagging.rules import IdTagger

pytest.importorskip("chromadb")

import chromadb

from rag_sourcebias_integrations.chroma.collections import open_client
from rag_sourcebias_integrations.chroma.tagging import open_store, tag_collection

pytestmark = [pytest.mark.frameworks, pytest.mark.server]


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with chroma_server(tmp_path_factory.mktemp("server")) as port:
        yield port


def make(client: Any, name: str, n: int = 50) -> Any:
    collection = client.create_collection(name, embedding_function=None)
    collection.add(
        ids=[f"d{i}#{'human' if i % 2 else 'llm:x'}" for i in range(n)],
        embeddings=np.eye(n, 8, dtype=np.float32) + 1,
        documents=[f"word{i} text" for i in range(n)],
        metadatas=[{"n": i} for i in range(n)],
    )
    return collection


def test_a_collection_on_a_server_is_tagged_like_any_other(port: int, tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{port}"
    make(open_client(url), "sync")
    make(open_client(url), "other", 1)
    with pytest.raises(DataError, match=r"collections, name one of them: .*other.*sync"):
        open_store(url)
    result = open_store(url, "sync").tag([IdTagger()])
    assert (result.n_written, result.sources) == (50, {"human": 25, "llm:x": 25})
    remote = open_client(url).get_collection("sync", embedding_function=None)
    embedded = make(open_client(tmp_path), "sync")
    tag_collection(embedded, IdTagger(), batch_size=7)
    assert remote.get()["metadatas"] == embedded.get()["metadatas"]


def test_a_collection_of_the_asynchronous_client_is_refused(port: int) -> None:
    async def work() -> None:
        client = await chromadb.AsyncHttpClient(host="127.0.0.1", port=port)
        collection = await client.get_collection("async", embedding_function=None)
        with pytest.raises(DataError, match=r"AsyncHttpClient; open it with an HttpClient"):
            tag_collection(collection, IdTagger())
        for http in client._server._clients.values():  # Chroma leaves its connections open
            await http.aclose()

    make(open_client(f"http://127.0.0.1:{port}"), "async", 1)
    asyncio.run(work())
