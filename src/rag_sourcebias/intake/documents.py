"""Documents, their tags and queries from any carrier: files, frames, rows and dictionaries."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import chain
from types import NoneType
from typing import Any, cast, get_args

import numpy as np

from rag_sourcebias.core.data import Corpus, DocTags, Origin, Query, TagTable, Vocabulary
from rag_sourcebias.core.errors import DataError, is_source, require_name, require_one_of
from rag_sourcebias.core.tags import METADATA_KEYS, TAG_FIELDS
from rag_sourcebias.intake.belong import Ids, require_common
from rag_sourcebias.intake.files import read_lines
from rag_sourcebias.intake.objects import is_column, name_of, plain_cells
from rag_sourcebias.intake.tables import (
    Table,
    find_column,
    find_columns,
    names_of,
    read_fields,
    read_table,
    require_once,
    table_name,
    table_of,
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

    def choose(names: tuple[str, ...]) -> dict[str, str | None]:
        asked = {"document": doc_id, "source": source, "style": style}
        needed = ("document", "source")
        options = {"source": "--group (in a terminal)"}
        found = find_columns(names, asked, path=name, needed=needed, options=options)
        others = {"pair_id", "origin", "confidence"}.intersection(names) - {found["source"]}
        return found | {own: own for own in others}

    name = table_name(tags)
    table = read_table(_rows_by_id(tags, "doc_id", "source"), choose)
    ids = _ids(table, "document", keys=tags)
    cells = {role: table.columns[str(column)] for role, column in table.roles.items() if column}
    return TagTable.from_columns(ids, **_tag_columns(table, cells))


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

    def choose(names: tuple[str, ...]) -> dict[str, str | None]:
        roles = {"document": None, "group": None}
        return find_columns(names, roles, path=name, needed=tuple(roles), options={})

    name = table_name(groups)
    table = read_table(_rows_by_id(groups, "doc_id", "group"), choose)
    cells = table.columns[str(table.roles["group"])]
    pairs = zip(_ids(table, "document"), _labels(table, cells, "group"), strict=True)
    return {doc_id: group for doc_id, group in pairs if group is not None}


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
        columns = {key: plain_cells(list(value), "data"), cell: held}
        return table_of(columns, "data", tuple)
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


def _ids(table: Table, role: str, *, keys: Any = None) -> Vocabulary:  # noqa: ANN401
    """Return the ids of a table, each of which occurs once, as the keys of a dictionary do."""
    ids = names_of(table, str(table.roles[role]), role="id")
    if not isinstance(keys, dict) or ids != list(keys):
        require_once(table, ids, role, f"keep one row for each {role}")
    return Vocabulary(ids)


def _tag_columns(table: Table, cells: Mapping[str, list[Any]]) -> dict[str, list[Any]]:
    """Return cells of tag fields as the columns of a :class:`TagTable`."""
    missing: list[Any] = [None] * len(table)
    source, style, pair_id, origin = (
        _labels(table, cells[name], name) if name in cells else missing for name in TAG_FIELDS[:-1]
    )
    for name in set(origin) - {None, *get_args(Origin)}:
        require_one_of(f"{table.where(origin.index(name))}: origin", name, get_args(Origin))
    if not any(origin):
        declared = {name: name and "declared" for name in set(source)}
        origin = list(map(declared.__getitem__, source))
    confidence = _confidences(table, cells["confidence"]) if "confidence" in cells else missing
    return {
        "sources": source,
        "styles": style,
        "pair_ids": pair_id,
        "origins": origin,
        "confidences": confidence,
    }


_UNKNOWN = ("", "-", "null")
_NAMES = {str, int, float, NoneType}


def _labels(table: Table, cells: list[Any], role: str) -> list[str | None]:
    """Return cells as names; None where one is missing or says unknown."""
    if not {*map(type, cells)} <= _NAMES:
        row = next(row for row, cell in enumerate(cells) if not _is_name(cell))
        raise DataError(f"{table.where(row)}: {role} {cells[row]!r:.80} must be a name")
    label_of = {cell: _label(cell) for cell in set(cells)}
    for cell, name in label_of.items():
        if name is not None and role != "pair_id" and not name.isprintable():
            require_name(name, role, table.where(cells.index(cell)))
    return list(map(label_of.__getitem__, cells))


def _is_name(cell: object) -> bool:
    return isinstance(cell, str | int | float | None) and not isinstance(cell, bool)


def _label(cell: object) -> str | None:
    name = (name_of(cell) or "").strip()
    return None if name.lower() in _UNKNOWN else name


def _confidences(table: Table, cells: list[Any]) -> list[float | None]:
    found: list[float | None] = [None] * len(table)
    for row, cell in enumerate(cells):
        if cell is None or (isinstance(cell, str) and cell.strip().lower() in _UNKNOWN):
            continue
        try:
            found[row] = float(cell) if _is_name(cell) else np.nan
        except (ValueError, OverflowError):
            found[row] = np.nan
        if not 0 <= cast("float", found[row]) <= 1:
            raise DataError(f"{table.where(row)}: confidence {cell!r:.200} is no number in [0, 1]")
    return found


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
        Columns of a :class:`~rag_sourcebias.core.TagTable`.
    metadata : list of mapping
        What else a row holds, and what is under its key ``metadata``.
    source : str or None
        Of all documents, where it is known.
    strange : list of str
        What stands in the place of a source and is none.
    """

    where: str
    names: Vocabulary
    titles: list[str]
    bodies: list[str]
    tags: dict[str, list[Any]]
    metadata: list[Mapping[str, Any]]
    source: str | None
    strange: list[str]

    @property
    def ids(self) -> Sequence[str]:
        """Ids that tell versions of a document apart."""
        return (
            list(self.names) if self.source is None else [f"{i}@{self.source}" for i in self.names]
        )

    def rows(self) -> Iterator[tuple[str, str, str, Mapping[str, Any]]]:
        """Give the name, title, text and metadata of each document."""
        return zip(self.names, self.titles, self.bodies, self.metadata, strict=True)

    def texts(self, *, titles: bool) -> Iterator[str]:
        """Give the text to index: the title, if wanted, a space, and the text, stripped."""
        if not titles:
            return map(str.strip, self.bodies)
        pairs = zip(self.titles, self.bodies, strict=True)
        return (f"{title} {body}".strip() for title, body in pairs)


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
    return Corpus(
        texts=tuple(chain.from_iterable(part.texts(titles=titles) for part in parts)),
        tags=TagTable.from_columns(chain.from_iterable(part.ids for part in parts), **tags),
    )


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
    path = table_name(documents)
    rows = _rows_by_id(_without_header(documents, "document"), "doc_id", "text")
    table = read_table(rows, partial(document_columns, path=path, whole=whole))
    return documents_in(table, source=source, any_source=any_source)


