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
from itertools import islice
from operator import attrgetter, itemgetter
from queue import Empty, SimpleQueue
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.codec import from_plain
from rag_sourcebias.core.errors import DataError, UnsupportedVersionError
from rag_sourcebias.monitor.alarms import alarm_of, snapshot_of
from rag_sourcebias.monitor.data import (
    OTHER,
    Alarm,
    Key,
    LabelCaps,
    Losses,
    Measure,
    MonitorSnapshot,
    Waiting,
    short_text,
)
from rag_sourcebias.monitor.labels import Composition, LabelWatch, Retrievals
from rag_sourcebias.monitor.log.schema import EventColumns
from rag_sourcebias.monitor.settings import (
    Baseline,
    CorpusShare,
    SkewSettings,
    TagErrors,
)
from rag_sourcebias.observe.events import DroppedEvents, RetrievalEvent, renews_after_fork
from rag_sourcebias.observe.observers import ExposureCounts

# The buffer in front of a monitor: cheap to put into, emptied by a thread of its own.


BATCH = 256
BEHIND = 16 * BATCH
CAPACITY = 100_000
GATHER_SECONDS = 1.0


class Intake:
    """Let events gather, and have one thread at a time process them.

    That is a daemon thread, started by the first event and ended with the monitor. It is woken by
    the first event of a batch and by the one that completes it; waking it for each would cost the
    application more than the event itself. Where it cannot keep up (a tight loop, no thread to be
    had) the thread that brings an event processes ``BEHIND`` of them.

    Callbacks and log handlers may use the monitor: alarms and losses are told without any lock.

    Parameters
    ----------
    process : callable of events to alarms
        Called by one thread at a time.
    tell : callable of alarms
        Called afterwards, by the same thread, while others may already process the next batch.
    losses : Losses
    """

    def __init__(
        self,
        process: Callable[[list[Waiting]], list[Alarm]],
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
                    self._run()
        except Exception as error:  # noqa: BLE001 - nothing may reach the application
            self._losses.note("monitor could not take the event", error=error)
            self._losses.tell()

    def put_many(self, events: list[Waiting]) -> None:
        """Append events and process them now."""
        self._working.acquire()
        with self._lock:
            self._waiting += events
        self._run()

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

    def _run(self) -> None:
        """Process what waits; the caller has acquired ``_working``, which is released here."""
        try:
            alarms = self._empty()
        finally:
            self._working.release()
        self._tell(alarms)
        self._losses.tell()

    def _empty(self) -> list[Alarm]:
        with self._lock:
            batch = self._waiting
            self._waiting = []
        return self._process(batch)

    def flush(self) -> None:
        """Process what waits now."""
        self._working.acquire()
        self._run()

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Process what waits, and nothing else inside the block; then tell of it."""
        alarms: list[Alarm] = []
        try:
            with self._working:
                alarms = self._empty()
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


# Watch in production which sources, or styles, get the ranks.


_KIND = "skew-monitor"
_VERSION = 1
_MOST_ALARMS = 1_000
_LOOK_SECONDS = 600.0
_MOST_INDEX = 200
Store = Callable[[], Mapping[str, float]]
_AT_ONCE = 4_096  # events before it waits: what cannot be kept up with is dropped


class SkewMonitor:
    """Hold the shares of the ranks against a baseline; an observer for production.

    ``observe`` appends to a buffer, which a thread of the monitor empties every 256 events, or a
    second after the first of them. ``snapshot`` and ``flush`` process at once. Memory is
    bounded, and nothing is raised into the application. A forked child starts empty: each process
    counts its own retrievals. Every retrieval that returned something is one observation of each
    group: its share of the rank weights ("exposure"), and whether its document came first
    ("first").

    A share is watched by a CUSUM of its half-day means, less those of the same time of day and
    week over the first two weeks; :mod:`~rag_sourcebias.monitor.cusum` says what that cannot do,
    and docs/monitor.md how often simulated streams alarm falsely. A change is one alarm: of rule
    "shift", or "new" or "gone" where a source had or has nothing; "composition" where most of it
    comes from what the store holds; "untagged" of documents without a tag, before which no
    source's is told; "level" where a share was never at its known one; "resolved" when it ends.
    Intervals are of single shares at that level.

    Parameters
    ----------
    by : {"source", "style"}
    groups : sequence of str or None
        Groups told apart and tested; further ones are "other", documents without a tag "".
        None takes those of a :class:`CorpusShare`, or else the first ``max_groups`` that come.
    baseline : CorpusShare, PoolShare, ReferenceWindow or None
        None watches without intervals and alarms.
    browsing : str
        Weights of ranks: ``"dcg"``, ``"top-<k>"`` or ``"rbp-<p>"``; see
        :func:`~rag_sourcebias.measure.relevance.attention_weights`.
    measures : sequence of {"exposure", "first"}
    confidence_level : float
    labels : sequence of str
        Labels whose values are watched separately.
    max_label_sets, max_groups : int
        Told apart; further ones are counted as "other".
    max_documents : int
        Documents of a retrieval that are counted, from rank 1.
    users : sequence of str
        Labels that name who asks, of which an event's first counts: of each at most ten
        retrievals of a half-day are watched.
    topics : str or None
        Label that says what is asked: a shift is split into what the store holds
        (``store``, :meth:`note_index`), what is asked and ranking.
    tag_errors : TagErrors or None
        How often the tagger errs: ``corrected`` in snapshots are shares of exposure corrected
        for it, of which no interval is given. Tests and alarms are of shares as they are tagged.
    store : callable or None
        Counts what shares the store holds, by source (or style). Asked by :meth:`look`, at most
        every ten minutes, and when a share shifts, on the thread that processed it.
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
        users: Sequence[str] = ("user", "session"),
        topics: str | None = None,
        tag_errors: TagErrors | None = None,
        store: Store | None = None,
        on_alarm: Callable[[Alarm], object] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        for given in (labels, groups, users):
            if isinstance(given, str):
                raise DataError(f"labels, groups and users are sequences of names, got {given!r}")
        self._on_alarm, self._clock, self._store = on_alarm, clock, store
        self._look_due = -math.inf
        self._looked = False
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
                users=tuple(users),
                topics=topics,
                tag_errors=tag_errors,
            )
        )
        self._intake = Intake(self._process, self._tell, self._losses)
        renews_after_fork(self)

    def _begin(self, settings: SkewSettings) -> None:
        """Watch nothing yet. All of this is used by one thread at a time, see ``Intake``."""
        self._settings = settings
        self._name_of = attrgetter(settings.by)
        most = settings.max_label_sets
        last = tuple((name, OTHER) for name in settings.labels)
        self._caps = LabelCaps(most_values=most, most_sets=most, last=last)
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
        n = 0
        coming = iter(events)
        while batch := list(islice(coming, _AT_ONCE)):
            self._intake.put_many(batch)
            n += len(batch)
        return n

    def flush(self) -> None:
        """Process what waits."""
        self._intake.flush()

    def _process(self, batch: list[Waiting]) -> list[Alarm]:
        self._looked = False
        raised = self._add(batch, offset=self._clock() - time.monotonic())
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
                found = watch.add(items, begun=self._look_at_store)
                alarms += [alarm_of(watch, dict(key), one) for one in found]
            except Exception as error:  # noqa: BLE001 - nothing may reach the application
                self._losses.note("monitor failed", n=len(items.lengths), error=error)
        return sorted(alarms, key=attrgetter("at"))  # wherever one batch ends and the next begins

    def _look_at_store(self, begun: float) -> None:
        """Count what the store holds, once a batch: something is elsewhere since then."""
        if not self._looked:
            self._looked = True
            self._keep_index(self._counted(), begun=begun)

    def look(self) -> None:
        """Count what the store holds, if that was not done lately; what it raises is counted."""
        if time.monotonic() >= self._look_due:
            counted = self._counted()
            with self._intake.stopped():
                self._keep_index(counted)

    def _counted(self) -> dict[str, float] | None:
        if self._store is None:
            return None
        start = time.monotonic()
        found = None
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
        settings = self._settings
        watch = self._watch(key)
        tags = event.tags[: settings.max_documents]
        try:
            codes = list(map(watch.groups.__getitem__, map(self._name_of, tags)))
        except Exception:  # noqa: BLE001 - one of them is no tag, whatever it is instead
            codes = [self._code(watch, tag) for tag in tags]
        labels = event.labels
        together = next((labels[name] for name in settings.users if name in labels), None)
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
        settings = self._settings
        chosen: dict[Key, npt.NDArray[np.bool_]] = {}
        sets: npt.NDArray[Any] = part.label_codes
        if any(name in part.event_labels for name in settings.labels):
            known: dict[tuple[str | None, ...], int] = {}
            given = zip(*(part.values_of(name) for name in settings.labels), strict=True)
            sets = np.array([known.setdefault(one, len(known)) for one in given])
        for first in np.sort(np.unique(sets, return_index=True)[1]).tolist():
            rows = sets == sets[first]
            key = self._key(part.labels_at(first), int(rows.sum()))
            chosen[key] = rows | chosen.get(key, False)
        keys = _first_of([part.values_of(name) for name in settings.users], len(part))
        topics = part.values_of(settings.topics) if settings.topics else [None] * len(part)
        found = {}
        for key, rows in chosen.items():
            groups = self._watch(key).groups
            own = part.take(rows)
            codes = own.tag_codes
            lengths = np.diff(own.offsets)
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
        found = self.snapshot()
        alarms = len(self._alarms)
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
            state = {
                "overflowed": dict(self._overflowed),
                "bad_tags": self._bad_tags,
                "index": [[at, shares] for at, shares in self._index],
                "looked_at": self._looked_at,
                "watches": [[dict(key), watch.to_dict()] for key, watch in self._watches.items()],
                "alarms": [alarm.to_dict() for alarm in self._alarms],
                "dropped": self._losses.by_reason,
            }
            settings = self._settings.to_plain()
            return {"kind": _KIND, "version": _VERSION, "settings": settings, "state": state}

    @classmethod
    def from_dict(
        cls,
        data: Mapping[str, Any],
        *,
        store: Store | None = None,
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
        if not isinstance(data, Mapping) or data.get("kind") != _KIND:
            raise DataError(f"expected the state of kind {_KIND!r}, found {data!r:.80}")
        if data.get("version") != _VERSION:
            raise UnsupportedVersionError(
                f"state version {data.get('version')!r} cannot be read; "
                f"this release reads version {_VERSION} of {_KIND!r}"
            )
        monitor = cls(store=store, on_alarm=on_alarm, clock=clock)
        part = "settings"
        try:
            monitor._begin(SkewSettings.from_plain(data["settings"]))
            part = "state"
            state = data["state"]
            for name, n in state["overflowed"].items():
                monitor._overflowed[str(name)] += int(n)
            monitor._bad_tags = int(state["bad_tags"])
            looked_at = state["looked_at"]
            monitor._looked_at = None if looked_at is None else float(looked_at)
            monitor._index += [(float(at), dict(held)) for at, held in state["index"]]
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
        return SkewMonitor.from_dict(kept, store=self._store, on_alarm=on_alarm, clock=self._clock)


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
