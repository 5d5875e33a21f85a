"""The plots of the coverage page, as small SVG files."""

from __future__ import annotations

import io
import re
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

# colour-blind safe; the default method is the heavy line
LOOKS = {
    "regression": ("#0b62a8", "-", 2.4),
    "labels": ("#5b6068", "--", 1.4),
    "bca": ("#9aa0a8", ":", 1.4),
    "studentized": ("#b7b1a5", "-.", 1.4),
    "bootstrap": ("#8a6d3b", ":", 1.4),
    "ppi": ("#c98500", "-.", 1.4),
    "ppi++": ("#7b3fa0", "--", 1.4),
    "ppi-crossfit": ("#c277c9", ":", 1.4),
    "ppi-paper": ("#b34700", "-", 1.6),
    "crc-paper": ("#1b7f5c", "-", 1.6),
}
NAMES = {
    "regression": "regression (default)",
    "labels": "labels alone (t)",
    "bca": "labels, BCa bootstrap",
    "studentized": "labels, bootstrap t",
    "bootstrap": "labels, bootstrap [R]",
    "ppi": "PPI, λ = 1",
    "ppi++": "PPI++",
    "ppi-crossfit": "PPI, cross-fitted",
    "ppi-paper": "PPI [R]",
    "crc-paper": "CRC [R], M → ∞",
}
TITLES = {
    "TREC-DL": "simulated, TREC-DL",
    "Robust04": "simulated, Robust04",
    "dl19_dl20_bm25_umbrela3votes": "DL19+20, three judges' votes",
    "dl20_bm25_promptdist": "DL20, votes of 54 prompts",
}
SHOWN = 3  # sources in the larger plots; all are in the results
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


def draw(folder: Path, figures: dict, real: dict | None) -> None:
    """Write every plot."""
    with mpl.rc_context(STYLE):
        save(labels_figure(figures["figure 2"]), folder / "coverage-labels.svg")
        save(judges_figure(figures["figure 3"]), folder / "coverage-judges.svg")
        save(gains_figure(figures["figure 1"]), folder / "coverage-gains.svg")
        save(queries_figure(figures["figure 4"]), folder / "coverage-queries.svg")
        if real is not None:
            save(sets_figure(real["sets"]), folder / "coverage-real.svg")


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
        for method, (colour, line, size) in LOOKS.items():
            points = sorted(
                (r["n"], r["width"], r["coverage"]) for r in mine if r["method"] == method
            )
            n, widths, coverages = zip(*points, strict=True)
            look = {"color": colour, "linestyle": line, "linewidth": size}
            width.plot(n, widths, label=NAMES[method], **look)
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
    colour, _, size = LOOKS["crc-paper"]
    points = sorted(
        (r["n"], max(r["coverage"], 0.7)) for r in rows if r["method"] == "crc-paper, unlabelled"
    )
    axes.plot(*zip(*points, strict=True), color=colour, linestyle=":", linewidth=size)


def judges_figure(rows: list[dict]) -> Figure:
    """Width and coverage with worse and better judges ([R] Fig. 3)."""
    sources = list(dict.fromkeys(row["source"] for row in rows))[:SHOWN]
    figure = Figure(figsize=(3.1 * len(sources), 10.4), layout="constrained")
    axes = figure.subplots(4, len(sources), squeeze=False)
    for column, source in enumerate(sources):
        for block, kind in enumerate(("adversarial", "oracle")):
            width, cover = axes[2 * block][column], axes[2 * block + 1][column]
            mine = [r for r in rows if (r["source"], r["kind"]) == (source, kind)]
            for method in ("regression", "labels", "ppi++", "ppi-paper", "crc-paper"):
                points = sorted(
                    (r["strength"], r["width"], r["coverage"])
                    for r in mine
                    if r["method"] == method
                )
                strength, widths, coverages = zip(*points, strict=True)
                colour, line, size = LOOKS[method]
                look = {"color": colour, "linestyle": line, "linewidth": size}
                width.plot(strength, widths, label=NAMES[method], **look)
                cover.plot(strength, [max(value, 0.7) for value in coverages], **look)
            width.set_ylim(bottom=0)
            cover.set_ylim(0.7, 1.005)
            cover.axhline(0.95, color="#1c1e21", linewidth=0.8)
            cover.set_xlabel("β, adversarial judge" if kind == "adversarial" else "τ, oracle judge")
        axes[0][column].set_title(TITLES[source])
    for row in range(4):
        axes[row][0].set_ylabel("coverage" if row % 2 else "mean width, DCG@10")
    figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=5)
    return figure


