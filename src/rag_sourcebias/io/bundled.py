"""The two samples that come with the package."""

from __future__ import annotations

import re
from importlib import resources
from typing import TYPE_CHECKING

from rag_sourcebias.errors import DataError
from rag_sourcebias.io.files import read_jsonl
from rag_sourcebias.types import Corpus, Dataset, DocTags, Qrels, Query, TagTable

if TYPE_CHECKING:
    from collections.abc import Callable
    from importlib.resources.abc import Traversable
    from pathlib import Path

__all__ = ["SAMPLE_LICENSE", "load_sample"]

SAMPLE_LICENSE = "CC BY 4.0"
_REPOSITORY = "https://github.com/webis-de/sigir25-rag-crowdsourcing"
# [5], [3,12], [4, 7.] and [11,1516,] (a slip in the data), but neither years nor words in brackets.
_CITATION = re.compile(r"[ \t]*\[\s*\d{1,2}(?:[\s,.]+\d{1,4})*[\s,.]*\]")
_Row = tuple[str, str, DocTags, str, str]  # document id, text, tags, query id, query text


def load_sample(name: str = "crowdrag-rewrites") -> Dataset:
    """Load a bundled sample; it needs no connection.

    Parameters
    ----------
    name : {"crowdrag-rewrites", "crowdrag25"}
        ``crowdrag-rewrites`` (design ``"rewrites"``): the openings of 160 essays by people and
        their rewrites by an LLM, both relevant to their query. ``crowdrag25`` (design
        ``"independent"``): six texts per query, by people and by GPT-4o as bullet list, essay and
        news item, all relevant; citation marks are removed.

    Raises
    ------
    DataError
        If there is no such sample.
    """
    if name not in _READERS:
        raise DataError(f"no bundled sample {name!r}; there are {', '.join(_READERS)}")
    return _READERS[name](_folder(name))


def _folder(name: str) -> Traversable:
    return resources.files("rag_sourcebias.io").joinpath("samples", name)


def _read_rewrites(folder: Traversable) -> Dataset:
    def rows(file: Path) -> list[_Row]:
        found: list[_Row] = []
        for _, record in read_jsonl(file):
            query_id = record["query_id"]
            versions = {"human": record["human"], "llm:claude": record["doc_styles"]["0"]}
            for source, text in versions.items():
                tags = DocTags(source=source, pair_id=query_id, origin="declared")
                found.append((f"{query_id}@{source}", text, tags, query_id, record["query"]))
        return found

    with resources.as_file(folder.joinpath("pairs.jsonl.gz")) as file:
        corpus, queries, qrels = _assemble(rows(file))
    return Dataset(
        name="crowdrag-rewrites",
        corpus=corpus,
        queries=queries,
        qrels=qrels,
        design="rewrites",
        license=SAMPLE_LICENSE,
        attribution=(
            f"Passages from Webis CrowdRAG-25 ({_REPOSITORY}), shortened, citation marks removed; "
            "rewritten by a large language model (Claude)"
        ),
    )


def _read_crowdrag25(folder: Traversable) -> Dataset:
    def rows(file: Path) -> list[_Row]:
        found: list[_Row] = []
        for _, record in read_jsonl(file):
            topic, style = record["topic"], record["style"]
            # The model is named by scripts/create_llm_responses.py of the source repository.
            source = "human" if record["kind"] == "human" else "llm:gpt-4o"
            tags = DocTags(
                source=source, style=style, pair_id=f"{topic}/{style}", origin="declared"
            )
            text = _CITATION.sub("", record["text"]).strip()
            found.append((record["response"], text, tags, topic, record["query"]))
        return found

    with resources.as_file(folder.joinpath("responses.jsonl.gz")) as file:
        corpus, queries, qrels = _assemble(rows(file))
    return Dataset(
        name="crowdrag25",
        corpus=corpus,
        queries=queries,
        qrels=qrels,
        design="independent",
        license=SAMPLE_LICENSE,
        attribution=f"Webis CrowdRAG-25 ({_REPOSITORY}), citation marks removed",
    )


def _assemble(rows: list[_Row]) -> tuple[Corpus, tuple[Query, ...], Qrels]:
    """Build a data set in which each document has grade 1 for its own query."""
    corpus = Corpus(
        texts=tuple(text for _, text, *_ in rows),
        tags=TagTable.from_tags((doc_id, tags) for doc_id, _, tags, *_ in rows),
    )
    texts = {query_id: text for *_, query_id, text in rows}
    queries = tuple(Query(query_id=q, text=text) for q, text in texts.items())
    return corpus, queries, Qrels.from_rows((q, doc_id, 1) for doc_id, _, _, q, _ in rows)


_READERS: dict[str, Callable[[Traversable], Dataset]] = {
    "crowdrag-rewrites": _read_rewrites,
    "crowdrag25": _read_crowdrag25,
}
