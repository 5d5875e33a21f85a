"""How a shadowed object is switched, rolled back and closed, whatever framework it is of."""

import asyncio
import heapq
import math
import random
import time
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, Literal, NamedTuple, TypeVar

from rag_sourcebias.core.data import DocTags
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.core.tags import UNKNOWN, TagStore
from rag_sourcebias.core.values import Interval, Stored
from rag_sourcebias.observe.events import (
    DroppedEvents,
    Locked,
    TagLookup,
    guarded,
    hash_query,
)
from rag_sourcebias.observe.recorder import EventQueue
from rag_sourcebias.observe.unobserved import is_suppressed

# How alike two rankings of one query are.


def rank_biased_overlap(first: Sequence[str], second: Sequence[str], *, p: float) -> float:
    """Rank-biased overlap, extrapolated beyond the ends of both rankings, in [0, 1].

    RBO_EXT of Webber, Moffat & Zobel, "A similarity measure for indefinite rankings" (TOIS 2010),
    Equation 32: the agreement at depth d is weighted by p^(d − 1), and what lies below an end is
    taken to agree as much as what lies above it.

    Parameters
    ----------
    first, second : sequence of str
        Different document ids, best first. 0 when one is empty.
    p : float
        Persistence, in (0, 1); at .9 the first ten ranks have 86 % of the weight.
    """
    short, long = sorted((first, second), key=len)
    if not short:
        return 0.0
    seen_short: set[str] = set()
    seen_long: set[str] = set()
    common = common_short = 0
    agreement = total = 0.0
    weight = 1.0 - p
    for depth, doc_id in enumerate(long, start=1):
        seen_long.add(doc_id)
        if depth <= len(short):
            seen_short.add(short[depth - 1])
            # counted once each: by whichever of the two comes later
            common += (doc_id in seen_short) + (
                short[depth - 1] != doc_id and short[depth - 1] in seen_long
            )
            common_short = common
            agreement = common / depth
        else:
            common += doc_id in seen_short
            below = common_short * (depth - len(short)) / len(short)
            agreement = (common + below) / depth
        total += weight * agreement
        weight *= p
    return min(total + weight / (1.0 - p) * agreement, 1.0)


# What a shadow comparison found, as values.


