"""Two Chroma collections on the same queries: one answers, the other is compared."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hashing_encoder import HashingEncoder

from rag_sourcebias.core.data import DocTags
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.observe.observers import ExposureObserver
from rag_sourcebias.observe.shadow import FAILED, ShadowComparison
from rag_sourcebias.tagging.stores import MemoryTagStore

pytest.importorskip("chromadb")

from rag_sourcebias_integrations.chroma.collections import open_client
from rag_sourcebias_integrations.chroma.embeddings import EncoderEmbeddingFunction
from rag_sourcebias_integrations.chroma.migration import migrate_encoder
from rag_sourcebias_integrations.chroma.observe import InstrumentedCollection
from rag_sourcebias_integrations.chroma.retriever import ShadowedCollection

pytestmark = pytest.mark.frameworks


class LastWord(HashingEncoder):
    """Reads the last word only."""

    @property
    def fingerprint(self) -> str:
        return "last-word"

    def _encode(self, texts: Any) -> np.ndarray:
        return super()._encode([text.split()[-1] for text in texts])


@pytest.fixture
def client(tmp_path: Path) -> Any:
    return open_client(tmp_path / "db")


def make(client: Any) -> tuple[Any, Any]:
    current = client.create_collection(
        "shop", embedding_function=EncoderEmbeddingFunction(HashingEncoder(256))
    )
    current.add(
        ids=["a", "b", "c", "d"],
        documents=["one two three four", "one two", "one five", "six"],
        metadatas=[{"rsb_source": "human" if i % 2 == 0 else "llm:x"} for i in range(4)],
    )
    return current, migrate_encoder(current, LastWord(256), client=client).new


def test_only_the_active_one_answers_and_both_are_compared(client: Any) -> None:
    current, candidate = make(client)
    with_text = {"query_texts": ["six two", "two two five"], "n_results": 2}
    expected, other = current.query(**with_text), candidate.query(**with_text)
    assert expected["ids"] != other["ids"]
    shadowed = ShadowedCollection(current, candidate, comparison=ShadowComparison(depth=2))
    assert shadowed.query(**with_text) == expected
    assert shadowed.flush(10)
    found = shadowed.comparison.summary()
    assert (found.n_queries, found.first_changed, found.n_dropped) == (2, 1.0, 0)
    shares = {row.source: (row.current, row.candidate) for row in found.exposure}
    assert {source: sum(pair) > 0 for source, pair in shares.items()} == {
        "human": True,
        "llm:x": True,
    }
    assert sum(pair[1] for pair in shares.values()) == pytest.approx(1)
    assert found.latency_candidate is not None

    shadowed.switch()
    assert (shadowed.active, shadowed.query(**with_text)) == ("candidate", other)
    shadowed.roll_back()
    assert (shadowed.active, shadowed.query(**with_text)) == ("current", expected)
    assert shadowed.flush(10)
    after = shadowed.comparison.summary()
    assert after.n_queries == 6
    for row in after.exposure:  # whoever answers, the columns stay who they were
        assert (row.current, row.candidate) == pytest.approx(shares[row.source])
    shadowed.close()
    assert shadowed.query(**with_text) == expected
    assert shadowed.comparison.summary().n_queries == 6


def test_tags_come_from_the_collection_whatever_the_application_asks_for(client: Any) -> None:
    current, candidate = make(client)
    shadowed = ShadowedCollection(current, candidate)
    found = shadowed.query(query_texts="one two", n_results=4, include=["distances"])
    assert found["metadatas"] is None
    assert shadowed.flush(10)
    assert {row.source for row in shadowed.comparison.summary().exposure} == {"human", "llm:x"}
    shadowed.close()
    store = MemoryTagStore()
    store.put([(doc_id, DocTags(source="store")) for doc_id in "abcd"])
    stored = ShadowedCollection(current, candidate, tag_store=store)
    stored.query(query_texts="one two", n_results=4)
    assert stored.flush(10)
    assert [row.source for row in stored.comparison.summary().exposure] == ["store"]
    stored.close()


def test_arguments_reach_both_and_positions_are_understood(client: Any) -> None:
    current, candidate = make(client)
    asked: list[Any] = []

    class Spy:
        def query(self, **options: Any) -> Any:
            asked.append(options)
            return candidate.query(**options)

        def get(self, **options: Any) -> Any:
            return candidate.get(**options)

    shadowed = ShadowedCollection(current, Spy())
    where = {"rsb_source": "human"}
    found = shadowed.query(None, ["one"], n_results=1, where=where)
    assert found["ids"] == current.query(query_texts=["one"], n_results=1, where=where)["ids"]
    assert shadowed.flush(10)
    assert [{k: v for k, v in one.items() if v is not None} for one in asked] == [
        {"query_texts": ["one"], "n_results": 1, "where": where, "include": []}
    ]
    shadowed.close()


def test_queries_by_vector_are_answered_and_counted_as_not_compared(client: Any) -> None:
    current, candidate = make(client)
    shadowed = ShadowedCollection(current, candidate)
    vectors = HashingEncoder(256).encode_queries(["one", "six", "two"])
    found = shadowed.query(query_embeddings=vectors, n_results=1)
    assert found == current.query(query_embeddings=vectors, n_results=1)
    assert shadowed.flush(10)
    summary = shadowed.comparison.summary()
    assert (summary.n_queries, summary.n_dropped) == (0, 3)
    assert shadowed.comparison.dropped.by_reason == {"query without text": 3}
    shadowed.close()


def test_failures_of_the_other_one_are_counted_and_of_the_active_one_raised(client: Any) -> None:
    current, candidate = make(client)
    shadowed = ShadowedCollection(current, candidate)
    client.delete_collection(candidate.name)
    assert shadowed.query(query_texts=["one"])["ids"][0]
    assert shadowed.flush(10)
    assert shadowed.comparison.dropped.by_reason == {FAILED: 1}
    shadowed.switch()
    with pytest.raises(Exception, match="does not exist"):
        shadowed.query(query_texts=["one"])
    shadowed.close()


def test_a_slow_candidate_does_not_delay_the_application(client: Any) -> None:
    current, candidate = make(client)
    go = threading.Event()

    class Slow:
        def query(self, **options: Any) -> Any:
            go.wait(20)
            return candidate.query(**options)

        def get(self, **options: Any) -> Any:
            return candidate.get(**options)

    shadowed = ShadowedCollection(current, Slow(), capacity=2)
    for _ in range(5):
        assert shadowed.query(query_texts=["six"], n_results=1)["ids"] == [["d"]]
    go.set()
    assert shadowed.flush(10)
    summary = shadowed.comparison.summary()
    assert summary.n_queries + summary.n_dropped == 5
    assert summary.n_dropped >= 2
    shadowed.close()


def test_everything_else_is_that_of_the_active_collection(client: Any) -> None:
    current, candidate = make(client)
    shadowed = ShadowedCollection(current, candidate)
    assert (shadowed.name, shadowed.count(), shadowed.id) == ("shop", 4, current.id)
    shadowed.add(ids=["e"], documents=["seven"])
    assert (current.count(), candidate.count()) == (5, 4)
    shadowed.switch()
    assert shadowed.id == candidate.id
    assert "Collection(name=shop) " not in repr(shadowed).partition("answers")[0]
    with pytest.raises(AttributeError):
        _ = shadowed.nothing
    shadowed.close()


def test_an_observed_collection_that_is_shadowed_counts_only_what_was_answered(
    client: Any,
) -> None:
    current, candidate = make(client)
    inner, outer = ExposureObserver(), ExposureObserver()
    seen = InstrumentedCollection(candidate, inner)
    shadowed = ShadowedCollection(current, seen)
    observed = InstrumentedCollection(shadowed, outer)
    observed.query(query_texts=["one"], n_results=2)
    assert shadowed.flush(10)
    observed.instrumentation.close()
    seen.instrumentation.close()
    assert (outer.counts().n_retrievals, inner.counts().n_retrievals) == (1, 0)
    assert shadowed.comparison.summary().n_queries == 1
    shadowed.close()


def test_what_cannot_be_shadowed_is_refused(client: Any) -> None:
    current, candidate = make(client)

    class Asynchronous:
        async def query(self) -> None: ...

    for one in ("shop", Asynchronous()):
        with pytest.raises(DataError, match="expected a Chroma collection of a synchronous client"):
            ShadowedCollection(current, one)
    with pytest.raises(DataError, match=r"share 2 is outside \[0, 1\]"):
        ShadowedCollection(current, candidate, share=2)
