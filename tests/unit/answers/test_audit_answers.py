"""audit_answers end to end, with an encoder of hashed words and a published example."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hashing_encoder import HashingEncoder

from rag_sourcebias.answers.audit import audit_answers
from rag_sourcebias.answers.data import AnswerConfig, AnswerTexts
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.stats import texts as text_similarity
from rag_sourcebias.stats.texts import installed_statistics

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


def test_one_scorer_per_encoder_with_its_settings(report):
    assert [s.name for s in report.scorers] == ["a", "b"]
    assert report.scorer("a").settings["model"] == "hashing"
    assert (report.name, report.license) == ("answers", "CC0")
    assert [s.name for s in report.systems] == list(NAMES)


def test_padding_is_punished_and_the_adjustment_takes_it_out(report):
    scorer = report.scorer("a")
    means = scorer.raw.spread.means
    assert means[0] > means[1] > means[2]
    assert scorer.raw.length_correlation < -0.8
    assert scorer.spread_cut > 0.7
    assert scorer.adjusted.auc.estimate > scorer.raw.auc.estimate
    assert any("'essay'" in w and "times as long" in w for w in report.warnings)


def test_the_nearest_reference_counts(report):
    """Each right short answer is one of two references, word for word."""
    right = [
        score
        for score, system, good in zip(
            report.scorer("a").scores, report.answer_systems, report.correct, strict=True
        )
        if system == "short" and good
    ]
    assert right == pytest.approx([1.0] * len(right))


def test_text_statistics_describe_correct_answers(report):
    found = {(s.group, s.name): s for s in report.text_statistics}
    right = {s.name: s.n_correct for s in report.systems}
    assert {group for group, _ in found} == set(NAMES)
    assert {name for _, name in found} == set(installed_statistics())
    for name in NAMES:
        assert found[name, "words"].n == right[name]
    assert found["essay", "words"].average > found["short", "words"].average
    assert found["short", "overlap"].average == pytest.approx(1.0)


def test_text_statistics_without_their_libraries_warn(monkeypatch):
    monkeypatch.setattr(
        "rag_sourcebias.answers.audit.installed_statistics", lambda: ("words", "overlap")
    )
    found = audit_answers(answers(), [named("a")], config=FAST)
    assert {s.name for s in found.text_statistics} == {"words", "overlap"}
    assert any("text statistics lack BLEU, METEOR, ROUGE-L" in w for w in found.warnings)


def test_a_library_that_cannot_be_imported_warns_and_the_audit_goes_on(monkeypatch):
    def absent(wanted):
        raise ModuleNotFoundError(f"No module named {wanted!r}", name=wanted.partition(".")[0])

    monkeypatch.setattr("rag_sourcebias.core.errors.import_module", absent)
    text_similarity._bleu.cache_clear()
    found = audit_answers(answers(), [named("a")], config=FAST)
    assert found.text_statistics == ()
    assert any("no text statistics: " in w and "sacrebleu" in w for w in found.warnings)
    assert found.scorer("a").spread_cut > 0.7


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


def test_empty_answers_have_no_score_and_are_counted():
    given = answers()
    texts = list(given.answers)
    texts[0], texts[3] = "", "   "
    found = audit_answers(
        replace(given, answers=tuple(texts)), [named("a")], config=FAST, text_statistics=False
    )
    assert np.isnan(found.scorer("a").scores[[0, 3]]).all()
    assert found.systems[0].n_empty == 2
    assert any("2 of 180 answers have no words" in w for w in found.warnings)


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


def test_the_published_example():
    """[W] §5: four correct answers to one question; only their style differs."""
    reference = "Fifty Pills"
    texts = {
        "Flan-T5": "Fifty Pills",
        "Alpaca": "The actor appeared in the Theo Avgerinos movie Fifty Pills.",
        "Llama-2": "The actor known for that role, whose career spans film and television alike, "
        "appeared among others in the comedy Fifty Pills, directed by Theo Avgerinos.",
    }
    rows = [(f"q{i}", name, text) for i in range(12) for name, text in texts.items()]
    given = AnswerTexts(
        question_ids=tuple(q for q, _, _ in rows),
        systems=tuple(s for _, s, _ in rows),
        answers=tuple(t for _, _, t in rows),
        references=((reference,),) * len(rows),
        correct=np.ones(len(rows)),
    )
    raw = audit_answers(given, [named("a")], config=FAST, text_statistics=False).scorer("a").raw
    assert raw.spread.means[0] == pytest.approx(1.0)
    assert raw.spread.means[0] > raw.spread.means[1] > raw.spread.means[2]
    assert raw.length_correlation == pytest.approx(-1.0)
    assert raw.unfairness is None  # twelve copies of one question say nothing about others
