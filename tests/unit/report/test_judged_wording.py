from __future__ import annotations

import dataclasses

import pytest
from judged_reports import single
from stored_reports import stored

from rag_sourcebias.infer.findings import InferCode
from rag_sourcebias.judged.page import document, higher, role, sentence
from rag_sourcebias.report.document import Table


def only(report):
    (mean,) = report.means
    return mean


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


def test_labels_far_from_the_rest_are_a_doubt():
    report = single()
    doubt = "A few labels lie far from the rest"
    assert not any(doubt in str(said) for said in report.page().first.doubts)
    interval = dataclasses.replace(only(report).interval, notes=(InferCode.LONG_TAIL(),))
    tailed = dataclasses.replace(
        report, means=(dataclasses.replace(only(report), interval=interval),)
    )
    assert any(doubt in str(said) for said in tailed.page().first.doubts)


def comparisons(report):
    """Return the rows of the table of comparisons, by column."""
    (section,) = (s for s in document(report).sections if s.id == "comparisons")
    (table,) = (block for block in section.blocks if isinstance(block, Table))
    return [dict(zip(table.frame.columns, row, strict=True)) for row in table.frame.rows()]


def test_a_system_is_called_higher_only_where_its_interval_says_so():
    for c, row in zip(
        stored("judged-answers").comparisons, comparisons(stored("judged-answers")), strict=True
    ):
        i = c.interval
        assert row["higher"] == higher(c) or (row["higher"], higher(c)) == ("cannot tell", "")
        assert higher(c) == (c.first if i.lower > 0 else c.second if i.upper < 0 else "")


def test_an_end_that_rounds_to_zero_shows_its_side():
    c = stored("judged-answers").comparisons[0]
    interval = dataclasses.replace(c.interval, estimate=-0.1, lower=-0.2, upper=-0.0004)
    changed = (dataclasses.replace(c, interval=interval),)
    (row,) = comparisons(dataclasses.replace(stored("judged-answers"), comparisons=changed))
    assert row["95% interval"] == "[−0.2000, −0.0004]"
    assert row["higher"] == c.second
