"""Tests that may look again after every observation: betting, confidence sequences, changes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self, TypeVar, get_args

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.errors import DataError, InsufficientDataError, UnsupportedVersionError
from rag_sourcebias.core.values import FloatArray, IntArray, check_level

# What sequential tests and detectors share: checked rows, baselines, state as plain values.


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
    return np.asarray(np.log(np.exp(log_values - top).mean(axis=-1)) + top.squeeze(-1))


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
    return {
        "kind": kind,
        "version": version,
        "settings": dict(settings),
        "state": {name: np.asarray(value).tolist() for name, value in members.items()},
    }


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


class _Saved:
    """What is built from settings and can be stored with its members."""

    kind: ClassVar[str]
    _settings: ClassVar[tuple[str, ...]]
    _members: ClassVar[tuple[str, ...]]

    def to_dict(self) -> dict[str, Any]:
        """Return settings and state as plain JSON values."""
        settings, members = (
            {name: getattr(self, name) for name in names}
            for names in (self._settings, self._members)
        )
        if isinstance(settings["null"], NullRange):
            settings["null"] = settings["null"].to_plain()
        return write_state(self.kind, settings, members)

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
        found = rebuild(cls, settings)
        restore(found, {name: getattr(found, name) for name in cls._members}, state)
        return found

    def _set_null(self, null: NullMean | None, groups: int) -> None:
        self.null = None if null is None else as_range(null)
        if self.null is not None:
            self.null.to((groups,))


# Tests and confidence sequences by betting, of means of values in [0, 1].


# Means of values in [0, 1] against baselines that may differ by observation: betting.
# Waudby-Smith & Ramdas (2024, JRSS-B 86:1): a capital of 1 is staked against the null, and K_n = Π
# (1 + λ_i (x_i − m_i)) is an e-process when each λ_i is chosen before x_i is seen. Here the stake
# on a mean above m is λ_i = c/m_i, below it −c/(1 − m_i), and the capital is split evenly over
# fixed fractions c and both directions (their hedged capital, mixed over bets), so it grows nearly
# as fast as with the best fraction known beforehand. The baseline m_i of an observation, such as
# the share in the candidate pool of the same query, must be known without looking at x_i. With a
# range of baselines bets above are laid against its upper, bets below against its lower end.


# 2 % … 90 % of the largest stake that cannot ruin; a factor of about 2 apart.
FRACTIONS = tuple(float(c) for c in np.geomspace(0.02, 0.9, 6))
_SMALLEST_SHARE = 1e-3  # below it stakes stay as they are there: payoffs remain finite at m = 0
_CHUNK = 1 << 18


def log_payoffs(
    rows: FloatArray, lower: FloatArray, upper: FloatArray, *, side: Side = "two-sided"
) -> FloatArray:
    """Logarithm of what each bet multiplies its capital with.

    Parameters
    ----------
    rows, lower, upper : ndarray of shape (n, groups)
        Observations in [0, 1], and the ends of their baselines.

    Returns
    -------
    ndarray of shape (n, groups, bets)
        Bets on larger means, then on smaller ones; only one of them when one-sided.
    """
    fractions = np.array(FRACTIONS)
    parts = []
    if side != "less":
        parts.append((rows - upper) / np.maximum(upper, _SMALLEST_SHARE))
    if side != "greater":
        parts.append((lower - rows) / np.maximum(1 - lower, _SMALLEST_SHARE))
    return np.asarray(np.concatenate([np.log1p(part[..., None] * fractions) for part in parts], -1))


class BettingTest(_Saved):
    """Do values in [0, 1] have the means of their baselines? Each may have its own.

    Memory per group is constant. Evidence is non-negative, starts at 1 and has expectation at
    most 1 at every stopping time under the null, so the probability that it *ever* reaches 1/α is
    at most α (Ville 1939), however often one looks. All values are natural logarithms. Every
    group has an alarm level of its own: watching g groups, build the test at
    ``1 - (1 - confidence_level) / g``.

    Parameters
    ----------
    null : float, array_like of shape (groups,), NullRange or None
        Baseline; None when each observation brings its own to ``update``.
    groups : int
    side : {"two-sided", "greater", "less"}
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

    Examples
    --------
    >>> test = BettingTest()
    >>> bool(test.update(0.9, null=0.4)[0])
    False
    """

    kind = "betting"
    _settings = ("confidence_level", "null", "groups", "side")
    _members = ("n", "log_e", "peak", "alarm_at", "_capital")

    def __init__(
        self,
        null: NullMean | None = None,
        *,
        groups: int = 1,
        side: Side = "two-sided",
        confidence_level: float = 0.95,
    ) -> None:
        check_side(side)
        check_level(confidence_level)
        if groups < 1:
            raise DataError(f"groups must be at least 1, got {groups}")
        self.side: Side = side
        self.groups, self.confidence_level = groups, confidence_level
        self._set_null(null, groups)
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
        self.log_e, self.peak = np.zeros(self.groups), np.zeros(self.groups)
        self.alarm_at: IntArray = np.zeros(self.groups, np.int64)
        self._capital = np.zeros(
            (self.groups, (2 if self.side == "two-sided" else 1) * len(FRACTIONS))
        )

    def update(
        self, values: npt.ArrayLike, *, null: NullMean | None = None
    ) -> npt.NDArray[np.bool_]:
        """Add one observation of every group; return ``alarms``."""
        self.update_many(np.reshape(np.asarray(values, np.float64), (1, -1)), null=null)
        return self.alarms

    def update_many(self, values: npt.ArrayLike, *, null: NullMean | None = None) -> FloatArray:
        """Add observations, each against its own baseline.

        Parameters
        ----------
        values : array_like of shape (n, groups), or (n,) for one group
        null : NullMean
            One baseline, one per group, or of the shape of ``values``; left out, that of the test.

        Returns
        -------
        ndarray of shape (n, groups)
            Evidence after each of them.

        Raises
        ------
        DataError
            If a value or baseline is not in [0, 1], or no baseline is known.
        """
        rows = as_rows(values, self.groups)
        lower, upper = self._ends(null, np.shape(values), rows.shape)
        step = max(_CHUNK // self._capital.size, 1)
        parts = []
        for start in range(0, len(rows), step):
            part = slice(start, start + step)
            new = log_payoffs(rows[part], lower[part], upper[part], side=self.side)
            path = np.cumsum(np.concatenate([self._capital[None], new]), axis=0)[1:]
            self._capital = path[-1].copy()
            parts.append(self._note(log_mean_exp(path)))
        return np.concatenate(parts) if parts else rows

    def _ends(
        self, null: NullMean | None, given: tuple[int, ...], shape: tuple[int, ...]
    ) -> tuple[FloatArray, FloatArray]:
        found = self.null if null is None else as_range(null)
        if found is None:
            raise DataError("this test has no baseline: pass null= with the observations")
        if len(given) == 1:  # one baseline per value of the only group
            lower, upper = found.to(given)
            return lower.reshape(shape), upper.reshape(shape)
        return found.to(shape)

    def _note(self, log_e: FloatArray) -> FloatArray:
        new = (self.alarm_at == 0) & (log_e.max(axis=0) >= self.threshold)
        first = (log_e >= self.threshold).argmax(axis=0)
        self.alarm_at = np.where(new, self.n + first + 1, self.alarm_at)
        self.n += len(log_e)
        self.log_e = log_e[-1].copy()
        self.peak = np.maximum(self.peak, log_e.max(axis=0))
        return log_e


# Confidence sequence for the mean of values in [0, 1], by betting against every candidate mean.
# The capital of bets above m falls in m, that of bets below m rises in m; so the largest grid
# point at which the former has reached 2/α bounds the mean from below at level 1 − α/2 over all
# time, the smallest at which the latter has bounds it from above (Waudby-Smith & Ramdas 2024, §4).
# Ends are grid points outside the set: the grid makes the interval wider, never narrower.


class BettingInterval:
    """Running bounds of a mean whose observations lie in [0, 1].

    Parameters
    ----------
    confidence_level : float
        Probability that the bounds hold the mean at all times together.
    points : int
        Candidate means, evenly spread over [0, 1].
    """

    def __init__(self, *, confidence_level: float = 0.95, points: int = 201) -> None:
        check_level(confidence_level)
        if points < 3:
            raise DataError(f"points must be at least 3, got {points}")
        self.confidence_level, self.points = confidence_level, points
        self._grid = np.linspace(0.0, 1.0, points)
        self._capital = np.zeros((points, 2 * len(FRACTIONS)))

    def update_many(self, values: npt.ArrayLike) -> None:
        """Add observations, shape (n,), in order.

        Raises
        ------
        DataError
            If a value is not in [0, 1].
        """
        rows = as_rows(values, 1)
        step = max(_CHUNK // self._capital.size, 1)
        for start in range(0, len(rows), step):
            part = rows[start : start + step]
            null = np.broadcast_to(self._grid, (len(part), self.points))
            new = log_payoffs(np.broadcast_to(part, null.shape), null, null)
            # Sums one by one, so a batch gives bit for bit what single updates do.
            self._capital = np.cumsum(np.concatenate([self._capital[None], new]), axis=0)[-1].copy()

    def interval(self) -> tuple[float, float]:
        """Return the bounds at this moment, in [0, 1]."""
        threshold = math.log(2) - math.log1p(-self.confidence_level)
        above, below = np.split(self._capital, 2, axis=1)
        too_low = np.flatnonzero(log_mean_exp(above) >= threshold)
        too_high = np.flatnonzero(log_mean_exp(below) >= threshold)
        return (
            float(self._grid[too_low[-1]]) if len(too_low) else 0.0,
            float(self._grid[too_high[0]]) if len(too_high) else 1.0,
        )


# Changes after a long quiet time: e-detectors.
# Shin, Ramdas & Rinaldo (arXiv:2203.03532; New England Journal of Statistics in Data Science 2).
# With payoffs L_n of a bet, of mean at most 1 before the change, one starts a new capital at every
# observation. Their sum M_n = (M_{n−1} + 1)·L_n is the e-SR detector, and with the largest one,
# M_n = max(M_{n−1}, 1)·L_n, it is e-CUSUM. M_n − n is a supermartingale, so raising an alarm when
# M_n ≥ A gives at least A observations on average between false alarms; an average of detectors
# over bets, or over groups, has the same property. Here the bets are those of
# :mod:`~rag_sourcebias.stats.sequential`, so baselines may differ by observation.


_TRIED = 32  # rows whose payoffs are worked out before one of them raises an alarm


class ChangeDetector(_Saved):
    """Raise an alarm soon after means leave their baselines, and start again.

    Parameters
    ----------
    null : NullMean or None
        Baseline; None when each observation brings its own.
    groups : int
    run_length : float
        Observations between false alarms on average, at least; greater than 1.
    method : {"sr", "cusum"}
        Sums of all starts (e-SR), or the best of them (e-CUSUM): never sooner, easier to explain.
    side : {"two-sided", "greater", "less"}
    joint : bool
        One alarm from the average over groups, instead of one for each.

    Attributes
    ----------
    n : int
    statistic : ndarray of shape (alarms watched,)
        Now; an alarm is raised at ``run_length``.
    n_alarms, last_alarm : ndarray of int
        Alarms so far, and the number of the observation of the last one, 0 without any.
    """

    kind = "change"
    _settings = ("null", "groups", "run_length", "method", "side", "joint")
    _members = ("n", "n_alarms", "last_alarm", "_sums")

    def __init__(
        self,
        null: NullMean | None = None,
        *,
        groups: int = 1,
        run_length: float = 10_000.0,
        method: Literal["sr", "cusum"] = "sr",
        side: Side = "two-sided",
        joint: bool = False,
    ) -> None:
        check_side(side)
        if method not in ("sr", "cusum"):
            raise DataError(f"method {method!r} is neither 'sr' nor 'cusum'")
        if groups < 1 or not (np.isfinite(run_length) and run_length > 1):
            raise DataError(
                f"groups must be at least 1 and run_length above 1, got {groups} and {run_length}"
            )
        self._set_null(null, groups)
        self.groups, self.run_length, self.method = groups, float(run_length), method
        self.side: Side = side
        self.joint = joint
        self.n = 0
        self._sums = np.zeros((groups, len(FRACTIONS) * (2 if side == "two-sided" else 1)))
        self.n_alarms, self.last_alarm = np.zeros((2, 1 if joint else groups), np.int64)

    @property
    def statistic(self) -> FloatArray:
        """Average over bets, and over groups when joint."""
        return self._average(self._sums)

    def update(
        self, values: npt.ArrayLike, *, null: NullMean | None = None
    ) -> npt.NDArray[np.bool_]:
        """Add one observation of every group; return where it raised an alarm."""
        rows = np.reshape(np.asarray(values, np.float64), (1, -1))
        return np.asarray(self.update_many(rows, null=null)[0] >= self.run_length)

    def update_many(
        self, values: npt.ArrayLike, *, null: NullMean | None = None, stop: bool = False
    ) -> FloatArray:
        """Add observations, shape (n, groups), in order.

        Parameters
        ----------
        stop : bool
            Add none after the first that raises an alarm.

        Returns
        -------
        ndarray of shape (n, alarms watched)
            The statistic after each, before starting again: an alarm where it reaches
            ``run_length``.

        Raises
        ------
        DataError
            If a value or baseline is not in [0, 1], or no baseline is known.
        """
        rows = as_rows(values, self.groups)
        found = self.null if null is None else as_range(null)
        if found is None:
            raise DataError("this detector has no baseline: pass null= with the observations")
        lower, upper = found.to(rows.shape)
        path = np.empty((len(rows), len(self.n_alarms)))
        step = min(max(_CHUNK // self._sums.size, 1), _TRIED if stop else _CHUNK)
        for start in range(0, len(rows), step):
            part = slice(start, start + step)
            payoffs = np.exp(log_payoffs(rows[part], lower[part], upper[part], side=self.side))
            for row, payoff in enumerate(payoffs, start):
                path[row] = self._step(payoff)
                if stop and (path[row] >= self.run_length).any():
                    return path[: row + 1]
        return path

    def _step(self, payoff: FloatArray) -> FloatArray:
        before = self._sums + 1 if self.method == "sr" else np.maximum(self._sums, 1)
        self._sums = before * payoff
        self.n += 1
        statistic = self._average(self._sums)
        raised = statistic >= self.run_length
        if raised.any():
            self.n_alarms = self.n_alarms + raised
            self.last_alarm = np.where(raised, self.n, self.last_alarm)
            self._sums[np.broadcast_to(raised, self.groups)] = 0.0
        return statistic

    def _average(self, sums: FloatArray) -> FloatArray:
        each = sums.mean(axis=1)
        return np.asarray(each.mean(keepdims=True) if self.joint else each)


# A baseline from a frozen window of the past, with the error of that window.
# The window gives an interval that holds the true mean with probability 1 − αᵣ. Evidence against
# every mean inside it is an e-process when the interval holds, so watching at level 1 − αₛ gives a
# false alarm with probability at most αᵣ + αₛ over all time (union bound). By default αᵣ is a
# fifth of the whole: the interval is drawn once, while the stream is looked at for ever.


WINDOW_PART = 0.2


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReferenceWindow:
    """What a window of the past says about the means of its groups.

    Parameters
    ----------
    null : NullRange
        Baselines, shape (groups,), for a test of the stream.
    window_level, stream_level : float
        Levels of the interval of the window, for each group, and of the test of the stream.
    mean : ndarray of shape (groups,)
    n : int
    """

    null: NullRange
    window_level: float
    stream_level: float
    mean: FloatArray
    n: int


def reference_window(
    values: npt.ArrayLike,
    *,
    confidence_level: float = 0.95,
) -> ReferenceWindow:
    """Turn a window into baselines.

    Parameters
    ----------
    values : array_like of shape (n, groups) or (n,)
        Observations in [0, 1], at least 2; independent of those of the stream. Exact
        (Clopper & Pearson 1934) when all of a group are 0 or 1, by betting otherwise.
    confidence_level : float
        To be held by the window and the stream together, for each group.

    Raises
    ------
    InsufficientDataError
        If there are fewer than 2 observations.
    DataError
        If an argument is out of its range.
    """
    check_level(confidence_level)
    rows = as_rows(values, np.shape(values)[-1] if np.ndim(values) > 1 else 1)
    if len(rows) < 2:
        raise InsufficientDataError(
            f"a reference window needs at least 2 observations, there are {len(rows)}",
            n=len(rows),
            n_needed=2,
        )
    level = 1 - (1 - confidence_level) * WINDOW_PART
    ends = [window_interval(column, level) for column in rows.T]
    return ReferenceWindow(
        null=NullRange([low for low, _ in ends], [high for _, high in ends]),
        window_level=level,
        stream_level=1 - (1 - confidence_level) * (1 - WINDOW_PART),
        mean=rows.mean(axis=0),
        n=len(rows),
    )


def window_interval(column: FloatArray, level: float, points: int = 1001) -> tuple[float, float]:
    """Return an interval for the mean of observations in [0, 1], shape (n,), at this level.

    ``points`` are the candidates of an interval by betting: fewer are faster, and make it wider.
    """
    if not ((column == 0) | (column == 1)).all():
        betting = BettingInterval(confidence_level=level, points=points)
        betting.update_many(column)
        return betting.interval()
    from scipy.special import betaincinv

    n, ones, tail = len(column), float(column.sum()), (1 - level) / 2
    return (
        float(betaincinv(ones, n - ones + 1, tail)) if ones > 0 else 0.0,
        float(betaincinv(ones + 1, n - ones, 1 - tail)) if ones < n else 1.0,
    )
