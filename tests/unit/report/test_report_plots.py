from __future__ import annotations

import dataclasses
import re
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from rag_sourcebias.errors import DataError
from rag_sourcebias.report import plots, twin_plots
from rag_sourcebias.report.svg import COLOURS

LLM = "llm:llama-2"


@pytest.fixture(scope="module")
def drawn(full_report):
    system = full_report.systems[0]
    return {
        "delta": plots.relative_delta_plot(full_report, LLM, uid="delta"),
        "paired": plots.paired_scores_plot(
            full_report, system, LLM, measure="NDCG@5", uid="paired"
        ),
        "ranks": twin_plots.twin_ranks_plot(full_report, system, system.twins[0], uid="ranks"),
        "length": twin_plots.length_plot(full_report, system, system.twins[0], uid="length"),
    }


def text_of(svg):
    return [
        "".join(e.itertext()) for e in ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")
    ]


@pytest.mark.parametrize("name", ["delta", "paired", "ranks", "length"])
def test_svg_is_accessible_and_scales(drawn, name):
    root = ET.fromstring(drawn[name])
    assert root.get("role") == "img"
    assert root.get("width") == "100%"
    assert root.get("height") is None
    assert root.get("viewBox").split()[2] == "360"
    title, desc = root[0], root[1]
    assert root.get("aria-labelledby") == f"{title.get('id')} {desc.get('id')}"
    assert len(title.text) > 10
    assert len(desc.text) > 10


@pytest.mark.parametrize("name", ["delta", "paired", "ranks", "length"])
def test_svg_follows_the_page(drawn, name):
    svg = drawn[name]
    assert "var(--plot-" in svg
    assert not [c for c in COLOURS.values() if c in svg]
    # No colour may be left that a dark page could not change.
    fixed = re.sub(r"var\([^)]*\)", "", svg)
    assert re.findall(r"#[0-9a-f]{6}\b", fixed) == []
    assert "<style" not in svg


@pytest.mark.parametrize("name", ["delta", "paired", "ranks", "length"])
def test_ids_are_prefixed_and_every_reference_resolves(drawn, name):
    svg = drawn[name]
    ids = re.findall(r'\bid="([^"]+)"', svg)
    assert len(ids) == len(set(ids))
    assert all(i.startswith(f"{name}-") for i in ids)
    references = re.findall(r'url\(#([^)]+)\)|href="#([^"]+)"', svg)
    assert references
    assert {a or b for a, b in references} <= set(ids)


@pytest.mark.parametrize("name", ["delta", "paired", "ranks", "length"])
def test_labels_are_text_of_readable_size(drawn, name):
    assert len(text_of(drawn[name])) > 4
    sizes = [float(s) for s in re.findall(r"font(?:-size)?:[^;]*?([\d.]+)px", drawn[name])]
    # 360 units stand for a phone's 360 CSS pixels: 11.5 units are 8.6 pt and more.
    assert sizes
    assert min(sizes) >= 11


def test_delta_plot_shows_missing_values_in_words(full_report):
    ndcg = text_of(plots.relative_delta_plot(full_report, LLM, uid="a"))
    assert "no interval" in ndcg
    assert "← LLM ranked higher  |  human ranked higher →" in ndcg
    assert "undefined" in text_of(
        plots.relative_delta_plot(full_report, LLM, measure="MAP", uid="b")
    )


def test_delta_plot_refuses_what_was_not_compared(full_report):
    with pytest.raises(DataError, match="no system has NDCG against 'llm:none'"):
        plots.relative_delta_plot(full_report, "llm:none", uid="a")


def test_paired_plot_counts_every_query(full_report):
    system = full_report.systems[0]
    h, g = (system.scores.of("NDCG@5", s) for s in ("human", LLM))
    svg = plots.paired_scores_plot(full_report, system, LLM, measure="NDCG@5", uid="p")
    counts = [int(n) for n in re.findall(r"(?:higher|equal): (\d+)", " ".join(text_of(svg)))]
    assert sum(counts) == len(h) == 160
    assert counts[0] == int(np.sum(h > g))


def test_rank_shares_cover_every_pair():
    shares = twin_plots._rank_shares(np.array([1.0, 1.5, 10.0, 10.5, 11.0, np.nan, 300.0, 2.0]))
    assert shares.sum() == pytest.approx(100)
    assert shares[0] == 25
    assert shares[9] == 25
    assert shares[10] == 37.5


def test_wilson_band_at_the_edges():
    low, high = twin_plots._wilson(np.zeros(20), 0.95)
    assert low == pytest.approx(0, abs=1e-12)
    assert high == pytest.approx(0.1611, abs=1e-4)  # z² / (n + z²)


def test_plots_need_pairs_and_lengths(full_report, make):
    system = full_report.systems[0]
    empty = np.empty(0)
    no_text = dataclasses.replace(system.twins[0], log_length_ratio=empty, overlap=empty)
    with pytest.raises(DataError, match="no text lengths"):
        twin_plots.length_plot(full_report, system, no_text, uid="x")
    none = dataclasses.replace(no_text, n_pairs=0, baseline_rank=empty, other_rank=empty)
    with pytest.raises(DataError, match="no pair of twins"):
        twin_plots.twin_ranks_plot(full_report, system, none, uid="x")


def test_few_equal_lengths_do_not_break_the_plot(full_report):
    system = full_report.systems[0]
    twin = dataclasses.replace(
        system.twins[0],
        n_pairs=3,
        other_above=np.array([1.0, 0.0, 0.5]),
        log_length_ratio=np.zeros(3),
        overlap=np.ones(3),
    )
    ET.fromstring(twin_plots.length_plot(full_report, system, twin, uid="few"))


def test_names_are_data_not_markup(make):
    cell = make.cell()
    report = make.report([make.simple(cell, name="$x_1$ <b>&")])
    svg = plots.relative_delta_plot(report, LLM, uid="a")
    assert "$x_1$ <b>&" in text_of(svg)
    assert "<b>" not in svg


def test_the_users_matplotlib_settings_stay(full_report):
    import matplotlib as mpl

    with mpl.rc_context({"font.size": 31, "svg.fonttype": "path"}):
        svg = plots.relative_delta_plot(full_report, LLM, uid="a")
        assert mpl.rcParams["font.size"] == 31
    assert text_of(svg)
