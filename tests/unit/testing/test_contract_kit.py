"""The kit passes a right adapter and fails each wrong one, in the test that names the fault."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import pytest

from rag_sourcebias.observe.recorder import Attachment, Instrumentation, Recorder
from rag_sourcebias.testing.contract import (
    ContractDocument,
    ContractFailure,
    EncoderContract,
    RetrievalContract,
    SidedEncoder,
    TaggingContract,
)

Native = list[dict[str, Any]]


class Searcher:
    """The smallest retriever there is; ``search`` is what an adapter wraps."""

    def __init__(self, rows: Native | None, inner: Searcher | None = None) -> None:
        self.rows = rows
        self.inner = inner

    def search(self, query: str) -> Native:
        if self.inner is not None:
            first, again = self.inner.search(query), self.inner.search(query.upper())
            return [row for row in first if row in again]
        if self.rows is None:
            raise ContractFailure(query)
        return list(self.rows)


def written_into(rows: Native) -> Native:
    for row in rows:
        row["metadata"]["seen"] = True  # the searcher's own documents
    return rows


SPOIL: dict[str, Callable[[Native], Native]] = {
    "reverses": lambda rows: rows[::-1],
    "drops": lambda rows: rows[:-1],
    "doubles": lambda rows: rows + rows[:1],
    "mutates": written_into,
}


def observed(
    recorder: Recorder, search: Callable[[str], Native], fault: str
) -> Callable[[str], Native]:
    @functools.wraps(search)
    def wrapper(query: str) -> Native:
        with recorder.retrieval() as first:
            try:
                rows = search(query)
            except ContractFailure:
                if fault == "swallows":
                    return []
                raise
        rows = SPOIL.get(fault, list)(rows)
        if fault == "raises":
            recorder.observer.observe(rows)  # type: ignore[arg-type]
        if first or fault == "counts nested":
            for _ in range({"misses": 0, "counts twice": 2}.get(fault, 1)):
                recorder.record(
                    [row["text"] if fault == "keeps text" else row["id"] for row in rows],
                    metadata=[] if fault == "no tags" else [row["metadata"] for row in rows],
                    query=query,
                )
        return rows

    return wrapper


class SearcherContract(RetrievalContract):
    unsupported: ClassVar[dict[str, str]] = {
        "async": "the searcher is synchronous",
        "batch": "it takes one query",
    }
    fault = ""

    def build(self, documents: Sequence[ContractDocument]) -> Searcher:
        return Searcher(
            [{"id": d.doc_id, "text": d.text, "metadata": d.tagged_metadata()} for d in documents]
        )

    def build_failing(self) -> Searcher:
        return Searcher(None)

    def build_nested(self, retriever: Searcher) -> Searcher:
        return Searcher(None, retriever)

    def search(self, target: Searcher, query: str) -> Native:
        return target.search(query)

    def doc_ids(self, result: Native) -> list[str]:
        return [row["id"] for row in result]

    def content(self, result: Native) -> object:
        return result

    def attach(self, target: Any, observer: Any, **options: Any) -> Instrumentation:
        recorder = Recorder(observer, **options)
        searchers = [target, target.inner] if target.inner is not None else [target]
        for searcher in searchers:
            searcher.layers = [*getattr(searcher, "layers", []), recorder]
            self._wrap(searcher)

        def detach() -> None:
            if self.fault != "never leaves":
                for searcher in searchers:
                    searcher.layers.remove(recorder)
                    self._wrap(searcher)

        return Instrumentation(recorder, Attachment(target, detach))

    def _wrap(self, searcher: Any) -> None:
        search = functools.partial(Searcher.search, searcher)
        for recorder in searcher.layers:
            search = observed(recorder, search, self.fault)
        if searcher.layers:
            searcher.search = search
        else:
            del searcher.search, searcher.layers


class TestSearcher(SearcherContract):
    """The right adapter passes everything."""


@pytest.mark.parametrize(
    ("fault", "test"),
    [
        ("reverses", "test_results_are_unchanged"),
        ("drops", "test_results_are_unchanged"),
        ("doubles", "test_results_are_unchanged"),
        ("mutates", "test_results_are_unchanged"),
        ("misses", "test_the_observer_sees_the_ranking_that_is_returned"),
        ("counts twice", "test_the_observer_sees_the_ranking_that_is_returned"),
        ("counts twice", "test_eight_threads_give_exact_totals"),
        ("counts nested", "test_a_nested_retrieval_counts_once"),
        ("counts nested", "test_attached_twice_counts_once"),
        ("swallows", "test_a_failing_retrieval_raises_as_before"),
        ("never leaves", "test_suppress_and_close_end_the_observation"),
        ("never leaves", "test_two_observers_both_see_everything"),
        ("keeps text", "test_only_ids_ranks_and_tags_are_recorded"),
        ("no tags", "test_tags_of_the_metadata_are_observed"),
    ],
)
def test_a_wrong_adapter_fails(fault: str, test: str) -> None:
    class Wrong(SearcherContract):
        pass

    Wrong.fault = fault
    with pytest.raises((AssertionError, pytest.fail.Exception, ValueError)):
        getattr(Wrong(), test)()


def test_an_adapter_through_which_the_observer_raises_fails(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Wrong(SearcherContract):
        fault = "raises"

    with pytest.raises((RuntimeError, TypeError, AttributeError)):
        Wrong().test_an_observer_that_raises_changes_nothing(caplog)


def test_a_test_of_the_kit_cannot_be_replaced() -> None:
    with pytest.raises(TypeError, match="replaces test_results_are_unchanged of the contract"):

        class Cheating(SearcherContract):
            def test_results_are_unchanged(self) -> None:
                pass


@pytest.mark.parametrize(
    ("unsupported", "message"),
    [({"async": " "}, "say why 'async'"), ({"speed": "slow"}, "'speed' is no capability")],
)
def test_what_is_not_supported_needs_a_reason(unsupported: dict[str, str], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        type("Silent", (SearcherContract,), {"unsupported": unsupported, "__module__": __name__})


class TestSided(EncoderContract):
    """The encoder of the kit itself."""

    unsupported: ClassVar[dict[str, str]] = {"async": "numpy only"}

    def wrap(self, encoder: Any) -> Any:
        return encoder

    def embed_documents(self, native: Any, texts: Sequence[str]) -> Any:
        return native.encode_documents(texts)

    def embed_query(self, native: Any, text: str) -> Any:
        return native.encode_queries([text])[0]


def test_an_encoder_that_mixes_up_its_sides_fails() -> None:
    class Mixed(TestSided):
        def embed_query(self, native: Any, text: str) -> Any:
            return native.encode_documents([text])[0]

    with pytest.raises(AssertionError):
        Mixed().test_queries_and_documents_use_their_own_side()


class EmbedsTags(TaggingContract):
    """Puts the tags into the text, which is the fault the contract exists for."""

    unsupported: ClassVar[dict[str, str]] = {"prompt": "no LLM here"}

    def ingest(self, encoder: SidedEncoder, tagger: Any) -> dict[str, dict[str, object]]:
        from rag_sourcebias.core.tags import to_metadata
        from rag_sourcebias.testing.contract import DOCUMENTS

        store = {}
        for d in DOCUMENTS:
            tags = tagger(d.doc_id, d.text, d.metadata) if tagger else None
            found = {} if tags is None else to_metadata(tags)
            encoder.encode_documents([f"{found} {d.text}" if found else d.text])
            store[d.doc_id] = {**d.metadata, **found}
        return store

    def stored(self, store: dict[str, dict[str, object]]) -> dict[str, dict[str, object]]:
        return store


def test_tags_in_the_embedded_text_fail() -> None:
    with pytest.raises(AssertionError):
        EmbedsTags().test_the_embedded_text_is_byte_identical()
    EmbedsTags().test_tags_come_back_from_the_store()
    EmbedsTags().test_other_metadata_is_untouched()
