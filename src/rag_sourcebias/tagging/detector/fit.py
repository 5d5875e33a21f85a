"""Fit a detector to labelled documents, with honest figures, and keep it in a folder."""

from __future__ import annotations

import hashlib
import io
import os
import secrets
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from rag_sourcebias._version import __version__
from rag_sourcebias.core.codec import PathLike, read_fitted, sound, write_atomic, write_fitted
from rag_sourcebias.core.data import BoolArray, DocTags, FloatArray, IntArray, Origin
from rag_sourcebias.core.errors import DataError, InsufficientDataError
from rag_sourcebias.intake.arrays import read_arrays
from rag_sourcebias.intake.files import open_file
from rag_sourcebias.tagging.detector.features import (
    Features,
    extract,
    require_sklearn,
)
from rag_sourcebias.tagging.detector.model import (
    N_FOLDS,
    NOWHERE,
    Calibration,
    Detector,
    DetectorReport,
    Domain,
    ForeignError,
    Groups,
    LabelledTexts,
    LinearModel,
    Prediction,
    Target,
    average,
    checked_target,
    evaluate,
    fit_calibration,
    fit_domain,
    fit_linear,
    prepare,
    standards,
    sure,
)

# A detector as a folder: ``model.npz`` and ``detector.json``, no pickles.


_KIND = "detector"
_VERSION = 1
_JSON = "detector.json"
_ARRAYS = "model.npz"


@dataclass(frozen=True, kw_only=True)
class _Record:
    """What is kept of a detector besides its arrays."""

    target: Target
    labels: tuple[str, ...]
    factor: float
    likeness_limit: float
    threshold: float | None
    max_error: float
    converged: bool
    fingerprint: str
    versions: Mapping[str, str]
    report: DetectorReport
    foreign: tuple[ForeignError, ...]
    arrays_sha256: str


def check_detector_folder(folder: PathLike) -> None:
    """Refuse a folder that a detector may not be written to.

    Raises
    ------
    DataError
        If it is a file, holds something else than a detector, or cannot be written.
    """
    path = Path(folder)
    if path.exists() and not path.is_dir():
        raise DataError(f"{path} is a file; a detector is a folder")
    if path.is_dir() and any(path.iterdir()) and not (path / _JSON).is_file():
        raise DataError(f"{path} holds other files; name a new folder or one of a detector")
    existing = next(p for p in (path, *path.absolute().parents) if p.exists())
    if not os.access(existing, os.W_OK):
        raise DataError(f"{path} cannot be written: {existing} is not writable")


