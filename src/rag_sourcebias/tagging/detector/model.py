"""A fitted detector."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypedDict

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError
from rag_sourcebias.tagging.detector.calibration import Calibration
from rag_sourcebias.tagging.detector.domain import Domain
from rag_sourcebias.tagging.detector.features import FeatureSettings, Perplexity, extract
from rag_sourcebias.tagging.detector.labelled import Target
from rag_sourcebias.tagging.detector.logistic import LinearModel
from rag_sourcebias.tagging.detector.prediction import Prediction, sure
from rag_sourcebias.tagging.detector.report import DetectorReport
from rag_sourcebias.types.serial import to_plain

__all__ = ["Decision", "Detector", "TagErrors"]

_BATCH = 256


class Decision(NamedTuple):
    """Tag of one text: ``label`` is None where the detector is not sure enough."""

    label: str | None
    confidence: float


class TagErrors(TypedDict):
    """Arguments of :class:`rag_sourcebias.inference.DetectorQuality`."""

    n_other: int
    n_other_detected: int
    n_baseline: int
    n_baseline_kept: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Detector:
    """Probabilities of labels, and "unknown" where they are not high enough.

    Made by :func:`fit_detector`, read by :func:`load_detector`. The probabilities hold for texts
    of the kind that was labelled, with labels about as frequent as there.

    Parameters
    ----------
    target : {"source", "style"}
    labels : tuple of str, length K
    features : FeatureSettings
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
    perplexity : callable or None
        Given by the caller; not stored.
    """

    target: Target
    labels: tuple[str, ...]
    features: FeatureSettings
    linear: LinearModel
    calibration: Calibration
    domain: Domain
    threshold: float | None
    max_error: float
    report: DetectorReport
    versions: Mapping[str, str] = field(default_factory=dict)
    perplexity: Perplexity | None = None

    def predict(self, texts: Sequence[str]) -> Prediction:
        """Calibrated probabilities of texts, columns as ``labels``, and which may be trusted.

        Raises
        ------
        DataError
            If perplexities are needed and the function was not given or returns something else.
        MissingExtraError
            If scikit-learn is not installed.
        """
        probabilities = np.zeros((len(texts), len(self.labels)))
        alike = np.zeros(len(texts), dtype=np.bool_)
        for start in range(0, len(texts), _BATCH):  # n-grams of a batch at a time
            batch = slice(start, start + _BATCH)
            known = extract(texts[batch], self.features, perplexity=self.perplexity)
            probabilities[batch] = self.calibration.probabilities(self.linear.scores(known))
            alike[batch] = self.domain.holds(known)
        return Prediction(probabilities, sure(probabilities, self.threshold), alike)

    def decide(self, texts: Sequence[str]) -> Iterator[Decision]:
        """Label and confidence of each text, in order."""
        found = self.predict(texts)
        tops = found.probabilities.argmax(axis=1)
        for top, decided, row in zip(tops, found.decided, found.probabilities, strict=True):
            label = self.labels[top] if decided else None
            # six digits are more than it knows, and the same on every machine
            yield Decision(label, round(float(row[top]), 6))

    def tag_errors(self) -> TagErrors:
        """Held-out counts for the correction of Relative Δ for tag errors.

        Counted among decided documents, any LLM against human:
        ``DetectorQuality(**detector.tag_errors())``.

        Raises
        ------
        DataError
            If this is no detector of human and LLM text, or decided none of one of them.
        """
        llm, human = self.report.sensitivity, self.report.specificity
        if llm is None or human is None:
            raise DataError(
                f"tag errors need a detector of 'human' and LLM text; this one tells the "
                f"{self.target}s {', '.join(self.labels)} apart"
            )
        if not llm.n or not human.n:
            raise DataError(
                f"the detector decided {llm.n} LLM and {human.n} human documents; its errors are "
                "unknown: label more documents or allow a larger max_error"
            )
        return TagErrors(
            n_other=llm.n, n_other_detected=llm.hits, n_baseline=human.n, n_baseline_kept=human.hits
        )

    @property
    def fingerprint(self) -> str:
        """Identity of everything that changes its tags."""
        digest = hashlib.sha256(
            json.dumps(
                [
                    self.target,
                    self.labels,
                    to_plain(self.features),
                    self.threshold,
                    self.calibration.factor,
                    self.domain.limit,
                ],
                sort_keys=True,
            ).encode()
        )
        for array in self.arrays().values():
            digest.update(np.ascontiguousarray(array).tobytes())
        return f"detector-{digest.hexdigest()[:16]}"

    def arrays(self) -> dict[str, npt.NDArray[np.float64] | npt.NDArray[np.float32]]:
        """Return the fitted arrays by name."""
        return {
            "mean": self.linear.mean,
            "scale": self.linear.scale,
            "coef": self.linear.coef,
            "intercept": self.linear.intercept,
            "bias": self.calibration.bias,
            "centre": self.domain.centre,
        }
