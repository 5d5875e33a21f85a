from __future__ import annotations

import dataclasses

import explain_reports as made
import numpy as np
import pytest

from rag_sourcebias.report.explanation import findings, headline
from rag_sourcebias.report.explanation.names import (
    factor_name,
    length_change,
    score_digits,
    scored_ends,
    share_ends,
    shown_ends,
)
from rag_sourcebias.report.explanation.score_words import gap_finding, parts_sentence
from rag_sourcebias.report.explanation.spectrum_plot import spectrum_caption
from rag_sourcebias.report.explanation.tables import spectrum_table
from rag_sourcebias.report.explanation.text_words import length_finding, perplexity_finding
from rag_sourcebias.report.explanation.vector_words import (
    probe_finding,
    spectrum_finding,
)
from rag_sourcebias.types import Interval

SIDES = {"other": "LLM-written", "base": "human-written"}


def ends(estimate: float, half: float) -> Interval:
    return Interval(
        estimate=estimate, lower=estimate - half, upper=estimate + half, confidence_level=0.95,
        method="made", n_labeled=100,
    )  # fmt: skip


def spectrum_with(head: Interval, tail: Interval):
    found = made.clear_report().sources[0].spectrum
    return spectrum_finding(dataclasses.replace(found, head=head, tail=tail), **SIDES)


def test_a_clear_difference_of_spectra():
    _, shown, brief, text = spectrum_with(ends(3, 1), ends(-4, 1))
    assert shown
    assert brief == "have singular values 3.0% larger at the head and 4.0% smaller in the tail"
    assert "concentrated in fewer directions, the shape that Dai et al. (2024) found" in text
    assert "first tenth +3.0% [2.0, 4.0], last half −4.0% [−5.0, −3.0]" in text
    assert "not centred, rows scaled to length 1" in text


@pytest.mark.parametrize(
    ("head", "tail", "expected"),
    [
        ((3, 1), (-4, 5), "one half of the shape"),
        ((0, 1), (-4, 1), "one half of the shape"),
        ((-3, 1), (4, 1), "That is not the shape"),
        ((3, 1), (4, 1), "That is not the shape"),
        ((0, 1), (4, 1), "That is not the shape"),
    ],
)
def test_other_shapes_are_not_called_the_papers(head, tail, expected):
    _, shown, _, text = spectrum_with(ends(*head), ends(*tail))
    assert shown
    assert expected in text
    assert "concentrated" not in text


def test_no_difference_of_spectra():
    topic, shown, _, text = spectrum_with(ends(1, 2), ends(-1, 2))
    assert (topic, shown) == ("spectrum", False)
    assert "is not established" in text


def test_a_tail_that_resamples_cannot_hold_is_not_judged():
    found = made.clear_report().sources[0].spectrum
    few = dataclasses.replace(found, n=40, head=ends(3, 1), tail=None)
    assert (found.n_supported, few.n_supported) == (32, 24)
    _, shown, brief, text = spectrum_finding(few, **SIDES)
    assert shown
    assert brief == "have singular values 3.0% larger at the head"
    assert "The last half is not judged: 40 pairs are too few for 32 values" in text
    assert "(at least 1.7 pairs per value are needed)" in text
    assert "Dai et al." not in text
    _, shown, _, text = spectrum_finding(dataclasses.replace(few, head=ends(1, 2)), **SIDES)
    assert not shown
    assert "The last half is not judged" in text
    explained = dataclasses.replace(made.clear_report().sources[0], spectrum=few)
    table = spectrum_table(made.explain_report(explained), explained)
    assert [row[0] for row in table.rows] == [
        "first tenth (1 to 3)",
        "last half (17 to 32): too few pairs",
    ]
    assert spectrum_caption(few).endswith("from 50 resamples, which end at value 24")
    assert spectrum_caption(found).endswith("from 50 resamples")


@pytest.mark.parametrize(
    ("found", "digits", "expected"),
    [
        (ends(-1.05, 1.0492), 1, "\u22121.1 [\u22122.099, \u22120.001]"),
        (ends(-1.05, 1.044), 1, "\u22121.1 [\u22122.09, \u22120.01]"),
        (ends(-1.0, 0.9), 1, "\u22121.0 [\u22121.9, \u22120.1]"),
        (ends(1.0, 1.02), 1, "+1.0 [\u22120.0, 2.0]"),
    ],
)
def test_rounding_hides_no_side(found, digits, expected):
    assert shown_ends(found, digits=digits) == expected.replace("[\u22120.0,", "[0.0,")


def test_ends_near_chance_keep_their_side():
    assert share_ends(ends(0.55, 0.0496), null=50) == "55.0% [50.04, 59.96]"
    assert share_ends(ends(0.55, 0.04), null=50) == "55.0% [51.0, 59.0]"


def test_headline_of_clear_differences():
    text = headline(made.clear_report())
    assert text.startswith("all-MiniLM-L6-v2 scores LLM-written (llama-2) versions 0.0")
    assert "higher than human-written ones." in text
    assert "In 120 pairs the former are 12.7% shorter; hold less of the words of queries " in text
    assert "; are told apart by a linear probe of vectors (77.5%, chance 50%); " in text
    assert len(text) < 640
    assert "singular values" in text
    assert "are more predictable to smollm2 (−0." in text
    assert "Not computed" not in text
    assert text.endswith(
        "These are associations: none is shown to cause a preference; a lower perplexity is a "
        "property of rewrites, not an explanation."
    )