def save_detector(detector: Detector, folder: PathLike) -> None:
    """Write a detector; the folder appears, or replaces an older detector, only when complete.

    Raises
    ------
    DataError
        If the folder holds something else or cannot be written.
    """
    check_detector_folder(folder)
    target = Path(folder)
    new, old = (
        target.with_name(f".{target.name}.{secrets.token_hex(4)}.{kind}") for kind in ("tmp", "old")
    )
    packed = io.BytesIO()
    np.savez_compressed(packed, **detector.arrays())  # type: ignore[arg-type]
    record = _Record(
        **_shared(detector),
        factor=detector.calibration.factor,
        likeness_limit=detector.domain.limit,
        converged=detector.linear.converged,
        fingerprint=detector.fingerprint,
        arrays_sha256=hashlib.sha256(packed.getvalue()).hexdigest(),
    )
    try:
        new.mkdir(parents=True)
        write_atomic(new / _ARRAYS, packed.getvalue())
        write_fitted(record, new / _JSON, kind=_KIND, version=_VERSION)
        if target.exists():
            target.replace(old)
        new.replace(target)
    except OSError as error:
        if old.exists() and not target.exists():
            old.replace(target)
        raise DataError(f"{target} cannot be written: {error.strerror or error}") from error
    finally:
        shutil.rmtree(new, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


def _shared(found: Detector | _Record) -> dict[str, Any]:
    """Return what a detector and its record hold alike."""
    names = ("target", "labels", "threshold", "max_error", "versions", "report", "foreign")
    return {name: getattr(found, name) for name in names}


def load_detector(folder: PathLike) -> Detector:
    """Read a detector that :func:`save_detector` wrote.

    Raises
    ------
    DataError
        If the folder is no detector, or is damaged.
    UnsupportedVersionError
        If it was written by a release with other fields.
    """
    path = Path(folder)
    file = path / _JSON
    if not file.is_file():
        raise DataError(
            f"{path} {'has no detector.json' if path.is_dir() else 'is no folder'}; expected a "
            "folder that rag-sourcebias tag fit wrote"
        )
    record = read_fitted(_Record, file, kind=_KIND, version=_VERSION)
    with sound(path, "a complete detector", remedy="fit it again"):
        if not (path / _ARRAYS).is_file():
            raise DataError(f"{_ARRAYS} is missing")
        with open_file(path / _ARRAYS) as stream:
            data = stream.read()
        if hashlib.sha256(data).hexdigest() != record.arrays_sha256:
            raise DataError(f"{_ARRAYS} is not the one that {_JSON} was written with")
        arrays = read_arrays(path / _ARRAYS, content=data)
        detector = Detector(
            **_shared(record),
            linear=LinearModel(
                **{name: arrays[name] for name in ("mean", "scale", "coef", "intercept")},
                converged=record.converged,
            ),
            calibration=Calibration(factor=record.factor, bias=arrays["bias"]),
            domain=Domain(centre=arrays["centre"], limit=record.likeness_limit),
        )
        if detector.fingerprint != record.fingerprint:
            raise DataError(f"its values are not those of fingerprint {record.fingerprint!r}")
    return detector


# A detector as a tagger.


class DetectorTagger:
    """Tag the source or style of texts that the detector is sure enough about.

    Put it last: what is declared is better known than what is guessed. For many documents
    :meth:`tag_many` is quicker than one call each.

    Parameters
    ----------
    detector : Detector
    abstain : bool
        Leave unsure texts, and those unlike the labelled ones, unknown.
    origin : {"detected", "unverified"}
        Of the tags: the detector's error on these documents is known, or nobody knows it.

    Raises
    ------
    DataError
        If the detector decides nothing at all.
    """

    def __init__(
        self, detector: Detector, *, abstain: bool = True, origin: Origin = "detected"
    ) -> None:
        self.abstain = abstain
        self.origin = origin
        if abstain and detector.threshold is None:
            raise DataError(
                f"this detector keeps an error of {detector.max_error:g} at no threshold, so that "
                "every document would stay unknown; label more documents or fit it with a larger "
                "max_error"
            )
        self.detector = detector

    @property
    def fingerprint(self) -> str:
        """Identity of everything that changes the tags."""
        marks = ("" if self.abstain else " all", f" {self.origin}".replace(" detected", ""))
        return self.detector.fingerprint + "".join(marks)

    def __call__(
        self,
        doc_id: str,  # noqa: ARG002 - what every tagger gets
        text: str,
        metadata: Mapping[str, object],  # noqa: ARG002
    ) -> DocTags | None:
        """Tags of one document; None where they are unknown."""
        return self.tag_many([text])[0]

    def tag_many(self, texts: Sequence[str]) -> list[DocTags | None]:
        """Tags of texts, in order; the same as of each alone."""
        tags: list[DocTags | None] = []
        for label, confidence in self.detector.decide(texts, abstain=self.abstain):
            if label is None:
                tags.append(None)
            elif self.detector.target == "style":  # origin and confidence are those of the source
                tags.append(DocTags(style=label))
            else:
                tags.append(DocTags(source=label, origin=self.origin, confidence=confidence))
        return tags


# Folds that keep groups whole and labels balanced.


def group_folds(codes: IntArray, groups: IntArray, *, rng: np.random.Generator) -> IntArray:
    """Assign every document to a fold.

    Groups are taken in random order, large ones first, each into the fold where the labels
    then stay most even.

    Parameters
    ----------
    codes, groups : int64 arrays of shape (n,)
        Label and group of each document.

    Returns
    -------
    int64 array of shape (n,)
        0 … N_FOLDS − 1; documents of a group share it.

    Raises
    ------
    InsufficientDataError
        If a label occurs in one fold only, so that nothing could be learned about it elsewhere.
    """
    n_labels = int(codes.max()) + 1
    table = np.zeros((int(groups.max()) + 1, n_labels))
    np.add.at(table, (groups, codes), 1.0)
    weights = table / table.sum(axis=0)
    order = rng.permutation(len(table))
    order = order[np.argsort(-table[order].sum(axis=1), kind="stable")]
    filled = np.zeros((N_FOLDS, n_labels))
    fold_of = np.zeros(len(table), dtype=np.int64)
    for group in order:
        # growth of the sum of squares: least where these labels are rarest
        cost = ((2 * filled + weights[group]) * weights[group]).sum(axis=1)
        fold_of[group] = np.argmin(cost)
        filled[fold_of[group]] += weights[group]
    if (filled > 1 - 1e-9).any():
        raise InsufficientDataError(
            "all documents of one label fall into one fold, because groups are too few or too "
            "unequal; give smaller groups or more documents",
            n=len(table),
        )
    return fold_of[groups]


# How sure a detector must be to say anything.


def choose_threshold(confidence: FloatArray, right: BoolArray, *, max_error: float) -> float | None:
    """Lowest confidence down to which the wanted error is kept.

    The error of the documents at or above a threshold is taken one standard error high (the upper
    limit of the Wilson score interval with z = 1): the threshold is chosen where the error happens
    to look small, and a handful of lucky documents is not enough. A document below all that were
    seen stays undecided even when every seen one may be decided.

    Parameters
    ----------
    confidence : float64 array of shape (n,)
        Probability of the likeliest label of held-out documents.
    right : bool array of shape (n,)
        Whether that label is theirs.
    max_error : float
        In (0, 1).

    Returns
    -------
    float or None
        None where no threshold keeps the error.
    """
    order = np.argsort(-confidence, kind="stable")
    sorted_confidence = confidence[order]
    n = np.arange(1, len(order) + 1)
    share = np.cumsum(~right[order]) / n
    half = np.sqrt(share * (1 - share) / n + 1 / (4 * n**2))
    bound = (share + 1 / (2 * n) + half) / (1 + 1 / n)
    last_of_tie = np.append(sorted_confidence[1:] < sorted_confidence[:-1], True)
    kept = np.flatnonzero((bound <= max_error) & last_of_tie)
    return float(sorted_confidence[kept[-1]]) if len(kept) else None


# Fit a detector to labelled documents, with honest figures of what it can do.


STRENGTH = 10.0
_BATCH = 256


def fit_detector(
    documents: Iterable[tuple[str, str, str | None]],
    *,
    target: Target = "source",
    groups: Groups | None = None,
    domains: Groups | None = None,
    rng: np.random.Generator | int,
    max_error: float = 0.05,
    on_progress: Callable[[int, int], None] | None = None,
) -> Detector:
    """Fit a source or style detector to labelled documents.

    Logistic regression on hashed character and word n-grams and stylometry. Five folds of whole
    groups give every document a score from a model that saw neither it nor its twins; these
    scores calibrate the probabilities, set the threshold below which a text is unknown, and make
    the report. In the report also calibration and threshold come from other folds than the
    document's own. The detector is the average of the five models: a sixth one, of all documents,
    would be surer of itself than those that were calibrated. A text that is too unlike all
    labelled ones is unknown, too: with two domains or more, one whose likeness did not keep the
    wanted error on domains that were left out.

    Parameters
    ----------
    documents : iterable of (doc_id, text, label)
        Sources are ``"human"`` and ``"llm:<model>"``, styles any names. Without label, without
        text or repeated: left out and counted in the report.
    target : {"source", "style"}
    groups : mapping of doc_id to group, or sequence in the order of the documents, optional
        Pair, topic or prompt: documents about the same thing stay in one fold, or the detector
        would be tested on topics it knows. None takes the pair id of ids such as
        ``"d17@llm:gpt-4o"``; other documents stand alone.
    domains : mapping of doc_id to domain, or sequence in the order of the documents, optional
        Data set, genre or generator. Each is left out in turn, to see the error elsewhere.
    rng : numpy Generator or int
        Assigns groups to folds; nothing else is random.
    max_error : float
        Wanted share of wrong tags among the decided, in (0, 1).
    on_progress : callable, optional
        Told steps done and steps in all.

    Returns
    -------
    Detector

    Raises
    ------
    DataError
        For fewer than two labels, a repeated id, a label that is no source, bad groups or a bad
        ``max_error``.
    InsufficientDataError
        If a label has fewer than 20 usable documents or 5 groups.
    MissingExtraError
        If scikit-learn is not installed.
    """
    if not 0 < max_error < 1:
        raise DataError(f"max_error {max_error!r} is outside (0, 1); 0.05 is one wrong tag in 20")
    target = checked_target(target)
    require_sklearn()
    data = prepare(documents, target=target, groups=groups, domains=domains)
    folds = group_folds(data.codes, data.groups, rng=np.random.default_rng(rng))
    n_domains = len(data.domains) if len(data.domains) > 1 else 0
    step = _steps(len(data.texts), N_FOLDS * (1 + n_domains), on_progress)
    features = _extract(data.texts, step)
    n_labels = len(data.labels)
    linear, scores, alike = _learn(features, data.codes, folds, n_labels, step)
    calibration = fit_calibration(scores, data.codes)
    foreign, likeness = _elsewhere(features, data, folds, max_error, step)
    domain = fit_domain(features)
    if likeness is not None:
        domain = replace(domain, limit=max(domain.limit, likeness))
    return Detector(
        target=target,
        labels=data.labels,
        linear=linear,
        calibration=calibration,
        domain=domain,
        threshold=_threshold(calibration.probabilities(scores), data.codes, max_error),
        max_error=max_error,
        report=evaluate(
            _held_out(scores, alike, data.codes, folds, max_error),
            data.codes,
            labels=data.labels,
            sources=target == "source",
            n_groups=len(np.unique(data.groups)),
            n_folds=N_FOLDS,
            left_out=data.counts,
        ),
        versions={
            "rag-sourcebias": __version__,
            "numpy": np.__version__,
            "scikit-learn": version("scikit-learn"),
        },
        foreign=foreign,
    )


def _learn(
    features: Features,
    codes: IntArray,
    folds: IntArray,
    n_labels: int,
    step: Callable[[], None],
) -> tuple[LinearModel, FloatArray, BoolArray]:
    """Fit a model per fold; return their average, held-out scores, and texts like the others."""
    mean, scale = standards(features.dense)
    scores = np.zeros((len(folds), n_labels))
    alike = np.zeros(len(folds), dtype=np.bool_)
    parts = []
    for fold in range(N_FOLDS):
        train = folds != fold
        held = folds == fold
        learned = features.rows(train)
        tested = features.rows(held)
        part = fit_linear(
            learned, codes[train], n_labels, mean=mean, scale=scale, strength=STRENGTH
        )
        scores[held] = part.scores(tested)
        alike[held] = fit_domain(learned).holds(tested)
        parts.append(part)
        step()
    return average(parts), scores, alike


def _elsewhere(
    features: Features,
    data: LabelledTexts,
    folds: IntArray,
    max_error: float,
    step: Callable[[], None],
) -> tuple[tuple[ForeignError, ...], float | None]:
    """Leave each domain out: its error, and the likeness from which on the others keep theirs.

    The likeness is None where nothing could be left out, and above 1 where none keeps the error.
    """
    found, likeness, right = [], [], []
    for code, name in enumerate(data.domains if len(data.domains) > 1 else ()):
        held = data.domain_codes == code
        seen = [data.codes[~held & (folds != fold)] for fold in range(N_FOLDS)]
        if any(len(np.unique(part)) < len(data.labels) for part in seen):
            continue  # a label that occurs in this domain only
        learned = features.rows(~held)
        tested = features.rows(held)
        linear, scores, _ = _learn(learned, data.codes[~held], folds[~held], len(data.labels), step)
        domain = fit_domain(learned)
        probabilities, reached = _judged(
            linear.scores(tested), scores, data.codes[~held], max_error
        )
        prediction = Prediction(probabilities, reached, domain.holds(tested))
        found.append(ForeignError(domain=name, **prediction.errors(data.codes[held])))
        likeness.append((tested.hashed @ domain.centre)[reached])
        right.append((probabilities.argmax(axis=1) == data.codes[held])[reached])
    if not found:
        return (), None
    limit = choose_threshold(np.concatenate(likeness), np.concatenate(right), max_error=max_error)
    return tuple(found), NOWHERE if limit is None else limit


def _steps(
    n_documents: int, n_fits: int, on_progress: Callable[[int, int], None] | None
) -> Callable[[], None]:
    total = -(-n_documents // _BATCH) + n_fits
    done = count(1)

    def step() -> None:
        if on_progress is not None:
            on_progress(next(done), total)

    return step


def _extract(texts: tuple[str, ...], step: Callable[[], None]) -> Features:
    from scipy import sparse

    parts = []
    for start in range(0, len(texts), _BATCH):
        parts.append(extract(texts[start : start + _BATCH]))
        step()
    dense = np.concatenate([part.dense for part in parts])
    return Features(sparse.vstack([part.hashed for part in parts], format="csr"), dense)


def _threshold(probabilities: FloatArray, codes: IntArray, max_error: float) -> float | None:
    return choose_threshold(
        probabilities.max(axis=1), probabilities.argmax(axis=1) == codes, max_error=max_error
    )


def _held_out(
    scores: FloatArray,
    alike: BoolArray,
    codes: IntArray,
    folds: IntArray,
    max_error: float,
) -> Prediction:
    """Probabilities and decisions by a calibration and threshold of the other folds."""
    probabilities = np.zeros_like(scores)
    reached = np.zeros(len(codes), dtype=np.bool_)
    for fold in range(N_FOLDS):
        held = folds == fold
        probabilities[held], reached[held] = _judged(
            scores[held], scores[~held], codes[~held], max_error
        )
    return Prediction(probabilities, reached, alike)


def _judged(
    scores: FloatArray, seen: FloatArray, codes: IntArray, max_error: float
) -> tuple[FloatArray, BoolArray]:
    """Probabilities of scores, and which suffice, by calibration and threshold of seen ones."""
    calibration = fit_calibration(seen, codes)
    probabilities = calibration.probabilities(scores)
    threshold = _threshold(calibration.probabilities(seen), codes, max_error)
    return probabilities, sure(probabilities, threshold)
