"""What one system scored on one data set, as a debiasing report needs it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rag_sourcebias.errors import DataError
from rag_sourcebias.types.arrays import FloatArray

__all__ = ["DEBIAS_ROWS", "DebiasScores"]

DEBIAS_ROWS = ("baseline", "other", "human-only", "llm-only", "mixed")


@dataclass(frozen=True, kw_only=True, eq=False)
class DebiasScores:
    """NDCG per query of one system.

    Parameters
    ----------
    name : str
        Of the system.
    query_ids : tuple of str, length n
    cutoffs : tuple of int, length K
    values : float64 array of shape (5, K, n)
        In [0, 1]. Rows are :data:`DEBIAS_ROWS`: the human and the LLM versions as the relevant
        documents of the mixed corpus ([K] §3.1), the corpus of each source alone, and the mixed
        corpus with both versions relevant.
    settings : mapping of str to str
        What a report must state of the system.
    """

    name: str
    query_ids: tuple[str, ...] = field(repr=False)
    cutoffs: tuple[int, ...]
    values: FloatArray = field(repr=False)
    settings: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        shape = (len(DEBIAS_ROWS), len(self.cutoffs), len(self.query_ids))
        if self.values.shape != shape:
            raise DataError(
                f"system {self.name!r}: scores have shape {self.values.shape}, expected {shape}"
            )

    def of(self, row: str, cutoff: int) -> FloatArray:
        """Per-query NDCG@cutoff of one row, shape (n,)."""
        for kind, name, known in (("row", row, DEBIAS_ROWS), ("cutoff", cutoff, self.cutoffs)):
            if name not in known:
                raise DataError(f"no {kind} {name!r} here; there are {list(known)}")
        found: FloatArray = self.values[DEBIAS_ROWS.index(row), self.cutoffs.index(cutoff)]
        return found
