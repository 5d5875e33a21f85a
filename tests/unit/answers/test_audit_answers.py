"""audit_answers end to end, with an encoder of hashed words and a published example."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hashing_encoder import HashingEncoder

from rag_sourcebias.answers.audit import audit_answers
from rag_sourcebias.answers.data import AnswerConfig
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.core.texts import AnswerTexts

FAST = AnswerConfig(resamples=200)
NAMES = ("short", "sentence", "essay")


def answers(n=60, *, seed=0, name="answers"):
    """A right answer holds a reference, a wrong one half of it; wordier systems add other words."""
    rng = np.random.default_rng(seed)
    rows = []
    for i in range(n):
        reference = (f"alpha{i} beta{i}", f"gamma{i}")
        for system, extra in zip(NAMES, (0, 4, 20), strict=True):
            right = rng.random() < 0.75
            core = reference[rng.integers(2)] if right else f"alpha{i} other{i}"
            more = [f"w{rng.integers(400)}" for _ in range(rng.poisson(extra))]
            rows.append((f"q{i}", system, " ".join([core, *more]), reference, float(right)))
    ids, systems, texts, references, correct = zip(*rows, strict=True)
    return AnswerTexts(
        question_ids=ids,
        systems=systems,
        answers=texts,
        references=references,
        correct=np.array(correct),
        name=name,
        license="CC0",
    )


def named(name, dimension=512):
    encoder = HashingEncoder(dimension)
    encoder.name = name
    return encoder


@pytest.fixture(scope="module")
def report():
    return audit_answers(answers(), [named("a"), named("b", 256)], config=FAST)


def test_padding_is_punished_and_the_adjustment_takes_it_out(report):
    scorer = report.scorer("a")
    means = scorer.raw.spread.means
    assert means[0] > means[1] > means[2]
    assert scorer.raw.length_correlation < -0.8
    assert scorer.spread_cut > 0.7
    assert scorer.adjusted.auc.estimate > scorer.raw.auc.estimate
    assert any("'essay'" in w and "times as long" in w for w in report.warnings)


def test_evidence_holds_two_correct_answers_and_the_difference_of_their_scores(report):
    texts = answers()
    correct = {
        (question, answer[:1_500])
        for question, answer, right in zip(
            texts.question_ids, texts.answers, texts.correct, strict=True
        )
        if right
    }
    for scorer in report.scorers:
        assert len(scorer.evidence) > 3
        for case in scorer.evidence:
            assert case.value == case.first.value - case.second.value
            assert {(case.item, case.first.text), (case.item, case.second.text)} <= correct


def test_fitting_on_other_answers_and_stages():
    stages = []
    other = answers(seed=5, name="other answers")
    found = audit_answers(
        answers(),
        [named("a")],
        fit_on=other,
        config=FAST,
        text_statistics=False,
        on_stage=stages.append,
    )
    assert "fitted on 'other answers'" in found.scorer("a").adjustment
    assert stages == [
        "a: comparing 180 answers with their references",
        "a: comparing 180 answers to fit on",
        "measuring",
    ]
    assert found.text_statistics == ()


def test_bad_calls_are_refused_before_anything_is_encoded():
    encoder = named("a")
    given = answers()
    with pytest.raises(DataError, match="different names, got \\['a', 'a'\\]"):
        audit_answers(given, [encoder, named("a")])
    with pytest.raises(DataError, match="different names, got \\[\\]"):
        audit_answers(given, [])
    with pytest.raises(DataError, match="adjust=False switches off"):
        audit_answers(given, [encoder], fit_on=given, config=AnswerConfig(adjust=False))
    alone = replace(
        given, systems=("short",) * 180, question_ids=tuple(f"q{i}" for i in range(180))
    )
    with pytest.raises(DataError, match="at least 2 systems"):
        audit_answers(alone, [encoder])
    with pytest.raises(DataError, match="'short' to question 'q0' occurs twice"):
        replace(given, systems=("short",) * 180)
    assert encoder.calls == []
