"""The contract of adapters that observe retrievals."""

from __future__ import annotations

import asyncio
import logging
import threading
from abc import abstractmethod
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar

import pytest

from rag_sourcebias.adapters import instrument
from rag_sourcebias.instrument import (
    CollectingObserver,
    ExposureObserver,
    Instrumentation,
    RetrievalEvent,
    suppress,
)
from rag_sourcebias.protocols import Observer
from rag_sourcebias.tagging import MemoryTagStore
from rag_sourcebias.testing.contents import strings_in
from rag_sourcebias.testing.documents import DOCUMENTS, QUERY, ContractDocument
from rag_sourcebias.testing.kit import ContractKit
from rag_sourcebias.types.documents import DocTags

__all__ = ["ContractFailure", "RetrievalContract"]

_KEY = b"0123456789abcdef"
_PATIENCE = 30.0  # seconds; only a broken adapter ever waits that long


class ContractFailure(Exception):  # noqa: N818 - the application's own, not an error of ours
    """What a failing retriever of the kit raises."""


class _Raising:
    def observe(self, event: RetrievalEvent) -> None:
        raise RuntimeError(f"observer cannot take {len(event.ranked)} documents")


class _Blocked:
    """Holds every event until it is released."""

    def __init__(self) -> None:
        self.release = threading.Event()
        self.n_seen = 0

    def observe(self, event: RetrievalEvent) -> None:
        self.release.wait(_PATIENCE)
        self.n_seen += len(event.ranked) > 0


class _BrokenStore(MemoryTagStore):
    def get(self, doc_ids: Sequence[str]) -> list[DocTags]:
        raise TimeoutError(f"no answer for {len(doc_ids)} documents")

    def get_by_hash(self, hashes: Sequence[bytes]) -> list[DocTags]:
        raise TimeoutError(f"no answer for {len(hashes)} documents")


