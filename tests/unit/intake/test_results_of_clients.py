"""What clients of stores return is read as it is: asked by an audit, stored, and observed."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import numpy as np
import pytest

import rag_sourcebias as rsb
from rag_sourcebias import ExposureObserver, instrument
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.intake.objects import name_of

QUERIES = [f"q{i}" for i in range(30)]


def found(query: str) -> list[str]:
    """Return the documents of a query, the LLM's text first."""
    i = int(query.rsplit(maxsplit=1)[-1].removeprefix("q"))
    return [str(2 * i), str(2 * i + 1)]


TAGS = {doc: ("llm:x", "human")[int(doc) % 2] for q in QUERIES for doc in found(q)}
DATA = {
    "corpus": {doc: f"text of {doc}" for doc in TAGS},
    "queries": {q: f"query {q}" for q in QUERIES},
    "qrels": {q: dict.fromkeys(found(q), 1) for q in QUERIES},
    "tags": TAGS,
}
SIMILARITIES, DISTANCES = (0.9, 0.4), (0.1, 0.6)


def metadata(doc: str) -> dict[str, str]:
    return {"rsb_source": TAGS[doc]}


def hits(docs: list[str], scores: tuple[float, ...], make: Callable[[str, float], Any]) -> Any:
    return [make(doc, score) for doc, score in zip(docs, scores, strict=True)]


def of_bedrock(doc: str, score: float) -> Any:
    place = {"type": "S3", "s3Location": {"uri": doc}}
    text = {"text": f"text of {doc}"}
    return {"location": place, "score": score, "metadata": metadata(doc), "content": text}


def of_weaviate(doc: str, distance: float) -> Any:
    known = Obj(distance=distance, score=None)
    return Obj(uuid=UUID(int=int(doc)), metadata=known, properties=metadata(doc))


Obj, S = SimpleNamespace, SIMILARITIES
#: What a client returns for documents, best first.
CLIENTS: dict[str, Callable[[list[str]], Any]] = {
    "pinecone": lambda docs: Obj(
        matches=hits(docs, S, lambda d, s: Obj(id=d, score=s, metadata=metadata(d)))
    ),
    "weaviate": lambda docs: Obj(objects=hits(docs, DISTANCES, of_weaviate)),
    "milvus": lambda docs: [
        hits(docs, S, lambda d, s: {"id": int(d), "distance": s, "entity": metadata(d)})
    ],
    "vespa": lambda docs: {"root": {"children": hits(
        docs, S, lambda d, s: {"id": d, "relevance": s, "fields": metadata(d)}
    )}},
    "azure": lambda docs: hits(
        docs, S, lambda d, s: {"id": d, "@search.score": s, **metadata(d)}
    ),
    "openai": lambda docs: Obj(
        data=hits(docs, S, lambda d, s: Obj(file_id=d, score=s, attributes=metadata(d)))
    ),
    "bedrock": lambda docs: {"retrievalResults": hits(docs, S, of_bedrock)},
    "chroma": lambda docs: {
        "ids": [docs], "metadatas": [list(map(metadata, docs))], "distances": [list(DISTANCES)],
        "documents": [[f"text of {d}" for d in docs]], "embeddings": None,
    },
    "faiss": lambda docs: (np.float32([[*DISTANCES, 3.4e38]]), np.array([[*map(int, docs), -1]])),
    "langgraph": lambda docs: hits(docs, S, lambda d, s: Obj(key=d, value=metadata(d), score=s)),
    "mcp": lambda docs: Obj(structuredContent={"result": hits(
        docs, S, lambda d, s: {"id": d, "score": s, "metadata": metadata(d)}
    )}),
    "dspy": lambda docs: Obj(
        passages=[{"pid": d, "long_text": f"text of {d}", **metadata(d)} for d in docs]
    ),
    "haystack": lambda docs: {
        "documents": hits(docs, S, lambda d, s: Obj(id=d, score=s, meta=metadata(d)))
    },
}  # fmt: skip
CLIENT = pytest.mark.parametrize("client", CLIENTS)


def data_of(client: str) -> dict[str, Any]:
    if client != "weaviate":
        return DATA
    ids = {doc: str(UUID(int=int(doc))) for doc in TAGS}
    return DATA | {
        "corpus": {ids[doc]: text for doc, text in DATA["corpus"].items()},
        "tags": {ids[doc]: tag for doc, tag in TAGS.items()},
        "qrels": {q: {ids[doc]: 1 for doc in docs} for q, docs in DATA["qrels"].items()},
    }


@CLIENT
def test_a_function_that_returns_it_is_audited(client: str) -> None:
    report = rsb.audit(
        lambda text: CLIENTS[client](found(text)), data_of(client), cutoffs=[1], depth=2
    )
    assert report.verdict == "favours_other"
    distances = client in ("weaviate", "chroma", "faiss")
    assert any("read as distances" in note for note in report.warnings) == distances


@CLIENT
def test_stored_by_query_it_is_a_ranking(client: str) -> None:
    stored = {q: CLIENTS[client](found(q)) for q in QUERIES}
    assert rsb.audit({"mine": stored}, data_of(client), cutoffs=[1]).verdict == "favours_other"


@CLIENT
def test_a_function_that_returns_it_is_observed(client: str) -> None:
    observer = ExposureObserver()
    with instrument(lambda text: CLIENTS[client](found(text)), observer) as handle:
        handle.target("query q3")
    counts = observer.counts()
    assert not handle.dropped.by_reason
    assert counts.n_retrievals == 1
    if client != "faiss":  # numbers of rows have no metadata
        assert set(counts.shares()) == {"human", "llm:x"}


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (set, "'<lambda>', query 'q0': a set has no order"),
        (lambda docs: {"ids": [docs, docs]}, "results of 2 queries at once"),
        (
            lambda docs: (np.zeros((2, 2)), np.array([docs, docs], int)),
            "not the distances and rows",
        ),
        (lambda docs: [(docs[0], 0.5), (docs[1], 0.4), ("none", 0.9)], "contradict each other"),
    ],
)
def test_what_has_no_order_is_refused(returned: Callable[..., Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        rsb.audit(lambda text: returned(found(text)), DATA, cutoffs=[1])


def test_numbers_of_rows_are_ids() -> None:
    def search(text: str) -> list[Any]:
        return [*map(np.int64, found(text)), np.int64(-1), -1]

    assert rsb.audit(search, DATA, cutoffs=[1], depth=4).verdict == "favours_other"
    stored = {q: np.array(search(f"query {q}")) for q in QUERIES}
    assert rsb.audit(stored, DATA, cutoffs=[1]).verdict == "favours_other"
    with pytest.raises(DataError, match="a set has no order"):
        rsb.audit({"mine": {q: set(found(q)) for q in QUERIES}}, DATA)


def test_ids_are_the_same_text_however_they_were_typed() -> None:
    typed = ("12", 12, 12.0, np.int64(12), np.float64(12), np.float32(12))
    assert {name_of(one) for one in typed} == {"12"}
    assert name_of(1.5) == name_of(np.float32(1.5)) == "1.5"
