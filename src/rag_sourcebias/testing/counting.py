"""Results stay as they are and every retrieval counts exactly once (DESIGN 6: 1, 4, 5, 8)."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from rag_sourcebias.instrument import CollectingObserver, ExposureObserver
from rag_sourcebias.testing.documents import DOCUMENTS, QUERY
from rag_sourcebias.testing.hooks import PATIENCE, RetrievalHooks

__all__ = ["CountingContract"]


class CountingContract(RetrievalHooks):
    """Unchanged results, exact counts."""

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
            assert handle.flush(PATIENCE)
            assert [list(e.ranked.doc_ids) for e in observer.events] == [self.doc_ids(result)]
            if "async" not in self.unsupported:
                asyncio.run(self.asearch(handle.target, QUERY))
                assert handle.flush(PATIENCE)
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
        assert first.flush(PATIENCE)
        assert second.flush(PATIENCE)
        assert (len(one.events), len(two.events)) == (1, 2)

    # 8 Threads

    def test_eight_threads_give_exact_totals(self) -> None:
        """8 threads × 100 queries."""
        observer = ExposureObserver()
        with self.attach(self.build(DOCUMENTS), observer) as handle:
            with ThreadPoolExecutor(8) as pool:
                list(pool.map(lambda _: self.search(handle.target, QUERY), range(800)))
            assert handle.flush(PATIENCE)
            assert handle.dropped.total == 0
        counts = observer.counts()
        assert counts.n_retrievals == 800
        assert sum(g.documents for g in counts.groups.values()) == 800 * len(DOCUMENTS)
