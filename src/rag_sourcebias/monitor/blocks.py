"""Has the mean of dependent observations moved? Evidence from blocks of them."""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.data import FloatArray, IntArray
from rag_sourcebias.core.errors import DataError, check_level
from rag_sourcebias.monitor.state import restore

# Retrievals depend on one another: sessions, topics that come and go, the time of day. So they are
# averaged in blocks, and blocks are joined in twos until their residuals show no autocorrelation.
# Then block means y are taken for y = Zγ + δ·1(i ≥ j) + σε with independent normal ε: Z holds a
# constant (none where the baseline is known), waves of the day and the week once they were seen,
# and a column for every shift told before. With a flat prior on γ, 1/σ on σ and δ ~ N(0, gσ²) the
# Bayes factor of a step at j is, after n blocks,
# (1 + gA)^(−1/2) · (1 − b²/S · g/(1 + gA))^(−(n − rank Z)/2),
# where A is the squared norm of the step less its projection on Z, b its product with y, and S the
# residual sum of squares without it. As a ratio of densities of the maximal invariant it is a
# martingale that is 1 where the step begins (Lai 1976, Annals of Statistics 4:265; Lindon, Ham,
# Tingley & Bojinov 2022, arXiv:2210.08589). So is its average over beginnings, over several g and
# over columns, which need not be independent. The normal distribution, the choice of the length of
# blocks and the sliding past are approximations: benchmarks/monitor/blocks.py says what they cost.


DAY = 86_400.0
WEEK = 7 * DAY
UNITS = 25
"""Retrievals, or users, of the shortest block."""
_CROWDED = 16
_MOST_UNITS = 4_096
_MOST_BLOCKS, _TRAILING, _LONG = 512, 28 * DAY, DAY / 6
_PRIOR = 1 / 200  # of a step at each of the shortest blocks
_SIZES = np.array([0.5, 5.0, 50.0])  # g
_ENOUGH = 10
_AUTOCORRELATION = 1.0  # standard errors, beyond which blocks are joined
_RESOLUTION = 0.01  # shifts below a point are none
# Hours, and days of the week, in the order in which blocks afford them.
_PERIODS = np.array([DAY, WEEK, WEEK / 2, WEEK / 3, DAY / 2, DAY / 3])
_VISIBLE = 0.3  # root mean square of a wave that blocks do not average out
_PER_WAVE = 5  # joined blocks at least for each sine or cosine
_AS_LIKELY = 2.0  # natural log of the odds of a beginning that may be the right one
_RARE = 0.01
_GAP = 4
# Behind sums and waves of a block: observations, units, first and last time, seconds watched.
_BESIDE = 2 * len(_PERIODS) + 5


# Members that are numbers or arrays of them, and are kept over a restart.
_KEPT = ("n", "size", "scale", "watched", "gone", "rho", "by_user", "log_e")


def log_mean_exp(log_values: FloatArray) -> FloatArray:
    """Return the logarithm of the mean of exponentials along the last axis."""
    top = log_values.max(axis=-1, keepdims=True)
    return np.asarray(np.log(np.exp(log_values - top).mean(axis=-1)) + top.squeeze(-1))


def clock_waves(at: FloatArray) -> FloatArray:
    """Return sines and cosines of the time of day and of the week, shape (n, 12)."""
    angle = 2 * np.pi * at[:, None] / _PERIODS
    return np.concatenate([np.sin(angle), np.cos(angle)], axis=1)


class StepFit(NamedTuple):
    """Evidence for a step of the means of blocks.

    Parameters
    ----------
    log_e : ndarray of shape (columns,)
        Averaged over all beginnings.
    each : ndarray of shape (steps, columns)
    start : int
        Block of the first step.
    rho : ndarray of shape (columns,)
        Autocorrelation of residuals around the best step, corrected for its bias.
    """

    log_e: FloatArray
    each: FloatArray
    start: int
    rho: FloatArray


