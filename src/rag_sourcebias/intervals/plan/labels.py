"""How many human labels: for a ranking metric, and for judged answers or items."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from rag_sourcebias.errors import DataError, InsufficientDataError
from rag_sourcebias.inference.quantiles import check_level
from rag_sourcebias.intervals.documents.enough import labels_needed
from rag_sourcebias.intervals.documents.outlook import (
    GUESSED_CORRELATION,
    SHARED_IN_QUERY,
    Outlook,
    outlook,
)
from rag_sourcebias.intervals.documents.sample import LabeledDocuments
from rag_sourcebias.intervals.plan.item_curves import positive, smallest
from rag_sourcebias.intervals.plan.items import MOST
from rag_sourcebias.intervals.plan.label_plan import LabelPlan
from rag_sourcebias.intervals.utility import RankedLabels

__all__ = ["plan_labels"]


def plan_labels(
    labels: RankedLabels,
    *,
    half_width: float | None = None,
    n_labels: int | None = None,
    target: Literal["population", "pool"] = "population",
    confidence_level: float = 0.95,
    pilot: LabeledDocuments | None = None,
) -> LabelPlan:
    """How many documents to label for a half-width, or the half-width of so many labels.

    Parameters
    ----------
    labels : RankedLabels
        The judged pool.
    half_width : float or None
        Wanted, in the unit of the utility. Either this or ``n_labels``.
    n_labels : int or None
        Affordable, those of the pilot included.
    target : str
        ``"population"`` or ``"pool"``.
    confidence_level : float
    pilot : LabeledDocuments or None
        Documents with human labels, 10 or more. Without, the numbers are a guess: human gains
        that spread like the judge's and correlate with them at .5.

    Returns
    -------
    LabelPlan

    Raises
    ------
    DataError
        If not exactly one of ``half_width`` and ``n_labels`` is given, or it is not positive, or
        there are not as many documents.
    InsufficientDataError
        If all labels of the pool would not do (with the number of queries needed), if the pilot
        or ``n_labels`` is too small.
    """
    check_level(confidence_level)
    if target not in ("population", "pool"):
        raise DataError(f"target {target!r} is not one of population, pool")
    if (half_width is None) == (n_labels is None):
        raise DataError("give either half_width or n_labels")
    if target == "population" and labels.n_queries < 2:
        raise InsufficientDataError(
            "one query says nothing about other queries; use target='pool' or more queries",
            n=labels.n_queries,
            n_needed=2,
        )
    view = outlook(labels, pilot=pilot, target=target, confidence_level=confidence_level)
    n_pilot = 0 if pilot is None else int(np.isinf(view.size).sum())
    if half_width is not None:
        n_labels = _labels_for(view, positive(half_width), n_pilot)
    elif n_labels is not None:
        _check_labels(view, n_labels, n_pilot)
    return _plan(view, int(n_labels or 0), n_pilot)


def _plan(view: Outlook, n_labels: int, n_pilot: int) -> LabelPlan:
    half = view.by_documents(n_labels)
    whole = int(n_labels / view.per_query + 1e-9)
    in_queries = smallest(view.by_queries, half, 2, view.n_queries)
    alone = smallest(view.alone, half, 2, MOST) or MOST
    return LabelPlan(
        n_labels=n_labels,
        half_width=half,
        half_width_queries=view.by_queries(whole) if whole >= 2 else None,
        half_width_alone=view.alone(whole) if whole >= 2 else None,
        labels_queries=None if in_queries is None else round(in_queries * view.per_query),
        labels_alone=round(alone * view.per_query),
        n_queries=view.n_queries,
        target=view.target,
        confidence_level=view.confidence_level,
        n_pilot=n_pilot,
        assumptions=_assumptions(n_pilot),
    )


def _labels_for(view: Outlook, half_width: float, n_pilot: int) -> int:
    available = int((view.size > 0).sum())
    fewest = labels_needed(n_pilot, available)
    found = smallest(view.by_documents, half_width, fewest, available)
    if found is None:
        least = view.by_documents(available)
        needed = math.ceil(view.n_queries * (least / half_width) ** 2)
        raise InsufficientDataError(
            f"with every document labelled {view.n_queries} queries give ±{least:.3g}; "
            f"±{half_width:.3g} needs about {needed} queries",
            n=view.n_queries,
            n_needed=needed,
        )
    return found


def _check_labels(view: Outlook, n_labels: int, n_pilot: int) -> None:
    available = int((view.size > 0).sum())
    if n_labels > available:
        raise DataError(
            f"{n_labels} labels, but only {available} documents have a rank with weight"
        )
    needed = labels_needed(n_pilot, available)
    if n_labels < needed:
        raise InsufficientDataError(
            f"{n_labels} labelled documents (with {n_pilot} of a pilot) are too few for an "
            f"interval; {needed} are needed",
            n=n_labels,
            n_needed=needed,
        )


def _assumptions(n_pilot: int) -> tuple[str, ...]:
    if n_pilot:
        return ("the documents of the pilot are typical of the pool",)
    return (
        "no human label yet: human gains are taken to spread like the judge's and to correlate "
        f"with them at {GUESSED_CORRELATION:g}",
        f"residuals of documents of one query are taken to correlate at {SHARED_IN_QUERY:g}",
    )
