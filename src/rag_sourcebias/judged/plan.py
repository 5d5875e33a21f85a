"""How many human labels an interval of a wanted width needs, with a judge and without."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.codec import Stored
from rag_sourcebias.core.data import FloatArray, IntArray
from rag_sourcebias.core.errors import (
    DataError,
    InsufficientDataError,
    check_level,
    require,
)
from rag_sourcebias.core.finding import Finding, Interval
from rag_sourcebias.infer.findings import InferCode
from rag_sourcebias.infer.judged import (
    JUDGED_SCORE_ITEMS,
    MIN_LABELED,
    SCORE_ITEMS,
    choose_form,
    mean_interval,
)
from rag_sourcebias.infer.means import (
    t_around,
    t_quantile,
    wilson_ends,
)
from rag_sourcebias.infer.samples import (
    JudgedSample,
    has_spread,
    inclusion_probabilities,
    is_constant,
    judge_correlation,
)
from rag_sourcebias.judged.crc import RankedLabels

# A sample of documents to label.


@dataclass(frozen=True, kw_only=True, eq=False)
class DocumentSample(Stored):
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
        size = len(self.inclusion)
        inside = np.all((self.rows >= 0) & (self.rows < size))
        within = np.all((self.inclusion >= 0) & (self.inclusion <= 1))
        require(
            (np.all(np.diff(self.rows) > 0), "the rows of a document sample must increase"),
            (inside, f"a sampled row lies outside the pool of {size}"),
            (within, "chances of inclusion lie in [0, 1]"),
        )
        if not self.inclusion[self.rows].all():
            raise DataError("a row was sampled whose chance of inclusion is 0")

    @property
    def n_labels(self) -> int:
        """Number of documents in the sample."""
        return len(self.rows)


def pool_fingerprint(labels: RankedLabels) -> str:
    """SHA-256 of the pool: judge distributions (to 1e-9), weights, queries and gains."""
    digest = hashlib.sha256()
    for part in (labels.probs, labels.weights, labels.gains):
        # adding 0 turns -0.0 into 0.0
        digest.update(np.ascontiguousarray(np.round(part, 9) + 0.0, dtype="<f8").tobytes())
    digest.update(np.ascontiguousarray(labels.query, dtype="<i8").tobytes())
    digest.update(f"{labels.probs.shape} {labels.n_queries}".encode())
    return digest.hexdigest()


# Inclusion probabilities, and a draw of fixed size that keeps them.


def draw(labels: RankedLabels, inclusion: FloatArray, rng: np.random.Generator) -> IntArray:
    """Sample systematically in random order of the queries, and of the documents within each."""
    certain = np.flatnonzero(inclusion == 1)
    place = rng.permutation(labels.n_queries)[labels.query]
    order = np.lexsort((rng.random(len(inclusion)), place))
    order = order[(inclusion[order] > 0) & (inclusion[order] < 1)]
    reached = np.cumsum(inclusion[order])
    if len(order):  # the sum of all chances is whole, up to rounding
        reached *= round(reached[-1]) / reached[-1]
    passed = np.floor(reached + rng.random())
    return np.sort(np.concatenate((certain, order[np.diff(passed, prepend=0.0) > 0])))


# Which documents to label: a random sample that favours those that decide the mean utility.
# A human label of one document costs the same wherever it is spent. Spread over the documents of
# all queries, with a known chance for every document, the same number of labels says far more
# about the mean than when whole queries are labelled.


def design_document_sample(
    labels: RankedLabels,
    n_labels: int,
    *,
    pilot: FloatArray | None = None,
    seed: int,
) -> DocumentSample:
    """Choose the documents to label.

    The chance of a document is proportional to ω × the spread expected of its human gain
    (:func:`residual_spread`), capped at 1. The number of labels is fixed. The draw is systematic
    in random order (Hartley & Rao 1962), query by query: a query gets its expected number of labels
    rounded up or down, so that none that expects a label or more is left out.

    Parameters
    ----------
    labels : RankedLabels
    n_labels : int
        Labels in total, those of the pilot included.
    pilot : float64 array of shape (m,) or None
        Human gains that exist already, however these documents were chosen; NaN elsewhere. They
        belong to the sample for certain (chance 1): they count, and are not labelled again.
    seed : int

    Returns
    -------
    DocumentSample

    Raises
    ------
    DataError
        If there are fewer documents with weight than labels.
    InsufficientDataError
        If ``n_labels`` is below 1 or leaves nothing beside the pilot.
    """
    size = labels.weights * residual_spread(labels)
    known = _labelled(size, pilot)
    if n_labels <= len(known) or n_labels < 1:
        raise InsufficientDataError(
            f"{n_labels} labels asked for with {len(known)} labelled already; ask for more",
            n=n_labels,
            n_needed=len(known) + 1,
        )
    available = np.count_nonzero(size)
    if n_labels > available:
        raise DataError(
            f"{n_labels} labels asked for, but only {available} documents of {len(size)} have a "
            f"rank with weight; ask for at most {available}"
        )
    size[known] = np.inf
    inclusion = inclusion_probabilities(size, n_labels)
    return DocumentSample(
        rows=draw(labels, inclusion, np.random.default_rng(seed)),
        inclusion=inclusion,
        seed=seed,
        fingerprint=pool_fingerprint(labels),
    )


def _labelled(size: FloatArray, pilot: FloatArray | None) -> IntArray:
    """Return the rows with weight that have a human gain."""
    if pilot is None:
        return np.zeros(0, dtype=np.int64)
    return np.flatnonzero(~np.isnan(pilot) & (size > 0))


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
    smallest = 1e-9 * np.ptp(labels.gains)
    found = np.ones(len(sd))
    if used.any() and (doubt := float(sd[used].mean())) > smallest:
        found = (2 * doubt + sd) / (3 * doubt)
    if used.any() and (expected := float(above[used].mean())) > smallest:
        found = found + np.sqrt(above / expected)
    return found


# How many labels a document-level interval needs.


DOCUMENT_LABELS_NEEDED = 50


def require_queries(labels: RankedLabels, target: str) -> None:
    """Raise where one query would have to speak for others."""
    if target == "population" and labels.n_queries < 2:
        raise InsufficientDataError(
            "one query says nothing about other queries; use target='pool' or more queries",
            n=labels.n_queries,
            n_needed=2,
        )


def check_amount(labels: RankedLabels, sample: DocumentSample, y: FloatArray, target: str) -> None:
    """Raise unless there are enough labels."""
    require_queries(labels, target)
    available = int(np.count_nonzero(sample.inclusion))
    n = len(y)
    if n == available:
        return
    needed = labels_needed(int((sample.inclusion == 1).sum()), available)
    if n < needed:
        raise InsufficientDataError(
            f"{n} labelled documents are too few for an interval that holds its level; "
            f"{needed} are needed, {DOCUMENT_LABELS_NEEDED} of them drawn by chance",
            n=n,
            n_needed=needed,
        )
    if np.ptp(y) == 0.0:
        raise InsufficientDataError(
            f"all {n} labelled documents have the same gain {y[0]:g}: their spread, and so "
            "an interval, cannot be estimated; label more documents",
            n=n,
        )


def labels_needed(n_certain: int, available: int) -> int:
    """Labels an interval needs: 50 drawn by chance, or nine in ten of the documents."""
    return min(n_certain + DOCUMENT_LABELS_NEEDED, math.ceil(0.9 * available))


# The mean utility from documents labelled by a :class:`DocumentSample`.


_FEATURES = 3
_ASSUMPTIONS = {
    "pool": (InferCode.DOCUMENTS_DRAWN(), InferCode.LABELS_EXACT()),
    "population": (
        InferCode.QUERIES_SAMPLED(),
        InferCode.DOCUMENTS_DRAWN(),
        InferCode.LABELS_EXACT(),
    ),
}


def document_interval(
    labels: RankedLabels,
    sample: DocumentSample,
    y: FloatArray,
    *,
    target: Literal["population", "pool"] = "population",
    confidence_level: float = 0.95,
) -> Interval:
    r"""Interval for the mean utility from a sample of labelled documents.

    The human gain is regressed on the judge's gain and the query's mean judge gain, with weights
    ω²(1 − π)/π²; the total is Σ ω·fitted over all documents plus Σ ω·residual/π over the labelled
    ones (Cassel, Särndal & Wretman 1976). It is unbiased whatever the judge is worth; a good one
    makes the interval narrow.

    Variance, pool: Σ (1 − π)(v·e)², e the leave-one-out residual and v the weight of the label in
    the total (Särndal, Swensson & Wretman 1989). Population: queries are a sample too. With
    û_q = Σ ω·fitted + Σ v·e over the labelled documents of q, E[û_q | q] is the true utility of q
    and the û of different queries are (nearly) independent; so the variance of û over queries
    holds both parts, and its N-th is the variance of the mean, whatever the residuals of
    documents of one query have in common. Quantiles: t with k − 3 degrees for the sampling of
    documents, N − 1 for the queries, combined by Satterthwaite.

    Parameters
    ----------
    labels : RankedLabels
        The pool the sample was drawn from.
    sample : DocumentSample
    y : float64 array of shape (sample.n_labels,)
        Gain of the human grade, ``labels.gains[grade]``, in the order of ``sample.rows``.
    target : str
        ``"population"``: the mean over all queries that might have been asked. ``"pool"``: the
        mean over these queries.
    confidence_level : float

    Returns
    -------
    Interval
        In the unit of the utility (such as DCG).

    Raises
    ------
    DataError
        If the sample is of another pool, or gains are missing (how many, which first) or outside
        the scale.
    InsufficientDataError
        Below 50 labels drawn by chance, unless nine in ten documents are labelled (coverage of a
        nominal 95 % measured at .92–.94 with 20 labels, .91–.95 with 30, .93–.96 with 50 and
        more); if all labels are alike; or for the population below 2 queries.
    """
    check_level(confidence_level)
    size, known = len(labels.weights), len(sample.inclusion)
    if known != size or sample.fingerprint != pool_fingerprint(labels):
        raise DataError(
            f"the sample was drawn from another pool (of {known} documents, here {size}): judge "
            "distributions, ranks and gains must be the same as then"
        )
    chance = sample.inclusion[sample.rows]
    check_amount(labels, sample, y, target)
    fitted, residual, error = _regress(labels, sample, y)
    n_queries = labels.n_queries
    utilities = labels.total(fitted)
    estimate = (
        float(utilities.sum()) + float(labels.weights[sample.rows] / chance @ residual)
    ) / n_queries
    variance = float((1 - chance) @ error**2) / n_queries**2
    degrees = float(max(int((chance < 1).sum()) - _FEATURES, 1))
    if target == "population":
        # what is certain has no design variance, and its residual counts once
        part = utilities + np.bincount(
            labels.query[sample.rows], weights=error, minlength=n_queries
        )
        total = float(part.var(ddof=1)) / n_queries
        degrees = combined_degrees(variance, degrees, total, n_queries - 1)
        variance = max(total, variance)
    judge = labels.document_gains()[sample.rows]
    told = len(y) >= 3 and np.ptp(y) != 0.0 and np.ptp(judge) > 1e-12
    correlation = judge_correlation(y, judge) if told else None
    return t_around(
        estimate,
        math.sqrt(variance),
        degrees,
        level=confidence_level,
        method=InferCode.DOCUMENTS(),
        target=target,
        n_labeled=sample.n_labels,
        n_unlabeled=int(np.count_nonzero(sample.inclusion)) - sample.n_labels,
        assumptions=_ASSUMPTIONS[target],
        correlation=correlation,
        notes=_notes(sample.n_labels, correlation),
    )


def judge_features(labels: RankedLabels) -> FloatArray:
    """Columns 1, judge gain, mean judge gain of the query's weighted documents; shape (m, 3)."""
    gain = labels.document_gains()
    used = labels.weights > 0
    count, total = (
        np.bincount(labels.query, weights=values, minlength=labels.n_queries)
        for values in (used, used * gain)
    )
    mean = (total / np.maximum(count, 1))[labels.query]
    # centred and scaled, so that a constant judge gives columns of exact zeros
    columns = [np.ones(len(gain))]
    for values in (gain, mean):
        centred = values - values[0]
        centred -= centred.mean()
        scale = float(np.abs(centred).max(initial=0.0))
        columns.append(centred / scale if scale > 1e-12 else np.zeros(len(gain)))
    return np.column_stack(columns)