_TOLD = (*METADATA_KEYS, "source", "style", "pair_id")


def document_columns(
    names: Sequence[str], *, path: str, whole: bool = False
) -> dict[str, str | Sequence[str] | None]:
    """Find the columns of documents; see :func:`read_documents`."""
    own = "_id" if "_id" in names else None  # of BEIR, whatever else is there
    asked = {"document": own, "text": None, "title": None}
    found = find_columns(names, asked, path=path, needed=("document", "text"), options={})
    kept = names if whole else [*_TOLD, "metadata"]
    others = [name for name in kept if name in names and name not in found.values()]
    return {**found, "others": others}


def documents_in(table: Table, *, source: str | None = None, any_source: bool = False) -> Documents:
    """Return the documents of a table whose columns :func:`document_columns` chose."""
    ids = _ids(table, "document")
    rest = {name: table.columns[name] for name in table.roles["others"] or ()}
    held: list[Mapping[str, Any]] = [
        cell if isinstance(cell, dict) else {} for cell in rest.pop("metadata", ids)
    ]
    told, strange = _told(rest, held, any_source=any_source)
    if source is not None:
        told |= {"source": [source] * len(ids), "pair_id": list(ids)}
        strange = []
    metadata: list[Mapping[str, Any]] = [
        {name: cell for name, cell in zip(rest, row, strict=True) if cell is not None} | more
        for *row, more in zip(*rest.values(), held, strict=True)
    ]
    return Documents(
        where=table.path,
        names=ids,
        titles=_texts(table, "title") if table.roles["title"] else [""] * len(ids),
        bodies=_texts(table, "text"),
        tags=_tag_columns(table, told),
        metadata=metadata if rest else held,
        source=source,
        strange=strange,
    )


