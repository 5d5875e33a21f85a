"""Anchors whose human value is known, and drift of a judge against them."""

from __future__ import annotations

import json
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.arrays import FloatArray
from rag_sourcebias.core.completions import JudgedItems
from rag_sourcebias.core.errors import (
    CalibrationError,
    DataError,
    InsufficientDataError,
    UnsupportedVersionError,
)
from rag_sourcebias.core.values import Interval, check_level
from rag_sourcebias.io.files import PathLike, read_json, sound, write_atomic
from rag_sourcebias.judged.data import ANCHOR_SCHEMA, AnchorSet, DriftCheck
from rag_sourcebias.judged.judge_audit import mean_error
from rag_sourcebias.stats.samples import is_constant

# The fixed anchor items that a judge is asked again.


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


# Drift of a judge against a fixed anchor set.
# A judge behind an API changes without notice. Items whose human label is known are judged again
# before every use; where the calibrated judge ĉ(f) no longer has the mean error it had, intervals
# built on the old calibration are refused.


_MOST_MISSING = 0.1


def check_drift(
    anchors: AnchorSet,
    new_values: Mapping[str, float] | FloatArray,
    *,
    confidence_level: float = 0.95,
    margin: float | None = None,
) -> DriftCheck:
    """Compare the judge's values on the anchors with those at calibration.

    Paired: the mean change of the judge value, and of the mean error E[y − ĉ(f)] of the calibrated
    judge ĉ(f) = intercept + slope · f, which was 0 at calibration.

    Parameters
    ----------
    anchors : AnchorSet
    new_values : mapping of id to float, or array in the order of the anchors
        NaN, or an id left out, where the judge failed.
    margin : float or None
        Change of E[y − ĉ(f)], on the human scale, that would still be acceptable. With it the
        judge is stable only if the whole interval lies within ± margin (equivalence); without, if
        the interval holds 0.

    Returns
    -------
    DriftCheck

    Raises
    ------
    DataError
        If ids are unknown, the number of values differs, or a value is infinite.
    InsufficientDataError
        If fewer than 20 anchors have a new value.
    """
    check_level(confidence_level)
    if margin is not None and not margin > 0:
        raise DataError(f"margin {margin!r} must be above 0")
    new = _aligned(anchors, new_values)
    known = np.flatnonzero(~np.isnan(new))
    if len(known) < FEWEST_ANCHORS:
        raise InsufficientDataError(
            f"{len(known)} of {len(new)} anchors have a new judge value; at least "
            f"{FEWEST_ANCHORS} are needed to tell drift",
            n=len(known),
            n_needed=FEWEST_ANCHORS,
        )
    y, old, now = anchors.human[known], anchors.judge[known], new[known]
    span = float(max(old.max(), now.max()) - min(old.min(), now.min()))
    units = np.arange(len(known), dtype=np.int64)
    change = now - old
    shift = _mean(change, units, span, confidence_level)
    moved = _mean(-anchors.slope * change, units, span * abs(anchors.slope), confidence_level)
    residual = y - (anchors.intercept + anchors.slope * now)
    n_missing = len(new) - len(known)
    lower, upper = moved.lower, moved.upper
    within = (lower <= 0 <= upper) if margin is None else (-margin <= lower and upper <= margin)
    return DriftCheck(
        n=len(known),
        n_missing=n_missing,
        share_changed=float(np.mean(np.abs(change) > 1e-9)),
        shift=shift,
        error_shift=moved,
        error_now=float(residual.mean()),
        correlation_then=_correlation(y, old),
        correlation_now=_correlation(y, now),
        tilt_p_value=_tilt(change, old),
        margin=margin,
        stable=bool(within and n_missing <= _MOST_MISSING * len(new)),
    )


def require_stable(check: DriftCheck) -> None:
    """Refuse to go on with a calibration the judge has moved away from.

    Raises
    ------
    CalibrationError
        With the numbers, if the check did not find the judge stable.
    """
    if check.stable:
        return
    if check.n_missing > _MOST_MISSING * (check.n + check.n_missing):
        raise CalibrationError(
            f"the judge failed on {check.n_missing} of {check.n + check.n_missing} anchors, more "
            f"than {_MOST_MISSING:.0%}: drift cannot be ruled out; judge them again"
        )
    moved = check.error_shift
    allowed = "0" if check.margin is None else f"the margin ± {check.margin:g}"
    raise CalibrationError(
        f"the judge has drifted: E[y − ĉ(f)] moved by {moved.estimate:.4g} "
        f"[{moved.lower:.4g}, {moved.upper:.4g}] on {check.n} anchors, not within {allowed} (mean "
        f"judge value moved by {check.shift.estimate:.4g}; correlation with people "
        f"{check.correlation_then:.2f} then, {check.correlation_now:.2f} now); no interval is "
        "given on the old calibration: label a new sample and calibrate again"
    )


def _aligned(anchors: AnchorSet, values: Mapping[str, float] | FloatArray) -> FloatArray:
    if isinstance(values, Mapping):
        known = set(anchors.ids)
        unknown = [name for name in values if name not in known]
        if unknown:
            raise DataError(
                f"{len(unknown)} judged id(s) are not anchors, first {unknown[0]!r}; anchor ids "
                f"look like {anchors.ids[0]!r}"
            )
        new = np.array([values.get(name, np.nan) for name in anchors.ids], dtype=np.float64)
    else:
        new = np.asarray(values, dtype=np.float64)
        if new.shape != anchors.judge.shape:
            raise DataError(f"values of shape {new.shape} for {len(anchors.ids)} anchors")
    bad = np.flatnonzero(np.isinf(new))
    if len(bad):
        raise DataError(f"the new judge value of anchor {anchors.ids[bad[0]]!r} is infinite")
    return new


def _mean(values: FloatArray, units: npt.NDArray[np.int64], span: float, level: float) -> Interval:
    found = mean_error(values, units, span=span, confidence_level=level)
    if found is not None:
        return found
    # every anchor moved by the same amount: there is no sampling error left in the mean change
    value = float(values[0])
    return Interval(
        estimate=value,
        lower=value,
        upper=value,
        confidence_level=level,
        method="identical change of every anchor",
        n_labeled=len(values),
    )


def _correlation(x: FloatArray, y: FloatArray) -> float:
    if is_constant(x) or is_constant(y):
        return 0.0
    return float(np.corrcoef(x, y)[0, 1])


def _tilt(change: FloatArray, old: FloatArray) -> float | None:
    """Test whether the change depends on the old value (slope, HC1 error)."""
    from scipy.special import stdtr

    centred = old - old.mean()
    power = float(centred @ centred)
    if power <= 0 or is_constant(change):
        return None
    slope = float(centred @ change) / power
    rest = change - change.mean() - slope * centred
    n = len(old)
    error = float(np.sqrt(((centred * rest) ** 2).sum() * n / (n - 2))) / power
    if error <= 0:
        return 0.0
    return float(2 * stdtr(n - 2, -abs(slope) / error))
