"""Fit a detector to labelled documents, with honest figures of what it can do."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib.metadata import version

import numpy as np
import numpy.typing as npt

from rag_sourcebias._version import __version__
from rag_sourcebias.errors import DataError
from rag_sourcebias.tagging.detector.calibration import fit_calibration
from rag_sourcebias.tagging.detector.domain import fit_domain
from rag_sourcebias.tagging.detector.features import (
    Features,
    FeatureSettings,
    Perplexity,
    extract,
    require_sklearn,
)
from rag_sourcebias.tagging.detector.folds import group_folds
from rag_sourcebias.tagging.detector.labelled import Groups, Target, checked_target, prepare
from rag_sourcebias.tagging.detector.logistic import average, fit_linear, standards
from rag_sourcebias.tagging.detector.model import Detector
from rag_sourcebias.tagging.detector.prediction import Prediction, sure
from rag_sourcebias.tagging.detector.report import evaluate
from rag_sourcebias.tagging.detector.threshold import check_max_error, choose_threshold
from rag_sourcebias.types.arrays import FloatArray, IntArray

__all__ = ["fit_detector"]

N_FOLDS = 5
STRENGTH = 10.0
_BATCH = 256
Progress = Callable[[int, int], None]


def fit_detector(
    documents: Iterable[tuple[str, str, str | None]],
    *,
    target: Target = "source",
    groups: Groups | None = None,
    rng: np.random.Generator | int,
    max_error: float = 0.05,
    perplexity: Perplexity | None = None,
    on_progress: Progress | None = None,
) -> Detector:
    """Fit a source or style detector to labelled documents.

    Logistic regression on hashed character and word n-grams and stylometry. Five folds of whole
    groups give every document a score from a model that saw neither it nor its twins; these
    scores calibrate the probabilities, set the threshold below which a text is unknown, and make
    the report. In the report also calibration and threshold come from other folds than the
    document's own. The detector is the average of the five models: a sixth one, of all documents,
    would be surer of itself than those that were calibrated. A text that is too unlike all
    labelled ones is unknown, too.

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
    rng : numpy Generator or int
        Assigns groups to folds; nothing else is random.
    max_error : float
        Wanted share of wrong tags among the decided, in (0, 1).
    perplexity : callable, optional
        Texts to perplexities, as one more feature; it is needed again for tagging.
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
    check_max_error(max_error)
    target = checked_target(target)
    require_sklearn()
    data = prepare(documents, target=target, groups=groups, n_folds=N_FOLDS)
    folds = group_folds(data.codes, data.groups, n_folds=N_FOLDS, rng=np.random.default_rng(rng))
    settings = FeatureSettings(perplexity=perplexity is not None)
    step = _steps(len(data.texts), on_progress)
    features = _extract(data.texts, settings, perplexity, step)
    n_labels = len(data.labels)
    mean, scale = standards(features.dense)
    scores = np.zeros((len(folds), n_labels))
    alike = np.zeros(len(folds), dtype=np.bool_)
    parts = []
    for fold in range(N_FOLDS):
        train, held = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        learned, tested = _take(features, train), _take(features, held)
        part = fit_linear(
            learned, data.codes[train], n_labels, mean=mean, scale=scale, strength=STRENGTH
        )
        scores[held] = part.scores(tested)
        alike[held] = fit_domain(learned).holds(tested)
        parts.append(part)
        step()
    calibration = fit_calibration(scores, data.codes)
    return Detector(
        target=target,
        labels=data.labels,
        features=settings,
        linear=average(parts),
        calibration=calibration,
        domain=fit_domain(features),
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
        perplexity=perplexity,
    )


def _steps(n_documents: int, on_progress: Progress | None) -> Callable[[], None]:
    total = -(-n_documents // _BATCH) + N_FOLDS
    done = 0

    def step() -> None:
        nonlocal done
        done += 1
        if on_progress is not None:
            on_progress(done, total)

    return step


def _extract(
    texts: tuple[str, ...],
    settings: FeatureSettings,
    perplexity: Perplexity | None,
    step: Callable[[], None],
) -> Features:
    from scipy import sparse

    parts = []
    for start in range(0, len(texts), _BATCH):
        parts.append(extract(texts[start : start + _BATCH], settings, perplexity=perplexity))
        step()
    dense = np.concatenate([part.dense for part in parts])
    if settings.perplexity and np.isnan(dense[:, -1]).all():
        raise DataError("perplexity is NaN for every text; leave it out, or give numbers")
    return Features(sparse.vstack([part.hashed for part in parts], format="csr"), dense)


def _take(features: Features, rows: IntArray) -> Features:
    return Features(features.hashed[rows], features.dense[rows])


def _threshold(probabilities: FloatArray, codes: IntArray, max_error: float) -> float | None:
    right = probabilities.argmax(axis=1) == codes
    return choose_threshold(probabilities.max(axis=1), right, max_error=max_error)


def _held_out(
    scores: FloatArray,
    alike: npt.NDArray[np.bool_],
    codes: IntArray,
    folds: IntArray,
    max_error: float,
) -> Prediction:
    """Probabilities and decisions by a calibration and threshold of the other folds."""
    probabilities = np.zeros_like(scores)
    reached = np.zeros(len(codes), dtype=np.bool_)
    for fold in range(N_FOLDS):
        held = folds == fold
        calibration = fit_calibration(scores[~held], codes[~held])
        seen = calibration.probabilities(scores[~held])
        probabilities[held] = calibration.probabilities(scores[held])
        reached[held] = sure(probabilities[held], _threshold(seen, codes[~held], max_error))
    return Prediction(probabilities, reached, alike)
