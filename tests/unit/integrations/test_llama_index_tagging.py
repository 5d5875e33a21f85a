"""Tagging nodes inside LlamaIndex's ingestion: text untouched, cache and docstore understood."""

import asyncio
import pickle
from collections.abc import Mapping
from typing import Any

import pytest
from hashing_encoder import HashingEncoder

pytest.importorskip("llama_index.core")

from llama_index.core.ingestion import IngestionCache, IngestionPipeline
from llama_index.core.schema import (
    BaseNode,
    Document,
    MetadataMode,
    NodeRelationship,
    RelatedNodeInfo,
    TextNode,
    TransformComponent,
)

from rag_sourcebias.core.data import DocTags
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.core.tags import FINGERPRINT_KEY, METADATA_KEYS, TagStore, from_metadata
from rag_sourcebias.observe.tags import MemoryTagStore, SqliteTagStore
from rag_sourcebias.tagging.rules import IdTagger
from rag_sourcebias_integrations.llama_index.embeddings import EncoderEmbedding
from rag_sourcebias_integrations.llama_index.tagging import SourceTagger

pytestmark = pytest.mark.frameworks

ALL_KEYS = {*METADATA_KEYS, FINGERPRINT_KEY}


class Halves(TransformComponent):
    """Cuts documents in two (LlamaIndex's own splitters need files of nltk)."""

    def __call__(self, nodes: Any, **kwargs: Any) -> list[BaseNode]:
        found = []
        for node in nodes:
            text = node.get_content(metadata_mode=MetadataMode.NONE)
            for part in (text[: len(text) // 2], text[len(text) // 2 :]):
                cut = TextNode(text=part, metadata=dict(node.metadata))
                cut.relationships[NodeRelationship.SOURCE] = RelatedNodeInfo(node_id=node.node_id)
                found.append(cut)
        return found


class Versioned:
    """A tagger with an identity, that counts its calls."""

    def __init__(self, source: str) -> None:
        self.fingerprint = f"versioned {source}"
        self.source = source
        self.seen: list[str] = []

    def __call__(self, doc_id: str, text: str, metadata: Mapping[str, object]) -> DocTags:
        self.seen.append(doc_id)
        return DocTags(source=self.source)


def tag_by_word(doc_id: str, text: str, metadata: Mapping[str, object]) -> DocTags | None:
    if "unknown" in text:
        return None
    if "broken" in text:
        raise ValueError(f"cannot tag {doc_id}")
    return DocTags(source="llm:x" if "machine" in text else "human", pair_id=doc_id)


def node(text: str, **metadata: Any) -> TextNode:
    return TextNode(
        id_=text.split(maxsplit=1)[0], text=text, metadata={"source": "a.md", **metadata}
    )


def tags_of(nodes: Any) -> list[str | None]:
    return [from_metadata(found.metadata).source for found in nodes]


def test_tags_stay_out_of_both_texts() -> None:
    nodes = [node("one human"), node("two machine"), node("three unknown")]
    texts = [[n.get_content(metadata_mode=mode) for mode in MetadataMode] for n in nodes]
    given = [n.model_dump() for n in nodes]
    done = SourceTagger(tag_by_word)(nodes)
    assert [n.model_dump() for n in nodes] == given
    assert tags_of(done) == ["human", "llm:x", None]
    for found, before in zip(done, texts, strict=True):
        assert set(found.excluded_embed_metadata_keys) >= ALL_KEYS
        assert set(found.excluded_llm_metadata_keys) >= ALL_KEYS
        for mode, text in zip(MetadataMode, before, strict=True):
            if mode != MetadataMode.ALL:
                assert found.get_content(metadata_mode=mode) == text
        assert found.metadata["source"] == "a.md"


def test_tagging_again_replaces_all_tags_and_lists_keys_once() -> None:
    one = node("one human", rsb_style="news", rsb_confidence=0.2)
    tagger = SourceTagger(Versioned("llm:y"))
    (one,) = tagger(tagger([one]))
    assert {k: v for k, v in one.metadata.items() if k in METADATA_KEYS} == {"rsb_source": "llm:y"}
    assert len(one.excluded_llm_metadata_keys) == len(ALL_KEYS)


def test_the_tagger_sees_the_source_document_the_text_and_the_metadata() -> None:
    seen = []

    def look(doc_id: str, text: str, metadata: Mapping[str, object]) -> None:
        seen.append((doc_id, text, metadata["source"]))
        dict.clear(metadata)  # a tagger's own copy

    pipeline = IngestionPipeline(
        transformations=[Halves(), SourceTagger(look, fingerprint="look")], disable_cache=True
    )
    done = pipeline.run(documents=[Document(id_="doc", text="abcd", metadata={"source": "x"})])
    assert seen == [("doc", "ab", "x"), ("doc", "cd", "x")]
    assert [found.metadata["source"] for found in done] == ["x", "x"]


def test_ids_of_documents_tag_their_chunks() -> None:
    tagger = SourceTagger(IdTagger())
    done = IngestionPipeline(transformations=[Halves(), tagger]).run(
        documents=[Document(id_="q1-human", text="abcd"), Document(id_="q1-llm:x", text="efgh")]
    )
    direct = [IdTagger()(found.ref_doc_id, "", {}) for found in done]
    assert [from_metadata(found.metadata) for found in done] == [t or DocTags() for t in direct]


def test_a_tagger_that_raises_leaves_the_node_and_is_counted() -> None:
    nodes = [node("one human"), node("broken"), node("two machine")]
    before = nodes[1].model_dump()
    tagger = SourceTagger(tag_by_word)
    done = tagger(nodes)
    assert tags_of(done) == ["human", None, "llm:x"]
    assert done[1] is nodes[1]
    assert nodes[1].model_dump() == before
    assert dict(tagger.dropped.by_reason) == {"tagger raised": 1}


def test_async_runs_and_copies_for_other_processes_tag_as_well() -> None:
    tagger = pickle.loads(pickle.dumps(SourceTagger(tag_by_word)))
    pipeline = IngestionPipeline(transformations=[tagger])
    assert tags_of(asyncio.run(pipeline.arun(nodes=[node("one machine")]))) == ["llm:x"]


# The cache


def test_the_cache_is_hit_by_the_same_and_missed_by_another_tagger() -> None:
    cache = IngestionCache()

    def run(tagger: Versioned) -> list[str | None]:
        steps = [SourceTagger(tagger)]
        nodes = [node("one"), node("two")]
        return tags_of(IngestionPipeline(transformations=steps, cache=cache).run(nodes=nodes))

    first, same, other = Versioned("human"), Versioned("human"), Versioned("llm:y")
    assert run(first) == ["human"] * 2
    assert run(same) == ["human"] * 2
    assert run(other) == ["llm:y"] * 2
    assert [len(t.seen) for t in (first, same, other)] == [2, 0, 2]


def test_after_the_embedding_new_tags_embed_nothing_again() -> None:
    cache = IngestionCache()
    encoder = HashingEncoder()
    for source in ("human", "llm:y"):
        steps = [EncoderEmbedding(encoder), SourceTagger(Versioned(source))]
        done = IngestionPipeline(transformations=steps, cache=cache).run(nodes=[node("one two")])
        assert tags_of(done) == [source]
    assert len(encoder.calls) == 1


# The sidecar


def test_a_sidecar_leaves_the_nodes_alone() -> None:
    store = MemoryTagStore()
    nodes = [node("one human"), node("two machine"), node("broken"), node("three unknown")]
    before = [found.model_dump() for found in nodes]
    tagger = SourceTagger(tag_by_word, store=store)
    assert tagger(nodes) is nodes
    assert [found.model_dump() for found in nodes] == before
    assert [t.source for t in store.get(["one", "two", "broken"])] == ["human", "llm:x", None]
    assert store.get_by_text(["two machine"])[0].source == "llm:x"
    assert dict(tagger.dropped.by_reason) == {"tagger raised": 1}


def test_a_sidecar_that_cannot_be_written_is_counted(tmp_path: Any) -> None:
    class Full(MemoryTagStore):
        def put(self, rows: Any, texts: Any = None) -> None:
            raise OSError(28, "No space left on device")

    store: TagStore = Full()
    tagger = SourceTagger(tag_by_word, store=store)
    nodes = [node("one human")]
    assert tagger(nodes) is nodes
    assert dict(tagger.dropped.by_reason) == {"tag store failed": 1}
    on_disk = SqliteTagStore(tmp_path / "tags.sqlite")
    SourceTagger(tag_by_word, store=on_disk)(nodes)
    assert len(on_disk) == 1


# The docstore


def test_taggers_without_an_identity_are_refused() -> None:
    for wrong in ([], ["rules.yaml"]):
        with pytest.raises(DataError, match="no taggers"):
            SourceTagger(wrong, fingerprint="v1")  # type: ignore[arg-type]

    class Silent:
        def __call__(self, doc_id: str, text: str, metadata: Mapping[str, object]) -> None:
            return None

    with pytest.raises(DataError, match=r"Silent.*fingerprint"):
        SourceTagger(Silent())
