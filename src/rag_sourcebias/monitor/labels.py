"""One set of labels: retrievals in, observations tested, alarms out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.errors import DataError
from rag_sourcebias.core.values import FloatArray, IntArray
from rag_sourcebias.monitor.data import OTHER, RANK_LIMITS, GroupCount
from rag_sourcebias.monitor.settings import (
    CorpusShare,
    GroupCodes,
    PoolShare,
    ReferenceWindow,
    SkewSettings,
)
from rag_sourcebias.observe.observers import ExposureCounts, GroupExposure
from rag_sourcebias.stats.aggregation import Aggregator, Observation
from rag_sourcebias.stats.sequential import (
    WINDOW_PART,
    BettingTest,
    NullRange,
    RestartingDetector,
    reference_window,
    restore,
)

# Many retrievals at once: share of the ranks of each group, and whose document came first.


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ExposureRows:
    """One row per retrieval, n of them, one column per group.

    Parameters
    ----------
    documents : int64 array of shape (n, width)
        Documents shown.
    weights : float64 array of shape (n, width)
        Sum of the weights of their ranks.
    share : float64 array of shape (n, width)
        ``weights`` over their sum; 0 where nothing was retrieved.
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
    weights: FloatArray
    share: FloatArray
    first: FloatArray
    pool: FloatArray
    shown: IntArray
    ranks: IntArray


def exposure_rows(
    codes: Sequence[int],
    lengths: Sequence[int],
    *,
    width: int,
    attention: FloatArray,
    shown: int | None = None,
) -> ExposureRows:
    """Count a batch of retrievals; a row does not depend on the others.

    Parameters
    ----------
    codes : sequence of int
        Column of each document, retrieval after retrieval, best document first.
    lengths : sequence of int
        Documents of each retrieval.
    width : int
    attention : float64 array
        Weight of each rank, for at least the longest retrieval; not 0 at rank 1.
    shown : int or None
        Documents that are shown; None for all. Further ones are in the pool only.
    """
    column, length = np.asarray(codes, np.int64), np.asarray(lengths, np.int64)
    n = len(length)
    row = np.repeat(np.arange(n), length)
    start = np.concatenate([[0], np.cumsum(length)])[:-1]
    rank = np.arange(len(column)) - start[row]  # from 0
    cell = row * width + column

    def table(keep: npt.NDArray[np.bool_], weight: FloatArray | None = None) -> npt.NDArray[Any]:
        found = np.bincount(
            cell[keep], None if weight is None else weight[keep], minlength=n * width
        )
        return np.asarray(found.reshape(n, width))

    visible = rank < (len(column) if shown is None else shown)
    weights = table(visible, attention[rank])
    n_shown = length if shown is None else np.minimum(length, shown)
    whole = np.concatenate([[1.0], np.cumsum(attention)])[n_shown]
    pool = table(np.ones(len(cell), np.bool_)) / np.maximum(length, 1)[:, None]
    limits = len(RANK_LIMITS)
    bucket = np.searchsorted(RANK_LIMITS, rank[visible] + 1)  # the last: beyond all limits
    places = column[visible] * (limits + 1) + bucket
    ranks = np.bincount(places, minlength=width * (limits + 1)).reshape(width, limits + 1)
    return ExposureRows(
        documents=table(visible),
        weights=weights,
        share=np.minimum(weights / whole[:, None], 1.0),  # rounding may leave [0, 1]
        first=table(rank == 0).astype(np.float64),
        pool=pool,
        shown=n_shown,
        ranks=np.asarray(ranks[:, :limits].cumsum(axis=1)),
    )


# Alarms of one set of labels: against the baseline, and of change.


@dataclass(frozen=True, slots=True)
class Raised:
    """An alarm, before it is told.

    Parameters
    ----------
    rule : {"baseline", "change"}
    column : int
        Among those tested.
    row : int
        Of the batch.
    evidence : float
    level : float or None
        Mean share that the change left, where it was learnt after an earlier change.
    """

    rule: str
    column: int
    row: int
    evidence: float
    level: float | None = None


