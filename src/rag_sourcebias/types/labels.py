"""What a judge believes about relevance: a distribution over grades for every pair."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError
from rag_sourcebias.types.relevance import Qrels

__all__ = ["LabelDistributions"]

_SUM_TOLERANCE = 1e-6


@dataclass(frozen=True, kw_only=True, eq=False)
class LabelDistributions:
    """Probabilities of the grades 0 … R of (query, document) pairs.

    Parameters
    ----------
    query_ids : tuple of str
        Unique.
    doc_ids : tuple of str
        Vocabulary, unique.
    query_codes, doc_codes : int32 arrays of shape (m,)
        Indices into ``query_ids`` and ``doc_ids``; no pair occurs twice.
    probs : float64 array of shape (m, R + 1)
        Rows sum to 1 (within 1e-6; they are rescaled to sum to 1 exactly).

    Raises
    ------
    DataError
        Naming the first pair whose row does not sum to 1, is negative or not finite, or occurs
        twice.
    """

    query_ids: tuple[str, ...]
    doc_ids: tuple[str, ...]
    query_codes: npt.NDArray[np.int32]
    doc_codes: npt.NDArray[np.int32]
    probs: npt.NDArray[np.float64]

    def __post_init__(self) -> None:
        if self.probs.ndim != 2 or self.probs.shape[1] < 2:
            raise DataError(
                f"label distributions of shape {self.probs.shape}: one row per pair and one column "
                "per grade, at least two"
            )
        if not self.query_codes.shape == self.doc_codes.shape == self.probs.shape[:1]:
            raise DataError("label distribution columns differ in length")
        totals = self.probs.sum(axis=1)
        # written so that NaN counts as wrong
        bad = ~((np.abs(totals - 1) <= _SUM_TOLERANCE) & (self.probs >= -_SUM_TOLERANCE).all(1))
        if bad.any():
            row = int(np.flatnonzero(bad)[0])
            raise DataError(
                f"{int(bad.sum())} label distribution(s) do not sum to 1, first {self._pair(row)}: "
                f"{np.array2string(self.probs[row], precision=6)} sums to {totals[row]:.6g}; "
                "divide each row by its sum, and leave out pairs the judge gave no answer for"
            )
        probs = np.maximum(self.probs, 0.0)
        object.__setattr__(self, "probs", probs / probs.sum(axis=1, keepdims=True))
        key = self.query_codes.astype(np.int64) * max(len(self.doc_ids), 1) + self.doc_codes
        order = np.argsort(key, kind="stable")
        same = np.flatnonzero(key[order][1:] == key[order][:-1])
        if len(same):
            raise DataError(
                f"{len(same)} pair(s) judged twice, first {self._pair(int(order[same[0]]))}; "
                "average the distributions or keep one"
            )

    def _pair(self, row: int) -> str:
        return (
            f"query {self.query_ids[self.query_codes[row]]!r}, document "
            f"{self.doc_ids[self.doc_codes[row]]!r}"
        )

    @classmethod
    def from_rows(cls, rows: Iterable[tuple[str, str, Sequence[float]]]) -> LabelDistributions:
        """Build from ``(query_id, doc_id, probabilities)`` rows."""
        queries: dict[str, int] = {}
        docs: dict[str, int] = {}
        query_codes: list[int] = []
        doc_codes: list[int] = []
        probs: list[Sequence[float]] = []
        for query_id, doc_id, row in rows:
            if probs and len(row) != len(probs[0]):
                raise DataError(
                    f"query {query_id!r}, document {doc_id!r}: {len(row)} probabilities where "
                    f"the first pair has {len(probs[0])}"
                )
            query_codes.append(queries.setdefault(query_id, len(queries)))
            doc_codes.append(docs.setdefault(doc_id, len(docs)))
            probs.append(row)
        if not probs:
            raise DataError("no label distributions: at least one judged pair is needed")
        return cls(
            query_ids=tuple(queries),
            doc_ids=tuple(docs),
            query_codes=np.array(query_codes, dtype=np.int32),
            doc_codes=np.array(doc_codes, dtype=np.int32),
            probs=np.array(probs, dtype=np.float64),
        )

    @classmethod
    def from_qrels(cls, qrels: Qrels, *, n_grades: int) -> LabelDistributions:
        """Give every judged pair all its probability on its grade.

        Raises
        ------
        DataError
            If a grade is not below ``n_grades``.
        """
        if len(qrels) and int(qrels.grades.max()) >= n_grades:
            row = int(np.argmax(qrels.grades))
            raise DataError(
                f"grade {int(qrels.grades[row])} of query "
                f"{qrels.query_ids[qrels.query_codes[row]]!r}, document "
                f"{qrels.doc_ids[qrels.doc_codes[row]]!r} is outside the scale 0 … {n_grades - 1}"
            )
        return cls(
            query_ids=qrels.query_ids,
            doc_ids=qrels.doc_ids,
            query_codes=qrels.query_codes,
            doc_codes=qrels.doc_codes,
            probs=np.eye(n_grades)[qrels.grades],
        )

    @property
    def n_grades(self) -> int:
        """Number of grades, R + 1."""
        return int(self.probs.shape[1])

    def __len__(self) -> int:
        return len(self.query_codes)
