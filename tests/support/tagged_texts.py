"""Corpora and data sets of tests, written as rows."""

from collections.abc import Iterable, Mapping
from typing import Any

from rag_sourcebias.core.data import Corpus, Dataset, DocTags, Qrels, Query, TagTable

Row = tuple[str, str | None, str | None, str]
"""Document, source, pair, text."""


def corpus_of(*rows: Row) -> Corpus:
    tags = [(doc, DocTags(source=source, pair_id=pair)) for doc, source, pair, _ in rows]
    return Corpus(texts=tuple(text for *_, text in rows), tags=TagTable.from_tags(tags))


def dataset_of(
    rows: Iterable[Row],
    queries: Mapping[str, str],
    grades: Mapping[str, Mapping[str, int]],
    **described: Any,
) -> Dataset:
    """Return a data set of rewrites, unless ``described`` otherwise."""
    return Dataset(
        corpus=corpus_of(*rows),
        queries=tuple(Query(query_id=name, text=text) for name, text in queries.items()),
        qrels=Qrels.from_dict(grades),
        **{"name": "made", "design": "rewrites", **described},
    )