class BaselineTests:
    """Evidence of every tested column against its baseline, and changes of its level.

    With T columns (groups × measures) each is tested at 1 − α/T: the probability of any alarm
    of the rule "baseline" is at most α over all time (union bound). Changes are looked for at T
    times the wanted run length, see
    :class:`~rag_sourcebias.stats.sequential.RestartingDetector`; intervals of new
    levels may use up the same part of α as those of reference windows.

    Attributes
    ----------
    columns : int64 array of shape (T,)
        Columns of the observations that are tested.
    test : BettingTest or None
        None without a baseline, and until the reference window is full.
    change : RestartingDetector or None
        None also where changes are not watched.
    window : list of float64 arrays of shape (T,)
        Observations of a reference window that is not full.
    reference : float64 array of shape (T,), or None
        Means of the frozen window.
    """

    def __init__(self, settings: SkewSettings, groups: GroupCodes) -> None:
        self._settings = settings
        self.columns = settings.tested(groups)
        self.reference: FloatArray | None = None
        self.window: list[FloatArray] = []
        self.test: BettingTest | None = None
        self.change: RestartingDetector | None = None
        baseline = settings.baseline
        if isinstance(baseline, CorpusShare):
            shares = [baseline.shares.get(name, 0.0) for name in [*groups.names, OTHER]]
            share = np.tile(shares, len(settings.measures))[self.columns]
            self._start(NullRange(share, share), settings.confidence_level)
        elif isinstance(baseline, PoolShare):
            self._start(None, settings.confidence_level)

    def _start(self, null: NullRange | None, level: float) -> None:
        """Test from now on; without ``null`` every observation brings its own."""
        n, settings = len(self.columns), self._settings
        confidence_level = 1 - (1 - level) / n
        self.test = BettingTest(null, groups=n, confidence_level=confidence_level)
        if settings.change_run_length is not None:
            self.change = RestartingDetector(
                null,
                groups=n,
                run_length=settings.change_run_length * n,
                window=settings.change_window,
                window_error=WINDOW_PART * (1 - confidence_level) * n,
            )

    def observe(self, values: FloatArray, null: FloatArray | None) -> list[Raised]:
        """Take observations of all columns, with their own baselines; return alarms by row."""
        tested = values[:, self.columns]
        start = self._take_reference(tested)
        tested, test = tested[start:], self.test
        if test is None or not len(tested):
            return []
        ends = None if null is None else null[start:, self.columns]
        before, n = test.alarms, test.n
        log_e = test.update_many(tested, null=ends)
        raised: list[Raised] = []
        for column in np.flatnonzero(test.alarms & ~before).tolist():
            row = int(test.alarm_at[column]) - n - 1
            raised.append(Raised("baseline", column, start + row, float(log_e[row, column])))
        if self.change is not None:
            raised += [
                Raised("change", column, start + row, math.log(statistic), level)
                for row, column, statistic, level in self.change.update_many(tested, null=ends)
            ]
        return sorted(raised, key=lambda found: (found.row, found.rule, found.column))

    def _take_reference(self, values: FloatArray) -> int:
        """Return how many observations still belonged to the reference window."""
        settings, baseline = self._settings, self._settings.baseline
        if not isinstance(baseline, ReferenceWindow) or self.test is not None:
            return 0
        taken = values[: baseline.n - len(self.window)]
        self.window.extend(taken.copy())
        if len(self.window) == baseline.n:
            level = 1 - (1 - settings.confidence_level) / len(self.columns)
            found = reference_window(np.array(self.window), confidence_level=level)
            self.reference, self.window = found.mean, []
            error = (1 - found.stream_level) * len(self.columns)
            self._start(found.null, 1 - error)
        return len(taken)

    def to_dict(self) -> dict[str, Any]:
        """Return the state as plain JSON values."""
        change = None if self.change is None else self.change.to_dict()
        return {
            "window": [row.tolist() for row in self.window],
            "reference": None if self.reference is None else self.reference.tolist(),
            "rules": None if self.test is None else {"test": self.test.to_dict(), "change": change},
        }

    def restore(self, data: Mapping[str, Any]) -> None:
        """Take a state that :meth:`to_dict` returned.

        Raises
        ------
        DataError
            If it does not fit the settings.
        UnsupportedVersionError
            If another release wrote it.
        """
        self.window = [np.array(row, np.float64) for row in data["window"]]
        reference, rules = data["reference"], data["rules"] or {"test": None, "change": None}
        self.reference = None if reference is None else np.array(reference, np.float64)
        test, change = rules["test"], rules["change"]
        self.test = None if test is None else BettingTest.from_dict(test)
        self.change = None if change is None else RestartingDetector.from_dict(change)
        rows = [*self.window, *([] if self.reference is None else [self.reference])]
        if any(row.shape != self.columns.shape for row in rows):
            raise DataError("the stored reference window does not fit the groups")
        if self.test is not None and self.test.groups != len(self.columns):
            raise DataError("the stored tests do not fit the groups")


