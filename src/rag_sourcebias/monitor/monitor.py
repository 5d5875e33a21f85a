"""Watch in production which sources, or styles, get the ranks."""

from __future__ import annotations

import math
import threading
import time
import weakref
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice
from operator import attrgetter, itemgetter
from queue import Empty, SimpleQueue
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.errors import DataError
from rag_sourcebias.core.values import FloatArray, from_plain, t_quantile
from rag_sourcebias.monitor.data import (
    OTHER,
    Alarm,
    BlockState,
    CanaryPoint,
    GroupShare,
    Key,
    LabelCaps,
    Losses,
    Measure,
    MonitorSnapshot,
    Move,
    ShiftPart,
    Waiting,
    short_text,
)
from rag_sourcebias.monitor.labels import Composition, LabelWatch, RaisedAt, Retrievals
from rag_sourcebias.monitor.log.schema import EventColumns
from rag_sourcebias.monitor.settings import (
    Aggregation,
    Baseline,
    CorpusShare,
    PoolShare,
    ReferenceWindow,
    SkewSettings,
    TagErrors,
    Test,
)
from rag_sourcebias.observe.events import DroppedEvents, RetrievalEvent, renews_after_fork
from rag_sourcebias.observe.observers import ExposureCounts
from rag_sourcebias.stats.aggregation import beta_interval
from rag_sourcebias.stats.blocks import DAY, WEEK, Shift
from rag_sourcebias.stats.sequential import read_state, write_state

# The buffer in front of a monitor: cheap to put into, emptied by a thread of its own.


BATCH = 256
BEHIND = 16 * BATCH
CAPACITY = 100_000
GATHER_SECONDS = 1.0
Closing = Literal["nothing", "due", "all"]
"""Which of the observations that are being aggregated end with a batch."""


