"""Failures stay away from the application, and observation ends when told (DESIGN 6: 6, 7)."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence

import pytest

from rag_sourcebias.instrument import CollectingObserver, RetrievalEvent, suppress
from rag_sourcebias.tagging import MemoryTagStore
from rag_sourcebias.testing.documents import DOCUMENTS, QUERY
from rag_sourcebias.testing.hooks import PATIENCE, ContractFailure, RetrievalHooks
from rag_sourcebias.types.documents import DocTags

__all__ = ["RobustnessContract"]


class _Raising:
    def observe(self, event: RetrievalEvent) -> None:
        raise RuntimeError(f"observer cannot take {len(event.ranked)} documents")


class _Blocked:
    """Holds every event until it is released."""

    def __init__(self) -> None:
        self.release = threading.Event()
        self.n_seen = 0

    def observe(self, event: RetrievalEvent) -> None:
        self.release.wait(PATIENCE)
        self.n_seen += len(event.ranked) > 0


class _BrokenStore(MemoryTagStore):
    def get(self, doc_ids: Sequence[str]) -> list[DocTags]:
        raise TimeoutError(f"no answer for {len(doc_ids)} documents")

    def get_by_hash(self, hashes: Sequence[bytes]) -> list[DocTags]:
        raise TimeoutError(f"no answer for {len(hashes)} documents")


class RobustnessContract(RetrievalHooks):
    """Failing observers, stores and retrievers; switching off."""

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
            assert handle.flush(PATIENCE)
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
            assert handle.flush(PATIENCE)
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
            assert handle.flush(PATIENCE)
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
        assert handle.flush(PATIENCE)
        assert (len(observer.events), handle.dropped.total) == (1, 0)
        assert type(target) is kind
        assert set(getattr(target, "__dict__", ())) == before