# Running totals of one set of labels.


class LabelTotals:
    """What each group got, and sums of the observations; constant memory.

    Parameters
    ----------
    width : int
        Columns of groups.
    values : int
        Columns of observations: groups × measures.

    Attributes
    ----------
    n_retrievals, n_documents, n_empty, n : int
        ``n`` is the number of observations.
    total, null : float64 arrays of shape (values,)
        Sums of observations, and of the baselines that came with them.
    ranks : int64 array of shape (width, len(RANK_LIMITS))
        Documents at ranks up to each limit.
    """

    def __init__(self, *, width: int, values: int) -> None:
        self.n_retrievals = self.n_documents = self.n_empty = self.n = 0
        self.total: FloatArray = np.zeros(values)
        self.null: FloatArray = np.zeros(values)
        self.documents: IntArray = np.zeros(width, np.int64)
        self.first: IntArray = np.zeros(width, np.int64)
        self.weights: FloatArray = np.zeros(width)
        self.ranks: IntArray = np.zeros((width, len(RANK_LIMITS)), np.int64)

    def count(self, rows: ExposureRows) -> None:
        """Add retrievals."""
        self.n_retrievals += len(rows.shown)
        self.n_documents += int(rows.shown.sum())
        self.n_empty += int((rows.shown == 0).sum())
        self.documents = self.documents + rows.documents.sum(axis=0)
        self.first = self.first + rows.first.sum(axis=0).astype(np.int64)
        self.weights = running(self.weights, rows.weights)[-1].copy()
        self.ranks = self.ranks + rows.ranks

    def observe(
        self, values: FloatArray, null: FloatArray | None
    ) -> tuple[FloatArray, FloatArray | None]:
        """Add observations, shape (n, values); return ``total`` and ``null`` after each of them."""
        path = running(self.total, values)[1:]
        nulls = None if null is None else running(self.null, null)[1:]
        if len(path):
            self.total, self.n = path[-1].copy(), self.n + len(path)
            if nulls is not None:
                self.null = nulls[-1].copy()
        return path, nulls

    def counts(self, names: Sequence[str]) -> ExposureCounts:
        """Return the counts in the form that an ``ExposureObserver`` gives."""
        return ExposureCounts(
            n_retrievals=self.n_retrievals,
            n_empty=self.n_empty,
            groups={
                name: GroupExposure(
                    documents=int(self.documents[i]),
                    first=int(self.first[i]),
                    exposure=float(self.weights[i]),
                )
                for name, i in self._seen(names)
            },
        )

    def by_rank(self, names: Sequence[str]) -> tuple[GroupCount, ...]:
        """Return documents of each group seen, and how many at which ranks."""
        return tuple(
            GroupCount(
                group=name, documents=int(self.documents[i]), ranks=tuple(self.ranks[i].tolist())
            )
            for name, i in self._seen(names)
        )

    def _seen(self, names: Sequence[str]) -> list[tuple[str, int]]:
        """Return groups that had documents with their columns, in alphabetical order."""
        columns = dict(zip(names, range(len(names)), strict=True)) | {OTHER: len(self.weights) - 1}
        return [(name, i) for name, i in sorted(columns.items()) if self.documents[i]]


def running(start: FloatArray, rows: FloatArray) -> FloatArray:
    """Sums one by one, so that a batch gives bit for bit what single additions do."""
    return np.asarray(np.cumsum(np.concatenate([start[None], rows]), axis=0))


# One set of labels: retrievals in, observations tested, alarms out.


@dataclass(frozen=True, slots=True)
class Retrieval:
    """What is left of an event: columns of its documents, when it was, whom it belongs with."""

    codes: tuple[int, ...]
    at: float
    key: str | None


