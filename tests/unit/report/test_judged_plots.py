from __future__ import annotations

import functools
import re
from xml.etree import ElementTree as ET

import pytest
from judged_reports import answers, single

from rag_sourcebias.judged.page import document
from rag_sourcebias.report.document import Pictures
from rag_sourcebias.report.figures import COLOURS, draw


@functools.cache
def drawn(name):
    report = single() if name == "one mean" else answers()
    captions = {
        "means": "Mean correctness",
        "one mean": "Mean helpfulness",
    }
    return picture(report, captions[name])


def picture(report, caption):
    """Return a picture of a report by its caption; nothing where there is none."""
    for section in document(report).sections:
        for block in section.blocks:
            for name, found in block.items if isinstance(block, Pictures) else ():
                if name == caption:
                    return draw(found, uid="u")
    return ""


NAMES = ("means", "one mean")


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
