from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from judged_reports import answers, rankings, single

from rag_sourcebias.judged.report import document
from rag_sourcebias.judged.words import headline, role, sentence
from rag_sourcebias.report.blocks import Items


def only(report):
    (mean,) = report.means
    return mean


def listed(report, section):
    """Return the sentences of a section."""
    (found,) = (s for s in document(report).sections if s.id == section)
    return [text for block in found.blocks if isinstance(block, Items) for _, text in block.rows]


def test_a_good_judge_says_everything_in_one_sentence():
    report = single()
    mean = only(report)
    text = sentence(report, mean)
    assert text in headline(report)
    i = mean.interval
    d = 2  # two digits of the half width count
    assert text.startswith(f"{i.estimate:.{d}f} [{i.lower:.{d}f}, {i.upper:.{d}f}] (95%, 60 label")
    assert f"60 labelled + 540 judged, judge alone {mean.judge_alone:.{d}f}" in text
    assert f"r = {i.correlation:.2f}" in text
    assert f"saves at least {mean.labels_saved} labels" in text


@pytest.mark.parametrize(
    ("kind", "options", "verdict"),
    [
        ("noise", {}, "useless"),
        ("good", {"n_labeled": 8}, "unused"),
        ("constant", {}, "unused"),
        ("good", {"method": "labels"}, "absent"),
        ("perfect", {"target": "pool"}, "exact"),
        ("good", {}, "helps"),
    ],
)
def test_what_the_judge_did_to_an_interval(kind, options, verdict):
    report = single(kind, **options)
    assert role(report, only(report)) == verdict
    assert ("saves" in sentence(report, only(report))) == (verdict == "helps")
    useless = any("useless" in warning for warning in document(report).warnings)
    assert useless == (kind in ("noise", "constant"))


@pytest.mark.parametrize(
    ("times", "saved", "verdict"),
    [(1.1, -10, "costs"), (0.9, 0, "same"), (1.1, 5, "same"), (1.0, None, "unknown")],
)
def test_a_judge_helps_or_costs_by_labels_and_width_alike(times, saved, verdict):
    report = single()
    mean = only(report)
    half, middle = times * mean.labels_alone.half_width, mean.interval.estimate
    interval = dataclasses.replace(mean.interval, lower=middle - half, upper=middle + half)
    mean = dataclasses.replace(mean, interval=interval, labels_saved=saved)
    assert role(report, mean) == verdict
    assert ("10 labels" in sentence(report, mean)) == (verdict == "costs")


def test_a_judge_on_another_scale_is_not_called_wrong():
    report = single("scale")
    assert "on its own scale" in sentence(report, only(report))
    assert document(report).first.verdict == "The judge answers on another scale."


@pytest.mark.parametrize("target", ["pool", "unlabeled"])
def test_the_target_is_said(target):
    report = single(target=target)
    assert f"of the {target}" in sentence(report, only(report))


def test_many_means_are_summed_up():
    report = answers()
    assert [role(report, m) for m in report.means] == ["helps", "same", "useless"]
    wrong = sum(m.interval.excludes(m.judge_alone) for m in report.means)
    assert headline(report).startswith("95% intervals for 3 means.")
    assert f"outside {wrong} of them" in headline(report)


def test_queries_are_counted_as_queries():
    text = " ".join(sentence(rankings(), m) for m in rankings().means)
    assert "labelled queries" in text


def test_comparisons_name_the_higher_side():
    report = answers()
    clear = [c for c in report.comparisons if c.interval.excludes(0)]
    for c, text in zip(clear, listed(report, "comparisons"), strict=True):
        high = c.first if c.interval.estimate > 0 else c.second
        assert text.startswith(f"{high} is higher than ")
        assert "−" not in text


def test_an_end_that_rounds_to_zero_shows_its_side():
    c = answers().comparisons[0]
    interval = dataclasses.replace(c.interval, estimate=-0.1, lower=-0.2, upper=-0.0004)
    changed = (dataclasses.replace(c, interval=interval),)
    (text,) = listed(dataclasses.replace(answers(), comparisons=changed), "comparisons")
    assert "[0.0004, 0.2000]" in text


def test_single_queries_say_how_little_they_say():
    report = rankings()
    assert report.per_query
    for q, text in zip(report.per_query, listed(report, "queries"), strict=True):
        share = float(np.mean(q.upper - q.lower)) / q.highest
        assert f"{100 * share:.0f}% of the range" in text
        assert ("says little about any one query" in text) == (share > 0.5)
    zero = dataclasses.replace(report.per_query[0], highest=0.0)
    (text,) = listed(dataclasses.replace(report, per_query=(zero,)), "queries")
    assert "of the range" not in text


def test_a_report_without_means():
    report = dataclasses.replace(single(), means=())
    assert headline(report) == "No mean was estimated."