@dataclass(frozen=True, slots=True, kw_only=True)
class ShadowExposure:
    """Share of the exposure of one source under both retrievers, for the same queries.

    Parameters
    ----------
    source : str
        ``""`` are documents of unknown source.
    current, candidate : float
        Mean over queries of the source's share of Σ 1/log2(rank + 1), in [0, 1].
    difference : float
        Candidate minus current.
    interval : Interval or None
        Of the difference; None where too few queries say how much it varies.
    n_changed : int
        Queries in which the share differs.
    """

    source: str
    current: float
    candidate: float
    difference: float
    interval: Interval | None
    n_changed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ShadowLatency:
    """Seconds that the last (at most 1,000) timed retrievals took; p95 is the 95th percentile."""

    n: int
    median: float
    p95: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ShadowSummary(Stored):
    """Both retrievers on the queries seen so far.

    Parameters
    ----------
    n_queries : int
        Queries compared.
    n_empty : int
        Those among them for which both returned nothing; they enter no other number.
    n_unsampled, n_failed, n_dropped : int
        Queries left out: by the sampling, because the one that did not answer raised, and because
        the queue was full or closed or a result could not be read.
    depth : int
        Ranks compared.
    overlap, rank_biased_overlap, first_changed : float or None
        Means in [0, 1]; ``first_changed`` is the share of queries with another first document.
        None before there is a query.
    persistence : float
        p of the rank-biased overlap.
    exposure : tuple of ShadowExposure
        Over the queries for which both returned something, ``n_exposed`` of them.
    n_exposed : int
    latency_current, latency_candidate : ShadowLatency or None
    most_changed : tuple of (str, float)
        Identifiers of queries with the smallest rank-biased overlap, where identifiers were given.
    note : str
        Why there is no interval, or "".
    """

    n_queries: int
    n_empty: int
    n_unsampled: int
    n_failed: int
    n_dropped: int
    depth: int
    overlap: float | None
    rank_biased_overlap: float | None
    first_changed: float | None
    persistence: float
    exposure: tuple[ShadowExposure, ...]
    n_exposed: int
    latency_current: ShadowLatency | None
    latency_candidate: ShadowLatency | None
    most_changed: tuple[tuple[str, float], ...]
    note: str

    def __str__(self) -> str:
        left_out = [
            f"{n} {why}"
            for n, why in (
                (self.n_unsampled, "not sampled"),
                (self.n_failed, "failed"),
                (self.n_dropped, "dropped"),
            )
            if n
        ]
        rest = f" ({', '.join(left_out)})" if left_out else ""
        empty = f", {self.n_empty} of them without a result from either" if self.n_empty else ""
        parts = [f"{self.n_queries} queries compared{empty}{rest}."]
        if self.overlap is not None:
            parts.append(
                f"Of the first {self.depth} documents {100 * self.overlap:.1f} % are the same "
                f"(rank-biased overlap {self.rank_biased_overlap:.3f}, p = {self.persistence:g}), "
                f"and {100 * (self.first_changed or 0.0):.1f} % of the queries have another first "
                "document."
            )
        for row in self.exposure:
            found = row.interval
            ends = (
                ""
                if found is None
                else (
                    f", {100 * found.confidence_level:.4g}% interval "
                    f"[{100 * found.lower:+.1f}, {100 * found.upper:+.1f}]"
                )
            )
            parts.append(
                f"{row.source or 'Unknown source'}: {100 * row.current:.1f} % of the exposure now, "
                f"{100 * row.candidate:.1f} % with the candidate "
                f"({100 * row.difference:+.1f} points{ends})."
            )
        if self.note:
            parts.append(self.note)
        if self.latency_current and self.latency_candidate:
            now, then = self.latency_current, self.latency_candidate
            parts.append(
                f"Median time {1000 * now.median:.3g} ms against {1000 * then.median:.3g} ms "
                f"(95th percentile {1000 * now.p95:.3g} and {1000 * then.p95:.3g} ms); the one "
                "that does not answer is asked later, on another thread."
            )
        parts.append("None of this says which ranking is better; that takes judged queries.")
        return " ".join(parts)


# Running sums of who gets the ranks under two retrievers, paired by query.


MIN_QUERIES = 30
MIN_CHANGED = 15  # fewer make a variance too uncertain for an interval, as in the audits
_MOST_SOURCES = 100
_ASSUMPTIONS = (
    "queries are independent draws from the traffic",
    "looked at once, at a time chosen beforehand",
)


class _Sums:
    """Of one source; a query in which it does not occur adds 0 everywhere."""

    __slots__ = ("candidate", "current", "n_changed", "squares")

    def __init__(self) -> None:
        self.current = self.candidate = self.squares = 0.0
        self.n_changed = 0


