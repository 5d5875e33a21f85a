"""Rankings: a columnar run and the view of one query."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError

__all__ = ["RankedList", "Run"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RankedList:
    """What one query returned, best first.

    Parameters
    ----------
    query_id : str
    doc_ids : tuple of str
        Document at rank 1 first.
    scores : float32 array of the same length, or None
        Higher is better.
    """

    query_id: str
    doc_ids: tuple[str, ...]
    scores: npt.NDArray[np.float32] | None = None

    @classmethod
    def from_ordered(
        cls,
        items: Iterable[Any],
        *,
        query_id: str,
        doc_id: Callable[[Any], str],
        score: Callable[[Any], float] | None = None,
    ) -> RankedList:
        """Map native results, already in rank order, through accessors."""
        rows = list(items)
        return cls(
            query_id=query_id,
            doc_ids=tuple(doc_id(item) for item in rows),
            scores=None
            if score is None
            else np.fromiter((score(item) for item in rows), np.float32, count=len(rows)),
        )

    def __len__(self) -> int:
        return len(self.doc_ids)


@dataclass(frozen=True, kw_only=True, eq=False)
class Run:
    """Rankings of many queries in compressed-row form.

    Entries ``offsets[i]:offsets[i + 1]`` belong to query ``i``, best first: the stored order is
    the ranking, ranks are 1…n. Scores are optional and only used to recognise ties.

    Parameters
    ----------
    query_ids : tuple of str, length nq
        Unique.
    offsets : int64 array of shape (nq + 1,)
    doc_codes : int32 array of shape (nnz,)
        Index into ``doc_ids``.
    doc_ids : tuple of str
        Vocabulary; unique; may hold documents that were never retrieved.
    scores : float32 array of shape (nnz,), or None
        Higher is better; never NaN. Single precision as in trec_eval, whose ties are therefore
        ours: scores that differ by less than float32 resolves are equal.
    name : str
    n_duplicates : int
        Entries dropped because the query already held the document (the first one is kept).
    """

    query_ids: tuple[str, ...]
    offsets: npt.NDArray[np.int64]
    doc_codes: npt.NDArray[np.int32]
    doc_ids: tuple[str, ...]
    scores: npt.NDArray[np.float32] | None = None
    name: str = "run"
    n_duplicates: int = 0

    def __post_init__(self) -> None:
        if len(set(self.query_ids)) != len(self.query_ids):
            raise DataError(f"run {self.name!r} holds a query id twice")
        if self.offsets.shape != (len(self.query_ids) + 1,) or self.offsets[0] != 0:
            raise DataError(
                f"run {self.name!r}: offsets must start at 0 and have length "
                f"{len(self.query_ids) + 1}, got shape {self.offsets.shape}"
            )
        if np.any(np.diff(self.offsets) < 0) or self.offsets[-1] != len(self.doc_codes):
            raise DataError(f"run {self.name!r}: offsets must rise from 0 to the number of entries")
        if len(self.doc_codes) and not (
            int(self.doc_codes.min()) >= 0 and int(self.doc_codes.max()) < len(self.doc_ids)
        ):
            raise DataError(f"run {self.name!r}: a document code is outside the vocabulary")
        if self.scores is not None:
            if self.scores.shape != self.doc_codes.shape:
                raise DataError(f"run {self.name!r}: scores and documents differ in number")
            bad = np.flatnonzero(np.isnan(self.scores))
            if len(bad):
                query = self.query_ids[int(self.query_codes[bad[0]])]
                raise DataError(
                    f"run {self.name!r}: {len(bad)} NaN score(s), first for query {query!r}, "
                    f"document {self.doc_ids[self.doc_codes[bad[0]]]!r}; a score must be a number"
                )

    @classmethod
    def from_arrays(
        cls,
        *,
        query_ids: Sequence[str],
        query_codes: npt.NDArray[np.integer[Any]],
        doc_codes: npt.NDArray[np.integer[Any]],
        doc_ids: Sequence[str],
        scores: npt.NDArray[np.floating[Any]] | None = None,
        name: str = "run",
        sort_by_score: bool = False,
    ) -> Run:
        """Build a run from one row per entry, in any query order.

        Rows of one query keep their relative order (their ranking) unless ``sort_by_score``,
        which orders by descending score and keeps the order of ties. Duplicates of a document
        within a query are dropped after the first and counted.

        Parameters
        ----------
        query_ids, doc_ids : sequence of str
            What the codes count into; each id once.
        query_codes, doc_codes : integer arrays of shape (nnz,)
        scores : float array of shape (nnz,), optional
            Higher is better.
        """
        queries = np.asarray(query_codes, dtype=np.int64)
        docs = np.asarray(doc_codes, dtype=np.int64)
        with np.errstate(over="ignore"):  # a score beyond float32 becomes infinite
            values = None if scores is None else np.asarray(scores, dtype=np.float32)
        if values is not None and sort_by_score:
            order = np.lexsort((-values, queries))
        else:
            order = np.argsort(queries, kind="stable")
        queries, docs = queries[order], docs[order]
        values = None if values is None else values[order]
        key = queries * max(len(doc_ids), 1) + docs
        by_key = np.argsort(key, kind="stable")
        repeated = np.zeros(len(key), dtype=bool)
        repeated[by_key[1:]] = key[by_key[1:]] == key[by_key[:-1]]
        n_duplicates = int(repeated.sum())
        if n_duplicates:
            keep = ~repeated
            queries, docs = queries[keep], docs[keep]
            values = None if values is None else values[keep]
        offsets = np.zeros(len(query_ids) + 1, dtype=np.int64)
        np.cumsum(np.bincount(queries, minlength=len(query_ids)), out=offsets[1:])
        return cls(
            query_ids=tuple(query_ids),
            offsets=offsets,
            doc_codes=docs.astype(np.int32),
            doc_ids=tuple(doc_ids),
            scores=values,
            name=name,
            n_duplicates=n_duplicates,
        )

    @classmethod
    def from_lists(cls, lists: Iterable[RankedList], *, name: str = "run") -> Run:
        """Collect per-query lists; scores are kept when every list has them."""
        rows = list(lists)
        code_of: dict[str, int] = {}
        docs = [code_of.setdefault(d, len(code_of)) for row in rows for d in row.doc_ids]
        scored = [row.scores for row in rows if row.scores is not None]
        return cls.from_arrays(
            query_ids=[row.query_id for row in rows],
            query_codes=np.repeat(np.arange(len(rows)), [len(row) for row in rows]),
            doc_codes=np.array(docs, dtype=np.int64),
            doc_ids=list(code_of),
            scores=np.concatenate(scored) if scored and len(scored) == len(rows) else None,
            name=name,
        )

    @classmethod
    def from_dict(cls, mapping: Mapping[str, Mapping[str, float]], *, name: str = "run") -> Run:
        """Build a run from ``{query_id: {doc_id: score}}``; order by score, ties in given order."""
        code_of: dict[str, int] = {}
        docs = [code_of.setdefault(d, len(code_of)) for row in mapping.values() for d in row]
        scores = [score for row in mapping.values() for score in row.values()]
        return cls.from_arrays(
            query_ids=list(mapping),
            query_codes=np.repeat(np.arange(len(mapping)), [len(row) for row in mapping.values()]),
            doc_codes=np.array(docs, dtype=np.int64),
            doc_ids=list(code_of),
            scores=np.array(scores, dtype=np.float64),
            name=name,
            sort_by_score=True,
        )

    @cached_property
    def query_codes(self) -> npt.NDArray[np.int64]:
        """Query index of each entry, shape (nnz,)."""
        return np.repeat(np.arange(len(self.query_ids)), np.diff(self.offsets))

    @cached_property
    def ranks(self) -> npt.NDArray[np.int64]:
        """Rank of each entry within its query, starting at 1, shape (nnz,)."""
        return np.arange(1, len(self.doc_codes) + 1) - self.offsets[self.query_codes]

    def __len__(self) -> int:
        return len(self.doc_codes)

    def __iter__(self) -> Iterator[RankedList]:
        return (self.ranked_list(i) for i in range(len(self.query_ids)))

    def ranked_list(self, index: int) -> RankedList:
        """Return the list of query number ``index``."""
        part = slice(int(self.offsets[index]), int(self.offsets[index + 1]))
        return RankedList(
            query_id=self.query_ids[index],
            doc_ids=tuple(self.doc_ids[c] for c in self.doc_codes[part]),
            scores=None if self.scores is None else self.scores[part],
        )

    def top(self, depth: int) -> Run:
        """Return the run cut after ``depth`` documents per query."""
        if depth < 1:
            raise DataError(f"depth must be at least 1, got {depth}")
        keep = self.ranks <= depth
        offsets = np.zeros_like(self.offsets)
        np.cumsum(np.minimum(np.diff(self.offsets), depth), out=offsets[1:])
        return Run(
            query_ids=self.query_ids,
            offsets=offsets,
            doc_codes=self.doc_codes[keep],
            doc_ids=self.doc_ids,
            scores=None if self.scores is None else self.scores[keep],
            name=self.name,
            n_duplicates=self.n_duplicates,
        )
