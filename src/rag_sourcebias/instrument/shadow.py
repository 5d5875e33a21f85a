"""Compare two retrievers on live queries of which only one answers.

:class:`ShadowComparison` keeps the numbers; it knows no framework. The ``ShadowedRetriever`` of an
adapter asks both and feeds it.
"""

from __future__ import annotations

import heapq
import threading
from collections import deque
from dataclasses import dataclass

from rag_sourcebias.errors import DataError
from rag_sourcebias.instrument.dropped import DroppedEvents
from rag_sourcebias.instrument.process import renews_after_fork
from rag_sourcebias.instrument.shadow_exposure import MIN_CHANGED, MIN_QUERIES, PairedExposure
from rag_sourcebias.instrument.shadow_measures import overlap, rank_biased_overlap
from rag_sourcebias.instrument.shadow_summary import ShadowExposure, ShadowLatency, ShadowSummary
from rag_sourcebias.types.documents import DocTags

__all__ = [
    "FAILED",
    "ShadowComparison",
    "ShadowExposure",
    "ShadowLatency",
    "ShadowRanking",
    "ShadowSummary",
]

FAILED = "shadow failed"
_LAST_TIMES = 1_000
_MOST_CHANGED = 20
_UNTAGGED = DocTags()


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


class ShadowComparison:
    """Running comparison of two retrievers; thread-safe, bounded memory, no text is kept.

    Parameters
    ----------
    depth : int
        Ranks compared, at least 1. Have both retrievers return as many.
    persistence : float
        p of the rank-biased overlap, in (0, 1).
    confidence_level : float
        In (0, 1).

    Raises
    ------
    DataError
        If a number is outside its range.

    Examples
    --------
    >>> from rag_sourcebias.types import DocTags
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
        self._dropped = DroppedEvents()
        self._lock = threading.RLock()
        self._clear()
        renews_after_fork(self)

    @property
    def dropped(self) -> DroppedEvents:
        """Queries that could not be compared, by reason; :meth:`reset` does not clear it."""
        return self._dropped

    def add(self, *, current: ShadowRanking, candidate: ShadowRanking, query_id: str = "") -> None:
        """Take one query.

        Parameters
        ----------
        current, candidate : ShadowRanking
        query_id : str
            Identifier that is not the text (see :func:`~rag_sourcebias.instrument.hash_query`);
            those of the most changed queries are kept.
        """
        rows = [_top(ranking, self.depth) for ranking in (current, candidate)]
        (ids, tags), (other_ids, other_tags) = rows
        similarity = common = changed = 0.0
        empty = not ids and not other_ids
        if not empty:
            common = overlap(ids, other_ids)
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
        failures = self._dropped.by_reason
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
        self._failed_before = self._dropped.by_reason.get(FAILED, 0)
        self._lost_before = self._dropped.total

    def _note(self, query_id: str, similarity: float) -> None:
        item = (-similarity, query_id)
        if item in self._most:  # the same query again
            return
        if len(self._most) < _MOST_CHANGED:
            heapq.heappush(self._most, item)
        else:
            heapq.heappushpop(self._most, item)

    def _after_fork(self) -> None:
        self._lock = threading.RLock()


def _top(ranking: ShadowRanking, depth: int) -> tuple[list[str], list[DocTags]]:
    """Return the first documents, each at its best rank, and their tags."""
    tags = ranking.tags or (_UNTAGGED,) * len(ranking.doc_ids)
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
