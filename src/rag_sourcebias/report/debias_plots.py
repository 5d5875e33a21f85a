"""Pictures of a mitigation: skew and quality before and after, the search, the training."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from rag_sourcebias.errors import DataError
from rag_sourcebias.report.debias_words import (
    DebiasVerdict,
    QualityKind,
    change_ends,
    data_name,
    delta_ends,
    loss,
    percent_ends,
    quality_names,
    significant,
    verdicts,
    weight_text,
)
from rag_sourcebias.report.format import (
    MISSING,
    delta,
    interval,
    number,
    score,
    short_names,
    shorten,
)
from rag_sourcebias.report.plots import draw_heading
from rag_sourcebias.report.rows_plot import Picture, PlotGroup, PlotRow
from rag_sourcebias.report.svg import (
    COLOURS,
    WIDTH,
    canvas,
    draw_interval,
    draw_legend,
    plain_axes,
    render,
    style,
)
from rag_sourcebias.types.debias import DebiasPoint, DebiasSearch
from rag_sourcebias.types.debias_report import (
    DebiasDataset,
    DebiasOutcome,
    DebiasReport,
    QualityChange,
    SkewChange,
)
from rag_sourcebias.types.debias_training import TrainingHistory, TrainingPoint
from rag_sourcebias.types.intervals import Interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "has_curves",
    "place_of",
    "quality_pictures",
    "search_quality_plot",
    "search_skew_plot",
    "skew_limits",
    "skew_plot",
    "training_plot",
]

_NARROWEST = 10.0  # points of Relative Δ on either side of the target
_OFFSET = 0.19  # of before and after from the middle of their row
_LEVEL_TICKS = 8  # weights whose names stand level under the axis
_PANEL = 1.75  # inches
_RING: dict[str, Any] = {
    "marker": "o",
    "markersize": 15,
    "markerfacecolor": "none",
    "markeredgewidth": 1.6,
    "color": COLOURS["ink"],
    "linestyle": "none",
}


def _look(side: str, marker: str, *, solid: bool = True, **also: Any) -> dict[str, Any]:  # noqa: ANN401
    return {
        "color": COLOURS[side],
        "marker": marker,
        "markersize": 7,
        "markeredgewidth": 1.6,
        "markerfacecolor": COLOURS[side if solid else "paper"],
        **also,
    }


def _draw_target(axes: Axes, target: float, tolerance: float, *, upright: bool = False) -> None:
    """Draw the target as a dashed line and its tolerance as a band."""
    band, line = (axes.axvspan, axes.axvline) if upright else (axes.axhspan, axes.axhline)
    low, high = target - tolerance, target + tolerance
    band(low, high, color=COLOURS["grid"], alpha=0.55, linewidth=0, zorder=0)
    line(target, color=COLOURS["ink"], linewidth=1.1, dashes=(4, 3), zorder=1)


# Relative Δ before and after. Hollow grey squares stand for the unchanged system, blue circles for
# the changed one, filled where the change is significant.


def skew_limits(report: DebiasReport) -> tuple[float, float]:
    """Return the ends of a scale that holds every estimate, and every interval that is not wild.

    Intervals at cutoffs below the one that decides may be so wide that nothing else could be seen:
    they may leave the picture.
    """
    config = report.config
    values = [0.0, config.target - _NARROWEST, config.target + _NARROWEST]
    for change in (s for d in report.datasets for o in d.outcomes for s in o.skew):
        for found in (change.before, change.after):
            if found is not None:
                steady = change.cutoff >= config.skew_cutoff
                values += [found.lower, found.upper] if steady else [found.estimate]
    margin = 0.04 * (max(values) - min(values))
    return max(-210.0, min(values) - margin), min(210.0, max(values) + margin)


def skew_plot(
    report: DebiasReport, dataset: DebiasDataset, limits: tuple[float, float], uid: str
) -> str:
    """Relative Δ before and after with intervals, the target's tolerance as a band.

    Raises
    ------
    DataError
        If the data set has no system.
    """
    if not dataset.outcomes:
        raise DataError(f"no system was measured on {dataset.data.name!r}")
    config, shown = report.config, dataset.outcomes[1:] or dataset.outcomes
    with style():
        n_rows = sum(len(o.skew) for o in shown)
        figure, axes = canvas(1.15 + 0.36 * n_rows + 0.43 * len(shown))
        y, ticks = 0.0, []
        for outcome in shown:
            y += 0.55
            draw_heading(axes, y, outcome.name)
            y += 0.85
            for change in outcome.skew:
                _draw_change(axes, change, y, solid=significant(report, change))
                ticks.append((y, change.cutoff))
                y += 1.0
        _draw_target(axes, config.target, config.tolerance, upright=True)
        axes.set(xlim=limits, ylim=(y - 0.4, 0.1))
        axes.set_yticks([at for at, _ in ticks], [f"@{cutoff}" for _, cutoff in ticks])
        for label, (_, cutoff) in zip(axes.get_yticklabels(), ticks, strict=True):
            label.set_fontweight("bold" if cutoff == config.skew_cutoff else "normal")
        axes.locator_params(axis="x", nbins=8)
        names = short_names((config.baseline_source, dataset.other)).values()
        base, other = (shorten(name, 20) for name in names)
        axes.set_xlabel(f"← {other} higher  |  {base} higher →")
        key = [
            ("before", _look("even", "s", solid=False, linewidth=2.2)),
            ("after (filled: significant)", _look("baseline", "o", linewidth=2.2)),
        ]
        if len(dataset.outcomes) < 2:
            key = [("as it is", _look("baseline", "o", solid=False, linewidth=2.2))]
        draw_legend(axes, key, columns=2)
        plain_axes(axes, grid="x")
        return render(
            figure,
            uid=uid,
            title=f"Relative Δ before and after on {data_name(report, dataset)}",
            description=" ".join(_say_outcome(report, o) for o in shown),
        )


def _draw_change(axes: Axes, change: SkewChange, y: float, *, solid: bool) -> None:
    before, after = change.before, change.after
    if (
        before is not None
        and after is not None
        and not math.isclose(before.estimate, after.estimate)
    ):
        axes.annotate(
            "",
            (after.estimate, y + _OFFSET),
            (before.estimate, y - _OFFSET),
            arrowprops={
                "arrowstyle": "->",
                "color": COLOURS["muted"],
                "linewidth": 1.0,
                "shrinkA": 4,
                "shrinkB": 5,
            },
            zorder=1.5,
        )
    if before is not None:
        draw_interval(axes, before, y - _OFFSET, side="even", marker="s", solid=False)
    if after is not None:
        place = y if before is None else y + _OFFSET
        draw_interval(axes, after, place, side="baseline", marker="o", solid=solid)
    else:
        axes.text(
            0.99,
            y + _OFFSET,
            "no interval",
            transform=axes.get_yaxis_transform(),
            ha="right",
            va="center",
            color=COLOURS["muted"],
            fontsize=11.5,
        )


def _say_outcome(report: DebiasReport, outcome: DebiasOutcome) -> str:
    cells = [
        f"@{s.cutoff} {'' if s.before is None else delta_ends(s.before) + ' to '}"
        f"{delta_ends(s.after)}{', significant' if significant(report, s) else ''}"
        for s in outcome.skew
    ]
    return f"{outcome.name}: {'; '.join(cells)}."


# Change of every quality in percent, with its interval and the bound of its test

_KEYS: dict[QualityKind, tuple[str, Any, bool]] = {
    "kept": ("loss excluded", "baseline", True),
    "open": ("not excluded", "even", False),
    "unknown": ("not excluded", "even", False),
    "lost": ("loss shown", "other", True),
}


def quality_pictures(report: DebiasReport) -> list[Picture]:
    """Return a forest plot of every data set that has measured qualities."""
    c, pictures = report.config, []
    for dataset in report.datasets:
        known = [
            (verdict, rows)
            for verdict in verdicts(report)
            if verdict.dataset is dataset
            and (rows := [(q, kind) for q, kind in verdict.quality if q.relative is not None])
        ]
        kinds = {kind for _, rows in known for _, kind in rows}
        name, measure = data_name(report, dataset), f"NDCG@{c.quality_cutoff}"
        picture = Picture(
            caption=name,
            groups=tuple(
                PlotGroup(name=v.system, rows=tuple(_quality_row(v, *row) for row in rows))
                for v, rows in known
            ),
            title=f"Change of {measure} on {name}",
            description=" ".join(
                f"{v.system}: {'; '.join(_say_quality(v, q) for q, _ in rows)}."
                for v, rows in known
            ),
            xlabel=f"change of {measure}, %",
            line=0.0,
            limit=-100 * c.relative_margin,
            keys=tuple(dict.fromkeys(key for kind, key in _KEYS.items() if kind in kinds)),
        )
        pictures += [picture] * bool(known)
    return pictures


def _quality_row(verdict: DebiasVerdict, found: QualityChange, kind: QualityKind) -> PlotRow:
    _, side, solid = _KEYS[kind]
    return PlotRow(
        name=quality_names(verdict.report)[found.quality],
        estimate=found.relative or 0.0,
        ends=change_ends(found),
        side=side,
        solid=solid,
        ticks=() if found.test is None else (max(found.test.lower, -100.0),),
    )


def _say_quality(verdict: DebiasVerdict, found: QualityChange) -> str:
    text = f"{quality_names(verdict.report)[found.quality]} {percent_ends(found)}"
    if (test := found.test) is None:
        return f"{text}, not tested"
    verb = "excluded" if test.passed else "not excluded"
    return f"{text}, bound {number(test.lower)}%, a loss of {loss(test.relative_margin)} {verb}"


# The curves of a search: Relative Δ and quality against the weight ([K] Fig. 8 and 9). Weights
# stand evenly spaced, because they span orders of magnitude and begin at 0.

_QUALITIES = (("human-only", "baseline", "o"), ("llm-only", "other", "^"), ("mixed", "even", "s"))


def search_skew_plot(report: DebiasReport, search: DebiasSearch, uid: str) -> str:
    """Relative Δ against the weight, with the target, the crossing and the chosen weight."""
    points = search.points
    values = [p.relative_delta.estimate for p in points]
    with style():
        figure, axes = canvas(3.9)
        _draw_target(axes, search.target, report.config.tolerance)
        if (met := search.zero_crossing) is not None:
            weights = [p.weight for p in points]
            low, at, high = (place_of(w, weights) for w in (met.lower, met.estimate, met.upper))
            axes.axvspan(low, high, color=COLOURS["other"], alpha=0.13, linewidth=0, zorder=0)
            axes.axvline(at, color=COLOURS["other"], linewidth=1.4, linestyle=":", zorder=1)
        axes.plot(range(len(points)), values, color=COLOURS["baseline"], linewidth=1.4, zorder=2)
        for x, point in enumerate(points):
            mark = _look("baseline", "o", solid=point.admitted)
            _draw_upright(axes, x, point.relative_delta, mark)
            if point.weight == search.chosen:
                axes.plot([x], [values[x]], **_RING, zorder=5)
        _draw_weights(axes, report, search)
        axes.set_ylabel("Relative Δ")
        draw_legend(axes, _search_key(search), columns=2)
        return render(
            figure,
            uid=uid,
            title=f"Relative Δ against {report.searched or 'weight'}",
            description=" ".join(_say_point(search, p) for p in points),
        )


def search_quality_plot(report: DebiasReport, search: DebiasSearch, uid: str) -> str:
    """The three qualities against the weight, each with the least that is accepted."""
    names, points = quality_names(report), search.points
    with style():
        figure, axes = canvas(3.9)
        key: list[tuple[str, dict[str, Any]]] = []
        dotted: dict[str, Any] = {"ls": ":", "linewidth": 1.2}
        for shift, (quality, side, marker) in zip((-0.12, 0.0, 0.12), _QUALITIES, strict=True):
            found = [_quality_of(p, quality) for p in points]
            places = [i + shift for i in range(len(found))]
            values = [100 * f.estimate for f in found]
            axes.plot(places, values, color=COLOURS[side], linewidth=1.4, zorder=2)
            for x, quantity in zip(places, found, strict=True):
                _draw_upright(axes, x, quantity, _look(side, marker), scale=100)
            least = values[0] * (1 - search.relative_margin)
            axes.plot([places[0], places[-1]], [least, least], color=COLOURS[side], **dotted)
            key.append((names[quality], _look(side, marker, linewidth=1.4)))
        for x, point in enumerate(points):
            if point.weight == search.chosen:
                axes.axvspan(x - 0.3, x + 0.3, color=COLOURS["grid"], alpha=0.55, linewidth=0)
        _draw_weights(axes, report, search)
        axes.set_ylabel(f"NDCG@{report.config.quality_cutoff} ×100")
        key.append((f"−{loss(search.relative_margin)}", {"color": COLOURS["muted"], **dotted}))
        draw_legend(axes, key, columns=2)
        return render(
            figure,
            uid=uid,
            title=f"Quality against {report.searched or 'weight'}",
            description=" ".join(_say_qualities(names, p) for p in points),
        )


def place_of(weight: float, weights: Sequence[float]) -> float:
    """Return where a weight stands on the evenly spaced axis, linear between neighbours."""
    return float(np.interp(weight, weights, np.arange(len(weights))))


def _quality_of(point: DebiasPoint, quality: str) -> Interval:
    found: Interval = getattr(point, quality.replace("-", "_"))
    return found


def _draw_upright(
    axes: Axes, x: float, found: Interval, mark: dict[str, Any], *, scale: float = 1.0
) -> None:
    """Draw an interval as an upright line with a mark on it."""
    ends = [scale * found.lower, scale * found.upper]
    look = {"color": mark["color"], "linewidth": 2.0, "solid_capstyle": "butt"}
    axes.plot([x, x], ends, **look, zorder=3)
    axes.plot([x], [scale * found.estimate], **mark, linestyle="none", zorder=4)


def _draw_weights(axes: Axes, report: DebiasReport, search: DebiasSearch) -> None:
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
    axes.set_xlabel(f"{report.searched or 'weight'} (evenly spaced)")
    plain_axes(axes, grid="y")


def _search_key(search: DebiasSearch) -> list[tuple[str, dict[str, Any]]]:
    crossing = {"color": COLOURS["other"], "ls": ":", "linewidth": 1.4}
    key = (
        ("admitted", _look("baseline", "o"), any(p.admitted for p in search.points)),
        (
            "refused",
            _look("baseline", "o", solid=False),
            not all(p.admitted for p in search.points),
        ),
        ("chosen", _RING, search.chosen is not None),
        ("meets the target", crossing, search.zero_crossing is not None),
    )
    return [(text, look) for text, look, needed in key if needed]


def _say_point(search: DebiasSearch, point: DebiasPoint) -> str:
    what = "" if point.admitted else ", refused"
    if point.weight == search.chosen:
        what = ", chosen"
    return f"{weight_text(point.weight)}: {delta_ends(point.relative_delta)}{what}."


def _say_qualities(names: dict[str, str], point: DebiasPoint) -> str:
    found = [(names[quality], _quality_of(point, quality)) for quality, _, _ in _QUALITIES]
    cells = [f"{name} {score(q.estimate)} {interval(q, scale=100)}" for name, q in found]
    return f"{weight_text(point.weight)}: {', '.join(cells)}."


# Relative Δ, losses and the share of positive hinges over the steps of training runs

_SEEDS = (("baseline", "o"), ("even", "s"), ("other", "^"))
_Value: TypeAlias = Callable[[TrainingPoint], float | None]
_Curves: TypeAlias = tuple[tuple[_Value, str], ...]
#: What is on the axis, whether it has a target, and its curves with their lines.
_PANELS: tuple[tuple[str, bool, _Curves], ...] = (
    ("Relative Δ", True, ((lambda p: p.relative_delta, "-"),)),
    ("mean loss", False, ((lambda p: p.rank_loss, "-"), (lambda p: p.debias_loss, "--"))),
    (
        "hinge > 0, %",
        False,
        ((lambda p: None if p.hinge_share is None else 100 * p.hinge_share, "-"),),
    ),
)


def _recorded(runs: Sequence[TrainingHistory]) -> list[tuple[str, bool, _Curves]]:
    return [
        panel
        for panel in _PANELS
        if any(value(p) is not None for value, _ in panel[2] for r in runs for p in r.points)
    ]


def has_curves(runs: Sequence[TrainingHistory]) -> bool:
    """Whether anything was recorded that could be drawn."""
    return bool(_recorded(runs))


def training_plot(report: DebiasReport, runs: Sequence[TrainingHistory], uid: str) -> str:
    """Draw one panel per quantity that was recorded, one line per seed."""
    panels, config = _recorded(runs), report.config
    looks = [
        {**_look(side, marker, linewidth=1.5), "markersize": 4.5, "markeredgewidth": 1.0}
        for side, marker in _SEEDS
    ]
    with style():
        from matplotlib.figure import Figure

        figure = Figure(figsize=(WIDTH, 1.1 + _PANEL * len(panels)), layout="constrained")
        every = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
        for axes, (label, has_target, curves) in zip(every, panels, strict=True):
            for place, run in enumerate(runs):
                for value, line in curves:
                    known = [(p.step, y) for p in run.points if (y := value(p)) is not None]
                    steps, heights = [x for x, _ in known], [y for _, y in known]
                    axes.plot(steps, heights, ls=line, **looks[place % len(looks)])
            if has_target:
                _draw_target(axes, config.target, config.tolerance)
            else:
                axes.set_ylim(bottom=0)
            axes.set_ylabel(label)
            plain_axes(axes, grid="y")
        key = [(f"seed {run.seed}", look) for run, look in zip(runs, looks, strict=False)]
        if any(len(curves) > 1 for _, _, curves in panels):
            muted = {"color": COLOURS["muted"], "linewidth": 1.5}
            key.append(("ranking loss", {**muted, "ls": "-"}))
            key.append(("debias loss × weight", {**muted, "ls": "--"}))
        draw_legend(every[0], key, columns=2)
        every[-1].set_xlabel("step")
        return render(
            figure,
            uid=uid,
            title=f"Training of {runs[0].name}, weight {weight_text(runs[0].debias_weight)}",
            description=" ".join(map(_say_run, runs)),
        )


def _say_run(run: TrainingHistory) -> str:
    cells = []
    for p in run.points:
        parts = [f"Relative Δ {delta(p.relative_delta)}"] if p.relative_delta is not None else []
        for name, value in (("ranking loss", p.rank_loss), ("debias loss", p.debias_loss)):
            if value is not None:
                parts.append(f"{name} {number(value, digits=3)}")
        if p.hinge_share is not None:
            parts.append(f"hinge positive {number(100 * p.hinge_share)}%")
        cells.append(f"step {p.step}: {', '.join(parts) or MISSING}")
    return f"Seed {run.seed}: {'; '.join(cells) or 'nothing was recorded'}."
