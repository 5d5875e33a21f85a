"""A fitted detector."""

from __future__ import annotations

import hashlib
import json
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from rag_sourcebias.core.data import BoolArray, Float32Array, FloatArray, IntArray
from rag_sourcebias.core.errors import (
    DataError,
    InsufficientDataError,
    check_source,
    require_one_of,
)
from rag_sourcebias.infer.means import beta_quantile
from rag_sourcebias.tagging.detector.features import Features, extract
from rag_sourcebias.tagging.rules import ID_PATTERN

# Labelled documents as a detector learns from them: usable, unlike each other, in groups.


Target = Literal["source", "style"]
#: Group of each document, by its id or in the order of the documents; None is a group of its own.
Groups: TypeAlias = Mapping[str, str] | Sequence[str | None]

MIN_DOCUMENTS = 20
N_FOLDS = 5


class LabelledTexts(NamedTuple):
    """Texts that can be learned from.

    Parameters
    ----------
    texts : tuple of str, length n
        Not empty, no two alike.
    labels : tuple of str
        Sorted; ``codes`` index into it.
    codes, groups : int64 arrays of shape (n,)
    domains : tuple of str
        ``domain_codes`` index into it; empty where none was given, "" for documents without.
    counts : mapping of str to int
        Documents left out, by reason.
    """

    texts: tuple[str, ...]
    labels: tuple[str, ...]
    codes: IntArray
    groups: IntArray
    domains: tuple[str, ...]
    domain_codes: IntArray
    counts: Mapping[str, int]


def checked_target(target: str) -> Target:
    """Return the target if it is one."""
    require_one_of("target", target, get_args(Target))
    return target  # type: ignore[return-value]


def prepare(
    documents: Iterable[tuple[str, str, str | None]],
    *,
    target: Target,
    groups: Groups | None,
    domains: Groups | None,
) -> LabelledTexts:
    """Check labelled documents and leave out what nothing can be learned from.

    Left out and counted: documents without a label, without text, repetitions of a text with the
    same label, and every copy of a text that has two labels.

    Raises
    ------
    DataError
        If there is only one label, an id occurs twice, a label is no source, or a sequence of
        groups is not as long as the documents.
    InsufficientDataError
        If a label has too few documents or groups.
    """
    rows = [(str(doc_id), text or "", label) for doc_id, text, label in documents]
    doc_ids = [doc_id for doc_id, _, _ in rows]
    group_names = _groups(doc_ids, groups)
    places = [""] * len(rows) if domains is None else _named(doc_ids, domains, "domains")
    if len(set(doc_ids)) < len(doc_ids):
        twice, n = Counter(doc_ids).most_common(1)[0]
        raise DataError(f"document id {twice!r} occurs {n} times; each document needs its own id")
    counts: Counter[str] = Counter(unlabelled=0, empty=0, repeated=0, contradictory=0)
    seen: dict[str, set[str]] = {}
    usable: list[tuple[str, str, str, str, str]] = []
    for (doc_id, text, label), group, place in zip(rows, group_names, places, strict=True):
        plain = " ".join(text.split())
        name = _label(label, doc_id, target)
        if name is None or not plain:
            counts["unlabelled" if name is None else "empty"] += 1
            continue
        known = seen.setdefault(plain, set())
        counts["repeated"] += name in known
        if name not in known:
            known.add(name)
            usable.append((plain, text, name, group, place or ""))
    kept = [row for row in usable if len(seen[row[0]]) == 1]
    counts["contradictory"] = len(usable) - len(kept)
    (labels, codes), (named, domain_codes) = (
        np.unique([row[column] for row in kept], return_inverse=True) for column in (2, 4)
    )
    group_of = {name: code for code, name in enumerate(dict.fromkeys(row[3] for row in kept))}
    found = LabelledTexts(
        texts=tuple(row[1] for row in kept),
        labels=tuple(labels.tolist()),
        codes=codes,
        groups=np.array([group_of[row[3]] for row in kept], dtype=np.int64),
        domains=tuple(named.tolist()) if any(places) else (),
        domain_codes=domain_codes,
        counts=dict(counts),
    )
    if len(labels) < 2:
        raise DataError(
            f"a {target} detector needs documents of at least two labels; found "
            f"{', '.join(found.labels) or 'no labelled document with text'}"
        )
    for code, label in enumerate(found.labels):
        mine = found.codes == code
        n = int(mine.sum())
        n_groups = len(np.unique(found.groups[mine]))
        if n < MIN_DOCUMENTS or n_groups < N_FOLDS:
            raise InsufficientDataError(
                f"label {label!r} has {n} usable documents in {n_groups} groups; a detector needs "
                f"at least {MIN_DOCUMENTS} different documents in {N_FOLDS} groups (pairs, topics, "
                "prompts) of every label",
                n=n,
                n_needed=MIN_DOCUMENTS,
            )
    return found


