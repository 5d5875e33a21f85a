"""What a detector achieved on documents it had not seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rag_sourcebias.tagging.detector.measures import (
    Rate,
    ReliabilityBin,
    auroc,
    brier_score,
    calibration_error,
    reliability,
)
from rag_sourcebias.tagging.detector.prediction import Prediction
from rag_sourcebias.types.arrays import IntArray

__all__ = ["DetectorReport", "evaluate"]

HUMAN = "human"


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectorReport:
    """Held-out figures.

    Parameters
    ----------
    labels : tuple of str, length K
    n_documents, n_groups, n_folds : int
        Of the cross-fitting; 0 folds and groups for a test on other documents.
    left_out : mapping of str to int
        Documents that could not be used, by reason.
    confusion : K tuples of K + 1 int
        Row: label; column: tag, the last one unknown.
    auroc : mapping of str to float
        Each label against the rest; NaN where a test set lacks the label.
    brier, calibration_error : float
        Σ (p − y)² / 2, and mean |accuracy − confidence|, over all documents, unknown ones included.
    reliability : tuple of ReliabilityBin
    error_of_all : Rate
        Wrong likeliest label, if every document were decided.
    unknown : Rate
        Documents left undecided.
    unlike : Rate
        Documents that are undecided because they are unlike the labelled ones.
    error : Rate
        Wrong tags among the decided.
    sensitivity, specificity : Rate or None
        LLM documents tagged as any LLM, and human ones tagged human, among the decided of each;
        None unless the labels are sources with "human" and an LLM among them.
    """

    labels: tuple[str, ...]
    n_documents: int
    n_groups: int
    n_folds: int
    left_out: Mapping[str, int]
    confusion: tuple[tuple[int, ...], ...]
    auroc: Mapping[str, float]
    brier: float
    calibration_error: float
    reliability: tuple[ReliabilityBin, ...]
    error_of_all: Rate
    unknown: Rate
    unlike: Rate
    error: Rate
    sensitivity: Rate | None = None
    specificity: Rate | None = None


def evaluate(
    found: Prediction,
    codes: IntArray,
    *,
    labels: Sequence[str],
    sources: bool,
    n_groups: int = 0,
    n_folds: int = 0,
    left_out: Mapping[str, int] | None = None,
) -> DetectorReport:
    """Hold predictions against the labels.

    Parameters
    ----------
    found : Prediction
        Of n documents.
    codes : int64 array of shape (n,)
        The true labels.
    sources : bool
        The labels are sources.
    """
    probabilities, decided = found.probabilities, found.decided
    n, n_labels = probabilities.shape
    top = probabilities.argmax(axis=1)
    right = top == codes
    confidence = probabilities.max(axis=1)
    confusion = np.zeros((n_labels, n_labels + 1), dtype=np.int64)
    np.add.at(confusion, (codes, np.where(decided, top, n_labels)), 1)
    bins = reliability(confidence, right)
    sensitivity, specificity = _source_rates(confusion, labels) if sources else (None, None)
    return DetectorReport(
        labels=tuple(labels),
        n_documents=n,
        n_groups=n_groups,
        n_folds=n_folds,
        left_out=dict(left_out or {}),
        confusion=tuple(tuple(row) for row in confusion.tolist()),
        auroc={
            label: auroc(probabilities[:, code], codes == code) for code, label in enumerate(labels)
        },
        brier=brier_score(probabilities, codes),
        calibration_error=calibration_error(bins),
        reliability=bins,
        error_of_all=Rate.of(int((~right).sum()), n),
        unknown=Rate.of(int((~decided).sum()), n),
        unlike=Rate.of(int((~found.alike).sum()), n),
        error=Rate.of(int((decided & ~right).sum()), int(decided.sum())),
        sensitivity=sensitivity,
        specificity=specificity,
    )


def _source_rates(confusion: IntArray, labels: Sequence[str]) -> tuple[Rate | None, Rate | None]:
    human = np.array([label == HUMAN for label in labels])
    if not human.any() or human.all():
        return None, None
    decided = confusion[:, :-1]
    llm_rows, human_rows = decided[~human], decided[human]
    return (
        Rate.of(int(llm_rows[:, ~human].sum()), int(llm_rows.sum())),
        Rate.of(int(human_rows[:, human].sum()), int(human_rows.sum())),
    )