def gains_figure(curves: dict) -> Figure:
    """Expected gain against λ ([R] Fig. 1)."""
    figure = Figure(figsize=(5.2, 3.2), layout="constrained")
    axes = figure.subplots()
    looks = zip(("#0b62a8", "#b34700", "#5b6068"), ("-", "--", "-."), strict=True)
    for (name, gain), (colour, line) in zip(curves["gain"].items(), looks, strict=True):
        axes.plot(curves["lambda"], gain, label=name, color=colour, linestyle=line, linewidth=1.8)
    axes.set_xlabel("λ")
    axes.set_ylabel("gain expected of a document")
    axes.legend(title="judge's distribution")
    return figure


def queries_figure(panels: dict) -> Figure:
    """Intervals of single queries, sorted by their true DCG@10 ([R] Fig. 4)."""
    names = list(panels)[:SHOWN]
    columns = len(panels[names[0]])
    figure = Figure(figsize=(2.6 * columns, 2.1 * len(names)), layout="constrained")
    axes = figure.subplots(len(names), columns, squeeze=False, sharex="row", sharey="row")
    for line, name in enumerate(names):
        for column, panel in enumerate(panels[name]):
            _query_panel(axes[line][column], panel)
            axes[line][column].set_title(f"τ = {panel['strength']:g}" if line == 0 else "")
        axes[line][0].set_ylabel(f"{TITLES[name]}\nDCG@10", fontsize=8)
    for column in range(columns):
        axes[-1][column].set_xlabel("queries by true DCG@10")
    figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return figure


def _query_panel(axes, panel: dict) -> None:
    rows = list(zip(panel["lower"], panel["upper"], panel["truth"], strict=True))
    for held, colour, name in ((True, "#8fb8dc", "covered"), (False, "#d1495b", "not covered")):
        chosen = [
            (i, low, high)
            for i, (low, high, truth) in enumerate(rows)
            if (low - 1e-9 <= truth <= high + 1e-9) == held
        ]
        if chosen:
            place, low, high = zip(*chosen, strict=True)
            axes.vlines(place, low, high, color=colour, linewidth=1.6, label=name, rasterized=True)
        else:
            axes.vlines([], [], [], color=colour, linewidth=1.6, label=name)
    axes.plot(panel["truth"], color="#1c1e21", linewidth=1.2, label="human", rasterized=True)
    axes.plot(panel["judge"], ".", color="#b34700", markersize=2.6, label="judge", rasterized=True)


def sets_figure(rows: list[dict]) -> Figure:
    """Coverage of every resampled set: default, labels alone, PPI [R]."""
    figure = Figure(figsize=(9.6, 3.6), layout="constrained")
    panels = figure.subplots(1, 3, sharey=True)
    for axes, method in zip(panels, ("regression", "labels", "ppi-paper"), strict=True):
        chosen = [
            r
            for r in rows
            if (r["method"], r["target"], r["scale"]) == (method, "population", False)
        ]
        sizes = sorted({r["n"] for r in chosen})
        for place, n in enumerate(sizes):
            values = sorted(max(r["coverage"], 0.7) for r in chosen if r["n"] == n)
            spread = [place + 0.6 * (i / max(len(values) - 1, 1) - 0.5) for i in range(len(values))]
            axes.plot(spread, values, ".", color=LOOKS[method][0], markersize=4, rasterized=True)
        axes.axhline(0.95, color="#1c1e21", linewidth=0.8)
        axes.axhline(0.93, color="#1c1e21", linewidth=0.8, linestyle=":")
        axes.set_xticks(range(len(sizes)), [str(n) for n in sizes])
        axes.set_xlabel("labelled items")
        axes.set_title(NAMES[method])
        axes.set_ylim(0.69, 1.01)
    panels[0].set_ylabel("coverage, one dot for each set")
    return figure
