"""What clients return, read as it is, and the readers for everything else.

Where a client is not installed, the shape written out here is the one its version named beside it
returned; where it is, its own classes are read too.
"""

import json
import sqlite3
from collections import namedtuple
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from rag_sourcebias.core.data import DocTags
from rag_sourcebias.observe.observers import CollectingObserver
from rag_sourcebias.observe.recorder import instrument

HUMAN, MODEL, UNKNOWN = DocTags(source="human"), DocTags(source="llm:x"), DocTags()
BY_HUMAN, BY_MODEL = {"rsb_source": "human"}, {"rsb_source": "llm:x"}
FIRST, SECOND = str(UUID(int=1)), str(UUID(int=2))


def observe(result: Any, **options: Any) -> tuple[tuple[Any, ...], dict[str, int]]:
    """Search twice, and check that the application gets the very object."""
    observer = CollectingObserver()
    before = repr(result)
    with instrument(lambda query: result, observer, **options) as handle:
        assert handle.target("river") is result
        assert handle.target("river") is result
    assert repr(result) == before
    dropped = dict(handle.dropped.by_reason)
    assert len(observer.events) + sum(dropped.values()) == 2
    return observer.events, dropped


def check(result: Any, ids: list[str], tags: list[DocTags], scores: Any, **options: Any) -> None:
    events, dropped = observe(result, **options)
    assert dropped == {}
    for event in events:
        assert list(event.ranked.doc_ids) == ids
        assert list(event.tags) == tags
        assert event.bad_tags == 0
        found = event.ranked.scores
        assert (None if found is None else found.tolist()) == scores


# Qdrant.


def qdrant(distance: str, payloads: list[Any]) -> Any:
    """Return a collection in memory and the answer to a query for its first point."""
    client_of = pytest.importorskip("qdrant_client")
    models = client_of.models
    client = client_of.QdrantClient(":memory:")
    client.create_collection(
        "docs",
        vectors_config=models.VectorParams(size=2, distance=models.Distance[distance]),
    )
    points = [
        models.PointStruct(id=number, vector=vector, payload=payload)
        for number, vector, payload in zip(
            (7, SECOND, 9), ([1.0, 0.0], [1.0, 1.0], [0.0, 1.0]), payloads, strict=True
        )
    ]
    client.upsert("docs", points)
    return client.query_points("docs", query=[1.0, 0.0], limit=3)


@pytest.mark.parametrize(
    ("distance", "scores"), [("DOT", None), ("COSINE", None), ("EUCLID", [-0.0, -1.0, -(2**0.5)])]
)
def test_qdrant_answers_and_their_points(distance: str, scores: list[float] | None) -> None:
    answer = qdrant(distance, [BY_HUMAN, {"page_content": "t", "metadata": BY_MODEL}, None])
    if distance == "DOT":  # two points tie: whichever comes first
        ids = [str(point.id) for point in answer.points]
        tags = [{"7": HUMAN, SECOND: MODEL, "9": UNKNOWN}[doc_id] for doc_id in ids]
        check(answer, ids, tags, [1.0, 1.0, 0.0])
        return
    if scores is None:
        scores = [1.0, pytest.approx(0.5**0.5), 0.0]
    scores = [pytest.approx(score) for score in scores]
    check(answer, ["7", SECOND, "9"], [HUMAN, MODEL, UNKNOWN], scores)
    check(answer.points, ["7", SECOND, "9"], [HUMAN, MODEL, UNKNOWN], scores)


# Elasticsearch and OpenSearch.


def search_response(*hits: dict[str, Any]) -> dict[str, Any]:
    """Return the body that Elasticsearch 9.5 and OpenSearch 3.2 answer with."""
    total = {"value": len(hits), "relation": "eq"}
    return {"took": 1, "timed_out": False, "hits": {"total": total, "hits": list(hits)}}


HITS = (
    {"_index": "docs", "_id": "a", "_score": 1.5, "_source": {"text": "t", **BY_HUMAN}},
    {"_index": "docs", "_id": "b", "_score": 0.5, "_source": {"text": "t", "metadata": BY_MODEL}},
)


