"""What an adapter's tests say about its framework."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import pytest

from rag_sourcebias.adapters import instrument
from rag_sourcebias.instrument import Instrumentation, RetrievalEvent
from rag_sourcebias.protocols import Observer
from rag_sourcebias.testing.documents import ContractDocument
from rag_sourcebias.testing.kit import ContractKit

__all__ = ["PATIENCE", "ContractFailure", "RetrievalHooks"]

PATIENCE = 30.0  # seconds to wait for a queue; only a broken adapter ever waits that long


class ContractFailure(Exception):  # noqa: N818 - the application's own, not an error of ours
    """What a failing retriever of the kit raises."""


class RetrievalHooks(ContractKit):
    """The hooks, and what a framework may not have."""

    capabilities: ClassVar[frozenset[str]] = frozenset(
        {"async", "batch", "nested", "empty", "metadata"}
    )

    @abstractmethod
    def build(self, documents: Sequence[ContractDocument]) -> Any:  # noqa: ANN401
        """Return a native retriever over the documents, metadata and tags
        (``document.tagged_metadata()``) included; a search returns all of them.
        """  # noqa: D205

    @abstractmethod
    def build_failing(self) -> Any:  # noqa: ANN401
        """Return a native retriever whose search raises :class:`ContractFailure`."""

    @abstractmethod
    def search(self, target: Any, query: str) -> Any:  # noqa: ANN401
        """Run one query as an application does."""

    @abstractmethod
    def doc_ids(self, result: Any) -> list[str]:  # noqa: ANN401
        """Return the document ids in a result, best first."""

    @abstractmethod
    def content(self, result: Any) -> Any:  # noqa: ANN401
        """Return everything in a result, as something two of which can be compared."""

    def build_nested(self, retriever: Any) -> Any:  # noqa: ANN401
        """Return a composite that asks ``retriever`` twice for each query."""
        pytest.fail(f"implement build_nested, or name it in unsupported: {retriever!r}")

    async def asearch(self, target: Any, query: str) -> Any:  # noqa: ANN401
        """Run one query asynchronously."""
        pytest.fail(f"implement asearch, or name it in unsupported: {target!r}, {query!r}")

    def search_batch(self, target: Any, queries: Sequence[str]) -> Sequence[Any]:  # noqa: ANN401
        """Run several queries by the framework's own batch method."""
        pytest.fail(f"implement search_batch, or name it in unsupported: {target!r}, {queries!r}")

    def attach(
        self,
        target: Any,  # noqa: ANN401
        observer: Observer[RetrievalEvent],
        **options: Any,  # noqa: ANN401
    ) -> Instrumentation:
        """Instrument; the default is what users call."""
        return instrument(target, observer, **options)
