from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from style_reports import CONFIG, QUERIES, STYLES, similarities, style_report

from rag_sourcebias.inference import compare_ranks
from rag_sourcebias.report.style.cards import style_cards
from rag_sourcebias.report.style.headline import headline
from rag_sourcebias.report.style.names import original_text, style_list, style_name
from rag_sourcebias.report.style.verdicts import SLIGHT, least_p_value, style_verdicts
from rag_sourcebias.report.style.wording import chance_sentence, finding, short, verdict_sentence
from rag_sourcebias.types import StyleReport
from rag_sourcebias.types.style_parts import RankPair


def with_row(report: StyleReport, **changes: object) -> StyleReport:
    """Return the report with its first system's original row changed."""
    system = report.systems[0]
    row = dataclasses.replace(system.rows[0], **changes)
    return with_system(report, rows=(row, *system.rows[1:]))


def with_system(report: StyleReport, **changes: object) -> StyleReport:
    system = dataclasses.replace(report.systems[0], **changes)
    return dataclasses.replace(report, systems=(system, *report.systems[1:]))


def pair(first: str, second: str, difference: float, p: float) -> RankPair:
    return RankPair(
        first=first, second=second, difference=difference, interval=None, p_value=p, p_adjusted=p
    )


@pytest.fixture(scope="module")
def clear():
    return style_report(similarities(shifts=(0, 1.2, -1.6, 0)))


@pytest.fixture(scope="module")
def plain():
    return style_report(similarities(shifts=(0, 0, 0, 0), seed=12))


def test_styles_above_and_below_the_original_are_told_apart(clear):
    (verdict,) = style_verdicts(clear)
    assert verdict.kind == "differs"
    assert [c.style for c in verdict.favoured] == ["0"]
    assert [c.style for c in verdict.silenced] == ["3"]
    assert short(clear, verdict) == "favours style 0, silences style 3"
    means = clear.systems[0].average_ranks[0]
    assert verdict.favoured[0].difference == pytest.approx(means[1] - means[0])
    assert verdict.silenced[0].difference == pytest.approx(means[2] - means[0])
    text = finding(clear, verdict)
    pairs = {p.first: p for p in clear.systems[0].rows[0].against_original}
    low, high = pairs["3"].interval.lower, pairs["3"].interval.upper
    assert f"below it: style 3 by {means[2] - means[0]:.1f} places [{low:.1f}, {high:.1f}]" in text
    low, high = -pairs["0"].interval.upper, -pairs["0"].interval.lower
    assert f"above human text: style 0 by {means[0] - means[1]:.1f} places" in text
    assert f"[{low:.1f}, {high:.1f}]" in text
    assert "after Holm correction over 3 comparisons" in text


def test_a_pair_may_name_the_original_first(clear):
    row = clear.systems[0].rows[0]
    turned = tuple(
        dataclasses.replace(
            p,
            first=p.second,
            second=p.first,
            difference=-p.difference,
            interval=dataclasses.replace(
                p.interval,
                estimate=-p.interval.estimate,
                lower=-p.interval.upper,
                upper=-p.interval.lower,
            ),
        )
        for p in row.against_original
    )
    other = with_row(clear, against_original=turned)
    assert headline(other) == headline(clear)
    (one,), (two,) = style_verdicts(clear), style_verdicts(other)
    assert (one.favoured, one.silenced, one.widest) == (two.favoured, two.silenced, two.widest)


def test_no_difference_names_what_cannot_be_ruled_out(plain):
    (verdict,) = style_verdicts(plain)
    assert verdict.kind == "none"
    ends = [
        abs(e)
        for p in plain.systems[0].rows[0].against_original
        for e in (p.interval.lower, p.interval.upper)
    ]
    assert f"up to {max(ends):.1f} places cannot be ruled out" in finding(plain, verdict)
    assert "no significant preference" in headline(plain)


