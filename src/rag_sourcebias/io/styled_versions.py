"""Versions of texts, one at a time, put together as styled texts."""

from __future__ import annotations

from typing import NamedTuple

from rag_sourcebias.errors import DataError
from rag_sourcebias.types import StyledTexts

__all__ = ["Version", "VersionTable"]

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