def _label(label: str | None, doc_id: str, target: Target) -> str | None:
    if label is None or not label.strip():
        return None
    try:
        return check_source(label.strip()) if target == "source" else label.strip()
    except DataError as error:
        raise DataError(f"document {doc_id!r}: {error}") from error


def _named(doc_ids: Sequence[str], given: Groups, what: str) -> list[str | None]:
    if isinstance(given, Mapping):
        return [given.get(doc_id) for doc_id in doc_ids]
    if len(given) != len(doc_ids):
        raise DataError(f"{len(given)} {what} for {len(doc_ids)} documents; need as many")
    return list(given)


def _groups(doc_ids: Sequence[str], groups: Groups | None) -> list[str]:
    """Name the group of each document; the mark keeps given names and ids apart."""
    if groups is None:
        pairs = map(re.compile(ID_PATTERN).match, doc_ids)
        names = [None if pair is None else pair["pair_id"] for pair in pairs]
    else:
        names = _named(doc_ids, groups, "groups")
    return [
        f"document {doc_id}" if name in (None, "") else f"group {name}"
        for doc_id, name in zip(doc_ids, names, strict=True)
    ]


# Scores of documents that were not used for fitting, turned into probabilities.


@dataclass(frozen=True, kw_only=True, eq=False)
class Calibration:
    """Probabilities ``softmax(factor · scores + bias)``.

    With two labels this is Platt scaling, with more temperature scaling with a bias per label.

    Parameters
    ----------
    factor : float
        Positive: the order of two labels' scores is changed by the bias only.
    bias : float64 array of shape (K,)
    """

    factor: float
    bias: FloatArray

    def probabilities(self, scores: FloatArray) -> FloatArray:
        """Probabilities of shape ``(n, K)``; rows add up to 1."""
        return _softmax(self.factor * scores + self.bias)


def fit_calibration(scores: FloatArray, codes: IntArray) -> Calibration:
    """Fit factor and bias to held-out scores by penalised maximum likelihood.

    The penalty is that of one observation or so: it matters only where the labels are separated
    perfectly, and keeps the probabilities away from 0 and 1 there.

    Parameters
    ----------
    scores : float64 array of shape (n, K)
        From models that did not see the documents.
    codes : int64 array of shape (n,)

    Notes
    -----
    Guo, Pleiss, Sun & Weinberger, "On calibration of modern neural networks", ICML 2017, §4.2.
    """
    from scipy.optimize import minimize

    n, n_labels = scores.shape
    hit = np.zeros((n, n_labels))
    hit[np.arange(n), codes] = 1.0

    def loss(parameters: FloatArray) -> tuple[float, FloatArray]:
        log_factor = parameters[0]
        bias = parameters[1:]
        factor = np.exp(log_factor)
        probabilities = _softmax(factor * scores + bias)
        likelihood = np.log(np.maximum(probabilities[np.arange(n), codes], 1e-300)).sum()
        error = probabilities - hit
        gradient = np.concatenate(
            [[factor * (error * scores).sum() + log_factor], error.sum(axis=0) + 0.1 * bias]
        )
        return float(-likelihood + log_factor**2 / 2 + 0.05 * (bias**2).sum()), gradient

    found = minimize(
        loss,
        np.zeros(n_labels + 1),
        jac=True,
        method="L-BFGS-B",
        bounds=[(-5.0, 5.0), *[(None, None)] * n_labels],
    )
    return Calibration(factor=float(np.exp(found.x[0])), bias=np.asarray(found.x[1:], np.float64))


def _softmax(scores: FloatArray) -> FloatArray:
    raised = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=1, keepdims=True))


# Which texts are of the kind that was labelled.


NOWHERE = 2.0  # no text is this much like others


