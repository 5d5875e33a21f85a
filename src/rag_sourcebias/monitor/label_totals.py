"""Running totals of one set of labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_sourcebias.instrument.exposure import ExposureCounts, GroupExposure
from rag_sourcebias.monitor.exposure_rows import ExposureRows
from rag_sourcebias.monitor.label_sets import OTHER
from rag_sourcebias.monitor.sequential.state import restore
from rag_sourcebias.types.arrays import FloatArray
from rag_sourcebias.types.monitor import RANK_LIMITS, GroupCount

__all__ = ["LabelTotals"]


class LabelTotals:
    """What each group got, and sums of the observations; constant memory.

    Parameters
    ----------
    width : int
        Columns of groups.
    values : int
        Columns of observations: groups × measures.

    Attributes
    ----------
    n_retrievals, n_documents, n_empty, n : int
        ``n`` is the number of observations.
    total, null : float64 arrays of shape (values,)
        Sums of observations, and of the baselines that came with them.
    ranks : int64 array of shape (width, len(RANK_LIMITS))
        Documents at ranks up to each limit.
    """

    total: FloatArray
    null: FloatArray
    weights: FloatArray
    documents: npt.NDArray[np.int64]
    first: npt.NDArray[np.int64]
    ranks: npt.NDArray[np.int64]

    def __init__(self, *, width: int, values: int) -> None:
        self.n_retrievals = self.n_documents = self.n_empty = self.n = 0
        self.total, self.null = np.zeros(values), np.zeros(values)
        self.documents, self.first = np.zeros(width, np.int64), np.zeros(width, np.int64)
        self.weights = np.zeros(width)
        self.ranks = np.zeros((width, len(RANK_LIMITS)), np.int64)

    def count(self, rows: ExposureRows) -> None:
        """Add retrievals."""
        self.n_retrievals += len(rows.shown)
        self.n_documents += int(rows.shown.sum())
        self.n_empty += int((rows.shown == 0).sum())
        self.documents = self.documents + rows.documents.sum(axis=0)
        self.first = self.first + rows.first.sum(axis=0).astype(np.int64)
        self.weights = running(self.weights, rows.weights)[-1].copy()
        self.ranks = self.ranks + rows.ranks

    def observe(
        self, values: FloatArray, null: FloatArray | None
    ) -> tuple[FloatArray, FloatArray | None]:
        """Add observations, shape (n, values); return ``total`` and ``null`` after each of them."""
        path = running(self.total, values)[1:]
        nulls = None if null is None else running(self.null, null)[1:]
        if len(path):
            self.total, self.n = path[-1].copy(), self.n + len(path)
            if nulls is not None:
                self.null = nulls[-1].copy()
        return path, nulls

    def counts(self, names: Sequence[str]) -> ExposureCounts:
        """Return the counts in the form that an ``ExposureObserver`` gives."""
        return ExposureCounts(
            n_retrievals=self.n_retrievals,
            n_empty=self.n_empty,
            groups={
                name: GroupExposure(
                    documents=int(self.documents[i]),
                    first=int(self.first[i]),
                    exposure=float(self.weights[i]),
                )
                for name, i in self._seen(names)
            },
        )

    def by_rank(self, names: Sequence[str]) -> tuple[GroupCount, ...]:
        """Return documents of each group seen, and how many at which ranks."""
        return tuple(
            GroupCount(
                group=name, documents=int(self.documents[i]), ranks=tuple(self.ranks[i].tolist())
            )
            for name, i in self._seen(names)
        )

    def _seen(self, names: Sequence[str]) -> list[tuple[str, int]]:
        """Return groups that had documents with their columns, in alphabetical order."""
        columns = dict(zip(names, range(len(names)), strict=True)) | {OTHER: len(self.weights) - 1}
        return [(name, i) for name, i in sorted(columns.items()) if self.documents[i]]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return {name: np.asarray(value).tolist() for name, value in vars(self).items()}

    def restore(self, data: Mapping[str, Any]) -> None:
        """Take the values of :meth:`to_dict`; raises DataError where they do not fit."""
        restore(self, dict(vars(self)), data)


def running(start: FloatArray, rows: FloatArray) -> FloatArray:
    """Sums one by one, so that a batch gives bit for bit what single additions do."""
    return np.asarray(np.cumsum(np.concatenate([start[None], rows]), axis=0))