class PairedExposure:
    """Mean share of the exposure of each source under both, and of their difference.

    Not thread-safe. Sources beyond the hundredth are counted as ``"other"``.
    """

    def __init__(self) -> None:
        self.n = 0
        self._sums: dict[str, _Sums] = {}

    def add(self, current: Sequence[DocTags], candidate: Sequence[DocTags]) -> None:
        """Take one query, with the tags of both rankings, best first; neither may be empty."""
        shares = self._shares(current), self._shares(candidate)
        self.n += 1
        for name in shares[0].keys() | shares[1].keys():
            found = self._sums.setdefault(name, _Sums())
            now, then = shares[0].get(name, 0.0), shares[1].get(name, 0.0)
            found.current += now
            found.candidate += then
            found.squares += (then - now) ** 2
            found.n_changed += abs(then - now) > 1e-12

    def rows(self, level: float) -> tuple[ShadowExposure, ...]:
        """Return the means so far, by source."""
        return tuple(
            ShadowExposure(
                source=name,
                current=found.current / self.n,
                candidate=found.candidate / self.n,
                difference=(found.candidate - found.current) / self.n,
                interval=self._interval(found, level),
                n_changed=found.n_changed,
            )
            for name, found in sorted(self._sums.items())
        )

    def _shares(self, tags: Sequence[DocTags]) -> dict[str, float]:
        weights = [1 / math.log2(rank + 1) for rank in range(1, len(tags) + 1)]
        total = sum(weights)
        shares: dict[str, float] = {}
        for weight, tag in zip(weights, tags, strict=True):
            name = tag.source or ""
            if name not in self._sums and len(self._sums) >= _MOST_SOURCES:
                name = "other"
            shares[name] = shares.get(name, 0.0) + weight / total
        return shares

    def _interval(self, found: _Sums, level: float) -> Interval | None:
        """Student's t interval for the mean of the per-query differences."""
        if self.n < MIN_QUERIES or found.n_changed < MIN_CHANGED:
            return None
        from scipy.special import stdtrit

        mean = (found.candidate - found.current) / self.n
        variance = max(found.squares - self.n * mean**2, 0.0) / (self.n - 1)
        width = float(stdtrit(self.n - 1, 0.5 + level / 2)) * math.sqrt(variance / self.n)
        return Interval(
            estimate=mean,
            lower=max(mean - width, -1.0),
            upper=min(mean + width, 1.0),
            confidence_level=level,
            method="paired t",
            n_labeled=self.n,
            assumptions=_ASSUMPTIONS,
        )


# Compare two retrievers on live queries of which only one answers.
# :class:`ShadowComparison` keeps the numbers; it knows no framework. The ``ShadowedRetriever`` of
# an adapter asks both and feeds it.


FAILED = "shadow failed"
_LAST_TIMES = 1_000
_MOST_CHANGED = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ShadowRanking:
    """What one retriever returned for one query.

    Parameters
    ----------
    doc_ids : tuple of str
        Best first. Both retrievers must name a document alike.
    tags : tuple of DocTags
        In the same order; all unknown when left out.
    seconds : float, optional
        How long it took.

    Raises
    ------
    DataError
        If documents and tags differ in number.
    """

    doc_ids: tuple[str, ...]
    tags: tuple[DocTags, ...] = ()
    seconds: float | None = None

    def __post_init__(self) -> None:
        if self.tags and len(self.tags) != len(self.doc_ids):
            raise DataError(
                f"a ranking of {len(self.doc_ids)} documents has {len(self.tags)} tags; expected "
                "as many, or none"
            )


