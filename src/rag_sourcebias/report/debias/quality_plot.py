"""Change of every quality in percent, with its interval and the bound of its test."""

from __future__ import annotations

from typing import Literal

from rag_sourcebias.report.debias.names import (
    change_ends,
    data_name,
    loss,
    percent_ends,
    quality_names,
)
from rag_sourcebias.report.debias.verdicts import QualityKind, QualityVerdict, verdicts
from rag_sourcebias.report.format import number
from rag_sourcebias.report.rows_plot import Picture, PlotGroup, PlotRow
from rag_sourcebias.types.debias_report import DebiasDataset, DebiasReport

__all__ = ["quality_pictures"]

Side = Literal["baseline", "other", "even"]
_LOOKS: dict[QualityKind, tuple[Side, bool, str]] = {
    "kept": ("baseline", True, "loss excluded"),
    "open": ("even", False, "not excluded"),
    "unknown": ("even", False, "not excluded"),
    "lost": ("other", True, "loss shown"),
}


def quality_pictures(report: DebiasReport) -> list[Picture]:
    """Return a forest plot of every data set that has measured qualities."""
    found = []
    for dataset in report.datasets:
        groups, said, kinds = _groups(report, dataset)
        if not groups:
            continue
        found.append(
            Picture(
                caption=data_name(report, dataset),
                groups=tuple(groups),
                title=(
                    f"Change of NDCG@{report.config.quality_cutoff} on {data_name(report, dataset)}"
                ),
                description=" ".join(said),
                xlabel=f"change of NDCG@{report.config.quality_cutoff}, %",
                line=0.0,
                limit=-100 * report.config.relative_margin,
                keys=tuple(
                    dict.fromkeys((text, side, solid) for side, solid, text in map(_look, kinds))
                ),
            )
        )
    return found


def _groups(
    report: DebiasReport, dataset: DebiasDataset
) -> tuple[list[PlotGroup], list[str], list[QualityKind]]:
    groups, said, kinds = [], [], set()
    for verdict in (v for v in verdicts(report) if v.dataset is dataset):
        known = [q for q in verdict.quality if q.change.relative is not None]
        if known:
            groups.append(
                PlotGroup(name=verdict.system, rows=tuple(_row(report, q) for q in known))
            )
            kinds |= {q.kind for q in known}
            said.append(f"{verdict.system}: {'; '.join(_say(report, q) for q in known)}.")
    return groups, said, [k for k in _LOOKS if k in kinds]


def _look(kind: QualityKind) -> tuple[Side, bool, str]:
    return _LOOKS[kind]


def _row(report: DebiasReport, found: QualityVerdict) -> PlotRow:
    side, solid, _ = _look(found.kind)
    test = found.change.test
    lowest = () if test is None or found.kind == "unknown" else (max(test.lower, -100.0),)
    return PlotRow(
        name=quality_names(report)[found.change.quality],
        estimate=found.change.relative or 0.0,
        ends=change_ends(found.change),
        side=side,
        solid=solid,
        ticks=lowest,
    )


def _say(report: DebiasReport, found: QualityVerdict) -> str:
    name, test = quality_names(report)[found.change.quality], found.change.test
    text = f"{name} {percent_ends(found.change)}"
    if test is None:
        return f"{text}, not tested"
    margin = loss(test.relative_margin)
    verb = "excluded" if test.passed else "not excluded"
    return f"{text}, bound {number(test.lower)}%, a loss of {margin} {verb}"
