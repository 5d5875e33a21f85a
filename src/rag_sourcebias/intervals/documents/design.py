"""Which documents to label: a random sample that favours those that decide the mean utility.

A human label of one document costs the same wherever it is spent. Spread over the documents of
all queries, with a known chance for every document, the same number of labels says far more about
the mean than when whole queries are labelled.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError, InsufficientDataError
from rag_sourcebias.inference.quantiles import as_generator
from rag_sourcebias.intervals.utility import RankedLabels

__all__ = [
    "DocumentSample",
    "LabeledDocuments",
    "design_document_sample",
    "inclusion_probabilities",
    "pool_fingerprint",
    "residual_spread",
]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
_WHOLE = 1e-9  # a chance this near to 0 or 1 is rounding


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


def design_document_sample(
    labels: RankedLabels,
    n_labels: int,
    *,
    pilot: LabeledDocuments | None = None,
    rng: np.random.Generator | int,
) -> DocumentSample:
    """Choose the documents to label.

    The chance of a document is proportional to ω × (2 · mean sd + sd), sd being that of its gain
    under the judge's distribution, capped at 1. The number of labels is fixed. The draw is
    pivotal sampling (Deville & Tillé 1998) in random order, first within every query and then
    among what the queries have left over: a query gets its expected number of labels rounded up
    or down, so that none that expects a label or more is left out.

    Parameters
    ----------
    labels : RankedLabels
    n_labels : int
        Labels in total, those of the pilot included.
    pilot : LabeledDocuments or None
        Labels that exist already, however these documents were chosen. They belong to the
        sample for certain (chance 1): they count, and are not labelled again.
    rng : Generator or int

    Returns
    -------
    DocumentSample

    Raises
    ------
    DataError
        If there are fewer documents with weight than labels, or a row of the pilot is not in the
        pool.
    InsufficientDataError
        If ``n_labels`` is below 1 or leaves nothing beside the pilot.
    """
    size = labels.weights * residual_spread(labels)
    known = np.zeros(0, dtype=np.int64)
    if pilot is not None:
        _check_rows(pilot.rows, len(size))
        known = pilot.rows[size[pilot.rows] > 0]
    if n_labels <= len(known) or n_labels < 1:
        raise InsufficientDataError(
            f"{n_labels} labels asked for with {len(known)} labelled already; ask for more",
            n=n_labels,
            n_needed=len(known) + 1,
        )
    available = int(np.count_nonzero(size))
    if n_labels > available:
        raise DataError(
            f"{n_labels} labels asked for, but only {available} documents of {len(size)} have a "
            f"rank with weight; ask for at most {available}"
        )
    size[known] = np.inf
    inclusion = inclusion_probabilities(size, n_labels)
    seed = int(as_generator(rng).integers(2**53)) if not isinstance(rng, int) else rng
    return DocumentSample(
        rows=_draw(labels, inclusion, np.random.default_rng(seed)),
        inclusion=inclusion,
        seed=seed,
        fingerprint=pool_fingerprint(labels),
    )


def residual_spread(labels: RankedLabels) -> FloatArray:
    """Relative spread expected of the human gain around the judge's, 2 · mean sd + sd.

    A judge that gives every document a single grade says nothing of its own doubt: then all
    documents count alike. Shape (m,).
    """
    mean = labels.probs @ labels.gains
    sd = np.sqrt(np.maximum(labels.probs @ labels.gains**2 - mean**2, 0.0))
    used = labels.weights > 0
    average = float(sd[used].mean()) if used.any() else 0.0
    if average <= 1e-9 * float(np.ptp(labels.gains)):
        return np.ones(len(sd))
    return 2 * average + sd


def inclusion_probabilities(size: FloatArray, n: int) -> FloatArray:
    """Chances proportional to ``size``, capped at 1, that sum to ``n``.

    Parameters
    ----------
    size : float64 array of shape (m,)
        At least 0; infinite means certain.
    n : int
        At most the number of positive sizes, at least the number of infinite ones.
    """
    chance = np.zeros(len(size))
    certain = np.isinf(size)
    free = (size > 0) & ~certain
    while free.any():
        share = (n - int(certain.sum())) * size / float(size[free].sum())
        over = free & (share >= 1 - _WHOLE)
        if not over.any():
            chance[free] = share[free]
            break
        certain |= over
        free &= ~over
    chance[certain] = 1.0
    return chance


def _draw(labels: RankedLabels, inclusion: FloatArray, rng: np.random.Generator) -> IntArray:
    """Pivotal sampling within every query, then among what each query has left over."""
    order = np.lexsort((rng.random(len(inclusion)), labels.query))
    order = order[(inclusion[order] > 0) & (inclusion[order] < 1)]
    bounds = np.searchsorted(labels.query[order], np.arange(labels.n_queries + 1)).tolist()
    rows, chances = order.tolist(), inclusion[order].tolist()
    luck = rng.random(len(rows)).tolist()
    chosen = np.flatnonzero(inclusion == 1).tolist()
    left_rows: list[int] = []
    left_chances: list[float] = []
    for query in rng.permutation(labels.n_queries).tolist():
        part = slice(bounds[query], bounds[query + 1])
        row, chance = _pivotal(rows[part], chances[part], luck[part], chosen)
        if row >= 0:
            left_rows.append(row)
            left_chances.append(chance)
    row, chance = _pivotal(left_rows, left_chances, rng.random(len(left_rows)).tolist(), chosen)
    if chance > 0.5:  # the sum of all chances is whole, up to rounding
        chosen.append(row)
    return np.sort(np.array(chosen, dtype=np.int64))


def _pivotal(
    rows: list[int], chances: list[float], luck: list[float], chosen: list[int]
) -> tuple[int, float]:
    """Let each row meet the next and one pass its chance to the other, until it is 0 or 1.

    Rows whose chance becomes 1 join ``chosen``; the last one with its chance is returned, row −1
    if none is left.
    """
    holder, held = -1, 0.0
    for row, chance, u in zip(rows, chances, luck, strict=True):
        total = held + chance
        if total < 1 - _WHOLE:  # one of the two drops out
            if u * total >= held:
                holder = row
            held = total
            continue
        # one of the two is taken, the other keeps what is left of the sum
        takes_holder = u * (2 - total) < 1 - chance
        chosen.append(holder if takes_holder else row)
        holder = row if takes_holder else holder
        held = total - 1
        if held <= _WHOLE:
            holder, held = -1, 0.0
    return holder, held


def _check_rows(rows: IntArray, n_rows: int) -> None:
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