class ShadowComparison(Locked):
    """Running comparison of two retrievers; thread-safe, bounded memory, no text is kept.

    Parameters
    ----------
    depth : int
        Ranks compared, at least 1. Have both retrievers return as many.
    persistence : float
        p of the rank-biased overlap, in (0, 1).
    confidence_level : float
        In (0, 1).

    Attributes
    ----------
    dropped : DroppedEvents
        Queries that could not be compared, by reason; :meth:`reset` does not clear it.

    Raises
    ------
    DataError
        If a number is outside its range.

    Examples
    --------
    >>> from rag_sourcebias import DocTags
    >>> human, llm = DocTags(source="human"), DocTags(source="llm:x")
    >>> comparison = ShadowComparison(depth=2)
    >>> comparison.add(
    ...     current=ShadowRanking(doc_ids=("a", "b"), tags=(llm, human)),
    ...     candidate=ShadowRanking(doc_ids=("b", "a"), tags=(human, llm)),
    ... )
    >>> found = comparison.summary()
    >>> found.overlap, found.first_changed, round(found.exposure[0].difference, 2)
    (1.0, 1.0, 0.23)
    """

    def __init__(
        self, *, depth: int = 10, persistence: float = 0.9, confidence_level: float = 0.95
    ) -> None:
        if depth < 1:
            raise DataError(f"depth must be at least 1, got {depth}")
        for name, value in (("persistence", persistence), ("confidence_level", confidence_level)):
            if not 0 < value < 1:
                raise DataError(f"{name} {value!r} is outside (0, 1)")
        self.depth, self.persistence = depth, persistence
        self.confidence_level = confidence_level
        self.dropped = DroppedEvents()
        self._clear()
        super().__init__()

    def add(self, *, current: ShadowRanking, candidate: ShadowRanking, query_id: str = "") -> None:
        """Take one query.

        Parameters
        ----------
        current, candidate : ShadowRanking
        query_id : str
            Identifier that is not the text (see :func:`~rag_sourcebias.observe.hash_query`);
            those of the most changed queries are kept.
        """
        ids, tags = _top(current, self.depth)
        other_ids, other_tags = _top(candidate, self.depth)
        similarity = common = changed = 0.0
        empty = not ids and not other_ids
        if not empty:
            # documents in both rankings over documents in the longer one
            common = len(set(ids) & set(other_ids)) / max(len(ids), len(other_ids))
            similarity = rank_biased_overlap(ids, other_ids, p=self.persistence)
            changed = float(ids[:1] != other_ids[:1])
        with self._lock:
            self._n += 1
            self._n_empty += empty
            self._overlap += common
            self._similarity += similarity
            self._changed += changed
            if ids and other_ids:
                self._exposure.add(tags, other_tags)
            for times, ranking in zip(self._times, (current, candidate), strict=True):
                if ranking.seconds is not None:
                    times.append(ranking.seconds)
            if query_id and not empty:
                self._note(query_id, similarity)

    def skip(self) -> None:
        """Count a query that the sampling left out."""
        with self._lock:
            self._n_unsampled += 1

    def reset(self) -> None:
        """Start again, such as after the index was filled."""
        with self._lock:
            self._clear()

    def summary(self) -> ShadowSummary:
        """Return the numbers so far.

        Intervals are for one look at a time chosen beforehand: who looks until an interval leaves
        0 will see it leave.
        """
        failures = self.dropped.by_reason
        failed = failures.get(FAILED, 0) - self._failed_before
        with self._lock:
            n = self._n - self._n_empty
            times = [_latency(list(found)) for found in self._times]
            rows = self._exposure.rows(self.confidence_level) if self._exposure.n else ()
            return ShadowSummary(
                n_queries=self._n,
                n_empty=self._n_empty,
                n_unsampled=self._n_unsampled,
                n_failed=failed,
                n_dropped=sum(failures.values()) - self._lost_before - failed,
                depth=self.depth,
                overlap=self._overlap / n if n else None,
                rank_biased_overlap=self._similarity / n if n else None,
                first_changed=self._changed / n if n else None,
                persistence=self.persistence,
                exposure=rows,
                n_exposed=self._exposure.n,
                latency_current=times[0],
                latency_candidate=times[1],
                most_changed=tuple((name, -key) for key, name in sorted(self._most, reverse=True)),
                note=_note(rows, self._exposure.n),
            )

    def _clear(self) -> None:
        self._n = self._n_empty = self._n_unsampled = 0
        self._overlap = self._similarity = self._changed = 0.0
        self._exposure = PairedExposure()
        self._times: tuple[deque[float], deque[float]] = (
            deque(maxlen=_LAST_TIMES),
            deque(maxlen=_LAST_TIMES),
        )
        self._most: list[tuple[float, str]] = []  # a heap whose first item is the least changed
        self._failed_before = self.dropped.by_reason.get(FAILED, 0)
        self._lost_before = self.dropped.total

    def _note(self, query_id: str, similarity: float) -> None:
        item = (-similarity, query_id)
        if item not in self._most:  # otherwise the same query again
            heapq.heappush(self._most, item)
            if len(self._most) > _MOST_CHANGED:
                heapq.heappop(self._most)


