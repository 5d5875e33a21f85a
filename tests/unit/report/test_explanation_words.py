from __future__ import annotations

import dataclasses

import explain_reports as made
import numpy as np
import pytest

from rag_sourcebias.core.values import Interval
from rag_sourcebias.explain.report import document, headline
from rag_sourcebias.report.blocks import Figures, Findings, Grid


def ends(estimate: float, half: float) -> Interval:
    return Interval(
        estimate=estimate, lower=estimate - half, upper=estimate + half, confidence_level=0.95,
        method="made", n_labeled=100,
    )  # fmt: skip


def blocks(report, kind):
    return [
        block
        for section in document(report).sections
        for block in section.blocks
        if isinstance(block, kind)
    ]


def told(part, **changes):
    """Return findings by topic, and the headline, where a part of a clear report is another."""
    source = made.clear_report().sources[0]
    old = getattr(source, part)
    new = (
        (dataclasses.replace(old[0], **changes),)
        if isinstance(old, tuple)
        else dataclasses.replace(old, **changes)
    )
    report = made.explain_report(dataclasses.replace(source, **{part: new}))
    (found,) = blocks(report, Findings)
    return {topic: (shown, text) for topic, shown, text in found.rows}, headline(report)


def test_a_clear_difference_of_spectra():
    found, head = told("spectrum", head=ends(3, 1), tail=ends(-4, 1))
    shown, text = found["spectrum"]
    assert shown
    assert "have singular values 3.0% larger at the head and 4.0% smaller in the tail" in head
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
    shown, text = told("spectrum", head=ends(*head), tail=ends(*tail))[0]["spectrum"]
    assert shown
    assert expected in text
    assert "concentrated" not in text


def test_no_difference_of_spectra():
    shown, text = told("spectrum", head=ends(1, 2), tail=ends(-1, 2))[0]["spectrum"]
    assert not shown
    assert "is not established" in text
    assert "Dai" not in text


def test_a_tail_that_resamples_cannot_hold_is_not_judged():
    found = made.clear_report().sources[0].spectrum
    few = dataclasses.replace(found, n=40, head=ends(3, 1), tail=None)
    assert (found.n_supported, few.n_supported) == (32, 24)
    for spread, established in ((1, True), (4, False)):
        findings, head = told("spectrum", n=40, head=ends(3, spread), tail=None)
        shown, text = findings["spectrum"]
        assert shown is established
        assert ("have singular values 3.0% larger at the head" in head) is established
        assert "The last half is not judged: 40 pairs are too few for 32 values" in text
        assert "(at least 1.7 pairs per value are needed)" in text
        assert "Dai et al." not in text
    source = dataclasses.replace(made.clear_report().sources[0], spectrum=few)
    report = made.explain_report(source)
    table = next(b.table for b in blocks(report, Grid) if b.table.columns[0] == "singular values")
    assert [row[0] for row in table.rows] == [
        "first tenth (1 to 3)",
        "last half (17 to 32): too few pairs",
    ]
    captions = [caption for block in blocks(report, Figures) for caption, _ in block.items]
    assert any(text.endswith("from 50 resamples, which end at value 24") for text in captions)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (ends(-1.05, 1.0492), "−1.1% [−2.099, −0.001]"),
        (ends(-1.05, 1.044), "−1.1% [−2.09, −0.01]"),
        (ends(-1.0, 0.9), "−1.0% [−1.9, −0.1]"),
        (ends(1.0, 1.02), "+1.0% [0.0, 2.0]"),
    ],
)
def test_rounding_hides_no_side(found, expected):
    _, text = told("spectrum", head=found)[0]["spectrum"]
    assert f"first tenth {expected}" in text


@pytest.mark.parametrize(
    ("half", "expected"),
    [(0.0496, "55.0% [50.04, 59.96]"), (0.04, "55.0% [51.0, 59.0]")],
)
def test_ends_near_chance_keep_their_side(half, expected):
    shown, text = told("geometry", probe_accuracy=ends(0.55, half))[0]["position"]
    assert shown
    assert expected in text


@pytest.mark.parametrize("accuracy", [ends(0.52, 0.05), ends(0.4, 0.05)])
def test_a_probe_at_chance_shows_nothing(accuracy):
    found, head = told("geometry", probe_accuracy=accuracy)
    assert not found["position"][0]
    assert "told apart" not in head


