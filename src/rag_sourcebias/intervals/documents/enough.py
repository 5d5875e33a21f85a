"""How many labels a document-level interval needs."""

from __future__ import annotations

import math

import numpy as np

from rag_sourcebias.errors import InsufficientDataError
from rag_sourcebias.intervals.documents.sample import DocumentSample
from rag_sourcebias.intervals.utility import RankedLabels
from rag_sourcebias.types.arrays import FloatArray

__all__ = ["DOCUMENT_LABELS_NEEDED", "check_amount", "labels_needed"]

DOCUMENT_LABELS_NEEDED = 50


def check_amount(labels: RankedLabels, sample: DocumentSample, y: FloatArray, target: str) -> None:
    """Raise unless there are enough labels."""
    if target == "population" and labels.n_queries < 2:
        raise InsufficientDataError(
            "one query says nothing about other queries; use target='pool' or more queries",
            n=labels.n_queries,
            n_needed=2,
        )
    available = int(np.count_nonzero(sample.inclusion))
    if len(y) == available:
        return
    needed = labels_needed(int((sample.inclusion == 1).sum()), available)
    if len(y) < needed:
        raise InsufficientDataError(
            f"{len(y)} labelled documents are too few for an interval that holds its level; "
            f"{needed} are needed, {DOCUMENT_LABELS_NEEDED} of them drawn by chance",
            n=len(y),
            n_needed=needed,
        )
    if float(np.ptp(y)) == 0.0:
        raise InsufficientDataError(
            f"all {len(y)} labelled documents have the same gain {y[0]:g}: their spread, and so "
            "an interval, cannot be estimated; label more documents",
            n=len(y),
        )


def labels_needed(n_certain: int, available: int) -> int:
    """Labels an interval needs: 50 drawn by chance, or nine in ten of the documents."""
    return min(n_certain + DOCUMENT_LABELS_NEEDED, math.ceil(0.9 * available))
