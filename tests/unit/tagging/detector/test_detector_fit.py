"""Fitting: what is refused and counted, and whether the figures are honest."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from simulated_texts import Documents, simulated

from rag_sourcebias.core.errors import DataError, InsufficientDataError, MissingExtraError
from rag_sourcebias.tagging.detector.fit import fit_detector
from rag_sourcebias.tagging.detector.model import Detector, evaluate

WEAK = 0.3  # about one in six wrong when every text is decided


@pytest.fixture(scope="module")
def weak() -> Detector:
    return fit_detector(simulated(250, seed=3, strength=WEAK), rng=0)


@pytest.fixture(scope="module")
def fresh() -> Documents:
    return simulated(400, seed=4, strength=WEAK)


def figures(detector: Detector, documents: Documents):
    found = detector.predict([text for _, text, _ in documents])
    codes = np.array([detector.labels.index(label) for _, _, label in documents])
    return evaluate(found, codes, labels=detector.labels, sources=True)


def test_wanted_error_is_kept_on_fresh_documents(weak: Detector, fresh: Documents) -> None:
    report = figures(weak, fresh)
    assert report.error_of_all.value > 0.10
    assert 0.1 < report.unknown.value < 0.9
    assert report.error.value <= weak.max_error + 0.025


def test_held_out_figures_are_those_of_fresh_documents(weak: Detector, fresh: Documents) -> None:
    report = figures(weak, fresh)
    assert weak.report.auroc["human"] == pytest.approx(report.auroc["human"], abs=0.05)
    assert weak.report.error_of_all.value == pytest.approx(report.error_of_all.value, abs=0.05)
    assert weak.report.unknown.value == pytest.approx(report.unknown.value, abs=0.15)


def test_probabilities_are_calibrated_on_fresh_documents(weak: Detector, fresh: Documents) -> None:
    report = figures(weak, fresh)
    assert report.calibration_error < 0.06
    assert weak.report.calibration_error < 0.06


def test_confusion_counts_every_document_once(weak: Detector) -> None:
    report = weak.report
    table = np.array(report.confusion)
    assert table.shape == (2, 3)
    assert table.sum() == report.n_documents == 500
    assert table[:, 2].sum() == report.unknown.hits
    assert table[0, 1] + table[1, 0] == report.error.hits
    assert report.n_groups == 250


def test_any_llm_counts_as_llm_where_several_are_told_apart() -> None:
    labels = ("human", "llm:a", "llm:b")
    detector = fit_detector(
        simulated(60, seed=1, labels=labels, strength=0.5), rng=0, max_error=0.15
    )
    table = np.array(detector.report.confusion)
    assert detector.report.sensitivity is not None
    assert detector.report.sensitivity.n == table[1:, :3].sum()
    assert detector.report.sensitivity.hits == table[1:, 1:3].sum()
    assert table[1, 2] + table[2, 1] > 0  # one LLM taken for the other is no error here


def test_labels_without_a_trace_in_the_text_leave_everything_unknown() -> None:
    reports = [fit_detector(simulated(60, seed=s, strength=0.0), rng=0).report for s in range(6)]
    assert all(report.unknown.value > 0.9 for report in reports)
    # one of them strays by .09 (standard deviation over 12 seeds)
    assert np.mean([report.auroc["human"] for report in reports]) == pytest.approx(0.5, abs=0.1)


def test_twins_stay_together_so_that_topics_do_not_help() -> None:
    # the label is a property of the topic here: whoever knows the topic knows the label
    rng = np.random.default_rng(0)
    documents, topics = [], {}
    for topic in range(16):
        words = [f"{a}{b}{topic}" for a in "bcdfg" for b in "aei"]
        for copy in range(8):
            doc_id = f"t{topic}-{copy}"
            text = " ".join(rng.choice(words, size=40))
            documents.append((doc_id, text, "human" if topic % 2 else "llm:x"))
            topics[doc_id] = f"topic {topic}"
    leaking = fit_detector(documents, rng=0).report
    honest = fit_detector(documents, groups=topics, rng=0).report
    assert leaking.auroc["human"] > 0.95
    assert honest.auroc["human"] < 0.75
    assert honest.n_groups == 16


def test_same_seed_same_model_other_seed_other_folds() -> None:
    documents = simulated(40, seed=1, strength=0.3)
    first, second = (fit_detector(documents, rng=7) for _ in range(2))
    assert first.fingerprint == second.fingerprint
    assert first.report == second.report
    assert fit_detector(documents, rng=np.random.default_rng(7)).fingerprint == first.fingerprint
    other = fit_detector(documents, rng=8)
    assert other.fingerprint != first.fingerprint


def test_what_cannot_be_learned_from_is_counted() -> None:
    documents = simulated(30, seed=1)
    _, text, _ = documents[0]
    extra: Documents = [
        ("e1", "", "human"),
        ("e2", " \n\t", "llm:x"),
        ("u1", "no label", None),
        ("u2", "no label either", " "),
        ("r1", text.replace(" ", "  "), "human"),
        ("c1", "The very same text.", "human"),
        ("c2", "The very same text.", "llm:x"),
    ]
    report = fit_detector([*documents, *extra], rng=0).report
    assert report.left_out == {"unlabelled": 2, "empty": 2, "repeated": 1, "contradictory": 2}
    assert report.n_documents == 60


def test_too_few_documents_say_how_many_are_needed() -> None:
    documents = simulated(30, seed=1)
    few = [d for d in documents if d[2] == "human"] + documents[1:14:2]
    with pytest.raises(InsufficientDataError, match=r"'llm:x' has 7 usable.*at least 20") as found:
        fit_detector(few, rng=0)
    assert (found.value.n, found.value.n_needed) == (7, 20)
    with pytest.raises(InsufficientDataError, match="30 usable documents in 3 groups"):
        fit_detector(documents, groups=[str(i % 3) for i in range(60)], rng=0)


def test_bad_labels_are_named() -> None:
    documents = simulated(30, seed=1)
    one = [d for d in documents if d[2] == "human"]
    with pytest.raises(DataError, match="at least two labels; found human"):
        fit_detector(one, rng=0)
    with pytest.raises(DataError, match="found no labelled document"):
        fit_detector([], rng=0)
    with pytest.raises(DataError, match="document 'x': source 'gpt-4' is not a source name"):
        fit_detector([*documents, ("x", "text", "gpt-4")], rng=0)
    with pytest.raises(DataError, match="id 'x' occurs 2 times"):
        fit_detector([*documents, ("x", "a", "human"), ("x", "b", "human")], rng=0)
    with pytest.raises(DataError, match="target 'tone' is not one of"):
        fit_detector(documents, target="tone", rng=0)
    for wrong in (0.0, 1.0, float("nan")):
        with pytest.raises(DataError, match="max_error"):
            fit_detector(documents, rng=0, max_error=wrong)


def test_missing_scikit_learn_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(MissingExtraError, match=r"scikit-learn.*\[detector\]"):
        fit_detector(simulated(30, seed=1), rng=0)
