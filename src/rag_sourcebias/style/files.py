"""The bundled sample of writing styles."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

from rag_sourcebias.core.errors import DataError
from rag_sourcebias.core.values import require_name
from rag_sourcebias.io.files import PathLike, read_jsonl, read_lines
from rag_sourcebias.io.samples import SAMPLE_LICENSE
from rag_sourcebias.io.tables import names_of, read_table
from rag_sourcebias.style.data import StyledTexts

# Versions of texts, one at a time, put together as styled texts.


_ORIGINAL = {"query": "original", "document": "human"}


class Version(NamedTuple):
    """A text, or None where there is none, and where it stands; a document of None is not told."""

    query_id: str
    doc_id: str | None
    side: str
    style: str
    text: str | None
    place: str


class VersionTable:
    """Collect the versions of a file.

    Parameters
    ----------
    path : str
        For messages.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._queries: dict[str, None] = {}
        self._documents: dict[str, tuple[str, str]] = {}  # document and place, by query
        self._texts: dict[tuple[str, str], dict[str, str]] = {}  # by side and style, by query
        self._places: dict[tuple[str, str, str], str] = {}

    def add(self, version: Version) -> None:
        """Add a version.

        Raises
        ------
        DataError
            If it was added before, or the query has another document.
        """
        query_id, doc_id, side, style, text, place = version
        self._queries[query_id] = None
        if doc_id is not None:
            known, first = self._documents.setdefault(query_id, (doc_id, place))
            if known != doc_id:
                raise DataError(
                    f"{place}: query {query_id!r} has document {doc_id!r} here and {known!r} at "
                    f"{first}; each query has one document"
                )
        versions = self._texts.setdefault((side, style), {})
        if text is None:
            return
        if query_id in versions:
            raise DataError(
                f"{place}: the {side} of query {query_id!r} in style {style!r} stands at "
                f"{self._places[side, style, query_id]} already; keep one"
            )
        versions[query_id] = text
        self._places[side, style, query_id] = place

    def texts(self, name: str) -> StyledTexts:
        """Return everything added, the original styles first.

        Raises
        ------
        DataError
            If there is nothing, or a side has no text.
        """
        queries = tuple(self._queries)
        return StyledTexts(
            query_ids=queries,
            queries=self._side("query", queries),
            documents=self._side("document", queries),
            doc_ids=tuple(self._documents.get(q, (q, ""))[0] for q in queries),
            name=name,
        )

    def _side(self, side: str, queries: tuple[str, ...]) -> dict[str, tuple[str | None, ...]]:
        found = {style: texts for (s, style), texts in self._texts.items() if s == side and texts}
        if not found:
            raise DataError(f"no {side} has a text; give at least one version of each {side}")
        styles = sorted(found, key=lambda style: style != _ORIGINAL[side])  # stable
        return {style: tuple(found[style].get(q) for q in queries) for style in styles}


# Queries and documents in several writing styles, from a file.


_COLUMNS = ("query_id", "side", "style", "text")
_SIDES = {"query": "query", "document": "document", "doc": "document"}
_LAYOUTS = (
    "JSON lines with query_id, query, query_styles, human and doc_styles, or a table with the "
    "columns query_id, side (query or document), style and text"
)