def step_evidence(
    y: FloatArray, z: FloatArray, weights: FloatArray, *, first: int, prior: float
) -> StepFit:
    """Return the evidence for a step at block ``first`` or later.

    Parameters
    ----------
    y : ndarray of shape (n, columns)
    z : ndarray of shape (n, k)
        What else the means may depend on.
    weights : ndarray of shape (n,)
        Of the blocks: inverse variances but for a factor.
    prior : float
        Probability of a step at each block.
    """
    n = len(y)
    root = np.sqrt(weights / weights.mean())
    q = _basis(z * root[:, None])
    residual = root[:, None] * y
    residual = residual - q @ (q.T @ residual)
    inner = (root[:, None] * residual)[::-1].cumsum(axis=0)[::-1][first:]
    shadow = (root[:, None] * q)[::-1].cumsum(axis=0)[::-1][first:]
    norm = (root**2)[::-1].cumsum()[::-1][first:] - (shadow**2).sum(axis=1)
    norm = np.maximum(norm, 1e-9)
    best = (inner**2 / norm[:, None]).argmax(axis=0)
    step = root[:, None] * (np.arange(n)[:, None] >= best + first) - q @ shadow[best].T
    left = residual
    level = root - q @ (q.T @ root)
    slow = (q[1:] * q[:-1]).sum()
    if (size := level @ level) > 1e-6 * n:  # a mean that is not quite the known one is no rhythm
        level /= math.sqrt(size)
        step, left = (x - level[:, None] * (level @ x) for x in (step, left))
        slow += level[1:] @ level[:-1]
    gained = (step * left).sum(axis=0) / np.maximum((step**2).sum(axis=0), 1e-9)
    left = left - step * gained
    rho = (left[1:] * left[:-1]).sum(axis=0) / ((left**2).sum(axis=0) + 1e-12)
    rho += (1 + slow) / n  # what q and the step take out of a white residual
    total = ((residual**2).sum(axis=0) + n * _RESOLUTION**2) * inflation(rho)
    scaled = 1 + _SIZES * norm[:, None]
    gain = (inner**2 / total)[:, None, :] * (_SIZES / scaled)[..., None]
    df = n - q.shape[1]
    log_e = -0.5 * np.log(scaled)[..., None] - df / 2 * np.log1p(-np.minimum(gain, 1 - 1e-9))
    each = log_mean_exp(np.moveaxis(log_e, 1, -1))
    rest = max(1 - prior * len(each), 0.0)  # no step yet
    top = np.maximum(each.max(axis=0), 0.0)
    mixed = top + np.log(prior * np.exp(each - top).sum(axis=0) + rest * np.exp(-top))
    return StepFit(mixed, each, first, rho)


def inflation(rho: FloatArray) -> FloatArray:
    """Return the factor by which autocorrelation of the first order raises a variance."""
    found = rho.clip(0, 0.9)
    return np.asarray((1 + found) / (1 - found))


def _basis(z: FloatArray) -> FloatArray:
    """Return an orthonormal basis of the columns of z."""
    if not z.shape[1]:
        return z
    q, r = np.linalg.qr(z)
    return np.asarray(q[:, np.abs(np.diag(r)) > 1e-6 * max(1.0, float(np.abs(r).max()))])


# Levels of every column, before and since a shift.


class Level(NamedTuple):
    """Means with intervals, and standard deviations of joined blocks; shape (columns,)."""

    mean: FloatArray
    lower: FloatArray
    upper: FloatArray
    spread: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Shift:
    """A shift of the means, told once.

    Parameters
    ----------
    kind : {"notice", "page", "resolved", "unsure"}
        A notice where most of the time since is of days of the week not seen before, as in the
        first week. Resolved: back where it was before the last shift. Unsure, and not told unless
        it is explained: whether back or elsewhere.
    column : int
        Column with the most evidence.
    columns : tuple of int
        All whose means moved, too.
    base, level : Level
        Before the shift, and since. Of a return, base is the ordinary level.
    evidence : float
        Natural log of the e-value.
    since, at : float
        Times of its first block, and of the last.
    n : int
        Observations since.
    rows : tuple of int
        Blocks kept before and since the shift.
    before : ndarray of int
        Those of them that were at the level just before.
    step : tuple of Level
        Just before, which may have been elsewhere already, and since.
    """

    kind: Literal["notice", "page", "resolved", "unsure"]
    column: int
    columns: tuple[int, ...]
    base: Level
    level: Level
    evidence: float
    since: float
    at: float
    n: int
    rows: tuple[int, int]
    before: IntArray
    step: tuple[Level, Level]


class _Levels(NamedTuple):
    """Levels, and which columns changed at a step, are away from the ordinary level, or back."""

    base: Level
    level: Level
    step: tuple[Level, Level]
    moved: npt.NDArray[np.bool_]
    away: npt.NDArray[np.bool_]
    back: npt.NDArray[np.bool_]


