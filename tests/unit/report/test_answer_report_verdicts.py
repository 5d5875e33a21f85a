from __future__ import annotations

import dataclasses

from answer_reports import single
from stored_reports import stored

from rag_sourcebias.answers.data import AdjustmentCode, AnswerStyle, AnswerUse
from rag_sourcebias.answers.measure import answer_finding
from rag_sourcebias.answers.page import document, headline
from rag_sourcebias.report.document import Listing

ALIKE = (20, 20, 20, 20)


def section(report, name):
    (found,) = (s for s in document(report).sections if s.id == name)
    return found


def told(report):
    """Return everything that is said about the only score."""
    found = [section(report, name) for name in ("findings", "thresholds", "order")]
    items = [next(x for x in one.blocks if isinstance(x, Listing)) for one in found]
    return " ".join(text for block in items for text in block.rows)


def codes(report):
    found = report.scorers[0].finding or answer_finding(report.scorers[0])
    return found.style, found.adjustment


def test_a_useless_score_is_called_useless():
    report = single(-0.08, gap=0.0, n=600)
    assert report.scorers[0].finding.use is AnswerUse.USELESS
    assert "it is useless, as it does not tell right from wrong" in headline(report)
    assert "The score is useless" in told(report)
    assert single().scorers[0].finding.use is AnswerUse.SEPARATES
    assert "useless" not in headline(single()) + told(single())


def test_a_score_for_long_answers_names_the_pair_the_other_way_round():
    report = stored("answers-several")
    report = dataclasses.replace(report, scorers=report.scorers[2:])
    raw = report.scorers[0].raw
    (found,) = (d for d in raw.differences if (d.first, d.second) == ("terse", "essay"))
    assert found.difference.upper < 0
    sd = raw.spread.within_sd
    ends = [f"{-end / sd:.2f}" for end in (found.difference.upper, found.difference.lower)]
    text = f"of essay score {-found.effect:.2f} [{ends[0]}, {ends[1]}] standard deviations above"
    assert text in told(report)
    assert text in headline(report)


def test_no_effect_is_claimed_of_a_fair_score():
    wide, narrow = single(0.0, n=100, noise=0.5), single(0.0, n=3000)
    assert codes(wide) == (AnswerStyle.CANNOT_TELL, AdjustmentCode.IDLE)
    assert "Cannot tell" in told(wide)
    assert "it may reward style or not: these are too few to tell" in headline(wide)
    assert codes(narrow) == (AnswerStyle.ALIKE, AdjustmentCode.IDLE)
    assert "much alike" in told(narrow)
    assert "it shows no more than a small effect of style" in headline(narrow)
    for report in (wide, narrow):
        assert "No clear effect was there to remove." in told(report)
        assert "above those" not in headline(report)


def test_too_few_questions():
    report = single(n=15)
    assert codes(report)[0] is AnswerStyle.TOO_FEW
    n = report.scorers[0].raw.spread.n_questions
    assert "Too few questions for an interval" in told(report)
    assert "The adjustment" not in told(report)
    assert headline(report) == (
        f"cosine: on {n} questions that all 4 systems answered correctly, it may reward style or "
        "not: these are too few for an interval."
    )


def test_an_adjustment_that_finds_nothing_in_length():
    report = single(0.0, own=0.2, lengths=ALIKE)
    assert codes(report) == (AnswerStyle.REWARDS, AdjustmentCode.FAILS)
    assert "It does not help here." in told(report)
