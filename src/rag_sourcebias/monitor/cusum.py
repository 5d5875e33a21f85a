"""Has a share moved? A CUSUM of half-day means, less those of the same slot before."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.data import FloatArray, IntArray
from rag_sourcebias.monitor.state import restore

# Half-days: from 06:00 and from 18:00 UTC on, so that one of them is the day in Europe and Africa.


HALF_DAY = 43_200.0
_MORNING = 21_600.0
SLOTS = 4
_MONDAY = 3  # the first of January 1970 was a Thursday


def half_days(at: FloatArray) -> IntArray:
    """Return the number of the half-day of each time."""
    return np.floor((at - _MORNING) / HALF_DAY).astype(np.int64)


def slots(half_day: FloatArray) -> IntArray:
    """Return which of four slots half-days are: day or night, of a weekday or a weekend."""
    day, night = np.divmod(half_day, 2)
    weekend = (day + _MONDAY) % 7 >= 5
    return np.asarray(2 * weekend + night, np.int64)


# The rule.


LEARN = 28
"""Half-days of which the usual means and their variance are learnt: two weeks."""
LEARN_VARIANCE = 8  # half-days, where the level is known and only the variance is learnt
KEPT = 112
"""Half-days that are kept: eight weeks."""
_ALLOWANCE = 0.75  # k: half a shift of 1.5 standard errors of a half-day
_LIMIT = 7.0  # h of one share; chosen by simulation: benchmarks/monitor/streams.py
_MOST_Z = 5.0  # of one half-day, so that no single one raises an alarm
_FINEST = 0.01  # standard error of a half-day at least: less than a point is no news
_SURE = 2.2  # standard errors from which on a share is said to have moved, too
_BACK = 0.3  # of a shift, within which its end is one
_MAY_HAVE_MOVED = 0.5  # of the limit
_MOST_RHO = 0.9  # beyond it the variance is not known
_LEAST = 10  # retrievals of a half-day; with fewer it goes on
_LATE = 2  # half-days by which a retrieval may come late; more: the clock was set back
_MOST_OF_A_USER = 10  # retrievals of a half-day that are counted
_NUMBERS = (
    "rows", "usual", "usual_error", "variance", "level", "level_error", "sums", "left_zero",
    "seen", "changed", "begun", "settled", "learnt", "away", "_open",
)  # fmt: skip


class Change(NamedTuple):
    """Shares that moved, told once; arrays of shape (columns,).

    Parameters
    ----------
    kind : {"shift", "level", "resolved"}
        "level": away from its known level since the first half-day, so that nothing moved.
        "resolved": back where it was before an earlier change.
    columns : tuple of int
        All that moved, first the one that raised it.
    before, now : ndarray
        Levels before and since, of the slots since.
    error_before, error : ndarray
        Their standard errors.
    level_before, level : ndarray
        By how much they are others than the usual one.
    statistic : float
        In parts of the limit.
    since, at : float
        Times of the first retrieval of the change, as far as one can tell, and of the last.
    n : int
        Retrievals since, without those of the half-day in which it began.
    rows : tuple of int
        Among those kept: where the level before began, and where that of now does.
    """

    kind: str
    columns: tuple[int, ...]
    before: FloatArray
    now: FloatArray
    error_before: FloatArray
    error: FloatArray
    level_before: FloatArray
    level: FloatArray
    statistic: float
    since: float
    at: float
    n: int
    rows: tuple[int, int]


def _long_run(left: FloatArray, counts: FloatArray, used: int) -> FloatArray:
    """Return variances of a retrieval, from half-days less ``used`` means of theirs."""
    n = len(left)
    left = np.sqrt(counts)[:, None] * left
    size = (left**2).sum(axis=0)
    rho = (left[1:] * left[:-1]).sum(axis=0) / (size + 1e-12)
    rho = (rho + 1 / n).clip(0, _MOST_RHO)  # what a mean takes out of it
    return np.asarray(size / (n - used) * (1 + rho) / (1 - rho))


class SlotCusum:
    """Watch means for lasting changes, with one look for each half-day.

    The mean of a half-day, less the usual mean of its slot (day or night, of a weekday or a
    weekend, over two weeks), is divided by its standard error: the long-run variance of the
    half-days learnt from (their variance, corrected for autocorrelation of the first order), with
    the errors of what it is compared with. Sums of these, less an allowance of .75 and never below
    0, are kept for both directions (Page 1954, Biometrika 41:100); an alarm comes where one passes
    its limit. The change began since the sum last was 0, where what came since is furthest from
    what was before. From then on the new level is learnt while it is watched (Hawkins 1987, The
    Statistician 36:299), and a return to the old one is told.

    What it cannot do: see a change within half a day, or one that has gone by the next; tell small
    changes where sessions or few users make half-days differ; know a holiday, or that the two
    weeks it learnt from were no ordinary ones. How often it is wrong is counted on simulated
    traffic (benchmarks/monitor/streams.py), not proven: a mix of users that wanders moves means,
    too.

    Parameters
    ----------
    known : bool array of shape (columns,)
        Columns of differences from a known level, whose usual mean is 0: only their variance is
        learnt, over four days.
    beside : int
        Further columns, which are added up and not watched.
    learn : int
        Retrievals to learn from at least, for at most four weeks.

    Attributes
    ----------
    foremost : int or None
        Column whose change is told before that of any other: these wait while it may have moved.
    offset : ndarray of shape (columns,) or None
        What is to be added to means for them to be shares, whose variances go with p (1 - p);
        None where these do not.
    rows : ndarray of shape (half-days, columns + beside + 4)
        Sums, retrievals, number of the half-day, first and last time.
    seen, changed : int
        Half-days there were, and how many at the last change; 0 without one.
    settled : bool
        Whether the two weeks are over.
    learnt, away : bool arrays of shape (columns,)
        Watched, and told to be elsewhere and not back yet.
    usual, usual_error : ndarray of shape (slots, columns)
        Means, and variances of these in those of a retrieval.
    variance : ndarray of shape (columns,)
        Of one retrieval, as half-days vary.
    level : ndarray of shape (columns,)
        By how much the level of now is another than the usual one.
    begun : int
        Row at which the level of now begins.
    """

    def __init__(self, known: npt.NDArray[np.bool_], *, beside: int = 0, learn: int = 0) -> None:
        columns = len(known)
        self.known, self.learn = known, learn
        self.foremost: int | None = None
        self.offset: FloatArray | None = np.zeros(columns)
        self.rows: FloatArray = np.zeros((0, columns + beside + 4))
        self.seen, self.changed, self.begun, self.settled = 0, 0, 0, False
        self.learnt, self.away = np.zeros((2, columns), bool)
        self.usual, self.usual_error = np.zeros((2, SLOTS, columns))
        self.variance, self.level = np.zeros((2, columns))
        self.level_error = 0.0
        self.sums: FloatArray = np.zeros((2, columns))  # upwards, and downwards
        self.left_zero: IntArray = np.zeros((2, columns), np.int64)  # at these rows
        self._open: FloatArray = np.zeros(columns + beside + 4)
        self.users: dict[str, int] = {}

    # Half-days are filled.

    def add_many(
        self,
        values: FloatArray,
        at: FloatArray,
        users: Sequence[str | None] | None = None,
        explained: Callable[[Change], bool | None] = lambda _: False,
    ) -> list[tuple[int, Change]]:
        """Add retrievals in the order in which they came; return changes with their rows.

        Parameters
        ----------
        values : ndarray of shape (n, columns + beside)
        at : ndarray of shape (n,)
            Times in seconds. Late ones count in the half-day that is open.
        users : sequence of str or None
            Who asked: only the first ten retrievals of each in a half-day count.
        explained : callable
            Asked about a change: True makes its level the usual one, None waits a half-day.
        """
        found: list[tuple[int, Change]] = []
        number = half_days(at)
        start = 0
        while start < len(at):
            row = self._open
            if not row[-4]:
                row[-3:] = number[start], at[start], at[start]
            leaves = (number[start:] > row[-3]) | (number[start:] < row[-3] - _LATE)
            stop = start + int(leaves.argmax()) if leaves.any() else len(at)
            if stop == start and row[-4] >= _LEAST:
                change = self._close(explained)
                if change is not None:
                    found.append((start - 1, change))
                continue
            stop = max(stop, start + 1)
            part = values[start:stop]
            if users is not None:
                part = part[[self._counts(user) for user in users[start:stop]]]
            width = part.shape[1]
            row[:width] = np.concatenate([row[None, :width], part]).cumsum(axis=0)[-1]
            row[-4] += len(part)
            row[-1] = max(row[-1], at[start:stop].max())
            start = stop
        return found

    def _counts(self, user: str | None) -> bool:
        if user is None:
            return True
        n = self.users[user] = self.users.get(user, 0) + 1
        return n <= _MOST_OF_A_USER

    def _close(self, explained: Callable[[Change], bool | None]) -> Change | None:
        self.rows = np.concatenate([self.rows, self._open[None]])
        self._open = np.zeros(self.rows.shape[1])
        self.users = {}
        self.seen += 1
        if len(self.rows) > KEPT:
            self.rows = self.rows[1:]
            self.begun = max(self.begun - 1, 0)
            self.left_zero = np.maximum(self.left_zero - 1, 0)
        watched = self.learnt.any()
        if not self.settled:
            self._learn()
        if not watched:
            return None
        if self.changed and self.seen - self.changed == LEARN_VARIANCE:
            self._learn_more()
        self._look()
        change = self._change()
        verdict = None if change is None else explained(change)
        if change is None or verdict is None:
            return None
        self._take(change, explained=verdict)
        return change

    def _parts(self, start: int = 0) -> tuple[FloatArray, FloatArray, IntArray]:
        """Return means, retrievals and slots of the half-days from one on."""
        rows = self.rows[start:]
        counts = rows[:, -4]
        return rows[:, : len(self.known)] / counts[:, None], counts, slots(rows[:, -3])

    # What is usual.

    def _learn(self) -> None:
        """Take the half-days so far for the usual ones; levels that are known stay those."""
        means, counts, slot = self._parts()
        n = len(counts)
        self.settled = n >= LEARN and (counts.sum() >= self.learn or n >= 2 * LEARN)
        if n != LEARN_VARIANCE and not self.settled:
            return
        if n < LEARN:  # too few of each slot
            slot = np.zeros(n, np.int64)
        means = means - (np.arange(n) >= self.begun)[:, None] * self.level
        centre = np.zeros_like(self.usual) + counts @ means / counts.sum()
        error = np.full(SLOTS, 1 / counts.sum())
        chosen = np.flatnonzero(np.bincount(slot, minlength=SLOTS) > 1)
        for one in chosen:
            of_slot = counts * (slot == one)
            centre[one] = of_slot @ means / of_slot.sum()
            error[one] = 1 / of_slot.sum()
        self.variance = _long_run(means - centre[slot], counts, len(chosen))
        self.learnt = self.known.copy()
        if self.settled:
            self.usual = np.where(self.known, self.usual, centre)
            self.usual_error = np.where(self.known, self.usual_error, error[:, None])
            self.left_zero[:, ~self.known] = n
            self.learnt = np.ones_like(self.known)

    def _learn_more(self) -> None:
        """Raise the variances to those since a change."""
        means, counts, slot = self._parts(self.begun)
        left = means - self.usual[slot]
        left -= np.average(left, axis=0, weights=counts)
        self.variance = np.maximum(self.variance, _long_run(left, counts, 1))
        self.learnt = self.known | self.settled

    # What is not.

    @property
    def limit(self) -> float:
        """Limit of the sums: twice as many shares raise it as much as halves false alarms."""
        watched = int((self.variance > 0).sum())
        return _LIMIT + math.log(max(watched, 1)) / (2 * _ALLOWANCE)

    @property
    def statistic(self) -> FloatArray:
        """The larger sum of each column, in parts of the limit."""
        return np.asarray(self.sums.max(axis=0) / self.limit)

    @property
    def n_level(self) -> int | None:
        """Retrievals since the last change; None without one."""
        if not self.changed:
            return None
        return int(self.rows[self.begun :, -4].sum() + self._open[-4])

    def since_change(self) -> FloatArray | None:
        """Return the means since the last change; None without one."""
        n = self.n_level
        if n is None:
            return None
        width = len(self.known)
        sums = self.rows[self.begun :, :width].sum(axis=0) + self._open[:width]
        return np.asarray(sums / n)

    def usual_now(self) -> tuple[FloatArray, FloatArray]:
        """Return usual means, of the slots since the last change, and their standard errors."""
        if not len(self.rows):
            return np.zeros(len(self.known)), np.zeros(len(self.known))
        _, counts, slot = self._parts(self.begun)
        usual = np.average(self.usual[slot], axis=0, weights=counts)
        error = np.average(self.usual_error[slot], axis=0, weights=counts)
        return usual, np.sqrt(self.variance * error)

    def _look(self) -> None:
        """Take the last half-day into the sums."""
        means, counts, slot = self._parts(len(self.rows) - 1)
        n = counts[0]
        left = np.where(self.learnt, means[0] - self.usual[slot[0]] - self.level, 0.0)
        error = np.sqrt(self.variance * (1 / n + self.usual_error[slot[0]] + self.level_error))
        z = np.clip(left / np.maximum(error, _FINEST), -_MOST_Z, _MOST_Z)
        self.sums = np.maximum(self.sums + np.stack([z, -z]) - _ALLOWANCE, 0.0)
        self.left_zero = np.where(self.sums > 0, self.left_zero, len(self.rows))
        if self.changed and self.seen - self.changed < LEARN:
            inverse = 1 + n * self.level_error
            self.level = self.level + left * (1 - 1 / inverse)
            self.level_error /= inverse

    def _change(self) -> Change | None:
        found = self.statistic
        lead = int(found.argmax())
        if self.foremost is not None and found[self.foremost] > _MAY_HAVE_MOVED:
            lead = self.foremost
        if found[lead] < 1:
            return None
        way = int(self.sums[:, lead].argmax())
        start = self._start(lead, min(int(self.left_zero[way, lead]), len(self.rows) - 1))
        means, counts, slot = self._parts()
        usual = self.usual[slot]
        before, before_error = self._before(start)
        since = float(self.rows[start, -2])
        start = min(start + 1, len(self.rows) - 1)  # a part of the half-day was before it
        now = np.average((means - usual)[start:], axis=0, weights=counts[start:])
        n = counts[start:].sum()
        base = np.average(usual[start:], axis=0, weights=counts[start:])
        of_usual = np.average(self.usual_error[slot][start:], axis=0, weights=counts[start:])
        error = np.sqrt(self.variance / n)
        error_before = np.sqrt(self.variance * (of_usual + before_error))
        between = np.maximum(np.hypot(error, error_before), _FINEST / _SURE)
        moved = self.learnt & (np.abs(now - before) > _SURE * between)
        moved[lead] = False
        kind = "shift"
        if self.away[lead] and abs(now[lead]) < max(
            _BACK * abs(before[lead]), _SURE * between[lead]
        ):
            kind = "resolved"
        elif self.known[lead] and since == self.rows[0, -2] and not self.changed:
            kind = "level"
        order = np.argsort(-found, kind="stable")
        return Change(
            kind=kind,
            columns=(lead, *(int(c) for c in order if moved[c])),
            before=base + before,
            now=base + now,
            error_before=error_before,
            error=error,
            level_before=before,
            level=np.where(self.learnt, now, 0.0),
            statistic=float(found[lead]),
            since=since,
            at=float(self.rows[-1, -1]),
            n=int(n),
            rows=(self.begun, start),
        )

    def _before(self, start: int) -> tuple[FloatArray, float]:
        """Return the level before a row, as far from the usual one, and its error.

        After a change it is that of the half-days between: what is learnt goes on beyond them.
        """
        if not self.changed or start <= self.begun:
            return self.level, self.level_error
        means, counts, slot = (part[: start - self.begun] for part in self._parts(self.begun))
        return np.average(means - self.usual[slot], axis=0, weights=counts), 1 / counts.sum()

    def _start(self, lead: int, zero: int) -> int:
        """Return from where on, since the sum was 0, a column is furthest from its level before."""
        means, counts, slot = self._parts(zero)
        level, _ = self._before(zero)
        left = counts * (means - self.usual[slot] - level)[:, lead]
        since = left[::-1].cumsum() / np.sqrt(counts[::-1].cumsum())
        return zero + len(since) - 1 - int(np.abs(since).argmax())

    def _take(self, change: Change, *, explained: bool) -> None:
        """Watch the level since a change from now on."""
        self.level, self.level_error = change.level, 1 / change.n
        if self.offset is not None:
            shares = [
                np.clip(self.offset + level, _FINEST, 1 - _FINEST)
                for level in (change.before, change.now)
            ]
            before, now = (share * (1 - share) for share in shares)
            self.variance = self.variance * now / before
        self.learnt = self.learnt & (self.variance > 0)  # what was 0 has none yet
        if explained:
            self.usual = self.usual + (change.level - change.level_before)
            self.level = change.level_before
        elif change.kind == "resolved":
            self.level, self.level_error = np.zeros_like(self.level), 0.0
            self.away = np.zeros_like(self.away)
        else:
            self.away[list(change.columns)] = True
        self.begun, self.changed = change.rows[1], self.seen
        self.sums = np.zeros_like(self.sums)
        self.left_zero = np.full_like(self.left_zero, len(self.rows))

    # What is kept over a restart.

    def numbers(self) -> dict[str, Any]:
        """Return the state; beside it only ``users`` are kept."""
        return {name: getattr(self, name) for name in _NUMBERS}

    def restore(self, numbers: Mapping[str, Any], users: dict[str, int]) -> None:
        """Go on from the numbers of one with the same settings, as JSON holds them.

        Raises
        ------
        DataError
            If it is not the state of such a one.
        """
        rows = numbers.get("rows")
        n = len(rows) if isinstance(rows, list) else 0
        members = {**self.numbers(), "rows": np.zeros((n, self.rows.shape[1]))}
        restore(self, members, numbers)
        self.users = users
