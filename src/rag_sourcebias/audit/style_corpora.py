"""The documents of a style audit as corpora to index."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from rag_sourcebias.audit.style_data import columns_of
from rag_sourcebias.errors import DataError
from rag_sourcebias.types.documents import Corpus, DocTags, Query, TagTable
from rag_sourcebias.types.relevance import Qrels
from rag_sourcebias.types.style_data import StyledTexts

__all__ = ["StyleCorpora", "build_corpora"]


@dataclass(frozen=True, kw_only=True, eq=False)
class StyleCorpora:
    """What is indexed and asked.

    Parameters
    ----------
    queries : mapping of query style to tuple of Query, each of length n
    versions : Corpus
        Every version of every document, each document once, and the distractors; tagged with
        style and document.
    originals : Corpus
        The documents in their original style, and the distractors.
    rows : int64 array of shape (n, d)
        Row in ``versions`` of each version of each query's document.
    styles : tuple of str, length d
        Document styles in the order of the columns.
    original : str
    pair_of : mapping of query id to document id
    n_distractors : int
    """

    queries: Mapping[str, tuple[Query, ...]] = field(repr=False)
    versions: Corpus = field(repr=False)
    originals: Corpus = field(repr=False)
    rows: npt.NDArray[np.int64] = field(repr=False)
    styles: tuple[str, ...]
    original: str
    pair_of: Mapping[str, str] = field(repr=False)
    n_distractors: int
    warnings: tuple[str, ...] = ()

    @property
    def style_qrels(self) -> Qrels:
        """Every version of its document is relevant to a query."""
        return self._qrels(range(self.rows.shape[1]))

    @property
    def original_qrels(self) -> Qrels:
        """Only the original version is."""
        return self._qrels([self.styles.index(self.original)])

    def _qrels(self, columns: Sequence[int]) -> Qrels:
        ids = self.versions.doc_ids
        return Qrels.from_rows(
            (query, ids[row], 1)
            for query, rows in zip(self.pair_of, self.rows, strict=True)
            for row in rows[list(columns)].tolist()
        )


def build_corpora(complete: StyledTexts, original: str) -> StyleCorpora:
    """Put documents and distractors together; equal distractors and known texts come once.

    Parameters
    ----------
    complete : StyledTexts
        With every version.
    original : str
        Document style whose versions make an index of their own.

    Raises
    ------
    DataError
        If two queries name the same document but give different texts.
    """
    columns = columns_of(complete.documents)
    texts = list(zip(*columns.values(), strict=True))
    first: dict[str, int] = {}
    for at, doc_id in enumerate(complete.doc_ids):
        _require_same(complete, texts, first.setdefault(doc_id, at), at)
    place = {doc_id: i for i, doc_id in enumerate(first)}
    d, at_original = len(columns), list(columns).index(original)
    documents = [texts[at] for at in first.values()]
    known = {text for versions in documents for text in versions}
    others = [t for t in dict.fromkeys(complete.distractors) if t.strip() and t not in known]
    tags = [
        (f"d{i}.{style}", DocTags(style=style, pair_id=doc_id))
        for i, doc_id in enumerate(first)
        for style in columns
    ]
    table = TagTable.from_tags([*tags, *((f"x{i}", DocTags()) for i in range(len(others)))])
    versions = Corpus(texts=(*(t for row in documents for t in row), *others), tags=table)
    start = np.array([place[doc_id] * d for doc_id in complete.doc_ids], dtype=np.int64)
    kept = np.r_[at_original : len(tags) : d, len(tags) : len(versions)]
    return StyleCorpora(
        queries={
            form: tuple(
                Query(query_id=q, text=t) for q, t in zip(complete.query_ids, column, strict=True)
            )
            for form, column in columns_of(complete.queries).items()
        },
        versions=versions,
        originals=versions.take(kept),
        rows=start[:, None] + np.arange(d),
        styles=tuple(columns),
        original=original,
        pair_of=dict(zip(complete.query_ids, complete.doc_ids, strict=True)),
        n_distractors=len(others),
        warnings=_warnings(complete, [row[at_original] for row in documents], len(others)),
    )


def _require_same(
    complete: StyledTexts, texts: Sequence[tuple[str, ...]], first: int, at: int
) -> None:
    if texts[first] == texts[at]:
        return
    differs = [a != b for a, b in zip(texts[first], texts[at], strict=True)].index(True)
    raise DataError(
        f"document {complete.doc_ids[at]!r} has different texts in style "
        f"{list(complete.documents)[differs]!r} for queries {complete.query_ids[first]!r} and "
        f"{complete.query_ids[at]!r}; give such documents different ids"
    )


def _warnings(complete: StyledTexts, originals: Sequence[str], n_others: int) -> tuple[str, ...]:
    found = []
    if left_out := len(complete.distractors) - n_others:
        found.append(
            f"{left_out} of {len(complete.distractors)} distractors are blank, occur twice or are "
            "a version of a query's document: they are left out"
        )
    if copies := len(originals) - len(set(originals)):
        found.append(
            f"{copies} documents have the text of another document: in an index they tie with it, "
            "and only the query's own counts as found"
        )
    return tuple(found)
