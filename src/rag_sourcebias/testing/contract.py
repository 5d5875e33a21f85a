"""The adapter contract kit; needs pytest."""

import asyncio
import copy
import logging
import threading
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import blake2b
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pytest

from rag_sourcebias.core.data import DocTags
from rag_sourcebias.core.protocols import Encoder
from rag_sourcebias.core.tags import from_metadata
from rag_sourcebias.observe.events import RetrievalEvent
from rag_sourcebias.observe.observers import CollectingObserver, ExposureObserver
from rag_sourcebias.observe.tags import MemoryTagStore
from rag_sourcebias.observe.unobserved import suppress
from rag_sourcebias.tagging.documents import Tagger
from rag_sourcebias.testing.kit import (
    DOCUMENTS,
    PATIENCE,
    QUERY,
    ContractDocument,
    ContractFailure,
    ContractKit,
    RetrievalHooks,
    strings_in,
    tag_document,
)

# The contract of adapters that offer one of our encoders to a framework.


_TEXTS = [document.text for document in DOCUMENTS]


class SidedEncoder:
    """A small deterministic encoder whose two sides differ and which keeps what it was given."""

    name = "sided"
    dimension = 16

    def __init__(self) -> None:
        self.queries: list[str] = []
        self.documents: list[str] = []

    @property
    def fingerprint(self) -> str:
        """Identity of the encoder."""
        return "sided-16"

    @property
    def settings(self) -> Mapping[str, str]:
        """Nothing to state."""
        return {}

    def encode_queries(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Encode the query side."""
        self.queries += texts
        return self._encode(texts, "query: ")

    def encode_documents(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Encode the document side."""
        self.documents += texts
        return self._encode(texts, "passage: ")

    def _encode(self, texts: Sequence[str], prefix: str) -> npt.NDArray[np.float32]:
        rows = np.zeros((len(texts), self.dimension), np.float32)
        for row, text in zip(rows, texts, strict=True):
            digest = blake2b((prefix + text).encode(), digest_size=self.dimension).digest()
            row[:] = np.frombuffer(digest, np.uint8) / 128.0 - 1.0
        rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)
        return rows


class EncoderContract(ContractKit):
    """Inherit and implement the hooks. Capability: "async" (the ``a…`` hooks)."""

    capabilities: ClassVar[frozenset[str]] = frozenset({"async"})

    @abstractmethod
    def wrap(self, encoder: Encoder) -> Any:  # noqa: ANN401
        """Return the framework's kind of embedding over an encoder."""

    @abstractmethod
    def embed_documents(self, native: Any, texts: Sequence[str]) -> Any:  # noqa: ANN401
        """Embed documents as the framework does on indexing; one vector for each."""

    @abstractmethod
    def embed_query(self, native: Any, text: str) -> Any:  # noqa: ANN401
        """Embed one query as the framework does on searching."""

    async def aembed_documents(self, native: Any, texts: Sequence[str]) -> Any:  # noqa: ANN401
        """Embed documents asynchronously."""
        pytest.fail(f"implement it, or name async in unsupported: {native!r}, {texts!r}")

    async def aembed_query(self, native: Any, text: str) -> Any:  # noqa: ANN401
        """Embed one query asynchronously."""
        pytest.fail(f"implement it, or name async in unsupported: {native!r}, {text!r}")

    def test_documents_keep_order_and_values(self) -> None:
        """Shape (n, d), finite, as the encoder gives them."""
        encoder = SidedEncoder()
        found = np.array(self.embed_documents(self.wrap(encoder), _TEXTS), np.float32)
        assert found.shape == (len(_TEXTS), encoder.dimension)
        np.testing.assert_allclose(found, SidedEncoder().encode_documents(_TEXTS), rtol=1e-6)

    def test_a_batch_equals_its_single_texts(self) -> None:
        """No text influences another."""
        native = self.wrap(SidedEncoder())
        batch = np.array(self.embed_documents(native, _TEXTS), np.float32)
        single = [np.array(self.embed_documents(native, [t]), np.float32)[0] for t in _TEXTS]
        np.testing.assert_allclose(batch, single, rtol=1e-6)

    def test_queries_and_documents_use_their_own_side(self) -> None:
        """A query is never encoded as a document, nor the reverse; texts arrive unaltered."""
        encoder = SidedEncoder()
        native = self.wrap(encoder)
        query = np.array(self.embed_query(native, QUERY), np.float32).reshape(-1)
        np.testing.assert_allclose(query, SidedEncoder().encode_queries([QUERY])[0], rtol=1e-6)
        assert (encoder.queries, encoder.documents) == ([QUERY], [])
        self.embed_documents(native, _TEXTS)
        assert (encoder.queries, encoder.documents) == ([QUERY], _TEXTS)

    def test_async_gives_the_same(self) -> None:
        """Both sides."""
        self.need("async")
        native = self.wrap(SidedEncoder())

        async def both() -> tuple[Any, Any]:
            return await self.aembed_documents(native, _TEXTS), await self.aembed_query(
                native, QUERY
            )

        documents, query = asyncio.run(both())
        np.testing.assert_allclose(documents, self.embed_documents(native, _TEXTS), rtol=1e-6)
        np.testing.assert_allclose(query, self.embed_query(native, QUERY), rtol=1e-6)


