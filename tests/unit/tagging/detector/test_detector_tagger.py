"""Detectors as taggers."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from simulated_texts import Documents, simulated

from rag_sourcebias.core.data import DocTags
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.tagging.detector.fit import DetectorTagger, fit_detector
from rag_sourcebias.tagging.detector.model import Detector
from rag_sourcebias.tagging.documents import tag_documents

ODD = ["", " \n", "…", "日本語の文章です。", "🙂" * 50, "\ud800 lone", "a" * 200_000, "\x00\x00"]


@pytest.fixture(scope="module")
def detector() -> Detector:
    return fit_detector(simulated(80, seed=1, strength=0.35), rng=0)


@pytest.fixture(scope="module")
def fresh() -> Documents:
    return simulated(60, seed=2, strength=0.35)


def test_tags_are_detected_sources_with_their_probability(
    detector: Detector, fresh: Documents
) -> None:
    tagger = DetectorTagger(detector)
    texts = [text for _, text, _ in fresh]
    tags = tagger.tag_many(texts)
    found = detector.predict(texts)
    unknown = [t is None for t in tags]
    assert 0 < sum(unknown) < len(tags)
    for tag, row, alike in zip(tags, found.probabilities, found.alike, strict=True):
        if tag is None:
            assert row.max() < detector.threshold or not alike
        else:
            assert tag == DocTags(
                source=detector.labels[row.argmax()],
                origin="detected",
                confidence=round(row.max(), 6),
            )


def test_odd_texts_are_read_and_empty_ones_unknown(detector: Detector) -> None:
    tags = DetectorTagger(detector).tag_many(ODD)
    assert tags[:2] == [None, None]
    probabilities = detector.predict(ODD).probabilities
    assert np.isfinite(probabilities).all()
    assert probabilities.sum(axis=1) == pytest.approx(1.0)
    assert DetectorTagger(detector).tag_many([]) == []


def test_texts_of_another_kind_stay_unknown(detector: Detector, fresh: Documents) -> None:
    prose = [
        "The committee met on Tuesday and, after some debate, adopted the budget.",
        "def f(x):\n    return x ** 2  # squares\n",
        "Die Fähre legt bei Sturm nicht ab; wer trotzdem reisen will, nimmt den Bus.",
    ]
    assert not detector.predict(prose).alike.any()
    assert DetectorTagger(detector).tag_many(prose) == [None] * 3
    assert detector.predict([text for _, text, _ in fresh]).alike.mean() > 0.9


def test_declared_tags_come_before_detected_ones(detector: Detector, fresh: Documents) -> None:
    def declared(doc_id: str, text: str, metadata: object) -> DocTags | None:
        return DocTags(source="llm:known", origin="declared") if doc_id == fresh[0][0] else None

    rows = [(doc_id, text, {}) for doc_id, text, _ in fresh]
    found = dict(tag_documents(rows, [declared, DetectorTagger(detector)]))
    assert found[fresh[0][0]] == DocTags(source="llm:known", origin="declared")
    assert sum(tags.origin == "detected" for tags in found.values()) > 20


def test_a_detector_that_decides_nothing_is_no_tagger(detector: Detector, fresh: Documents) -> None:
    mute = dataclasses.replace(detector, threshold=None)
    assert not mute.predict([fresh[0][1]]).decided.any()
    with pytest.raises(DataError, match="every document would stay unknown"):
        DetectorTagger(mute)
