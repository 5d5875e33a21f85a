"""A detector as a tagger."""

from __future__ import annotations

import hashlib
import io
import json
import os
import secrets
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rag_sourcebias.core.data import DocTags
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.core.values import from_plain, to_plain
from rag_sourcebias.io.files import PathLike, open_file, read_arrays, read_json, sound, write_atomic
from rag_sourcebias.tagging.detector.features import FeatureSettings, Perplexity
from rag_sourcebias.tagging.detector.model import (
    Calibration,
    Decision,
    Detector,
    DetectorReport,
    Domain,
    LinearModel,
    checked_target,
)

# A detector as a folder: ``model.npz`` and ``detector.json``, no pickles.


_FORMAT = "rag-sourcebias detector"
_VERSION = 1
_JSON, _ARRAYS = "detector.json", "model.npz"


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
    mark = secrets.token_hex(4)
    new, old = (target.with_name(f".{target.name}.{mark}.{kind}") for kind in ("tmp", "old"))
    packed = io.BytesIO()
    np.savez_compressed(packed, **detector.arrays())  # type: ignore[arg-type]
    record = {
        "format": _FORMAT,
        "schema_version": _VERSION,
        "target": detector.target,
        "labels": list(detector.labels),
        "features": to_plain(detector.features),
        "factor": detector.calibration.factor,
        "likeness_limit": detector.domain.limit,
        "threshold": detector.threshold,
        "max_error": detector.max_error,
        "converged": detector.linear.converged,
        "fingerprint": detector.fingerprint,
        "versions": dict(detector.versions),
        "report": to_plain(detector.report),
        "arrays_sha256": hashlib.sha256(packed.getvalue()).hexdigest(),
    }
    try:
        new.mkdir(parents=True)
        write_atomic(new / _ARRAYS, packed.getvalue())
        text = json.dumps(record, indent=2, ensure_ascii=False, allow_nan=False)
        write_atomic(new / _JSON, text + "\n")
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


def load_detector(folder: PathLike, *, perplexity: Perplexity | None = None) -> Detector:
    """Read a detector that :func:`save_detector` wrote.

    Parameters
    ----------
    folder : path
    perplexity : callable, optional
        The function it was fitted with, if it was fitted with one.

    Raises
    ------
    DataError
        If the folder is no detector, is damaged, was written by a newer release, or needs a
        perplexity function that is not given.
    """
    path = Path(folder)
    record = _record(path)
    with sound(path, "a complete detector", remedy="fit it again", names_file=False):
        detector = _read(record, _arrays(path, record), perplexity)
    if detector.features.perplexity and perplexity is None:
        raise DataError(f"{path} was fitted with perplexities; give the same perplexity function")
    return detector


def _record(path: Path) -> dict[str, Any]:
    file = path / _JSON
    if not file.is_file():
        what = "has no detector.json" if path.is_dir() else "is no folder"
        raise DataError(f"{path} {what}; expected a folder that rag-sourcebias tag fit wrote")
    record = read_json(file, "the record of a detector")
    if not isinstance(record, dict) or record.get("format") != _FORMAT:
        raise DataError(f"{file} is not of a detector; expected one that rag-sourcebias wrote")
    version = record.get("schema_version")
    if version != _VERSION:
        made = dict(record.get("versions") or {}).get("rag-sourcebias", "unknown")
        raise DataError(
            f"{file} has schema version {version!r} (rag-sourcebias {made}); this release reads "
            f"{_VERSION}: use the release that wrote it or fit the detector again"
        )
    return record


def _arrays(path: Path, record: dict[str, Any]) -> dict[str, Any]:
    file = path / _ARRAYS
    if not file.is_file():
        raise DataError(f"{_ARRAYS} is missing")
    with open_file(file) as stream:
        data = stream.read()
    if hashlib.sha256(data).hexdigest() != record["arrays_sha256"]:
        raise DataError(f"{_ARRAYS} is not the one that {_JSON} was written with")
    return read_arrays(file, content=data)


def _read(
    record: dict[str, Any], arrays: dict[str, Any], perplexity: Perplexity | None
) -> Detector:
    labels = tuple(str(label) for label in record["labels"])
    features = from_plain(FeatureSettings, record["features"], where="features")
    shapes = {
        "mean": (features.n_dense,),
        "scale": (features.n_dense,),
        "coef": (len(labels), features.n_hashed + features.n_dense),
        "intercept": (len(labels),),
        "bias": (len(labels),),
        "centre": (features.n_hashed,),
    }
    for name, shape in shapes.items():
        if arrays[name].shape != shape:
            raise DataError(f"array {name!r} has shape {arrays[name].shape}; expected {shape}")
    threshold = record["threshold"]
    detector = Detector(
        target=checked_target(record["target"]),
        labels=labels,
        features=features,
        linear=LinearModel(
            **{name: arrays[name] for name in ("mean", "scale", "coef", "intercept")},
            converged=bool(record["converged"]),
        ),
        calibration=Calibration(factor=float(record["factor"]), bias=arrays["bias"]),
        domain=Domain(centre=arrays["centre"], limit=float(record["likeness_limit"])),
        threshold=None if threshold is None else float(threshold),
        max_error=float(record["max_error"]),
        report=from_plain(DetectorReport, record["report"], where="report"),
        versions={str(k): str(v) for k, v in record["versions"].items()},
        perplexity=perplexity,
    )
    if detector.fingerprint != record["fingerprint"]:
        raise DataError(f"its values are not those of fingerprint {record['fingerprint']!r}")
    return detector


# A detector as a tagger.


class DetectorTagger:
    """Tag the source or style of texts that the detector is sure enough about.

    Put it last: what is declared is better known than what is guessed. For many documents
    :meth:`tag_many` is quicker than one call each.

    Parameters
    ----------
    detector : Detector

    Raises
    ------
    DataError
        If the detector decides nothing at all.
    """

    def __init__(self, detector: Detector) -> None:
        if detector.threshold is None:
            raise DataError(
                f"this detector keeps an error of {detector.max_error:g} at no threshold, so that "
                "every document would stay unknown; label more documents or fit it with a larger "
                "max_error"
            )
        self.detector = detector

    @classmethod
    def load(cls, folder: PathLike, *, perplexity: Perplexity | None = None) -> DetectorTagger:
        """Read the detector of a folder; see :func:`load_detector`."""
        return cls(load_detector(folder, perplexity=perplexity))

    @property
    def fingerprint(self) -> str:
        """Identity of everything that changes the tags."""
        return self.detector.fingerprint

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
        return [self._tags(decision) for decision in self.detector.decide(texts)]

    def _tags(self, decision: Decision) -> DocTags | None:
        if decision.label is None:
            return None
        if self.detector.target == "style":  # origin and confidence are those of the source
            return DocTags(style=decision.label)
        return DocTags(source=decision.label, origin="detected", confidence=decision.confidence)