@dataclass(frozen=True, kw_only=True, eq=False)
class Domain:
    """Texts whose n-grams are about as common as those of the labelled documents.

    Another language, genre or length is seen, a finer change is not: on essays a detector for
    encyclopedia passages still feels at home.

    Parameters
    ----------
    centre : float32 array of shape (n_hashed,)
        Mean direction of the labelled documents' n-grams, of length 1.
    limit : float
        Cosine with it below which a text is unlike them.
    """

    centre: Float32Array
    limit: float

    def holds(self, features: Features) -> BoolArray:
        """Whether each text is alike; shape ``(n,)``. A text without n-grams is not."""
        cosine = features.hashed @ self.centre
        return np.asarray((cosine >= self.limit) & (cosine > 0))


def fit_domain(features: Features) -> Domain:
    """Learn the kind of the labelled documents; 1 % of them fall outside."""
    mean = np.asarray(features.hashed.mean(axis=0)).ravel()
    centre = (mean / max(float(np.linalg.norm(mean)), 1e-12)).astype(np.float32)
    return Domain(centre=centre, limit=float(np.quantile(features.hashed @ centre, 0.01)))


# Regularised logistic regression over sparse n-grams and dense stylometry.


_LIMIT = 5.0  # standard deviations: a text unlike all labelled ones may not decide by one habit
_MAX_ITERATIONS = 500


@dataclass(frozen=True, kw_only=True, eq=False)
class LinearModel:
    """Linear scores of K labels.

    Parameters
    ----------
    mean, scale : float64 arrays of shape (n_dense,)
        Standardise the dense features.
    coef : float32 array of shape (K, n_hashed + n_dense)
    intercept : float64 array of shape (K,)
    converged : bool
    """

    mean: FloatArray
    scale: FloatArray
    coef: Float32Array
    intercept: FloatArray
    converged: bool = True

    def scores(self, features: Features) -> FloatArray:
        """Uncalibrated scores (logits), shape ``(n, K)``."""
        n_hashed = features.hashed.shape[1]
        hashed = features.hashed @ self.coef[:, :n_hashed].T
        dense = _standardised(features.dense, self.mean, self.scale)
        # not a matrix product: its last digits depend on how many texts there are
        own = np.einsum("nd,kd->nk", dense, self.coef[:, n_hashed:])
        return np.asarray(hashed + own + self.intercept)


