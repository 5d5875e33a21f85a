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
from operator import attrgetter, itemgetter
from queue import Empty, SimpleQueue
from typing import Any, Literal

import numpy as np

from rag_sourcebias.core.errors import DataError
from rag_sourcebias.core.values import FloatArray, from_plain
from rag_sourcebias.monitor.data import (
    OTHER,
    Alarm,
    GroupShare,
    Key,
    LabelCaps,
    Losses,
    Measure,
    MonitorSnapshot,
    Waiting,
    short_text,
)
from rag_sourcebias.monitor.labels import LabelWatch, RaisedAt, Retrieval
from rag_sourcebias.monitor.settings import (
    Aggregation,
    Baseline,
    CorpusShare,
    PoolShare,
    ReferenceWindow,
    SkewSettings,
    TagErrors,
)
from rag_sourcebias.observe.events import DroppedEvents, RetrievalEvent, renews_after_fork
from rag_sourcebias.observe.observers import ExposureCounts
from rag_sourcebias.stats.aggregation import beta_interval
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


def _interval(n: int, total: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
    # A uniform mixing distribution: no baseline is favoured, and shares near 0 are no worse.
    if not n:
        return np.full(len(total), np.nan), np.full(len(total), np.nan)
    return beta_interval(float(n), total, a=1.0, b=1.0, confidence_level=level)


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
    baseline = watch.settings.baseline
    if baseline is None:
        return "no baseline"
    if isinstance(baseline, ReferenceWindow) and watch.tests.test is None:
        return f"{baseline.words}, of which there are {len(watch.tests.window)} yet"
    return baseline.words


def snapshot_of(
    watch: LabelWatch, labels: Mapping[str, str], dropped: Mapping[str, int]
) -> MonitorSnapshot:
    """Return what is known of a set of labels at this moment.

    Groups are those seen, and those with a baseline.
    """
    settings, totals, test = watch.settings, watch.totals, watch.tests.test
    n, width = totals.n, watch.groups.width
    lower, upper = _interval(n, totals.total, settings.confidence_level)
    baselines = _baselines(watch)
    test_of = {column: i for i, column in enumerate(watch.tests.columns.tolist())}
    shares = []
    for column in range(len(totals.total)):
        group, measure = _name(watch, column)
        known = isinstance(settings.baseline, CorpusShare) and column in baselines
        if not (known or totals.documents[column % width] or group in (settings.groups or ())):
            continue
        tested = None if test is None else test_of.get(column)
        share = GroupShare(
            group=group,
            measure=settings.measures[measure],
            share=float(totals.total[column] / n) if n else float("nan"),
            lower=float(lower[column]),
            upper=float(upper[column]),
            baseline=baselines.get(column),
            evidence=0.0 if test is None or tested is None else float(test.log_e[tested]),
            alarm=test is not None and tested is not None and bool(test.alarms[tested]),
        )
        shares.append((measure, group, share))
    n_tested = 0 if test is None else test.n  # those after a reference window
    return MonitorSnapshot(
        labels=dict(labels),
        by=settings.by,
        n_retrievals=totals.n_retrievals,
        n_documents=totals.n_documents,
        n_empty=totals.n_empty,
        n_observations=n if settings.baseline is None else n_tested,
        groups=tuple(share for _, _, share in sorted(shares, key=lambda found: found[:2])),
        baseline=_words(watch),
        dropped=dict(dropped),
        counts=totals.by_rank(watch.groups.names),
        corrected=_corrected(watch, [share for _, _, share in shares]),
    )


def _corrected(watch: LabelWatch, shares: Sequence[GroupShare]) -> dict[str, float]:
    """Return shares of exposure corrected for errors of the tags, of all groups."""
    errors = watch.settings.tag_errors
    found = {g.group: g.share for g in shares if g.measure == "exposure"}
    # A group that came after the cap is counted as "other": its share is not known.
    unknown = set(() if errors is None else errors.groups) - set(watch.groups.names)
    if errors is None or not watch.totals.n or (unknown and found.get(OTHER)):
        return {}
    return dict(sorted(errors.correct(found).items()))


def alarm_of(watch: LabelWatch, labels: Mapping[str, str], found: RaisedAt) -> Alarm:
    """Return an alarm for people and sinks."""
    raised = found.raised
    column = int(watch.tests.columns[raised.column])
    group, measure = _name(watch, column)
    lower, upper = _interval(found.n, found.total[[column]], watch.settings.confidence_level)
    share, baseline = float(found.total[column] / found.n), raised.level
    if baseline is None and found.null is not None:
        baseline = float(found.null[column] / found.n)
    elif baseline is None:
        baseline = _baselines(watch).get(column, math.nan)
    what = f"{_WHAT[watch.settings.measures[measure]]} of {group or 'untagged documents'}"
    where = ", ".join(f"{key} {value}" for key, value in labels.items()) or "all retrievals"
    happened = "changed" if raised.rule == "change" else "left its baseline"
    before = "baseline" if raised.level is None else "level since the change before"
    return Alarm(
        rule=raised.rule,
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
            f"{where}: share of {what} {happened} ({before} {baseline:.3f}) "
            f"at observation {found.n}; {share:.3f} on average since the start"
        ),
    )


# Watch in production which sources, or styles, get the ranks.


_KIND = "skew-monitor"
_VERSION = 2  # 1 had no counts by rank, and changes that did not restart
_MOST_ALARMS = 1_000
_AT_ONCE = 4_096  # events before it waits: what cannot be kept up with is dropped


