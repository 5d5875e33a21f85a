"""Human relevance judgments as columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError

__all__ = ["Qrels"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Qrels:
    """Relevance grades of (query, document) pairs.

    Parameters
    ----------
    query_ids : tuple of str, length nq
        Unique. The queries over which measures are averaged.
    doc_ids : tuple of str
        Vocabulary, unique.
    query_codes, doc_codes : int32 arrays of shape (m,)
        Indices into ``query_ids`` and ``doc_ids``; no pair occurs twice.
    grades : int32 array of shape (m,)
        At least 0; 0 is judged not relevant.
    n_negative : int
        Judgments with a negative grade (junk pages of some TREC tracks), stored as 0.
    """

    query_ids: tuple[str, ...]
    doc_ids: tuple[str, ...]
    query_codes: npt.NDArray[np.int32]
    doc_codes: npt.NDArray[np.int32]
    grades: npt.NDArray[np.int32]
    n_negative: int = 0

    def __post_init__(self) -> None:
        if not self.query_codes.shape == self.doc_codes.shape == self.grades.shape:
            raise DataError("qrels columns differ in length")
        if len(self.grades) and int(self.grades.min()) < 0:
            raise DataError(f"grade {int(self.grades.min())} is negative; grades start at 0")
        if len(self.grades):
            key = self.query_codes.astype(np.int64) * len(self.doc_ids) + self.doc_codes
            order = np.argsort(key, kind="stable")
            same = np.flatnonzero(key[order][1:] == key[order][:-1])
            if len(same):
                row = int(order[same[0]])
                raise DataError(
                    f"{len(same)} pair(s) judged twice, first query "
                    f"{self.query_ids[self.query_codes[row]]!r}, document "
                    f"{self.doc_ids[self.doc_codes[row]]!r}; keep one judgment per pair"
                )

    @classmethod
    def from_rows(cls, rows: Iterable[tuple[str, str, int]]) -> Qrels:
        """Build qrels from ``(query_id, doc_id, grade)`` rows."""
        queries: dict[str, int] = {}
        docs: dict[str, int] = {}
        columns: tuple[list[int], list[int], list[int]] = ([], [], [])
        for query_id, doc_id, grade in rows:
            columns[0].append(queries.setdefault(query_id, len(queries)))
            columns[1].append(docs.setdefault(doc_id, len(docs)))
            columns[2].append(grade)
        grades = np.array(columns[2], dtype=np.int32)
        return cls(
            query_ids=tuple(queries),
            doc_ids=tuple(docs),
            query_codes=np.array(columns[0], dtype=np.int32),
            doc_codes=np.array(columns[1], dtype=np.int32),
            grades=np.maximum(grades, 0),
            n_negative=int(np.count_nonzero(grades < 0)),
        )

    @classmethod
    def from_dict(cls, mapping: Mapping[str, Mapping[str, int]]) -> Qrels:
        """Build qrels from ``{query_id: {doc_id: grade}}``."""
        return cls.from_rows((q, d, g) for q, row in mapping.items() for d, g in row.items())

    def __len__(self) -> int:
        return len(self.grades)

    def take(self, rows: npt.NDArray[np.integer[Any]] | npt.NDArray[np.bool_]) -> Qrels:
        """Return the judgments asked for; query ids and vocabulary stay."""
        return Qrels(
            query_ids=self.query_ids,
            doc_ids=self.doc_ids,
            query_codes=self.query_codes[rows],
            doc_codes=self.doc_codes[rows],
            grades=self.grades[rows],
            n_negative=self.n_negative,
        )

    def copied_to(self, versions: Mapping[str, Sequence[str]]) -> Qrels:
        """Give every version of a document the grade of the original, as [K] did.

        Parameters
        ----------
        versions : mapping of str to sequence of str
            Ids of all versions by original document id; ids without an entry are dropped.
        """
        return Qrels.from_rows(
            (self.query_ids[q], version, int(grade))
            for q, d, grade in zip(self.query_codes, self.doc_codes, self.grades, strict=True)
            for version in versions.get(self.doc_ids[d], ())
        )
