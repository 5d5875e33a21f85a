"""Who gets the ranks: running counts of retrieved documents per source or style."""

import math
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Literal

from rag_sourcebias.core.errors import DataError, require_at_least, require_one_of
from rag_sourcebias.core.protocols import Observer
from rag_sourcebias.observe.events import DroppedEvents, Locked, RetrievalEvent, require_observer

# Several observers as one: a log and a monitor see the same retrievals.


class ObserverGroup:
    """Tell several observers of every retrieval, in the given order.

    What one of them raises keeps nothing from the others.

    Parameters
    ----------
    *observers : Observer of RetrievalEvent
        At least one, none of them twice. They are neither flushed nor closed here.

    Attributes
    ----------
    observers : tuple of Observer
    dropped : DroppedEvents
        Events that an observer raised on, once for each that did. What observers lose without
        raising they count themselves.

    Raises
    ------
    DataError
        If there is no observer, one has no ``observe``, or one is given twice.

    Examples
    --------
    >>> from rag_sourcebias.observe.observers import CountingObserver
    >>> from rag_sourcebias import ExposureObserver
    >>> from rag_sourcebias import RankedList
    >>> count, exposure = CountingObserver(), ExposureObserver()
    >>> group = ObserverGroup(count, exposure)
    >>> group.observe(RetrievalEvent(ranked=RankedList(query_id="", doc_ids=("a",))))
    >>> count.n_events, exposure.counts().n_retrievals, group.inline
    (1, 1, True)
    """

    def __init__(self, *observers: Observer[RetrievalEvent]) -> None:
        if not observers:
            raise DataError("a group of observers needs at least one, such as ExposureObserver()")
        for observer in observers:
            require_observer(observer)
        if len({id(observer) for observer in observers}) < len(observers):
            raise DataError("an observer is given twice; it would count every retrieval twice")
        self.observers = observers
        self.dropped = DroppedEvents()
        self._told = tuple(observer.observe for observer in observers)

    def __repr__(self) -> str:
        lost = f"; {self.dropped.total:,} dropped" if self.dropped.total else ""
        return f"<ObserverGroup of {', '.join(map(repr, self.observers))}{lost}>"

    @property
    def inline(self) -> bool:
        """Whether all promise to be quick, see :class:`~.delivery.Delivery`.

        A single one that does not brings all of them on the thread of a queue: give it an
        instrumentation of its own where another needs the application's thread.
        """
        return all(getattr(observer, "inline", False) is True for observer in self.observers)

    def note(self, text: str) -> None:
        """Tell those who take notes what is to be known of an instrumentation."""
        for observer in self.observers:
            if hasattr(observer, "note"):
                observer.note(text)

    def observe(self, event: RetrievalEvent) -> None:
        """Tell every observer of one retrieval."""
        for observe in self._told:
            try:
                observe(event)
            except Exception as error:  # noqa: BLE001 - as guarded, which costs more here
                self.dropped.add("observer raised", error=error)


# Small observers: count retrievals, keep the latest ones.


class CountingObserver(Locked):
    """Count retrievals and documents; thread-safe.

    Attributes
    ----------
    n_events, n_documents, n_empty : int
        Retrievals, documents they returned, and retrievals that returned none.
    """

    inline = True  # see Delivery

    def __init__(self) -> None:
        self.n_events = self.n_documents = self.n_empty = 0
        super().__init__()

    def __repr__(self) -> str:
        return (
            f"<CountingObserver: {self.n_events:,} retrievals, {self.n_empty:,} of them empty, "
            f"{self.n_documents:,} documents>"
        )

    def observe(self, event: RetrievalEvent) -> None:
        """Count one retrieval; a later stage takes the place of the one before."""
        n = len(event.tags)
        earlier = None if event.earlier is None else len(event.earlier.tags)
        with self._lock:
            self.n_events += earlier is None
            self.n_documents += n - (earlier or 0)
            self.n_empty += (n == 0) - (earlier == 0)


class CollectingObserver:
    """Keep the latest events; thread-safe.

    Parameters
    ----------
    capacity : int
        Events kept, at least 1; older ones are forgotten.

    Raises
    ------
    DataError
        If ``capacity`` is below 1.
    """

    inline = True  # see Delivery

    def __init__(self, *, capacity: int = 10_000) -> None:
        require_at_least(1, capacity=capacity)
        self._events: deque[RetrievalEvent] = deque(maxlen=capacity)

    def __repr__(self) -> str:
        return f"<CollectingObserver: {len(self._events):,} retrievals kept>"

    @property
    def events(self) -> tuple[RetrievalEvent, ...]:
        """The events kept, oldest first."""
        return tuple(self._events.copy())

    def observe(self, event: RetrievalEvent) -> None:
        """Keep one event."""
        self._events.append(event)


