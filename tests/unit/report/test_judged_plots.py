from __future__ import annotations

import dataclasses
import functools
import re
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from judged_reports import answers, rankings, single

from rag_sourcebias.report.blocks import Figures
from rag_sourcebias.report.judged import document
from rag_sourcebias.report.judged_plots import labeled_queries_plot, other_queries_plot
from rag_sourcebias.report.svg import COLOURS


@functools.cache
def drawn(name):
    report = rankings() if name in ("labelled", "others", "shares", "gain") else answers()
    report = single() if name == "one mean" else report
    captions = {
        "means": "Mean correctness",
        "one mean": "Mean helpfulness",
        "curves": "correctness, plain",
        "labelled": "DCG@5, good: labelled",
        "others": "DCG@5, good: others",
        "bias": "Bias by group",
        "shares": "How often each grade is given",
        "gain": "Expected and given gain",
    }
    return picture(report, captions[name])


def picture(report, caption):
    """Return a picture of a report by its caption; nothing where there is none."""
    for section in document(report).sections:
        for block in section.blocks:
            for name, draw in block.items if isinstance(block, Figures) else ():
                if name == caption:
                    return draw("u")
    return ""


NAMES = ("means", "one mean", "curves", "labelled", "others", "bias", "shares", "gain")


def texts(svg):
    tag = "{http://www.w3.org/2000/svg}text"
    return ["".join(e.itertext()) for e in ET.fromstring(svg).iter(tag)]


@pytest.mark.parametrize("name", NAMES)
def test_pictures_are_accessible_and_follow_the_page(name):
    svg = drawn(name)
    root = ET.fromstring(svg)
    assert root.get("role") == "img"
    assert root.get("viewBox").split()[2] == "360"
    assert root.get("aria-labelledby") == "u-title u-desc"
    assert len(root[0].text) > 10
    assert len(root[1].text) > 10
    assert "nan" not in root[1].text
    assert not [c for c in COLOURS.values() if c in svg]
    assert re.findall(r"#[0-9a-f]{6}\b", re.sub(r"var\([^)]*\)", "", svg)) == []


def test_means_are_described_with_and_without_the_judge():
    text = ET.fromstring(drawn("means"))[1].text
    for mean in answers().means:
        assert f"correctness, {mean.system}: {mean.interval.estimate:.3f}" in text
        assert f"judge alone {mean.judge_alone:.3f}" in text
    assert {"plain", "fluent", "terse", "labels alone", "judge alone"} <= set(texts(drawn("means")))


def test_curves_mark_the_labels_there_are():
    words = texts(drawn("curves"))
    assert "labels (dotted: the 80 there are)" in words
    assert "regression on the judge" in words
    points = [p for p in answers().curves if p.system == "plain" and p.method == "labels"]
    text = ET.fromstring(drawn("curves"))[1].text
    for p in points:
        assert f"n = {p.n}: width {p.mean_width:.3f}, coverage {100 * p.coverage:.6g}%" in text


def test_a_size_at_which_nothing_was_returned_is_left_out():
    base = answers()
    gone = dataclasses.replace(base.curves[0], n=7, coverage=0.0, mean_width=0.0)
    report = dataclasses.replace(base, curves=(gone, *base.curves))
    assert "n = 7:" not in ET.fromstring(picture(report, "correctness, plain"))[1].text
    assert picture(dataclasses.replace(base, curves=(gone,)), "correctness, plain") == ""


def test_covered_and_missed_queries_are_counted():
    query = rankings().per_query[0]
    known = ~np.isnan(query.human)
    first = int(np.flatnonzero(known)[0])
    human = query.human.copy()
    human[first] = query.upper[first] + 0.5
    inside = int(np.sum((query.lower <= human + 1e-9) & (human <= query.upper + 1e-9)))
    changed = dataclasses.replace(query, human=human)
    words = texts(labeled_queries_plot("x", changed, "u"))
    assert f"holds the human value: {inside}" in words
    assert f"does not: {int(known.sum()) - inside}" in words
    assert f"{int(known.sum())} queries, sorted by human value" in words


def test_a_thousand_queries_stay_one_path():
    rng = np.random.default_rng(0)
    n = 1000
    low = rng.uniform(0, 5, n)
    query = dataclasses.replace(
        rankings().per_query[0],
        query_ids=tuple(map(str, range(n))),
        estimate=low + 1,
        lower=low,
        upper=low + 2,
        human=np.full(n, np.nan),
    )
    svg = other_queries_plot("x", query, "u")
    assert len(svg) < 150_000
    assert "1,000 queries, sorted by prediction" in texts(svg)


def test_bias_is_sorted_and_described():
    audit = answers().audits["correctness"]
    text = ET.fromstring(drawn("bias"))[1].text
    order = sorted(audit.groups, key=lambda g: -g.bias.estimate)
    places = [text.index(f"{g.group}: ") for g in order]
    assert places == sorted(places)


def test_pictures_without_content_are_left_out():
    assert picture(single(), "Bias by group") == ""
    assert picture(single(), "How often each grade is given") == ""
    assert picture(single(), "Expected and given gain") == ""