class _Retrievals(CollectingObserver):
    """Keeps what was retrieved, and no later stage of it."""

    def observe(self, event: RetrievalEvent) -> None:
        if event.earlier is None:
            super().observe(event)


# Results stay as they are and every retrieval counts exactly once.


class CountingContract(RetrievalHooks):
    """Unchanged results, exact counts."""

    # 1 The results

    def test_results_are_unchanged(self) -> None:
        """Order, ids, count and content are those of the bare retriever."""
        target = self.build(DOCUMENTS)
        bare = self.search(target, QUERY)
        # copied: both results may hold the same documents, into which an adapter could write
        before = copy.deepcopy(self.content(bare))
        with self.attach(target, _Retrievals()) as handle:
            seen = self.search(handle.target, QUERY)
        assert type(seen) is type(bare)
        assert len(self.doc_ids(bare)) == len(DOCUMENTS)
        assert self.content(seen) == before

    def test_the_observer_sees_the_ranking_that_is_returned(self) -> None:
        """Ids in the order in which the application gets them."""
        observer = _Retrievals()
        with self.attach(self.build(DOCUMENTS), observer) as handle:
            result = self.search(handle.target, QUERY)
        (event,) = observer.events
        assert list(event.ranked.doc_ids) == self.doc_ids(result)

    # 4 Every way of asking

    def test_async_queries_are_observed_once_each(self) -> None:
        """Alone and gathered."""
        self.need("async")
        observer = _Retrievals()

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
        observer = _Retrievals()
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
        observer = _Retrievals()
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
        observer = _Retrievals()
        target = self.build(DOCUMENTS)
        with self.attach(target, observer) as outer:
            with self.attach(outer.target, observer) as inner:
                self.search(inner.target, QUERY)
            assert len(observer.events) == 1
            self.search(outer.target, QUERY)
        assert len(observer.events) == 2

    def test_two_observers_both_see_everything(self) -> None:
        """Also when the first one leaves first."""
        one, two = _Retrievals(), _Retrievals()
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


# Only ids, ranks and tags are recorded, and the tags are right.


_KEY = b"0123456789abcdef"


class RecordingContract(RetrievalHooks):
    """Privacy and tags."""

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
        observer = _Retrievals()
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
        observer = _Retrievals()
        with self.attach(self.build(DOCUMENTS), observer, labels={"route": "search"}) as handle:
            self.search(handle.target, QUERY)
        assert observer.events[0].labels["route"] == "search"


# Failures stay away from the application, and observation ends when told.


class _Raising:
    n_told = 0

    def observe(self, event: RetrievalEvent) -> None:
        self.n_told += 1
        raise RuntimeError(f"observer cannot take {len(event.ranked)} documents")