class SkewMonitor:
    """Hold the shares of the ranks against a baseline; an observer for production.

    ``observe`` appends to a buffer, which a thread of the monitor empties every 256 events, or a
    second after the first of them. ``snapshot``, ``flush`` and ``tick`` process at once. Memory is
    bounded, and nothing is raised into the application. A forked child starts empty: each process
    counts its own retrievals. Every retrieval that returned something is one observation of each
    group: its share of the rank weights ("exposure"), and whether its document came first
    ("first").

    Alarms hold under continuous looking while retrievals are independent: within a set of labels
    the error is split evenly over tested groups × measures (union bound), so that a false alarm of
    rule "baseline" ever comes with probability at most ``1 - confidence_level`` *per set of
    labels*; m sets have up to m times that. Intervals are of single shares at that level, for a
    share that stays the same; they are wider than the evidence needs. Retrievals must not repeat:
    ``aggregate`` those that do.

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
    aggregate : Aggregation or None
    change_run_length : float or None
        Watch for changes, too: observations between false alarms on average, per set of labels.
        After a change the share of that group is learnt anew and watched from there: a lasting
        change is one alarm of the group and measure, going back is another; see
        :mod:`~rag_sourcebias.stats.sequential`. With :class:`PoolShare` it is the
        share less that of the pool. The baseline, and its rule, stay as they are.
    change_window : int
        Observations from which it is learnt, 2 to 100,000: changes within it are not seen, and
        after a short one only large ones. Learning takes some 0.05 ms per observation.
    tag_errors : TagErrors or None
        How often the tagger errs: ``corrected`` in snapshots are shares of exposure corrected
        for it, of which no interval is given. Tests and alarms are of shares as they are tagged.
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
        aggregate: Aggregation | None = None,
        change_run_length: float | None = None,
        change_window: int = 1_000,
        tag_errors: TagErrors | None = None,
        on_alarm: Callable[[Alarm], object] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if isinstance(labels, str) or isinstance(groups, str):
            raise DataError(f"labels and groups are sequences of names, got {labels!r}, {groups!r}")
        self._on_alarm, self._clock = on_alarm, clock
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
                aggregate=aggregate,
                change_run_length=change_run_length,
                change_window=change_window,
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
        n = 0
        for event, at in events:
            self._intake.put(event, at)
            n += 1
            if n % _AT_ONCE == 0:
                self.flush()
        self.flush()
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
        now = self._clock()
        raised = self._add(batch, offset=now - time.monotonic())
        if closing != "nothing":
            raised += [
                alarm_of(watch, dict(key), found)
                for key, watch in self._watches.items()
                for found in watch.close(None if closing == "all" else now)
            ]
        self._alarms.extend(raised)
        return raised

    def _add(self, batch: list[Waiting], *, offset: float) -> list[Alarm]:
        """Take events with their Unix times; ``offset`` turns monotonic times into such."""
        parts: dict[Key, list[Retrieval]] = {}
        for event, at in batch:
            try:
                labels = event.labels
                names = [name for name in self._settings.labels if name in labels]
                key, replaced = self._caps.fit(tuple((k, short_text(labels[k])) for k in names))
                for name in replaced:
                    self._overflowed[name] += 1
                self._bad_tags += event.bad_tags
                item = self._read(key, event, offset + event.monotonic if at is None else at)
                parts.setdefault(key, []).append(item)
            except Exception as error:  # noqa: BLE001 - a broken event costs itself only
                self._losses.note("monitor could not read the event", error=error)
        alarms: list[Alarm] = []
        for key, items in parts.items():
            try:
                watch = self._watches[key]
                alarms += [alarm_of(watch, dict(key), found) for found in watch.add(items)]
            except Exception as error:  # noqa: BLE001 - nothing may reach the application
                self._losses.note("monitor failed", n=len(items), error=error)
        return sorted(alarms, key=attrgetter("at"))  # wherever one batch ends and the next begins

    def _read(self, key: Key, event: RetrievalEvent, at: float) -> Retrieval:
        if not math.isfinite(at):
            raise DataError(f"the time of an event must be a finite number, got {at}")
        settings, watch = self._settings, self._watches.get(key)
        if watch is None:
            watch = self._watches[key] = LabelWatch(settings)
        tags = event.tags[: settings.max_documents]
        try:
            codes = tuple(map(watch.groups.__getitem__, map(self._name_of, tags)))
        except Exception:  # noqa: BLE001 - one of them is no tag, whatever it is instead
            codes = tuple(self._code(watch, tag) for tag in tags)
        together: str | None = None
        if settings.aggregate is not None:
            by = settings.aggregate.key
            together = event.query_hash if by == "query" else event.labels.get(by)
        return Retrieval(codes, at, None if together is None else short_text(together))

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
        monitor = cls(on_alarm=on_alarm, clock=clock)
        monitor._begin(SkewSettings.from_plain(settings))
        part = "state"
        try:
            for name, n in state.get("overflowed", {}).items():  # 0.1 did not count them
                monitor._overflowed[str(name)] += int(n)
            monitor._bad_tags = int(state.get("bad_tags", 0))
            for labels, kept in state["watches"]:
                key = tuple(labels.items())
                monitor._caps.add(key)
                monitor._watches[key] = LabelWatch(monitor._settings)
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


def _alarm_of(data: Mapping[str, Any]) -> Alarm:
    # A number that is not finite is stored as null.
    names = ("share", "lower", "upper", "baseline")
    return from_plain(Alarm, {**data} | {k: math.nan for k in names if data[k] is None})
