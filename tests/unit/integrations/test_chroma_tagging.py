"""Tags in place in Chroma: collections, databases, servers, and what LlamaIndex stored."""

import asyncio
import base64
import itertools
import json
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chroma_server import chroma_server

from rag_sourcebias.core.data import DocTags
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.core.tags import to_metadata
from rag_sourcebias.observe.tags import open_tag_store
from rag_sourcebias.tagging.documents import WritableStore, taggers_fingerprint
from rag_sourcebias.tagging.rules import IdTagger

pytest.importorskip("chromadb")
pytest.importorskip("llama_index.vector_stores.chroma")

import chromadb
from llama_index.core import Document
from llama_index.core.schema import MetadataMode, NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.vector_stores.chroma import ChromaVectorStore

from rag_sourcebias_integrations.chroma.collections import NODE_KEY, embedded_text, open_client
from rag_sourcebias_integrations.chroma.tagging import open_store, tag_collection

pytestmark = pytest.mark.frameworks


numbers = itertools.count()


def doc_id(i: int) -> str:
    return f"d{i // 2}#{'human' if i % 2 else 'llm:gpt-x'}"


def make(n: int = 20, *, client: Any = None, metadata: bool = True, name: str | None = None) -> Any:
    client = client or chromadb.EphemeralClient()
    collection = client.create_collection(
        name or f"tagging-{next(numbers)}", embedding_function=None
    )
    vectors = np.random.default_rng(n).normal(size=(n, 8)).astype(np.float32)
    for start in range(0, n, 5_000):
        rows = range(start, min(n, start + 5_000))
        collection.add(
            ids=[doc_id(i) for i in rows],
            embeddings=vectors[rows.start : rows.stop],
            documents=[f"text {i}" for i in rows],
            metadatas=[{"source": f"u/{i}", "n": i, "ok": True} for i in rows]
            if metadata
            else None,
        )
    return collection


def contents(collection: Any) -> dict[str, tuple[Any, Any, Any]]:
    found = collection.get(include=["documents", "metadatas", "embeddings"])
    rows = zip(found["documents"], found["metadatas"], found["embeddings"], strict=True)
    return dict(zip(found["ids"], rows, strict=True))


def by_source(source: str | None, *, style: str | None = None) -> Any:
    def tag(doc_id: str, text: str, metadata: Any) -> DocTags:
        return DocTags(source=source, style=style, origin="declared" if source else None)

    return tag


def test_the_tags_of_others_are_kept_unless_overwrite_is_said() -> None:
    collection = make(12)
    other = to_metadata(DocTags(source="llm:old", origin="declared"))
    other["rsb_tagger"] = taggers_fingerprint(by_source("llm:old"))
    collection.update(ids=["d5#human"], metadatas=[other])
    old = taggers_fingerprint(by_source("llm:old"))
    before = [row[1] for row in contents(collection).values()]
    with pytest.raises(DataError, match=rf"'d5#human' carries tags of.*{old}.*overwrite=True"):
        tag_collection(collection, IdTagger(), batch_size=4)
    assert [row[1] for row in contents(collection).values()] == before  # not a page was written


def test_overwriting_keeps_the_old_tags_in_a_tag_store(tmp_path: Path) -> None:
    collection, backup = make(6), tmp_path / "old" / "tags.sqlite"
    tag_collection(collection, by_source("llm:old", style="plain"))
    with pytest.raises(DataError, match="backup="):
        tag_collection(collection, IdTagger(), overwrite=True)
    dry = tag_collection(collection, IdTagger(), overwrite=True, dry_run=True, backup=backup)
    assert (dry.n_written, dry.backup, backup.exists()) == (6, None, False)
    result = tag_collection(collection, IdTagger(), overwrite=True, backup=backup, batch_size=4)
    assert (result.n_written, result.backup) == (6, str(backup))
    kept = open_tag_store(backup)
    assert (
        kept.get([doc_id(i) for i in range(6)])
        == [DocTags(source="llm:old", style="plain", origin="declared")] * 6
    )
    # a tag that is no longer known loses its key
    assert "rsb_style" not in collection.get(ids=["d0#human"])["metadatas"][0]


def test_a_backup_that_is_something_else_is_not_written_to(tmp_path: Path) -> None:
    collection, backup = make(2), tmp_path / "notes.sqlite"
    tag_collection(collection, by_source("llm:old"))
    backup.write_text("dear diary\n")
    with pytest.raises(DataError, match=r"notes\.sqlite is"):
        tag_collection(collection, IdTagger(), overwrite=True, backup=backup)
    assert backup.read_text() == "dear diary\n"


