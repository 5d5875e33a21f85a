"""Tags in place in a collection that LlamaIndex filled, read back by LlamaIndex."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from chroma_folder import shared_client

from rag_sourcebias.core.data import DocTags
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.tagging.rules import IdTagger

pytest.importorskip("chromadb")
pytest.importorskip("llama_index.vector_stores.chroma")

from llama_index.core import Document
from llama_index.core.schema import MetadataMode, NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.vector_stores.chroma import ChromaVectorStore

from rag_sourcebias_integrations.chroma.collections import NODE_KEY, embedded_text
from rag_sourcebias_integrations.chroma.tagging import tag_collection

pytestmark = pytest.mark.frameworks

names = itertools.count()
TAGS = {"rsb_source", "rsb_pair_id", "rsb_origin", "rsb_tagger"}


def nodes() -> list[TextNode]:
    """Nodes as a parser makes them, with relationships, and ones with odd content."""
    page = Document(text="One sentence. " * 9, metadata={"file_name": "ä “b”.md", "page": 3})
    found = [
        TextNode(
            text=f"Sentence {i}.",
            metadata=page.metadata | {"ratio": 0.1},
            excluded_embed_metadata_keys=["page"],
            excluded_llm_metadata_keys=["ratio"],
            relationships={
                NodeRelationship.SOURCE: page.as_related_node_info(),
                NodeRelationship.NEXT: RelatedNodeInfo(node_id=f"next-{i}", metadata={"page": 4}),
            },
        )
        for i in range(4)
    ]
    odd = TextNode(
        text='{curly} "quoted" \\ \n  ',
        metadata={"k": "{v}"},
        text_template="{content} :: {metadata_str}",
        metadata_template="<{key}={value}>",
        metadata_separator=" | ",
    )
    made = [*found, odd, TextNode(text=" bare ", metadata={})]
    for i, node in enumerate(made):
        node.id_ = f"n{i}#{'human' if i % 2 else 'llm:x'}"
        node.embedding = [float(i), 1.0]
    return made


@pytest.fixture
def store() -> ChromaVectorStore:
    collection = shared_client().create_collection(f"llama-{next(names)}", embedding_function=None)
    store = ChromaVectorStore(chroma_collection=collection)
    store.add(nodes())
    return store


def read(store: ChromaVectorStore) -> dict[str, Any]:
    ids = store.client.get(include=[])["ids"]
    return {node.node_id: node for node in store.get_nodes(node_ids=ids)}


def test_llama_index_reads_the_tags_and_neither_text_changes(store: ChromaVectorStore) -> None:
    before = read(store)
    modes = (MetadataMode.EMBED, MetadataMode.LLM, MetadataMode.NONE)
    texts = {i: [node.get_content(mode) for mode in modes] for i, node in before.items()}
    result = tag_collection(store.client, IdTagger(), batch_size=2)
    assert result.n_written == len(before) > 4
    for i, node in read(store).items():
        assert [node.get_content(mode) for mode in modes] == texts[i]
        assert node.metadata == before[i].metadata | {
            "rsb_source": i.partition("#")[2],
            "rsb_pair_id": i.partition("#")[0],
            "rsb_origin": "declared",
            "rsb_tagger": result.fingerprint,
        }
        for excluded in ("excluded_embed_metadata_keys", "excluded_llm_metadata_keys"):
            old = getattr(before[i], excluded)
            assert getattr(node, excluded)[: len(old)] == old
            assert set(getattr(node, excluded)[len(old) :]) == TAGS
        assert node.relationships == before[i].relationships


def test_only_the_metadata_and_the_excluded_keys_of_the_json_change(
    store: ChromaVectorStore,
) -> None:
    rows = store.client.get(include=["metadatas"])
    tag_collection(store.client, IdTagger())
    for doc_id, old in zip(rows["ids"], rows["metadatas"], strict=True):
        new = store.client.get(ids=[doc_id], include=["metadatas"])["metadatas"][0]
        undone = json.loads(new[NODE_KEY])
        assert list(undone) == list(json.loads(old[NODE_KEY]))
        for key in TAGS:
            del undone["metadata"][key]
            undone["excluded_embed_metadata_keys"].remove(key)
            undone["excluded_llm_metadata_keys"].remove(key)
        assert json.dumps(undone, ensure_ascii=old[NODE_KEY].isascii()) == old[NODE_KEY]
        assert {k: v for k, v in new.items() if k not in {*TAGS, NODE_KEY}} == {
            k: v for k, v in old.items() if k != NODE_KEY
        }


def test_tagging_again_after_others_replaces_and_removes(
    store: ChromaVectorStore, tmp_path: Any
) -> None:
    def old(doc_id: str, text: str, metadata: Any) -> DocTags:
        return DocTags(source="llm:old", style="plain", origin="detected", confidence=0.5)

    tag_collection(store.client, old)
    embedded = {i: n.get_content(MetadataMode.EMBED) for i, n in read(store).items()}
    tag_collection(store.client, IdTagger(), overwrite=True, backup=tmp_path / "b.sqlite")
    for i, node in read(store).items():
        assert {k for k in node.metadata if k.startswith("rsb_")} == TAGS
        assert node.excluded_llm_metadata_keys.count("rsb_source") == 1
        assert node.get_content(MetadataMode.EMBED) == embedded[i]


@pytest.mark.parametrize("content", ["{", "[]", '"node"', '{"metadata": 1}', "NaN"])
def test_a_damaged_node_is_named_before_anything_is_written(content: str) -> None:
    collection = shared_client().create_collection(f"llama-{next(names)}", embedding_function=None)
    collection.add(ids=["a#human"], embeddings=[[1.0]], metadatas=[{NODE_KEY: content}])
    with pytest.raises(DataError, match=r"document 'a#human': '_node_content' is not a node"):
        tag_collection(collection, IdTagger())
    assert collection.get()["metadatas"] == [{NODE_KEY: content}]


def test_the_text_that_llama_index_embeds_is_known_without_it(store: ChromaVectorStore) -> None:
    tag_collection(store.client, IdTagger())
    rows = store.client.get(include=["documents", "metadatas"])
    made = read(store)
    texts = {
        i: embedded_text(i, text, metadata)
        for i, text, metadata in zip(rows["ids"], rows["documents"], rows["metadatas"], strict=True)
    }
    assert texts == {i: node.get_content(MetadataMode.EMBED) for i, node in made.items()}
    assert len({len(text) for text in texts.values()}) > 2
    assert embedded_text("d", "as it is", {"source": "x"}) == "as it is"