def test_elasticsearch_and_opensearch_answers() -> None:
    check(search_response(*HITS), ["a", "b"], [HUMAN, MODEL], [1.5, 0.5])
    check(search_response(*HITS)["hits"]["hits"], ["a", "b"], [HUMAN, MODEL], [1.5, 0.5])
    check(search_response(), [], [], [])
    unsorted = [{**hit, "_score": None, "sort": [3]} for hit in HITS]  # sorted by a field
    check(search_response(*unsorted), ["a", "b"], [HUMAN, MODEL], None)
    bare = [{"_id": hit["_id"], "_score": 1.0} for hit in HITS]  # with _source: false
    check(search_response(*bare), ["a", "b"], [UNKNOWN, UNKNOWN], [1.0, 1.0])


class Response:
    """As ObjectApiResponse of the Elasticsearch client: no mapping, but read by keys."""

    def __init__(self, body: dict[str, Any]) -> None:
        self.body = body

    def __getitem__(self, key: str) -> Any:
        return self.body[key]


# Rows of pgvector. The rows of psycopg 3.3 are dicts, named tuples or tuples, as its row factory
# says, those of psycopg2 2.9 and asyncpg 0.31 have keys().


ROWS = [
    {"id": UUID(int=1), "document": "t", "metadata": BY_HUMAN, "distance": 0.25},
    {"id": UUID(int=2), "document": "t", "metadata": BY_MODEL, "distance": 0.5},
]


class KeyedRow(list[Any]):
    """A row as psycopg2's DictRow: a list with keys."""

    def keys(self) -> list[str]:
        return list(ROWS[0])

    def __getitem__(self, key: Any) -> Any:
        return super().__getitem__(self.keys().index(key) if isinstance(key, str) else key)


@pytest.mark.parametrize(
    "row",
    [
        dict,
        lambda row: namedtuple("Row", row)(**row),
        lambda row: KeyedRow(row.values()),
        lambda row: SimpleNamespace(**row),  # an object of the application, or of an ORM
        lambda row: {**row, "metadata": json.dumps(row["metadata"])},
        lambda row: {**row, "metadata": {"url": "u"}, **row["metadata"]},  # a column of its own
    ],
    ids=["dict", "namedtuple", "keyed", "object", "json", "column"],
)
def test_rows_of_pgvector(row) -> None:
    check([row(one) for one in ROWS], [FIRST, SECOND], [HUMAN, MODEL], [-0.25, -0.5])


SQL = (
    """select 'a' as id, '{"rsb_source": "human"}' as metadata, 0.25 as distance """
    """union all select 'b', '{"rsb_source": "llm:x"}', 0.5"""
)


def test_rows_of_sqlalchemy() -> None:
    sqlalchemy = pytest.importorskip("sqlalchemy")
    with sqlalchemy.create_engine("sqlite://").connect() as connection:
        for rows in (
            connection.execute(sqlalchemy.text(SQL)).all(),
            connection.execute(sqlalchemy.text(SQL)).mappings().all(),
        ):
            check(rows, ["a", "b"], [HUMAN, MODEL], [-0.25, -0.5])
        pending = connection.execute(sqlalchemy.text(SQL))
        _, dropped = observe(pending)
        assert list(dropped.values()) == [2]
        assert len(pending.all()) == 2  # none was taken out of it


def test_rows_with_keys_and_plain_tuples() -> None:
    connection = sqlite3.connect(":memory:")
    tuples = connection.execute(SQL).fetchall()
    connection.row_factory = sqlite3.Row
    check(connection.execute(SQL).fetchall(), ["a", "b"], [HUMAN, MODEL], [-0.25, -0.5])
    connection.close()
    _, dropped = observe(tuples)
    ((reason, n),) = dropped.items()
    assert (n, "doc_id=" in reason) == (2, True)
    check(
        tuples,
        ["a", "b"],
        [HUMAN, MODEL],
        [-0.25, -0.5],
        doc_id="0",
        metadata="1",
        score=lambda row: -row[2],
    )


# Documents of frameworks, returned by a function.


