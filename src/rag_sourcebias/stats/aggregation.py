"""What belongs together becomes one observation: repeated queries, sessions, time buckets."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.errors import DataError
from rag_sourcebias.core.values import FloatArray
from rag_sourcebias.stats.sequential import read_state, rebuild, write_state

# Confidence sequence of a share: the Beta-mixture e-process, turned round.


# For observations x in [0, 1] with conditional mean p, the product of (q/p)^x ((1−q)/(1−p))^(1−x)
# has expectation at most 1 for every q, since its factor is convex in x and so below the chord,
# whose mean is 1; for binary x they are equal. Mixing q over Beta(a, b) gives, with S = Σx,
# e_n = B(a + S, b + n − S) / B(a, b) / (p^S (1−p)^(n−S))
# (Robbins 1970, Annals of Mathematical Statistics 41:1397; the sub-Bernoulli case of Howard,
# Ramdas, McAuliffe & Sekhon 2021, Annals of Statistics 49:1055). No independence is needed: the
# mean of each observation given all before it must be p. As a test it is compared with the bets
# of :mod:`~rag_sourcebias.stats.sequential` in benchmarks/monitor.


_SMALLEST = np.log(np.finfo(np.float64).tiny)


def beta_log_e(
    n: npt.ArrayLike,
    total: npt.ArrayLike,
    null: npt.ArrayLike,
    *,
    a: npt.ArrayLike,
    b: npt.ArrayLike,
) -> FloatArray:
    """Logarithm of the Beta-mixture e-value.

    Parameters
    ----------
    n, total : array_like
        Observations, and their sum.
    null : array_like
        Baseline share, in [0, 1].
    a, b : array_like
        Of the mixing distribution, positive.

    Returns
    -------
    ndarray
        Of the shape that all arguments broadcast to.
    """
    from scipy.special import betaln, xlog1py, xlogy

    total, null = np.asarray(total, np.float64), np.asarray(null, np.float64)
    rest = np.asarray(n, np.float64) - total
    log_e = betaln(a + total, b + rest) - betaln(a, b) - xlogy(total, null) - xlog1py(rest, -null)
    return np.asarray(np.maximum(log_e, _SMALLEST))


def beta_interval(
    n: npt.ArrayLike,
    total: npt.ArrayLike,
    *,
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    confidence_level: float,
) -> tuple[FloatArray, FloatArray]:
    """Baselines that the two-sided e-value does not reject: a confidence sequence for the share.

    Returns
    -------
    lower, upper : ndarray
        In [0, 1]; together over all time they hold the share with at least this probability.
    """
    n, total = np.asarray(n, np.float64), np.asarray(total, np.float64)
    threshold = -np.log1p(-confidence_level)
    ends = []
    # log e is convex in the baseline with its smallest value at the mean: bisect on either side.
    for outside in (0.0, 1.0):
        good = np.where(n > 0, total / np.maximum(n, 1), outside)
        bad = np.full(good.shape, outside)
        for _ in range(60):
            middle = (good + bad) / 2
            held = beta_log_e(n, total, middle, a=a, b=b) < threshold
            good, bad = np.where(held, middle, good), np.where(held, bad, middle)
        ends.append(bad)
    return ends[0], ends[1]


# Events of one key while they are being collected, and what becomes of them.


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Observation:
    """Average of the events of one key.

    Parameters
    ----------
    key : hashable
    values : ndarray of shape (groups,)
    null : ndarray of shape (groups,) or None
        Average baseline, when all of the events brought one.
    n_events : int
    """

    key: Hashable
    values: FloatArray
    null: FloatArray | None
    n_events: int


@dataclass(slots=True)
class Bucket:
    """Sums of the events of one key.

    Parameters
    ----------
    opened : float
        Time of the first event, in seconds.
    n : int
    values : list of float
    null : list of float or None
        None as soon as one event brought no baseline.
    """

    opened: float
    n: int
    values: list[float]
    null: list[float] | None

    def add(self, values: Sequence[float], null: Sequence[float] | None) -> None:
        """Add one event."""
        self.n += 1
        self.values = [a + b for a, b in zip(self.values, values, strict=True)]
        self.null = (
            None
            if self.null is None or null is None
            else [a + b for a, b in zip(self.null, null, strict=True)]
        )

    def observation(self, key: Hashable) -> Observation:
        """Return the average."""
        # A mean of numbers in [0, 1] can leave it by a rounding error.
        return Observation(
            key=key,
            values=np.clip(np.array(self.values) / self.n, 0, 1),
            null=None if self.null is None else np.clip(np.array(self.null) / self.n, 0, 1),
            n_events=self.n,
        )


# Repeated queries, sessions and time buckets: what belongs together becomes one observation.
# The same query returns the same documents, so its repeats say nothing new, and a test that
# counted them would be sure too soon. Events of one key are averaged, and the average is one
# observation. When a bucket closes depends on the clock and on counts, never on values, so the
# average of a bucket has the mean that its events have.


_COUNTERS = ("n_events", "n_observations", "n_repeats", "n_closed_early")


class Aggregator:
    """Collect events until the bucket of their key closes; bounded memory.

    Parameters
    ----------
    groups : int
    max_seconds : float
        A bucket closes this long after its first event.
    max_events : int
        It closes with this many events, too.
    max_open : int
        Buckets open at once; with more, the oldest closes early.
    remember : int
        Keys of closed buckets that are kept, most recent first: their events are counted as
        repeats and left out. 0 opens a new bucket instead, as sessions and time buckets want it.

    Attributes
    ----------
    n_events, n_observations, n_repeats, n_closed_early : int
        Events added; buckets closed; events left out; buckets closed for lack of room.

    Examples
    --------
    >>> aggregator = Aggregator(max_seconds=60, max_events=2)
    >>> aggregator.add("q1", [1.0], now=0.0)
    []
    >>> [(o.key, float(o.values[0])) for o in aggregator.add("q1", [0.0], now=1.0)]
    [('q1', 0.5)]
    """

    kind = "aggregator"

    def __init__(
        self,
        *,
        groups: int = 1,
        max_seconds: float = 3600.0,
        max_events: int = 1_000,
        max_open: int = 10_000,
        remember: int = 10_000,
    ) -> None:
        if min(groups, max_events, max_open) < 1 or remember < 0 or not max_seconds > 0:
            raise DataError(
                "groups, max_events and max_open must be at least 1, remember at least 0 and "
                f"max_seconds above 0; got {groups}, {max_events}, {max_open}, {remember} "
                f"and {max_seconds}"
            )
        self.groups, self.max_seconds, self.max_events = groups, max_seconds, max_events
        self.max_open, self.remember = max_open, remember
        self.n_events = self.n_observations = self.n_repeats = self.n_closed_early = 0
        self._open: OrderedDict[Hashable, Bucket] = OrderedDict()  # oldest first
        self._closed: OrderedDict[Hashable, None] = OrderedDict()
        self._now = -math.inf

    def add(
        self,
        key: Hashable,
        values: Sequence[float],
        *,
        now: float,
        null: Sequence[float] | None = None,
    ) -> list[Observation]:
        """Add one event; return the observations that are complete by now.

        Parameters
        ----------
        key : hashable
            Hash of the query, session or number of a time bucket.
        values : sequence of float
            One per group, in [0, 1].
        now : float
            Seconds of any clock; going backwards counts as standing still.
        null : sequence of float or None
            Baselines of this event, one per group.

        Raises
        ------
        DataError
            If a number is not in [0, 1] or there are too many or too few; nothing is added then.
        """
        self._check(values)
        if null is not None:
            self._check(null)
        if not math.isfinite(now):
            raise DataError(f"now must be a finite number of seconds, got {now}")
        done = self.close(now=now)
        self.n_events += 1
        bucket = self._open.get(key)
        if bucket is None:
            if key in self._closed:
                self._closed.move_to_end(key)
                self.n_repeats += 1
                return done
            if len(self._open) >= self.max_open:
                self.n_closed_early += 1
                done.append(self._take(next(iter(self._open))))
            baselines = None if null is None else list(map(float, null))
            bucket = Bucket(self._now, 1, list(map(float, values)), baselines)
            self._open[key] = bucket
        else:
            bucket.add(values, null)
        if bucket.n >= self.max_events:
            done.append(self._take(key))
        return done

    def close(self, *, now: float) -> list[Observation]:
        """Return the observations whose time is over."""
        self._now = max(self._now, now)
        over = takewhile(
            lambda key: self._now - self._open[key].opened >= self.max_seconds, self._open
        )
        return [self._take(key) for key in list(over)]

    def flush(self) -> list[Observation]:
        """Close all buckets, as at the end of a replay."""
        return [self._take(key) for key in list(self._open)]

    def _check(self, numbers: Sequence[float]) -> None:
        if len(numbers) != self.groups or not all(0 <= x <= 1 for x in numbers):
            raise DataError(
                f"an event needs {self.groups} numbers in [0, 1], got {list(numbers)!r:.80}"
            )

    def _take(self, key: Hashable) -> Observation:
        self.n_observations += 1
        if self.remember:
            self._closed[key] = None
            if len(self._closed) > self.remember:
                self._closed.popitem(last=False)
        return self._open.pop(key).observation(key)

    def to_dict(self) -> dict[str, Any]:
        """Return settings and state as plain JSON values; keys must be text or numbers."""
        data = write_state(
            self.kind,
            {
                name: getattr(self, name)
                for name in ("groups", "max_seconds", "max_events", "max_open", "remember")
            },
            {name: getattr(self, name) for name in _COUNTERS},
        )
        # Ages, not times: the clock of the next process may count from elsewhere.
        data["state"]["open"] = [
            [key, self._now - b.opened, b.n, b.values, b.null] for key, b in self._open.items()
        ]
        data["state"]["closed"] = list(self._closed)
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], *, now: float) -> Aggregator:
        """Go on from what :meth:`to_dict` returned, with the clock at ``now``.

        Raises
        ------
        DataError
            If it is not the state of an aggregator.
        UnsupportedVersionError
            If another release wrote it.
        """
        settings, state = read_state(data, cls.kind)
        found = rebuild(cls, settings)
        found._now = now
        try:
            for name in _COUNTERS:
                setattr(found, name, int(state[name]))
            for key, age, n, values, null in state["open"]:
                found._open[key] = Bucket(
                    now - float(age), int(n), list(values), None if null is None else list(null)
                )
            found._closed = OrderedDict.fromkeys(state["closed"])
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(f"stored state of an aggregator: {error!r:.80}") from None
        return found
