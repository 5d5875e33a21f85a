"""What a report on too few queries says to do next asks the retriever that was audited."""

from __future__ import annotations

import pytest

import rag_sourcebias as rsb
from rag_sourcebias.reports import document_of

TAGS = {f"{kind}{i}": kind for kind in ("human", "llm:x") for i in range(6)}
DATA = {
    "corpus": {name: f"text {name}" for name in TAGS},
    "queries": {f"q{i}": f"text human{i} llm:x{i}" for i in range(6)},
    "qrels": {f"q{i}": [f"human{i}", f"llm:x{i}"] for i in range(6)},
    "tags": TAGS,
    "name": "my-data",
}


def search(text: str) -> list[str]:
    return text.split()[1:]


@pytest.mark.parametrize(
    ("asked", "command"),
    [
        ("bm25", "rag-sourcebias audit source my-data"),
        ("bm25:k1=0.9,b=0.3", "rag-sourcebias audit source my-data --retriever bm25:k1=0.9,b=0.3"),
        ("bm25:paper", "rag-sourcebias audit source my-data --retriever bm25:paper"),
        (search, "rsb.audit(retriever, data)"),
    ],
)
def test_the_same_retriever_is_asked_again(asked: object, command: str) -> None:
    report = rsb.audit(asked, DATA, depth=6)
    assert report.verdict in ("cannot_tell", "refused")
    assert document_of(report).first.command == command
