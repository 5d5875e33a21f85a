"""Documents, their tags and queries from any carrier: files, frames, rows and dictionaries."""

import logging
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain, product
from types import NoneType
from typing import Any, get_args

from rag_sourcebias.core.data import Corpus, DocTags, Origin, Query, TagTable, Vocabulary
from rag_sourcebias.core.errors import DataError, is_source, require_name
from rag_sourcebias.core.tags import METADATA_KEYS, TAG_FIELDS
from rag_sourcebias.intake.belong import Ids, Kind, require_common
from rag_sourcebias.intake.files import read_lines, tells_number
from rag_sourcebias.intake.objects import is_column, name_of
from rag_sourcebias.intake.tables import (
    Table,
    cells_as,
    find_column,
    find_columns,
    names_of,
    read_fields,
    read_table,
    require_once,
)

_logger = logging.getLogger("rag_sourcebias.intake")

# Tags: which source (and style, and twin) each document has.


def read_tags(
    tags: Any,  # noqa: ANN401 - whatever a user has
    *,
    doc_id: str | None = None,
    source: str | None = None,
    style: str | None = None,
) -> TagTable:
    """Read document tags from a file, a frame, rows or a dictionary.

    Parameters
    ----------
    tags : path, frame, list of dicts, dict of columns, ``{id: source}`` or ``{id: row}``
        TSV, CSV, JSON lines or Parquet; see :func:`~rag_sourcebias.intake.tables.read_table`. It
        holds an id and a source, and may hold ``style``, ``pair_id``, ``origin`` and
        ``confidence``. An empty value, ``-`` or ``null`` means unknown.
    doc_id, source, style : str, optional
        Columns that hold them, where their names are not the usual ones.

    Returns
    -------
    TagTable
        In the order of the rows. Where there is no ``origin``, a known source counts as declared.

    Raises
    ------
    DataError
        If a file is missing, empty or not UTF-8, there is no column of ids or sources, a document
        is named twice, or a cell is an origin or confidence that is not allowed, or a source or
        style with control characters (see :func:`~rag_sourcebias.core.errors.require_name`).
    """
    if isinstance(tags, TagTable):
        return tags
    if type(tags) is dict and not (doc_id or source or style) and _tells_sources(tags):
        return TagTable.from_dict(tags)

    table = read_table(_rows_by_id(tags, "doc_id", "source"))
    roles = {"document": doc_id, "source": source, "style": style}
    options = {"source": "--group (in a terminal)"}
    found = find_columns(table, roles, needed=("document", "source"), options=options)
    ids = _ids(table, found.pop("document"), "document")
    others = {"pair_id", "origin", "confidence"}.intersection(table.names) - {found["source"]}
    found |= dict(zip(others, others, strict=True))
    cells = {role: table.columns[column] for role, column in found.items() if column}
    return TagTable.from_columns(**_tag_columns(table, ids, cells))


def _tells_sources(tags: dict[Any, Any]) -> bool:
    """Whether a dictionary is ``{id: source}`` with nothing to clean or to refuse."""
    try:
        names = set(tags.values()) - {None}
        if set(map(type, names)) != {str}:
            return False
        if any(_label(name) != name or not name.isprintable() for name in names):
            return False
        return "" not in tags and list(tags) == list(map(str.strip, tags))
    except TypeError:  # an id is no text, or a cell holds several things
        return False


def read_groups(groups: Any) -> dict[str, str]:  # noqa: ANN401 - whatever a user has
    """Read the group of each document that has copies, as :func:`read_tags` reads its source.

    Parameters
    ----------
    groups : path, frame, list of dicts, dict of columns or ``{id: group}``
        An empty group means that a document has no copies.

    Raises
    ------
    DataError
        If there is no column of ids or groups, or a document is named twice.
    """
    table = read_table(_rows_by_id(groups, "doc_id", "group"))
    found = _columns(table, "document", "group")
    ids = _ids(table, found["document"], "document")
    pairs = zip(ids, cells_as(table, found["group"], _label), strict=True)
    return {doc_id: group for doc_id, group in pairs if group is not None}


def _columns(table: Table, key: str, role: str, *, also: Sequence[str] = ()) -> dict[str, Any]:
    """Return the columns of an id, of what is needed beside it, and of other roles."""
    own = "_id" if "_id" in table.columns else None  # of BEIR, whatever else is there
    asked = {key: own, **dict.fromkeys((role, *also))}
    return find_columns(table, asked, needed=(key, role), options={})


