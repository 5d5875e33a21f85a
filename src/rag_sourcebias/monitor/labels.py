"""One set of labels: retrievals in, observations tested, alarms out."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.data import FloatArray, IntArray
from rag_sourcebias.measure.relevance import attention_weights
from rag_sourcebias.monitor.cusum import HALF_DAY, Change, SlotCusum
from rag_sourcebias.monitor.data import MEASURES, RANK_LIMITS, ShiftPart
from rag_sourcebias.monitor.settings import (
    CorpusShare,
    GroupCodes,
    PoolShare,
    ReferenceWindow,
    SkewSettings,
)
from rag_sourcebias.monitor.split import split_shift
from rag_sourcebias.monitor.state import restore
from rag_sourcebias.observe.labels import OTHER

# Many retrievals at once: share of the ranks of each group, and whose document came first.


MOST_DOCUMENTS = 1_000  # of a retrieval that are counted, from rank 1
_ATTENTION = attention_weights("dcg", MOST_DOCUMENTS)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ExposureRows:
    """One row per retrieval, n of them, one column per group.

    Parameters
    ----------
    documents : int64 array of shape (n, width)
        Documents shown.
    share : float64 array of shape (n, width)
        Weights of their ranks over those of all; 0 where nothing was retrieved.
    first : float64 array of shape (n, width)
        1 for the group of the document at rank 1.
    pool : float64 array of shape (n, width)
        Share of all documents of the event, shown or not.
    shown : int64 array of shape (n,)
        Documents shown.
    ranks : int64 array of shape (width, len(RANK_LIMITS))
        Documents shown at ranks up to each limit, over all rows.
    """

    documents: IntArray
    share: FloatArray
    first: FloatArray
    pool: FloatArray
    shown: IntArray
    ranks: IntArray


def exposure_rows(
    codes: Sequence[int] | IntArray,
    lengths: Sequence[int] | IntArray,
    *,
    width: int,
    shown: int | None = None,
) -> ExposureRows:
    """Count a batch of retrievals; a row does not depend on the others.

    Parameters
    ----------
    codes : sequence of int
        Column of each document, retrieval after retrieval, best document first.
    lengths : sequence of int
        Documents of each retrieval, at most a thousand.
    width : int
    shown : int or None
        Documents that are shown; None for all. Further ones are in the pool only.
    """
    column = np.asarray(codes, np.int64)
    length = np.asarray(lengths, np.int64)
    n = len(length)
    row = np.repeat(np.arange(n), length)
    rank = np.arange(len(column)) - (np.cumsum(length) - length)[row]  # from 0
    cell = row * width + column

    def table(keep: npt.NDArray[np.bool_], weight: FloatArray | None = None) -> npt.NDArray[Any]:
        weights = None if weight is None else weight[keep]
        return np.bincount(cell[keep], weights, minlength=n * width).reshape(n, width)

    n_shown = length if shown is None else np.minimum(length, shown)
    visible = rank < n_shown[row]
    whole = np.concatenate([[1.0], np.cumsum(_ATTENTION)])[n_shown]
    share = table(visible, _ATTENTION[rank]) / whole[:, None]
    limits = len(RANK_LIMITS)
    bucket = np.searchsorted(RANK_LIMITS, rank[visible] + 1)  # the last: beyond all limits
    places = column[visible] * (limits + 1) + bucket
    ranks = np.bincount(places, minlength=width * (limits + 1)).reshape(width, limits + 1)
    return ExposureRows(
        documents=table(visible),
        share=np.minimum(share, 1.0),  # rounding may leave [0, 1]
        first=table(rank == 0).astype(np.float64),
        pool=table(rank >= 0) / np.maximum(length, 1)[:, None],
        shown=n_shown,
        ranks=ranks[:, :limits].cumsum(axis=1),
    )


# Running totals of one set of labels.


class LabelTotals:
    """What each group got, and sums of the observations; constant memory.

    Parameters
    ----------
    width : int
        Columns of groups.

    Attributes
    ----------
    n_retrievals, n_documents, n_empty, n : int
        ``n`` is the number of observations.
    total, null : float64 arrays of shape (len(MEASURES) * width,)
        Sums of observations, and of the baselines that came with them.
    documents : int64 array of shape (width,)
    ranks : int64 array of shape (width, len(RANK_LIMITS))
        Documents at ranks up to each limit.
    """

    def __init__(self, width: int) -> None:
        self.n_retrievals = self.n_documents = self.n_empty = self.n = 0
        self.total: FloatArray
        self.null: FloatArray
        self.total, self.null = np.zeros((2, len(MEASURES) * width))
        self.documents: IntArray = np.zeros(width, np.int64)
        self.ranks: IntArray = np.zeros((width, len(RANK_LIMITS)), np.int64)

    def count(self, rows: ExposureRows) -> None:
        """Add retrievals."""
        self.n_retrievals += len(rows.shown)
        self.n_documents += int(rows.shown.sum())
        self.n_empty += int((rows.shown == 0).sum())
        self.documents = self.documents + rows.documents.sum(axis=0)
        self.ranks = self.ranks + rows.ranks

    def observe(self, values: FloatArray, null: FloatArray) -> None:
        """Add observations, shape (n, values), with their baselines."""
        self.n += len(values)
        self.total = _added(self.total, values)
        self.null = _added(self.null, null)


def _added(start: FloatArray, rows: FloatArray) -> FloatArray:
    """Sums one by one, so that a batch gives bit for bit what single additions do."""
    return np.asarray(np.concatenate([start[None], rows]).cumsum(axis=0)[-1])


# One set of labels: retrievals in, observations tested, alarms out.


@dataclass(slots=True)
class Retrievals:
    """What is left of events: columns of their documents, when they were, whose, on what.

    Parameters
    ----------
    codes : sequence of int
        Documents of all, one retrieval after another, ``lengths`` of each.
    keys, topics : list of (str or None)
    """

    codes: list[int] | IntArray = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)
    at: list[float] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)
    topics: list[str | None] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class RaisedAt:
    """A change, after how many observations it was told, and what it is made of."""

    change: Change
    n: int
    parts: tuple[ShiftPart, ...] = ()


MOST_TOPICS = 8
_TWO = 2
_NOTHING = 1e-9  # what rounding leaves of a share of 0
_SURE = 2.2  # half widths: 4.3 standard errors, as is usual of a change that is told
_UNDECIDED = 8  # half-days that a change waits until it is clear whether it is the store's
_FAR = 86_400.0
_LATELY = 3_600.0
Composition = list[tuple[float, dict[str, float]]]
"""Shares in the store, each from a time on."""


def _is_sure(part: ShiftPart) -> bool:
    return abs(part.change) > _SURE * max(part.change - part.lower, part.upper - part.change)


def largest_part(parts: Sequence[ShiftPart]) -> str | None:
    """Return the largest part of those that are surely some.

    The store is it unless another is half as large and sure enough to be news by itself: what was
    told early looks larger than it is.
    """
    clear = {part.of: abs(part.change) for part in parts if part.lower * part.upper > 0}
    if "index" in clear:
        others = (part for part in parts if part.of in clear and part.of != "index")
        sure = {part.of: 2 * abs(part.change) for part in others if _is_sure(part)}
        clear = {"index": clear["index"], **sure}
    return max(clear, key=clear.__getitem__) if clear else None


def _is_undecided(parts: Sequence[ShiftPart]) -> bool:
    """Return whether it is the store, unless another part turns out to be sure."""
    if largest_part(parts) != "index":
        return False
    index = next(abs(part.change) for part in parts if part.of == "index")
    return any(
        part.of != "index" and 2 * abs(part.change) > index and not _is_sure(part) for part in parts
    )


@dataclass(frozen=True, kw_only=True)
class KeptWatch:
    """State of one set of labels, as it is stored: numbers by their names."""

    labels: dict[str, str]
    groups: list[str]
    totals: dict[str, Any]
    cusum: dict[str, Any]
    users: dict[str, int]
    topics: list[str]
    odd: dict[str, int]


class LabelWatch:
    """Totals and half-days of one set of labels.

    Not thread-safe: the monitor sees to that.

    Attributes
    ----------
    columns : int64 array of shape (T,)
        Columns of the observations that are watched.
    cusum : SlotCusum or None
        None without a baseline.
    index : list of (float, dict)
        What shares the store held from when on; that of the monitor.
    odd : Counter
        Late and repeated retrievals, and jumps of the clock.
    """

    def __init__(self, settings: SkewSettings, index: Composition | None = None) -> None:
        self.settings = settings
        self.index: Composition = [] if index is None else index
        self.groups = GroupCodes(settings.told_apart)
        width = self.groups.width
        self.totals = LabelTotals(width)
        self.columns = settings.tested(self.groups)
        self.topics: dict[str, int] = {}
        self.odd: Counter[str] = Counter()
        self._before: tuple[Any, ...] | None = None
        self.cusum: SlotCusum | None = None
        baseline = settings.baseline
        if baseline is not None:
            self.cusum = SlotCusum(
                settings.known(self.groups, self.columns),
                beside=MOST_TOPICS * (1 + width) if settings.topics else 0,
                learn=baseline.n if isinstance(baseline, ReferenceWindow) else 0,
            )

    def add(
        self, batch: Retrievals, *, begun: Callable[[float], object] = lambda _: None
    ) -> list[RaisedAt]:
        """Take retrievals, at least one, in order; ``begun`` is called when a change shows."""
        at = np.asarray(batch.at, np.float64)
        self._note_order(batch)
        width = self.groups.width
        rows = exposure_rows(batch.codes, batch.lengths, width=width, shown=self.settings.shown)
        kept = np.flatnonzero(rows.shown)
        values = np.concatenate([rows.share, rows.first], axis=1)[kept]
        null = self.corpus_share + np.zeros_like(values)
        pool = isinstance(self.settings.baseline, PoolShare)  # each retrieval has its own
        if pool:
            null = np.tile(rows.pool[kept], len(MEASURES))
        before = self.totals.n
        came = self.totals.documents + rows.documents[kept].cumsum(axis=0) > 0
        self.totals.count(rows)
        self.totals.observe(values, null)
        if self.cusum is None or not len(kept):
            return []
        watched = (values - null)[:, self.columns]
        if not pool:  # a group that never came may be named wrongly: it is told, and is no alarm
            watched *= came[:, self.columns % width]
        if self.settings.topics:
            beside = self._by_topic(rows.share[kept], [batch.topics[i] for i in kept.tolist()])
            watched = np.concatenate([watched, beside], axis=1)
        keys = [batch.keys[i] for i in kept.tolist()]
        users = keys if any(key is not None for key in keys) else None
        self.cusum.foremost = self._untagged()
        self.cusum.offset = None if pool else self.known_levels
        parts_of: dict[float, tuple[ShiftPart, ...]] = {}

        def explained(change: Change) -> bool | None:
            """Split a change; where the store explains it its level is the usual one."""
            begun(change.since)
            found = self.parts_of(change)
            half_days = (change.at - change.since) / HALF_DAY
            if half_days < _UNDECIDED and _is_undecided(found):
                return None
            by_store = largest_part(found) == "index"
            parts_of[change.at] = found if by_store or change.kind != "resolved" else ()
            return by_store

        told = self.cusum.add_many(watched, at[kept], users, explained)
        return [
            RaisedAt(change, before + row + 1, parts_of.get(change.at, ())) for row, change in told
        ]

    def _untagged(self) -> int | None:
        """Return the column watched that is the exposure of untagged documents."""
        if "" not in self.groups.names:
            return None
        return int(np.flatnonzero(self.columns == self.groups.names.index(""))[0])

    def _note_order(self, batch: Retrievals) -> None:
        """Count what came late, twice, or after a jump of the clock."""
        codes = np.asarray(batch.codes, np.int64)
        shown = [part.tobytes() for part in np.split(codes, np.cumsum(batch.lengths)[:-1])]
        rows = list(zip(batch.at, shown, batch.keys, batch.topics, strict=True))
        for before, now in pairwise([self._before or (math.nan,), *rows]):
            gap = now[0] - before[0]
            if gap > 30 * _FAR:
                self.odd["clock set forward"] += 1
            elif gap < -_FAR:
                self.odd["clock set back"] += 1
            elif gap < 0:
                self.odd["late"] += 1
            elif now == before:
                self.odd["repeated"] += 1
        self._before = rows[-1]

    def _by_topic(self, shares: FloatArray, topics: list[str | None]) -> FloatArray:
        """Return a count and the shares in the columns of each one's topic."""
        found = np.zeros((len(shares), MOST_TOPICS, 1 + self.groups.width))
        for name in topics:
            if len(self.topics) < MOST_TOPICS - 1:
                self.topics.setdefault(name or "", len(self.topics))
        codes = [self.topics.get(name or "", MOST_TOPICS - 1) for name in topics]
        rows = np.arange(len(shares))
        found[rows, codes, 0] = 1
        found[rows, codes, 1:] = shares
        return found.reshape(len(shares), -1)

    @property
    def corpus_share(self) -> FloatArray:
        """Known shares of all columns, 0 of those that have none."""
        row = np.zeros(self.groups.width)
        if isinstance(self.settings.baseline, CorpusShare):
            for name, share in self.settings.baseline.shares.items():
                row[self.groups[name]] = share
        return np.tile(row, len(MEASURES))

    @property
    def known_levels(self) -> FloatArray:
        """What is to be added to watched columns: known shares, or the mean of those of pools."""
        if isinstance(self.settings.baseline, PoolShare):
            return np.asarray(self.totals.null[self.columns] / max(self.totals.n, 1))
        return self.corpus_share[self.columns]

    def name_of(self, column: int) -> tuple[str, int]:
        """Return group and number of the measure of a column of values."""
        measure, group = divmod(column, self.groups.width)
        names = self.groups.names
        return (names[group] if group < len(names) else OTHER), measure

    def ordered(self, change: Change) -> list[int]:
        """Return watched columns that moved: the clearest exposure first, then other measures.

        Of sources one that is new, or gone, comes before those whose shares it took or left.
        """
        untagged = self._untagged()
        if change.columns[0] == untagged:
            return list(change.columns)
        width = len(self.columns) // len(MEASURES)
        first = [c for c in change.columns if c < width and c != untagged]
        if len(first) == _TWO:  # one is the other's mirror
            first.sort(key=lambda c: self.name_of(int(self.columns[c]))[0] != "human")
        first.sort(key=lambda c: self.came_or_went(change, c) is None)
        return [*first, *(c for c in change.columns if c not in first)]

    def came_or_went(self, change: Change, column: int) -> Literal["new", "gone"] | None:
        """Say whether a watched column had nothing before a change, or has nothing since."""
        if isinstance(self.settings.baseline, PoolShare) or change.kind != "shift":
            return None
        known = self.corpus_share[self.columns[column]]
        if change.before[column] + known < _NOTHING:
            return "new"
        return "gone" if change.now[column] + known < _NOTHING else None

    def is_untagged(self, change: Change) -> bool:
        """Return whether a change is one of untagged documents."""
        return change.columns[0] == self._untagged()

    def parts_of(self, change: Change) -> tuple[ShiftPart, ...]:
        """Split a change of exposure; nothing where nothing is known of the store or topics."""
        lead = self.ordered(change)[0]
        column = int(self.columns[lead])
        not_exposure = self.name_of(column)[1] > 0
        if lead == self._untagged() or change.kind == "level" or not_exposure:
            return ()
        return tuple(
            ShiftPart(of=of, change=value, lower=lower, upper=upper)
            for of, (value, lower, upper) in self._split(change, lead).items()
        )

    def _split(self, change: Change, lead: int) -> dict[str, tuple[float, float, float]]:
        """Split a change of the exposure in a watched column."""
        cusum = self.cusum
        column = int(self.columns[lead])
        if cusum is None or isinstance(self.settings.baseline, PoolShare):
            return {}  # a pool changes with the store
        index = self._index_of(self.name_of(column)[0], change)
        if index is None and not self.settings.topics:
            return {}
        begun, start = change.rows
        sides = cusum.rows[begun:start], cusum.rows[start:]
        if not all(map(len, sides)):
            return {}
        watched = len(self.columns)
        if self.settings.topics:
            shape = (MOST_TOPICS, 1 + self.groups.width)
            cells = [one[:, watched:-4].reshape(-1, *shape)[:, :, [0, 1 + column]] for one in sides]
        else:
            cells = [one[:, None, [-4, lead]] for one in sides]
            for one in cells:  # of a known baseline, differences are kept
                one[..., 1] += one[..., 0] * self.corpus_share[column]
        seen = (cells[0][..., 0].sum(axis=0) > 0) & (cells[1][..., 0].sum(axis=0) > 0)
        if not seen.all():  # topics that only one side has cannot be compared on their own
            cells = [
                np.concatenate([c[:, seen], c[:, ~seen].sum(axis=1, keepdims=True)], axis=1)
                for c in cells
            ]
            cells = [c[:, [x for x in range(c.shape[1]) if cells[0][:, x, 0].any()]] for c in cells]
        found = split_shift(*cells, index=index, confidence_level=self.settings.confidence_level)
        return {of: part for of, part in found.items() if of != "asked" or self.settings.topics}

    def _index_of(self, group: str, change: Change) -> tuple[float, float] | None:
        """Return the share in the store over the half-days before a change, and since.

        None where it was first counted after the change. What was there at the first count is
        taken to have been there before.
        """
        if self.cusum is None or not self.index or self.index[0][0] > change.since + _LATELY:
            return None
        held = np.array([shares.get(group, 0.0) for _, shares in self.index])
        # What changed within half a day after the first sign of it may well have begun it.
        late = change.since + HALF_DAY
        starts = [change.since if change.since < at <= late else at for at, _ in self.index]
        begun, start = change.rows
        means = []
        for rows in (self.cusum.rows[begun:start], self.cusum.rows[start:]):
            if not len(rows):
                return None
            middle = rows[:, -2:].mean(axis=1)
            place = np.maximum(np.searchsorted(starts, middle, side="right") - 1, 0)
            means.append(round(float(np.average(held[place], weights=rows[:, -4])), 9))
        return means[0], means[1]  # rounded: what did not change is the same

    def kept(self, labels: dict[str, str]) -> KeptWatch:
        """Return the state as it is stored."""
        cusum = self.cusum
        return KeptWatch(
            labels=labels,
            groups=self.groups.names,
            totals=vars(self.totals),
            cusum={} if cusum is None else cusum.numbers(),
            users={} if cusum is None else cusum.users,
            topics=list(self.topics),
            odd=self.odd,
        )

    def restore(self, kept: KeptWatch) -> None:
        """Go on from a state.

        Raises
        ------
        DataError
            If it does not fit the settings.
        """
        self.groups.restore(kept.groups)
        restore(self.totals, vars(self.totals), kept.totals)
        if self.cusum is not None:
            self.cusum.restore(kept.cusum, kept.users)
        self.topics = {name: i for i, name in enumerate(kept.topics)}
        self.odd.update(kept.odd)