def test_headline_when_nothing_is_established():
    text = headline(made.nothing_report())
    assert text.startswith("That all-MiniLM-L6-v2 scores LLM-written (llama-2) and human-written ")
    assert "In 120 pairs nothing that was measured distinguishes the two beyond doubt." in text
    assert (
        "Not established: length, words of queries, spectrum, position, "
        "anisotropy and perplexity under smollm2." in text
    )
    assert text.endswith("none is shown to cause a preference.")


def test_headline_without_perplexity():
    text = headline(made.no_perplexity_report())
    assert "Not computed: perplexity (no language model was given)." in text
    assert "predictable" not in text
    assert "lower perplexity" not in text


def test_headline_without_queries():
    text = headline(made.no_queries_report())
    assert (
        "Not computed: words of queries and parts of the score gap (there are no judged queries "
        "with text)." in text
    )
    assert "scores LLM-written" not in text
    assert text.startswith(
        "In 120 pairs LLM-written (llama-2) versions, beside human-written ones, are 12.7% shorter;"
    )


def test_headline_of_texts_alone_and_of_nothing():
    text = headline(made.texts_report())
    assert "singular values, geometry of the vectors, map" in text
    assert "(no encoder was given)" in text
    assert headline(made.empty_report()) == "No source was compared."


def test_headline_of_several_sources_names_each():
    text = headline(made.several_report())
    assert "LLM-written (llama-2) versions score 0.0290 higher than human-written ones and " in text
    assert "higher than human-written ones and differ from them in length, " in text
    assert "; not established: spectrum and position; not computed: perplexity." in text


def test_no_page_calls_perplexity_a_cause():
    for report in (made.clear_report(), made.several_report()):
        for explained in report.sources:
            for found in findings(report, explained):
                if found.topic.startswith("perplexity") and found.standing == "established":
                    assert "it does not follow that an encoder's scores come from it" in found.text
                assert "because" not in found.text


def test_length_in_percent_of_the_original():
    texts = made.clear_report().sources[0].texts
    middle, low, high = length_change(ends(np.log(0.9), 0.05))
    assert middle == pytest.approx(-10)
    assert low < -10 < high
    longer = dataclasses.replace(texts, log_length_ratio=ends(np.log(1.2), 0.01))
    topic, shown, brief, text = length_finding(longer, **SIDES)
    assert (topic, shown, brief) == ("length", True, "are 20.0% longer")
    assert "than the human-written ones they rewrite (in words, +20.0% [18.8, 21.2])" in text
    alike = dataclasses.replace(texts, log_length_ratio=ends(0.0, 0.05))
    assert not length_finding(alike, **SIDES)[1]


def test_perplexity_at_equal_length():
    found = made.clear_report().sources[0].perplexity[0]
    gap = dataclasses.replace(found.gap, gap_equal_length=ends(-0.02, 0.05))
    _, _, _, text = perplexity_finding(dataclasses.replace(found, gap=gap), **SIDES)
    assert "at equal length no difference is established (−0.02 [−0.07, 0.03])" in text
    gap = dataclasses.replace(found.gap, gap_equal_length=None, gap=ends(0.2, 0.1))
    _, shown, brief, text = perplexity_finding(dataclasses.replace(found, gap=gap), **SIDES)
    assert shown
    assert brief == "are less predictable to smollm2 (+0.20 nats per token)"
    assert "equal length" not in text
    gap = dataclasses.replace(found.gap, gap=ends(0.2, 0.3))
    assert not perplexity_finding(dataclasses.replace(found, gap=gap), **SIDES)[1]


def test_a_probe_at_chance_shows_nothing():
    found = made.clear_report().sources[0].geometry
    for accuracy in (ends(0.52, 0.05), ends(0.4, 0.05)):
        chance = dataclasses.replace(found, probe_accuracy=accuracy)
        _, shown, _, text = probe_finding(chance, **SIDES)
        assert not shown
        assert "chance 50%" in text
    assert probe_finding(found, **SIDES)[1]


def test_parts_of_the_gap_in_words():
    found = made.clear_report().sources[0].decomposition
    length, overlap = found.factors
    part = dataclasses.replace(length, component=ends(0.001, 0.01))
    text = parts_sentence(dataclasses.replace(found, factors=(part, overlap)))
    assert text.startswith("Of it −0.")
    assert "goes with overlap (extrapolated); no part is shown to go with length; +0." in text
    assert text.endswith("goes with none of them.")
    none = dataclasses.replace(overlap, component=ends(0.0, 0.01))
    text = parts_sentence(dataclasses.replace(found, factors=(part, none)))
    assert text.startswith("No part of it is shown to go with a measured difference; +0.")
    text = parts_sentence(dataclasses.replace(found, remainder=ends(0.0, 0.01)))
    assert text.endswith("remains and may be 0.")
    open_ = gap_finding(dataclasses.replace(found, gap=ends(0.0, 0.01)), **SIDES)
    assert not open_[1]
    assert "get different scores for the same query is not established" in open_[3]


def test_names_of_what_the_gap_goes_with():
    assert factor_name("log length ratio") == "length"
    assert factor_name("perplexity, causal:smollm2") == "perplexity under smollm2"
    assert factor_name("own <factor>") == "own <factor>"


@pytest.mark.parametrize(
    ("estimate", "half", "expected"),
    [
        (0.0236, 0.008, "+0.0236 [0.0156, 0.0316]"),
        (12.0, 3.0, "+12.00 [9.00, 15.00]"),
        (0.00001, 0.000002, "+0.000010 [0.000008, 0.000012]"),
        (0.0, 0.0, "0.000 [0.000, 0.000]"),
    ],
)
def test_scores_keep_enough_decimals(estimate, half, expected):
    assert scored_ends(ends(estimate, half)) == expected
    assert 2 <= score_digits(ends(estimate, half)) <= 6
