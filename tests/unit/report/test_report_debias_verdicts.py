from __future__ import annotations

import dataclasses
import re

import pytest
from intervals import around
from stored_reports import stored

from rag_sourcebias.debias.audit import skew_standing
from rag_sourcebias.debias.data import DebiasConfig, DebiasMethod, QualityChange, SkewChange
from rag_sourcebias.debias.report import document
from rag_sourcebias.debias.words import (
    choice_sentence,
    headline,
    quality_sentence,
    role_sentence,
    short,
    skew_sentence,
    verdicts,
)
from rag_sourcebias.infer.equivalence import NoninferiorityTest
from rag_sourcebias.report.document import Pictures

NAME = "debiased"


def skewed(before, after, half=3.5, *, p=0.001, config=None):
    change, now = None, None if after is None else around(after, half)
    worse = False
    if before is not None and now is not None:
        change = around(after - before, 4)
        worse = change.excludes(0) and abs(after) - abs(before) > 4
    code, needed = skew_standing(now, config or DebiasConfig())
    return SkewChange(
        cutoff=5,
        before=None if before is None else around(before, half),
        after=now,
        code=code,
        n_needed=needed,
        worse=worse,
        change=change,
        p_value=p,
        p_adjusted=p,
        refusal="too few queries" if after is None else None,
    )


def quality(name, change, *, half=0.5, passed=True, needed=None):
    """Return a change of a mean of 0.5 in percent, ± ``half`` percent."""
    test = NoninferiorityTest(
        quality=name,
        relative_margin=0.01,
        level=0.05,
        change=change,
        lower=change - half,
        p_value=0.01 if passed else 0.5,
        n_queries=300,
        n_seeds=1,
        n_needed=needed,
    )
    return QualityChange(
        quality=name,
        cutoff=10,
        before=0.5,
        after=0.5 * (1 + change / 100),
        difference=around(change / 200, half / 200),
        p_value=0.2,
        test=test,
    )


KEPT = (quality("human-only", 0.2), quality("llm-only", -0.3), quality("mixed", 0.1))


def report_with(*cases, method=None, names=None, n_seen=0):
    """Return a report of one changed system with one data set per (skew, qualities)."""
    full = stored("debias-plain")
    base = dataclasses.replace(full.datasets[0], n_pairs=40)
    datasets = []
    for place, (skew, qualities) in enumerate(cases):
        outcome = dataclasses.replace(
            base.outcomes[1], skew=(skew,), quality=qualities, n_seen=n_seen
        )
        unchanged = dataclasses.replace(
            base.outcomes[0], skew=(SkewChange(cutoff=5, before=None, after=skew.before),)
        )
        data = dataclasses.replace(base.data, name=(names or "abcdef")[place])
        datasets.append(dataclasses.replace(base, data=data, outcomes=(unchanged, outcome)))
    methods = (method or DebiasMethod(name=NAME, kind="model", settings={}),)
    return dataclasses.replace(full, methods=methods, datasets=tuple(datasets))


def method(fitted_on="", **settings):
    return DebiasMethod(name=NAME, kind="model", settings=settings, fitted_on=fitted_on)


def pictures(report, section):
    blocks = next(part.blocks for part in document(report).sections if part.id == section)
    return next(block.items for block in blocks if isinstance(block, Pictures))


def only(report):
    (found,) = verdicts(report)
    return found


@pytest.mark.parametrize(
    ("before", "after", "half", "verdict", "says"),
    [
        (-12, 1.4, 3.5, "alike", "2.0 [−2.1, 4.9]) alike within ±5 now."),
        (-2, 1.4, 3.5, "alike", "alike within ±5 now."),
        (-12, 2.5, 2, "alike", "alike within ±5 now."),
        (-12, 1.6, 3.5, "cannot_tell", "cannot tell, about "),
        (-12, 0, 5.1, "cannot_tell", "queries needed instead of 100."),
        (-12, -6, 5, "favours_other", "still favours LLM text."),
        (-12, -20, 5, "made_worse", "made it worse."),
        (-2, -20, 5, "made_worse", "made it worse."),
        (-12, -14, 5, "favours_other", "still favours LLM text."),
        (-12, 8, 5, "favours_baseline", "now favours human text."),
        (-12, 8, 9, "cannot_tell", "cannot tell"),
        (-12, 30, 9, "made_worse", "made it worse."),
        (12, -8, 5, "favours_other", "now favours LLM text."),
        (None, 8, 5, "favours_baseline", "is +8.0 [3.0, 13.0]; what it was before is not known"),
        (-12, None, 5, "refused", "has no interval after the change (too few queries)."),
    ],
)
def test_what_is_said_of_relative_delta(before, after, half, verdict, says):
    report = report_with((skewed(before, after, half), KEPT))
    found = only(report)
    assert found.verdict == verdict
    assert says.rpartition(")")[2] in skew_sentence(found)
    assert found.met == (verdict == "alike")
    assert report.verdict == verdict


