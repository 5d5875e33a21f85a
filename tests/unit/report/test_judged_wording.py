from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from judged_reports import answers, rankings, single

from rag_sourcebias.judged.data import JudgedReport
from rag_sourcebias.judged.report import document
from rag_sourcebias.judged.words import headline, role, sentence, who_is_best
from rag_sourcebias.report.blocks import Items


def only(report):
    (mean,) = report.means
    return mean


def listed(report, section):
    """Return the sentences that a terminal lists in a section."""
    (found,) = (s for s in document(report).sections if s.id == section)
    return [
        text
        for block in found.blocks
        if isinstance(block, Items) and "terminal" in block.to
        for _, text in block.rows
    ]


def test_a_good_judge_says_everything_in_one_sentence():
    report = single()
    mean = only(report)
    text = headline(report)
    assert text == sentence(report, mean)
    i, alone = mean.interval, mean.labels_alone
    d = 2  # two digits of the half width count
    assert f"Mean helpfulness is {i.estimate:.{d}f} [{i.lower:.{d}f}, {i.upper:.{d}f}]" in text
    assert "(95% interval from 60 human labels and 540 items that only the judge saw)" in text
    assert f"The judge alone would have said {mean.judge_alone:.{d}f}, too high by about" in text
    narrower = 100 * (1 - i.half_width / alone.half_width)
    assert f"narrows the interval by {narrower:.0f}%" in text
    assert f"would need at least {mean.labels_saved} more labels" in text
    assert f"r = {i.correlation:.2f}" in text


def test_a_useless_judge_is_called_useless():
    report = single("noise")
    assert role(report, only(report)) == "useless"
    text = sentence(report, only(report))
    assert "is useless here, and it takes more than 0.13: use labels alone, " in text
    alone = only(report).labels_alone
    assert f"{alone.estimate:.2f}" in text
    assert any("useless" in warning for warning in document(report).warnings)


@pytest.mark.parametrize(
    ("report", "why"),
    [
        (single("good", 8), "fewer than 10 labels"),
        (single("constant"), "the judge is constant on the labelled items"),
    ],
)
def test_a_judge_that_was_set_aside(report, why):
    assert role(report, only(report)) == "unused"
    text = sentence(report, only(report))
    assert "This interval comes from the labels alone" in text
    assert why in text
    assert "narrows" not in text


def test_labels_alone_as_asked():
    report = single(method="labels")
    assert role(report, only(report)) == "absent"
    assert sentence(report, only(report)).endswith(
        "The judge was not used (labels alone was asked for)."
    )


def test_a_judge_that_costs_labels_is_not_praised():
    report = single()
    wide = only(report)
    half = 1.1 * wide.labels_alone.half_width
    middle = wide.interval.estimate
    interval = dataclasses.replace(wide.interval, lower=middle - half, upper=middle + half)
    mean = dataclasses.replace(wide, interval=interval, labels_saved=-10)
    report = dataclasses.replace(report, means=(mean,))
    text = sentence(report, mean)
    assert "made this interval 10% wider than labels alone" in text
    assert "it cost the worth of about 10 labels" in text
    assert role(report, mean) == "costs"


def test_no_difference_and_no_comparison():
    base = single()
    same = dataclasses.replace(only(base), labels_saved=0)
    alone, middle = same.labels_alone.half_width, same.interval.estimate
    for times, words in ((0.9, "the interval is 10% narrower"), (1.1, "the interval is 10% wider")):
        ends = {"lower": middle - times * alone, "upper": middle + times * alone}
        other = dataclasses.replace(same, interval=dataclasses.replace(same.interval, **ends))
        assert role(base, other) == "same"
        text = sentence(base, other)
        assert f"makes no clear difference: {words} than that of labels alone, " in text
        assert ", which may be chance." in text
    equal = dataclasses.replace(same, interval=same.labels_alone)
    equal = dataclasses.replace(
        equal, interval=dataclasses.replace(equal.interval, correlation=0.9)
    )
    assert "makes no difference: labels alone give as narrow an interval." in sentence(base, equal)
    none = dataclasses.replace(only(base), labels_saved=None, labels_alone=None)
    assert "labels alone, which give no interval here" in sentence(base, none)


