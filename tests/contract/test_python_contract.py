"""The adapter contract on plain functions: list, coroutine, generator, asynchronous generator."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any, ClassVar

from rag_sourcebias.testing.contract import ContractDocument, ContractFailure, RetrievalContract

Rows = list[dict[str, Any]]
_NO_BATCH = "a function takes one query"


def rows_of(documents: Sequence[ContractDocument]) -> Rows:
    return [
        {"id": d.doc_id, "text": d.text, "score": 1 - at / 10, "metadata": d.tagged_metadata()}
        for at, d in enumerate(documents)
    ]


class PythonContract(RetrievalContract):
    unsupported: ClassVar[dict[str, str]] = {
        "batch": _NO_BATCH,
        "async": "a plain function is synchronous; see TestCoroutineFunction",
        "nested": "a function cannot be wrapped inside another one; see test_python_adapter.py",
    }

    def doc_ids(self, result: Rows) -> list[str]:
        return [row["id"] for row in result]

    def content(self, result: Rows) -> Rows:
        return result


class TestFunction(PythonContract):
    def build(self, documents: Sequence[ContractDocument]) -> Callable[[str], Rows]:
        rows = rows_of(documents)
        return lambda query: list(rows)

    def build_failing(self) -> Callable[[str], Rows]:
        def search(query: str) -> Rows:
            raise ContractFailure(query)

        return search

    def search(self, target: Callable[[str], Rows], query: str) -> Rows:
        return target(query)


class TestCallableObject(PythonContract):
    class Search:
        def __init__(self, rows: Rows | None) -> None:
            self.rows = rows

        def __call__(self, query: str) -> Rows:
            if self.rows is None:
                raise ContractFailure(query)
            return self.rows

    def build(self, documents: Sequence[ContractDocument]) -> Search:
        return self.Search(rows_of(documents))

    def build_failing(self) -> Search:
        return self.Search(None)

    def search(self, target: Search, query: str) -> Rows:
        return target(query)


class TestGeneratorFunction(PythonContract):
    def build(self, documents: Sequence[ContractDocument]) -> Callable[[str], Iterator[Any]]:
        def search(query: str) -> Iterator[Any]:
            yield from rows_of(documents)

        return search

    def build_failing(self) -> Callable[[str], Iterator[Any]]:
        def search(query: str) -> Iterator[Any]:
            yield {"id": "the last one"}
            raise ContractFailure(query)

        return search

    def search(self, target: Callable[[str], Iterator[Any]], query: str) -> Rows:
        return list(target(query))


class AsyncContract(PythonContract):
    unsupported: ClassVar[dict[str, str]] = {
        "batch": _NO_BATCH,
        "nested": "a function cannot be wrapped inside another one; see test_python_adapter.py",
    }

    def search(self, target: Any, query: str) -> Rows:
        return asyncio.run(self.asearch(target, query))


class TestCoroutineFunction(AsyncContract):
    def build(self, documents: Sequence[ContractDocument]) -> Any:
        async def search(query: str) -> Rows:
            await asyncio.sleep(0)
            return rows_of(documents)

        return search

    def build_failing(self) -> Any:
        async def search(query: str) -> Rows:
            raise ContractFailure(query)

        return search

    async def asearch(self, target: Any, query: str) -> Rows:
        rows: Rows = await target(query)
        return rows


class TestAsyncGeneratorFunction(AsyncContract):
    def build(self, documents: Sequence[ContractDocument]) -> Any:
        async def search(query: str) -> AsyncIterator[Any]:
            for row in rows_of(documents):
                await asyncio.sleep(0)
                yield row

        return search

    def build_failing(self) -> Any:
        async def search(query: str) -> AsyncIterator[Any]:
            yield {"id": "the last one"}
            raise ContractFailure(query)

        return search

    async def asearch(self, target: Any, query: str) -> Rows:
        return [row async for row in target(query)]