def test_no_estimate_is_enough() -> None:
    """At the target itself nothing is said while the interval is wide."""
    for half in (5.1, 9, 30):
        report = report_with((skewed(-12, 0, half), KEPT))
        assert report.verdict == "cannot_tell"
        text = " ".join(str(part) for part in (document(report), headline(report)))
        assert not re.search(r"alike within|reached|meets all criteria|does what", text)


def test_a_change_that_may_be_chance_is_called_that():
    report = report_with((skewed(-12, -20, p=0.4), KEPT))
    found = only(report)
    assert "adjusted p = 0.400, not significant" in skew_sentence(found)
    assert short(found) == "still favours LLM text; quality kept"
    report = report_with((skewed(-12, -20, p=0.01), KEPT))
    assert short(only(report)) == "made it worse; quality kept"


@pytest.mark.parametrize(
    ("qualities", "verdict", "met", "says"),
    [
        (KEPT, "alike", True, "a loss of 1% or more is excluded for all three."),
        (
            (KEPT[0], quality("llm-only", -0.8, passed=False, needed=900), KEPT[2]),
            "alike",
            False,
            "excluded for human-only and mixed; LLM-only may have lost up to 1.3% (about 900 "
            "queries instead of 300 could settle it).",
        ),
        ((quality("human-only", -1.2, passed=False), *KEPT[1:]), "alike", False, "up to 1.7%."),
        (
            (*KEPT[:2], quality("mixed", -0.2)),
            "alike",
            True,
            "a loss of 1% or more is excluded for all three.",
        ),
        (
            (quality("human-only", -4, passed=False), *KEPT[1:]),
            "made_worse",
            False,
            "human-only is shown to lose more than that.",
        ),
    ],
)
def test_what_is_said_of_quality(qualities, verdict, met, says):
    report = report_with((skewed(-12, 1), qualities))
    found = only(report)
    assert says in quality_sentence(found)
    assert (found.verdict, found.met) == (verdict, met)


@pytest.mark.parametrize(
    ("fitted_on", "settings", "n_seen", "role", "says"),
    [
        ("", {}, 0, "unknown", "It is not known what the method was fitted on."),
        ("", {}, 4, "overlap", "4 of 40 judged pairs were seen in fitting"),
        ("a", {}, 0, "fitted", "fitted on these data, though on none of the judged pairs."),
        ("a", {}, 4, "fitted", "these data; 4 of 40 judged pairs were seen in fitting"),
        ("b", {}, 0, "transfer", "A transfer test: the method was fitted on b."),
        ("a/train", {}, 0, "held out", "None of its judged pairs was seen in fitting, on a/train."),
        ("a/train", {}, 7, "overlap", "judged pairs were seen in fitting"),
        ("b", {}, 4, "overlap", "4 of 40 judged pairs were seen in fitting"),
        ("a", {"source": "llm:gpt-4"}, 0, "transfer", "fitted on other generating models."),
        ("a", {"source": "llm:llama-2"}, 0, "fitted", "fitted on these data"),
    ],
)
def test_whether_the_data_are_new(fitted_on, settings, n_seen, role, says):
    report = report_with(
        (skewed(-12, 1), KEPT), method=method(fitted_on, **settings), n_seen=n_seen
    )
    found = only(report)
    assert found.role == role
    assert says in role_sentence(found)


def test_which_method_is_best():
    report = stored("debias-full")
    assert choice_sentence(report) == (
        "None of 3 changed systems meets all criteria on any data set."
    )
    good, bad = (skewed(-12, 1), KEPT), (skewed(-12, -20), KEPT)
    assert choice_sentence(report_with(good)) == "debiased meets all criteria on a."
    assert choice_sentence(report_with(bad)) == "debiased does not meet all criteria."
    assert choice_sentence(report_with(bad, bad)) == (
        "debiased does not meet all criteria on either data set."
    )
    assert choice_sentence(report_with(good, bad)) == (
        "debiased meets all criteria on a (1 of 2 data sets)."
    )
    assert choice_sentence(report_with(*[good] * 5)) == (
        "debiased meets all criteria on 5 of 5 data sets."
    )
    assert choice_sentence(report_with(bad, bad, bad)).endswith("criteria on any data set.")
    alone = dataclasses.replace(report, datasets=report.datasets[:1])
    assert choice_sentence(alone) == "None of 3 changed systems meets all criteria."


def test_the_scale_holds_what_decides():
    wild = dataclasses.replace(skewed(-12, 1, 150), cutoff=1)
    report = report_with((skewed(-12, 40), KEPT))
    before, outcome = report.datasets[0].outcomes
    both = dataclasses.replace(outcome, skew=(wild, *outcome.skew))
    dataset = dataclasses.replace(report.datasets[0], outcomes=(before, both))
    ((_, picture),) = pictures(dataclasses.replace(report, datasets=(dataset,)), "skew")
    low, high = picture.x.span
    assert -22 < low < -17
    assert 45 < high < 50