class RetrievalContract(ContractKit):
    """Inherit, implement the hooks with the real framework, name what it does not have.

    Capabilities: "async" (:meth:`asearch`), "batch" (:meth:`search_batch`), "nested"
    (:meth:`build_nested`), "empty" (:meth:`build` of no documents can be searched), "metadata"
    (results carry the documents' metadata).
    """

    capabilities: ClassVar[frozenset[str]] = frozenset(
        {"async", "batch", "nested", "empty", "metadata"}
    )

    # Hooks

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

    # 1 The results

    def test_results_are_unchanged(self) -> None:
        """Order, ids, count and content are those of the bare retriever."""
        target = self.build(DOCUMENTS)
        bare = self.search(target, QUERY)
        with self.attach(target, CollectingObserver()) as handle:
            seen = self.search(handle.target, QUERY)
        assert type(seen) is type(bare)
        assert len(self.doc_ids(bare)) == len(DOCUMENTS)
        assert self.content(seen) == self.content(bare)

    def test_the_observer_sees_the_ranking_that_is_returned(self) -> None:
        """Ids in the order in which the application gets them."""
        observer = CollectingObserver()
        with self.attach(self.build(DOCUMENTS), observer) as handle:
            result = self.search(handle.target, QUERY)
        (event,) = observer.events
        assert list(event.ranked.doc_ids) == self.doc_ids(result)

    # 4 Every way of asking

    def test_async_queries_are_observed_once_each(self) -> None:
        """Alone and gathered."""
        self.need("async")
        observer = CollectingObserver()

        async def ask(target: object) -> list[Any]:
            alone = await self.asearch(target, QUERY)
            return [alone, *await asyncio.gather(*(self.asearch(target, QUERY) for _ in range(20)))]

        target = self.build(DOCUMENTS)
        bare = self.content(asyncio.run(ask(target))[0])
        with self.attach(target, observer) as handle:
            results = asyncio.run(ask(handle.target))
        assert len(observer.events) == 21
        assert all(self.content(result) == bare for result in results)

    def test_a_batch_is_observed_query_by_query(self) -> None:
        """As many events as queries."""
        self.need("batch")
        observer = CollectingObserver()
        with self.attach(self.build(DOCUMENTS), observer) as handle:
            results = self.search_batch(handle.target, [f"{QUERY} {n}" for n in range(5)])
        assert len(results) == 5
        assert len(observer.events) == 5
        assert {event.ranked.doc_ids for event in observer.events} == {
            tuple(self.doc_ids(result)) for result in results
        }

    # 5 Once

    def test_a_nested_retrieval_counts_once(self) -> None:
        """One user query through a composite of two is one event, with the final ranking."""
        self.need("nested")
        observer = CollectingObserver()
        composite = self.build_nested(self.build(DOCUMENTS))
        with self.attach(composite, observer) as handle:
            result = self.search(handle.target, QUERY)
            assert handle.flush(_PATIENCE)
            assert [list(e.ranked.doc_ids) for e in observer.events] == [self.doc_ids(result)]
            if "async" not in self.unsupported:
                asyncio.run(self.asearch(handle.target, QUERY))
                assert handle.flush(_PATIENCE)
                assert len(observer.events) == 2

    def test_attached_twice_counts_once(self) -> None:
        """The same observer, registered twice, sees each retrieval once."""
        observer = CollectingObserver()
        target = self.build(DOCUMENTS)
        with self.attach(target, observer) as outer:
            with self.attach(outer.target, observer) as inner:
                self.search(inner.target, QUERY)
            assert len(observer.events) == 1
            self.search(outer.target, QUERY)
        assert len(observer.events) == 2

    def test_two_observers_both_see_everything(self) -> None:
        """Also when the first one leaves first."""
        one, two = CollectingObserver(), CollectingObserver()
        target = self.build(DOCUMENTS)
        first = self.attach(target, one)
        second = self.attach(first.target, two)
        self.search(second.target, QUERY)
        first.close()
        self.search(second.target, QUERY)
        second.close()
        self.search(target, QUERY)
        assert (len(one.events), len(two.events)) == (1, 2)

    # 6 Failures

    def test_an_observer_that_raises_changes_nothing(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        """The result is intact, one line is logged, one event is counted as dropped."""
        target = self.build(DOCUMENTS)
        bare = self.content(self.search(target, QUERY))
        with (
            caplog.at_level(logging.WARNING, "rag_sourcebias"),
            self.attach(target, _Raising()) as handle,
        ):
            assert self.content(self.search(handle.target, QUERY)) == bare
            assert handle.flush(_PATIENCE)
            assert dict(handle.dropped.by_reason) == {"observer raised": 1}
        (line,) = [r for r in caplog.records if r.name.startswith("rag_sourcebias")]
        assert QUERY not in line.getMessage()

    def test_a_tag_store_that_fails_changes_nothing(self) -> None:
        """The event is dropped and counted rather than taken for untagged."""
        target = self.build(DOCUMENTS)
        observer = CollectingObserver()
        bare = self.content(self.search(target, QUERY))
        with self.attach(target, observer, tags=_BrokenStore()) as handle:
            assert self.content(self.search(handle.target, QUERY)) == bare
            assert handle.flush(_PATIENCE)
            assert dict(handle.dropped.by_reason) == {"tag store failed": 1}
        assert observer.events == ()

    def test_a_failing_retrieval_raises_as_before(self) -> None:
        """The application sees its own error, and later retrievals are still counted."""
        observer = CollectingObserver()
        with (
            self.attach(self.build_failing(), observer) as handle,
            pytest.raises(ContractFailure),
        ):
            self.search(handle.target, QUERY)
        assert (observer.events, handle.dropped.total) == ((), 0)
        with self.attach(self.build(DOCUMENTS), observer) as handle:
            self.search(handle.target, QUERY)
        assert len(observer.events) == 1

    def test_the_application_does_not_wait_for_the_observer(self) -> None:
        """Results come back while the observer is blocked."""
        observer = _Blocked()
        with self.attach(self.build(DOCUMENTS), observer) as handle:
            for _ in range(3):
                self.search(handle.target, QUERY)
            assert observer.n_seen == 0
            observer.release.set()
            assert handle.flush(_PATIENCE)
        assert observer.n_seen == 3

    # 7 Off

    def test_suppress_and_close_end_the_observation(self) -> None:
        """Closing restores the object; closing twice does no harm."""
        observer = CollectingObserver()
        target = self.build(DOCUMENTS)
        kind, before = type(target), set(getattr(target, "__dict__", ()))
        bare = self.content(self.search(target, QUERY))
        handle = self.attach(target, observer)
        with suppress():
            self.search(handle.target, QUERY)
        self.search(handle.target, QUERY)
        handle.close()
        handle.close()
        assert len(observer.events) == 1
        assert self.content(self.search(handle.target, QUERY)) == bare
        assert self.content(self.search(target, QUERY)) == bare
        assert (len(observer.events), handle.dropped.total) == (1, 0)
        assert type(target) is kind
        assert set(getattr(target, "__dict__", ())) == before

    # 8 Threads

    def test_eight_threads_give_exact_totals(self) -> None:
        """8 threads × 100 queries."""
        observer = ExposureObserver()
        with self.attach(self.build(DOCUMENTS), observer) as handle:
            with ThreadPoolExecutor(8) as pool:
                list(pool.map(lambda _: self.search(handle.target, QUERY), range(800)))
            assert handle.flush(_PATIENCE)
            assert handle.dropped.total == 0
        counts = observer.counts()
        assert counts.n_retrievals == 800
        assert sum(g.documents for g in counts.groups.values()) == 800 * len(DOCUMENTS)

    # 9 Privacy

    def test_only_ids_ranks_and_tags_are_recorded(self) -> None:
        """Neither the query nor a text nor other metadata; a hash of the query where asked for."""
        observer = CollectingObserver()
        target = self.build(DOCUMENTS)
        with self.attach(target, observer) as handle:
            self.search(handle.target, QUERY)
        held = strings_in(observer.events)
        assert not [text for text in held if QUERY in text]
        for document in DOCUMENTS:
            assert not [
                t for t in held if document.text in t or str(document.metadata["source"]) in t
            ]
        assert observer.events[0].query_hash is None
        hashed = CollectingObserver()
        with self.attach(target, hashed, query_key=_KEY) as handle:
            self.search(handle.target, QUERY)
        assert not [text for text in strings_in(hashed.events) if QUERY in text]

    # 10 Tags

    def test_tags_of_the_metadata_are_observed(self) -> None:
        """Untagged documents are counted as untagged, never as human."""
        self.need("metadata")
        observer = CollectingObserver()
        with self.attach(self.build(DOCUMENTS), observer) as handle:
            result = self.search(handle.target, QUERY)
        (event,) = observer.events
        expected = {document.doc_id: document.tags for document in DOCUMENTS}
        assert list(event.tags) == [expected[doc_id] for doc_id in self.doc_ids(result)]

    def test_tags_of_a_store_are_observed(self) -> None:
        """A sidecar is looked up by document id; what it does not know stays unknown."""
        plain = [
            ContractDocument(doc_id=d.doc_id, text=d.text, metadata=d.metadata) for d in DOCUMENTS
        ]
        store = MemoryTagStore()
        store.put(
            [(d.doc_id, d.tags) for d in DOCUMENTS[:5]], {d.doc_id: d.text for d in DOCUMENTS}
        )
        by_source, by_style = ExposureObserver(), ExposureObserver(by="style")
        target = self.build(plain)
        with self.attach(target, by_source, tags=store) as handle:
            self.search(handle.target, QUERY)
        with self.attach(target, by_style, tags=store) as handle:
            self.search(handle.target, QUERY)
        found = {name: g.documents for name, g in by_source.counts().groups.items()}
        assert found == {"": 6, "human": 2, "llm:alpha": 1, "llm:beta": 1}
        assert {n: g.documents for n, g in by_style.counts().groups.items()} == {"": 6, "plain": 4}

    def test_an_empty_result_is_a_retrieval(self) -> None:
        """It is counted, with no documents."""
        self.need("empty")
        observer = ExposureObserver()
        with self.attach(self.build([]), observer) as handle:
            assert self.doc_ids(self.search(handle.target, QUERY)) == []
        counts = observer.counts()
        assert (counts.n_retrievals, counts.n_empty, dict(counts.groups)) == (1, 1, {})

    def test_labels_reach_the_observer(self) -> None:
        """As they were given."""
        observer = CollectingObserver()
        with self.attach(self.build(DOCUMENTS), observer, labels={"route": "search"}) as handle:
            self.search(handle.target, QUERY)
        assert observer.events[0].labels["route"] == "search"
