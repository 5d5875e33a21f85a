from __future__ import annotations

import dataclasses
import re
from xml.etree import ElementTree as ET

import pytest
from style_reports import QUERIES, STYLES, full_report, similarities, style_report

from rag_sourcebias.report.blocks import Figures
from rag_sourcebias.report.pictures import describe, draw
from rag_sourcebias.style.report import document
from rag_sourcebias.style.words import leading_measure


@pytest.fixture(scope="module")
def full():
    return full_report()


def figures(report, section):
    """Return the pictures of each block of a section, by their captions."""
    (found,) = (s for s in document(report).sections if s.id == section)
    return [dict(block.items) for block in found.blocks if isinstance(block, Figures)]


def marks(picture):
    """Return (name, value, colour, is it filled?) of the first mark of each row."""
    found = ((row, row.marks[0]) for row in picture.rows)
    return [(row.label, mark.at, mark.colour, mark.solid) for row, mark in found]


def texts(picture):
    found = (e for e in ET.fromstring(draw(picture, uid="p")).iter() if e.tag.endswith("}text"))
    return [e.text or "" for e in found]


def test_dots_are_hollow_where_not_significant(full):
    pictures, solids = figures(full, "ranks")[0], set()
    for system in full.systems:
        picture = pictures[system.name]
        against = {p.first: p for p in system.rows[0].against_original}
        means = system.average_ranks[0]
        assert [at for _, at, _, _ in marks(picture)] == list(means)
        assert picture.guides[0].at == means[0]
        assert marks(picture)[0][2:] == ("even", True)
        for (_, _, colour, solid), style in zip(marks(picture)[1:], STYLES[1:], strict=True):
            assert solid == (against[style].p_adjusted < 0.05)
            assert colour == ("baseline" if against[style].difference < 0 else "other")
            solids.add(solid)
        assert describe(picture).count("(significant)") == sum(m[3] for m in marks(picture)) - 1
    assert solids == {True, False}


def test_differences_put_every_system_beside_the_others(full):
    (picture,) = figures(full, "ranks")[1].values()
    means = {s.name: s.average_ranks[0] for s in full.systems}
    assert [(row.group, row.label) for row in picture.rows] == [
        (name, system) for name in ("style 0", "style 3", "formal") for system in means
    ]
    expected = [means[s][at] - means[s][0] for at in (1, 2, 3) for s in means]
    assert [at for _, at, _, _ in marks(picture)] == pytest.approx(expected)
    many = style_report({f"s{i}": similarities(20, seed=i) for i in range(8)})
    pictures = figures(many, "ranks")[1].values()
    groups = [list(dict.fromkeys(row.group for row in p.rows)) for p in pictures]
    assert groups == [["style 0", "style 3"], ["formal"]]
    assert len(figures(style_report(), "ranks")) == 1


def test_the_heat_map_shows_every_average(full):
    for system in full.systems:
        picture = figures(full, "matrix")[0][system.name]
        assert picture.values == tuple(map(tuple, system.average_ranks))
        assert (picture.rows, picture.columns) == (QUERIES, STYLES)
        assert (picture.middle, picture.reach) == (2.5, 1.5)
        strong = {
            (y, STYLES.index(p.first))
            for y, row in enumerate(system.rows)
            for p in row.against_original
            if p.p_adjusted < 0.05
        }
        assert set(picture.strong) == strong
        assert strong
        assert {(QUERIES[y], STYLES[x]) for y, x in picture.framed} == {("0", "0"), ("3", "3")}
        for value in system.average_ranks.ravel():
            assert f"{value:.1f}" in describe(picture)


def test_chance_is_drawn_beside_unfairness(full):
    for system in full.systems:
        picture = figures(full, "unfairness")[0][system.name]
        for row, found in zip(picture.rows, system.rows, strict=True):
            assert row.marks[0].at == found.unfairness.score
            assert row.ticks == (found.unfairness.null_expectation,)
            assert row.marks[0].solid == (found.friedman.p_value < 0.05)
            assert f"by chance {found.unfairness.null_expectation:.2f}" in describe(picture)
        assert picture.x.span[0] == 0


def test_effects_are_drawn_with_their_signs(full):
    system = full.systems[0]
    gains = marks(figures(full, "matching")[0]["MiniLM"])
    assert [g[1] for g in gains] == [g.mean for g in system.matching]
    assert gains[-1][0] == "all styles"
    lengths = figures(full, "length")[0]["MiniLM"].rows
    assert [row.marks[0].at for row in lengths] == list(system.average_ranks[0])
    adjusted = [i.estimate for i in system.rows[0].adjusted_ranks]
    assert [row.marks[1].at for row in lengths] == adjusted
    quality = marks(figures(full, "quality")[0]["MiniLM: NDCG@5"])
    assert [(name, *look) for name, _, *look in quality] == [
        ("style 0", "other", False),
        ("style 3", "other", True),
    ]
    same = dataclasses.replace(system.quality[4], change=None, p_adjusted=1.0)
    alike = dataclasses.replace(
        system, quality=tuple(same if q is system.quality[4] else q for q in system.quality)
    )
    report = dataclasses.replace(full, systems=(alike,))
    mark = figures(report, "quality")[0]["MiniLM: NDCG@5"].rows[0].marks[0]
    assert (mark.at, mark.ends, mark.solid) == (0.0, None, False)
    index = marks(figures(full, "index")[0]["MiniLM: NDCG@5"])
    assert [(name, *look) for name, _, *look in index] == [
        ("style 0", "other", False),
        ("style 3", "other", True),
        ("formal", "other", True),
    ]


def test_pictures_of_systems_share_a_scale(full):
    for section in ("ranks", "unfairness", "matching", "length", "quality", "index"):
        pictures = figures(full, section)[0].values()
        assert len(pictures) == len(full.systems)
        assert len({p.x.span for p in pictures}) == 1


def test_names_are_text_not_markup():
    styles = ("human", "<b>&", "$x^2$", "y" * 60)
    report = style_report(similarities(30, styles=styles), styles=styles)
    for section in ("ranks", "matrix"):
        (picture,) = figures(report, section)[0].values()
        found = texts(picture)
        assert {"$x^2$", "<b>&"} <= set(found)
        assert max(map(len, found)) < 60


def test_shortened_names_stay_distinct():
    styles = ("human", *(f"a very long name of style {i} that goes on and on" for i in range(14)))
    report = style_report(similarities(20, (0,) * 15, styles=styles), styles=styles)
    for section in ("ranks", "matrix"):
        (picture,) = figures(report, section)[0].values()
        names = [text for text in texts(picture) if re.match(r"\d+\. ", text)]
        assert len(names) == len(set(names)) == 15


def test_the_leading_measure():
    assert leading_measure(["NDCG@1", "NDCG@5", "Recall@10"]) == "NDCG@5"
    assert leading_measure(["Recall@1", "Recall@10"]) == "Recall@10"
