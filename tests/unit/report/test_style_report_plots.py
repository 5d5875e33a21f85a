from __future__ import annotations

import dataclasses
import re
from xml.etree import ElementTree as ET

import pytest
from style_reports import QUERIES, STYLES, full_report, similarities, style_report

from rag_sourcebias.report.format import distinct
from rag_sourcebias.report.rows_plot import Picture, PlotGroup, PlotRow, draw_pictures
from rag_sourcebias.report.style_plots import (
    differences_pictures,
    heat_map,
    index_picture,
    length_picture,
    map_width,
    matching_picture,
    quality_picture,
    ranks_picture,
    unfairness_picture,
)
from rag_sourcebias.report.style_words import leading_measure


@pytest.fixture(scope="module")
def full():
    return full_report()


def rows_of(picture):
    return [r for g in picture.groups for r in g.rows]


def texts(svg):
    return [e for e in ET.fromstring(svg).iter() if e.tag.endswith("}text")]


def test_dots_are_hollow_where_not_significant(full):
    for system in full.systems:
        row = system.rows[0]
        picture = ranks_picture(full, system, row)
        found = {p.first: p for p in row.against_original}
        for dot, style, mean in zip(rows_of(picture), STYLES, system.average_ranks[0], strict=True):
            assert dot.estimate == mean
            if style == "human":
                assert (dot.side, dot.solid) == ("even", True)
                assert picture.line == mean
            else:
                assert dot.solid == (found[style].p_adjusted < 0.05)
                assert dot.side == ("baseline" if found[style].difference < 0 else "other")
    assert {d.solid for s in full.systems for d in rows_of(ranks_picture(full, s, s.rows[0]))} == {
        True,
        False,
    }


def test_without_the_original_there_is_no_dashed_line(full):
    report = dataclasses.replace(full, config=dataclasses.replace(full.config, original="gone"))
    row = dataclasses.replace(full.systems[0].rows[0], against_original=())
    system = dataclasses.replace(full.systems[0], rows=(row,), ranks=full.systems[0].ranks[:, :1])
    picture = ranks_picture(report, system, row)
    assert picture.line is None
    assert not any(dot.solid for dot in rows_of(picture))


def test_differences_put_every_system_beside_the_others(full):
    (picture,) = differences_pictures(full)
    assert [g.name for g in picture.groups] == ["style 0", "style 3", "formal"]
    for group, style in zip(picture.groups, STYLES[1:], strict=True):
        assert [r.name for r in group.rows] == ["MiniLM", "BM25"]
        for row, system in zip(group.rows, full.systems, strict=True):
            means = system.average_ranks[0]
            assert row.estimate == pytest.approx(means[STYLES.index(style)] - means[0])
    many = style_report({f"s{i}": similarities(20, seed=i) for i in range(8)})
    pictures = differences_pictures(many)
    assert len(pictures) == 2
    assert [g.name for p in pictures for g in p.groups] == ["style 0", "style 3", "formal"]
    assert differences_pictures(style_report()) == []


def test_the_heat_map_shows_every_average(full):
    system = full.systems[0]
    svg = heat_map(full, system, uid="h")
    shown = [t for t in texts(svg) if re.fullmatch(r"\d\.\d", t.text or "")]
    expected = [f"{v:.1f}" for v in system.average_ranks.ravel()]
    assert [t.text for t in shown] == expected
    bold = [("bold" in t.attrib["style"] or "700" in t.attrib["style"]) for t in shown]
    strong = [
        any(p.first == s and p.p_adjusted < 0.05 for p in r.against_original)
        for r in system.rows
        for s in STYLES
    ]
    assert bold == strong
    assert any(strong)
    matching = sum(q in STYLES for q in QUERIES)
    assert svg.count("stroke: var(--plot-ink") == matching
    root = ET.fromstring(svg)
    described = next(e.text for e in root.iter() if e.tag.endswith("}desc"))
    for value in expected:
        assert value in described


def test_heat_map_colours_say_above_or_below_the_middle(full):
    system = full.systems[1]
    svg = heat_map(full, system, uid="h")
    means = system.average_ranks
    assert svg.count("fill: var(--plot-baseline") == (means < 2.5).sum()
    assert svg.count("fill: var(--plot-other") == (means > 2.5).sum() + (means == 2.5).sum()


