from __future__ import annotations

import dataclasses
import functools
import re
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from judged_reports import answers, rankings, single

from rag_sourcebias.judged.report import document
from rag_sourcebias.report.blocks import Figures
from rag_sourcebias.report.pictures import COLOURS, draw


@functools.cache
def drawn(name):
    report = rankings() if name in ("labelled", "others", "shares", "gain") else answers()
    report = single() if name == "one mean" else report
    captions = {
        "means": "Mean correctness",
        "one mean": "Mean helpfulness",
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
            for name, found in block.items if isinstance(block, Figures) else ():
                if name == caption:
                    return draw(found, uid="u")
    return ""


NAMES = (
    "means", "one mean", "labelled", "others", "bias", "shares", "gain",
)  # fmt: skip


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
        assert f"{mean.system}: {mean.interval.estimate:.3f} [" in text
        assert f"{mean.judge_alone:.3f} (judge alone)" in text
    assert {"plain", "fluent", "terse", "labels alone", "judge alone"} <= set(texts(drawn("means")))


def test_covered_and_missed_queries_are_counted():
    query = rankings().per_query[0]
    known = ~np.isnan(query.human)
    first = int(np.flatnonzero(known)[0])
    human = query.human.copy()
    human[first] = query.upper[first] + 0.5
    inside = int(np.sum((query.lower <= human + 1e-9) & (human <= query.upper + 1e-9)))
    changed = dataclasses.replace(query, human=human)
    report = dataclasses.replace(rankings(), per_query=(changed,))
    words = texts(picture(report, "DCG@5, good: labelled"))
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
    report = dataclasses.replace(rankings(), per_query=(query,))
    svg = picture(report, "DCG@5, good: others")
    assert len(svg) < 150_000
    assert "1,000 queries, sorted by prediction" in texts(svg)


def test_bias_is_sorted_and_described():
    audit = answers().audits["correctness"]
    text = ET.fromstring(drawn("bias"))[1].text
    order = sorted(audit.groups, key=lambda g: -g.bias.estimate)
    places = [text.index(f"{g.group} ({g.n}):") for g in order]
    assert places == sorted(places)


def test_pictures_without_content_are_left_out():
    assert picture(single(), "Bias by group") == ""
    assert picture(single(), "How often each grade is given") == ""
    assert picture(single(), "Expected and given gain") == ""


def test_a_measure_that_can_only_be_0_has_no_share_of_a_range():
    query = rankings().per_query[0]
    zero = dataclasses.replace(query, highest=0.0)
    report = dataclasses.replace(rankings(), per_query=(zero,))
    assert "of the range" not in ET.fromstring(picture(report, "DCG@5, good: others"))[1].text