@dataclass(slots=True)
class _Excursion:
    """Blocks in which the means were elsewhere.

    Those up to ``told`` were chosen because they were far away. What comes later is taken for
    another level, so that its return to a milder one is no news. Where the shift was explained,
    it is one of the ``ordinary`` level from then on. A ``notice`` is judged anew after a week: it
    may have been a weekend.
    """

    start: int
    told: int
    stop: int | None
    columns: tuple[int, ...]
    ordinary: bool = False
    notice: bool = False

    def spans(self) -> list[tuple[int, int | None]]:
        """Return the blocks of both levels, those that there are."""
        stop = self.stop
        early = self.told if stop is None else min(self.told, stop)
        return [(self.start, early), (self.told, stop)]


@dataclass(slots=True)
class _Open:
    """The block that is being filled."""

    sums: FloatArray
    n: int = 0
    units: dict[Hashable, tuple[int, FloatArray]] = field(default_factory=dict)
    alone: int = 0
    start: float = 0.0
    end: float = 0.0


class BlockTest:
    """Do means of dependent values stay where they are? Blocks of them are looked at all the time.

    Memory is constant: where there are 512 blocks, neighbours are joined, or, when these cover
    four weeks, the oldest go. Evidence is that of :func:`step_evidence`, averaged over columns that
    are not constant; told where it passes 1/α (a page) or, before seven days were watched,
    1/(2α) (a notice), and the interval of the new level excludes the old one.

    Parameters
    ----------
    columns : int
    beside : int
        Further columns, which are added up and not tested.
    known : bool
        Values are differences from a known baseline: their mean is 0.
    learn : int
        Observations before a shift can begin; only where there is no known baseline.
    confidence_level : float

    Attributes
    ----------
    n : int
        Blocks kept.
    scale : int
        2^scale of them are one independent block, as far as one can tell.
    watched : float
        Seconds, of which a gap counts for a day at most.
    by_user : bool
        Whether units were named: means are then means over units.
    log_e : ndarray of shape (columns,)
        Evidence now.
    """

    def __init__(
        self,
        columns: int = 1,
        *,
        beside: int = 0,
        known: bool = False,
        learn: int = 500,
        confidence_level: float = 0.95,
    ) -> None:
        check_level(confidence_level)
        if min(columns, learn + 1) < 1:
            raise DataError(f"columns must be at least 1 and learn 0, got {columns} and {learn}")
        self.columns, self.beside, self.known, self.learn = columns, beside, known, learn
        self.confidence_level = confidence_level
        self._width = columns + beside
        self._rows: FloatArray = np.zeros((64, self._width + _BESIDE))
        self.n, self.size, self.scale, self.watched, self.gone = 0, UNITS, 0, 0.0, 0
        self.log_e: FloatArray = np.zeros(columns)
        self.rho = 0.0
        self.by_user = False
        self._excursions: list[_Excursion] = []
        self._open = _Open(np.zeros(self._width + 2 * len(_PERIODS)))
        self._last = -math.inf
        self._kept: tuple[tuple[float, int], tuple[Level, Level] | None] | None = None

    # Blocks are filled.

    def add_many(
        self,
        values: FloatArray,
        at: npt.ArrayLike,
        *,
        units: Sequence[Hashable | None] | None = None,
        explained: Callable[[Shift], bool] | None = None,
    ) -> list[tuple[int, Shift]]:
        """Add observations in the order in which they came; return the rows at which shifts show.

        Parameters
        ----------
        values : ndarray of shape (n, columns + beside)
        at : array_like of shape (n,)
            Times in seconds; late ones count in the block that is open.
        units : sequence of hashable or None
            Users or sessions: within a block, each counts once. None counts for itself.
        explained : callable or None
            Asked about a shift as it shows: True moves the ordinary level by it, and later shifts
            are told against that.
        """
        times = np.asarray(at, np.float64)
        sums = np.concatenate([values, clock_waves(times)], axis=1)
        found: list[tuple[int, Shift]] = []
        start = 0
        while start < len(sums):
            stop = self._fill(sums, times, units, start)
            block = self._open
            full = self._full(block.n, block.alone + len(block.units), times[stop - 1])
            if full and (shift := self._close(explained)) is not None:
                found.append((stop - 1, shift))
            start = stop
        return found

    def _fill(
        self,
        sums: FloatArray,
        times: FloatArray,
        units: Sequence[Hashable | None] | None,
        start: int,
    ) -> int:
        """Add observations until the block may be full; return where that is."""
        block = self._open
        if not block.n:
            block.start = block.end = max(float(times[start]), self._last)
        if units is None:
            room = max(self.size - block.alone - len(block.units), 1)
            if block.alone < UNITS:  # the time may end it once it has enough
                room = min(room, UNITS - block.alone)
            late = np.flatnonzero(times[start : start + room] - block.start >= _LONG)
            stop = min(start + room, len(sums))
            if len(late) and block.alone >= UNITS:
                stop = min(stop, start + int(late[0]) + 1)
            block.sums = np.concatenate([block.sums[None], sums[start:stop]]).cumsum(axis=0)[-1]
            block.alone += stop - start
        else:
            stop = self._fill_units(sums, times, units, start)
        block.n += stop - start
        block.end = max(block.end, float(times[start:stop].max()))
        return stop

    def _fill_units(
        self, sums: FloatArray, times: FloatArray, units: Sequence[Hashable | None], start: int
    ) -> int:
        """Add observations one by one in time, as those of users, until the block is full."""
        block = self._open
        names: dict[Hashable, int] = {}
        codes: list[int] = []
        count = block.alone + len(block.units)
        stop = start
        while stop == start or (
            stop < len(units) and not self._full(block.n + len(codes), count, times[stop - 1])
        ):
            unit = units[stop]
            count += unit is None or not (unit in names or unit in block.units)
            codes.append(-1 if unit is None else names.setdefault(unit, len(names)))
            self.by_user |= unit is not None
            stop += 1
        rows = sums[start:stop]
        at = np.array(codes)
        alone = rows[at < 0]
        block.sums = np.concatenate([block.sums[None], alone]).cumsum(axis=0)[-1]
        block.alone += len(alone)
        known = [block.units.get(unit, (0, np.zeros(rows.shape[1]))) for unit in names]
        if known:
            table = np.array([before for _, before in known])
            np.add.at(table, at[at >= 0], rows[at >= 0])  # one after another
            counts = np.bincount(at[at >= 0])
            for unit, (n, _), more, one in zip(names, known, counts, table, strict=True):
                block.units[unit] = n + int(more), one
        return stop

    def _full(self, n: int, units: int, now: float) -> bool:
        most = min(self.size, _MOST_UNITS) if self.by_user else self.size
        return (
            units >= most
            or n >= _CROWDED * self.size
            or (units >= UNITS and now - self._open.start >= _LONG)
        )

    def _close(self, explained: Callable[[Shift], bool] | None) -> Shift | None:
        block = self._open
        width = self._width
        units = block.alone + len(block.units)
        row = np.zeros(width + _BESIDE)
        row[: len(block.sums)] = block.sums
        for n, sums in block.units.values():
            row[: len(sums)] += sums / n
        gap = block.end - (block.start if self._last == -math.inf else self._last)
        self.watched += min(max(gap, 0.0), DAY)
        self._last = max(self._last, block.end)
        row[-5:] = block.n, units, block.start, block.end, self.watched
        if self.n == len(self._rows):
            self._rows = np.concatenate([self._rows, np.zeros_like(self._rows)])
        self._rows[self.n] = row
        self.n += 1
        self._open = _Open(np.zeros(width + 2 * len(_PERIODS)))
        self._kept = None
        shift = self._look()
        if shift is not None:
            if explained is not None and explained(shift):
                shift = self._settled(shift)
            else:
                shift = self._noted(shift)
        if self.n >= _MOST_BLOCKS:
            self._shorten()
        return shift

    def _noted(self, shift: Shift) -> Shift | None:
        """Take the level since a shift for one elsewhere, or for the ordinary one again."""
        away, (start, told) = self._away(), shift.rows
        if shift.kind == "unsure":
            return None
        if away is not None:
            away.stop = start
        if shift.kind != "resolved":
            notice = shift.kind == "notice"
            self._excursions.append(_Excursion(start, told, None, shift.columns, notice=notice))
        return shift

    def _settled(self, shift: Shift) -> Shift:
        """Move the ordinary level by a shift; what was away stays so."""
        start, told = shift.rows
        self._excursions.append(_Excursion(start, told, None, shift.columns, ordinary=True))
        base, level = shift.step
        return replace(shift, kind=self._kind(start), base=base, level=level)

    def _kind(self, step: int) -> Literal["notice", "page"]:
        """Tell a page where most of the time since was one of a week already seen, or a week."""
        before = self._seen(0, step)
        after = self._seen(step, self.n)
        known = after - max(WEEK - before, 0.0)
        return "page" if 2 * known >= after or after >= WEEK else "notice"

    def _seen(self, start: int, stop: int) -> float:
        """Return the seconds watched from one block to another."""
        ends = np.concatenate([[-math.inf if self.gone else 0.0], self._rows[: self.n, -1]])
        return float(ends[stop] - ends[start])

    def _shorten(self) -> None:
        """Make room: join neighbours, or let the oldest go."""
        rows, least, span = self._rows[: self.n], 0, 1
        if rows[-1, -1] - rows[0, -1] >= _TRAILING:
            least = self.n // 8
            self.gone += int(rows[:least, -5].sum())
            kept = rows[least:].copy()
        else:
            span = 2
            pairs = rows[: self.n // 2 * 2].reshape(-1, 2, rows.shape[1])
            kept = pairs.sum(axis=1)
            kept[:, -3], kept[:, -2:] = pairs[:, 0, -3], pairs[:, 1, -2:]
            self.size *= 2
            self.scale = max(self.scale - 1, 0)
        self.n = len(kept)
        self._rows[: self.n] = kept
        for one in self._excursions:
            one.start, one.told = (max(i - least, 0) // span for i in (one.start, one.told))
            one.stop = None if one.stop is None else max(one.stop - least, 0) // span
        # A level that is older than all that is kept is the ordinary one.
        old = [e for e in self._excursions if self.known and e.ordinary and not e.told][-1:]
        self._excursions = old + [
            e for e in self._excursions if e.stop != 0 and (e.told > 0 or e.stop is not None)
        ]

    # Blocks are looked at.

    def _look(self) -> Shift | None:
        self.scale = max(self.scale - 1, 0)
        if self.n % 2**self.scale:  # no joined block is complete
            self.scale += 1
            return None
        self.log_e = np.zeros(self.columns)
        self._excursions = [
            e for e in self._excursions if not e.notice or self._seen(e.start, self.n) < WEEK
        ]
        active = self._active()
        self._settle()
        while len(active) and (joined := self._joined(self.scale)) is not None:
            y, z, units = joined
            first = self._first(self.scale)
            if first >= len(y) - (first == 0):
                break
            fit = step_evidence(y[:, active], z, units, first=first, prior=_PRIOR * 2**self.scale)
            self.rho = float(fit.rho.max())
            if self.rho * math.sqrt(len(y)) <= _AUTOCORRELATION:
                self.log_e[active] = fit.log_e
                return self._tell(fit, active)
            self.scale += 1
        return None

    def _active(self) -> IntArray:
        """Return columns that are neither constant nor rare."""
        rows = self._rows[: self.n]
        means = rows[:, : self.columns] / rows[:, [-4]]
        size = np.abs(means)
        varied = size.any(axis=0) if self.known else np.ptp(means, axis=0) > 0
        seen = varied & ((size.mean(axis=0) >= _RARE) | (size.max(axis=0) >= 10 * _RARE))
        return np.flatnonzero(seen)

    def _first(self, scale: int) -> int:
        """Return the joined block at which a step may begin."""
        first = 0 if self.known and not self._excursions else 3
        if not self.known and not self._excursions and not self.gone:
            observed = self._rows[: self.n, -5].cumsum()
            first = max(first, -(-int((observed <= self.learn).sum()) // 2**scale))
        if self._excursions:
            last = self._excursions[-1]
            first = -(-max(last.told, last.stop or 0) // 2**scale) + _GAP
        return first

    def _joined(
        self, scale: int, *, step: int | None = None
    ) -> tuple[FloatArray, FloatArray, FloatArray] | None:
        """Return means, regressors and numbers of units of joined blocks; None of too few."""
        span = 2**scale
        n = self.n // span
        if n < _ENOUGH:
            return None
        rows = self._rows[: n * span].reshape(n, span, -1).sum(axis=1)
        parts = [] if self.known else [np.ones((n, 1))]
        blocks = np.arange(n * span)
        spans = [span for e in self._excursions for span in e.spans()]
        spans += [] if step is None else [(step, None)]
        for start, stop in spans:  # one that has not begun is a column of zeros
            inside = (blocks >= start) & (blocks < (n * span if stop is None else stop))
            parts.append(inside.reshape(n, span).mean(axis=1)[:, None])
        if self.watched >= WEEK:
            waves = rows[:, self._width : -5] / rows[:, [-5]]
            waves = (waves - waves.mean(axis=0)).reshape(n, 2, -1)
            seen = np.flatnonzero((np.sqrt((waves**2).mean(axis=0)) > _VISIBLE).all(axis=0))
            parts.append(waves[:, :, seen[: n // (2 * _PER_WAVE)]].reshape(n, -1))
        z = np.concatenate([np.zeros((n, 0)), *parts], axis=1)
        if n - z.shape[1] < _ENOUGH - 1:
            return None
        return rows[:, : self.columns] / rows[:, [-4]], z, rows[:, -4]

    def _settle(self) -> None:
        """Move the beginning of a young shift to where it fits best."""
        last = self._excursions[-1] if self._excursions else None
        span = 2**self.scale
        if last is None or last.stop is not None or self.n - last.told > 8 * span:
            return
        earlier = self._excursions[-2].stop if len(self._excursions) > 1 else 0
        tried = [
            last.start + d for d in range(-4, 5) if (earlier or 0) < last.start + d < last.told
        ]
        best = last.start
        least = math.inf
        for start in tried:
            last.start = start
            joined = self._joined(0)
            if joined is None:
                break
            y, z, units = joined
            root = np.sqrt(units)[:, None]
            q = _basis(z * root)
            column = root[:, 0] * y[:, last.columns[0]]
            left = float((column**2).sum() - ((q.T @ column) ** 2).sum())
            if left < least:
                best = start
                least = left
        last.start = best

    def _tell(self, fit: StepFit, active: IntArray) -> Shift | None:
        alpha = 1 - self.confidence_level
        whole_week = self.watched >= WEEK
        evidence = float(log_mean_exp(fit.log_e))
        if evidence < -math.log(alpha if whole_week else min(2 * alpha, 0.5)):
            return None
        lead = int(fit.log_e.round(2).argmax())  # of two that say the same the first
        column = int(active[lead])
        each = fit.each[:, lead]
        step = (int(each.argmax()) + fit.start) * 2**self.scale
        latest = (
            int(np.flatnonzero(each >= each.max() - _AS_LIKELY)[-1]) + fit.start
        ) * 2**self.scale
        levels = self._levels(step, self.scale)
        away = self._away()
        if levels is None or not levels.moved[column]:
            return None
        kind: Literal["notice", "page", "resolved", "unsure"] = self._kind(latest)
        if away is not None and levels.back[column]:
            kind = "resolved"
        elif not levels.away[column]:
            kind = "unsure"
        strongest = active[np.argsort(-fit.log_e.round(2), kind="stable")].tolist()
        columns = tuple(c for c in strongest if c == column or levels.moved[c])
        further = away is not None and kind != "resolved"
        base, level = levels.step if further else (levels.base, levels.level)
        rows = self._rows[step : self.n]
        return Shift(
            kind=kind,
            column=column,
            columns=columns,
            base=base,
            level=level,
            evidence=evidence,
            since=float(rows[0, -3]),
            at=float(rows[-1, -2]),
            n=int(rows[:, -5].sum()),
            rows=(step, self.n),
            before=self._before(step),
            step=levels.step,
        )

    def _before(self, step: int) -> IntArray:
        """Return the blocks at the level that was left at a step."""
        kept = np.ones(step, bool)
        for one in self._excursions:
            kept[slice(None, one.told) if one.stop is None else slice(one.start, one.stop)] = False
        return np.flatnonzero(kept)

    def levels(self) -> tuple[Level, Level] | None:
        """Return the ordinary level and that of now, the same but after a shift; None too early."""
        if self._kept is not None and self._kept[0] == (self.watched, self.n):
            return self._kept[1]
        still = self.away is None
        alone = still and self.known and not self.settled
        # What was told stays so where blocks have since become too long to be told apart.
        scales = range(self.scale, -1 if self._excursions else self.scale - 1, -1)
        tried = (self._levels(0 if alone else None, scale) for scale in scales)
        found = next((levels for levels in tried if levels is not None), None)
        now = None
        if found is not None:
            now = found.base, found.base if still and not alone else found.level
        self._kept = (self.watched, self.n), now
        return now

    def _levels(self, step: int | None, scale: int) -> _Levels | None:
        joined = self._joined(scale, step=step)
        if joined is None:
            return None
        from scipy.special import stdtrit

        y, z, units = joined
        root = np.sqrt(units / units.mean())[:, None]
        inverse = np.linalg.pinv(z * root)
        beta = inverse @ (root * y)
        left = root * (y - z @ beta)
        df = max(len(y) - z.shape[1], 1)
        rho = (left[1:] * left[:-1]).sum(axis=0) / ((left**2).sum(axis=0) + 1e-12)
        sigma = np.sqrt((left**2).sum(axis=0) / df * inflation(rho + 2 / len(y)))
        reach = float(stdtrit(df, 0.5 + self.confidence_level / 2)) * np.maximum(sigma, 1e-9)
        constant = int(not self.known)
        many = 2 * len(self._excursions)

        def contrast(*at: int) -> tuple[FloatArray, FloatArray]:
            row = np.zeros(z.shape[1])
            row[list(at)] = 1
            return row @ beta, reach * float(np.linalg.norm(row @ inverse))

        # The later level of an excursion, or the early one while there is no other.
        late = [
            constant + 2 * i + (len(y) * 2**scale - e.told >= _GAP * 2**scale)
            for i, e in enumerate(self._excursions)
        ]
        ends = [(at, e) for at, e in zip(late, self._excursions, strict=True) if e.stop is None]
        settled = [at for at, e in ends if e.ordinary]
        open_at = [at for at, e in ends if not e.ordinary]
        new_at = [] if step is None else [constant + many]
        base, wide = contrast(*range(constant), *settled)
        far, _ = contrast(*open_at)
        change, half = contrast(*new_at)
        apart, both = contrast(*open_at, *new_at)
        back = change * far < 0  # or beyond it: what is told early looks larger than it is
        left_at, around = contrast(*range(constant), *settled, *open_at)
        now = left_at + change
        return _Levels(
            base=Level(base, base - wide, base + wide, sigma),
            level=Level(base + apart, base + apart - both, base + apart + both, sigma),
            step=(
                Level(left_at, left_at - around, left_at + around, sigma),
                Level(now, now - half, now + half, sigma),
            ),
            moved=np.abs(change) > half,
            away=np.abs(apart) - np.where(back, np.abs(far) / 2, 0) > both,
            back=np.abs(apart) <= np.maximum(0.3 * np.abs(far), half),
        )

    @property
    def away(self) -> tuple[int, ...] | None:
        """Columns that are away from their ordinary level, the clearest first; None of none."""
        found = self._away()
        return None if found is None else found.columns

    def _away(self) -> _Excursion | None:
        found = [one for one in self._excursions if one.stop is None and not one.ordinary]
        return found[-1] if found else None

    @property
    def settled(self) -> bool:
        """Whether the ordinary level is that of a shift that was explained."""
        return any(one.ordinary for one in self._excursions)

    @property
    def n_level(self) -> int | None:
        """Observations at the level of now; None where these are all there were."""
        if not (self._excursions or self.gone):
            return None
        return int(self._rows[self._before(self.n), -5].sum())

    def extent(self) -> tuple[int, float, float]:
        """Return how many joined blocks there are, their observations and seconds on average."""
        rows = self._rows[: self.n]
        span = 2**self.scale
        if not self.n:
            return 0, float(self.size * span), 0.0
        seconds = float(self.watched - rows[0, -1]) / max(self.n - 1, 1)
        return self.n // span, float(rows[:, -5].mean() * span), seconds * span

    def times(self, blocks: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return the middle of blocks in time, and their observations."""
        rows = self._rows[blocks]
        return rows[:, -3:-1].mean(axis=1), rows[:, -5]

    def sums(self, blocks: IntArray) -> FloatArray | None:
        """Return sums of blocks as joined now: columns, those beside, and units; None of none."""
        span = 2**self.scale
        rows = self._rows[blocks]
        n = len(rows) // span
        if not n:
            span = max(len(rows), 1)
            n = int(len(rows) > 0)
        if not n:
            return None
        joined = rows[len(rows) - n * span :].reshape(n, span, -1).sum(axis=1)
        return np.concatenate([joined[:, : self._width], joined[:, [-4]]], axis=1)

    # What is kept over a restart.

    def to_dict(self) -> dict[str, Any]:
        """Return the state as plain JSON values; units must be text."""
        rows = self._rows[: self.n]
        block = self._open
        used = np.flatnonzero(rows.any(axis=0))
        return {
            **{name: np.asarray(getattr(self, name)).tolist() for name in _KEPT},
            "rows": [used.tolist(), _packed(rows[:, used])],
            "excursions": [
                [e.start, e.told, e.stop, list(e.columns), e.ordinary, e.notice]
                for e in self._excursions
            ],
            "last": self._last if math.isfinite(self._last) else None,
            "open": {
                "sums": _packed(block.sums),
                "counts": [block.n, block.alone, block.start, block.end],
                "units": [[unit, n, _packed(sums)] for unit, (n, sums) in block.units.items()],
            },
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from what :meth:`to_dict` of a test of the same settings returned.

        Raises
        ------
        DataError
            If it is not the state of such a test.
        """
        try:
            restore(self, {name: getattr(self, name) for name in _KEPT}, state)
            self._last = -math.inf if state["last"] is None else float(state["last"])
            used, rows = state["rows"]
            self._rows = np.zeros((max(64, self.n), self._width + _BESIDE))
            self._rows[: self.n, used] = _unpacked(rows).reshape(self.n, len(used))
            self._excursions = [
                _Excursion(start, told, stop, tuple(columns), *map(bool, how))
                for start, told, stop, columns, *how in state["excursions"]
            ]
            n, alone, start, end = state["open"]["counts"]
            sums = _unpacked(state["open"]["sums"]).reshape(self._open.sums.shape)
            units = {u: (int(m), _unpacked(s)) for u, m, s in state["open"]["units"]}
            self._open = _Open(sums, int(n), units, int(alone), float(start), float(end))
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise DataError(f"stored blocks of a test: {error!r:.80}") from None
        if not np.isfinite(self._rows).all():
            raise DataError("stored blocks of a test are not finite")


def _packed(array: FloatArray) -> str:
    return base64.b64encode(np.ascontiguousarray(array, "<f8").tobytes()).decode()


def _unpacked(text: str) -> FloatArray:
    return np.frombuffer(base64.b64decode(text, validate=True), "<f8").astype(np.float64)


# What a shift is made of: what the index holds, what is asked, and how it is ranked.
# Exposure is E = Σ_t q_t e_t with the share q_t of questions on topic t. With the share c of the
# group in the index, logit e_t = logit c + r_t says what ranking makes of it: r_t is left as it is
# where documents come in that are treated as those before. A shift of q, c and r at once is split
# by the average over the orders in which they change (Shapley), which adds up exactly.


_PARTS = ("index", "asked", "ranking")
_ORDERS = ((0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0))
_DRAWS = 400


def split_shift(
    before: FloatArray,
    after: FloatArray,
    *,
    index: tuple[float, float] | None = None,
    confidence_level: float = 0.95,
    rng: np.random.Generator | None = None,
) -> dict[str, tuple[float, float, float]]:
    """Split a shift of the exposure of a group into index, asked and ranking, with intervals.

    Parameters
    ----------
    before, after : ndarray of shape (blocks, topics, 2)
        Retrievals on each topic, and the sum of the group's exposure in them.
    index : tuple of float or None
        Share of the group in the index before and after; None: unknown, so that "ranking" holds
        what the index does, too, and there is no part "index".
    rng : Generator or None
        Draws blocks before the shift, from which the error of both sides is taken.

    Returns
    -------
    dict of str to (part, lower, upper)
        In points of exposure share; the parts add up to the shift.
    """
    rng = np.random.default_rng(0) if rng is None else rng
    n = len(before)
    m = len(after)
    base = before.sum(axis=0)
    now = after.sum(axis=0)
    old, new = (
        np.tensordot(rng.multinomial(k, np.full(n, 1 / n), _DRAWS), before, axes=1) for k in (n, m)
    )
    floor = np.array([1e-9, 0.0])
    old = np.concatenate([base[None], np.maximum(old, floor)])
    new = np.concatenate([now[None], np.maximum(now + new - base * m / n, floor)])
    shares = (0.5, 0.5) if index is None else index
    states = [_state(cells, share) for cells, share in ((old, shares[0]), (new, shares[1]))]
    parts = np.zeros((len(_PARTS), len(old)))
    for order in _ORDERS:
        chosen = [0, 0, 0]
        last = _exposed(states, chosen)
        for part in order:
            chosen[part] = 1
            value = _exposed(states, chosen)
            parts[part] += (value - last) / len(_ORDERS)
            last = value
    tails = [(1 - confidence_level) / 2, (1 + confidence_level) / 2]
    ends = np.quantile(parts[:, 1:], tails, axis=1)
    names = [name for name in _PARTS if index is not None or name != "index"]
    return {
        name: (float(parts[i, 0]), float(ends[0, i]), float(ends[1, i]))
        for i, name in enumerate(_PARTS)
        if name in names
    }


def _state(cells: FloatArray, share: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    n = cells[..., 0]
    total = cells[..., 1]
    asked = n / n.sum(axis=-1, keepdims=True)
    exposed = np.clip((total + 0.5 * share) / (n + 0.5), 1e-6, 1 - 1e-6)
    logit = np.log(np.clip(share, 1e-6, 1 - 1e-6)) - np.log1p(-np.clip(share, 1e-6, 1 - 1e-6))
    return logit, asked, np.log(exposed) - np.log1p(-exposed) - logit


def _exposed(
    states: Sequence[tuple[FloatArray, FloatArray, FloatArray]], chosen: Sequence[int]
) -> FloatArray:
    index, asked, ranking = (states[at][part] for part, at in enumerate(chosen))
    return np.asarray((asked / (1 + np.exp(-(index + ranking)))).sum(axis=-1))
