"""An audit of EVOUNA's answers: the adjustment learned on one data set must serve the other.

Measured on all questions (1,312 of NQ and 1,261 of TQ that all five systems answered correctly),
fitted on the other set; cut of the spread of system means, and the AUC before and after:
all-MiniLM-L6-v2 78 % (.805 to .865) on NQ, 78 % (.870 to .896) on TQ; paraphrase-MiniLM-L3-v2 83 %
(.853 to .884), 84 % (.898 to .909); all-mpnet-base-v2 (bfloat16, 1,000 questions of each set drawn
at random) 76 % (.753 to .812), 79 % (.831 to .858). Here: a sample, as encoding takes minutes.
Encoders that are no package are read from the folder RAG_SOURCEBIAS_ENCODERS, which
``benchmarks/encoders/packaged_encoders.py`` fills.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from rag_sourcebias.answers.audit import audit_answers, measure_answer_bias
from rag_sourcebias.answers.data import AnswerConfig
from rag_sourcebias.core.texts import AnswerTexts
from rag_sourcebias.intake.answers import read_answer_texts
from rag_sourcebias.neural.loading import SentenceEncoder
from support.real_data import data_folder

pytestmark = pytest.mark.data
OTHER = {"NQ": "TQ", "TQ": "NQ"}
CONFIG = AnswerConfig(resamples=500)


def sample(texts):
    """50 questions that all systems got right and 25 that some got wrong, drawn at random."""
    correct: dict[str, list[float]] = {}
    for question, verdict in zip(texts.question_ids, texts.correct.tolist(), strict=True):
        correct.setdefault(question, []).append(verdict)
    long = {
        question
        for question, references in zip(texts.question_ids, texts.references, strict=True)
        if len(references) > 10  # some have 185 wordings
    }
    ids = [q for q in correct if q not in long]
    order = [ids[i] for i in np.random.default_rng(5).permutation(len(ids))]
    right = [q for q in order if all(v == 1 for v in correct[q])]
    some = [q for q in order if 0 in correct[q]]
    chosen = {*right[:50], *some[:25]}
    rows = [i for i, q in enumerate(texts.question_ids) if q in chosen]
    return AnswerTexts(
        question_ids=tuple(texts.question_ids[i] for i in rows),
        systems=tuple(texts.systems[i] for i in rows),
        answers=tuple(texts.answers[i] for i in rows),
        references=tuple(texts.references[i] for i in rows),
        correct=texts.correct[rows],
        name=texts.name,
    )


def encoder(name):
    if name == "all-MiniLM-L6-v2":
        return SentenceEncoder(name, device="cpu")
    folder = os.environ.get("RAG_SOURCEBIAS_ENCODERS")
    if not folder or not (Path(folder) / name).is_dir():
        pytest.skip(f"RAG_SOURCEBIAS_ENCODERS does not name a folder that holds {name}")
    return SentenceEncoder(str(Path(folder) / name), device="cpu")


@pytest.fixture(scope="module")
def evouna():
    return {n: read_answer_texts(data_folder() / "evouna" / f"{n}.json.gz") for n in OTHER}


@pytest.fixture(
    scope="module",
    params=[
        "all-MiniLM-L6-v2",
        "paraphrase-MiniLM-L3-v2",
        pytest.param("all-mpnet-base-v2", marks=pytest.mark.slow),
    ],
)
def reports(request, evouna):
    """Per data set the report with the adjustment fitted on the other one; texts encoded once."""
    model = encoder(request.param)
    texts = {name: sample(answers) for name, answers in evouna.items()}
    plain = {
        name: audit_answers(answers, [model], config=CONFIG, text_statistics=False)
        for name, answers in texts.items()
    }
    scores = {name: {model.name: report.scorers[0].scores} for name, report in plain.items()}
    return {
        name: (
            plain[name],
            measure_answer_bias(
                scores[name],
                texts[name],
                config=CONFIG,
                fit_on=texts[other],
                fit_scores=scores[other],
                text_statistics=False,
            ),
        )
        for name, other in OTHER.items()
    }


@pytest.mark.parametrize("name", ["NQ", "TQ"])
def test_the_score_rewards_short_answers(reports, name):
    report = reports[name][0]
    raw = report.scorers[0].raw
    assert raw.spread.n_questions >= 49
    assert raw.unfairness.lower > 0.1
    assert raw.length_correlation < -0.6
    means = dict(zip(raw.spread.systems, raw.spread.means, strict=True))
    assert max(means, key=means.__getitem__) == "fid"
    assert min(means, key=means.__getitem__) == "newbing"
    ends = next(d for d in raw.differences if (d.first, d.second) == ("fid", "newbing"))
    assert ends.difference.lower > 0.3
    assert ends.effect > 1.5
    assert raw.verdicts.n_flipped > 0.2 * raw.verdicts.n_questions
    assert any(
        "'newbing' are" in w and "times as long as those of 'fid'" in w for w in report.warnings
    )


@pytest.mark.parametrize("name", ["NQ", "TQ"])
def test_the_adjusted_score_cuts_the_spread_by_60_percent_without_losing_auc(reports, name):
    for report in reports[name]:
        scorer = report.scorers[0]
        assert scorer.spread_cut >= 0.6
        assert scorer.adjusted.auc.estimate >= scorer.raw.auc.estimate
        assert len(scorer.adjusted.inversions.inversions) <= len(scorer.raw.inversions.inversions)
    assert OTHER[name] in reports[name][1].scorers[0].adjustment


def test_every_question_is_read_and_described(evouna):
    """Without an encoder: lengths stand in for a score, so that the counts are those of all."""
    shared = 0
    for texts in evouna.values():
        scores = [-np.log1p(len(answer.split())) for answer in texts.answers]
        report = measure_answer_bias(
            {"brevity": scores}, texts, config=AnswerConfig(resamples=100), text_statistics=False
        )
        scorer = report.scorers[0]
        shared += scorer.raw.spread.n_questions
        assert scorer.raw.length_correlation < -0.95
        # A score that is length alone has nothing left, and never knew what is correct.
        assert scorer.spread_cut > 0.9
        assert {s.name: s.mean_words_correct for s in report.systems}["fid"] < 2.5
    assert shared == 2573  # 2,575 with two questions in which a correct answer is empty
