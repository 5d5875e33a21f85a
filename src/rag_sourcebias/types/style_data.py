"""Queries and documents in several writing styles."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from rag_sourcebias.errors import DataError

__all__ = ["StyledTexts"]

Versions = Mapping[str, tuple[str | None, ...]]


@dataclass(frozen=True, kw_only=True, eq=False)
class StyledTexts:
    """n queries, each with one document; both written in several styles.

    Parameters
    ----------
    query_ids : tuple of str, length n
        Unique.
    queries, documents : mapping of style to tuple of (str or None), each of length n
        The text of query i (of its document) in that style, None where there is none. The first
        style of each is the original.
    doc_ids : tuple of str, length n
        Of the documents; queries that share a document share the id. Default: the query ids.
    distractors : tuple of str
        Further documents for an index.
    name, license, attribution : str

    Raises
    ------
    DataError
        If there is no query or style, an id occurs twice, a column has another length, or a text
        is not text.
    """

    query_ids: tuple[str, ...]
    queries: Versions = field(repr=False)
    documents: Versions = field(repr=False)
    doc_ids: tuple[str, ...] = field(default=(), repr=False)
    distractors: tuple[str, ...] = field(default=(), repr=False)
    name: str = "styles"
    license: str = ""
    attribution: str = ""

    def __post_init__(self) -> None:
        n = len(self.query_ids)
        if not n:
            raise DataError("there is no query; at least one is needed")
        twice = [name for name, count in Counter(self.query_ids).items() if count > 1]
        if twice:
            raise DataError(f"query id {twice[0]!r} occurs twice; each query may come once")
        if not self.doc_ids:
            object.__setattr__(self, "doc_ids", self.query_ids)
        if len(self.doc_ids) != n:
            raise DataError(f"{len(self.doc_ids)} document ids for {n} queries; need as many")
        for side, versions in (("query", self.queries), ("document", self.documents)):
            if not versions:
                raise DataError(f"there is no {side} style; give the texts of at least one")
            for style, texts in versions.items():
                self._check(f"{side} style {style!r}", texts)

    def _check(self, what: str, texts: tuple[str | None, ...]) -> None:
        if len(texts) != len(self):
            raise DataError(f"{what} has {len(texts)} texts for {len(self)} queries; need as many")
        for query_id, text in zip(self.query_ids, texts, strict=True):
            if not (text is None or isinstance(text, str)):
                raise DataError(
                    f"{what}, query {query_id!r}: {text!r:.80} is not text; use None for a "
                    "version that does not exist"
                )

    def __len__(self) -> int:
        return len(self.query_ids)