def test_equal_tags_without_a_fingerprint_are_taken_over_and_others_are_not() -> None:
    collection = make(2)
    mine = {"rsb_source": "human", "rsb_pair_id": "d0", "rsb_origin": "declared"}
    collection.update(ids=["d0#human"], metadatas=[mine])
    assert tag_collection(collection, IdTagger()).n_written == 2
    other = make(2)
    other.update(ids=["d0#human"], metadatas=[{"rsb_style": "plain"}])
    with pytest.raises(DataError, match=r"'d0#human' carries tags that name no taggers"):
        tag_collection(other, IdTagger())


def test_documents_deleted_meanwhile_are_counted_and_those_they_shift_are_not_lost() -> None:
    collection = make(30)
    deleted = [doc_id(i) for i in (1, 2, 12)]

    def tag(i: str, text: str, metadata: Any) -> DocTags:
        if metadata["n"] == 10:  # while the second page is being tagged
            collection.delete(ids=deleted)
            collection.add(ids=["new#human"], embeddings=[[0.5] * 8], metadatas=[{"n": 99}])
        return DocTags(source="human", origin="declared")

    tag.fingerprint = "t"  # type: ignore[attr-defined]
    result = tag_collection(collection, tag, batch_size=10)
    assert (result.n_missing, result.missing_ids) == (1, (doc_id(12),))
    assert result.n_written == 30  # two of the first page were deleted after it was done
    assert result.n_documents == 31
    done = collection.get(where={"rsb_tagger": result.fingerprint}, include=[])["ids"]
    assert len(done) == collection.count() == 28


KILLED = """
import sys, time
import chromadb
from rag_sourcebias.tagging import IdTagger
from rag_sourcebias_integrations.chroma import tag_collection

def pause(done):
    print(done, flush=True)
    if done >= 40:
        time.sleep(60)

collection = chromadb.PersistentClient(sys.argv[1]).get_collection("half")
tag_collection(collection, IdTagger(), batch_size=20, on_progress=pause)
"""


def test_a_killed_pass_goes_on_where_it_stopped(tmp_path: Path) -> None:
    collection = make(100, client=open_client(tmp_path), name="half")
    with subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", KILLED, str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert [process.stdout.readline() for _ in range(2)] == ["20\n", "40\n"]
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
    steps: list[int] = []
    result = tag_collection(collection, IdTagger(), batch_size=20, on_progress=steps.append)
    assert (result.n_unchanged, result.n_written, result.n_documents) == (40, 60, 100)
    assert steps == [20, 40, 60, 80, 100]
    assert result.sources == {"human": 50, "llm:gpt-x": 50}
    assert len(collection.get(where={"rsb_tagger": result.fingerprint}, include=[])["ids"]) == 100


