"""The adapter contract on Chroma: one collection, all of them, one on a server."""

import asyncio
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

import pytest

pytest.importorskip("chromadb")

import chromadb
from chroma_server import chroma_server
from chroma_texts import TextVectors, fill, new_collection

from rag_sourcebias.observe.recorder import Instrumentation, instrument
from rag_sourcebias.testing.contract import ContractDocument, ContractFailure, RetrievalContract

pytestmark = pytest.mark.frameworks


class ChromaContract(RetrievalContract):
    unsupported: ClassVar[dict[str, str]] = {
        "nested": "no collection asks another one; see test_chroma_observe.py",
        "async": "the embedded collection is synchronous; see TestAsyncCollection",
    }

    def client(self) -> Any:
        return chromadb.EphemeralClient()

    def build(self, documents: Sequence[ContractDocument]) -> Any:
        collection = new_collection(self.client())
        if documents:
            fill(collection, documents)
        return collection

    def build_failing(self) -> Any:
        return new_collection(self.client(), TextVectors(ContractFailure("no vector")))

    def search(self, target: Any, query: str) -> Any:
        return target.query(query_texts=[query])

    def search_batch(self, target: Any, queries: Sequence[str]) -> Sequence[Any]:
        found = target.query(query_texts=list(queries))
        return [{"ids": [ids]} for ids in found["ids"]]

    def doc_ids(self, result: Any) -> list[str]:
        return list(result["ids"][0])

    def content(self, result: Any) -> Any:
        return result


class TestCollection(ChromaContract):
    """In place; the application asks for the texts only."""

    def search(self, target: Any, query: str) -> Any:
        return target.query(query_texts=[query], include=["documents"])


class TestWholeChroma(ChromaContract):
    """Every collection of the process."""

    def attach(self, target: Any, observer: Any, **options: Any) -> Instrumentation:
        handle = instrument("chroma", observer, **options)
        handle.target = target
        return handle


@contextmanager
def loop_in_a_thread() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield loop
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@pytest.fixture(scope="module")
def served(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[asyncio.AbstractEventLoop, Any]]:
    with chroma_server(tmp_path_factory.mktemp("served")) as port, loop_in_a_thread() as loop:
        opened = chromadb.AsyncHttpClient(host="127.0.0.1", port=port)
        client = asyncio.run_coroutine_threadsafe(opened, loop).result(60)
        yield loop, client
        asyncio.run_coroutine_threadsafe(client._server._cleanup(), loop).result(60)


@pytest.mark.server
class TestAsyncCollection(ChromaContract):
    """An asynchronous collection of a real server."""

    unsupported: ClassVar[dict[str, str]] = {
        "nested": "no collection asks another one; see test_chroma_observe.py",
    }

    @pytest.fixture(autouse=True)
    def _served(self, served: tuple[asyncio.AbstractEventLoop, Any]) -> None:
        self.loop, self.remote = served

    def _wait(self, coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(60)

    def _new(self, vectors: TextVectors) -> Any:
        return self._wait(new_collection(self.remote, vectors))

    def build(self, documents: Sequence[ContractDocument]) -> Any:
        collection = self._new(TextVectors())
        if documents:
            self._wait(fill(collection, documents))
        return collection

    def build_failing(self) -> Any:
        return self._new(TextVectors(ContractFailure("no vector")))

    def search(self, target: Any, query: str) -> Any:
        return self._wait(target.query(query_texts=[query]))

    def search_batch(self, target: Any, queries: Sequence[str]) -> Sequence[Any]:
        found = self._wait(target.query(query_texts=list(queries)))
        return [{"ids": [ids]} for ids in found["ids"]]

    async def asearch(self, target: Any, query: str) -> Any:
        asked = asyncio.run_coroutine_threadsafe(target.query(query_texts=[query]), self.loop)
        return await asyncio.wrap_future(asked)
