"""Observed collections of a server: it answers, it is too slow, it dies."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("chromadb")

import chromadb
import httpx
from chroma_server import chroma_server
from chroma_texts import TextVectors, fill, new_collection

from rag_sourcebias.observe.observers import CollectingObserver
from rag_sourcebias.observe.recorder import instrument
from rag_sourcebias.testing.contract import DOCUMENTS

pytestmark = [pytest.mark.frameworks, pytest.mark.server]


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with chroma_server(tmp_path_factory.mktemp("observed")) as port:
        yield port


def filled(client: Any) -> Any:
    collection = new_collection(client)
    fill(collection, DOCUMENTS)
    return collection


def ask(collection: Any) -> Any:
    return collection.query(query_texts=["river"], n_results=3, include=["documents"])


def test_a_server_that_dies(tmp_path: Path) -> None:
    observer = CollectingObserver()
    with chroma_server(tmp_path) as port:
        client = chromadb.HttpClient(host="127.0.0.1", port=port)
        collection = filled(client)
        handle = instrument(collection, observer)
        ask(collection)
        session = client._server._session
        transport = httpx.HTTPTransport()
        session._transport, kept = transport, session._transport
        kept.close()
    client._server._session = httpx.Client()
    with client._server._session, pytest.raises(httpx.ConnectError):
        ask(collection)
    handle.close()
    assert (len(observer.events), handle.dropped.total) == (1, 0)


def test_the_asynchronous_client_and_everything_at_once(port) -> None:
    collection = filled(chromadb.HttpClient(host="127.0.0.1", port=port))
    original = type(collection).query
    observer, everything = CollectingObserver(), CollectingObserver()

    async def main() -> Any:
        client = await chromadb.AsyncHttpClient(host="127.0.0.1", port=port)
        kind = type(client)
        with instrument(client, observer), instrument("chroma", everything):
            obtained = await client.get_collection(
                collection.name, embedding_function=TextVectors()
            )
            assert asyncio.iscoroutinefunction(obtained.query)
            found = await asyncio.gather(*(ask(obtained) for _ in range(10)))
            task = asyncio.create_task(ask(obtained))
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await obtained.query(query_texts=["a", "b"])
        assert type(client) is kind
        await client._server._cleanup()
        return found

    found = asyncio.run(main())
    bare = ask(collection)
    assert found == [bare] * 10
    for seen in (observer, everything):
        assert [len(event.ranked) for event in seen.events] == [3] * 10 + [10] * 2
    assert type(collection).query is original