def _rows_by_id(value: Any, key: str, cell: str) -> Any:  # noqa: ANN401 - whatever a user has
    """Return what a dictionary holds by id as a table; anything else as it is.

    Parameters
    ----------
    value : ``{id: text}``, ``{id: row}``, ``{id: document of a framework}``, or anything
    key, cell : str
        Names of the columns of ids, and of what is no row.
    """
    if not isinstance(value, Mapping):
        return value
    held = list(value.values())
    if set(map(type, held)) <= {str, NoneType}:
        return {key: list(value), cell: held}
    if any(map(is_column, held)):
        return value
    return [{**_row(one, cell), key: name} for name, one in value.items()]


def _row(value: Any, cell: str) -> Mapping[str, Any]:  # noqa: ANN401
    if isinstance(value, Mapping):
        return value
    if isinstance(value, DocTags):
        return asdict(value)
    text = getattr(value, "page_content", None) or getattr(value, "text", value)
    return {cell: text, "metadata": getattr(value, "metadata", None)}


def _ids(table: Table, column: str, role: str) -> Vocabulary:
    """Return the ids of a table, each of which occurs once."""
    ids = names_of(table, column, role="id")
    require_once(table, ids, role, f"keep one row for each {role}")
    return Vocabulary(ids)


def _tag_columns(
    table: Table, ids: Sequence[str], cells: Mapping[str, list[Any]]
) -> dict[str, Any]:
    """Return ids and cells of tag fields as the columns of a :class:`TagTable`."""
    told = replace(table, columns=dict(cells))
    columns: dict[str, Any] = {
        f"{name}s": cells_as(told, name, _READ[name]) if name in cells else [None] * len(table)
        for name in TAG_FIELDS
    }
    if not any(columns["origins"]):
        columns["origins"] = [source and "declared" for source in columns["sources"]]
    return {"doc_ids": ids, **columns}


_UNKNOWN = ("", "-", "null")
_NAMES = {str, int, float, NoneType}


def _any_label(cell: object) -> str | None:
    """Return a name; None where it is missing or says unknown."""
    if type(cell) not in _NAMES:
        raise DataError(f"{cell!r:.80} must be a name")
    name = (name_of(cell) or "").strip()
    return None if name.lower() in _UNKNOWN else name


def _label(cell: object) -> str | None:
    name = _any_label(cell)
    return name and require_name(name, "name")


def _origin(cell: object) -> str | None:
    name = _any_label(cell)
    if name not in (None, *get_args(Origin)):
        raise DataError(f"{name!r} is not one of {', '.join(get_args(Origin))}")
    return name


def _confidence(cell: object) -> float | None:
    name = _any_label(cell)
    if name is not None and not (tells_number(name) and 0 <= float(name) <= 1):
        raise DataError(f"{cell!r:.200} is no number in [0, 1]")
    return None if name is None else float(name)


_READ: Mapping[str, Callable[[Any], Any]] = {
    "source": _label,
    "style": _label,
    "pair_id": _any_label,
    "origin": _origin,
    "confidence": _confidence,
}


# Documents: a text and perhaps a title for each id, and what rows and metadata tell of tags.


@dataclass(frozen=True, kw_only=True, eq=False)
class Documents:
    """Documents of one table, as columns of equal length.

    Parameters
    ----------
    where : str
        What the table is called.
    names : vocabulary
        Ids as the table has them.
    titles, bodies : list of str
        A title is empty where there is none.
    tags : dict of str to list
        Columns of a :class:`~rag_sourcebias.core.TagTable`, with ids that tell versions apart.
    metadata : list of mapping
        What else a row holds, and what is under its key ``metadata``.
    strange : list of str
        What stands in the place of a source and is none.
    """

    where: str
    names: Vocabulary
    titles: list[str]
    bodies: list[str]
    tags: dict[str, Any]
    metadata: list[Mapping[str, Any]]
    strange: list[str]

    def rows(self) -> Iterator[tuple[str, str, str, Mapping[str, Any]]]:
        """Give the name, title, text and metadata of each document."""
        return zip(self.names, self.titles, self.bodies, self.metadata, strict=True)


def as_corpus(parts: Sequence[Documents], *, titles: bool = True) -> Corpus:
    """Return the documents of several tables as one corpus.

    Raises
    ------
    DataError
        If an id occurs in two of them.
    """
    tags = {
        name: list(chain.from_iterable(part.tags[name] for part in parts)) for name in parts[0].tags
    }
    texts = (
        f"{title if titles else ''} {body}".strip()
        for part in parts
        for title, body in zip(part.titles, part.bodies, strict=True)
    )
    return Corpus(texts=tuple(texts), tags=TagTable.from_columns(**tags))