@pytest.mark.parametrize(
    ("estimate", "half", "expected"),
    [
        (0.0236, 0.008, "+0.0236 [0.0156, 0.0316]"),
        (12.0, 3.0, "+12.00 [9.00, 15.00]"),
        (0.00001, 0.000002, "+0.000010 [0.000008, 0.000012]"),
    ],
)
def test_scores_keep_enough_decimals(estimate, half, expected):
    assert f"({expected})" in told("decomposition", gap=ends(estimate, half))[0]["scores"][1]


def test_a_headline_says_what_is_missing():
    text = headline(made.no_perplexity_report())
    assert "Not computed: perplexity (no language model was given)." in text
    assert "predictable" not in text
    assert "lower perplexity" not in text
    text = headline(made.no_queries_report())
    assert (
        "Not computed: words of queries and parts of the score gap (there are no judged queries "
        "with text)." in text
    )
    assert text.startswith(
        "In 120 pairs LLM-written (llama-2) versions, beside human-written ones, are 12.7% shorter;"
    )
    assert headline(made.empty_report()) == "No source was compared."


def test_a_headline_of_several_sources_names_each():
    text = headline(made.several_report())
    assert "LLM-written (llama-2) versions score 0.0290 higher than human-written ones and " in text
    assert "; not established: spectrum and position; not computed: perplexity." in text


def test_no_page_calls_perplexity_a_cause():
    for report in (made.clear_report(), made.several_report()):
        rows = [row for found in blocks(report, Findings) for row in found.rows]
        assert any(topic.startswith("perplexity") and shown for topic, shown, _ in rows)
        for topic, shown, text in rows:
            if topic.startswith("perplexity") and shown:
                assert "it does not follow that an encoder's scores come from it" in text
            assert "because" not in text


def test_length_in_percent_of_the_original():
    found, head = told("texts", log_length_ratio=ends(np.log(1.2), 0.01))
    assert "are 20.0% longer" in head
    assert (
        "than the human-written ones they rewrite (in words, +20.0% [18.8, 21.2])"
        in (found["length"][1])
    )
    found, head = told("texts", log_length_ratio=ends(0.0, 0.05))
    assert not found["length"][0]
    assert "longer" not in head
    assert "shorter" not in head


def test_perplexity_at_equal_length():
    gap, topic = made.clear_report().sources[0].perplexity[0].gap, "perplexity under smollm2"
    same = dataclasses.replace(gap, gap_equal_length=ends(-0.02, 0.05))
    text = told("perplexity", gap=same)[0][topic][1]
    assert "at equal length no difference is established (−0.02 [−0.07, 0.03])" in text
    higher = dataclasses.replace(gap, gap_equal_length=None, gap=ends(0.2, 0.1))
    found, head = told("perplexity", gap=higher)
    assert "are less predictable to smollm2 (+0.20 nats per token)" in head
    assert "equal length" not in found[topic][1]
    still_open = dataclasses.replace(gap, gap=ends(0.2, 0.3))
    assert not told("perplexity", gap=still_open)[0][topic][0]


def test_parts_of_the_gap_in_words():
    found = made.clear_report().sources[0].decomposition
    length, overlap = found.factors
    length = dataclasses.replace(length, component=ends(0.001, 0.01))
    text = told("decomposition", factors=(length, overlap))[0]["scores"][1]
    assert " goes with overlap (extrapolated); no part is shown to go with length; +0." in text
    assert text.endswith("goes with none of them.")
    none = dataclasses.replace(overlap, component=ends(0.0, 0.01))
    text = told("decomposition", factors=(length, none))[0]["scores"][1]
    assert "No part of it is shown to go with a measured difference; +0." in text
    assert text.endswith(" remains.")
    text = told("decomposition", remainder=ends(0.0, 0.01))[0]["scores"][1]
    assert text.endswith("remains and may be 0.")
    shown, text = told("decomposition", gap=ends(0.0, 0.01))[0]["scores"]
    assert not shown
    assert "get different scores for the same query is not established" in text


@pytest.mark.parametrize(
    ("name", "called"),
    [
        ("log length ratio", "length"),
        ("perplexity, causal:smollm2", "perplexity under smollm2"),
        ("own <factor>", "own <factor>"),
    ],
)
def test_names_of_what_the_gap_goes_with(name, called):
    factor = dataclasses.replace(made.clear_report().sources[0].decomposition.factors[0], name=name)
    text = told("decomposition", factors=(factor,))[0]["scores"][1]
    assert f" goes with {called}" in text
