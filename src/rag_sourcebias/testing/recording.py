"""Only ids, ranks and tags are recorded, and the tags are right (DESIGN 6: 9, 10)."""

from __future__ import annotations

from rag_sourcebias.instrument import CollectingObserver, ExposureObserver
from rag_sourcebias.tagging import MemoryTagStore
from rag_sourcebias.testing.contents import strings_in
from rag_sourcebias.testing.documents import DOCUMENTS, QUERY, ContractDocument
from rag_sourcebias.testing.hooks import RetrievalHooks

__all__ = ["RecordingContract"]

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
