from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from style_reports import CONFIG, QUERIES, similarities, style_report

from rag_sourcebias.report.blocks import Card, Cards
from rag_sourcebias.style.data import StyleCode, StyleReport
from rag_sourcebias.style.report import document
from rag_sourcebias.style.words import (
    chance_sentence,
    headline,
    original_text,
    short,
    style_list,
    style_name,
    verdict_sentence,
    verdicts,
)


def with_system(report: StyleReport, **changes: object) -> StyleReport:
    system = dataclasses.replace(report.systems[0], **changes)
    return dataclasses.replace(report, systems=(system, *report.systems[1:]))


def found_as(report: StyleReport, **changes: object) -> StyleReport:
    """Return the report with another finding of its first system."""
    finding = dataclasses.replace(report.systems[0].finding, **changes)
    return with_system(report, finding=finding)


def said(report: StyleReport) -> str:
    return verdict_sentence(report, verdicts(report)[0])


def cards(report: StyleReport) -> tuple[Card, ...]:
    block = document(report).sections[0].blocks[0]
    assert isinstance(block, Cards)
    return block.cards


@pytest.fixture(scope="module")
def clear():
    return style_report(similarities(shifts=(0, 1.2, -1.6, 0)))


@pytest.fixture(scope="module")
def plain():
    return style_report(similarities(shifts=(0, 0, 0, 0), seed=12))


def test_styles_above_and_below_the_original(clear):
    (verdict,) = verdicts(clear)
    assert verdict.found.code is StyleCode.FAVOURS
    assert (verdict.found.favoured, verdict.found.silenced) == (("0",), ("3",))
    assert short(clear, verdict.found) == "ranks style 0 higher, ranks style 3 lower"
    assert "ranks style 0 above human text and style 3 below it" in headline(clear)
    pairs = {p.first: p for p in clear.systems[0].rows[0].against_original}
    low, high = pairs["3"].interval.lower, pairs["3"].interval.upper
    assert f"style 3 by {pairs['3'].difference:.1f} [{low:.1f}, {high:.1f}]" in said(clear)
    low, high = -pairs["0"].interval.upper, -pairs["0"].interval.lower
    assert f"style 0 by {-pairs['0'].difference:.1f} [{low:.1f}, {high:.1f}]" in said(clear)
    assert "Holm correction over 3 comparisons" in said(clear)
    config = dataclasses.replace(CONFIG, correction="none")
    assert "not corrected for 3" in said(dataclasses.replace(clear, config=config))


def test_every_code_has_its_words_and_claims_no_more(plain):
    told = plain.systems[0].finding
    assert told.code is StyleCode.CANNOT_TELL
    assert f"about {told.n_needed:,} queries are needed to tell" in headline(plain)
    words = {
        StyleCode.ALIKE: ("ranks all styles alike within ±0.3 places", "alike within ±0.3 places"),
        StyleCode.TOO_FEW: (
            "60 queries are too few to tell, at least 6 are needed",
            "too few queries to tell",
        ),
        StyleCode.TIED: ("the same similarity for every query", "ties all styles"),
        StyleCode.FAVOURS: ("ranks styles apart", "ranks styles apart"),
        StyleCode.CANNOT_TELL: ("may rank styles apart or alike", "cannot tell"),
    }
    assert set(words) == set(StyleCode)
    for code, (long, brief) in words.items():
        report = found_as(plain, code=code, n_needed=6, favoured=(), silenced=())
        assert long in said(report)
        assert short(report, verdicts(report)[0].found) == brief
        assert cards(report)[0].standing == code


def test_a_report_of_version_0_1_is_decided_from_its_ranks(clear, plain):
    for report in (clear, plain):
        data = report.to_dict()
        for system in data["systems"]:
            del system["finding"]
        del data["config"]["margin"]
        old = StyleReport.from_dict(data)
        assert old.systems[0].finding is None
        one, two = (verdicts(r)[0].found for r in (old, report))
        assert (one.code, one.favoured, one.silenced) == (two.code, two.favoured, two.silenced)