@dataclass(frozen=True, slots=True)
class RaisedAt:
    """An alarm, with observations and the sums of all columns and baselines at that moment."""

    raised: Raised
    at: float
    n: int
    total: FloatArray
    null: FloatArray | None


class LabelWatch:
    """Totals, aggregation, reference window and tests of one set of labels.

    Not thread-safe: the monitor sees to that.
    """

    def __init__(self, settings: SkewSettings) -> None:
        self.settings = settings
        self.last_at: float | None = None
        self.groups = settings.new_groups()
        values = self.groups.width * len(settings.measures)
        self.totals = LabelTotals(width=self.groups.width, values=values)
        self.tests = BaselineTests(settings, self.groups)
        self.aggregator: Aggregator | None = None
        if settings.aggregate is not None:
            self.aggregator = settings.aggregate.aggregator(values)

    def add(self, batch: Sequence[Retrieval]) -> list[RaisedAt]:
        """Take retrievals, at least one, in order."""
        self.last_at = max(batch[-1].at, self.last_at or batch[-1].at)
        rows = exposure_rows(
            [code for item in batch for code in item.codes],
            [len(item.codes) for item in batch],
            width=self.groups.width,
            attention=self.settings.attention,
            shown=self.settings.shown,
        )
        self.totals.count(rows)
        parts = {"exposure": rows.share, "first": rows.first}
        values = np.concatenate([parts[name] for name in self.settings.measures], axis=1)
        null: FloatArray | None = None
        if isinstance(self.settings.baseline, PoolShare):
            null = np.tile(rows.pool, (1, len(self.settings.measures)))
        kept = np.flatnonzero(rows.shown)
        if self.aggregator is None:
            at = [batch[i].at for i in kept.tolist()]
            return self._observe(values[kept], None if null is None else null[kept], at)
        raised = []
        for i in kept.tolist():
            item, row, ends = batch[i], values[[i]], None if null is None else null[[i]]
            if item.key is None:
                raised += self._observe(row, ends, [item.at])
            else:
                own = None if ends is None else ends[0].tolist()
                done = self.aggregator.add(item.key, row[0].tolist(), now=item.at, null=own)
                raised += self._closed(done, item.at)
        return raised

    def close(self, now: float | None = None) -> list[RaisedAt]:
        """Test what is being aggregated if its time is over; all of it without a time."""
        if self.aggregator is None or self.last_at is None:
            return []
        if now is None:
            return self._closed(self.aggregator.flush(), self.last_at)
        self.last_at = max(self.last_at, now)
        return self._closed(self.aggregator.close(now=now), now)

    def _closed(self, done: list[Observation], at: float) -> list[RaisedAt]:
        if not done:
            return []
        nulls = [o.null for o in done if o.null is not None]
        return self._observe(
            np.array([o.values for o in done]), np.array(nulls) if nulls else None, [at] * len(done)
        )

    def _observe(
        self, values: FloatArray, null: FloatArray | None, at: Sequence[float]
    ) -> list[RaisedAt]:
        before = self.totals.n
        path, nulls = self.totals.observe(values, null)
        return [
            RaisedAt(
                found,
                at[found.row],
                before + found.row + 1,
                path[found.row],
                None if nulls is None else nulls[found.row],
            )
            for found in self.tests.observe(values, null)
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return the state as plain JSON values."""
        return {
            "last_at": self.last_at,
            "groups": list(self.groups.names),
            "totals": {k: np.asarray(value).tolist() for k, value in vars(self.totals).items()},
            "tests": self.tests.to_dict(),
            "aggregator": None if self.aggregator is None else self.aggregator.to_dict(),
        }

    def restore(self, data: Mapping[str, Any]) -> None:
        """Take a state that :meth:`to_dict` returned.

        Raises
        ------
        DataError
            If it does not fit the settings.
        UnsupportedVersionError
            If another release wrote it.
        """
        try:
            self.groups.restore(data["groups"])
            restore(self.totals, dict(vars(self.totals)), data["totals"])
            self.tests.restore(data["tests"])
            self.last_at = data["last_at"]
            if self.aggregator is not None:
                now = float(self.last_at or 0.0)
                self.aggregator = Aggregator.from_dict(data["aggregator"], now=now)
        except (KeyError, TypeError) as error:
            raise DataError(f"stored state of a monitor: {error!r:.80}") from None
