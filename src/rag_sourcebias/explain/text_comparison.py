"""Both versions of documents as texts: length and shared words ([K] Table 1, Fig. 3)."""

from __future__ import annotations

import numpy as np

from rag_sourcebias.errors import DataError, InsufficientDataError
from rag_sourcebias.explain.histogram import histogram
from rag_sourcebias.explain.word_sets import WordSets, count_shared
from rag_sourcebias.inference import clustered_mean
from rag_sourcebias.types.arrays import FloatArray
from rag_sourcebias.types.explain_report import TextComparison
from rag_sourcebias.types.intervals import Interval

__all__ = ["compare_texts", "log_length_ratios"]

_EDGES = np.linspace(0.0, 1.0, 41)


def log_length_ratios(human: WordSets, other: WordSets) -> FloatArray:
    """Log of the other version's words over those of the human one; shape (n,).

    Raises
    ------
    DataError
        If there are not as many texts on both sides, or one has no word.
    """
    if len(human) != len(other):
        raise DataError(f"{len(human)} and {len(other)} texts; need as many")
    for name, side in (("human", human), ("other", other)):
        if len(empty := np.flatnonzero(side.n_words == 0)):
            raise DataError(f"{name} text {empty[0]} has no word, so no length; leave it out")
    ratios: FloatArray = np.log(other.n_words / human.n_words)
    return ratios


def compare_texts(
    human: WordSets, other: WordSets, *, confidence_level: float = 0.95
) -> TextComparison:
    """Compare lengths and words of both versions of documents.

    Parameters
    ----------
    human, other : WordSets
        Of one vocabulary; row i of both is one pair.

    Raises
    ------
    DataError
        As :func:`log_length_ratios`.
    InsufficientDataError
        If there are fewer than 2 pairs.
    """
    ratios = log_length_ratios(human, other)
    if (n := len(human)) < 2:
        raise InsufficientDataError(f"{n} pair(s); at least 2 are needed", n=n, n_needed=2)
    shared = count_shared(human, other)
    ours, theirs = np.unique(human.codes), np.unique(other.codes)
    return TextComparison(
        mean_words_human=float(human.n_words.mean()),
        mean_words_other=float(other.n_words.mean()),
        log_length_ratio=_mean(ratios, confidence_level),
        jaccard=histogram(shared / (human.sizes + other.sizes - shared), _EDGES),
        overlap=histogram(shared / human.sizes, _EDGES),
        vocabulary_human=len(ours),
        vocabulary_other=len(theirs),
        vocabulary_shared=len(np.intersect1d(ours, theirs, assume_unique=True)),
    )


def _mean(values: FloatArray, level: float) -> Interval:
    try:
        return clustered_mean(values, np.arange(len(values)), confidence_level=level)
    except InsufficientDataError:
        # Copies, for instance: all ratios are the same, and so is their mean.
        same = float(values[0])
        return Interval(
            estimate=same,
            lower=same,
            upper=same,
            confidence_level=level,
            method="all alike",
            n_labeled=len(values),
            notes=(f"all {len(values)} pairs have the same ratio: nothing is known of others",),
        )
