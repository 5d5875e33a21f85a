"""Data that a program already holds: dictionaries, lists and frames, as the data model has them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from rag_sourcebias.core.data import Corpus, Dataset, DocTags, Qrels, Query, TagTable
from rag_sourcebias.core.errors import DataError, SourceBiasError
from rag_sourcebias.intake.beir import read_beir
from rag_sourcebias.intake.belong import Ids, require_common
from rag_sourcebias.intake.judgments import read_qrels, read_tags, whole_grade
from rag_sourcebias.intake.objects import (
    _is_rows,
    a,
    columns_of,
    is_column,
    is_frame,
    is_path,
    name_of,
    of_split,
)
from rag_sourcebias.intake.samples import list_datasets, load_sample
from rag_sourcebias.intake.tables import plain_name

T = TypeVar("T")

# Names under which columns and keys are looked for, the first that is there.
_DOC_IDS = ("doc_id", "docid", "document_id", "docno", "corpus_id", "passage_id", "pid", "id")
_QUERY_IDS = ("query_id", "qid", "topic_id", "topic", "question_id", "id")
_TEXTS = ("text", "page_content", "content", "document", "body", "contents", "passage")
_QUERY_TEXTS = ("text", "query", "question", "title")
_SOURCES = ("source", "rsb_source", "origin", "author")
_GRADES = ("relevance", "grade", "rel", "label", "score", "qrel", "relevant")


def _column(
    columns: Mapping[str, list[Any]], names: Sequence[str], what: str, role: str
) -> list[Any]:
    found = _optional(columns, names)
    if found is None:
        raise DataError(
            f"{what} have no column with the {role}: looked for {', '.join(names)}, found "
            f"{', '.join(columns) or 'none'}; rename one"
        )
    return found


def _optional(columns: Mapping[str, list[Any]], names: Sequence[str]) -> list[Any] | None:
    plain = {plain_name(name): column for name, column in columns.items()}
    return next((plain[name] for name in names if name in plain), None)


def _ids(columns: Mapping[str, list[Any]], names: Sequence[str], what: str) -> tuple[str, ...]:
    return tuple(map(name_of, _column(columns, names, what, "id")))


# Parts of a data set.


def _is_by_id(value: object) -> bool:
    """Whether a value is ``{id: row}`` and no table of columns."""
    return isinstance(value, Mapping) and not any(map(is_column, value.values()))


def queries_of(value: Any) -> tuple[Query, ...]:  # noqa: ANN401
    """Return queries from ``{id: text}``, from queries, from rows or from a frame."""
    if isinstance(value, Sequence) and all(isinstance(one, Query) for one in value):
        return tuple(value)
    if _is_by_id(value):
        pairs = [(key, _text(row, _QUERY_TEXTS, "query", key)) for key, row in value.items()]
    else:
        columns = columns_of(value, "queries")
        ids = _ids(columns, _QUERY_IDS, "queries")
        texts = _column(columns, _QUERY_TEXTS, "queries", "text of the query")
        pairs = list(zip(ids, texts, strict=True))
    return tuple(Query(query_id=name_of(key), text=str(text)) for key, text in pairs)


def _text(row: Any, names: Sequence[str], what: str, key: object) -> str:  # noqa: ANN401
    if isinstance(row, str):
        return row
    if isinstance(row, Mapping):
        title = row.get("title")
        text = next((row[n] for n in names if row.get(n)), None)
        if text is not None:
            return f"{title} {text}" if title and title != text else str(text)
    text = getattr(row, "page_content", None) or getattr(row, "text", None)
    if isinstance(text, str):
        return text
    raise DataError(f"{what} {key!r}: {a(row)} holds no text; expected a text, or a dict with one")


def corpus_of(value: Any, tags: Any) -> Corpus:  # noqa: ANN401
    """Return a corpus from ``{id: text}``, ``{id: {"text": …, "source": …}}``, rows or a frame."""
    rows: Sequence[Mapping[str, Any]] = ()
    if isinstance(value, Corpus):
        if tags is None:
            return value
        ids = value.doc_ids
        texts = value.texts
    elif _is_by_id(value):
        ids = tuple(map(name_of, value))
        texts = tuple(_text(row, _TEXTS, "document", key) for key, row in value.items())
        rows = [row if isinstance(row, Mapping) else {} for row in value.values()]
    else:
        columns = columns_of(value, "documents")
        ids = _ids(columns, _DOC_IDS, "documents")
        texts = tuple(map(str, _column(columns, _TEXTS, "documents", "text")))
        if "title" in columns:
            titled = zip(columns["title"], texts, strict=True)
            texts = tuple(f"{title} {text}" if title else text for title, text in titled)
        rows = _rows(columns, ("source", "rsb_source", "pair_id", "style"))
    if tags is None:
        each = [_declared(row) for row in rows]
    else:
        table = tags_of(tags)
        each = [table.get(doc_id) for doc_id in ids]
    return Corpus(texts=texts, tags=TagTable.from_tags(zip(ids, each, strict=True)))


def _rows(columns: Mapping[str, list[Any]], names: Sequence[str]) -> list[dict[str, Any]]:
    """Return the rows of the columns that are there, as many as the table has."""
    some = [name for name in names if name in columns]
    n = len(next(iter(columns.values())))
    return [{name: columns[name][at] for name in some} for at in range(n)]


def _declared(row: Mapping[str, Any]) -> DocTags:
    metadata = row.get("metadata")
    place = {**metadata, **row} if isinstance(metadata, Mapping) else row
    values = {name: place.get(f"rsb_{name}") or place.get(name) for name in
              ("source", "pair_id", "style")}  # fmt: skip
    source = values["source"]
    if metadata is not None and "source" not in row and source and not _is_source(source):
        values["source"] = None  # LangChain keeps a path under this key
    source, pair_id, style = (None if v is None else str(v) for v in values.values())
    return DocTags(source=source, pair_id=pair_id, style=style)


def _is_source(value: object) -> bool:
    return value == "human" or str(value).startswith("llm")


def tags_of(value: Any) -> TagTable:  # noqa: ANN401
    """Return tags from ``{id: source}``, ``{id: {"source": …}}``, rows, a frame or a file."""
    if isinstance(value, TagTable):
        return value
    if isinstance(value, str | os.PathLike):
        return read_tags(_existing(value, "tags"))
    if isinstance(value, Mapping) and set(map(type, value.values())) <= {str, type(None)}:
        return TagTable.from_sources(dict(zip(map(name_of, value), value.values(), strict=True)))
    if _is_by_id(value):
        return TagTable.from_tags((name_of(key), _tag(row, key)) for key, row in value.items())
    columns = columns_of(value, "tags")
    ids = _ids(columns, _DOC_IDS, "tags")
    sources = _column(columns, _SOURCES, "tags", "source")
    rows = _rows({**columns, "source": sources}, ("source", "pair_id", "style"))
    return TagTable.from_tags(zip(ids, map(_declared, rows), strict=True))


def _tag(row: Any, key: object) -> DocTags:  # noqa: ANN401
    if isinstance(row, DocTags):
        return row
    if row is None or isinstance(row, str):
        return DocTags(source=row)
    if isinstance(row, Mapping):
        return _declared(row)
    raise DataError(f'tag of document {key!r}: {a(row)} is no source; expected "human", "llm:…"')


def qrels_of(value: Any, scale: float = 1) -> Qrels:  # noqa: ANN401
    """Return judgments from ``{query: {document: grade}}``, ``{query: [documents]}``, rows, …."""
    if isinstance(value, Qrels):
        return value
    if isinstance(value, str | os.PathLike):
        return read_qrels(_existing(value, "qrels"), scale=scale)
    judged: Iterable[tuple[Any, Any, Any]]
    if isinstance(value, Mapping) and not is_frame(value) and not _looks_like_columns(value):
        judged = (
            (query, doc, grade)
            for query, row in value.items()
            for doc, grade in _graded(query, row)
        )
    elif isinstance(value, Sequence) and value and isinstance(value[0], tuple | list):
        judged = value
    else:
        columns = columns_of(value, "judgments")
        ids = _ids(columns, _QUERY_IDS, "judgments")
        docs = _ids(columns, _DOC_IDS, "judgments")
        judged = zip(ids, docs, _optional(columns, _GRADES) or [1] * len(ids), strict=True)
    return Qrels.from_rows(
        (name_of(q), name_of(d), whole_grade(g, scale, f"query {q!r}, document {d!r}"))
        for q, d, g in judged
    )


def _looks_like_columns(value: Mapping[Any, Any]) -> bool:
    return not {plain_name(str(name)) for name in value}.isdisjoint(_QUERY_IDS[:2]) and all(
        map(is_column, value.values())
    )


def _graded(query: object, row: Any) -> Iterable[tuple[Any, Any]]:  # noqa: ANN401
    if isinstance(row, Mapping):
        return row.items()
    if isinstance(row, str) or not isinstance(row, Iterable):
        raise DataError(
            f"judgments of query {query!r}: {a(row)}; expected {{document id: grade}} or a list of "
            "relevant document ids"
        )
    return ((doc, 1) for doc in row)


def _existing(path: str | os.PathLike[str], what: str) -> Path:
    if not Path(path).exists():
        raise DataError(f"{what}: there is no file {str(path)!r}")
    return Path(path)


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
        tags = dataset.corpus.tags
        return cls(name=dataset.name, qrels=dataset.qrels, tags=tags, dataset=dataset, texts=True)


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
        found = replace(found, corpus=corpus_of(found.corpus, tags))
    return Given.of(found)


def _named(value: str | os.PathLike[str], split: str, grade_scale: float) -> Dataset:
    if is_path(value) and Path(value).is_dir():
        return read_beir(value, split=split, grade_scale=grade_scale)
    if isinstance(value, str) and value == "sample":
        return load_sample()
    known = [entry.name for entry in list_datasets()]
    if isinstance(value, str) and value in known:
        return load_sample(value)
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
    qrels = qrels_of(parts["qrels"], grade_scale)
    if parts["corpus"] is None:
        if parts["tags"] is None:
            raise DataError(
                "data say of no document where it comes from: add tags ({document: 'human' or "
                "'llm:<model>'}), or a corpus whose documents have a source"
            )
        return Given(name="data", qrels=qrels, tags=tags_of(parts["tags"]))
    corpus = corpus_of(parts["corpus"], parts["tags"])
    queries = None if parts["queries"] is None else queries_of(parts["queries"])
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
    """Read one row per (query, document) with its relevance."""
    columns = columns_of(value, "data")
    texts = _optional(columns, ("query", "question", "query_text"))
    query_ids = _optional(columns, _QUERY_IDS[:-1]) or texts
    doc_ids = _optional(columns, _DOC_IDS)
    if query_ids is None or doc_ids is None:
        missing = "query_id or query" if query_ids is None else "doc_id"
        raise DataError(
            f"data: a frame with columns {', '.join(columns) or 'none'} lacks {missing}; one row "
            "per query and document needs query_id, doc_id, relevance and source, and for "
            "retrieving query and text"
        )
    sources = _optional(columns, _SOURCES)
    if sources is None and tags is None:
        raise DataError(
            f"data: a frame with columns {', '.join(columns)} lacks source ('human', "
            "'llm:<model>'); add the column, or pass tags="
        )
    first: dict[str, int] = {}  # row in which a document is met
    for at, doc_id in enumerate(doc_ids):
        first.setdefault(str(doc_id), at)
    if tags is None:
        rows = _rows({**columns, "source": sources or []}, ("source", "pair_id", "style"))
        tags = {doc_id: rows[at] for doc_id, at in first.items()}
    grades = _optional(columns, _GRADES) or [1] * len(doc_ids)
    judged = {
        (str(query), str(doc)): grade
        for query, doc, grade in zip(query_ids, doc_ids, grades, strict=True)
        if grade is not None
    }
    parts: dict[str, Any] = {"qrels": [(*pair, grade) for pair, grade in judged.items()]}
    passages = _optional(columns, _TEXTS)
    if texts is not None and passages is not None:
        parts["corpus"] = {doc_id: str(passages[at]) for doc_id, at in first.items()}
        parts["queries"] = dict(zip(map(str, query_ids), map(str, texts), strict=True))
    return _of_parts(parts, tags, "", grade_scale)


# Errors that are not ours.


def said(read: Callable[[], T], what: str) -> T:
    """Call, and put what was read before the message of an error that is not ours."""
    try:
        return read()
    except SourceBiasError:
        raise
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise DataError(f"{what} could not be read: {type(error).__name__}: {error}") from error