class Intake:
    """Let events gather, and have one thread at a time process them.

    That is a daemon thread, started by the first event and ended with the monitor. It is woken by
    the first event of a batch and by the one that completes it; waking it for each would cost the
    application more than the event itself. Where it cannot keep up (a tight loop, no thread to be
    had) the thread that brings an event processes ``BEHIND`` of them.

    Callbacks and log handlers may use the monitor: alarms and losses are told without any lock.

    Parameters
    ----------
    process : callable of (events, closing) to alarms
        Called by one thread at a time.
    tell : callable of alarms
        Called afterwards, by the same thread, while others may already process the next batch.
    losses : Losses
    """

    def __init__(
        self,
        process: Callable[[list[Waiting], Closing], list[Alarm]],
        tell: Callable[[list[Alarm]], None],
        losses: Losses,
    ) -> None:
        self._process, self._tell, self._losses = process, tell, losses
        self.renew()

    def renew(self) -> None:
        """Forget what waits, and take new locks and another thread."""
        self._waiting: list[Waiting] = []
        self._lock = threading.RLock()
        self._working = threading.Lock()
        self._started = False
        self._wake: SimpleQueue[bool] = SimpleQueue()
        weakref.finalize(self, self._wake.put, False).atexit = False

    def put(self, event: RetrievalEvent, at: float | None) -> None:
        """Append an event; raises nothing."""
        try:
            _ = event.monotonic + 0.0  # a broken event is refused before it waits
            with self._lock:
                waiting = self._waiting
                n = len(waiting)
                if n < CAPACITY:
                    waiting.append((event, at))
            if not n or n + 1 == BATCH:
                self._wake.put(True)
                if not self._started:
                    self._start()
            elif n + 1 >= BEHIND:
                if n >= CAPACITY:
                    self._losses.note("monitor is full")
                    self._losses.tell()
                if self._working.acquire(blocking=False):  # no other thread is at it
                    self._run("nothing")
        except Exception as error:  # noqa: BLE001 - nothing may reach the application
            self._losses.note("monitor could not take the event", error=error)
            self._losses.tell()

    def put_many(self, events: list[Waiting]) -> None:
        """Append events and process them now."""
        self._working.acquire()
        with self._lock:
            self._waiting += events
        self._run("nothing")

    def _start(self) -> None:
        with self._lock:
            if not self._started:
                self._started = True
                threading.Thread(
                    target=_keep_emptying,
                    args=(weakref.ref(self), self._wake),
                    name="rag-sourcebias-monitor",
                    daemon=True,
                ).start()

    def _run(self, closing: Closing) -> None:
        """Process what waits; the caller has acquired ``_working``, which is released here."""
        try:
            alarms = self._empty(closing)
        finally:
            self._working.release()
        self._tell(alarms)
        self._losses.tell()

    def _empty(self, closing: Closing) -> list[Alarm]:
        with self._lock:
            batch, self._waiting = self._waiting, []
        return self._process(batch, closing)

    def flush(self, closing: Closing = "nothing") -> None:
        """Process what waits now."""
        self._working.acquire()
        self._run(closing)

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Process what waits, and nothing else inside the block; then tell of it."""
        alarms: list[Alarm] = []
        try:
            with self._working:
                alarms = self._empty("nothing")
                yield
        finally:
            self._tell(alarms)
            self._losses.tell()


def _keep_emptying(owner: weakref.ref[Intake], wake: SimpleQueue[bool]) -> None:
    """Process batches until there is no intake any more; holds it only while it does so."""
    while wake.get():  # the first event of a batch
        with suppress(Empty):  # not complete, but old enough
            if not wake.get(timeout=GATHER_SECONDS):
                return
        intake = owner()
        if intake is None:
            return
        try:
            intake.flush()
        except Exception as error:  # noqa: BLE001 - a clock of the application may fail
            intake._losses.note("monitor failed", error=error)
            intake._losses.tell()
        del intake


# State and alarms of one set of labels in the types that leave the monitor.


_WHAT = {"exposure": "exposure", "first": "first ranks"}


def _interval(n: int, mean: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
    # A uniform mixing distribution: no baseline is favoured, and shares near 0 are no worse.
    if not n:
        return np.full(len(mean), np.nan), np.full(len(mean), np.nan)
    return beta_interval(float(n), mean * n, a=1.0, b=1.0, confidence_level=level)


def _name(watch: LabelWatch, column: int) -> tuple[str, int]:
    """Return group and number of the measure of a column of values."""
    measure, group = divmod(column, watch.groups.width)
    names = watch.groups.names
    return (names[group] if group < len(names) else OTHER), measure


def _baselines(watch: LabelWatch) -> dict[int, float]:
    """Return the baseline of each tested column of values."""
    kind, totals = watch.settings.baseline, watch.totals
    columns = watch.tests.columns.tolist()
    if isinstance(kind, CorpusShare):
        return {c: kind.shares[_name(watch, c)[0]] for c in columns}
    if isinstance(kind, PoolShare) and totals.n:
        return {c: float(totals.null[c] / totals.n) for c in columns}
    if watch.tests.reference is not None:
        return dict(zip(columns, watch.tests.reference.tolist(), strict=True))
    return {}


def _words(watch: LabelWatch) -> str:
    baseline, blocks = watch.settings.baseline, watch.blocks
    if baseline is None:
        return "no baseline"
    if blocks is not None and isinstance(baseline, ReferenceWindow):
        if blocks.levels() is None or watch.totals.n <= baseline.n:
            return f"the share so far, from {baseline.n:,} retrievals on, of {watch.totals.n:,} yet"
        return (
            "the share before, at the same time of day"
            if blocks.watched >= WEEK
            else ("the share before")
        )
    if isinstance(baseline, ReferenceWindow) and watch.tests.test is None:
        return f"{baseline.words}, of which there are {len(watch.tests.window)} yet"
    return baseline.words


class _Shares:
    """Shares, intervals, baselines, evidence and alarms of every column of a set of labels."""

    def __init__(self, watch: LabelWatch) -> None:
        totals, n = watch.totals, watch.totals.n
        self.baselines = _baselines(watch)
        self.mean = totals.total / n if n else np.full(len(totals.total), np.nan)
        self.evidence, self.alarm = np.zeros((2, len(self.mean)))
        self.ends: dict[int, tuple[float, float]] = {}
        self.spread: dict[int, float] = {}
        columns = watch.tests.columns
        if watch.blocks is None:
            level = watch.settings.confidence_level
            self.lower, self.upper = _interval(watch.n_independent, self.mean, level)
            if (test := watch.tests.test) is not None:
                self.evidence[columns], self.alarm[columns] = test.log_e, test.alarms
            return
        nothing = np.nan if not n else 0.0
        self.lower, self.upper = np.full(len(self.mean), nothing), np.full(len(self.mean), 1.0)
        if not n:
            self.upper[:] = np.nan
        levels = watch.blocks.levels()
        self.evidence[columns] = watch.blocks.log_e
        if levels is None:
            return
        away = watch.blocks.away
        known = np.array([self.baselines.get(c, 0.0) for c in columns.tolist()])
        base, now = ([np.clip(known + part, 0, 1) for part in level[:3]] for level in levels)
        self.spread = dict(zip(columns.tolist(), levels[0].spread.tolist(), strict=True))
        for i, column in enumerate(columns.tolist()):
            if away is not None or watch.blocks.by_user:
                self.mean[column] = now[0][i]
            reach = max(now[2][i] - now[0][i], now[0][i] - now[1][i])
            self.lower[column] = max(self.mean[column] - reach, 0.0)
            self.upper[column] = min(self.mean[column] + reach, 1.0)
            if not watch.blocks.known and watch.totals.n > watch.blocks.learn:
                self.baselines[column] = float(base[0][i])
                self.ends[column] = float(base[1][i]), float(base[2][i])
        if away is not None:
            self.alarm[columns[list(away)]] = 1


def snapshot_of(
    watch: LabelWatch, labels: Mapping[str, str], dropped: Mapping[str, int]
) -> MonitorSnapshot:
    """Return what is known of a set of labels at this moment.

    Groups are those seen, and those with a baseline.
    """
    settings, totals, width = watch.settings, watch.totals, watch.groups.width
    found, shares = _Shares(watch), []
    corpus = isinstance(settings.baseline, CorpusShare)
    for column in range(len(totals.total)):
        group, measure = _name(watch, column)
        known = corpus and column in found.baselines
        if not (known or totals.documents[column % width] or group in (settings.groups or ())):
            continue
        ends = found.ends.get(column, (None, None))
        share = GroupShare(
            group=group,
            measure=settings.measures[measure],
            share=float(found.mean[column]),
            lower=float(found.lower[column]),
            upper=float(found.upper[column]),
            baseline=found.baselines.get(column),
            evidence=float(found.evidence[column]),
            alarm=bool(found.alarm[column]),
            baseline_lower=ends[0],
            baseline_upper=ends[1],
            spread=found.spread.get(column),
        )
        shares.append((measure, group, share))
    test = watch.tests.test
    n_tested = totals.n if watch.blocks is not None else 0 if test is None else test.n
    named = settings.baseline.shares if isinstance(settings.baseline, CorpusShare) else {}
    columns = {name: i for i, name in enumerate(watch.groups.names)}
    return MonitorSnapshot(
        labels=dict(labels),
        by=settings.by,
        n_retrievals=totals.n_retrievals,
        n_documents=totals.n_documents,
        n_empty=totals.n_empty,
        n_observations=watch.n_independent if settings.baseline is None else n_tested,
        groups=tuple(share for _, _, share in sorted(shares, key=lambda one: one[:2])),
        baseline=_words(watch),
        dropped=dict(dropped),
        counts=totals.by_rank(watch.groups.names),
        corrected=_corrected(watch, [share for _, _, share in shares]),
        block=_block_state(watch),
        odd=dict(watch.odd),
        unseen=tuple(
            name
            for name, share in named.items()
            if share and totals.n and not totals.documents[columns.get(name, -1)]
        ),
    )


def _block_state(watch: LabelWatch) -> BlockState | None:
    blocks = watch.blocks
    if blocks is None:
        return None
    n, retrievals, seconds = blocks.extent()
    return BlockState(n=n, retrievals=retrievals, seconds=seconds, days=blocks.watched / DAY)


def _corrected(watch: LabelWatch, shares: Sequence[GroupShare]) -> dict[str, float]:
    """Return shares of exposure corrected for errors of the tags, of all groups."""
    errors = watch.settings.tag_errors
    found = {g.group: g.share for g in shares if g.measure == "exposure"}
    # A group that came after the cap is counted as "other": its share is not known.
    unknown = set(() if errors is None else errors.groups) - set(watch.groups.names)
    if errors is None or not watch.totals.n or (unknown and found.get(OTHER)):
        return {}
    return dict(sorted(errors.correct(found).items()))


def alarm_of(
    watch: LabelWatch,
    labels: Mapping[str, str],
    found: RaisedAt,
    *,
    points: Sequence[CanaryPoint] = (),
) -> Alarm:
    """Return an alarm for people and sinks; ``points`` are those of canary queries."""
    if isinstance(found.raised, Shift):
        return _shift_alarm(watch, labels, found, found.raised, points)
    raised = found.raised
    column = int(watch.tests.columns[raised.column])
    group, measure = _name(watch, column)
    mean, level = found.total[[column]] / found.n, watch.settings.confidence_level
    lower, upper = _interval(found.independent, mean, level)
    share = float(mean[0])
    baseline = (
        _baselines(watch).get(column, math.nan)
        if found.null is None
        else float(found.null[column] / found.n)
    )
    what = f"{_WHAT[watch.settings.measures[measure]]} of {group or 'untagged documents'}"
    return Alarm(
        rule="baseline",
        labels=dict(labels),
        by=watch.settings.by,
        group=group,
        measure=watch.settings.measures[measure],
        n=found.n,
        share=share,
        lower=float(lower[0]),
        upper=float(upper[0]),
        baseline=baseline,
        evidence=raised.evidence,
        at=found.at,
        message=(
            f"{_where(labels)}: share of {what} left its baseline (baseline {baseline:.3f}) "
            f"at observation {found.n}; {share:.3f} on average since the start"
        ),
    )


def _where(labels: Mapping[str, str]) -> str:
    return ", ".join(f"{key} {value}" for key, value in labels.items()) or "all retrievals"


# An alarm in words.


_MOST_MOVES, _TWO = 10, 2


def _shift_alarm(
    watch: LabelWatch,
    labels: Mapping[str, str],
    found: RaisedAt,
    shift: Shift,
    points: Sequence[CanaryPoint],
) -> Alarm:
    columns, settings = watch.tests.columns.tolist(), watch.settings
    baselines = _baselines(watch)
    known = np.array([baselines.get(c, 0.0) for c in columns])
    base, level = (
        [np.clip(known + part, 0.0, 1.0).tolist() for part in given[:3]]
        for given in (shift.base, shift.level)
    )
    moves = [
        Move(
            group=_name(watch, columns[i])[0],
            measure=settings.measures[_name(watch, columns[i])[1]],
            baseline=base[0][i],
            share=level[0][i],
        )
        for i in _ordered(watch, shift)[:_MOST_MOVES]
    ]
    lead = _ordered(watch, shift)[0]
    group, measure = _name(watch, columns[lead])
    parts: tuple[ShiftPart, ...] = ()
    if settings.measures[measure] == "exposure" and shift.kind != "resolved":
        split = watch.parts_of(shift, columns[lead] % watch.groups.width)
        parts = tuple(
            ShiftPart(of=of, change=value, lower=lower, upper=upper)
            for of, (value, lower, upper) in split.items()
        )
    canary = _of_canaries(points, shift.since, settings.confidence_level)
    if shift.kind != "resolved" and _largest(parts) == "index":
        rule = "composition"
    else:
        rule = "shift" if shift.kind == "page" else shift.kind
    made = Alarm(
        rule=rule,
        labels=dict(labels),
        by=settings.by,
        group=group,
        measure=settings.measures[measure],
        n=found.n,
        share=level[0][lead],
        lower=level[1][lead],
        upper=level[2][lead],
        baseline=base[0][lead],
        evidence=shift.evidence,
        at=found.at,
        message="",
        baseline_lower=None if watch.blocks is None or watch.blocks.known else base[1][lead],
        baseline_upper=None if watch.blocks is None or watch.blocks.known else base[2][lead],
        since=shift.since,
        n_since=shift.n,
        moves=tuple(moves),
        parts=parts,
        next_step=_next_step(rule, parts, canary),
        canary=None if rule == "resolved" else canary,
    )
    return replace(made, message=_sentences(made))


def _ordered(watch: LabelWatch, shift: Shift) -> list[int]:
    """Return columns that moved: the clearest exposure first, the other measure after it."""
    exposure = watch.settings.measures[0] == "exposure"
    width = len(watch.tests.columns) // len(watch.settings.measures)
    first = [c for c in shift.columns if c < width] if exposure else []
    if len(first) == _TWO:  # one is the other's mirror
        first.sort(key=lambda c: _name(watch, c)[0] != "human")
    return [*first, *(c for c in shift.columns if c not in first)]


def _largest(parts: Sequence[ShiftPart]) -> str | None:
    """Return the largest part of those that are surely some.

    The store is it unless another is half as large and sure enough to be news by itself: what was
    told early looks larger than it is.
    """
    clear = {part.of: abs(part.change) for part in parts if part.lower * part.upper > 0}
    if "index" in clear:
        sure = {
            part.of: 2 * abs(part.change)
            for part in parts
            if part.of in clear
            and part.of != "index"
            and abs(part.change) > _SURE * max(part.change - part.lower, part.upper - part.change)
        }
        clear = {"index": clear["index"], **sure}
    return max(clear, key=clear.__getitem__) if clear else None


_SURE = 2.2  # half widths: 4.3 standard errors, as the evidence for a shift must have


def _of_canaries(points: Sequence[CanaryPoint], since: float, level: float) -> ShiftPart | None:
    """Return the change of Relative Δ between rounds before and after; None of too few."""
    known = [(p.at, p.round_relative_delta) for p in points if p.round_relative_delta is not None]
    sides = [
        np.array([delta / 100 for at, delta in known if (at >= since) == after])
        for after in (False, True)
    ]
    if min(map(len, sides)) < _FEWEST_ROUNDS:
        return None
    errors = [float(side.var(ddof=1)) / len(side) for side in sides]
    total = max(sum(errors), 1e-12)
    degrees = total**2 / max(
        sum(e**2 / (len(side) - 1) for e, side in zip(errors, sides, strict=True)), 1e-30
    )
    change = float(sides[1].mean() - sides[0].mean())
    reach = t_quantile(0.5 + level / 2, degrees) * math.sqrt(total)
    return ShiftPart(of="canary", change=change, lower=change - reach, upper=change + reach)


_FEWEST_ROUNDS = 3
_DEPLOYED = "look at what was deployed (encoder, reranker, settings)"
_NEXT = {
    "index": "the store's shares changed: look at what was added or deleted",
    "asked": "the mix of topics changed: look at who asks, and split by that label",
    "ranking": f"ranking changed: {_DEPLOYED}, and ask canary queries (monitor probe)",
    "canary": f"ranking changed, as canary queries say, too: {_DEPLOYED}",
}


def _next_step(rule: str, parts: Sequence[ShiftPart], canary: ShiftPart | None) -> str:
    if rule == "resolved":
        return ""
    largest = _largest(parts)
    if largest == "ranking" and not any(part.of == "index" for part in parts):
        largest = None  # it holds what the store does, too
    if largest in (None, "ranking") and canary is not None and _largest([canary]):
        largest = "canary"
    if largest is not None:
        return _NEXT[largest]
    if canary is not None:
        return "canary queries saw no change of ranking: look at what was added to the store"
    return (
        "look at what was added to the store and what was deployed at that time; canary queries "
        "(monitor probe) show a change of ranking alone"
    )


_PART_WORDS = {"index": "what the store holds", "asked": "what is asked", "ranking": "ranking"}
_REST = {"ranking": "ranking or what the store holds"}
_CAUSE = {"composition": " with what the store holds"}


def _sentences(alarm: Alarm) -> str:
    what = f"{_WHAT[alarm.measure]} of {alarm.group or 'untagged documents'}"
    way = "up" if alarm.share > alarm.baseline else "down"
    interval = f"{alarm.share:.3f} [{alarm.lower:.3f}, {alarm.upper:.3f}]"
    ends = (alarm.baseline_lower, alarm.baseline_upper)
    before = f"{alarm.baseline:.3f}"
    if ends[0] is not None and ends[1] is not None:
        before += f" [{ends[0]:.3f}, {ends[1]:.3f}]"
    since = datetime.fromtimestamp(alarm.since or alarm.at, UTC).strftime("%Y-%m-%d %H:%M UTC")
    if alarm.rule == "resolved":
        return (
            f"{_where(alarm.labels)}: {what} is back at {interval} since {since}; baseline {before}"
        )
    others = [
        f"{_WHAT[m.measure]} of {m.group or 'untagged documents'} {m.baseline:.3f} → {m.share:.3f}"
        for m in alarm.moves[1:4]
    ]
    also = f"; with it {', '.join(others)}" if others else ""
    of = {part.of for part in alarm.parts}
    words = _PART_WORDS | ({} if "index" in of else _REST)
    parts = [
        f"{words[p.of]} {100 * p.change:+.1f} [{100 * p.lower:+.1f}, {100 * p.upper:+.1f}]"
        for p in alarm.parts
    ]
    split = f" Points: {', '.join(parts)}." if len(parts) > 1 else ""
    if alarm.canary is not None:
        moved = (alarm.canary.change, alarm.canary.lower, alarm.canary.upper)
        split += " Canary queries: Relative Δ {:+.1f} [{:+.1f}, {:+.1f}].".format(
            *(100 * end for end in moved)
        )
    sure = f"evidence {_odds(alarm.evidence)} to 1"
    if alarm.rule == "notice":
        sure += ", a notice: less than 7 days were watched"
    return (
        f"{_where(alarm.labels)}: {what} went {way}{_CAUSE.get(alarm.rule, '')} to {interval} "
        f"from {before} since {since}, "
        f"over {alarm.n_since:,} retrievals ({sure}){also}.{split} Next: {alarm.next_step}."
    )


def _odds(evidence: float) -> str:
    return f"{math.exp(evidence):,.0f}" if evidence < math.log(1e6) else "over 1,000,000"


# Watch in production which sources, or styles, get the ranks.


_KIND = "skew-monitor"
_VERSION = 2  # 1 had no counts by rank, and changes that did not restart
_MOST_ALARMS = 1_000
_LOOK_SECONDS, _MOST_INDEX = 600.0, 200
Store = Callable[[], Mapping[str, float]]
Canary = Callable[[], Sequence[CanaryPoint]]
_AT_ONCE = 4_096  # events before it waits: what cannot be kept up with is dropped


class SkewMonitor:
    """Hold the shares of the ranks against a baseline; an observer for production.

    ``observe`` appends to a buffer, which a thread of the monitor empties every 256 events, or a
    second after the first of them. ``snapshot``, ``flush`` and ``tick`` process at once. Memory is
    bounded, and nothing is raised into the application. A forked child starts empty: each process
    counts its own retrievals. Every retrieval that returned something is one observation of each
    group: its share of the rank weights ("exposure"), and whether its document came first
    ("first").

    Alarms may be looked at all the time. Retrievals depend on one another, so that blocks of them
    are tested, long against the dependence that is measured, at the same time of day once a week
    was watched; see :mod:`~rag_sourcebias.stats.blocks` and docs/monitor.md for how often simulated
    streams alarm falsely. A shift is one alarm: a page ("shift"), or a "notice" before seven days;
    "resolved" when it ends; "composition" where most of it comes from what the store holds.
    Intervals are of single shares at that level.

    With ``test="independent"`` the error is split evenly over tested groups × measures (union
    bound), so that a false alarm of rule "baseline" ever comes with probability at most
    ``1 - confidence_level`` *per set of labels*, for retrievals that are independent:
    ``aggregate`` those that are not.

    Parameters
    ----------
    by : {"source", "style"}
    groups : sequence of str or None
        Groups told apart and tested; further ones are "other", documents without a tag "".
        None takes those of a :class:`CorpusShare`, or else the first ``max_groups`` that come:
        the error is then split over that many tests, and each event costs as many.
    baseline : CorpusShare, PoolShare, ReferenceWindow or None
        None watches without alarms. A reference window is evaluated at once when it is full,
        which takes some 0.1 ms per observation.
    browsing : str
        Weights of ranks: ``"dcg"``, ``"top-<k>"`` or ``"rbp-<p>"``; see
        :func:`~rag_sourcebias.stats.exposure.attention_weights`.
    measures : sequence of {"exposure", "first"}
    confidence_level : float
    labels : sequence of str
        Labels whose values are watched separately.
    max_label_sets, max_groups : int
        Told apart; further ones are counted as "other".
    max_documents : int
        Documents of a retrieval that are counted, from rank 1.
    test : {"blocks", "independent"}
    users : sequence of str
        Labels that name who asks, of which an event's first counts: in a block each counts once.
    topics : str or None
        Label that says what is asked: a shift is split into what the store holds
        (``store``, :meth:`note_index`), what is asked and ranking.
    aggregate : Aggregation or None
        With ``test="independent"``. Shares are those of all retrievals, evidence that of the
        observations.
    tag_errors : TagErrors or None
        How often the tagger errs: ``corrected`` in snapshots are shares of exposure corrected
        for it, of which no interval is given. Tests and alarms are of shares as they are tagged.
    store : callable or None
        Counts what shares the store holds, by source (or style). Asked by :meth:`look`, at most
        every ten minutes, and when a share shifts, on the thread that processed it.
    canary : callable or None
        Returns points of canary queries, when a share shifts.
    on_alarm : callable or None
        Told about each alarm, on the thread that processed it; what it raises is counted.
    clock : callable
        Seconds since 1970.

    Attributes
    ----------
    dropped : DroppedEvents
        Events and calls of ``on_alarm`` lost, by reason.

    Raises
    ------
    DataError
        If a setting is out of its range.
    """

    inline = True  # see Delivery: observing appends to a buffer

    def __init__(
        self,
        *,
        by: Literal["source", "style"] = "source",
        groups: Sequence[str] | None = None,
        baseline: Baseline | None = None,
        browsing: str = "dcg",
        measures: Sequence[Measure] = ("exposure", "first"),
        confidence_level: float = 0.95,
        labels: Sequence[str] = ("collection",),
        max_label_sets: int = 100,
        max_groups: int = 20,
        max_documents: int = 1_000,
        test: Test = "blocks",
        users: Sequence[str] = ("user", "session"),
        topics: str | None = None,
        aggregate: Aggregation | None = None,
        tag_errors: TagErrors | None = None,
        store: Store | None = None,
        canary: Canary | None = None,
        on_alarm: Callable[[Alarm], object] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        for given in (labels, groups, users):
            if isinstance(given, str):
                raise DataError(f"labels, groups and users are sequences of names, got {given!r}")
        self._on_alarm, self._clock, self._store, self._canary = on_alarm, clock, store, canary
        self._look_due, self._looked = -math.inf, False
        self.dropped = DroppedEvents()
        self._losses = Losses(self.dropped)
        self._begin(
            SkewSettings(
                by=by,
                groups=None if groups is None else tuple(groups),
                baseline=baseline,
                browsing=browsing,
                measures=tuple(measures),
                confidence_level=confidence_level,
                labels=tuple(labels),
                max_label_sets=max_label_sets,
                max_groups=max_groups,
                max_documents=max_documents,
                test=test,
                users=tuple(users),
                topics=topics,
                aggregate=aggregate,
                tag_errors=tag_errors,
            )
        )
        self._intake = Intake(self._process, self._tell, self._losses)
        renews_after_fork(self)

    def _begin(self, settings: SkewSettings) -> None:
        """Watch nothing yet. All of this is used by one thread at a time, see ``Intake``."""
        self._settings, self._name_of = settings, attrgetter(settings.by)
        most, last = settings.max_label_sets, tuple((name, OTHER) for name in settings.labels)
        self._caps = LabelCaps(values=most, sets=most, last=last)
        self._watches: dict[Key, LabelWatch] = {}
        self._overflowed: Counter[str] = Counter()  # by label
        self._bad_tags = 0
        self._index: Composition = []
        self._looked_at: float | None = None
        self._alarms: deque[Alarm] = deque(maxlen=_MOST_ALARMS)

    def _after_fork(self) -> None:
        self._intake.renew()
        self._losses.renew()
        self._begin(self._settings)

    def observe(self, event: RetrievalEvent) -> None:
        """Take one retrieval; raises nothing."""
        self._intake.put(event, None)

    def record(self, event: RetrievalEvent, *, at: float | None = None) -> None:
        """Take one retrieval, of Unix time ``at`` (None: the event's own); raises nothing."""
        self._intake.put(event, at)

    def observe_many(self, events: Iterable[RetrievalEvent]) -> None:
        """Take retrievals, in order, and process them; waits, and so loses none."""
        self.record_many((event, None) for event in events)

    def record_many(self, events: Iterable[Waiting]) -> int:
        """Take retrievals with their Unix times; waits, and so loses none.

        Parameters
        ----------
        events : iterable of (RetrievalEvent, float or None)
            In order; None stands for the time of the event itself.

        Returns
        -------
        int
            How many there were.
        """
        n, coming = 0, iter(events)
        while batch := list(islice(coming, _AT_ONCE)):
            self._intake.put_many(batch)
            n += len(batch)
        return n

    def flush(self, *, finish: bool = False) -> None:
        """Process what waits; with ``finish`` also what is still being aggregated."""
        self._intake.flush("all" if finish else "nothing")

    def tick(self) -> None:
        """Process what waits, and test aggregated retrievals whose time is over by the clock.

        For a monitor that aggregates and has little traffic: call it now and then. Not for
        replays, whose times are long past.
        """
        self._intake.flush("due")

    def _process(self, batch: list[Waiting], closing: Closing) -> list[Alarm]:
        now, self._looked = self._clock(), False
        raised = self._add(batch, offset=now - time.monotonic())
        if closing != "nothing":
            for key, watch in self._watches.items():
                raised += self._raised(watch, key, watch.close(None if closing == "all" else now))
        self._alarms.extend(raised)
        return raised

    def _add(self, batch: list[Waiting], *, offset: float) -> list[Alarm]:
        """Take events with their Unix times; ``offset`` turns monotonic times into such."""
        parts: dict[Key, Retrievals] = {}
        for event, at in batch:
            try:
                key = self._key(event.labels)
                self._bad_tags += event.bad_tags
                self._read(parts, key, event, offset + event.monotonic if at is None else at)
            except Exception as error:  # noqa: BLE001 - a broken event costs itself only
                self._losses.note("monitor could not read the event", error=error)
        return self._take(parts)

    def _key(self, labels: Mapping[str, str], n: int = 1) -> Key:
        names = [name for name in self._settings.labels if name in labels]
        key, replaced = self._caps.fit(tuple((k, short_text(labels[k])) for k in names))
        for name in replaced:
            self._overflowed[name] += n
        return key

    def _watch(self, key: Key) -> LabelWatch:
        found = self._watches.get(key)
        if found is None:
            found = self._watches[key] = LabelWatch(self._settings, self._index)
        return found

    def _take(self, parts: Mapping[Key, Retrievals]) -> list[Alarm]:
        alarms: list[Alarm] = []
        for key, items in parts.items():
            try:
                watch = self._watches[key]
                alarms += self._raised(watch, key, watch.add(items))
            except Exception as error:  # noqa: BLE001 - nothing may reach the application
                self._losses.note("monitor failed", n=len(items.lengths), error=error)
        return sorted(alarms, key=attrgetter("at"))  # wherever one batch ends and the next begins

    def _raised(self, watch: LabelWatch, key: Key, found: Sequence[RaisedAt]) -> list[Alarm]:
        """Return alarms, after a look at what may have caused them."""
        points: Sequence[CanaryPoint] = ()
        begun = [one.raised.since for one in found if isinstance(one.raised, Shift)]
        if begun:
            if not self._looked:  # once a batch
                self._looked = True
                self._keep_index(self._counted(), begun=min(begun))
            if self._canary is not None:
                try:
                    points = self._canary()
                except Exception as error:  # noqa: BLE001 - a file of somebody else
                    self._losses.note("canary points could not be read", error=error)
        return [alarm_of(watch, dict(key), one, points=points) for one in found]

    def look(self) -> None:
        """Count what the store holds, if that was not done lately; what it raises is counted."""
        if time.monotonic() >= self._look_due:
            counted = self._counted()
            with self._intake.stopped():
                self._keep_index(counted)

    def _counted(self) -> dict[str, float] | None:
        if self._store is None:
            return None
        start, found = time.monotonic(), None
        try:
            found = dict(CorpusShare(self._store()).shares)
        except Exception as error:  # noqa: BLE001 - a store of somebody else
            self._losses.note("the store could not be counted", error=error)
        now = time.monotonic()
        self._look_due = now + max(_LOOK_SECONDS, 20 * (now - start))
        return found

    def _keep_index(
        self,
        shares: dict[str, float] | None,
        at: float | None = None,
        *,
        begun: float = -math.inf,
    ) -> None:
        """Keep what the store holds; what is new came since the last look, or with a shift."""
        if shares is None:
            return
        now = self._clock()
        if not self._index or self._index[-1][1] != shares:
            since = now if self._looked_at is None else max(self._looked_at, min(begun, now))
            self._index.append((since if at is None else at, shares))
            self._index.sort(key=itemgetter(0))
        if len(self._index) > _MOST_INDEX:  # every other one of the older half
            half = _MOST_INDEX // 2
            self._index[:half] = self._index[:half:2]
        self._looked_at = now if at is None else at

    def _read(
        self, parts: dict[Key, Retrievals], key: Key, event: RetrievalEvent, at: float
    ) -> None:
        if not math.isfinite(at):
            raise DataError(f"the time of an event must be a finite number, got {at}")
        settings, watch = self._settings, self._watch(key)
        tags = event.tags[: settings.max_documents]
        try:
            codes = list(map(watch.groups.__getitem__, map(self._name_of, tags)))
        except Exception:  # noqa: BLE001 - one of them is no tag, whatever it is instead
            codes = [self._code(watch, tag) for tag in tags]
        labels, together = event.labels, None
        if settings.aggregate is not None and settings.aggregate.key == "query":
            together = event.query_hash
        else:
            together = next((labels[name] for name in settings.units if name in labels), None)
        topic = None if settings.topics is None else labels.get(settings.topics)
        key_topic = [None if name is None else short_text(name) for name in (together, topic)]
        found = parts.setdefault(key, Retrievals())
        found.codes += codes
        found.lengths.append(len(codes))
        found.at.append(at)
        found.keys.append(key_topic[0])
        found.topics.append(key_topic[1])

    def record_columns(self, part: EventColumns) -> int:
        """Take retrievals of a log, all at once, and return how many; gives what their events do.

        It waits, and so loses none.
        """
        with self._intake.stopped():
            self._looked = False
            alarms = self._take(self._columns(part)) if len(part) else []
            self._alarms.extend(alarms)
        self._tell(alarms)
        return len(part)

    def _columns(self, part: EventColumns) -> dict[Key, Retrievals]:
        """Return the retrievals of a log by the set of labels that is watched."""
        settings, chosen = self._settings, dict[Key, npt.NDArray[np.bool_]]()
        sets: npt.NDArray[Any] = part.label_codes
        if any(name in part.event_labels for name in settings.labels):
            known: dict[tuple[str | None, ...], int] = {}
            given = zip(*(part.values_of(name) for name in settings.labels), strict=True)
            sets = np.array([known.setdefault(one, len(known)) for one in given])
        for first in np.sort(np.unique(sets, return_index=True)[1]).tolist():
            rows = sets == sets[first]
            key = self._key(part.labels_at(first), int(rows.sum()))
            chosen[key] = rows | chosen.get(key, False)
        names = settings.units
        if settings.aggregate is not None and settings.aggregate.key == "query":
            keys: list[str | None] = [str(one) or None for one in part.query_ids]
        else:
            keys = _first_of([part.values_of(name) for name in names], len(part))
        topics = part.values_of(settings.topics) if settings.topics else [None] * len(part)
        found = {}
        for key, rows in chosen.items():
            groups, own = self._watch(key).groups, part.take(rows)
            codes, lengths = own.tag_codes, np.diff(own.offsets)
            if lengths.max() > settings.max_documents:
                codes = codes[own.ranks <= settings.max_documents]
                lengths = np.minimum(lengths, settings.max_documents)
            used, at = np.unique(codes, return_index=True)
            columns = np.zeros(len(part.tags), np.int64)
            for code in used[np.argsort(at)].tolist():  # in the order in which they came
                columns[code] = groups[part.tags[code][settings.by == "style"]]
            here = np.flatnonzero(rows).tolist()
            found[key] = Retrievals(
                columns[codes],
                lengths.tolist(),
                own.times.tolist(),
                [keys[i] and short_text(keys[i] or "") for i in here],
                [topics[i] and short_text(topics[i] or "") for i in here],
            )
        return found

    def _code(self, watch: LabelWatch, tag: object) -> int:
        try:
            return watch.groups[self._name_of(tag)]
        except Exception:  # noqa: BLE001 - as above
            self._bad_tags += 1
            return watch.groups[None]

    def _tell(self, alarms: list[Alarm]) -> None:
        if self._on_alarm is None:
            return
        for alarm in alarms:
            try:
                self._on_alarm(alarm)
            except Exception as error:  # noqa: BLE001 - nothing may reach the application
                self._losses.note("on_alarm raised", error=error)

    def __repr__(self) -> str:
        found, alarms = self.snapshot(), len(self._alarms)
        n = sum(part.n_retrievals for part in found)
        return (
            f"<SkewMonitor: {n:,} retrievals under {len(found)} set{'s' * (len(found) != 1)} of "
            f"labels, {alarms} alarm{'s' * (alarms != 1)}>"
        )

    @property
    def baseline(self) -> Baseline | None:
        """What shares are held against."""
        return self._settings.baseline

    @property
    def index(self) -> Composition:
        """What the store held, and from when on."""
        return list(self._index)

    @property
    def alarms(self) -> tuple[Alarm, ...]:
        """The latest alarms, oldest first, at most 1,000; what waits is processed first."""
        self.flush()
        return tuple(self._alarms.copy())

    def snapshot(self) -> tuple[MonitorSnapshot, ...]:
        """Return the state of each set of labels, in alphabetical order."""
        with self._intake.stopped():
            lost = self._losses.by_reason
            return tuple(
                replace(
                    snapshot_of(watch, dict(key), lost),
                    overflowed=dict(self._overflowed),
                    bad_tags=self._bad_tags,
                )
                for key, watch in sorted(self._watches.items(), key=itemgetter(0))
            )

    def counts(self, labels: Mapping[str, str]) -> ExposureCounts:
        """Return what groups got in a set of labels, as an ``ExposureObserver`` counts.

        Raises
        ------
        DataError
            If there was no retrieval with these labels.
        """
        with self._intake.stopped():
            watch = self._watches[self._found(labels)]
            return watch.totals.counts(watch.groups.names)

    def note_index(self, shares: Mapping[str, float], *, at: float | None = None) -> None:
        """Take what shares the store holds now, so that a shift can be split.

        Parameters
        ----------
        shares : mapping of str to float
            By source (or style), in [0, 1].
        at : float or None
            Unix time from which on it does; None for the time of the last look.
        """
        kept = dict(CorpusShare(shares).shares)
        with self._intake.stopped():
            self._keep_index(kept, at)

    def reset(self, labels: Mapping[str, str] | None = None) -> None:
        """Start anew, with all or one set of labels; the list of alarms stays.

        After an alarm this arms the test again; a reference window is taken anew.

        Raises
        ------
        DataError
            If there was no retrieval with these labels.
        """
        with self._intake.stopped():
            for key in list(self._watches) if labels is None else [self._found(labels)]:
                self._caps.remove(key)
                del self._watches[key]

    def _found(self, labels: Mapping[str, str]) -> Key:
        for key in self._watches:
            if dict(key) == dict(labels):
                return key
        known = [dict(key) for key in sorted(self._watches)]
        raise DataError(f"no retrieval with labels {dict(labels)}; there are {known!r:.200}")

    def to_dict(self) -> dict[str, Any]:
        """Return settings, state, the latest alarms and losses as plain JSON values."""
        with self._intake.stopped():
            data = write_state(_KIND, self._settings.to_plain(), {}, version=_VERSION)
            data["state"] = {
                "overflowed": dict(self._overflowed),
                "bad_tags": self._bad_tags,
                "index": [[at, shares] for at, shares in self._index],
                "looked_at": self._looked_at,
                "watches": [[dict(key), watch.to_dict()] for key, watch in self._watches.items()],
                "alarms": [alarm.to_dict() for alarm in self._alarms],
                "dropped": self._losses.by_reason,
            }
            return data

    @classmethod
    def from_dict(
        cls,
        data: Mapping[str, Any],
        *,
        store: Store | None = None,
        canary: Canary | None = None,
        on_alarm: Callable[[Alarm], object] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> SkewMonitor:
        """Go on from what :meth:`to_dict` returned.

        Raises
        ------
        DataError
            If it is not the state of a monitor.
        UnsupportedVersionError
            If another release wrote it.
        """
        settings, state = read_state(data, _KIND, version=_VERSION)
        monitor = cls(store=store, canary=canary, on_alarm=on_alarm, clock=clock)
        monitor._begin(SkewSettings.from_plain(settings))
        part = "state"
        try:
            for name, n in state.get("overflowed", {}).items():  # 0.1 did not count them
                monitor._overflowed[str(name)] += int(n)
            monitor._bad_tags = int(state.get("bad_tags", 0))
            looked_at = state.get("looked_at")
            monitor._looked_at = None if looked_at is None else float(looked_at)
            monitor._index += [(float(at), dict(held)) for at, held in state.get("index", ())]
            for labels, kept in state["watches"]:
                key = tuple(labels.items())
                monitor._caps.add(key)
                monitor._watches[key] = LabelWatch(monitor._settings, monitor._index)
                monitor._watches[key].restore(kept)
            part = "alarms"
            monitor._alarms.extend(map(_alarm_of, state["alarms"]))
            lost = {str(reason): int(n) for reason, n in state["dropped"].items()}
        except DataError:
            raise
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise DataError(f"stored {part} of a monitor: {error!r:.80}") from None
        for reason, n in lost.items():
            if n > 0:
                monitor._losses.note(reason, n=n)
        monitor._losses.tell()
        return monitor

    def resumed(
        self, kept: Mapping[str, Any], *, on_alarm: Callable[[Alarm], object] | None
    ) -> SkewMonitor:
        """Return a monitor that goes on from a state and looks at what this one looks at."""
        return SkewMonitor.from_dict(
            kept, store=self._store, canary=self._canary, on_alarm=on_alarm, clock=self._clock
        )


def _first_of(columns: Sequence[list[str | None]], n: int) -> list[str | None]:
    """Return the first value of each row that is there."""
    found: list[str | None] = [None] * n
    for column in reversed(columns):
        found = [new or old for new, old in zip(column, found, strict=True)]
    return found


def _alarm_of(data: Mapping[str, Any]) -> Alarm:
    # A number that is not finite is stored as null.
    names = ("share", "lower", "upper", "baseline")
    return from_plain(Alarm, {**data} | {k: math.nan for k in names if data[k] is None})