def _top(ranking: ShadowRanking, depth: int) -> tuple[list[str], list[DocTags]]:
    """Return the first documents, each at its best rank, and their tags."""
    tags = ranking.tags or (UNKNOWN,) * len(ranking.doc_ids)
    first: dict[str, DocTags] = {}
    for doc_id, tag in zip(ranking.doc_ids, tags, strict=True):
        first.setdefault(doc_id, tag)
        if len(first) == depth:
            break
    return list(first), list(first.values())


def _latency(seconds: list[float]) -> ShadowLatency | None:
    if not seconds:
        return None
    ordered, n = sorted(seconds), len(seconds)
    median = (ordered[(n - 1) // 2] + ordered[n // 2]) / 2
    return ShadowLatency(n=n, median=median, p95=ordered[int(0.95 * n)])


def _note(rows: tuple[ShadowExposure, ...], n: int) -> str:
    without = [row.source or "unknown source" for row in rows if row.interval is None]
    if not without:
        return ""
    if n < MIN_QUERIES:
        return f"Intervals need at least {MIN_QUERIES} queries with results, there are {n}."
    return (
        f"No interval for {', '.join(without)}: it needs at least {MIN_CHANGED} queries in which "
        "the share differs."
    )


# Ask a second retriever in the background; what every ``ShadowedRetriever`` shares.


Side = Literal["current", "candidate"]
RetrieverT = TypeVar("RetrieverT")
Reader = Callable[[Any], tuple[Sequence[str], Sequence[DocTags]]]


class ShadowRunner(Generic[RetrieverT]):
    """Two retrievers, of which one answers and the other is asked afterwards, on a thread.

    The thread has a context of its own, under :class:`~rag_sourcebias.observe.suppress`.

    Parameters
    ----------
    current, candidate : object
        The retrievers.
    read : callable
        From a native result to document ids and the tags within it.
    comparison : ShadowComparison, optional
        A new one by default; several runners may share one.
    share : float
        Part of the queries that is compared, in [0, 1], drawn at random.
    tag_store : TagStore, optional
        Where tags are looked up, on the thread; what it does not know comes from the result.
    query_key : bytes, optional
        Keep hashes of the most changed queries under this key.
    capacity : int
        Queries that may wait to be asked, at least 1; further ones are dropped and counted.
    rng : int
        Seed of the sampling.

    Attributes
    ----------
    active : {"current", "candidate"}
        Which of the two answers.
    dropped : DroppedEvents
        Queries that could not be compared, by reason.
    flush : callable
        ``flush(timeout=None) -> bool`` waits until all queries so far were compared; False when
        ``timeout`` seconds passed.

    Raises
    ------
    DataError
        If a number is outside its range, or the key has a wrong length.
    """

    def __init__(
        self,
        current: RetrieverT,
        candidate: RetrieverT,
        *,
        read: Reader,
        comparison: ShadowComparison | None = None,
        share: float = 1.0,
        tag_store: TagStore | None = None,
        query_key: bytes | None = None,
        capacity: int = 100,
        rng: int = 0,
    ) -> None:
        if not 0 <= share <= 1:
            raise DataError(f"share {share!r} is outside [0, 1]; 0.1 compares every tenth query")
        if query_key is not None:
            hash_query("", key=query_key)  # a key of a wrong length is refused now
        self.comparison = ShadowComparison() if comparison is None else comparison
        self._retrievers: dict[Side, RetrieverT] = {"current": current, "candidate": candidate}
        self.active: Side = "current"
        self.dropped = self.comparison.dropped
        self._read, self._share, self._query_key = read, share, query_key
        self._random = random.Random(rng)  # a generator of numpy is not safe with threads
        self._closed = False
        self._queue: EventQueue[_Task] = EventQueue(
            _Asker(read, self.comparison, tag_store), self.dropped, capacity=capacity
        )
        self.flush = self._queue.flush
        # ends the thread of a runner nobody holds any more
        weakref.finalize(self, self._queue.close, 0.0).atexit = False

    def switch(self) -> None:
        """Let the candidate answer, from the next query on."""
        self.active = "candidate"

    def roll_back(self) -> None:
        """Let the current one answer again."""
        self.active = "current"

    def roles(self) -> tuple[Side, RetrieverT, RetrieverT]:
        """Return who answers, and the two retrievers: the one that answers, and the other."""
        side = self.active
        other: Side = "candidate" if side == "current" else "current"
        return side, self._retrievers[side], self._retrievers[other]

    def answered(
        self, side: Side, found: object, *, query: str, seconds: float, ask: Callable[[], object]
    ) -> None:
        """Have the other one asked what ``side`` has just answered; never raises, never waits.

        Parameters
        ----------
        side : {"current", "candidate"}
        found : object
            The native result, read now: the application may change it afterwards.
        query : str
        seconds : float
        ask : callable
            Returns the native result of the other one.
        """
        with guarded(self.dropped, "answer could not be read"):
            if self._closed or is_suppressed():
                return
            if self._share < 1.0 and self._random.random() >= self._share:
                self.comparison.skip()
                return
            doc_ids, tags = self._read(found)
            shown = ShadowRanking(doc_ids=tuple(doc_ids), tags=tuple(tags), seconds=seconds)
            key = self._query_key
            self._queue.put(
                _Task(ask, shown, side, "" if key is None else hash_query(query, key=key))
            )

    def close(self, timeout: float | None = 5.0) -> bool:
        """Compare nothing any more, and wait for what is queued; what is left is dropped."""
        self._closed = True
        return self._queue.close(timeout)


class _Task(NamedTuple):
    """One query that was answered; forgotten, text and all, once the other one was asked."""

    ask: Callable[[], object]
    shown: ShadowRanking
    answered: Side
    query_id: str


class _Asker:
    """The observer behind the queue; it does not hold the runner, which thus can be collected."""

    def __init__(
        self, read: Reader, comparison: ShadowComparison, tag_store: TagStore | None
    ) -> None:
        self._read, self._comparison = read, comparison
        self._lookup = None if tag_store is None else TagLookup(tag_store)

    def observe(self, event: _Task) -> None:
        """Ask the other one, and add both rankings to the comparison."""
        dropped = self._comparison.dropped
        started = time.perf_counter()
        try:
            found = event.ask()
        except (Exception, SystemExit, asyncio.CancelledError) as error:  # noqa: BLE001 - counted
            dropped.add(FAILED, error=error)
            return
        seconds = time.perf_counter() - started
        with guarded(dropped, "result of the shadow could not be read"):
            doc_ids, tags = self._read(found)
            asked = ShadowRanking(doc_ids=tuple(doc_ids), tags=tuple(tags), seconds=seconds)
            first, second = self._tagged(event.shown), self._tagged(asked)
            if event.answered == "candidate":
                first, second = second, first
            self._comparison.add(current=first, candidate=second, query_id=event.query_id)

    def _tagged(self, ranking: ShadowRanking) -> ShadowRanking:
        if self._lookup is None:
            return ranking
        inside = ranking.tags or (UNKNOWN,) * len(ranking.doc_ids)
        return replace(ranking, tags=tuple(self._lookup.over(ranking.doc_ids, inside)))


# How a shadowed object is switched, rolled back and closed, whatever framework it is of.


class ShadowControls:
    """What every shadowed object offers; a class that has it sets ``_runner``."""

    _runner: ShadowRunner[Any]

    @property
    def comparison(self) -> ShadowComparison:
        """What was found so far; failures and drops are counted in its ``dropped``."""
        return self._runner.comparison

    @property
    def active(self) -> Side:
        """Which one answers: "current" or "candidate"."""
        return self._runner.active

    def switch(self) -> None:
        """Let the candidate answer from the next query on; the current one becomes the shadow."""
        self._runner.switch()

    def roll_back(self) -> None:
        """Let the current one answer again."""
        self._runner.roll_back()

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until all queries so far were compared; False when ``timeout`` seconds passed."""
        return self._runner.flush(timeout)

    def close(self, timeout: float | None = 5.0) -> None:
        """Compare no more, and wait up to ``timeout`` seconds; the active one goes on answering."""
        self._runner.close(timeout)