def read_documents(
    documents: Any,  # noqa: ANN401 - whatever a user has
    *,
    source: str | None = None,
    any_source: bool = False,
    whole: bool = False,
) -> Documents:
    """Read documents from a file, a frame, rows or a dictionary.

    Parameters
    ----------
    documents : path, frame, list of dicts, dict of columns, ``{id: text}`` or ``{id: row}``
        With an id (``_id``, ``doc_id``, …), a text (``text``, ``contents``, …) and perhaps a
        ``title``, ``source``, ``style``, ``pair_id`` and ``metadata``. A file of two columns
        between tabs without a header holds ids and texts.
    source : str, optional
        Of all of them; their ids name what they are versions of.
    any_source : bool
        Take any name in a column ``source`` for a source. Elsewhere it often holds a path, an
        address or a publisher, and only "human" and "llm:<model>" are read.
    whole : bool
        Keep all columns as metadata.

    Raises
    ------
    DataError
        If no column is recognised as id or text, an id is empty or occurs twice, or a text is none.
    """
    rows = _rows_by_id(_without_header(documents, "document"), "doc_id", "text")
    return documents_in(read_table(rows), source=source, any_source=any_source, whole=whole)


_TOLD = (*METADATA_KEYS, "source", "style", "pair_id")


def document_columns(table: Table) -> dict[str, Any]:
    """Find the columns of documents; see :func:`read_documents`."""
    return _columns(table, "document", "text", also=("title",))


def documents_in(
    table: Table, *, source: str | None = None, any_source: bool = False, whole: bool = False
) -> Documents:
    """Return the documents of a table; see :func:`read_documents`."""
    found = document_columns(table)
    names = _ids(table, found["document"], "document")
    kept = table.names if whole else [*_TOLD, "metadata"]
    others = table.columns.keys() - found.values()
    rest = {name: table.columns[name] for name in kept if name in others}
    held: list[Mapping[str, Any]] = [
        cell if isinstance(cell, dict) else {} for cell in rest.pop("metadata", names)
    ]
    ids: Sequence[str] = names
    told, strange = _told(rest, held, any_source=any_source)
    if source is not None:
        ids, strange = [f"{name}@{source}" for name in names], []
        told |= {"source": [source] * len(ids), "pair_id": list(names)}
    metadata: list[Mapping[str, Any]] = [
        {name: cell for name, cell in zip(rest, row, strict=True) if cell is not None} | more
        for *row, more in zip(*rest.values(), held, strict=True)
    ]
    titles = [""] * len(names)
    if found["title"]:
        titles = cells_as(table, found["title"], _text_or_none)
    return Documents(
        where=table.path,
        names=names,
        titles=titles,
        bodies=cells_as(table, found["text"], _text),
        tags=_tag_columns(table, ids, told),
        metadata=metadata if rest else held,
        strange=strange,
    )


def _text_or_none(cell: object) -> str:
    return "" if cell is None else _text(cell)


def _text(cell: object) -> str:
    if not isinstance(cell, str):
        raise DataError(f"is {cell!r:.80}; expected a text")
    return cell


def _told(
    rest: Mapping[str, list[Any]], held: Sequence[Mapping[str, Any]], *, any_source: bool
) -> tuple[dict[str, list[Any]], list[str]]:
    """Return the tags that rows and their metadata tell, and what stands for a source and is none.

    Our own keys go before plain ones, and a row before its metadata.
    """
    inner: dict[str, list[Any]] = {}
    for key in set().union(*held).intersection(_TOLD):
        cells = [row.get(key) for row in held]
        inner[key] = [cell if type(cell) in _NAMES else None for cell in cells]
    found: dict[str, list[Any]] = {}
    loose: list[list[Any]] = []
    for key, place in product(_TOLD, (rest, inner)):
        if key not in place:
            continue
        name, cells = key.removeprefix("rsb_"), place[key]
        if key == "source" and not (any_source and place is rest):
            loose.append(cells)
            cells = [cell if isinstance(cell, str) and is_source(cell) else None for cell in cells]
        pairs = zip(found.get(name, cells), cells, strict=True)
        found[name] = [cell if before in (None, "") else before for before, cell in pairs]
    strange = [
        str(cell)
        for cells in loose
        for cell, source in zip(cells, found["source"], strict=True)
        if cell and source is None
    ]
    return found, strange


