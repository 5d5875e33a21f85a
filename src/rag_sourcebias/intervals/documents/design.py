"""Which documents to label: a random sample that favours those that decide the mean utility.

A human label of one document costs the same wherever it is spent. Spread over the documents of
all queries, with a known chance for every document, the same number of labels says far more about
the mean than when whole queries are labelled.
"""

from __future__ import annotations

import numpy as np

from rag_sourcebias.errors import DataError, InsufficientDataError
from rag_sourcebias.inference.quantiles import as_generator
from rag_sourcebias.intervals.documents.draw import draw, inclusion_probabilities
from rag_sourcebias.intervals.documents.sample import (
    DocumentSample,
    LabeledDocuments,
    check_rows,
    pool_fingerprint,
)
from rag_sourcebias.intervals.utility import RankedLabels
from rag_sourcebias.types.arrays import FloatArray

__all__ = ["design_document_sample", "residual_spread"]


def design_document_sample(
    labels: RankedLabels,
    n_labels: int,
    *,
    pilot: LabeledDocuments | None = None,
    rng: np.random.Generator | int,
) -> DocumentSample:
    """Choose the documents to label.

    The chance of a document is proportional to ω × the spread expected of its human gain
    (:func:`residual_spread`), capped at 1. The number of labels is fixed. The draw is
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
        check_rows(pilot.rows, len(size))
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
        rows=draw(labels, inclusion, np.random.default_rng(seed)),
        inclusion=inclusion,
        seed=seed,
        fingerprint=pool_fingerprint(labels),
    )


def residual_spread(labels: RankedLabels) -> FloatArray:
    """Relative spread expected of the human gain around the fitted one; shape (m,).

    (2 · mean sd + sd) / (3 · mean sd) + √(gain / mean gain), with sd and gain the judge's: where
    the judge doubts, and where it expects much, people scatter more. Either part alone misleads.
    The sd of an over-confident judge says little of its errors (alone, it made intervals 9 % wider
    than equal chances did), and the gains of documents that are probably not relevant are not all
    0. A judge that tells no documents apart leaves equal chances.
    """
    mean = labels.probs @ labels.gains
    sd = np.sqrt(np.maximum(labels.probs @ labels.gains**2 - mean**2, 0.0))
    above = mean - float(labels.gains.min())
    used = labels.weights > 0
    smallest = 1e-9 * float(np.ptp(labels.gains))
    found = np.ones(len(sd))
    if used.any() and (doubt := float(sd[used].mean())) > smallest:
        found = (2 * doubt + sd) / (3 * doubt)
    if used.any() and (expected := float(above[used].mean())) > smallest:
        found = found + np.sqrt(above / expected)
    return found
