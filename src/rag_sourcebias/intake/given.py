"""A data set from whatever a program holds: a folder, a name, its parts, or one frame."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from rag_sourcebias.core.data import Corpus, Dataset, Qrels, TagTable
from rag_sourcebias.core.errors import DataError, SourceBiasError
from rag_sourcebias.intake.beir import judged_queries, read_beir
from rag_sourcebias.intake.belong import Ids, require_common
from rag_sourcebias.intake.documents import (
    as_corpus,
    read_documents,
    read_queries,
    read_tags,
    with_tags,
)
from rag_sourcebias.intake.judgments import read_qrels
from rag_sourcebias.intake.objects import a, is_frame, is_path, is_rows, of_split
from rag_sourcebias.intake.samples import list_datasets, load_sample
from rag_sourcebias.intake.tables import find_columns, names_of, read_table

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
    elif is_frame(value) or is_rows(value):
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
    raise DataError(
        f"data {str(value)!r} is no folder, and no data set of that name is known; expected a BEIR "
        f"folder (corpus, queries.jsonl, qrels), or one of sample, {', '.join(known)}"
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
    name, tags = str(value.get("name", "data")), parts["tags"] if tags is None else tags
    if parts["qrels"] is None:
        raise DataError(
            f"data hold no judgments: a dict with the keys {', '.join(map(repr, list(value)[:6]))} "
            "lacks 'qrels' ({query: {document: grade}}); it may hold corpus, queries, qrels, tags"
        )
    qrels = read_qrels(parts["qrels"], scale=grade_scale)
    corpus = parts["corpus"]
    if corpus is None:
        if tags is None:
            raise DataError(
                "data say of no document where it comes from: add tags ({document: 'human' or "
                "'llm:<model>'}), or a corpus whose documents have a source"
            )
        return Given(name=name, qrels=qrels, tags=read_tags(tags))
    if not isinstance(corpus, Corpus):
        corpus = as_corpus([read_documents(corpus, any_source=True)])
    if tags is not None:
        corpus = with_tags(corpus, read_tags(tags), "the tags")
    if parts["queries"] is None:
        return Given(name=name, qrels=qrels, tags=corpus.tags, texts=True)
    asked = judged_queries(read_queries(parts["queries"]), qrels, "the judgments")
    require_common(
        "document", Ids("the judgments", qrels.doc_ids), Ids("the corpus", corpus.doc_ids)
    )
    paired = bool(np.any(corpus.tags.pair_codes >= 0))
    return Given.of(
        Dataset(
            name=name,
            corpus=corpus,
            queries=asked.queries,
            qrels=qrels,
            design="rewrites" if paired else "unknown",
        )
    )


_ROLES = (
    "query", "question_text", "document", "text", "grade", "source", "style", "pair_id",
)  # fmt: skip


def _of_rows(value: Any, tags: Any, grade_scale: float) -> Given:  # noqa: ANN401
    """Read one row per query and document, with its relevance."""
    table = read_table(value)
    found = find_columns(table, dict.fromkeys(_ROLES))
    needed = {
        "query_id": found["query"] or found["question_text"],
        "doc_id": found["document"],
        "source": found["source"] if tags is None else "tags",
    }
    if lacking := [name for name, column in needed.items() if column is None]:
        raise DataError(
            f"data: a frame with columns {', '.join(table.names)} lacks {', '.join(lacking)}; one "
            "row per query and document needs query_id, doc_id, relevance and source ('human', "
            "'llm:<model>'; or pass tags=), and for retrieving query and text"
        )
    judged = {name: names_of(table, needed[name], role=name) for name in ("query_id", "doc_id")}
    if found["grade"]:
        judged["relevance"] = table.columns[found["grade"]]
    docs = judged["doc_id"]
    met = dict(zip(reversed(docs), reversed(range(len(table))), strict=True))
    first = sorted(met.values())  # rows in which a document is met

    def of_documents(*roles: str) -> dict[str, list[Any]]:
        columns = {role: table.columns[name] for role in roles if (name := found[role])}
        columns["doc_id"] = docs
        return {name: [cells[row] for row in first] for name, cells in columns.items()}

    parts: dict[str, Any] = {"qrels": judged}
    if found["question_text"] and found["text"]:
        questions = table.columns[found["question_text"]]
        parts["corpus"] = of_documents("text")
        parts["queries"] = dict(zip(judged["query_id"], questions, strict=True))
    if tags is None:
        tags = of_documents("source", "style", "pair_id")
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
