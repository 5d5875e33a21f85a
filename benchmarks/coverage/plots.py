"""The picture of the coverage page, a small SVG file."""

from __future__ import annotations

import io
import re
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

# name, colour (colour-blind safe), line and width; the default method is the heavy line
LOOKS = {
    "regression": ("regression (default)", "#0b62a8", "-", 2.4),
    "labels": ("labels alone (t)", "#5b6068", "--", 1.4),
    "bca": ("labels, BCa bootstrap", "#9aa0a8", ":", 1.4),
    "studentized": ("labels, bootstrap t", "#b7b1a5", "-.", 1.4),
    "bootstrap": ("labels, bootstrap [R]", "#8a6d3b", ":", 1.4),
    "ppi": ("PPI, λ = 1", "#c98500", "-.", 1.4),
    "ppi++": ("PPI++", "#7b3fa0", "--", 1.4),
    "ppi-crossfit": ("PPI, cross-fitted", "#c277c9", ":", 1.4),
    "ppi-paper": ("PPI [R]", "#b34700", "-", 1.6),
    "crc-paper": ("CRC [R], M → ∞", "#1b7f5c", "-", 1.6),
}
TITLES = {
    "TREC-DL": "simulated, TREC-DL",
    "Robust04": "simulated, Robust04",
    "dl19_dl20_bm25_umbrela3votes": "DL19+20, three judges' votes",
    "dl20_bm25_promptdist": "DL20, votes of 54 prompts",
}
STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "rag-sourcebias",
    "font.family": ["DejaVu Sans"],
    "font.size": 10,
    "axes.titlesize": 10,
    "legend.fontsize": 9.5,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e3e5e8",
}


def draw(folder: Path, figures: dict) -> None:
    """Write the plot."""
    with mpl.rc_context(STYLE):
        save(labels_figure(figures["figure 2"]), folder / "coverage-labels.svg")


def save(figure: Figure, path: Path) -> None:
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None}, dpi=72)
    # two decimals of a point are finer than any screen
    path.write_text(re.sub(r"(-?\d+\.\d\d)\d+", r"\1", text.getvalue()), encoding="utf-8")


def labels_figure(rows: list[dict]) -> Figure:
    """Width and coverage against the number of labels ([R] Fig. 2)."""
    sources = list(dict.fromkeys(row["source"] for row in rows))
    figure = Figure(figsize=(3.1 * len(sources), 6.6), layout="constrained")
    axes = figure.subplots(2, len(sources), squeeze=False, sharex=True)
    for column, source in enumerate(sources):
        width, cover = axes[0][column], axes[1][column]
        mine = [row for row in rows if row["source"] == source]
        for method, (name, colour, line, size) in LOOKS.items():
            points = sorted(
                (r["n"], r["width"], r["coverage"]) for r in mine if r["method"] == method
            )
            n, widths, coverages = zip(*points, strict=True)
            look = {"color": colour, "linestyle": line, "linewidth": size}
            width.plot(n, widths, label=name, **look)
            cover.plot(n, [max(value, 0.7) for value in coverages], **look)
        _own_goal(cover, mine)
        width.set_title(TITLES[source])
        start = max(r["width"] for r in mine if r["method"] == "labels" and r["n"] == 10)
        width.set_ylim(0, 1.25 * start)
        cover.set_ylim(0.7, 1.005)
        cover.axhline(0.95, color="#1c1e21", linewidth=0.8)
        cover.set_xlabel("labelled queries")
    axes[0][0].set_ylabel("mean width, DCG@10")
    axes[1][0].set_ylabel("coverage of the population mean")
    figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return figure


def _own_goal(axes, rows: list[dict]) -> None:
    """CRC against the mean of the unlabelled queries, which it is meant for."""
    _, colour, _, size = LOOKS["crc-paper"]
    points = sorted(
        (r["n"], max(r["coverage"], 0.7)) for r in rows if r["method"] == "crc-paper, unlabelled"
    )
    axes.plot(*zip(*points, strict=True), color=colour, linestyle=":", linewidth=size)
