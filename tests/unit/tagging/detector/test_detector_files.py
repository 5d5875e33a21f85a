"""Detectors on disk."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from simulated_texts import simulated

from rag_sourcebias.core.errors import DataError
from rag_sourcebias.tagging.detector.fit import (
    DetectorTagger,
    fit_detector,
    load_detector,
    save_detector,
)
from rag_sourcebias.tagging.detector.model import Detector

TEXTS = [text for _, text, _ in simulated(10, seed=9)]


@pytest.fixture(scope="module")
def detector() -> Detector:
    return fit_detector(simulated(30, seed=1, labels=("human", "llm:Ünïcode")), rng=0)


@pytest.fixture
def folder(detector: Detector, tmp_path: Path) -> Path:
    save_detector(detector, tmp_path / "detector")
    return tmp_path / "detector"


def change(folder: Path, **values: object) -> None:
    file = folder / "detector.json"
    file.write_text(json.dumps(json.loads(file.read_text("utf-8")) | values), "utf-8")


def test_round_trip_keeps_every_bit(detector: Detector, folder: Path) -> None:
    read = load_detector(folder)
    assert sorted(p.name for p in folder.iterdir()) == ["detector.json", "model.npz"]
    assert np.array_equal(read.predict(TEXTS).probabilities, detector.predict(TEXTS).probabilities)
    for name, array in detector.arrays().items():
        assert read.arrays()[name].dtype == array.dtype
        assert np.array_equal(read.arrays()[name], array)
    assert read.report == detector.report
    assert read.threshold == detector.threshold
    assert read.labels == ("human", "llm:Ünïcode")
    assert read.fingerprint == detector.fingerprint == DetectorTagger(read).fingerprint
    assert read.versions["scikit-learn"]


def test_a_detector_replaces_another_but_nothing_else(detector: Detector, folder: Path) -> None:
    other = fit_detector(simulated(30, seed=5), rng=0)
    save_detector(other, folder)
    assert load_detector(folder).fingerprint == other.fingerprint
    assert [p.name for p in folder.parent.iterdir()] == ["detector"]
    foreign = folder.parent / "thesis"
    foreign.mkdir()
    (foreign / "chapter.txt").write_text("years of work")
    with pytest.raises(DataError, match="holds other files"):
        save_detector(detector, foreign)
    with pytest.raises(DataError, match="is a file"):
        save_detector(detector, foreign / "chapter.txt")
    assert (foreign / "chapter.txt").read_text() == "years of work"


def test_no_detector_there(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"has no detector\.json"):
        load_detector(tmp_path)
    with pytest.raises(DataError, match="is no folder"):
        load_detector(tmp_path / "none")
    (tmp_path / "detector.json").write_text('{"format": "something else"}')
    with pytest.raises(DataError, match="is not of a detector"):
        load_detector(tmp_path)


def test_newer_schema_names_its_release(folder: Path) -> None:
    change(folder, schema_version=2, versions={"rag-sourcebias": "9.9"})
    with pytest.raises(DataError, match=r"schema version 2 \(rag-sourcebias 9.9\).*reads 1"):
        load_detector(folder)


@pytest.mark.parametrize("cut", [0, 10, -1])
def test_cut_arrays_are_damaged(folder: Path, cut: int) -> None:
    file = folder / "model.npz"
    file.write_bytes(file.read_bytes()[:cut])
    with pytest.raises(DataError, match=r"is not a complete detector: model.npz is not the one"):
        load_detector(folder)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"labels": ["human"]}, "its values are not those of fingerprint"),
        ({"target": "tone"}, "target 'tone'"),
        ({"report": {}}, "report: .*labels"),
        ({"threshold": "high"}, "could not convert"),
        ({"threshold": 2.0, "factor": None}, "NoneType"),
        ({"threshold": 0.0}, "fingerprint"),
    ],
)
def test_changed_values_are_damage(folder: Path, values: dict, message: str) -> None:
    change(folder, **values)
    with pytest.raises(DataError, match=f"is not a complete detector.*{message}"):
        load_detector(folder)


def test_pickles_are_not_read(folder: Path, detector: Detector) -> None:
    import hashlib
    import io

    packed = io.BytesIO()
    np.savez(packed, **(detector.arrays() | {"bias": np.array([{}], dtype=object)}))
    (folder / "model.npz").write_bytes(packed.getvalue())
    change(folder, arrays_sha256=hashlib.sha256(packed.getvalue()).hexdigest())
    with pytest.raises(DataError, match="is not a complete detector"):
        load_detector(folder)
