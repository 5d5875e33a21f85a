"""Watch in production which sources, or styles, get the ranks."""

from __future__ import annotations

import math
import threading
import time
import weakref
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from operator import attrgetter, itemgetter
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.codec import Stored
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.monitor.alarms import alarm_of, snapshot_of
from rag_sourcebias.monitor.data import Alarm, MonitorSnapshot
from rag_sourcebias.monitor.labels import (
    MOST_DOCUMENTS,
    Composition,
    KeptWatch,
    LabelWatch,
    Retrievals,
)
from rag_sourcebias.monitor.settings import (
    Baseline,
    CorpusShare,
    SkewSettings,
    TagErrors,
)
from rag_sourcebias.observe.events import (
    DroppedEvents,
    RetrievalEvent,
    Waiting,
    guarded,
    renews_after_fork,
)
from rag_sourcebias.observe.labels import OTHER, Key, LabelCaps, label_names, short_text
from rag_sourcebias.observe.log.schema import EventColumns, Tag

_MOST_ALARMS = 1_000
_LOOK_SECONDS = 600.0
_MOST_INDEX = 200
_GROUP = attrgetter("source", "style")
_AT_ONCE = 4_096  # events that are processed at once
_CAPACITY = 100_000  # events that may wait; what cannot be kept up with is dropped
_GATHER_SECONDS = 1.0
_MOST_LABEL_SETS = 100


@dataclass(frozen=True, kw_only=True)
class _Kept(Stored):
    """State of a monitor, as it is stored."""

    _versioned: ClassVar[tuple[str, int]] = ("monitor", 1)

    settings: SkewSettings
    overflowed: dict[str, int]
    bad_tags: int
    index: Composition
    looked_at: float | None
    watches: list[KeptWatch]
    alarms: list[Alarm]
    dropped: dict[str, int]
    schema_version: int = 1