def _texts(table: Table, role: str) -> list[str]:
    column = str(table.roles[role])
    cells = table.columns[column]
    if role == "title":
        cells = ["" if cell is None else cell for cell in cells]
    if {*map(type, cells)} <= {str}:
        return cells
    row = next(row for row, cell in enumerate(cells) if not isinstance(cell, str))
    raise DataError(f"{table.where(row)}: {column} is {cells[row]!r:.80}; expected a text")


def _told(
    rest: Mapping[str, list[Any]], held: Sequence[Mapping[str, Any]], *, any_source: bool
) -> tuple[dict[str, list[Any]], list[str]]:
    """Return the tags that rows and their metadata tell, and what stands for a source and is none.

    Our own keys go before plain ones, and a row before its metadata.
    """
    rows = {key: rest[key] for key in _TOLD if key in rest}
    inner: dict[str, list[Any]] = {}
    for key in set().union(*held).intersection(_TOLD):
        cells = [row.get(key) for row in held]
        plain = {*map(type, cells)} <= _NAMES
        inner[key] = cells if plain else [cell if _is_name(cell) else None for cell in cells]
    loose = [place for place in ([inner] if any_source else [rows, inner]) if "source" in place]
    told_as = [place["source"] for place in loose]
    for place in loose:
        texts = [cell if isinstance(cell, str) else "" for cell in place["source"]]
        known = {text: text for text in set(texts) if is_source(text)}
        place["source"] = list(map(known.get, texts))
    found: dict[str, list[Any]] = {}
    for name in TAG_FIELDS:
        keys = (f"rsb_{name}", name)
        several = [place[key] for key in keys for place in (rows, inner) if key in place]
        for cells in several[1:]:
            pairs = zip(several[0], cells, strict=True)
            several[0] = [cell if known in (None, "") else known for known, cell in pairs]
        if several:
            found[name] = several[0]
    strange = [
        str(cell)
        for cells in told_as
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
    require_common("document", Ids(where, tags.doc_ids), Ids("the corpus", corpus.doc_ids))
    extra = [doc_id for doc_id in tags.doc_ids if doc_id not in corpus.tags.row_of]
    if extra:
        _logger.warning(
            "%s: tags of %d document(s) that are not in the corpus were dropped, first %s",
            where,
            len(extra),
            extra[:3],
        )
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

    def choose(names: tuple[str, ...]) -> dict[str, str | None]:
        asked = {"query": "_id" if "_id" in names else None, "query_text": None}
        return find_columns(names, asked, path=name, needed=sorted(asked), options={})

    name = table_name(queries)
    rows = _rows_by_id(_without_header(queries, "query"), "query_id", "text")
    table = read_table(rows, choose)
    pairs = zip(_ids(table, "query"), _texts(table, "query_text"), strict=True)
    return tuple(Query(query_id=query_id, text=text.strip()) for query_id, text in pairs)


def read_questions(questions: Any) -> tuple[Query, ...]:  # noqa: ANN401 - whatever a user has
    """Read questions: texts, a file with one a line, or queries with their ids.

    Parameters
    ----------
    questions : list of str, path, or what :func:`read_queries` takes
        Texts without ids are numbered from ``q1``; blank lines and repeated texts are left out.
    """
    lines: list[str] | None = None
    if isinstance(questions, str | os.PathLike) and os.fspath(questions).endswith(".txt"):
        lines = [line for _, line in read_lines(questions)]
        if any("\t" in line for line in lines):
            lines = None
    elif isinstance(questions, list | tuple) and all(isinstance(one, str) for one in questions):
        lines = list(questions)
    if lines is None:
        return read_queries(questions)
    texts = dict.fromkeys(text for line in lines if (text := line.strip()))
    return tuple(Query(query_id=f"q{n}", text=text) for n, text in enumerate(texts, start=1))


def _without_header(source: Any, role: str) -> Any:  # noqa: ANN401
    """Return two columns whose first line names neither as a table; else what was given."""
    if not table_name(source).removesuffix(".gz").endswith((".tsv", ".txt")):
        return source
    first = next(read_lines(source), (0, ""))[1].split("\t")
    named = find_column(first, role) or find_column(first, "text")
    if len(first) != 2 or named is not None:
        return source
    columns = {role: f"{role}_id", "text": "text"}
    return read_fields(source, columns, lambda line: line.split("\t", 1))
