"""Texts, words and perplexities of both versions, and how much of the gap goes with each."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.data import FloatArray, Histogram, IntArray
from rag_sourcebias.core.errors import InsufficientDataError, if_enough
from rag_sourcebias.core.finding import Interval
from rag_sourcebias.explain.data import (
    BoundedPerplexity,
    GapDecomposition,
    GapFactor,
    ModelPerplexity,
    PerplexityGap,
    TextComparison,
)
from rag_sourcebias.infer.findings import InferCode
from rag_sourcebias.infer.means import clustered_mean, mean_of_alike
from rag_sourcebias.measure.texts import words

# Counts of values between edges, for plots.


_BINS = 40
_TAIL = 0.005  # of the values on either side, which share the outer bins
_NARROWEST = 1e-6


def unit_edges(values: FloatArray) -> FloatArray:
    """Edges up to 1 for values of at most 1, from the twentieth below the lowest value.

    Shape (41,). Used for cosines, which often lie in a small part of [−1, 1].
    """
    start = max(math.floor(20 * float(values.min())) / 20, -1.0)
    return np.linspace(min(start, 0.95), 1.0, _BINS + 1)


def shared_edges(*columns: FloatArray) -> FloatArray:
    """Edges that hold all but the outermost finite values of all columns; shape (41,)."""
    joint = np.concatenate([column[np.isfinite(column)] for column in columns])
    low, high = np.quantile(joint, (_TAIL, 1 - _TAIL))
    if high - low < _NARROWEST:  # all alike: a bin around them
        low, high = low - 0.5, high + 0.5
    return np.linspace(low, high, _BINS + 1)


# Distinct words of many texts as numbers, so that 100,000 documents fit in memory.


Vocabulary = dict[str, int]
Codes = npt.NDArray[np.int32]


class WordSets(NamedTuple):
    """Distinct words of texts (:func:`rag_sourcebias.measure.texts.words`).

    Parameters
    ----------
    n_words : int64 array of shape (n,)
        Words per text, repeats included.
    codes : list of int32 arrays, length n
        Distinct words of each text as numbers, rising.
    """

    n_words: IntArray
    codes: list[Codes]

    @property
    def sizes(self) -> IntArray:
        """Distinct words per text, shape (n,)."""
        return np.array([len(codes) for codes in self.codes], dtype=np.int64)

    def take(self, rows: npt.NDArray[np.integer[Any]]) -> WordSets:
        """Return the texts asked for, in that order."""
        return WordSets(n_words=self.n_words[rows], codes=[self.codes[row] for row in rows])


def word_sets(texts: Sequence[str], vocabulary: Vocabulary) -> WordSets:
    """Split texts into words; new words get the next codes of ``vocabulary``."""
    n_words = np.empty(len(texts), np.int64)
    rows: list[Codes] = []
    for row, text in enumerate(texts):
        found = words(text)
        n_words[row] = len(found)
        codes = sorted({vocabulary.setdefault(word, len(vocabulary)) for word in found})
        rows.append(np.array(codes, dtype=np.int32))
    return WordSets(n_words=n_words, codes=rows)


# Both versions of documents as texts: length and shared words ([K] Table 1, Fig. 3).


_EDGES = np.linspace(0.0, 1.0, _BINS + 1)


def log_length_ratios(human: WordSets, other: WordSets) -> FloatArray:
    """Log of the other version's words over those of the human one; shape (n,)."""
    return np.log(other.n_words / human.n_words)


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
    InsufficientDataError
        If there are fewer than 2 pairs.
    """
    pairs = zip(human.codes, other.codes, strict=True)
    shared = np.array([len(np.intersect1d(a, b, assume_unique=True)) for a, b in pairs])
    ratios, n = log_length_ratios(human, other), len(shared)
    mean_ratio = if_enough(clustered_mean, ratios, confidence_level=confidence_level)
    if mean_ratio is None:  # copies, for instance
        alike = (InferCode.ALL_ALIKE(n=n),)
        mean_ratio = mean_of_alike(ratios, level=confidence_level, notes=alike)
    return TextComparison(
        mean_words_human=float(human.n_words.mean()),
        mean_words_other=float(other.n_words.mean()),
        log_length_ratio=mean_ratio,
        jaccard=Histogram.of(shared / (human.sizes + other.sizes - shared), _EDGES),
        overlap=Histogram.of(shared / human.sizes, _EDGES),
    )


# Query words in both versions of relevant documents.


class QueryWords(NamedTuple):
    """Shares of a query's weight that versions of relevant documents hold, one row per pair.

    Parameters
    ----------
    rows : int64 array of shape (n,)
        Rows of the judged pairs whose query has a word that some document holds.
    human, other : float64 arrays of shape (n,)
        Σ idf(w) over the query's words in the document / Σ idf(w) over the query's words, idf on
        the corpus of both sources.
    """

    rows: IntArray
    human: FloatArray
    other: FloatArray


def judged_words(
    queries: WordSets, human: WordSets, other: WordSets, *, idf: FloatArray
) -> QueryWords:
    """Weigh the query words that both versions of relevant documents hold.

    Words are lower-cased, not stemmed, and no stop words are removed (their idf is small).

    Parameters
    ----------
    queries, human, other : WordSets of n texts
        Row i is a query and both versions of a document that is relevant to it.
    idf : float64 array of shape (words of the vocabulary,)
        0 for words that no document holds: they are left out.
    """
    weights = np.array([idf[codes].sum() for codes in queries.codes])
    rows = np.flatnonzero(weights > 0)

    def share_held(side: WordSets) -> FloatArray:
        shared = [
            np.intersect1d(queries.codes[row], side.codes[row], assume_unique=True) for row in rows
        ]
        return np.asarray(np.array([idf[codes].sum() for codes in shared]) / weights[rows])

    return QueryWords(rows=rows, human=share_held(human), other=share_held(other))


def corpus_idf(texts: WordSets, *, n_codes: int) -> FloatArray:
    """Return idf(w) = ln(1 + (N − df + ½) / (df + ½)) over the texts, 0 where df is 0.

    As of BM25 in Lucene and in :class:`~rag_sourcebias.retrieval.BM25Spec`; shape (n_codes,).
    """
    frequencies = np.bincount(np.concatenate(texts.codes), minlength=n_codes)
    n = len(texts.codes)
    return np.where(frequencies > 0, np.log1p((n - frequencies + 0.5) / (frequencies + 0.5)), 0.0)


# Least squares with errors clustered by query, as influence on the coefficients.


_CONSTANT = 1e-12
_COLLINEAR = 1e10


class Fit(NamedTuple):
    """y = b₀ + Σ b_k x_k + e.

    Parameters
    ----------
    coefficients : float64 array of shape (p + 1,)
        The intercept first.
    influence : float64 array of shape (n, p + 1)
        Of each row on each coefficient, so that coefficient plus influence are values whose mean
        is the coefficient and whose clustered standard error is its own (CR1, with the factor
        (n − 1)/(n − p − 1) of Stata).
    """

    coefficients: FloatArray
    influence: FloatArray

    def values(self, k: int) -> FloatArray:
        """Return values whose mean is coefficient k; shape (n,)."""
        return np.asarray(self.coefficients[k] + self.influence[:, k])


def fit(y: FloatArray, x: FloatArray, *, names: tuple[str, ...]) -> Fit:
    """Fit by least squares.

    Parameters
    ----------
    y : float64 array of shape (n,)
    x : float64 array of shape (n, p)
        Without a column for the intercept.
    names : tuple of str, length p
        Of the columns, for messages.

    Raises
    ------
    InsufficientDataError
        If a column of x is constant, or a sum of others.
    """
    n, p = x.shape
    scale = x.std(axis=0)
    for k in np.flatnonzero(scale <= _CONSTANT * np.maximum(1, np.abs(x).max(axis=0, initial=0))):
        raise InsufficientDataError(
            f"{names[k]} is {x[0, k]:.4g} for every pair, so that nothing can be said about what "
            "goes with it; leave it out",
            n=n,
        )
    centre = x.mean(axis=0)
    design = np.column_stack((np.ones(n), (x - centre) / scale))
    moment = design.T @ design / n
    if n <= p + 1 or np.linalg.cond(moment) > _COLLINEAR:
        raise InsufficientDataError(
            f"{', '.join(names)} cannot be told apart in {n} pairs (one is a sum of others); leave "
            "one out",
            n=n,
        )
    inverse = np.linalg.inv(moment)
    beta = inverse @ (design.T @ y) / n
    residual = y - design @ beta
    influence = design @ inverse * residual[:, None] * math.sqrt((n - 1) / (n - p - 1))
    # Back to the columns as they were: slopes per unit, intercept at x = 0.
    back = np.eye(p + 1)
    back[1:, 1:] = np.diag(1 / scale)
    back[0, 1:] = -centre / scale
    return Fit(coefficients=back @ beta, influence=influence @ back.T)


# How much of the score gap of twins goes with which difference between the versions.


_ASSUMPTIONS = (InferCode.QUERIES_SAMPLED(), InferCode.GAP_LINEAR())


def decompose_gap(
    gaps: FloatArray,
    factors: Mapping[str, FloatArray],
    *,
    queries: IntArray,
    confidence_level: float = 0.95,
) -> GapDecomposition:
    """Regress the score gap of twins on how their versions differ.

    gap_i = b₀ + Σ_k b_k x_ki + e_i with x_k = 0 where versions do not differ. Then mean gap =
    b₀ + Σ_k b_k mean x_k: a remainder and one component per factor (Oaxaca 1973; Blinder 1973).
    Intervals are clustered by query and include the error of the factor's mean.

    Parameters
    ----------
    gaps : float64 array of shape (n,)
        Score of the other version minus that of the human one, one row per (query, pair).
    factors : mapping of name to float64 array of shape (n,)
        Such as log length ratio, perplexity gap, position along the source direction
        (:func:`~rag_sourcebias.explain.vectors.positions_along_source`); 0 is no difference.
    queries : integer array of shape (n,)
        Same number, same query.

    Raises
    ------
    InsufficientDataError
        Without factors, with fewer than 10 · (factors + 1) queries, or with factors that are
        constant or collinear.
    """
    if not factors:
        raise InsufficientDataError(
            "the versions of every relevant pair are the same in all that was measured, so there "
            "is no difference to explain a gap"
        )
    n_queries, needed = len(np.unique(queries)), 10 * (len(factors) + 1)
    if n_queries < needed:
        raise InsufficientDataError(
            f"{len(factors)} factor(s) need at least {needed} queries with pairs, there are "
            f"{n_queries}",
            n=n_queries,
            n_needed=needed,
        )
    names, x = tuple(factors), np.column_stack(list(factors.values())).astype(np.float64)
    found = fit(gaps, x, names=names)
    means = x.mean(axis=0)
    # Values whose mean is slope · mean, and whose spread holds the error of both.
    parts = found.coefficients[1:] * x + means * found.influence[:, 1:]

    def interval(values: FloatArray) -> Interval:
        return replace(
            clustered_mean(values, queries, confidence_level=confidence_level),
            method=InferCode.LINEAR(),
            assumptions=_ASSUMPTIONS,
        )

    extrapolated = (x.min(axis=0) > 0) | (x.max(axis=0) < 0)
    notes = [
        "parts are associations: differences between versions go together, and what causes the "
        "gap cannot be told from them"
    ]
    if extrapolated.any():
        beyond = ", ".join(name for name, far in zip(names, extrapolated, strict=True) if far)
        notes.append(
            f"no pair reaches no difference in {beyond}: components and remainder extrapolate to it"
        )
    return GapDecomposition(
        gap=clustered_mean(gaps, queries, confidence_level=confidence_level),
        factors=tuple(
            GapFactor(
                name=name,
                slope=interval(found.values(k + 1)),
                mean=float(means[k]),
                component=interval(parts[:, k]),
                extrapolated=bool(extrapolated[k]),
            )
            for k, name in enumerate(names)
        ),
        remainder=interval(found.values(0)),
        n=len(gaps),
        n_queries=n_queries,
        notes=tuple(notes),
    )


# How much lower the perplexity of rewrites is, pair by pair and at equal length.


_MIN_ADJUSTED = 20  # as for win rates at equal length: ten per coefficient


def perplexity_gap(
    human: FloatArray,
    other: FloatArray,
    *,
    log_length_ratio: FloatArray,
    confidence_level: float = 0.95,
) -> PerplexityGap:
    """Compare log-perplexities of both versions of documents.

    Short texts have a higher perplexity per token, as less precedes each. The gap at equal length
    is the intercept of a regression on the log length ratio.

    A lower perplexity is a property of rewrites. That it causes a retriever's preference does not
    follow.

    Parameters
    ----------
    human, other : float64 arrays of shape (n,)
        Log-perplexities (:mod:`rag_sourcebias.neural.perplexity`); NaN where undefined. Pairs
        with one are left out and counted.
    log_length_ratio : float64 array of shape (n,)
        ln of other's length over human's.

    Raises
    ------
    InsufficientDataError
        If fewer than 2 pairs are left, or the gaps do not vary.
    """
    kept = np.isfinite(human) & np.isfinite(other)
    ratio = log_length_ratio[kept]
    gaps = other[kept] - human[kept]
    gap = clustered_mean(gaps, confidence_level=confidence_level)
    equal = None
    if len(gaps) >= _MIN_ADJUSTED:
        with suppress(InsufficientDataError):
            equal = clustered_mean(
                fit(gaps, ratio[:, None], names=("log length ratio",)).values(0),
                confidence_level=confidence_level,
            )
    return PerplexityGap(
        mean_human=float(human[kept].mean()),
        mean_other=float(other[kept].mean()),
        gap=gap,
        share_lower=clustered_mean(
            (1 - np.sign(gaps)) / 2, confidence_level=confidence_level, bounds=(0.0, 1.0)
        ),
        gap_equal_length=equal,
        n=len(gaps),
        n_left_out=int(np.count_nonzero(~kept)),
    )


# Perplexities of both versions under one language model ([K] Fig. 7, App. B).


_UPPER = 0.95


def compare_perplexities(
    human: FloatArray,
    other: FloatArray,
    *,
    log_length_ratio: FloatArray,
    model: str,
    kind: Literal["causal", "masked"],
    conditional: FloatArray | None = None,
    confidence_level: float = 0.95,
) -> ModelPerplexity:
    """Compare log-perplexities of both versions, pair by pair and as distributions.

    Parameters
    ----------
    human, other, log_length_ratio : float64 arrays of shape (n,)
        As for :func:`~rag_sourcebias.explain.causes.perplexity_gap`.
    conditional : float64 array of shape (n,), optional
        Of the other version after the human one.

    Raises
    ------
    InsufficientDataError
        If fewer than 2 pairs have both values, or their gaps do not vary.
    """
    gap = perplexity_gap(
        human, other, log_length_ratio=log_length_ratio, confidence_level=confidence_level
    )
    edges = shared_edges(human, other)
    return ModelPerplexity(
        model=model,
        kind=kind,
        gap=gap,
        human=Histogram.of(human, edges),
        other=Histogram.of(other, edges),
        bounded=None
        if conditional is None
        else bounded_perplexity(other, conditional, confidence_level=confidence_level),
    )


def bounded_perplexity(
    other: FloatArray, conditional: FloatArray, *, confidence_level: float = 0.95
) -> BoundedPerplexity | None:
    """Observe PPL(d^G, B) − PPL(d^G | d^H, B), which [K] App. B bounds by ε.

    Of the theorem's conditions only this one and its conclusion (the perplexity gap) can be
    observed: the others hold the distribution of human writing, which nobody has.

    Parameters
    ----------
    other, conditional : float64 arrays of shape (n,)
        Log-perplexities of the other version alone and after the human one, over the same tokens;
        pairs with NaN are left out.

    Returns
    -------
    BoundedPerplexity or None
        None if fewer than 2 pairs are left or they do not vary.
    """
    drops = other - conditional
    drops = drops[np.isfinite(drops)]
    mean = if_enough(clustered_mean, drops, confidence_level=confidence_level)
    if mean is None:
        return None
    return BoundedPerplexity(mean=mean, upper=float(np.quantile(drops, _UPPER)), n=len(drops))
