"""A data set from whatever a program holds: a folder, a name, its parts, or one frame."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from rag_sourcebias.core.data import Corpus, Dataset, Qrels, Query, TagTable
from rag_sourcebias.core.errors import DataError, SourceBiasError
from rag_sourcebias.intake.beir import read_beir
from rag_sourcebias.intake.belong import Ids, require_common
from rag_sourcebias.intake.documents import (
    as_corpus,
    read_documents,
    read_queries,
    read_tags,
    with_tags,
)
from rag_sourcebias.intake.judgments import read_qrels
from rag_sourcebias.intake.objects import _is_rows, a, is_frame, is_path, of_split
from rag_sourcebias.intake.samples import list_datasets, load_sample
from rag_sourcebias.intake.tables import find_column, find_columns, names_of, read_table

T = TypeVar("T")

# A whole data set.


@dataclass(frozen=True, kw_only=True)
class Given:
    """A data set, or just the judgments and tags that finished results need."""

    name: str
    qrels: Qrels
    tags: TagTable
    dataset: Dataset | None = None
    texts: bool = False

    @classmethod
    def of(cls, dataset: Dataset) -> Given:
        """Take everything from a data set."""
        return cls(
            name=dataset.name,
            qrels=dataset.qrels,
            tags=dataset.corpus.tags,
            dataset=dataset,
            texts=True,
        )


_PARTS = {
    "corpus": ("corpus", "documents", "docs"),
    "queries": ("queries", "questions", "topics"),
    "qrels": ("qrels", "judgments", "judgements", "relevance"),
    "tags": ("tags", "sources"),
}
_EXPECTED = (
    "expected a BEIR folder, the name of a data set, a Dataset, a dict with corpus, queries, qrels "
    "and tags, or a frame with one row per query and document"
)


def data_of(
    value: Any,  # noqa: ANN401
    *,
    tags: Any = None,  # noqa: ANN401
    split: str = "test",
    grade_scale: float = 1,
) -> Given:
    """Return the data set that a value stands for.

    Parameters
    ----------
    value : Dataset, path, str, mapping, tuple or frame
        A BEIR folder; the name of a data set, or ``"sample"``; a mapping with ``corpus``,
        ``queries``, ``qrels`` and ``tags``; the tuple ``(corpus, queries, qrels)`` that BEIR's own
        loader returns; a frame with a row per query and document.
    tags : optional
        Sources of the documents, where the data does not say them.
    split : str
        Of a folder or a public set.
    grade_scale : float
        Grades are multiplied by it.

    Raises
    ------
    DataError
        If it is none of these, or a part is missing; the message says which.
    """
    if isinstance(value, Dataset):
        found = value
    elif isinstance(value, str | os.PathLike):
        found = _named(value, split, grade_scale)
    elif isinstance(value, tuple) and len(value) in (3, 4):
        return _of_parts(dict(zip(_PARTS, value, strict=False)), tags, split, grade_scale)
    elif is_frame(value) or _is_rows(value):
        return _of_rows(value, tags, grade_scale)
    elif isinstance(value, Mapping):
        return _of_parts(value, tags, split, grade_scale)
    else:
        raise DataError(f"data: {a(value)} is no data set; {_EXPECTED}")
    if tags is not None:
        found = replace(found, corpus=with_tags(found.corpus, read_tags(tags), "the tags"))
    return Given.of(found)


def _named(value: str | os.PathLike[str], split: str, grade_scale: float) -> Dataset:
    if is_path(value) and Path(value).is_dir():
        return read_beir(value, split=split, grade_scale=grade_scale)
    known = [entry.name for entry in list_datasets()]
    if value in ("sample", *known):
        return load_sample(known[0] if value == "sample" else str(value))
    what = "is a file" if is_path(value) and Path(value).is_file() else "is no folder"
    raise DataError(
        f"data {str(value)!r} {what} and no data set of that name is known; expected a BEIR folder "
        f"(corpus, queries.jsonl, qrels), or one of sample, {', '.join(known)}"
    )


def _of_parts(
    value: Mapping[Any, Any],
    tags: Any,  # noqa: ANN401
    split: str,
    grade_scale: float,
) -> Given:
    parts = {
        part: of_split(next((value[name] for name in names if name in value), None), split)
        for part, names in _PARTS.items()
    }
    if tags is not None:
        parts["tags"] = tags
    if parts["qrels"] is None:
        raise DataError(
            f"data hold no judgments: a dict with the keys {', '.join(map(repr, list(value)[:6]))} "
            "lacks 'qrels' ({query: {document: grade}}); it may hold corpus, queries, qrels, tags"
        )
    qrels = read_qrels(parts["qrels"], scale=grade_scale)
    if parts["corpus"] is None:
        if parts["tags"] is None:
            raise DataError(
                "data say of no document where it comes from: add tags ({document: 'human' or "
                "'llm:<model>'}), or a corpus whose documents have a source"
            )
        return Given(name="data", qrels=qrels, tags=read_tags(parts["tags"]))
    corpus = parts["corpus"]
    if not isinstance(corpus, Corpus):
        corpus = as_corpus([read_documents(corpus, any_source=True)])
    if parts["tags"] is not None:
        corpus = with_tags(corpus, read_tags(parts["tags"]), "the tags")
    queries = None if parts["queries"] is None else read_queries(parts["queries"])
    return _assembled(corpus, queries, qrels, name=str(value.get("name", "data")))


def _assembled(
    corpus: Corpus, queries: tuple[Query, ...] | None, qrels: Qrels, *, name: str
) -> Given:
    paired = bool(np.any(corpus.tags.pair_codes >= 0))
    if queries is None:
        return Given(name=name, qrels=qrels, tags=corpus.tags, texts=True)
    judgments = Ids("the judgments", qrels.query_ids)
    require_common("query", Ids("the queries", [query.query_id for query in queries]), judgments)
    judgments = Ids("the judgments", qrels.doc_ids)
    require_common("document", Ids("the corpus", corpus.doc_ids), judgments)
    judged = set(qrels.query_ids)
    asked = tuple(query for query in queries if query.query_id in judged)
    if not asked:
        raise DataError("no query has a judgment: queries or qrels are empty")
    return Given.of(
        Dataset(
            name=name,
            corpus=corpus,
            queries=asked,
            qrels=qrels,
            design="rewrites" if paired else "unknown",
        )
    )


def _of_rows(value: Any, tags: Any, grade_scale: float) -> Given:  # noqa: ANN401
    """Read one row per query and document, with its relevance."""

    def choose(names: tuple[str, ...]) -> dict[str, str | None]:
        document = find_column(names, "document")
        query = find_column(names, "query", taken=(document,))
        roles = dict.fromkeys(("grade", "source", "style", "pair_id", "question_text", "text"))
        found = find_columns(names, roles, path="data")
        query = query or found["question_text"]
        if query is None or document is None:
            missing = "query_id or query" if query is None else "doc_id"
            raise DataError(
                f"data: a frame with columns {', '.join(names) or 'none'} lacks {missing}; one row "
                "per query and document needs query_id, doc_id, relevance and source, and for "
                "retrieving query and text"
            )
        if found["source"] is None and tags is None:
            raise DataError(
                f"data: a frame with columns {', '.join(names)} lacks source ('human', "
                "'llm:<model>'); add the column, or pass tags="
            )
        return {"query_id": query, "doc_id": document, "relevance": found.pop("grade"), **found}

    table = read_table(value, choose)
    cells = {role: table.columns[str(name)] for role, name in table.roles.items() if name}
    for role in ("query_id", "doc_id"):
        cells[role] = names_of(table, str(table.roles[role]), role=role)
    grades = cells.get("relevance", cells["doc_id"])
    judged = [row for row, grade in enumerate(grades) if grade is not None]
    met = dict(zip(reversed(cells["doc_id"]), range(len(table) - 1, -1, -1), strict=True))
    first = sorted(met.values())  # row in which a document is met

    def part(rows: Sequence[int], *roles: str) -> dict[str, list[Any]]:
        return {role: [cells[role][row] for row in rows] for role in roles if role in cells}

    parts = {"qrels": part(judged, "query_id", "doc_id", "relevance")}
    if tags is None:
        tags = part(first, "doc_id", "source", "style", "pair_id")
    if "question_text" in cells and "text" in cells:
        parts["corpus"] = part(first, "doc_id", "text")
        parts["queries"] = dict(zip(cells["query_id"], cells["question_text"], strict=True))
    return _of_parts(parts, tags, "", grade_scale)


# Errors that are not ours.


def said(read: Callable[[], T], what: str) -> T:
    """Call, and put what was read before the message of an error that is not ours."""
    try:
        return read()
    except SourceBiasError:
        raise
    except (TypeError, ValueError, LookupError, AttributeError, RecursionError) as error:
        raise DataError(f"{what} could not be read: {type(error).__name__}: {error}") from error