def test_an_interrupted_overwrite_goes_on_with_its_backup(tmp_path: Path) -> None:
    collection, backup = make(20), tmp_path / "old.sqlite"
    tag_collection(collection, by_source("llm:old"))

    def stop(done: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tag_collection(
            collection, IdTagger(), overwrite=True, backup=backup, batch_size=8, on_progress=stop
        )
    result = tag_collection(collection, IdTagger(), overwrite=True, backup=backup, batch_size=8)
    assert (result.n_written, result.n_unchanged) == (12, 8)
    assert len(open_tag_store(backup)) == 20


def test_a_tagger_that_fails_names_the_document() -> None:
    def broken(doc_id: str, text: str, metadata: Any) -> DocTags:
        return DocTags(confidence=float("inf"))

    collection = make(3)
    with pytest.raises(DataError, match=r"document 'd0#\S+': tagger .*broken: confidence"):
        tag_collection(collection, broken)
    assert "rsb_tagger" not in collection.get(ids=["d0#human"])["metadatas"][0]


def test_tags_damaged_by_hand_are_named() -> None:
    collection = make(2)
    tag_collection(collection, IdTagger())
    collection.update(ids=["d0#human"], metadatas=[{"rsb_origin": "hearsay"}])
    with pytest.raises(DataError, match="document 'd0#human': rsb_origin 'hearsay'"):
        tag_collection(collection, IdTagger())


class OfNumpy:
    fingerprint = "of numpy"

    def __call__(self, doc_id: str, text: str, metadata: Mapping[str, object]) -> DocTags:
        return DocTags(source="human", origin="detected", confidence=np.float32(0.5))  # type: ignore[arg-type]


def test_a_number_of_numpy_is_stored() -> None:
    collection = make(1)
    tag_collection(collection, OfNumpy())
    assert collection.get(limit=1)["metadatas"][0]["rsb_confidence"] == 0.5


# A Chroma database opened as a store of documents


@pytest.fixture
def place(tmp_path: Path) -> str:
    client = open_client(tmp_path / "db")
    collection = client.create_collection("docs", embedding_function=None)
    collection.add(
        ids=["a#human", "b#llm:x", "c"],
        embeddings=[[1.0], [2.0], [3.0]],
        documents=["text a", None, "text c"],
        metadatas=[{"k": 1}, None, {"k": 3}],
    )
    return str(tmp_path / "db")


def test_documents_and_tags_are_read_and_written(place: str, tmp_path: Path) -> None:
    store = open_store(place)
    assert isinstance(store, WritableStore)
    assert (store.name, len(store)) == ("chroma:docs", 3)
    assert list(store.documents()) == [
        ("a#human", "text a", {"k": 1}),
        ("b#llm:x", "", {}),
        ("c", "text c", {"k": 3}),
    ]
    assert [tags for _, tags in store.tags()] == [DocTags()] * 3
    steps: list[int] = []
    assert store.tag([IdTagger()], dry_run=True).n_written == 3
    assert store.tag([IdTagger()], on_progress=steps.append).sources == {"human": 1, "llm:x": 1}
    assert steps == [3]
    assert dict(open_store(place, "docs").tags()) == {
        "a#human": DocTags(source="human", pair_id="a", origin="declared"),
        "b#llm:x": DocTags(source="llm:x", pair_id="b", origin="declared"),
        "c": DocTags(),
    }
    again = store.tag([IdTagger(r"(?P<style>\w)$")], overwrite=True, backup=tmp_path / "old.sqlite")
    assert again.styles == {"n": 1, "x": 1, "c": 1}


def test_a_server_that_is_not_there_is_named() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{probe.getsockname()[1]}"
    with pytest.raises(DataError, match=rf"{url}.*cannot be reached"):
        open_store(url)
    for secret in (
        url.replace("//", "//bob:hunter2@"),
        url.replace("http://", "ftp://bob:hunter2@"),
        url.replace("//", "//bob:hunter2@") + "x",
    ):
        with pytest.raises(DataError) as caught:
            open_store(secret)
        assert "hunter2" not in str(caught.value)


def test_user_and_password_of_an_address_are_sent_and_not_shown() -> None:
    seen: list[str] = []

    class Refuses(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(self.headers.get("Authorization", ""))
            self.send_error(403)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Refuses) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with pytest.raises(DataError) as caught:
            open_store(f"http://bob:hunter2@127.0.0.1:{server.server_port}")
        server.shutdown()
    assert seen[0] == "Basic " + base64.b64encode(b"bob:hunter2").decode()
    assert "hunter2" not in str(caught.value)
    assert seen[0].split()[1] not in str(caught.value)


def test_a_store_that_this_process_has_open_otherwise_says_what_to_do(tmp_path: Path) -> None:
    other = chromadb.config.Settings(allow_reset=True)
    client = chromadb.PersistentClient(str(tmp_path), settings=other)
    client.create_collection("docs", embedding_function=None)
    with pytest.raises(DataError, match=r"different settings\); .* use ChromaStore\(collection\)"):
        open_store(str(tmp_path))


# Tagging and migrating on a real Chroma server


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with chroma_server(tmp_path_factory.mktemp("server")) as port:
        yield port


def served(client: Any, name: str, n: int = 50) -> Any:
    collection = client.create_collection(name, embedding_function=None)
    collection.add(
        ids=[f"d{i}#{'human' if i % 2 else 'llm:x'}" for i in range(n)],
        embeddings=np.eye(n, 8, dtype=np.float32) + 1,
        documents=[f"word{i} text" for i in range(n)],
        metadatas=[{"n": i} for i in range(n)],
    )
    return collection


@pytest.mark.server
def test_a_collection_on_a_server_is_tagged_like_any_other(port: int, tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{port}"
    served(open_client(url), "sync")
    served(open_client(url), "other", 1)
    with pytest.raises(DataError, match=r"collections, name one of them: .*other.*sync"):
        open_store(url)
    result = open_store(url, "sync").tag([IdTagger()])
    assert (result.n_written, result.sources) == (50, {"human": 25, "llm:x": 25})
    remote = open_client(url).get_collection("sync", embedding_function=None)
    embedded = served(open_client(tmp_path), "sync")
    tag_collection(embedded, IdTagger(), batch_size=7)
    assert remote.get()["metadatas"] == embedded.get()["metadatas"]


@pytest.mark.server
def test_a_collection_of_the_asynchronous_client_is_refused(port: int) -> None:
    async def work() -> None:
        client = await chromadb.AsyncHttpClient(host="127.0.0.1", port=port)
        collection = await client.get_collection("async", embedding_function=None)
        with pytest.raises(DataError, match=r"AsyncHttpClient; open it with an HttpClient"):
            tag_collection(collection, IdTagger())
        for http in client._server._clients.values():  # Chroma leaves its connections open
            await http.aclose()

    served(open_client(f"http://127.0.0.1:{port}"), "async", 1)
    asyncio.run(work())


# Tags in place in a collection that LlamaIndex filled, read back by LlamaIndex


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
    collection = chromadb.EphemeralClient().create_collection(
        f"llama-{next(names)}", embedding_function=None
    )
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
    collection = chromadb.EphemeralClient().create_collection(
        f"llama-{next(names)}", embedding_function=None
    )
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
