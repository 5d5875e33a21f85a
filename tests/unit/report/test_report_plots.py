"""Pictures of a source audit show its numbers, and no other."""

from __future__ import annotations

import dataclasses
from xml.etree import ElementTree as ET

import pytest
from stored_reports import stored

from rag_sourcebias.report import figures as pic
from rag_sourcebias.report.document import Pictures
from rag_sourcebias.report.figures import draw

LLM = "llm:llama-2"


def pictures(report):
    """Return the pictures of each kind, in the order of the page."""
    found = {}
    for block in report.page().blocks():
        for _, picture in block.items if isinstance(block, Pictures) else ():
            found.setdefault(type(picture), []).append(picture)
    return found


@pytest.fixture(scope="module")
def with_cases():
    return stored("skew-evidence")


def test_a_line_for_each_case_leads_from_one_score_to_the_other(with_cases):
    system = with_cases.systems[0]
    scores = system.scores
    (picture,) = pictures(with_cases)[pic.Points]
    rows = [scores.query_ids.index(case.item) for case in system.evidence]
    assert len(rows) > 5
    assert picture.joined
    for curve, place, source in zip(picture.curves, (0, 1), scores.sources[:2], strict=True):
        assert set(curve.x) == {place}
        assert curve.y == tuple(100 * scores.of("NDCG@5", source)[rows])


TITLE = "{http://www.w3.org/2000/svg}title"


def on_hover(picture):
    return [e.text for e in ET.fromstring(draw(picture, uid="p")).iter(TITLE) if not e.get("id")]


def test_marks_say_their_figures_on_hover():
    marks = (pic.Mark(at=2.0, ends=(1.0, 3.0)), pic.Mark(at=4.0, colour="other"))
    rows = (pic.Row(label='<a> & "b"\n#p', group="of it", marks=marks),)
    said = on_hover(pic.Intervals(title="t", rows=rows))
    assert {*said} == {'of it: <a> & "b"\n#p: 2.0 [1.0, 3.0]', 'of it: <a> & "b"\n#p: 4.0'}
    curve = pic.Curve(x=(1.0, 2.0), y=(3.0, 4.0), name="n", ends=((2.5, 3.5), (3.0, 5.0)))
    expected = ["n: 1.0: 3.0 [2.5, 3.5]", "n: 2.0: 4.0 [3.0, 5.0]"]
    assert on_hover(pic.Lines(title="t", curves=(curve,))) == expected
    bare = dataclasses.replace(curve, ends=())
    assert on_hover(pic.Points(title="t", curves=(bare,))) == ["n: 1.0: 3.0", "n: 2.0: 4.0"]


def test_words_are_left_out_rather_than_given_to_the_wrong_mark():
    outside = pic.Curve(x=(1.0, 2.0, 300.0), y=(3.0, 4.0, 5.0))
    seen = pic.Axis(span=(0.0, 5.0))
    assert on_hover(pic.Points(title="t", x=seen, curves=(outside,))) == []
    whole = dataclasses.replace(outside, x=(1.0, 2.0, 3.0))
    assert len(on_hover(pic.Points(title="t", x=seen, curves=(whole,)))) == 3
    many = tuple(float(i) for i in range(1_000))
    assert on_hover(pic.Points(title="t", curves=(pic.Curve(x=many, y=many),))) == []