def report_strange(where: object, strange: Sequence[str]) -> None:
    """Warn about what was not read as sources, if there is anything."""
    if strange:
        _logger.warning(
            "%s: %d source value(s) such as %r were not read as tags: only 'human' and "
            "'llm:<model>' are; use a file of tags for other names",
            where,
            len(strange),
            strange[0],
        )


def report_unknown(kind: Kind, ids: Sequence[str], known: Collection[str], *, where: str) -> None:
    """Warn about ids of judgments or tags that a data set does not hold.

    Parameters
    ----------
    kind : {"query", "document"}
    ids : sequence of str
    known : collection of str
    where : str
        Names the file of judgments or tags.

    Raises
    ------
    DataError
        If no id is known.
    """
    held = set(known)
    unknown = [i for i in ids if i not in held]
    of = "the queries" if kind == "query" else "the corpus"
    require_common(kind, Ids(where, ids), Ids(of, list(known)))
    if unknown:
        _logger.warning(
            "%s: %s ids not in %s: %d of %d, first %s; their rows were dropped",
            where,
            kind,
            of,
            len(unknown),
            len(ids),
            unknown[:3],
        )


def overlaid(own: TagTable, tags: TagTable) -> TagTable:
    """Return tags of documents: a row of the second table goes before what they tell themselves."""
    if own.row_of.keys().isdisjoint(tags.doc_ids):
        return own
    return TagTable.from_tags(
        (doc_id, (tags if doc_id in tags.row_of else own).get(doc_id)) for doc_id in own.doc_ids
    )


def with_tags(corpus: Corpus, tags: TagTable, where: str) -> Corpus:
    """Return a corpus with tags that were kept beside it.

    Raises
    ------
    DataError
        If they have no document in common.
    """
    report_unknown("document", tags.doc_ids, corpus.doc_ids, where=where)
    return replace(corpus, tags=overlaid(corpus.tags, tags))


# Queries, and the simplest form of texts.


def read_queries(queries: Any) -> tuple[Query, ...]:  # noqa: ANN401 - whatever a user has
    """Read queries from a file, a frame, rows, ``{id: text}`` or queries.

    Parameters
    ----------
    queries : path, frame, list of dicts, dict of columns, dictionary or sequence of Query
        With an id (``_id``, ``query_id``, …) and a text (``text``, ``query``, …). A file of two
        columns between tabs without a header holds ids and texts.

    Raises
    ------
    DataError
        If no column is recognised as id or text, an id is empty or occurs twice, or a text is none.
    """
    if isinstance(queries, Sequence) and all(isinstance(one, Query) for one in queries):
        return tuple(queries)

    rows = _rows_by_id(_without_header(queries, "query"), "query_id", "text")
    table = read_table(rows)
    found = _columns(table, "query", "query_text")
    ids, texts = _ids(table, found["query"], "query"), cells_as(table, found["query_text"], _text)
    pairs = zip(ids, texts, strict=True)
    return tuple(Query(query_id=query_id, text=text.strip()) for query_id, text in pairs)


def read_questions(questions: Any) -> tuple[Query, ...]:  # noqa: ANN401 - whatever a user has
    """Read questions: texts, a file with one a line, or queries with their ids.

    Parameters
    ----------
    questions : list of str, path, or what :func:`read_queries` takes
        Texts without ids are numbered from ``q1``; blank lines and repeated texts are left out.
    """
    if isinstance(questions, list | tuple) and all(isinstance(text, str) for text in questions):
        lines: Iterable[str] = questions
    elif isinstance(questions, str | os.PathLike) and os.fspath(questions).endswith(".txt"):
        lines = [line for _, line in read_lines(questions)]
        if any("\t" in line for line in lines):
            return read_queries(questions)
    else:
        return read_queries(questions)
    texts = dict.fromkeys(filter(None, map(str.strip, lines)))
    return tuple(Query(query_id=f"q{n}", text=text) for n, text in enumerate(texts, start=1))


def _without_header(source: Any, role: str) -> Any:  # noqa: ANN401
    """Return two columns whose first line names neither as a table; else what was given."""
    if not isinstance(source, str | os.PathLike):
        return source
    if not os.fspath(source).removesuffix(".gz").endswith((".tsv", ".txt")):
        return source
    first = next(read_lines(source), (0, ""))[1].split("\t")
    named = find_column(first, role) or find_column(first, "text")
    if len(first) != 2 or named is not None:
        return source
    return read_fields(source, (f"{role}_id", "text"), lambda line: line.split("\t", 1))