# Who gets the ranks: running counts of retrieved documents per source or style.


def exposure_of(groups: Iterable[Any]) -> dict[Any, float]:
    """Return the sum of 1/log2(rank + 1) of each group of one ranking, best document first."""
    found: dict[Any, float] = {}
    for rank, group in enumerate(groups, 1):
        found[group] = found.get(group, 0.0) + 1 / math.log2(rank + 1)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupExposure:
    """What the documents of one group got.

    Parameters
    ----------
    documents : int
        Times a document of the group was retrieved.
    first : int
        Times one of them was at rank 1.
    exposure : float
        Sum of 1/log2(rank + 1) over these documents.
    """

    documents: int
    first: int
    exposure: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ExposureCounts:
    """Counts at one moment.

    Parameters
    ----------
    n_retrievals, n_empty : int
        Retrievals seen, and those among them that returned nothing.
    groups : mapping of str to GroupExposure
        By source or style; ``""`` are the documents for which it is unknown.
    """

    n_retrievals: int
    n_empty: int
    groups: Mapping[str, GroupExposure]

    def shares(self) -> dict[str, float]:
        """Share of the exposure of each group, in [0, 1]; empty when nothing was retrieved."""
        total = sum(group.exposure for group in self.groups.values())
        return {name: group.exposure / total for name, group in self.groups.items()}


class ExposureObserver(Locked):
    """Count what each source, or style, gets of the ranks; thread-safe, constant memory.

    Parameters
    ----------
    by : {"source", "style"}
    max_groups : int
        Groups told apart, at least 1; documents of further ones are counted as ``"other"``.

    Raises
    ------
    DataError
        If ``by`` or ``max_groups`` is not one of these.

    Examples
    --------
    >>> from rag_sourcebias import DocTags, RankedList
    >>> observer = ExposureObserver()
    >>> ranked = RankedList(query_id="", doc_ids=("a", "b"))
    >>> observer.observe(RetrievalEvent(ranked=ranked, tags=(DocTags(source="human"), DocTags())))
    >>> {name: round(share, 2) for name, share in observer.counts().shares().items()}
    {'': 0.39, 'human': 0.61}
    """

    inline = True  # see Delivery

    def __init__(self, *, by: Literal["source", "style"] = "source", max_groups: int = 100) -> None:
        require_one_of("by", by, ("source", "style"))
        require_at_least(1, max_groups=max_groups)
        self._name_of = attrgetter(by)
        self._max_groups = max_groups
        self._n_retrievals = self._n_empty = 0
        self._documents: Counter[str] = Counter()
        self._first: Counter[str] = Counter()
        self._exposure: defaultdict[str, float] = defaultdict(float)
        super().__init__()

    def __repr__(self) -> str:
        counts = self.counts()
        shares = (f"{name or 'unknown'} {share:.1%}" for name, share in counts.shares().items())
        told = f"; exposure: {', '.join(shares)}" if counts.groups else ""
        return f"<ExposureObserver: {counts.n_retrievals:,} retrievals{told}>"

    def observe(self, event: RetrievalEvent) -> None:
        """Count one retrieval; a later stage takes the place of the one before."""
        with self._lock:
            self._add(event, 1)
            if event.earlier is not None:
                self._add(event.earlier, -1)

    def _add(self, event: RetrievalEvent, weight: int) -> None:
        names = list(map(self._name_of, event.tags))
        self._n_retrievals += weight
        self._n_empty += weight * (not names)
        for rank, name in enumerate(names, start=1):
            group = name or ""
            if group not in self._documents and len(self._documents) >= self._max_groups:
                group = "other"
            self._documents[group] += weight
            self._first[group] += weight * (rank == 1)
            self._exposure[group] += weight / math.log2(rank + 1)

    def counts(self) -> ExposureCounts:
        """Return the counts so far."""
        with self._lock:
            return ExposureCounts(
                n_retrievals=self._n_retrievals,
                n_empty=self._n_empty,
                groups={
                    group: GroupExposure(
                        documents=n, first=self._first[group], exposure=self._exposure[group]
                    )
                    for group, n in sorted(self._documents.items())
                    if n  # all of a group may have been in stages that others took the place of
                },
            )