def test_small_differences_are_slight_however_significant(plain):
    limit = SLIGHT * (len(STYLES) - 1)
    small = tuple(pair(s, "human", 0.99 * limit, 0.001) for s in STYLES[1:])
    (verdict,) = style_verdicts(report := with_row(plain, against_original=small))
    assert verdict.kind == "slight"
    assert len(verdict.slight) == 3
    assert not verdict.silenced
    assert "small" in finding(report, verdict)
    large = (pair("0", "human", 1.01 * limit, 0.001), *small[1:])
    (verdict,) = style_verdicts(report := with_row(plain, against_original=large))
    assert verdict.kind == "differs"
    assert [c.style for c in verdict.silenced] == ["0"]
    assert "style 3 and formal differ slightly" in finding(report, verdict)


@pytest.mark.parametrize(("p", "kind"), [(0.0499, "differs"), (0.05, "none"), (0.2, "none")])
def test_significant_means_below_the_level(plain, p, kind):
    report = with_row(plain, against_original=(pair("0", "human", 2.0, p),))
    assert style_verdicts(with_system(report, pairs=()))[0].kind == kind


def test_styles_may_differ_though_none_from_the_original(plain):
    calm = tuple(pair(s, "human", 0.1, 0.9) for s in STYLES[1:])
    report = with_system(with_row(plain, against_original=calm), pairs=(pair("0", "3", 1.5, 0.01),))
    (verdict,) = style_verdicts(report)
    assert verdict.kind == "uneven"
    assert "style 3 ranks 1.5 places above style 0" in finding(report, verdict)
    friedman = dataclasses.replace(plain.systems[0].rows[0].friedman, p_value=0.001)
    report = with_system(with_row(plain, against_original=calm, friedman=friedman), pairs=())
    (verdict,) = style_verdicts(report)
    assert verdict.kind == "uneven"
    assert "which ones cannot be told" in finding(report, verdict)


@pytest.mark.parametrize(("n", "word"), [(1, "1 query is"), (4, "4 queries are")])
def test_too_few_queries_say_so(n, word):
    report = style_report(similarities(n, seed=3))
    (verdict,) = style_verdicts(report)
    assert verdict.kind == "few"
    assert f"cannot tell: {word} too few".capitalize() in finding(report, verdict)
    assert "too few queries" in headline(report)


def test_too_few_resamples_are_not_blamed_on_the_queries():
    config = dataclasses.replace(CONFIG, resamples=100, confidence_level=0.99)
    report = style_report(similarities(40, (0, 0, 0, 0), seed=12), config=config)
    (verdict,) = style_verdicts(report)
    assert verdict.kind == "few"
    assert "100 resamples are too few" in finding(report, verdict)


@pytest.mark.parametrize("n", [6, 50])
@pytest.mark.parametrize("correction", ["holm", "bh", "none"])
def test_the_least_p_value_is_that_of_queries_that_all_agree(n, correction):
    ranks = np.tile([1.0, 2.0, 3.0, 4.0], (n, 1))
    found = compare_ranks(ranks, STYLES, baseline="human", correction=correction, resamples=500)
    least = least_p_value(n, 3, resamples=500, correction=correction)
    assert min(p.p_adjusted for p in found) == pytest.approx(least)


def test_ties_and_nothing_measured(plain):
    tied = style_report(np.ones((30, 3, 4)))
    assert style_verdicts(tied)[0].kind == "tied"
    assert "ranks all styles alike" in headline(tied)
    assert "Unfairness" not in verdict_sentence(tied, style_verdicts(tied)[0])
    empty = with_system(plain, rows=(), ranks=np.ones((60, 0, 4)))
    assert style_verdicts(empty)[0].kind == "empty"
    assert headline(empty) == "No system was measured."
    assert headline(dataclasses.replace(plain, systems=())) == "No system was measured."


def test_without_the_original_nothing_is_compared_with_it(clear):
    config = dataclasses.replace(CONFIG, original="gone")
    rows = tuple(dataclasses.replace(r, against_original=()) for r in clear.systems[0].rows)
    report = dataclasses.replace(with_system(clear, rows=rows), config=config)
    (verdict,) = style_verdicts(report)
    assert verdict.kind == "uneven"
    assert "style 0 ranks" in finding(report, verdict)
    assert "gone" not in headline(report)


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


