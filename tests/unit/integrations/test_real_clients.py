"""The clients that people search with, in front of real stores or of a server that answers as one.

Haystack's documents come from its own store; the clients of Elasticsearch and OpenSearch talk to a
local server.
"""

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from rag_sourcebias.observe.observers import CollectingObserver
from rag_sourcebias.observe.recorder import instrument

pytestmark = pytest.mark.frameworks

EXPECTED = [("a", "human"), ("b", "llm:x")]


def observe(search: Callable[[str], Any], **readers: Any) -> tuple[CollectingObserver, Any]:
    """Search three times; the application gets what it gets unobserved, and each counts once."""
    observer = CollectingObserver()
    bare = repr(search("river"))
    with instrument(search, observer, **readers) as handle:
        found = [handle.target("river") for _ in range(3)]
        assert handle.flush(10)
        assert handle.dropped.by_reason == {}
        assert handle.coverage.retrievals == 3
    assert {repr(each) for each in found} == {bare}
    return observer, found[0]


def check(search: Callable[[str], Any], scores: list[float] | None, **readers: Any) -> None:
    observer, _ = observe(search, **readers)
    assert len(observer.events) == 3
    for event in observer.events:
        sources = [tag.source for tag in event.tags]
        assert list(zip(event.ranked.doc_ids, sources, strict=True)) == EXPECTED
        found = event.ranked.scores
        assert (None if found is None else found.tolist()) == (
            None if scores is None else pytest.approx(scores, abs=1e-5)
        )


# Elasticsearch and OpenSearch


HITS = (
    {"_index": "docs", "_id": "a", "_score": 1.5, "_source": {"text": "t", "rsb_source": "human"}},
    {
        "_index": "docs",
        "_id": "b",
        "_score": 0.5,
        "_source": {"text": "t", "metadata": {"rsb_source": "llm:x"}},
    },
)


class Answers(BaseHTTPRequestHandler):
    """Answers every search with the same two hits."""

    def answer(self) -> None:
        self.rfile.read(int(self.headers.get("content-length", 0)))
        hits = {"total": {"value": 2, "relation": "eq"}, "max_score": 1.5, "hits": HITS}
        shards = {"total": 1, "successful": 1, "skipped": 0, "failed": 0}
        body = {"took": 1, "timed_out": False, "_shards": shards, "hits": hits}
        data = json.dumps(body).encode()
        kind = self.headers.get("accept", "").partition(",")[0]
        self.send_response(200)
        self.send_header("content-type", kind if "json" in kind else "application/json")
        self.send_header("x-elastic-product", "Elasticsearch")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = answer  # noqa: N815

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    found = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    thread = threading.Thread(target=found.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{found.server_port}"
    found.shutdown()
    thread.join()
    found.server_close()


def test_the_client_of_elasticsearch(server: str) -> None:
    elasticsearch = pytest.importorskip("elasticsearch")
    query = {"match": {"text": "river"}}
    with elasticsearch.Elasticsearch(server) as client:
        check(lambda _: client.search(index="docs", query=query), [1.5, 0.5])
        check(lambda _: client.search(index="docs", query=query)["hits"]["hits"], [1.5, 0.5])


@pytest.mark.parametrize("module", ["elasticsearch.dsl", "opensearchpy"])
@pytest.mark.parametrize("how", ["response", "hits", "list", "documents"])
def test_search_objects(server: str, module: str, how: str) -> None:
    """Their responses, hits and documents are objects that wrap what the server sent."""
    dsl = pytest.importorskip(module)
    package = pytest.importorskip(module.partition(".")[0])
    client_class = getattr(package, "Elasticsearch", None) or package.OpenSearch
    kind = type("Text", (dsl.Document,), {"text": dsl.Text(), "Index": type("Index", (), {})})
    client = client_class(server)

    def search(text: str) -> Any:
        options = {"doc_type": [kind]} if how == "documents" else {}
        response = dsl.Search(using=client, index="docs", **options).query("match", text=text)
        response = response.execute()
        return {"hits": lambda: response.hits, "response": lambda: response}.get(
            how, lambda: list(response)
        )()

    check(search, [1.5, 0.5])
    client.close()


def test_the_client_of_opensearch(server: str) -> None:
    client = pytest.importorskip("opensearchpy").OpenSearch(server)
    body = {"query": {"match": {"text": "river"}}}
    check(lambda _: client.search(index="docs", body=body), [1.5, 0.5])
    client.close()


# Haystack


def test_retrievers_pipelines_and_stores_of_haystack() -> None:
    haystack = pytest.importorskip("haystack")
    stores = pytest.importorskip("haystack.document_stores.in_memory")
    retrievers = pytest.importorskip("haystack.components.retrievers.in_memory")
    store = stores.InMemoryDocumentStore()
    store.write_documents(
        [
            haystack.Document(id="a", content="a river, a river", meta={"rsb_source": "human"}),
            haystack.Document(id="b", content="the river floods", meta={"rsb_source": "llm:x"}),
        ]
    )
    scores = [document.score for document in store.bm25_retrieval("river")]
    assert scores[0] > scores[1]
    retriever = retrievers.InMemoryBM25Retriever(store)
    check(lambda text: retriever.run(query=text), scores)
    check(store.bm25_retrieval, scores)
    pipeline = haystack.Pipeline()
    pipeline.add_component("bm25", retrievers.InMemoryBM25Retriever(store))
    check(lambda text: pipeline.run({"bm25": {"query": text}}), scores, hits="bm25.documents")