def test_chance_is_drawn_beside_unfairness(full):
    for system in full.systems:
        picture = unfairness_picture(full, system)
        for dot, row in zip(rows_of(picture), system.rows, strict=True):
            assert dot.estimate == row.unfairness.score
            assert dot.ticks == (row.unfairness.null_expectation,)
            assert dot.solid == (row.friedman.p_value < 0.05)
        assert picture.from_zero


def test_effects_are_drawn_with_their_signs(full):
    system = full.systems[0]
    gains = rows_of(matching_picture(system))
    assert [g.estimate for g in gains] == [g.mean for g in system.matching]
    assert gains[-1].name == "all styles"
    lengths = rows_of(length_picture(full, system, system.rows[0]))
    assert [r.estimate for r in lengths if not r.lower] == list(system.average_ranks[0])
    adjusted = [r.estimate for r in lengths if r.lower]
    assert adjusted == [i.estimate for i in system.rows[0].adjusted_ranks]
    quality = rows_of(quality_picture(full, system))
    assert [(r.name, r.side, r.solid) for r in quality] == [
        ("style 0", "other", False),
        ("style 3", "other", True),
    ]
    same = dataclasses.replace(system.quality[4], change=None)
    alike = dataclasses.replace(system, quality=(system.quality[1], same))
    dot = rows_of(quality_picture(full, alike))[0]
    assert (dot.estimate, dot.ends, dot.solid) == (0.0, None, False)
    index = rows_of(index_picture(full, system))
    assert [(r.name, r.side, r.solid) for r in index] == [
        ("style 0", "other", False),
        ("style 3", "other", True),
        ("formal", "other", True),
    ]


def test_pictures_share_a_scale():
    def picture(low, high):
        row = PlotRow(name="a", estimate=low, ends=(low, high))
        return Picture(
            caption=f"{low}",
            groups=(PlotGroup(name="", rows=(row,)),),
            title="t",
            description="d",
            xlabel="x",
        )

    def ticks(svg):
        return [t.text for t in texts(svg) if re.fullmatch(r"[\d.]+", t.text or "")]

    drawn = draw_pictures([picture(0, 1), picture(0, 10)])
    assert [caption for caption, _ in drawn] == ["0", "0"]
    assert ticks(drawn[0][1]("a")) == ticks(drawn[1][1]("b"))
    alone = draw_pictures([picture(0, 1)])
    assert ticks(alone[0][1]("a")) != ticks(drawn[0][1]("a"))
    assert draw_pictures([]) == ()


def test_names_are_text_not_markup(full):
    styles = ("human", "<b>&", "$x^2$", "y" * 60)
    report = style_report(similarities(30, styles=styles), styles=styles)
    system = report.systems[0]
    for svg in (
        heat_map(report, system, uid="h"),
        draw_pictures([ranks_picture(report, system, system.rows[0])])[0][1]("a"),
    ):
        found = [t.text for t in texts(svg)]
        assert "$x^2$" in found
        assert "<b>&" in found
        assert max(len(t or "") for t in found) < 60


def test_shortened_names_stay_distinct():
    styles = ("human", *(f"a very long name of style {i} that goes on and on" for i in range(14)))
    report = style_report(similarities(20, (0,) * 15, styles=styles), styles=styles)
    system = report.systems[0]
    ((_, draw),) = draw_pictures([ranks_picture(report, system, system.rows[0])])
    names = [t.text for t in texts(draw("p")) if re.match(r"\d+\. ", t.text or "")]
    assert len(names) == len(set(names)) == 15
    columns = [t.text for t in texts(heat_map(report, system, uid="h"))]
    assert "1. human" in columns
    assert len([c for c in columns if re.match(r"\d+\. a ver", c or "")]) == 14
    assert map_width(15) > map_width(9) == map_width(2)
    assert distinct(["a", "b"], 9) == ["a", "b"]


def test_the_leading_measure():
    assert leading_measure(["NDCG@1", "NDCG@5", "Recall@10"]) == "NDCG@5"
    assert leading_measure(["Recall@1", "Recall@10"]) == "Recall@10"
