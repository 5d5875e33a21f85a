"""The fixed anchor items that a judge is asked again."""

from __future__ import annotations

import json
from collections.abc import Mapping

import numpy as np

from rag_sourcebias.errors import (
    CalibrationError,
    DataError,
    InsufficientDataError,
    UnsupportedVersionError,
)
from rag_sourcebias.intervals.scale_checks import is_constant
from rag_sourcebias.io.damage import sound
from rag_sourcebias.io.files import PathLike, read_json, write_atomic
from rag_sourcebias.types.anchors import ANCHOR_SCHEMA, AnchorSet
from rag_sourcebias.types.judged_items import JudgedItems

__all__ = ["FEWEST_ANCHORS", "build_anchor_set", "read_anchor_set", "write_anchor_set"]

FEWEST_ANCHORS = 20


def build_anchor_set(items: JudgedItems, *, settings: Mapping[str, str] | None = None) -> AnchorSet:
    """Freeze the labelled and judged items with the calibration of the judge on them.

    Parameters
    ----------
    items : JudgedItems
        Items without a human label or a judge value are left out.
    settings : mapping of str to str or None
        What identifies the judge: model, prompt hash, temperature.

    Raises
    ------
    InsufficientDataError
        With fewer than 20 anchors.
    CalibrationError
        If the judge gives all of them the same value.
    """
    rows = np.flatnonzero(items.labeled & items.judged)
    if len(rows) < FEWEST_ANCHORS:
        raise InsufficientDataError(
            f"{len(rows)} labelled and judged item(s) are too few for an anchor set; at least "
            f"{FEWEST_ANCHORS} are needed",
            n=len(rows),
            n_needed=FEWEST_ANCHORS,
        )
    y, f = items.human[rows], items.judge[rows]
    if is_constant(f):
        raise CalibrationError(
            f"the judge gives all {len(f)} anchors the value {f[0]:g}; a constant judge cannot be "
            "calibrated"
        )
    slope = float(np.cov(f, y, ddof=0)[0, 1] / np.var(f))
    return AnchorSet(
        schema_version=ANCHOR_SCHEMA,
        ids=tuple(items.ids[i] for i in rows),
        human=y,
        judge=f,
        slope=slope,
        intercept=float(y.mean() - slope * f.mean()),
        settings=dict(settings or {}),
    )


def write_anchor_set(anchors: AnchorSet, path: PathLike) -> None:
    """Write an anchor set as JSON."""
    text = json.dumps(anchors.to_dict(), ensure_ascii=False, allow_nan=False, indent=1)
    write_atomic(path, text + "\n")


def read_anchor_set(path: PathLike) -> AnchorSet:
    """Read what :func:`write_anchor_set` wrote.

    Raises
    ------
    DataError
        If the file is missing, is not JSON, or is not an anchor set.
    UnsupportedVersionError
        If it was written with another schema.
    """
    data = read_json(path, "the JSON of an anchor set")
    version = data.get("schema_version") if isinstance(data, dict) else None
    if version is None:
        raise DataError(f"{path} is not an anchor set; expected a file of write_anchor_set")
    if version != ANCHOR_SCHEMA:
        raise UnsupportedVersionError(
            f"{path} has anchor set schema {version!r}; this release reads {ANCHOR_SCHEMA}"
        )
    with sound(path, "a complete anchor set", names_file=False):
        return AnchorSet.from_dict(data)