def read_styled_texts(path: PathLike, *, name: str | None = None) -> StyledTexts:
    """Read queries and their documents, both in several styles.

    Parameters
    ----------
    path : path
        Either JSON lines, one record per query::

            {"query_id": "q1", "doc_id": "d1", "query": "…", "query_styles": {"formal": "…"},
             "human": "…", "doc_styles": {"formal": "…"}}

        ``doc_id`` and ``query_styles`` may lack. ``query`` becomes the query style ``original``
        and ``human`` the document style ``human``. Or a table (CSV, TSV, JSON lines, Parquet)
        with ``query_id``, ``side`` (``query`` or ``document``), ``style``, ``text`` and optionally
        ``doc_id``, one row per version. Text files may be ``.gz``.
    name : str or None
        Of the data; the file name by default.

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
    where = os.fspath(path)
    records = _is_records(path)
    table = VersionTable(where)
    for row in _records(path) if records else _rows(path):
        table.add(row)
    try:
        return table.texts(name or Path(path).name)
    except DataError as error:
        raise DataError(f"{where}: {error}") from error


def _is_records(path: PathLike) -> bool:
    if os.fspath(path).endswith((".parquet", ".pq")):
        return False
    number, first = next(read_lines(path), (0, ""))
    if not number:
        raise DataError(f"{os.fspath(path)} is empty; expected {_LAYOUTS}")
    if not first.lstrip().startswith("{"):
        return False
    _, record = next(read_jsonl(path))
    return not {"side", "style", "text"} <= set(record)


def _records(path: PathLike) -> Iterable[Version]:
    lines: dict[str, int] = {}
    for number, record in read_jsonl(path):
        place = f"{os.fspath(path)}:{number}"
        lacking = [key for key in ("query_id", "query") if record.get(key) is None]
        if lacking or not ("human" in record or "doc_styles" in record):
            told = ", ".join(lacking) or "human and doc_styles"
            raise DataError(
                f"{place}: the record has no {told}, its keys are {', '.join(record)}; expected "
                f"{_LAYOUTS}"
            )
        query_id = _identifier(record["query_id"], "query_id", place)
        if query_id in lines:
            raise DataError(
                f"{place}: query {query_id!r} stands in line {lines[query_id]} already; keep one "
                "record per query"
            )
        lines[query_id] = number
        doc_id = record.get("doc_id")
        if doc_id is not None:
            doc_id = _identifier(doc_id, "doc_id", place)
        for side, original, key, styles in (
            ("query", "original", "query", "query_styles"),
            ("document", "human", "human", "doc_styles"),
        ):
            text = _text(record.get(key), key, place)
            yield Version(query_id, doc_id, side, original, text, place)
            for name, value in _mapping(record.get(styles), styles, place).items():
                style = _identifier(name, f"style of {styles}", place)
                require_name(style, f"style of {styles}", place)
                text = _text(value, f"{styles}[{name!r}]", place)
                yield Version(query_id, doc_id, side, style, text, place)


def _mapping(value: object, key: str, place: str) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise DataError(f"{place}: {key} is {value!r:.80}; expected an object of style and text")
    return value


def _identifier(value: object, key: str, place: str) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int) or not str(value).strip():
        raise DataError(f"{place}: {key} {value!r:.80} must be a non-empty text or whole number")
    return str(value).strip()


def _text(value: object, what: str, place: str) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise DataError(
            f"{place}: {what} is {value!r:.80}, which is not text; leave a version that does not "
            "exist out, or write null"
        )
    return value if value.strip() else None


def _rows(path: PathLike) -> Iterable[Version]:
    where = os.fspath(path)

    def choose(names: tuple[str, ...]) -> list[str]:
        lacking = [column for column in _COLUMNS if column not in names]
        if lacking:
            raise DataError(
                f"{where} has no column {', '.join(lacking)}; its columns are "
                f"{', '.join(names)}; expected {_LAYOUTS}"
            )
        return [*_COLUMNS, *(["doc_id"] if "doc_id" in names else [])]

    table = read_table(path, choose)
    queries, sides, styles = (names_of(table, c, role=c, shown=c == "style") for c in _COLUMNS[:3])
    told = table.columns.get("doc_id", [None] * len(table))
    for i, value in enumerate(table.columns["text"]):
        place = table.where(i)
        side = _SIDES.get(sides[i].lower())
        if side is None:
            raise DataError(f"{place}: side {sides[i]!r} is neither query nor document")
        # often only told where the text is the document's
        doc_id = None if told[i] in (None, "") else _identifier(told[i], "doc_id", place)
        text = _text(value, "text", place)
        yield Version(queries[i], doc_id, side, styles[i], text, place)


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
    root = resources.files("rag_sourcebias.io")
    with resources.as_file(root.joinpath("samples", "crowdrag-rewrites", "pairs.jsonl.gz")) as file:
        texts = read_styled_texts(file)
    versions = [*texts.queries.values(), *texts.documents.values()]
    styled = [i for i in range(len(texts)) if all(column[i] is not None for column in versions)]
    others = sorted(set(range(len(texts))) - set(styled))

    def keep(columns: dict[str, tuple[str | None, ...]]) -> dict[str, tuple[str | None, ...]]:
        return {style: tuple(column[i] for i in styled) for style, column in columns.items()}

    return replace(
        texts,
        query_ids=tuple(texts.query_ids[i] for i in styled),
        doc_ids=tuple(texts.doc_ids[i] for i in styled),
        queries=keep(dict(texts.queries)),
        documents=keep(dict(texts.documents)),
        distractors=tuple(text for i in others if (text := texts.documents["human"][i])),
        name="crowdrag-rewrites",
        license=SAMPLE_LICENSE,
        attribution=(
            "Passages and queries from Webis CrowdRAG-25 "
            "(https://github.com/webis-de/sigir25-rag-crowdsourcing), shortened, citation marks "
            "removed; rewritten by a large language model (Claude)"
        ),
    )
