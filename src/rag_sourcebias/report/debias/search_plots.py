"""The curves of a search: Relative Δ and quality against the weight ([K] Fig. 8 and 9).

Weights stand evenly spaced, because they span orders of magnitude and begin at 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rag_sourcebias.report.debias.names import (
    delta_ends,
    loss,
    quality_names,
    weight_text,
)
from rag_sourcebias.report.format import interval, score
from rag_sourcebias.report.svg import COLOURS, canvas, draw_legend, plain_axes, render, style
from rag_sourcebias.types.debias import DebiasPoint, DebiasSearch
from rag_sourcebias.types.debias_report import DebiasReport
from rag_sourcebias.types.intervals import Interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["search_quality_plot", "search_skew_plot", "searched_name"]

_LEVEL_TICKS = 8
_LOOKS = (("human-only", "baseline", "o"), ("llm-only", "other", "^"), ("mixed", "even", "s"))


def searched_name(report: DebiasReport) -> str:
    """Return what was searched over."""
    return report.searched or "weight"


def search_skew_plot(report: DebiasReport, search: DebiasSearch, *, uid: str) -> str:
    """Relative Δ against the weight, with the target, the crossing and the chosen weight."""
    places = range(len(search.points))
    with style():
        figure, axes = canvas(3.9)
        axes.axhspan(
            search.target - report.config.tolerance,
            search.target + report.config.tolerance,
            color=COLOURS["grid"],
            alpha=0.55,
            linewidth=0,
            zorder=0,
        )
        axes.axhline(search.target, color=COLOURS["ink"], linewidth=1.1, dashes=(4, 3), zorder=1)
        _crossing(axes, search)
        values = [p.relative_delta.estimate for p in search.points]
        axes.plot(places, values, color=COLOURS["baseline"], linewidth=1.4, zorder=2)
        for x, point in zip(places, search.points, strict=True):
            _upright(axes, x, point.relative_delta, side="baseline")
            _mark(axes, x, values[x], "baseline", "o", solid=point.admitted)
            if point.weight == search.chosen:
                _ring(axes, x, values[x])
        _weights(axes, report, search)
        axes.set_ylabel("Relative Δ")
        draw_legend(axes, _skew_key(search), columns=2)
        return render(
            figure,
            uid=uid,
            title=f"Relative Δ against {searched_name(report)}",
            description=" ".join(_say_skew(search, p) for p in search.points),
        )


def search_quality_plot(report: DebiasReport, search: DebiasSearch, *, uid: str) -> str:
    """The three qualities against the weight, each with the least that is accepted."""
    names = quality_names(report)
    with style():
        figure, axes = canvas(3.9)
        for shift, (quality, side, marker) in zip((-0.12, 0.0, 0.12), _LOOKS, strict=True):
            found = [_of(p, quality) for p in search.points]
            places = [i + shift for i in range(len(found))]
            values = [100 * f.estimate for f in found]
            axes.plot(places, values, color=COLOURS[side], linewidth=1.4, zorder=2)
            for x, value, quantity in zip(places, values, found, strict=True):
                _upright(axes, x, quantity, side=side, scale=100)
                _mark(axes, x, value, side, marker)
            least = values[0] * (1 - search.relative_margin)
            axes.plot(
                [places[0], places[-1]], [least, least], color=COLOURS[side], ls=":", linewidth=1.2
            )
        for x, point in enumerate(search.points):
            if point.weight == search.chosen:
                axes.axvspan(x - 0.3, x + 0.3, color=COLOURS["grid"], alpha=0.55, linewidth=0)
        _weights(axes, report, search)
        axes.set_ylabel(f"NDCG@{report.config.quality_cutoff} ×100")
        entries = [(names[q], _look(side, marker)) for q, side, marker in _LOOKS]
        entries.append(
            (
                f"−{loss(search.relative_margin)}",
                {"color": COLOURS["muted"], "ls": ":", "linewidth": 1.2},
            )
        )
        draw_legend(axes, entries, columns=2)
        return render(
            figure,
            uid=uid,
            title=f"Quality against {searched_name(report)}",
            description=" ".join(_say_quality(names, p) for p in search.points),
        )


def _of(point: DebiasPoint, quality: str) -> Interval:
    found: Interval = getattr(point, quality.replace("-", "_"))
    return found


def _look(side: str, marker: str, *, solid: bool = True) -> dict[str, Any]:
    return {
        "color": COLOURS[side],
        "marker": marker,
        "markersize": 6.5,
        "markeredgewidth": 1.5,
        "markerfacecolor": COLOURS[side if solid else "paper"],
        "linestyle": "-",
        "linewidth": 1.4,
    }


def _mark(axes: Axes, x: float, y: float, side: str, marker: str, *, solid: bool = True) -> None:
    look = {**_look(side, marker, solid=solid), "linestyle": "none"}
    axes.plot([x], [y], **look, zorder=4)


def _upright(axes: Axes, x: float, found: Interval, *, side: str, scale: float = 1.0) -> None:
    ends = [scale * found.lower, scale * found.upper]
    axes.plot([x, x], ends, color=COLOURS[side], linewidth=2.0, solid_capstyle="butt", zorder=3)


def _ring_look() -> dict[str, Any]:
    return {
        "marker": "o",
        "markersize": 15,
        "markerfacecolor": "none",
        "markeredgewidth": 1.6,
        "color": COLOURS["ink"],
        "linestyle": "none",
    }


def _ring(axes: Axes, x: float, y: float) -> None:
    axes.plot([x], [y], **_ring_look(), zorder=5)


def place_of(weight: float, weights: Sequence[float]) -> float:
    """Return where a weight stands on the evenly spaced axis, linear between neighbours."""
    return float(np.interp(weight, weights, np.arange(len(weights))))


def _crossing(axes: Axes, search: DebiasSearch) -> None:
    found = search.zero_crossing
    if found is None:
        return
    weights = [p.weight for p in search.points]
    low, middle, high = (place_of(v, weights) for v in (found.lower, found.estimate, found.upper))
    axes.axvspan(low, high, color=COLOURS["other"], alpha=0.13, linewidth=0, zorder=0)
    axes.axvline(middle, color=COLOURS["other"], linewidth=1.4, linestyle=":", zorder=1)


def _weights(axes: Axes, report: DebiasReport, search: DebiasSearch) -> None:
    labels = [weight_text(p.weight) for p in search.points]
    crowded = len(labels) > _LEVEL_TICKS
    axes.set_xticks(
        range(len(labels)),
        labels,
        rotation=55 if crowded else 0,
        ha="right" if crowded else "center",
        rotation_mode="anchor",
    )
    axes.set_xlim(-0.45, len(labels) - 0.55)
    axes.set_xlabel(f"{searched_name(report)} (evenly spaced)")
    plain_axes(axes, grid="y")


def _skew_key(search: DebiasSearch) -> list[tuple[str, dict[str, Any]]]:
    entries = []
    if any(p.admitted for p in search.points):
        entries.append(("admitted", _look("baseline", "o")))
    if any(not p.admitted for p in search.points):
        entries.append(("refused", _look("baseline", "o", solid=False)))
    if search.chosen is not None:
        entries.append(("chosen", _ring_look()))
    if search.zero_crossing is not None:
        entries.append(
            ("meets the target", {"color": COLOURS["other"], "ls": ":", "linewidth": 1.4})
        )
    return entries


def _say_skew(search: DebiasSearch, point: DebiasPoint) -> str:
    what = "" if point.admitted else ", refused"
    if point.weight == search.chosen:
        what = ", chosen"
    return f"{weight_text(point.weight)}: {delta_ends(point.relative_delta)}{what}."


def _say_quality(names: dict[str, str], point: DebiasPoint) -> str:
    cells = [
        f"{names[q]} {score(_of(point, q).estimate)} {interval(_of(point, q), scale=100)}"
        for q, _, _ in _LOOKS
    ]
    return f"{weight_text(point.weight)}: {', '.join(cells)}."
