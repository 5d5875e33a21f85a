"""Pictures of twins: their ranks, and what length has to do with it."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError
from rag_sourcebias.report.format import number, shorten
from rag_sourcebias.report.svg import COLOURS, canvas, plain_axes, render, style
from rag_sourcebias.report.view import label, names_of
from rag_sourcebias.types.reports import SkewReport, SystemSkew, TwinSkew

__all__ = ["length_plot", "twin_ranks_plot"]

FloatArray = npt.NDArray[np.float64]
_LAST_RANK = 10
_RATIOS = (
    (0.25, 0.5, 1, 2, 4),
    (0.5, 0.67, 1, 1.5, 2),
    (0.67, 0.8, 1, 1.25, 1.5),
    (0.8, 0.9, 1, 1.1, 1.25),
    (0.9, 0.95, 1, 1.05, 1.1),
    (0.95, 1, 1.05),
)


def twin_ranks_plot(report: SkewReport, system: SystemSkew, twin: TwinSkew, *, uid: str) -> str:
    """How often each version of a relevant document is found at each rank.

    Expected ranks between two whole ones (ties) count at the better rank.

    Raises
    ------
    DataError
        If there is no pair.
    """
    if twin.n_pairs == 0:
        raise DataError(f"{label(system)}: no pair of twins was retrieved")
    names = names_of(report)
    base, rival = names[twin.baseline], names[twin.other]
    heights = [_rank_shares(r) for r in (twin.baseline_rank, twin.other_rank)]
    with style():
        figure, axes = canvas(3.3)
        x = np.arange(_LAST_RANK + 1)
        axes.bar(x - 0.2, heights[0], 0.4, color=COLOURS["baseline"], label=shorten(base, 24))
        axes.bar(
            x + 0.2,
            heights[1],
            0.36,
            facecolor=COLOURS["paper"],
            edgecolor=COLOURS["other"],
            hatch="////",
            linewidth=1.2,
            label=shorten(rival, 24),
        )
        axes.set_xticks(x, [*map(str, range(1, _LAST_RANK + 1)), f">{_LAST_RANK}*"])
        axes.set_xlabel("rank in the mixed list (* or not retrieved)")
        axes.set_ylabel("share of twins, %")
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, borderaxespad=0.2)
        plain_axes(axes, grid="y")
        first = [f"{name} {number(h[0])}%" for name, h in zip((base, rival), heights, strict=True)]
        late = [f"{name} {number(h[-1])}%" for name, h in zip((base, rival), heights, strict=True)]
        return render(
            figure,
            uid=uid,
            title=f"Ranks of {twin.n_pairs} twins, {label(system)}",
            description=f"At rank 1: {', '.join(first)}. Below rank {_LAST_RANK} or not retrieved: "
            f"{', '.join(late)}.",
        )


def _rank_shares(ranks: FloatArray) -> FloatArray:
    place = np.where(np.isnan(ranks), _LAST_RANK + 1, np.floor(ranks))
    place = np.clip(place, 1, _LAST_RANK + 1).astype(np.int64)
    counted = np.bincount(place, minlength=_LAST_RANK + 2)[1:]
    shares: FloatArray = 100 * counted / len(ranks)
    return shares


def length_plot(report: SkewReport, system: SystemSkew, twin: TwinSkew, *, uid: str) -> str:
    """Whether the longer version wins: win rate over the ratio of lengths.

    Bins hold equal numbers of pairs. Bands are Wilson intervals that take pairs as independent.

    Raises
    ------
    DataError
        If the report has no text lengths.
    """
    ratio, won = twin.log_length_ratio, twin.other_above
    if len(ratio) == 0:
        raise DataError(f"{label(system)}: no text lengths are known")
    names = names_of(report)
    base, rival = names[twin.baseline], names[twin.other]
    groups = np.array_split(np.argsort(ratio, kind="stable"), max(1, min(6, len(ratio) // 20)))
    x = np.array([ratio[g].mean() for g in groups])
    bands = [_wilson(won[g], report.config.confidence_level) for g in groups]
    y = np.array([won[g].mean() for g in groups])
    with style():
        figure, axes = canvas(3.7)
        axes.axhline(50, color=COLOURS["muted"], linewidth=1)
        axes.axvline(0, color=COLOURS["muted"], linewidth=1)
        for at, (low, high) in zip(x, bands, strict=True):
            axes.plot([at, at], [100 * low, 100 * high], color=COLOURS["ink"], linewidth=2)
        axes.plot(x, 100 * y, "D-", color=COLOURS["ink"], markersize=6, linewidth=1)
        for side, mask, at in (("other", won > 0.5, 104.0), ("baseline", won < 0.5, -4.0)):
            axes.plot(
                np.repeat(ratio[mask], 3),
                np.tile([at - 2.5, at + 2.5, np.nan], int(mask.sum())),
                color=COLOURS[side],
                linewidth=0.8,
                clip_on=True,
            )
        span = max(0.1, float(np.quantile(np.abs(ratio), 0.995)) * 1.05)
        axes.set(xlim=(-span, span), ylim=(-7, 107))
        ticks = next((t for t in _RATIOS if math.log(t[-1]) < 0.95 * span), _RATIOS[-1])
        axes.set_xticks([math.log(t) for t in ticks], [f"×{t:g}" for t in ticks])
        axes.set_xlabel(f"words of {shorten(rival, 14)} text ÷ words of {shorten(base, 14)} twin")
        axes.set_ylabel(f"{shorten(rival, 18)} ranks higher, %")
        plain_axes(axes, grid="both")
        return render(
            figure,
            uid=uid,
            title=f"Length and preference, {label(system)}",
            description=" ".join(
                f"At ×{number(math.exp(at), digits=2)} the length, {rival} text ranks higher in "
                f"{number(100 * share)}% of {len(g)} pairs."
                for at, share, g in zip(x, y, groups, strict=True)
            ),
        )


def _wilson(won: FloatArray, level: float) -> tuple[float, float]:
    z, n, p = NormalDist().inv_cdf(0.5 + level / 2), len(won), float(won.mean())
    middle, spread = p + z * z / (2 * n), z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return (middle - spread) / (1 + z * z / n), (middle + spread) / (1 + z * z / n)