class _Blocked:
    """Holds every event until it is released."""

    def __init__(self) -> None:
        self.release = threading.Event()
        self.n_seen = 0

    def observe(self, event: RetrievalEvent) -> None:
        self.release.wait(PATIENCE)
        self.n_seen += event.earlier is None


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
        """The result is intact, one line is logged, every event is counted as dropped."""
        target, observer = self.build(DOCUMENTS), _Raising()
        bare = self.content(self.search(target, QUERY))
        with (
            caplog.at_level(logging.WARNING, "rag_sourcebias"),
            self.attach(target, observer) as handle,
        ):
            assert self.content(self.search(handle.target, QUERY)) == bare
            assert handle.flush(PATIENCE)
            assert dict(handle.dropped.by_reason) == {"observer raised": observer.n_told}
            assert observer.n_told > 0
        (line,) = [r for r in caplog.records if r.name.startswith("rag_sourcebias")]
        assert QUERY not in line.getMessage()

    def test_a_tag_store_that_fails_changes_nothing(self) -> None:
        """The retrieval is kept, its documents count as those whose tags cannot be read."""
        target = self.build(DOCUMENTS)
        observer = _Retrievals()
        bare = self.content(self.search(target, QUERY))
        with self.attach(target, observer, tags=_BrokenStore()) as handle:
            assert self.content(self.search(handle.target, QUERY)) == bare
            assert handle.flush(PATIENCE)
            assert handle.dropped.total == 0
            assert len(handle.coverage.notes) == 1
        (event,) = observer.events
        assert event.bad_tags == len(event.tags) > 0

    def test_a_failing_retrieval_raises_as_before(self) -> None:
        """The application sees its own error, and later retrievals are still counted."""
        observer = _Retrievals()
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
        observer = _Retrievals()
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


# The contract of adapters that tag documents on their way into a store, or inside it.


class TaggingContract(ContractKit):
    """Inherit and implement the hooks. Capability: "prompt" (:meth:`prompt`)."""

    capabilities: ClassVar[frozenset[str]] = frozenset({"prompt"})

    @abstractmethod
    def ingest(self, encoder: SidedEncoder, tagger: Tagger | None) -> Any:  # noqa: ANN401
        """Index ``DOCUMENTS`` with their metadata through the real framework.

        Return the store. With a tagger, tag them the adapter's way; without, do everything else
        alike.
        """

    @abstractmethod
    def stored(self, store: Any) -> Mapping[str, Mapping[str, object]]:  # noqa: ANN401
        """Return the metadata of every document in the store, by the id of the document, as an
        application gets them.
        """  # noqa: D205

    def prompt(self, store: Any) -> str:  # noqa: ANN401
        """Return the text sent to an LLM when the application answers from all documents."""
        pytest.fail(f"implement prompt, or name it in unsupported: {store!r}")

    def test_the_embedded_text_is_byte_identical(self) -> None:
        """A tag that is embedded would itself skew the ranking."""
        bare, tagged = SidedEncoder(), SidedEncoder()
        self.ingest(bare, None)
        self.ingest(tagged, tag_document)
        assert bare.documents
        assert sorted(tagged.documents) == sorted(bare.documents)

    def test_the_prompt_is_byte_identical(self) -> None:
        """An LLM must not read the tags either."""
        self.need("prompt")
        bare = self.prompt(self.ingest(SidedEncoder(), None))
        tagged = self.prompt(self.ingest(SidedEncoder(), tag_document))
        assert DOCUMENTS[0].text in bare
        assert tagged == bare

    def test_tags_come_back_from_the_store(self) -> None:
        """All of them; documents nobody knows stay untagged."""
        stored = self.stored(self.ingest(SidedEncoder(), tag_document))
        assert {i: from_metadata(m) for i, m in stored.items()} == {
            d.doc_id: d.tags for d in DOCUMENTS
        }
        assert DocTags() in {from_metadata(m) for m in stored.values()}

    def test_other_metadata_is_untouched(self) -> None:
        """Values and types, ``source`` among them."""
        stored = self.stored(self.ingest(SidedEncoder(), tag_document))
        for document in DOCUMENTS:
            found = stored[document.doc_id]
            kept = {key: found.get(key) for key in document.metadata}
            assert kept == dict(document.metadata)
            assert [type(v) for v in kept.values()] == [type(v) for v in document.metadata.values()]


# The contract of adapters that observe retrievals.


class RetrievalContract(CountingContract, RobustnessContract, RecordingContract):
    """Inherit, implement the hooks with the real framework, name what it does not have.

    Capabilities: "async" (:meth:`asearch`), "batch" (:meth:`search_batch`), "nested"
    (:meth:`build_nested`), "empty" (:meth:`build` of no documents can be searched), "metadata"
    (results carry the documents' metadata).
    """
