"""A sample of documents to label, and documents labelled before."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rag_sourcebias.errors import DataError
from rag_sourcebias.intervals.utility import RankedLabels
from rag_sourcebias.types.arrays import FloatArray, IntArray

__all__ = ["DocumentSample", "LabeledDocuments", "check_rows", "pool_fingerprint"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LabeledDocuments:
    """Documents that carry a human label already.

    Parameters
    ----------
    rows : int64 array of shape (k,)
        Rows of the :class:`RankedLabels`, each at most once.
    human_gains : float64 array of shape (k,)
        Gain of the human grade of each, ``labels.gains[grade]``.
    """

    rows: IntArray
    human_gains: FloatArray

    def __post_init__(self) -> None:
        if self.rows.ndim != 1 or self.rows.shape != self.human_gains.shape:
            raise DataError(f"{self.rows.size} labelled rows with {self.human_gains.size} gains")
        values, counts = np.unique(self.rows, return_counts=True)
        if np.any(counts > 1):
            raise DataError(f"row {int(values[np.argmax(counts > 1)])} is labelled twice")
        if not np.isfinite(self.human_gains).all():
            raise DataError("the human gains of labelled documents must be finite numbers")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DocumentSample:
    """Documents to label, drawn with known chances.

    Parameters
    ----------
    rows : int64 array of shape (n_labels,)
        Rows of the :class:`RankedLabels`, increasing.
    inclusion : float64 array of shape (m,)
        Chance of every row of the pool to be in the sample; 0 where the rank has no weight, 1
        for documents of the pilot.
    seed : int
        Draws the same sample again.
    fingerprint : str
        Of the pool (:func:`pool_fingerprint`), so that labels are not joined to another one.
    """

    rows: IntArray
    inclusion: FloatArray
    seed: int
    fingerprint: str

    def __post_init__(self) -> None:
        if np.any(np.diff(self.rows) <= 0):
            raise DataError("the rows of a document sample must increase")
        if len(self.rows) and not 0 <= self.rows[0] <= self.rows[-1] < len(self.inclusion):
            raise DataError(f"a sampled row lies outside the pool of {len(self.inclusion)}")
        if not ((self.inclusion >= 0) & (self.inclusion <= 1)).all():
            raise DataError("chances of inclusion lie in [0, 1]")
        if not (self.inclusion[self.rows] > 0).all():
            raise DataError("a row was sampled whose chance of inclusion is 0")

    @property
    def n_labels(self) -> int:
        """Number of documents in the sample."""
        return len(self.rows)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return {
            "rows": self.rows.tolist(),
            "inclusion": self.inclusion.tolist(),
            "seed": self.seed,
            "fingerprint": self.fingerprint,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> DocumentSample:
        """Read what :meth:`to_dict` wrote."""
        missing = [k for k in ("rows", "inclusion", "seed", "fingerprint") if k not in data]
        if missing:
            raise DataError(f"a document sample lacks {', '.join(missing)}")
        return cls(
            rows=np.array(data["rows"], dtype=np.int64),
            inclusion=np.array(data["inclusion"], dtype=np.float64),
            seed=int(data["seed"]),
            fingerprint=str(data["fingerprint"]),
        )


def check_rows(rows: IntArray, n_rows: int) -> None:
    """Raise unless the rows are those of different documents."""
    outside = rows[(rows < 0) | (rows >= n_rows)]
    if len(outside):
        raise DataError(f"labelled row {int(outside[0])} is not one of the pool's {n_rows}")


def pool_fingerprint(labels: RankedLabels) -> str:
    """SHA-256 of the pool: judge distributions (to 1e-9), weights, queries and gains."""
    digest = hashlib.sha256()
    for part in (labels.probs, labels.weights, labels.gains):
        # adding 0 turns -0.0 into 0.0
        digest.update(np.ascontiguousarray(np.round(part, 9) + 0.0, dtype="<f8").tobytes())
    digest.update(np.ascontiguousarray(labels.query, dtype="<i8").tobytes())
    digest.update(f"{labels.probs.shape} {labels.n_queries} {labels.gain_of_mean}".encode())
    return digest.hexdigest()