def test_ties_and_nothing_measured(plain):
    tied = style_report(np.ones((30, 3, 4)))
    assert tied.systems[0].finding.code is StyleCode.TIED
    assert "gives all styles the same similarity" in headline(tied)
    assert "Unfairness" not in said(tied)
    assert headline(dataclasses.replace(plain, systems=())) == "No system was measured."


@pytest.mark.parametrize(
    ("score", "p", "words"),
    [
        (0.3, 0.5, "no more than the 0.40 that chance alone gives over 60 queries"),
        (0.8, 0.2, "(50% of that), and the rest may be chance too (Friedman p = 0.200)"),
        (8.0, 0.001, "chance alone would give 0.40 over 60 queries (5% of that)."),
    ],
)
def test_unfairness_is_set_against_chance(plain, score, p, words):
    row = plain.systems[0].rows[0]
    row = dataclasses.replace(
        row,
        unfairness=dataclasses.replace(row.unfairness, score=score, null_expectation=0.4),
        unfairness_interval=None,
        friedman=dataclasses.replace(row.friedman, p_value=p),
    )
    assert words in chance_sentence(plain, row)


def test_headlines_of_many_systems():
    arrays = {f"system {i}": similarities(shifts=(0, 0, -1.6, 0), seed=2) for i in range(3)}
    text = headline(style_report(arrays))
    assert text.count("ranks style 3 below human text") == 3
    arrays |= {f"system {i}": similarities(shifts=(0, 1.2, -1.6, 0), seed=i) for i in (3, 4)}
    report = style_report(arrays)
    text = headline(report)
    assert "5 systems rank styles significantly" in text
    assert "above human text: style 0 by 2" in text
    assert "below human text: style 3 by all" in text
    scores = [s.rows[0].unfairness.score for s in report.systems]
    assert f"from {min(scores):.2f} [" in text
    assert f"to {max(scores):.2f} [" in text
    arrays = {f"system {i}": similarities(30, (0,) * 4, seed=12) for i in range(4)}
    text = headline(style_report(arrays))
    assert "none of 4 systems ranks a style significantly above or below human text" in text


def test_cards_share_a_scale_and_show_chance(clear, plain):
    both = dataclasses.replace(clear, systems=(*clear.systems, *plain.systems))
    biased, fair = cards(both)
    assert (biased.standing, fair.standing) == (StyleCode.FAVOURS, StyleCode.CANNOT_TELL)
    bars = [card.rows[0].bar for card in (biased, fair)]
    scores = [s.rows[0].unfairness.score for s in both.systems]
    assert bars[0].dot / bars[1].dot == pytest.approx(scores[0] / scores[1], rel=0.02)
    null = both.systems[0].rows[0].unfairness.null_expectation
    assert bars[0].chance / bars[0].dot == pytest.approx(null / scores[0], rel=0.02)
    assert bars[1].chance == bars[0].chance
    assert [b.solid for b in bars] == [True, False]
    assert biased.rows[0].value == f"{scores[0]:.2f}"
    assert {"by chance alone", "Kendall's W", "Friedman p"} <= {r.name for r in biased.rows}
    assert f"mean over {len(QUERIES)} query styles" in {r.name for r in biased.rows}


@pytest.mark.parametrize(
    ("below", "words"),
    [
        (6, "ranks styles 0, 1, 2, 3, 4 and 5 lower"),
        (7, "ranks all styles but styles 7 and 8 lower"),
        (8, "ranks all styles but style 8 lower"),
        (9, "ranks every other style lower"),
    ],
)
def test_many_styles_are_summed_up(below, words):
    styles = ("human", *map(str, range(9)))
    report = style_report(similarities(9, (0,) * 10, styles=styles), styles=styles)
    report = found_as(report, code=StyleCode.FAVOURS, silenced=styles[1 : below + 1])
    assert short(report, verdicts(report)[0].found) == words


def test_names_of_styles(plain):
    assert style_name("3") == "style 3"
    assert style_name("formal") == "formal"
    assert style_list(["3", "6", "7"]) == "styles 3, 6 and 7"
    assert style_list(["3", "formal"]) == "style 3 and formal"
    assert len(style_name("x" * 90)) == 60
    assert original_text(plain) == "human text"
