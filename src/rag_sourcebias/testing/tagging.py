"""The contract of adapters that tag documents on their way into a store, or inside it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import pytest

from rag_sourcebias.tagging.keys import from_metadata
from rag_sourcebias.tagging.taggers import Tagger
from rag_sourcebias.testing.documents import DOCUMENTS, tag_document
from rag_sourcebias.testing.encoders import SidedEncoder
from rag_sourcebias.testing.kit import ContractKit
from rag_sourcebias.types.documents import DocTags

__all__ = ["TaggingContract"]


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