def test_documents_of_langchain_have_the_ids_they_have_where_it_is_observed() -> None:
    core = pytest.importorskip("langchain_core.documents")
    observing = pytest.importorskip("rag_sourcebias_integrations.langchain.observe")
    documents = [
        core.Document(id="a", page_content="one", metadata=BY_HUMAN),
        core.Document(page_content="two words", metadata=BY_MODEL),
    ]
    ids = observing.ids_of(documents, None)
    check(documents, list(ids), [HUMAN, MODEL], None)
    scored = [(document, 0.5) for document in documents]
    check(scored, list(ids), [HUMAN, MODEL], [0.5, 0.5])


def test_nodes_of_llama_index() -> None:
    schema = pytest.importorskip("llama_index.core.schema")
    nodes = [
        schema.TextNode(id_="a", metadata=BY_HUMAN),
        schema.TextNode(id_="b", metadata=BY_MODEL),
    ]
    check(nodes, ["a", "b"], [HUMAN, MODEL], None)
    scored = [schema.NodeWithScore(node=node, score=0.5) for node in nodes]
    check(scored, ["a", "b"], [HUMAN, MODEL], [0.5, 0.5])


# The readers.


GROUPS = {
    "result": {
        "page": [
            {"doc": {"key": 7, "about": BY_HUMAN}, "rank": 0.5},
            {"doc": {"key": 8, "about": None}, "rank": 0.25},
        ]
    }
}


def test_readers_are_functions_or_paths() -> None:
    expected = (["7", "8"], [HUMAN, UNKNOWN], [0.5, 0.25])
    check(
        GROUPS,
        *expected,
        hits="result.page",
        doc_id="doc.key",
        metadata="doc.about",
        score="rank",
    )
    check(
        GROUPS,
        *expected,
        hits=lambda found: found["result"]["page"],
        doc_id=lambda hit: hit["doc"]["key"],
        metadata=lambda hit: hit["doc"]["about"],
        score=lambda hit: hit["rank"],
    )
    check([("a", 2.0), ("b", 3)], ["a", "b"], [UNKNOWN] * 2, [-2.0, -3.0], score=lambda r: -r[1])
    check([("a", 2.0)], ["a"], [UNKNOWN], None, score=lambda row: None)
    check(Response({"x": [Response({"y": 1})]}), ["1"], [UNKNOWN], None, hits="x", doc_id="y")
    check({"x": ["a", "b c"]}, ["a", "b c"], [UNKNOWN] * 2, None, hits="x", doc_id=str)
    check([{"id": "a", "metadata": BY_HUMAN}], ["a"], [UNKNOWN], None, metadata="no.such.name")


@pytest.mark.parametrize(
    ("readers", "reason"),
    [
        ({"hits": "result.pages"}, "hits= failed: it takes what the function returns to the list"),
        ({"hits": "result"}, "hits= failed"),
        ({"hits": lambda found: iter(found["result"]["page"])}, "hits= failed"),
        ({"hits": lambda found: 1 / 0}, "hits= failed"),
        ({"hits": "result.page", "doc_id": "doc.name"}, "doc_id= failed: it takes a document to"),
        ({"hits": "result.page", "doc_id": "doc"}, "doc_id= failed"),
        ({"hits": "result.page", "doc_id": lambda hit: hit.key}, "doc_id= failed"),
        ({"doc_id": "doc.key", "metadata": "rank"}, "metadata= failed: it takes a document to a"),
        ({"doc_id": "doc.key", "metadata": lambda hit: hit["tags"]}, "metadata= failed"),
        ({"doc_id": "doc.key", "score": "doc"}, "score= failed: it takes a document to a number"),
        ({"doc_id": "doc.key", "score": lambda hit: hit.rank}, "score= failed"),
        ({"hits": "result.page"}, "a document has no id"),
        ({"doc_id": "doc.key", "hits": None}, "result is no list of documents"),
    ],
)
def test_a_reader_that_fails_costs_the_record_alone(readers, reason) -> None:
    events, dropped = observe(GROUPS, **({"hits": "result.page"} | readers))
    assert events == ()
    ((found, n),) = dropped.items()
    assert n == 2
    assert found.startswith(reason)


def test_an_application_s_own_object_that_raises_is_counted() -> None:
    class Broken:
        @property
        def id(self) -> str:
            raise RuntimeError("secret text")

    events, dropped = observe([Broken()])
    assert (events, list(dropped.values())) == ((), [2])
    assert "secret" not in str(dropped)
