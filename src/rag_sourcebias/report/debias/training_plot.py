"""Relative Δ, losses and the share of positive hinges over the steps of training runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from rag_sourcebias.report.debias.names import weight_text
from rag_sourcebias.report.debias.skew_plot import draw_target
from rag_sourcebias.report.format import MISSING, delta, number
from rag_sourcebias.report.svg import COLOURS, WIDTH, draw_legend, plain_axes, render, style
from rag_sourcebias.types.debias_report import DebiasConfig, DebiasReport
from rag_sourcebias.types.debias_training import TrainingHistory, TrainingPoint

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["has_curves", "run_groups", "training_plot"]

_SEEDS = (("baseline", "o"), ("even", "s"), ("other", "^"))
_PANEL = 1.75

Value = Callable[[TrainingPoint], float | None]


def run_groups(
    training: Sequence[TrainingHistory],
) -> list[tuple[str, float, tuple[TrainingHistory, ...]]]:
    """Return (system, weight, runs) of every setting that was trained, runs by seed."""
    found: dict[tuple[str, float], list[TrainingHistory]] = {}
    for run in training:
        found.setdefault((run.name, run.debias_weight), []).append(run)
    return [
        (name, weight, tuple(sorted(runs, key=lambda r: r.seed)))
        for (name, weight), runs in found.items()
    ]


def _panels() -> tuple[tuple[str, tuple[tuple[Value, str], ...]], ...]:
    return (
        ("Relative Δ", ((lambda p: p.relative_delta, "-"),)),
        (
            "mean loss",
            (
                (lambda p: p.rank_loss, "-"),
                (lambda p: p.debias_loss, "--"),
            ),
        ),
        ("hinge > 0, %", ((lambda p: _percent(p.hinge_share), "-"),)),
    )


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share


def _recorded(
    runs: Sequence[TrainingHistory],
) -> list[tuple[str, tuple[tuple[Value, str], ...]]]:
    return [
        (label, curves)
        for label, curves in _panels()
        if any(value(p) is not None for value, _ in curves for r in runs for p in r.points)
    ]


def has_curves(runs: Sequence[TrainingHistory]) -> bool:
    """Whether anything was recorded that could be drawn."""
    return bool(_recorded(runs))


def training_plot(report: DebiasReport, runs: Sequence[TrainingHistory], *, uid: str) -> str:
    """Draw one panel per quantity that was recorded, one line per seed."""
    panels = _recorded(runs)
    with style():
        from matplotlib.figure import Figure

        figure = Figure(figsize=(WIDTH, 1.1 + _PANEL * len(panels)), layout="constrained")
        every = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
        for axes, (label, curves) in zip(every, panels, strict=True):
            _panel(axes, report.config, runs, label, curves)
        entries = [(f"seed {r.seed}", _look(i)) for i, r in enumerate(runs[: len(_SEEDS)])]
        if any(label == "mean loss" for label, _ in panels):
            muted = {"color": COLOURS["muted"], "linewidth": 1.5}
            entries += [
                ("ranking loss", {**muted, "ls": "-"}),
                ("debias loss × weight", {**muted, "ls": "--"}),
            ]
        draw_legend(every[0], entries, columns=2)
        every[-1].set_xlabel("step")
        return render(
            figure,
            uid=uid,
            title=f"Training of {runs[0].name}, weight {weight_text(runs[0].debias_weight)}",
            description=" ".join(_describe(r) for r in runs),
        )


def _look(place: int) -> dict[str, Any]:
    side, marker = _SEEDS[place % len(_SEEDS)]
    return {"color": COLOURS[side], "marker": marker, "markersize": 4.5, "linewidth": 1.5}


def _panel(
    axes: Axes,
    config: DebiasConfig,
    runs: Sequence[TrainingHistory],
    label: str,
    curves: Sequence[tuple[Value, str]],
) -> None:
    if label == "Relative Δ":
        draw_target(axes, config, upright=False)
    for place, run in enumerate(runs):
        for value, line in curves:
            known = [(p.step, y) for p in run.points if (y := value(p)) is not None]
            if known:
                steps, heights = zip(*known, strict=True)
                axes.plot(steps, heights, ls=line, **_look(place))
    if label != "Relative Δ":
        axes.set_ylim(bottom=0)
    axes.set_ylabel(label)
    plain_axes(axes, grid="y")


def _describe(run: TrainingHistory) -> str:
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
