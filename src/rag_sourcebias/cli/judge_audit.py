"""``judge audit`` and ``judge drift``: hold a judge against people, then and now."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rag_sourcebias.cli import interval_options as columns_opt
from rag_sourcebias.cli.checks import require_writable_file
from rag_sourcebias.cli.console import err, json_text, out, print_json
from rag_sourcebias.errors import CalibrationError
from rag_sourcebias.io import read_judged_items, write_atomic
from rag_sourcebias.judges.anchors import build_anchor_set, read_anchor_set, write_anchor_set
from rag_sourcebias.judges.audit import audit_judge
from rag_sourcebias.judges.drift import check_drift, require_stable

__all__ = ["audit", "drift"]

_DRIFTED = 1


def audit(
    file: Annotated[
        Path, typer.Argument(help="Items with judge values and, for some, human labels.")
    ],
    *,
    id_column: columns_opt.IdColumns = None,
    human: columns_opt.HumanColumn = None,
    judge: columns_opt.JudgeColumn = None,
    group: columns_opt.GroupColumn = None,
    cluster: columns_opt.ClusterColumn = None,
    confidence_level: columns_opt.ConfidenceLevel = 0.95,
    seed: columns_opt.Seed = 0,
    anchors: Annotated[
        Path | None,
        typer.Option(help="Write the labelled items as anchors for rag-sourcebias judge drift."),
    ] = None,
    json: columns_opt.JsonFile = None,
) -> None:
    """Hold a judge against human labels: correlation, agreement, bias by group, calibration."""
    require_writable_file("anchors", anchors)
    require_writable_file("json", None if json in (None, "-") else Path(json))
    items = read_judged_items(
        file, id=id_column, human=human, judge=judge, group=group, cluster=cluster
    )
    found = audit_judge(items, confidence_level=confidence_level, rng=seed)
    if json not in (None, "-"):
        write_atomic(json, json_text(found.to_dict()))
    if anchors is not None:
        write_anchor_set(build_anchor_set(items, settings={"file": file.name}), anchors)
        err.print(f"anchors: {anchors}", highlight=False, soft_wrap=True)
    if json == "-":
        print_json(found.to_dict())
    else:
        out.print("\n".join(found.lines()), markup=False, highlight=False, soft_wrap=True)


def drift(
    anchors: Annotated[Path, typer.Argument(help="What judge audit --anchors wrote.")],
    file: Annotated[Path, typer.Argument(help="The anchors judged again: id and judge value.")],
    *,
    id_column: columns_opt.IdColumns = None,
    judge: columns_opt.JudgeColumn = None,
    margin: Annotated[
        float | None,
        typer.Option(help="Change of the mean error that would be acceptable (human scale)."),
    ] = None,
    confidence_level: columns_opt.ConfidenceLevel = 0.95,
) -> None:
    """Tell whether a judge still judges as it did; exit code 1 if it has drifted.

    Intervals built on the old calibration are not valid for a judge that has moved.
    """
    kept = read_anchor_set(anchors)
    items = read_judged_items(file, id=id_column, judge=judge, require_human=False)
    wanted = set(kept.ids)
    values = {i: float(v) for i, v in zip(items.ids, items.judge, strict=True) if i in wanted}
    check = check_drift(kept, values, margin=margin, confidence_level=confidence_level)
    lines = [
        f"{check.n} anchors judged again, {check.n_missing} without a value, "
        f"{check.share_changed:.0%} changed",
        f"change of the judge value {check.shift}",
        f"change of the mean error after calibration {check.error_shift}",
        f"correlation with people {check.correlation_then:.2f} then, "
        f"{check.correlation_now:.2f} now",
    ]
    out.print("\n".join(lines), markup=False, highlight=False, soft_wrap=True)
    try:
        require_stable(check)
    except CalibrationError as error:
        err.print(str(error), markup=False, highlight=False, soft_wrap=True)
        raise typer.Exit(_DRIFTED) from None
    out.print("stable: the calibration still holds", highlight=False)