class SkewMonitor:
    """Hold the shares of the ranks against a baseline; an observer for production.

    ``observe`` appends to a buffer, which a daemon thread of the monitor empties a second after
    the first event. ``snapshot`` and ``flush`` process at once. Memory is bounded (100,000 events
    wait, 100 sets of labels and 20 groups are told apart, 1,000 documents of a retrieval count),
    and nothing is raised into the application. Callbacks and log handlers may use the monitor:
    alarms and losses are told without any lock. A forked child starts empty: each process
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
    baseline : CorpusShare, PoolShare, ReferenceWindow or None
        None watches without alarms. Groups told apart and tested are those of a
        :class:`CorpusShare`, or else the first 20 that come; further ones are "other", documents
        without a tag "".
    confidence_level : float
    labels : sequence of str
        Labels whose values are watched separately; a hundred of them, further ones are "other".
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
        baseline: Baseline | None = None,
        confidence_level: float = 0.95,
        labels: Sequence[str] = ("collection",),
        users: Sequence[str] = ("user", "session"),
        topics: str | None = None,
        tag_errors: TagErrors | None = None,
        store: Callable[[], Mapping[str, float]] | None = None,
        on_alarm: Callable[[Alarm], object] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        label_names("labels", labels)
        label_names("users", users)
        self._on_alarm = on_alarm or (lambda _: None)
        self._clock, self._store = clock, store
        self._look_due = -math.inf
        self._looked = False
        self.dropped = DroppedEvents()
        self._begin(
            SkewSettings(
                by=by,
                baseline=baseline,
                confidence_level=confidence_level,
                labels=tuple(labels),
                users=tuple(users),
                topics=topics,
                tag_errors=tag_errors,
            )
        )
        self._renew()
        renews_after_fork(self)

    def _begin(self, settings: SkewSettings) -> None:
        """Watch nothing yet. All of this is used by one thread at a time, see ``_alone``."""
        self._settings = settings
        last = tuple((name, OTHER) for name in settings.labels)
        self._caps = LabelCaps(most_values=_MOST_LABEL_SETS, most_sets=_MOST_LABEL_SETS, last=last)
        self._watches: dict[Key, LabelWatch] = {}
        self._overflowed: Counter[str] = Counter()  # by label
        self._bad_tags = 0
        self._index: Composition = []
        self._looked_at: float | None = None
        self._alarms: deque[Alarm] = deque(maxlen=_MOST_ALARMS)

    def _renew(self) -> None:
        """Forget what waits, and take new locks and another thread."""
        self._waiting: list[Waiting] = []
        self._lost: list[tuple[str, int, BaseException]] = []  # told when nothing is locked
        self._lock = threading.RLock()  # of what waits; a signal handler may retrieve under it
        self._working = threading.Lock()  # of all else
        self._started = False
        self._wake = threading.Event()
        weakref.finalize(self, self._wake.set).atexit = False

    def _after_fork(self) -> None:
        self._renew()
        self._begin(self._settings)

    def observe(self, event: RetrievalEvent) -> None:
        """Take one retrieval; raises nothing."""
        self.record(event)

    def record(self, event: RetrievalEvent, *, at: float | None = None) -> None:
        """Take one retrieval, of Unix time ``at`` (None: the event's own); raises nothing."""
        try:
            _ = event.monotonic + 0.0  # a broken event is refused before it waits
            with self._lock:
                full = len(self._waiting) >= _CAPACITY
                if not full:
                    self._waiting.append((event, at))
                if not self._started:
                    self._started = True
                    threading.Thread(
                        target=_keep_emptying,
                        args=(weakref.ref(self), self._wake),
                        name="rag-sourcebias-monitor",
                        daemon=True,
                    ).start()
            if full:
                self.dropped.add("monitor is full")
            elif not self._wake.is_set():
                self._wake.set()
        except Exception as error:  # noqa: BLE001 - nothing may reach the application
            self.dropped.add("monitor could not take the event", error=error)

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
            with self._alone() as alarms:
                alarms.extend(self._add(batch))
            n += len(batch)
        return n

    def flush(self) -> None:
        """Process what waits."""
        with self._alone():
            pass

    @contextmanager
    def _alone(self) -> Iterator[list[Alarm]]:
        """Process what waits, and nothing else inside the block; then tell of alarms and losses.

        Alarms that the block raises are appended to those that it is given.
        """
        alarms: list[Alarm] = []
        lost = []
        try:
            with self._working:
                try:
                    with self._lock:
                        batch = self._waiting
                        self._waiting = []
                    if batch:
                        alarms += self._add(batch)
                    yield alarms
                finally:
                    self._alarms.extend(alarms)
                    lost = self._lost
                    self._lost = []
        finally:
            for reason, n, error in lost:
                self.dropped.add(reason, n=n, error=error)
            for alarm in alarms:
                with guarded(self.dropped, "on_alarm raised"):
                    self._on_alarm(alarm)

    def _add(self, batch: list[Waiting]) -> list[Alarm]:
        """Take events with their Unix times; a broken one costs itself only."""
        offset = self._clock() - time.monotonic()
        batch = _one_a_request(batch)
        sets: dict[Key, int] = {}
        tags: dict[Tag, int] = {}
        times: list[float] = []
        label_codes: list[int] = []
        rows: list[list[int]] = []
        for event, at in batch:
            try:
                when = offset + event.monotonic if at is None else at
                labels = tuple([(name, short_text(text)) for name, text in event.labels.items()])
                row = [self._tag_code(tags, tag) for tag in event.tags[:MOST_DOCUMENTS]]
                if not math.isfinite(when):
                    raise DataError(f"the time of an event must be a finite number, got {when}")
                self._bad_tags += event.bad_tags
            except Exception as error:  # noqa: BLE001 - whatever is wrong with it
                self._lost.append(("monitor could not read the event", 1, error))
                continue
            times.append(when)
            label_codes.append(sets.setdefault(labels, len(sets)))
            rows.append(row)
        if not rows:
            return []
        n = len(rows)
        part = EventColumns(
            numbers=np.arange(n),
            times=np.array(times),
            label_codes=np.array(label_codes),
            labels=tuple(map(dict, sets)),
            offsets=np.cumsum([0, *map(len, rows)]),
            tag_codes=np.array([code for row in rows for code in row], np.int64),
            tags=tuple(tags),
            query_ids=np.full(n, ""),
            doc_ids=None,
        )
        return self._take(self._columns(part))

    def _tag_code(self, codes: dict[Tag, int], tag: object) -> int:
        try:
            return codes.setdefault(_GROUP(tag), len(codes))
        except Exception:  # noqa: BLE001 - it is no tag, whatever it is instead
            self._bad_tags += 1
            return codes.setdefault((None, None), len(codes))

    def _key(self, labels: Mapping[str, str], n: int) -> Key:
        names = [name for name in self._settings.labels if name in labels]
        key, replaced = self._caps.fit(tuple((name, labels[name]) for name in names))
        for name in replaced:
            self._overflowed[name] += n
        return key

    def _watch(self, key: Key) -> LabelWatch:
        found = self._watches.get(key)
        if found is None:
            found = self._watches[key] = LabelWatch(self._settings, self._index)
        return found

    def _take(self, parts: Mapping[Key, Retrievals]) -> list[Alarm]:
        self._looked = False
        alarms: list[Alarm] = []
        for key, items in parts.items():
            try:
                watch = self._watches[key]
                found = watch.add(items, begun=self._look_at_store)
                alarms += [alarm_of(watch, dict(key), one) for one in found]
            except Exception as error:  # noqa: BLE001 - nothing may reach the application
                self._lost.append(("monitor failed", len(items.lengths), error))
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
            with self._alone():
                self._keep_index(counted)

    def _counted(self) -> dict[str, float] | None:
        if self._store is None:
            return None
        start = time.monotonic()
        found = None
        try:
            found = dict(CorpusShare(self._store()).shares)
        except Exception as error:  # noqa: BLE001 - a store of somebody else
            self._lost.append(("the store could not be counted", 1, error))
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

    def record_columns(self, part: EventColumns) -> int:
        """Take retrievals of a log, all at once, and return how many; gives what their events do.

        It waits, and so loses none.
        """
        with self._alone() as alarms:
            alarms.extend(self._take(self._columns(part)) if len(part) else ())
        return len(part)

    def _columns(self, part: EventColumns) -> dict[Key, Retrievals]:
        """Return retrievals by the set of labels that is watched."""
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
            if lengths.max() > MOST_DOCUMENTS:
                codes = codes[own.ranks <= MOST_DOCUMENTS]
                lengths = np.minimum(lengths, MOST_DOCUMENTS)
            used, at = np.unique(codes, return_index=True)
            columns = np.zeros(len(part.tags), np.int64)
            for code in used[np.argsort(at)].tolist():  # in the order in which they came
                columns[code] = groups[part.tags[code][settings.by == "style"]]
            here = np.flatnonzero(rows).tolist()
            found[key] = Retrievals(
                columns[codes],
                lengths.tolist(),
                own.times.tolist(),
                [keys[i] for i in here],
                [topics[i] for i in here],
            )
        return found

    def __repr__(self) -> str:
        snapshots = self.snapshot()
        n = sum(snapshot.n_retrievals for snapshot in snapshots)
        return (
            f"<SkewMonitor: retrievals {n:,}, sets of labels {len(snapshots)}, "
            f"alarms {len(self._alarms)}>"
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
        self.flush()  # what it loses is counted below
        with self._working:
            return tuple(
                snapshot_of(
                    watch,
                    dict(key),
                    dropped=self.dropped.by_reason,
                    overflowed=dict(self._overflowed),
                    bad_tags=self._bad_tags,
                )
                for key, watch in sorted(self._watches.items(), key=itemgetter(0))
            )

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
        with self._alone():
            self._keep_index(kept, at)

    def reset(self, labels: Mapping[str, str] | None = None) -> None:
        """Start anew, with all or one set of labels; the list of alarms stays.

        Raises
        ------
        DataError
            If there was no retrieval with these labels.
        """
        with self._alone():
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
        self.flush()
        with self._working:
            return _Kept(
                settings=self._settings,
                overflowed=self._overflowed,
                bad_tags=self._bad_tags,
                index=self._index,
                looked_at=self._looked_at,
                watches=[watch.kept(dict(key)) for key, watch in self._watches.items()],
                alarms=list(self._alarms),
                dropped=dict(self.dropped.by_reason),
            ).to_dict()

    @classmethod
    def from_dict(
        cls,
        data: Mapping[str, Any],
        *,
        store: Callable[[], Mapping[str, float]] | None = None,
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
        kept = _Kept.from_dict(data)
        monitor = cls(store=store, on_alarm=on_alarm, clock=clock)
        monitor._begin(kept.settings)
        monitor._overflowed.update(kept.overflowed)
        monitor._bad_tags, monitor._looked_at = kept.bad_tags, kept.looked_at
        monitor._index += kept.index
        for one in kept.watches:
            key = tuple(one.labels.items())
            monitor._caps.add(key)
            monitor._watch(key).restore(one)
        monitor._alarms.extend(kept.alarms)
        for reason, n in kept.dropped.items():
            if n > 0:
                monitor.dropped.add(reason, n=n)
        return monitor

    def resumed(
        self, kept: Mapping[str, Any], *, on_alarm: Callable[[Alarm], object] | None
    ) -> SkewMonitor:
        """Return a monitor that goes on from a state and looks at what this one looks at."""
        return SkewMonitor.from_dict(kept, store=self._store, on_alarm=on_alarm, clock=self._clock)


def _keep_emptying(owner: weakref.ref[SkewMonitor], wake: threading.Event) -> None:
    """Process what gathered until there is no monitor any more; holds it only while it does so."""
    while wake.wait() and owner() is not None:
        time.sleep(_GATHER_SECONDS)
        wake.clear()
        monitor = owner()
        if monitor is None:
            return
        with guarded(monitor.dropped, "monitor failed"):  # a clock of the application may fail
            monitor.flush()
        del monitor


def _one_a_request(batch: list[Waiting]) -> list[Waiting]:
    """Leave the latest stage of each request, and none of one that was taken before."""
    if not any(getattr(event, "earlier", None) for event, _ in batch):
        return batch
    # what is no event is left to whoever reads it
    names = [getattr(event, "request", "") for event, _ in batch]
    latest = {name: place for place, name in enumerate(names)}
    begun = {
        name
        for name, (event, _) in zip(names, batch, strict=True)
        if getattr(event, "earlier", None) is None
    }
    return [
        waiting
        for place, (name, waiting) in enumerate(zip(names, batch, strict=True))
        if not name or (name in begun and latest[name] == place)
    ]


def _first_of(columns: Sequence[list[str | None]], n: int) -> list[str | None]:
    """Return the first value of each row that is there."""
    found: list[str | None] = [None] * n
    for column in reversed(columns):
        found = [new or old for new, old in zip(column, found, strict=True)]
    return found