def test_a_judge_on_another_scale_is_not_called_wrong():
    report = single("scale")
    text = sentence(report, only(report))
    assert "seems to answer on another scale" in text
    assert "too high" not in text


def test_a_perfect_judge():
    report = single("perfect", target="pool")
    assert only(report).interval.half_width == 0
    text = sentence(report, only(report))
    assert "does not contradict" in text
    assert "follows people on every labelled item" in text
    assert "nothing of where they would part on the others" in text


@pytest.mark.parametrize(
    ("target", "text"),
    [
        ("pool", "over exactly these 600 items"),
        ("unlabeled", "over the 540 unlabelled items"),
    ],
)
def test_the_target_is_said(target, text):
    assert text in headline(single(target=target))


def test_many_means_are_summed_up():
    report = answers()
    text = headline(report)
    (ranks,) = report.ranks
    assert text.startswith(who_is_best(ranks))
    assert "95% intervals for 3 means, each from 80 human labels: correctness runs" in text
    roles = [role(report, m) for m in report.means]
    assert roles == ["helps", "same", "useless"]
    saved = report.means[0].labels_saved
    assert f"With its help 1 of 3 intervals are narrower, worth at least {saved} labels" in text
    assert "For correctness of fluent, it makes no clear difference" in text
    assert "For correctness of terse, this judge is useless" in text
    wrong = sum(m.interval.excludes(m.judge_alone) for m in report.means)
    assert f"outside the interval for {wrong} of 3" in text


def test_queries_are_counted_as_queries():
    text = " ".join([headline(rankings()), *(sentence(rankings(), m) for m in rankings().means)])
    assert "40 human-labelled queries" in text
    assert "60 queries that only the judge saw" in text
    assert "human labels" not in text


def test_comparisons_name_the_higher_side():
    report = answers()
    for c, text in zip(report.comparisons, listed(report, "comparisons"), strict=True):
        if not c.interval.excludes(0):
            assert f"{c.first} against {c.second}: cannot be told apart" in text
            assert "includes 0" in text
        else:
            high = c.first if c.interval.estimate > 0 else c.second
            assert text.startswith(f"{high} is higher than ")
            assert "−" not in text
    texts = listed(rankings(), "comparisons")
    kinds = [c.kind for c in rankings().comparisons]
    assert "Relative Δ of NDCG@5 in good" in texts[kinds.index("relative_delta")]


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


def test_a_report_without_means():
    report = dataclasses.replace(single(), means=())
    assert headline(report) == "No mean was estimated."


@pytest.mark.parametrize("report", [single("good", 8), single("constant"), single("noise")])
def test_what_version_0_1_found_of_a_judge_is_read(report):
    (mean,) = report.to_dict()["means"]
    del mean["interval"]["judge"]
    old = JudgedReport.from_dict({**report.to_dict(), "means": [mean]})
    assert only(old) == only(report)
    assert only(old).interval.judge in {"few", "constant", "weak"}
    mean["interval"]["notes"] = []
    told_nothing = JudgedReport.from_dict({**report.to_dict(), "means": [mean]})
    assert not only(told_nothing).interval.judge


def test_a_judge_is_said_to_help_only_where_the_interval_is_narrower():
    base = single()
    rng = np.random.default_rng(0)
    for _ in range(200):
        mean = only(base)
        half, middle = rng.uniform(0.5, 2) * mean.labels_alone.half_width, mean.interval.estimate
        interval = dataclasses.replace(
            mean.interval, lower=middle - half, upper=middle + half, correlation=rng.uniform(-1, 1)
        )
        mean = dataclasses.replace(mean, interval=interval, labels_saved=int(rng.integers(-9, 9)))
        report = dataclasses.replace(base, means=(mean, mean, mean))
        text = f"{sentence(report, mean)} {headline(report)}"
        narrower = half < mean.labels_alone.half_width
        assert narrower or not ("narrows" in text or "are narrower" in text)
        assert not narrower or not ("wider than" in text or "give a narrower" in text)
        assert "−" not in text.replace(f"r = −{abs(interval.correlation):.2f}", "")