def standards(dense: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and scale of dense features; each of shape (d,)."""
    spread = dense.std(axis=0)
    return dense.mean(axis=0), np.where(spread > 1e-12, spread, 1.0)


def average(models: Sequence[LinearModel]) -> LinearModel:
    """Average of models with the same standards: its scores are the mean of theirs."""
    return replace(
        models[0],
        coef=np.asarray(np.mean([model.coef for model in models], axis=0), dtype=np.float32),
        intercept=np.mean([model.intercept for model in models], axis=0),
        converged=all(model.converged for model in models),
    )


def fit_linear(
    features: Features,
    codes: IntArray,
    n_labels: int,
    *,
    mean: FloatArray,
    scale: FloatArray,
    strength: float,
) -> LinearModel:
    """Fit a multinomial (two labels: binary) logistic regression with a ridge penalty.

    Parameters
    ----------
    features : Features of n texts
    codes : int64 array of shape (n,)
        Label of each text; all of 0 … n_labels − 1 occur.
    mean, scale : float64 arrays of shape (n_dense,)
        From :func:`standards`.
    strength : float
        Inverse of the penalty, scikit-learn's ``C``.
    """
    from scipy import sparse
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    dense = _standardised(features.dense, mean, scale)
    matrix = sparse.hstack([features.hashed, sparse.csr_matrix(dense)], format="csr")
    # The weight of an n-gram that never occurs is 0: leaving it out saves time.
    used = np.flatnonzero(matrix.getnnz(axis=0))
    model: Any = LogisticRegression(C=strength, max_iter=_MAX_ITERATIONS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # kept as ``converged``
        model.fit(matrix[:, used], codes)
    coef = np.zeros((len(model.coef_), matrix.shape[1]))
    coef[:, used] = model.coef_
    intercept = model.intercept_
    if n_labels == 2:  # one row of differences: split evenly, so that all K are alike
        coef = np.vstack([-coef / 2, coef / 2])
        intercept = np.concatenate([-intercept / 2, intercept / 2])
    return LinearModel(
        mean=mean,
        scale=scale,
        coef=coef.astype(np.float32),
        intercept=intercept,
        converged=bool(np.max(model.n_iter_) < _MAX_ITERATIONS),
    )


def _standardised(dense: FloatArray, mean: FloatArray, scale: FloatArray) -> FloatArray:
    """Standardise and cut to ±5; all columns together weigh as much as one block of n-grams."""
    columns = np.clip((dense - mean) / scale, -_LIMIT, _LIMIT)
    return np.asarray(columns / np.sqrt(dense.shape[1]))


# Probabilities of texts, and which of them may become tags.


class Prediction(NamedTuple):
    """What a detector finds in n texts.

    Parameters
    ----------
    probabilities : float64 array of shape (n, K)
    sure : bool array of shape (n,)
        The highest probability reaches the threshold.
    alike : bool array of shape (n,)
        The text is of the kind that was labelled.
    """

    probabilities: FloatArray
    sure: BoolArray
    alike: BoolArray

    @property
    def decided(self) -> BoolArray:
        """Texts that get the likeliest label as their tag; the others are unknown."""
        return self.sure & self.alike

    def errors(self, codes: IntArray) -> dict[str, Rate]:
        """Shares wrong if all were decided, left unknown, and wrong among the decided."""
        wrong, decided = self.probabilities.argmax(axis=1) != codes, self.decided
        return {
            "error_of_all": Rate.of(int(wrong.sum()), len(codes)),
            "unknown": Rate.of(int((~decided).sum()), len(codes)),
            "error": Rate.of(int((decided & wrong).sum()), int(decided.sum())),
        }


def sure(probabilities: FloatArray, threshold: float | None) -> BoolArray:
    """Which rows of probabilities reach the threshold; none where there is no threshold."""
    if threshold is None:
        return np.zeros(len(probabilities), dtype=np.bool_)
    return np.asarray(probabilities.max(axis=1) >= threshold)


# How good probabilities and decisions are.


@dataclass(frozen=True, kw_only=True)
class Rate:
    """A share with its Clopper–Pearson interval.

    The interval treats documents as independent; twins of one topic are not quite.

    Parameters
    ----------
    hits, n : int
    lower, upper : float
        0 and 1 where there is no document.
    """

    hits: int
    n: int
    lower: float
    upper: float

    @classmethod
    def of(cls, hits: int, n: int) -> Rate:
        """Make a rate out of counts, with an interval at 95 %."""
        return cls(
            hits=hits,
            n=n,
            lower=beta_quantile(0.025, hits, n - hits + 1) if hits else 0.0,
            upper=beta_quantile(0.975, hits + 1, n - hits) if hits < n else 1.0,
        )

    @property
    def value(self) -> float:
        """The share; NaN where there is no document."""
        return self.hits / self.n if self.n else float("nan")


def auroc(scores: FloatArray, positive: BoolArray) -> float:
    """Area under the ROC curve: P(a positive scores above a negative), ties half."""
    from scipy.stats import mannwhitneyu

    if positive.all() or not positive.any():
        return float("nan")
    sides = scores[positive], scores[~positive]
    wins = mannwhitneyu(*sides, method="asymptotic").statistic
    return float(wins) / (len(sides[0]) * len(sides[1]))


def brier_score(probabilities: FloatArray, codes: IntArray) -> float:
    """Mean over documents of Σ_k (p_k − y_k)² / 2; with two labels the usual Brier score."""
    hit = np.zeros_like(probabilities)
    hit[np.arange(len(codes)), codes] = 1.0
    return float(((probabilities - hit) ** 2).sum(axis=1).mean() / 2)


def calibration_error(confidence: FloatArray, right: BoolArray, *, n_bins: int = 10) -> float:
    """Expected calibration error: mean over documents of |accuracy − confidence| of their bin.

    Bins hold equally many documents, from the least to the most confident.
    """
    order = np.argsort(confidence, kind="stable")
    off = right[order] - confidence[order]
    return sum(abs(float(part.sum())) for part in np.array_split(off, n_bins)) / len(order)


# What a detector achieved on documents it had not seen.


@dataclass(frozen=True, kw_only=True)
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
    probabilities = found.probabilities
    n, n_labels = probabilities.shape
    top = probabilities.argmax(axis=1)
    right = top == codes
    confusion = np.zeros((n_labels, n_labels + 1), dtype=np.int64)
    np.add.at(confusion, (codes, np.where(found.decided, top, n_labels)), 1)
    sensitivity = specificity = None
    human = np.array([label == "human" for label in labels])
    if sources and human.any() and not human.all():
        llm_rows = confusion[~human, :-1]
        human_rows = confusion[human, :-1]
        sensitivity = Rate.of(int(llm_rows[:, ~human].sum()), int(llm_rows.sum()))
        specificity = Rate.of(int(human_rows[:, human].sum()), int(human_rows.sum()))
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
        calibration_error=calibration_error(probabilities.max(axis=1), right),
        unlike=Rate.of(int((~found.alike).sum()), n),
        **found.errors(codes),
        sensitivity=sensitivity,
        specificity=specificity,
    )


@dataclass(frozen=True, kw_only=True)
class ForeignError:
    """How wrong a detector of the other domains was on one that it had not seen.

    Parameters
    ----------
    domain : str
    error_of_all : Rate
        Wrong, if every document were decided.
    unknown : Rate
        Documents left undecided.
    error : Rate
        Wrong among the decided.
    """

    domain: str
    error_of_all: Rate
    unknown: Rate
    error: Rate


# A fitted detector.


_BATCH = 256


class Decision(NamedTuple):
    """Tag of one text: ``label`` is None where the detector is not sure enough."""

    label: str | None
    confidence: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Detector:
    """Probabilities of labels, and "unknown" where they are not high enough.

    Made by :func:`fit_detector`, read by :func:`load_detector`. The probabilities hold for texts
    of the kind that was labelled, with labels about as frequent as there.

    Parameters
    ----------
    target : {"source", "style"}
    labels : tuple of str, length K
    linear : LinearModel
    calibration : Calibration
    domain : Domain
        A text unlike the labelled ones stays unknown, whatever its probability.
    threshold : float or None
        Confidence from which on a text is decided; None when no threshold keeps ``max_error``, so
        that every text stays unknown.
    max_error : float
        Error that was wanted among the decided.
    report : DetectorReport
        Held-out figures.
    versions : mapping of str to str
        Of the packages it was fitted with.
    foreign : tuple of ForeignError
        Each domain left out; empty where there is one, or none was named.
    """

    target: Target
    labels: tuple[str, ...]
    linear: LinearModel
    calibration: Calibration
    domain: Domain
    threshold: float | None
    max_error: float
    report: DetectorReport
    versions: Mapping[str, str] = field(default_factory=dict)
    foreign: tuple[ForeignError, ...] = ()

    def predict(self, texts: Sequence[str]) -> Prediction:
        """Calibrated probabilities of texts, columns as ``labels``, and which may be trusted.

        Raises
        ------
        MissingExtraError
            If scikit-learn is not installed.
        """
        probabilities = np.zeros((len(texts), len(self.labels)))
        alike = np.zeros(len(texts), dtype=np.bool_)
        for start in range(0, len(texts), _BATCH):  # n-grams of a batch at a time
            batch = slice(start, start + _BATCH)
            known = extract(texts[batch])
            probabilities[batch] = self.calibration.probabilities(self.linear.scores(known))
            alike[batch] = self.domain.holds(known)
        return Prediction(probabilities, sure(probabilities, self.threshold), alike)

    def decide(self, texts: Sequence[str], *, abstain: bool = True) -> Iterator[Decision]:
        """Label and confidence of each text, in order."""
        found = self.predict(texts)
        for decided, row in zip(found.decided, found.probabilities, strict=True):
            top = row.argmax()
            label = self.labels[top] if decided or not abstain else None
            # six digits are more than it knows, and the same on every machine
            yield Decision(label, round(float(row[top]), 6))

    @property
    def fingerprint(self) -> str:
        """Identity of everything that changes its tags."""
        digest = hashlib.sha256(
            json.dumps(
                [
                    self.target,
                    self.labels,
                    self.threshold,
                    self.calibration.factor,
                    self.domain.limit,
                ]
            ).encode()
        )
        for array in self.arrays().values():
            digest.update(np.ascontiguousarray(array).tobytes())
        return f"detector-{digest.hexdigest()[:16]}"

    def arrays(self) -> dict[str, FloatArray | Float32Array]:
        """Return the fitted arrays by name."""
        return {
            "mean": self.linear.mean,
            "scale": self.linear.scale,
            "coef": self.linear.coef,
            "intercept": self.linear.intercept,
            "bias": self.calibration.bias,
            "centre": self.domain.centre,
        }
