"""Queries and documents in several writing styles, from any table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib import resources
from itertools import compress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rag_sourcebias.core.errors import DataError, require_name
from rag_sourcebias.core.texts import StyledTexts
from rag_sourcebias.intake.results import id_text
from rag_sourcebias.intake.samples import SAMPLE_LICENSE
from rag_sourcebias.intake.tables import (
    Table,
    find_columns,
    names_of,
    read_table,
    require_once,
)

# Queries and documents in several writing styles, from a table.


_ORIGINAL = {"query": "original", "document": "human"}
_COLUMNS = ("query_id", "side", "style", "text")
_SIDES = {"query": "query", "document": "document", "doc": "document"}


class Version(NamedTuple):
    """A text, or None where there is none, and its row; a document of None is not told."""

    query_id: str
    doc_id: str | None
    side: str
    style: str
    text: str | None
    row: int


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
    found = find_columns(table.names, given, path=table.path)
    records = "query" in table.names and not any(given.values()) and None in found.values()
    versions = list(_in_records(table) if records else _in_rows(table, found))
    told = [(v.side, v.style, v.query_id) for v in versions if v.text is not None]
    rows = [v.row for v in versions if v.text is not None]
    require_once(table, told, "the text of", "keep one version of each", rows)
    documents = _documents(table, versions)
    try:
        return StyledTexts(
            query_ids=tuple(documents),
            queries=_side("query", documents, versions),
            documents=_side("document", documents, versions),
            doc_ids=tuple(documents.values()),
            name=name or Path(table.path).name,
        )
    except DataError as error:
        raise DataError(f"{table.path}: {error}") from error


def _documents(table: Table, versions: Sequence[Version]) -> dict[str, str]:
    """Return the document of each query: its own id where none is told."""
    told: dict[str, Version] = {}
    for version in versions:
        if version.doc_id is None:
            continue
        first = told.setdefault(version.query_id, version)
        if first.doc_id != version.doc_id:
            raise DataError(
                f"{table.where(version.row)}: query {version.query_id!r} has document "
                f"{version.doc_id!r} here and {first.doc_id!r} at {table.where(first.row)}; each "
                "query has one document"
            )
    documents = {version.query_id: version.query_id for version in versions}
    documents.update((query, str(first.doc_id)) for query, first in told.items())
    return documents


def _side(
    side: str, queries: Iterable[str], versions: Iterable[Version]
) -> dict[str, tuple[str | None, ...]]:
    """Return the texts of all queries by style, the original first."""
    found: dict[str, dict[str, str]] = {}
    for version in versions:
        if version.side == side and version.text is not None:
            found.setdefault(version.style, {})[version.query_id] = version.text
    if not found:
        raise DataError(f"no {side} has a text; give at least one version of each {side}")
    styles = sorted(found, key=lambda style: style != _ORIGINAL[side])  # stable
    return {style: tuple(map(found[style].get, queries)) for style in styles}


_LAYOUTS = (
    "JSON lines with query_id, query, query_styles, human and doc_styles, or a table with the "
    "columns query_id, side (query or document), style and text"
)


def _in_records(table: Table) -> Iterator[Version]:
    """Give the versions of a table with a record for each query."""
    for row, (place, record) in enumerate(table.records()):
        keys = [key for key, cell in record.items() if cell is not None]
        lacking = [key for key in ("query_id", "query") if key not in keys]
        if lacking or not {"human", "doc_styles"} & {*keys}:
            raise DataError(
                f"{place}: the record has no {', '.join(lacking) or 'human and doc_styles'}, its "
                f"keys are {', '.join(keys)}; expected {_LAYOUTS}"
            )
        query_id = id_text(record["query_id"], f"{place}: query_id").strip()
        told = record.get("doc_id")
        doc_id = None if told is None else id_text(told, f"{place}: doc_id").strip()
        for side, original, key, styles in (
            ("query", "original", "query", "query_styles"),
            ("document", "human", "human", "doc_styles"),
        ):
            yield Version(query_id, doc_id, side, original, _text(record.get(key), key, place), row)
            rewritten = record.get(styles) or {}
            if not isinstance(rewritten, dict):
                raise DataError(
                    f"{place}: {styles} is {rewritten!r:.80}; expected an object of style and text"
                )
            for name, value in rewritten.items():
                what = f"style of {styles}"
                style = require_name(id_text(name, f"{place}: {what}").strip(), what, place)
                text = _text(value, f"{styles}[{name!r}]", place)
                yield Version(query_id, doc_id, side, style, text, row)


def _in_rows(table: Table, found: Mapping[str, str | None]) -> Iterator[Version]:
    """Give the versions of a table with a row for each."""
    if lacking := [role for role in _COLUMNS if found[role] is None]:
        raise DataError(
            f"{table.path} has no column {', '.join(lacking)}; its columns are "
            f"{', '.join(table.names)}; expected {_LAYOUTS}"
        )
    queries, sides, styles = (
        names_of(table, str(found[role]), role=role, shown=role == "style")
        for role in ("query_id", "side", "style")
    )
    documents = table.columns.get("doc_id", [None] * len(table))
    for row, cell in enumerate(table.columns[str(found["text"])]):
        place = table.where(row)
        side = _SIDES.get(sides[row].lower())
        if side is None:
            raise DataError(f"{place}: side {sides[row]!r} is neither query nor document")
        # often only told where the text is the document's
        told = documents[row]
        doc_id = None if told in (None, "") else id_text(told, f"{place}: doc_id").strip()
        yield Version(queries[row], doc_id, side, styles[row], _text(cell, "text", place), row)


def _text(value: object, what: str, place: str) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise DataError(
            f"{place}: {what} is {value!r:.80}, which is not text; leave a version that does not "
            "exist out, or write null"
        )
    return value if value.strip() else None


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
