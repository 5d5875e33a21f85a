"""What every sequential test shares: rows in, evidence out, alarms by Ville's inequality."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.arrays import FloatArray, IntArray
from rag_sourcebias.core.errors import DataError, UnsupportedVersionError
from rag_sourcebias.stats.resampling import check_level

# Observations as checked arrays, and averages of evidence.


def as_rows(values: npt.ArrayLike, groups: int, *, bounded: bool = True) -> FloatArray:
    """Return observations in shape (n, groups) after checking them.

    Raises
    ------
    DataError
        If the shape does not fit, or a value is not finite or, with ``bounded``, not in [0, 1].
    """
    rows = np.asarray(values, np.float64)
    if rows.ndim == 1 and groups == 1:
        rows = rows[:, None]
    if rows.ndim != 2 or rows.shape[1] != groups:
        raise DataError(f"expected observations of shape (n, {groups}), found {rows.shape}")
    good = (rows >= 0) & (rows <= 1) if bounded else np.isfinite(rows)
    if not good.all():
        row, group = np.argwhere(~good)[0]
        allowed = "in [0, 1]" if bounded else "finite"
        raise DataError(
            f"observation {row} of group {group} is {float(rows[row, group])!r}; "
            f"it must be {allowed}"
        )
    return rows


def log_mean_exp(log_values: FloatArray, axis: int = -1) -> FloatArray:
    """Logarithm of the mean of exponentials: an average of e-processes is one."""
    top = log_values.max(axis=axis, keepdims=True)
    mean = np.exp(log_values - top).mean(axis=axis)
    return np.asarray(np.log(mean) + top.squeeze(axis))


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


# What every sequential test shares: rows in, evidence out, alarms by Ville's inequality.
# An e-process is non-negative, starts at 1 and has expectation at most 1 at every stopping time
# under the null. So the probability that it *ever* reaches 1/α is at most α (Ville 1939), however
# often one looks. All values are natural logarithms.


class SequentialTest(ABC):
    """Evidence against a null for each of several groups, in constant memory per group.

    Every group has an alarm level of its own: watching g groups, build the test at
    ``1 - (1 - confidence_level) / g``, or watch the average with ``AverageTest``.

    Parameters
    ----------
    groups : int
    confidence_level : float
        An alarm under the null has at most the remaining probability, over all time.

    Attributes
    ----------
    n : int
        Observations so far, of each group.
    log_e : ndarray of shape (groups,)
        Evidence now.
    peak : ndarray of shape (groups,)
        Largest evidence so far, at least 0: exp(−peak) is an always valid p-value.
    alarm_at : ndarray of int, shape (groups,)
        Number of the observation that raised the alarm, 0 where there was none.
    """

    kind: ClassVar[str]
    bounded: ClassVar[bool] = True

    def __init__(self, *, groups: int, confidence_level: float) -> None:
        check_level(confidence_level)
        if groups < 1:
            raise DataError(f"groups must be at least 1, got {groups}")
        self.groups = groups
        self.confidence_level = confidence_level
        self.reset()

    @property
    def threshold(self) -> float:
        """Logarithm of the evidence that raises an alarm."""
        return -math.log1p(-self.confidence_level)

    @property
    def alarms(self) -> npt.NDArray[np.bool_]:
        """Groups whose alarm was raised."""
        return self.alarm_at > 0

    def reset(self) -> None:
        """Forget everything; the guarantee then starts anew."""
        self.n = 0
        self.log_e = np.zeros(self.groups)
        self.peak = np.zeros(self.groups)
        self.alarm_at: IntArray = np.zeros(self.groups, np.int64)
        self._clear()

    def update(self, values: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """Add one observation of every group (a number, or shape (groups,)); return ``alarms``."""
        self.update_many(np.reshape(np.asarray(values, np.float64), (1, -1)))
        return self.alarms

    def update_many(self, values: npt.ArrayLike) -> FloatArray:
        """Add observations, shape (n, groups) or (n,) for one group, in order.

        Returns
        -------
        ndarray of shape (n, groups)
            Evidence after each of them, the same as from single updates.

        Raises
        ------
        DataError
            If the shape does not fit or a value is not allowed; nothing is added then.
        """
        rows = as_rows(values, self.groups, bounded=self.bounded)
        return self._note(self._advance(rows)) if len(rows) else rows

    def _note(self, log_e: FloatArray) -> FloatArray:
        new = (self.alarm_at == 0) & (log_e.max(axis=0) >= self.threshold)
        first = (log_e >= self.threshold).argmax(axis=0)
        self.alarm_at = np.where(new, self.n + first + 1, self.alarm_at)
        self.n += len(log_e)
        self.log_e = log_e[-1].copy()
        self.peak = np.maximum(self.peak, log_e.max(axis=0))
        return log_e

    def to_dict(self) -> dict[str, Any]:
        """Return settings and state as plain JSON values."""
        settings = {"confidence_level": self.confidence_level, **self._settings()}
        return write_state(self.kind, settings, self._shared() | self._state())

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Go on from what :meth:`to_dict` returned.

        Raises
        ------
        DataError
            If it is not the state of such a test.
        UnsupportedVersionError
            If another release wrote it.
        """
        settings, state = read_state(data, cls.kind)
        test = rebuild(cls, settings)
        restore(test, test._shared() | test._state(), state)
        return test

    def _shared(self) -> dict[str, Any]:
        return {"n": self.n, "log_e": self.log_e, "peak": self.peak, "alarm_at": self.alarm_at}

    @abstractmethod
    def _advance(self, rows: FloatArray) -> FloatArray:
        """Take rows of shape (n, groups), n at least 1, into the state; return the evidence."""

    @abstractmethod
    def _clear(self) -> None:
        """Set the members named in ``_state`` to those of no observation."""

    @abstractmethod
    def _state(self) -> dict[str, Any]:
        """Members that change, by name."""

    @abstractmethod
    def _settings(self) -> dict[str, Any]:
        """Arguments of the constructor beside the level, as plain values."""
