"""What sequential tests and detectors share: checked rows, baselines, state as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, get_args

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.arrays import FloatArray
from rag_sourcebias.core.errors import DataError, UnsupportedVersionError

Side = Literal["two-sided", "greater", "less"]


def check_side(side: str) -> None:
    """Raise unless ``side`` is a :data:`Side`."""
    if side not in get_args(Side):
        raise DataError(f"side {side!r} is none of {', '.join(get_args(Side))}")


# Observations as checked arrays, and averages of evidence.


def as_rows(values: npt.ArrayLike, groups: int) -> FloatArray:
    """Return observations in shape (n, groups) after checking them.

    Raises
    ------
    DataError
        If the shape does not fit, or a value is not in [0, 1].
    """
    rows = np.asarray(values, np.float64)
    if rows.ndim == 1 and groups == 1:
        rows = rows[:, None]
    if rows.ndim != 2 or rows.shape[1] != groups:
        raise DataError(f"expected observations of shape (n, {groups}), found {rows.shape}")
    good = (rows >= 0) & (rows <= 1)
    if not good.all():
        row, group = np.argwhere(~good)[0]
        raise DataError(
            f"observation {row} of group {group} is {float(rows[row, group])!r}; "
            "it must be in [0, 1]"
        )
    return rows


def log_mean_exp(log_values: FloatArray) -> FloatArray:
    """Logarithm of the mean of exponentials: an average of e-processes is one."""
    top = log_values.max(axis=-1, keepdims=True)
    mean = np.exp(log_values - top).mean(axis=-1)
    return np.asarray(np.log(mean) + top.squeeze(-1))


# What the mean of the observations is under the null: a number, or somewhere in a range.


@dataclass(frozen=True, slots=True, eq=False)
class NullRange:
    """The null mean lies in [lower, upper], as with a baseline that was itself estimated.

    Parameters
    ----------
    lower, upper : float or ndarray
        In [0, 1], lower at most upper; shapes that broadcast to those of the observations.

    Raises
    ------
    DataError
        If an end is not in [0, 1], or they stand in the wrong order.
    """

    lower: npt.ArrayLike
    upper: npt.ArrayLike

    def __post_init__(self) -> None:
        lower, upper = np.asarray(self.lower, np.float64), np.asarray(self.upper, np.float64)
        object.__setattr__(self, "lower", lower)
        object.__setattr__(self, "upper", upper)
        for end in (lower, upper):
            inside = (end >= 0) & (end <= 1)
            if not inside.all():
                raise DataError(
                    f"a baseline share must lie in [0, 1], found {float(end[~inside].flat[0])!r}"
                )
        if np.any(lower > upper):
            raise DataError(f"a baseline range needs lower ≤ upper, found [{lower}, {upper}]")

    def to(self, shape: tuple[int, ...]) -> tuple[FloatArray, FloatArray]:
        """Return both ends in this shape.

        Raises
        ------
        DataError
            If they do not broadcast to it.
        """
        try:
            return np.broadcast_to(self.lower, shape), np.broadcast_to(self.upper, shape)
        except ValueError:
            found = np.broadcast_shapes(np.shape(self.lower), np.shape(self.upper))
            raise DataError(
                f"baselines of shape {found} do not fit observations of shape {shape}"
            ) from None

    def to_plain(self) -> dict[str, Any]:
        """Return the arguments as plain JSON values."""
        return {"lower": np.asarray(self.lower).tolist(), "upper": np.asarray(self.upper).tolist()}


NullMean = npt.ArrayLike | NullRange


def as_range(null: NullMean) -> NullRange:
    """Return a range; a number or array is a range of one point each."""
    return null if isinstance(null, NullRange) else NullRange(null, null)


# State of tests as plain JSON values, so that a restart goes on where the last process was.


VERSION = 1
T = TypeVar("T")


def write_state(
    kind: str, settings: Mapping[str, Any], members: Mapping[str, Any], *, version: int = VERSION
) -> dict[str, Any]:
    """Return plain values of settings and of members, which are numbers or arrays of them."""
    state = {name: np.asarray(value).tolist() for name, value in members.items()}
    return {"kind": kind, "version": version, "settings": dict(settings), "state": state}


def read_state(
    data: Mapping[str, Any], kind: str, *, version: int = VERSION
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return settings and state after looking at kind and version.

    Raises
    ------
    DataError
        If it is something else.
    UnsupportedVersionError
        If another release wrote it.
    """
    if not isinstance(data, Mapping) or data.get("kind") != kind:
        found = data.get("kind") if isinstance(data, Mapping) else type(data).__name__
        raise DataError(f"expected the state of kind {kind!r}, found {found!r}")
    if data.get("version") != version:
        raise UnsupportedVersionError(
            f"state version {data.get('version')!r} cannot be read; "
            f"this release reads version {version} of {kind!r}"
        )
    settings, state = data.get("settings"), data.get("state")
    if not isinstance(settings, Mapping) or not isinstance(state, Mapping):
        raise DataError(f"the state of kind {kind!r} needs 'settings' and 'state'")
    return dict(settings), dict(state)


def rebuild(cls: type[T], settings: Mapping[str, Any]) -> T:
    """Call the constructor with stored settings."""
    arguments = dict(settings)
    if isinstance(arguments.get("null"), Mapping):
        arguments["null"] = NullRange(**arguments["null"])
    try:
        return cls(**arguments)
    except TypeError as error:
        raise DataError(f"stored settings of {cls.__name__}: {error}") from None


def restore(target: object, members: Mapping[str, Any], state: Mapping[str, Any]) -> None:
    """Set members to stored values of the same shapes.

    Raises
    ------
    DataError
        If one is missing, has another shape or is not finite.
    """
    for name, now in members.items():
        try:
            found = np.asarray(state.get(name), np.asarray(now).dtype)
        except (TypeError, ValueError, OverflowError):
            raise DataError(
                f"stored {name!r}: expected numbers, found {state.get(name)!r:.80}"
            ) from None
        if found.shape != np.shape(now) or not np.isfinite(found).all():
            raise DataError(
                f"stored {name!r}: expected finite numbers of shape {np.shape(now)}, "
                f"found {state.get(name)!r:.80}"
            )
        setattr(target, name, found if isinstance(now, np.ndarray) else found.item())
