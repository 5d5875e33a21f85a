"""Queries and documents in several writing styles, from any table."""

from collections.abc import Mapping
from dataclasses import replace
from importlib import resources
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np

from rag_sourcebias.core.errors import DataError
from rag_sourcebias.core.texts import StyledTexts
from rag_sourcebias.intake.objects import name_of
from rag_sourcebias.intake.samples import SAMPLE_LICENSE
from rag_sourcebias.intake.tables import (
    Table,
    cells_as,
    find_columns,
    names_of,
    read_table,
    require_once,
)

# Queries and documents in several writing styles, from a table.


_COLUMNS = ("query_id", "side", "style", "text")
_SIDES = {"query": "query", "document": "document", "doc": "document"}
#: Of a record: a side, the style of its original, and the keys of that and of other styles.
_KEYS = (
    ("query", "original", "query", "query_styles"),
    ("document", "human", "human", "doc_styles"),
)


def read_styled_texts(
    source: Any,  # noqa: ANN401 - whatever a user has
    *,
    name: str | None = None,
    columns: Mapping[str, str | None] | None = None,
) -> StyledTexts:
    """Read queries and their documents, both in several styles.

    Parameters
    ----------
    source : path, frame, list of dicts or dict of lists
        Either records, as JSON lines or a JSON array, one per query::

            {"query_id": "q1", "doc_id": "d1", "query": "…", "query_styles": {"formal": "…"},
             "human": "…", "doc_styles": {"formal": "…"}}

        ``doc_id`` and ``query_styles`` may lack. ``query`` becomes the query style ``original``
        and ``human`` the document style ``human``. Or a table (CSV, TSV, JSON lines, Parquet)
        with ``query_id``, ``side`` (``query`` or ``document``), ``style``, ``text`` and optionally
        ``doc_id``, one row per version. Text files may be ``.gz``.
    name : str or None
        Of the data; the file name by default.
    columns : mapping of str to str, optional
        Columns of a table for ``query_id``, ``side``, ``style`` and ``text`` that have other names.

    Returns
    -------
    StyledTexts
        Queries and styles in the order of the file, but ``original`` and ``human`` first. A
        version that is null, empty or not there is None.

    Raises
    ------
    DataError
        With file and line: neither layout, an id or a version twice, a value that is not text, a
        column or the text of every version missing.
    """
    table = read_table(source)
    given = {role: (columns or {}).get(role) for role in _COLUMNS}
    if "query" in table.names and "side" not in table.names and not any(given.values()):
        table = _row_for_each(table)
    column = find_columns(table, given, needed=_COLUMNS, options={})
    ids = names_of(table, column["query_id"], role="query_id")
    styles = names_of(table, column["style"], role="style", shown=True)
    sides = list(map(str.lower, names_of(table, column["side"], role="side")))
    wrong = np.array([side not in _SIDES for side in sides])
    table.refuse(wrong, column["side"], "is neither query nor document")
    texts = cells_as(table, column["text"], _text)
    told = [""] * len(table)
    if "doc_id" in table.columns:  # often only told where the text is the document's
        told = cells_as(table, "doc_id", _document)
    row_of = {pair: row for row, pair in enumerate(zip(ids, told, strict=True))}
    named = [row for (_, doc_id), row in row_of.items() if doc_id]
    require_once(table, [ids[row] for row in named], "query", "each query has one document", named)
    documents = dict.fromkeys(ids, "") | {ids[row]: told[row] for row in named}
    written = [row for row, text in enumerate(texts) if text is not None]
    names = [(_SIDES[sides[row]], styles[row], ids[row]) for row in written]
    require_once(table, names, "the text of", "keep one version of each", written)
    # the originals first
    versions: dict[str, dict[str, dict[str, str | None]]] = {
        side: {original: {}} for side, original, *_ in _KEYS
    }
    for row, (side, style, query_id) in zip(written, names, strict=True):
        versions[side].setdefault(style, {})[query_id] = texts[row]
    queries, of_documents = (
        {
            style: tuple(map(of_query.get, documents))
            for style, of_query in sided.items()
            if of_query
        }
        for sided in versions.values()
    )
    try:
        return StyledTexts(
            query_ids=tuple(documents),
            queries=queries,
            documents=of_documents,
            doc_ids=tuple(doc_id or query_id for query_id, doc_id in documents.items()),
            name=name or Path(table.path).name,
        )
    except DataError as error:
        raise DataError(f"{table.path}: {error}") from error


def _row_for_each(table: Table) -> Table:
    """Return the versions in a record for each query as rows of their own."""
    names = ("row", *_COLUMNS, "doc_id")
    cells: list[tuple[Any, ...]] = []
    for row, (place, record) in enumerate(table.records()):
        keys = {key for key, cell in record.items() if cell is not None}
        if not {"query_id", "query"} <= keys or keys.isdisjoint({"human", "doc_styles"}):
            raise DataError(
                f"{place}: the record has {', '.join(sorted(keys))}; expected query_id, query, and "
                "human or doc_styles"
            )
        query_id, doc_id = record["query_id"], record.get("doc_id")
        for side, original, key, others in _KEYS:
            styles = record.get(others) or {}
            if not isinstance(styles, dict):
                raise DataError(
                    f"{place}: {others} is {styles!r:.80}; expected an object of style and text"
                )
            texts = [(original, record.get(key)), *styles.items()]
            cells += [(row, query_id, side, style, text, doc_id) for style, text in texts]
    columns = dict(zip(names, map(list, zip(*cells, strict=True)), strict=True))
    return table.spread(columns["row"], columns)


def _document(cell: object) -> str:
    """Return the id of a document; empty where it is not told."""
    name = "" if cell is None else name_of(cell)
    if name is None:
        raise DataError(f"is {cell!r:.80}; expected a text or a number")
    return name.strip()


def _text(cell: object) -> str | None:
    if not isinstance(cell, str | None):
        raise DataError(
            f"is {cell!r:.80}, no text; leave a version that does not exist out, or write null"
        )
    return cell if cell and cell.strip() else None


# The bundled sample of writing styles.


def load_styled_sample() -> StyledTexts:
    """Load 56 queries and their passages in ten styles each; it needs no connection.

    A passage by a person (``human``) and its rewrites by an LLM: plain (``0``) and in the eight
    styles of Cao (WSDM 2025): formal and concise (``1``), simple (``2``), informal (``3``), polite
    (``4``), detailed and technical (``5``), energetic (``6``), friendly (``7``), expressive
    (``8``); the queries likewise. Distractors are 104 passages by people on other queries.

    Examples
    --------
    >>> sample = load_styled_sample()
    >>> len(sample), list(sample.documents)[:3], len(sample.distractors)
    (56, ['human', '0', '1'], 104)
    """
    folder = resources.files("rag_sourcebias.intake").joinpath("samples", "crowdrag-rewrites")
    with resources.as_file(folder.joinpath("pairs.jsonl.gz")) as file:
        texts = read_styled_texts(file)
    versions = zip(*texts.queries.values(), *texts.documents.values(), strict=True)
    styled = np.array([None not in of_query for of_query in versions])
    return replace(
        texts.take(styled),
        distractors=tuple(filter(None, compress(texts.documents["human"], ~styled))),
        name="crowdrag-rewrites",
        license=SAMPLE_LICENSE,
        attribution=(
            "Passages and queries from Webis CrowdRAG-25 "
            "(https://github.com/webis-de/sigir25-rag-crowdsourcing), shortened, citation marks "
            "removed; rewritten by a large language model (Claude)"
        ),
    )