def test_uncorrected_p_values_are_called_so(clear):
    report = dataclasses.replace(clear, config=dataclasses.replace(CONFIG, correction="none"))
    text = finding(report, style_verdicts(report)[0])
    assert "without correction for 3 comparisons" in text
    assert "adjusted" not in text


def test_headlines_group_systems_that_agree():
    arrays = {f"system {i}": similarities(shifts=(0, 0, -1.6, 0), seed=2) for i in range(3)}
    text = headline(style_report(arrays))
    assert "system 0, system 1 and system 2 rank style 3 below human text" in text
    assert text.count("rank") == 1
    arrays |= {f"system {i}": similarities(shifts=(0, 1.2, -1.6, 0), seed=i) for i in (3, 4)}
    report = style_report(arrays)
    text = headline(report)
    assert "5 systems rank styles significantly" in text
    assert "above human text: style 0 by 2" in text
    assert "below human text: style 3 by all" in text
    scores = [s.rows[0].unfairness.score for s in report.systems]
    assert f"from {min(scores):.2f} [" in text
    assert f"to {max(scores):.2f} [" in text


def test_many_systems_without_a_finding():
    arrays = {f"system {i}": similarities(30, (0,) * 4, seed=12) for i in range(4)}
    text = headline(style_report(arrays))
    assert "none of 4 systems ranks a style significantly above or below human text" in text


def test_without_the_original_nothing_may_differ(plain):
    config = dataclasses.replace(CONFIG, original="gone", resamples=10_000)
    rows = tuple(dataclasses.replace(r, against_original=()) for r in plain.systems[0].rows)
    report = dataclasses.replace(with_system(plain, rows=rows), config=config)
    (verdict,) = style_verdicts(report)
    assert verdict.kind == "none"
    assert "No two styles differ significantly" in finding(report, verdict)


def test_words_where_there_is_nothing_to_say(plain):
    empty = with_system(plain, rows=(), ranks=np.ones((60, 0, 4)))
    (verdict,) = style_verdicts(empty)
    assert short(empty, verdict) == "nothing was measured"
    assert finding(empty, verdict) == "No query style was measured."
    assert style_cards(empty)[0].rows == ()
    few = tuple(
        RankPair(
            first=s, second="human", difference=0.2, interval=None, p_value=0.01, p_adjusted=0.01
        )
        for s in STYLES[1:]
    )
    report = with_row(
        plain, against_original=tuple(dataclasses.replace(p, difference=0.1) for p in few)
    )
    assert "style 0 +0.10, style 3 +0.10 and formal +0.10" in finding(
        report, style_verdicts(report)[0]
    )


def test_cards_share_a_scale_and_show_chance(clear, plain):
    both = dataclasses.replace(clear, systems=(*clear.systems, *plain.systems))
    biased, fair = style_cards(both)
    assert (biased.kind, fair.kind) == ("differs", "none")
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
        (range(6), "silences styles 0, 1, 2, 3, 4 and 5"),
        (range(7), "silences all styles but styles 7 and 8"),
        (range(8), "silences all styles but style 8"),
        (range(9), "silences every other style"),
    ],
)
def test_many_styles_are_summed_up(below, words):
    styles = ("human", *map(str, range(9)))
    report = style_report(similarities(9, (0,) * 10, styles=styles), styles=styles)
    pairs = tuple(pair(s, "human", 3.0, 0.01 if int(s) in below else 0.9) for s in styles[1:])
    report = with_row(report, against_original=pairs)
    assert short(report, style_verdicts(report)[0]) == words


def test_names_of_styles(plain):
    assert style_name("3") == "style 3"
    assert style_name("formal") == "formal"
    assert style_list(["3", "6", "7"]) == "styles 3, 6 and 7"
    assert style_list(["3", "formal"]) == "style 3 and formal"
    assert style_list(["1", "2", "3"], most=2) == "3 styles"
    assert len(style_name("x" * 90)) == 60
    assert original_text(plain) == "human text"