def _regress(
    labels: RankedLabels, sample: DocumentSample, y: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the human gain expected of every document, and two residuals of each labelled one.

    Human minus fitted gain; and the same with the document itself left out of the fit, times the
    weight of the human gain in the estimated total.
    """
    x = judge_features(labels)
    rows, chance = sample.rows, sample.inclusion[sample.rows]
    inside = x[rows]
    weight = labels.weights[rows]
    random = chance < 1
    loss = (weight / chance) ** 2
    # certain documents need no prediction; they help only where little else is there to learn from
    if random.sum() >= DOCUMENT_LABELS_NEEDED:
        loss = loss * (1 - chance)
    loss = loss / loss.max()
    inverse = np.linalg.pinv((inside * loss[:, None]).T @ inside, rcond=1e-10, hermitian=True)
    fitted = x @ (inverse @ (inside.T @ (loss * y)))
    residual = y - fitted[rows]
    residual[np.abs(residual) <= 1e-9 * np.abs(labels.gains).max()] = 0.0
    leverage = loss * np.einsum("ij,jk,ik->i", inside, inverse, inside)
    expanded = weight / chance
    gap = labels.weights @ x - expanded @ inside
    influence = np.where(random, expanded + loss * (inside @ (inverse @ gap)), expanded)
    # a certain document is never predicted, so there is nothing to leave out
    left_out = np.where(random, residual / np.maximum(1 - leverage, 1e-3), residual)
    return fitted, residual, influence * left_out


def combined_degrees(sampling: float, degrees: float, total: float, between: int) -> float:
    """Satterthwaite's degrees of freedom of document sampling plus the rest of ``total``."""
    rest = max(total - sampling, 0.0)
    spent = sampling**2 / degrees + rest**2 / between
    if spent <= 0:
        return float(between)
    return max(1.0, min((sampling + rest) ** 2 / spent, float(between)))


def _notes(k: int, correlation: float | None) -> tuple[Finding, ...]:
    if correlation is None:
        return (InferCode.JUDGE_BLIND(),)
    if abs(correlation) <= 1 / math.sqrt(k - 2):
        return (InferCode.JUDGE_NO_HELP(),)
    return ()


# What half-width to expect from labels that are not there yet.


GUESSED_CORRELATION = 0.5  # of human and judge gains, where no human label exists
SHARED_IN_QUERY = 0.3  # correlation of two residuals of a query, where no pilot tells it
FEWEST_PILOT = 10
_FEWEST_PAIRS = 30


class Outlook(NamedTuple):
    """Spread to expect, and the half-widths that follow.

    Parameters
    ----------
    size : float64 array of shape (m,)
        What chances of inclusion are proportional to; infinite for labelled documents.
    noise : float64 array of shape (m,)
        (ω σ)², σ the spread of the human gain around the fitted one.
    between : float
        Variance over queries of their utility.
    """

    size: FloatArray
    noise: FloatArray
    between: float
    n_queries: int
    target: Literal["population", "pool"]
    confidence_level: float

    def by_documents(self, n_labels: int) -> float:
        """Half-width with the labels spread over documents."""
        chance = inclusion_probabilities(self.size, n_labels)
        some = chance > 0
        design = float((self.noise[some] * (1 / chance[some] - 1)).sum()) / self.n_queries**2
        drawn = n_labels - int((chance == 1).sum())
        # leave-one-out residuals and estimated coefficients each add 3/n
        design *= 1 + 6 / max(drawn, 1)
        degrees, total = float(max(drawn - 3, 1)), design
        if self.target == "population":
            total += self.between / self.n_queries
            degrees = combined_degrees(design, degrees, total, self.n_queries - 1)
        return self._half(total, degrees)

    def alone(self, n: int) -> float:
        """Half-width with n whole queries labelled and no judge; infinite for one query."""
        if n < 2:
            return math.inf
        lost = 1 / n if self.target == "population" else max(1 / n - 1 / self.n_queries, 0.0)
        return self._half(self.between * lost, n - 1)

    def _half(self, variance: float, degrees: float) -> float:
        return t_quantile(0.5 + self.confidence_level / 2, degrees) * math.sqrt(variance)


def outlook(
    labels: RankedLabels,
    *,
    pilot: FloatArray | None,
    target: Literal["population", "pool"],
    confidence_level: float,
) -> Outlook:
    """Estimate the spread from a pilot, or guess it from the judge's own.

    Without a pilot human gains are taken to spread like the judge's, to correlate with them at
    .5, and the residuals of two documents of a query at .3.

    Raises
    ------
    DataError
        If no document has weight.
    InsufficientDataError
        If the pilot has fewer than 10 labelled documents.
    """
    spread = residual_spread(labels)
    size = labels.weights * spread
    used = size > 0
    rows = _labelled(size, pilot)
    if pilot is None or not len(rows):
        gain, shared = labels.document_gains(), SHARED_IN_QUERY
        center, sd = float(gain[used].mean()), float(gain[used].std())
        missed = math.sqrt(1 - GUESSED_CORRELATION**2)
        if sd <= 1e-9 * np.ptp(labels.gains):
            # a constant judge: a quarter of the scale is the spread of gains that fill half of it
            sd = float(np.ptp(labels.gains)) / 4 / missed
        fitted = center + GUESSED_CORRELATION * (gain - center)
        scale = sd * missed / math.sqrt(np.mean(spread[used] ** 2))
    else:
        fitted, scale, shared = _from_pilot(labels, spread, rows, pilot[rows])
        size[rows] = np.inf
    sigma = scale * spread
    noise = (labels.weights * sigma) ** 2
    own = float(noise.sum()) / labels.n_queries
    joint = float((labels.total(sigma) ** 2).sum()) / labels.n_queries
    between = (1 - shared) * own + shared * joint
    if labels.n_queries > 1:
        between += float(labels.total(fitted).var(ddof=1))
    return Outlook(size, noise, between, labels.n_queries, target, confidence_level)


def _from_pilot(
    labels: RankedLabels, spread: FloatArray, rows: IntArray, y: FloatArray
) -> tuple[FloatArray, float, float]:
    n = len(rows)
    if n < FEWEST_PILOT:
        raise InsufficientDataError(
            f"a pilot of {n} labelled documents with weight tells too little; "
            f"{FEWEST_PILOT} are needed, or none for a guess",
            n=n,
            n_needed=FEWEST_PILOT,
        )
    x = judge_features(labels)
    coefficients = np.linalg.lstsq(x[rows], y, rcond=1e-10)[0]
    standard = (y - x[rows] @ coefficients) / spread[rows]
    # averaged as documents will be drawn: what is drawn rarely matters little to the width
    drawn = labels.weights[rows] * spread[rows]
    variance = float(drawn @ standard**2) / float(drawn.sum()) * n / (n - 3)
    query = labels.query[rows]
    total = np.bincount(query, weights=standard)
    count = np.bincount(query)
    pairs = int((count * (count - 1)).sum()) // 2
    shared = SHARED_IN_QUERY
    if pairs >= _FEWEST_PAIRS and variance > 0:
        products = float((total**2).sum() - (standard**2).sum()) / (2 * pairs)
        shared = min(max(products / variance, 0.0), 1.0)
    return x @ coefficients, math.sqrt(variance), shared


# How many items to label, as an answer.


ASSURANCE = 0.8  # share of draws in which the promised half-width is to be reached


class LabelPlan(NamedTuple):
    """How many labels a half-width needs, with a judge and without.

    Parameters
    ----------
    n_labels, n_alone : int
        Labels with the judge and without, those of the pilot included. ``n_alone`` may be more
        than the pool has.
    half_width : float
        In the unit of the values.
    text : str
        The plan as a sentence.
    assumptions : tuple of str
    """

    n_labels: int
    n_alone: int
    half_width: float
    text: str
    assumptions: tuple[str, ...]

    def __str__(self) -> str:
        return self.text


def saving(n_labels: int, n_alone: int) -> str:
    """Say what share of labels is saved; honest when it is none or less than none."""
    percent = round(100 * (1 - n_labels / n_alone))
    if percent == 0:
        return "no labels saved"
    more = f"{-percent}% more labels than without a judge"
    return f"{percent}% of the labels saved" if percent > 0 else more


# Half-widths against the number of labels, for items.


def carried_on(
    human: FloatArray,
    judge: FloatArray,
    pool: int,
    method: Literal["regression", "labels"],
    *,
    target: Literal["population", "pool"],
    confidence_level: float,
) -> Callable[[int], float]:
    """Return the half-width of n labels that about 80 % of draws like the pilot's reach.

    A formula, as much wider or narrower as the pilot's own interval is.
    """
    n_pilot = len(human)
    others = np.resize(judge, min(pool - n_pilot, _POOL))
    score = choose_form(JudgedSample.build(human, judge, others), None).bounds is not None
    mean = float(human.mean())
    residual, rank, explained, seen = human - mean, 1, 0.0, SCORE_ITEMS
    if method == "regression" and not is_constant(judge):
        centred = judge - judge.mean()
        fitted = centred * float(centred @ residual) / float(centred @ centred)
        residual, rank = residual - fitted, 2
        explained = float(fitted @ fitted) / (n_pilot - 1)
        seen = JUDGED_SCORE_ITEMS if target == "population" else SCORE_ITEMS
    largest = variance_to_come(human, residual, rank, score=score)

    def formula(n: int, pool: int) -> float:
        quantile = t_quantile(0.5 + confidence_level / 2, max(n - rank, 1))
        # the part of the judge's values over the pool does not fall with more labels
        rest, shared = 1.0, explained / pool
        if target == "pool":
            rest, shared = max(1 - n / pool, 0.0), 0.0
        freed = rest / (1 - rank / n)
        if not score:
            return quantile * math.sqrt(largest(n) * freed / n + shared)
        # as infer.judged.score_form does it, between 0 and 1
        each = min(largest(n), (1 + _LEVERAGE / n) / 4) * freed
        pseudo = rest * seen / 2 * ((1 - mean) ** 2 + mean**2)
        smoothed = (each + n * shared + pseudo / n) / (n + seen)
        if smoothed <= 0:
            return 0.0
        pulled = (n * mean + seen / 2) / (n + seen)
        lower, upper = wilson_ends(mean, pulled * (1 - pulled) / smoothed, quantile)
        reach = (upper - lower) / 2
        return max(reach, quantile * math.sqrt(smoothed)) if target == "pool" else reach

    found = mean_interval(
        human, judge, others, method=method, target=target, confidence_level=confidence_level
    )
    first, scale = formula(n_pilot, n_pilot + len(others)), 0.0
    if first > 0:
        scale = (found.half_width / first) ** 2 - 1
    return lambda n: formula(n, pool) * math.sqrt(1 + scale * n_pilot / n)


def variance_to_come(
    human: FloatArray, residual: FloatArray, rank: int, *, score: bool
) -> Callable[[int], float]:
    """Return how large the variance of one of n labels may be, those of the pilot among them.

    The labels to come are new, those of the pilot are part of the n: log variances of the two
    differ with variance error² · (n − n₀) / (n · ν).
    """
    n_pilot = len(human)
    degrees = n_pilot - rank
    values, count = np.unique(human, return_counts=True)
    square = float(np.ptp(human)) ** 2
    total = float(residual @ residual)
    variance, excess, odd = total / degrees, 0.0, 0.0
    # a perfect fit leaves no residual to have a kurtosis
    if total > 1e-12 * n_pilot * human.var():
        excess = _excess_kurtosis(residual, bounded=score)
    elif len(values) == 2:
        # half a disagreement: a judge that never parted from people may yet
        variance = square / 2 / (n_pilot + 1)
    if len(values) == 2:
        odd = variance / square
    quantile = t_quantile(ASSURANCE, degrees)

    def largest(n: int) -> float:
        new = max(n - n_pilot, 0) / n
        if new == 0 or not 0 < odd < 0.25:
            spread = max(2 + excess, 0.0) * new / degrees
            grown = quantile * math.sqrt(spread)
            if not score:  # the mean of a log-normal variance, that no bound holds down
                grown += spread / 2
            return variance * math.exp(grown)
        # What is missed of two-valued labels spreads like a label as rare, whose share has a score
        # interval; the kurtosis of a few says less. Half a case less among the labels to come, or
        # two thirds after a pilot with one: pilots without any are refused, and those that are left
        # show too many.
        size = n_pilot / new
        less = 2 / 3 if count.min() == 1 else 1 / 2
        share = max(0.5 - math.sqrt(0.25 - odd) - less / size, 0.0)
        upper = min(wilson_ends(share, size, quantile)[1], 0.5)
        return square * (1 + _LEVERAGE / n) * upper * (1 - upper)

    return largest


def _excess_kurtosis(residual: FloatArray, *, bounded: bool) -> float:
    """Return the excess kurtosis in its unbiased form: with few labels the plain one is too small.

    A few of a long tail show their skewness before their kurtosis: it is at least that of a gamma
    distribution as skewed, 3/2 of its square.
    """
    n = len(residual)
    square = np.square(residual)
    total = float(square.sum())
    peaked = float(n * np.square(square).sum() / total**2) - 3
    excess = (n - 1) / ((n - 2) * (n - 3)) * ((n + 1) * peaked + 6)
    if bounded:
        return excess
    third = math.sqrt(n) * float((square * residual).sum()) / total**1.5
    of_gamma: float = 1.5 * n * (n - 1) / (n - 2) ** 2 * third * third
    return max(excess, of_gamma)


def smallest(half: Callable[[int], float], wanted: float, low: int, high: int) -> int | None:
    """Return the smallest n in [low, high] whose half-width does; None if none does."""
    reach = wanted * (1 + 1e-9)
    upper = low
    while half(upper) > reach:
        if upper >= high:
            return None
        low, upper = upper + 1, min(2 * upper, high)
    while low < upper:
        middle = (low + upper) // 2
        low, upper = (low, middle) if half(middle) <= reach else (middle + 1, upper)
    return upper


def positive(half_width: float) -> float:
    """Return the half-width, refusing what is not a positive number."""
    if not (math.isfinite(half_width) and half_width > 0):
        raise DataError(f"half_width {half_width!r} must be a positive number")
    return float(half_width)


# How many items to label, with a judge and without, from a pilot of labelled items.


MOST = 1 << 40  # more items than anyone will label
_LEVERAGE = 2.0  # parts of 1/n that leverages add, from draw to draw, to the largest variance
_POOL = 5_000  # judge values that stand for those of a larger pool


def plan_item_labels(
    y: npt.ArrayLike,
    yhat: npt.ArrayLike,
    n_unlabeled: int,
    *,
    half_width: float,
    target: Literal["population", "pool"] = "population",
    confidence_level: float = 0.95,
) -> LabelPlan:
    """How many items to label for a half-width of their mean, with a judge and without.

    The half-widths are those of the intervals of the pilot, with the judge and of labels alone,
    carried on to n labels: the part of the labels falls with their number, the part of the judge's
    values does not. The variance of the labels is taken so large that the half-width is reached in
    about 80 % of draws: its error grows with the kurtosis of what the judge misses. The judge often
    saves no more than 0–10 % of the labels.

    Parameters
    ----------
    y, yhat : float arrays of shape (n,)
        Human and judge values of the pilot, 10 items or more, drawn at random.
    n_unlabeled : int
        Items with a judge value only; labels to come are drawn from them.
    half_width : float
        Wanted, in the unit of y.
    target : str
    confidence_level : float

    Returns
    -------
    LabelPlan

    Raises
    ------
    DataError
        If arrays differ in length or are not finite, or the half-width is not positive.
    InsufficientDataError
        If the pilot is too small or its human values are all alike, or the pool is too small for
        the half-width (with the number of items needed).
    """
    check_level(confidence_level)
    sample = JudgedSample.build(y, yhat, ())
    human, judge, n = sample.y[:, 0], sample.x[:, 0], sample.n_labeled
    if n < MIN_LABELED:
        raise InsufficientDataError(
            f"a pilot of {n} pairs tells too little; {MIN_LABELED} are needed",
            n=n,
            n_needed=MIN_LABELED,
        )
    if not has_spread(human):
        raise InsufficientDataError(
            f"all {n} human values of the pilot are {human[0]:g}: their spread cannot be "
            "estimated; label more items",
            n=n,
        )
    wanted = positive(half_width)
    pool = n + int(n_unlabeled)
    with_judge, alone = (
        carried_on(human, judge, pool, method, target=target, confidence_level=confidence_level)
        for method in ("regression", "labels")
    )
    without = smallest(alone, wanted, n, MOST) or MOST
    found = smallest(with_judge, wanted, n, pool)
    if found is None:
        raise InsufficientDataError(
            f"labelling all {pool} items gives ±{with_judge(pool):.3g}; "
            f"±{wanted:.3g} needs about {without} items",
            n=pool,
            n_needed=without,
        )
    r = judge_correlation(human, judge)
    assumption = (
        f"the pilot of {n} items and the labels to come are random draws from the same items, "
        "which are independent"
    )
    text = (
        f"{found:,} labelled items with the judge, {without:,} without, for ±{wanted:.3g} at "
        f"{100 * confidence_level:.4g}% ({target}), reached in about {100 * ASSURANCE:.0f}% of "
        f"draws like this: {saving(found, without)} (from a pilot of {n:,}, judge r = {r:.2f})"
    )
    return LabelPlan(
        n_labels=found,
        n_alone=without,
        half_width=wanted,
        text=text,
        assumptions=(assumption,),
    )


# How many human labels: for a ranking metric, and for judged answers or items.


_GUESSED: tuple[str, ...] = (
    "no human label yet: human gains are taken to spread like the judge's and to correlate "
    f"with them at {GUESSED_CORRELATION:g}",
    f"residuals of documents of one query are taken to correlate at {SHARED_IN_QUERY:g}",
)


def plan_labels(
    labels: RankedLabels,
    *,
    half_width: float | None = None,
    n_labels: int | None = None,
    target: Literal["population", "pool"] = "population",
    confidence_level: float = 0.95,
    pilot: FloatArray | None = None,
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
    pilot : float64 array of shape (m,) or None
        Human gain of each document, 10 or more, NaN elsewhere. Without, the numbers are a guess:
        human gains that spread like the judge's and correlate with them at .5.

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
    if (half_width is None) == (n_labels is None):
        raise DataError("give either half_width or n_labels")
    require_queries(labels, target)
    view = outlook(labels, pilot=pilot, target=target, confidence_level=confidence_level)
    n_pilot = int(np.isinf(view.size).sum())
    n_labels = _labels_for(view, half_width, int(n_labels or 0), n_pilot)
    half = view.by_documents(n_labels)
    alone = smallest(view.alone, half, 2, MOST) or MOST
    n_alone = round(alone * np.count_nonzero(view.size) / view.n_queries)
    basis, assumptions = "a guess from the judge's own spread, no human label yet", _GUESSED
    if n_pilot:
        basis = f"from a pilot of {n_pilot:,} labels"
        assumptions = ("the documents of the pilot are typical of the pool",)
    text = (
        f"{n_labels:,} documents over {view.n_queries:,} queries for ±{half:.3g} at "
        f"{100 * confidence_level:.4g}% ({target}); whole queries without the judge need "
        f"{n_alone:,} labels: {saving(n_labels, n_alone)} ({basis})"
    )
    return LabelPlan(
        n_labels=n_labels,
        n_alone=n_alone,
        half_width=half,
        text=text,
        assumptions=assumptions,
    )


def _labels_for(view: Outlook, half_width: float | None, n_labels: int, n_pilot: int) -> int:
    """Return as many labels as the half-width takes; without one those asked for, if they do."""
    available = int((view.size > 0).sum())
    fewest = labels_needed(n_pilot, available)
    if half_width is None:
        if n_labels > available:
            raise DataError(
                f"{n_labels} labels, but only {available} documents have a rank with weight"
            )
        if n_labels < fewest:
            raise InsufficientDataError(
                f"{n_labels} labelled documents (with {n_pilot} of a pilot) are too few for an "
                f"interval; {fewest} are needed",
                n=n_labels,
                n_needed=fewest,
            )
        return n_labels
    found = smallest(view.by_documents, positive(half_width), fewest, available)
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
