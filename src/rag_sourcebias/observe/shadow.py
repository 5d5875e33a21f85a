"""Ask a second retriever beside the one that answers, and compare what both return."""

import asyncio
import weakref
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from rag_sourcebias.core.codec import Stored
from rag_sourcebias.core.data import DocTags
from rag_sourcebias.core.errors import require_at_least
from rag_sourcebias.core.tags import UNKNOWN, TagStore
from rag_sourcebias.observe.events import DroppedEvents, Locked, TagLookup, guarded
from rag_sourcebias.observe.observers import exposure_of
from rag_sourcebias.observe.recorder import EventQueue
from rag_sourcebias.observe.unobserved import is_suppressed

FAILED = "shadow failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShadowSummary(Stored):
    """Both retrievers on the queries seen so far.

    Parameters
    ----------
    n_queries : int
        Queries compared: those for which both returned documents.
    n_empty, n_failed, n_dropped : int
        Queries left out: one returned nothing; the candidate raised; the queue was full or a
        result could not be read.
    depth : int
        Ranks compared.
    overlap : float or None
        Mean share of documents that both return, in [0, 1]; None before there is a query.
    current, candidate : mapping of str to float
        Mean share of each source in Σ 1/log2(rank + 1), in [0, 1]; ``""`` is an unknown source.
    """

    n_queries: int
    n_empty: int
    n_failed: int
    n_dropped: int
    depth: int
    overlap: float | None
    current: Mapping[str, float]
    candidate: Mapping[str, float]


class _Answer(NamedTuple):
    """What was shown for one query, and how to ask the candidate."""

    doc_ids: Sequence[str]
    tags: Sequence[DocTags]
    ask: Callable[[], object]


class ShadowComparison(Locked):
    """Running comparison of two retrievers; thread-safe, no text is kept.

    Attributes
    ----------
    dropped : DroppedEvents
        Queries that could not be compared, by reason.
    """

    def __init__(
        self,
        read: Callable[[Any], tuple[Sequence[str], Sequence[DocTags]]],
        *,
        depth: int,
        tag_store: TagStore | None,
    ) -> None:
        require_at_least(1, depth=depth)
        self.depth = depth
        self.dropped = DroppedEvents()
        self._read = read
        self._lookup = None if tag_store is None else TagLookup(tag_store)
        self._n = self._n_empty = 0
        self._overlap = 0.0
        self._current: Counter[str] = Counter()
        self._candidate: Counter[str] = Counter()
        super().__init__()

    def observe(self, answer: _Answer) -> None:
        """Ask the candidate and compare; called on the thread of the queue."""
        try:
            found = answer.ask()
        except (Exception, SystemExit, asyncio.CancelledError) as error:  # noqa: BLE001 - counted
            self.dropped.add(FAILED, error=error)
            return
        with guarded(self.dropped, "result of the shadow could not be read"):
            current = self._top(answer.doc_ids, answer.tags)
            candidate = self._top(*self._read(found))
            self._add(current, candidate)

    def _top(self, doc_ids: Sequence[str], tags: Sequence[DocTags]) -> dict[str, DocTags]:
        """Return the first documents, each at its best rank, with their tags."""
        if self._lookup is not None:
            tags = self._lookup.over(doc_ids, tags or (UNKNOWN,) * len(doc_ids))
        top: dict[str, DocTags] = {}
        for doc_id, tag in zip(doc_ids, tags, strict=True):
            top.setdefault(doc_id, tag)
        return dict(list(top.items())[: self.depth])

    def _add(self, current: dict[str, DocTags], candidate: dict[str, DocTags]) -> None:
        with self._lock:
            if not current or not candidate:
                self._n_empty += 1
                return
            self._n += 1
            common = len(current.keys() & candidate.keys())
            self._overlap += common / max(len(current), len(candidate))
            self._current.update(_shares(current))
            self._candidate.update(_shares(candidate))

    def summary(self) -> ShadowSummary:
        """Return the numbers so far."""
        lost = self.dropped.by_reason
        failed = lost.get(FAILED, 0)
        with self._lock:
            n = self._n
            return ShadowSummary(
                n_queries=n,
                n_empty=self._n_empty,
                n_failed=failed,
                n_dropped=sum(lost.values()) - failed,
                depth=self.depth,
                overlap=self._overlap / n if n else None,
                current={name: total / n for name, total in sorted(self._current.items())},
                candidate={name: total / n for name, total in sorted(self._candidate.items())},
            )


def _shares(tagged: Mapping[str, DocTags]) -> dict[str, float]:
    """Return the share of the exposure of each source in one ranking."""
    found = exposure_of(tag.source or "" for tag in tagged.values())
    total = sum(found.values())
    return {name: exposure / total for name, exposure in found.items()}


class Shadow:
    """Ask a candidate after each answer, on a thread of its own that delays no query.

    The thread has a context of its own, under :class:`~rag_sourcebias.observe.suppress`.

    Parameters
    ----------
    read : callable
        From a native result to document ids, and the tags within it.
    depth : int
        Ranks compared, at least 1.
    tag_store : TagStore or None
        Where tags are looked up; what it does not know comes from the result.
    capacity : int
        Queries that may wait to be asked, at least 1; further ones are dropped and counted.

    Raises
    ------
    DataError
        If a number is outside its range.
    """

    def __init__(
        self,
        read: Callable[[Any], tuple[Sequence[str], Sequence[DocTags]]],
        *,
        depth: int,
        tag_store: TagStore | None,
        capacity: int,
    ) -> None:
        self.comparison = ShadowComparison(read, depth=depth, tag_store=tag_store)
        self._read = read
        self._closed = False
        self._queue = EventQueue[_Answer](
            self.comparison, self.comparison.dropped, capacity=capacity
        )
        # Ends the thread of a shadow nobody holds any more.
        weakref.finalize(self, self._queue.close, 0.0).atexit = False

    def answered(self, found: object, ask: Callable[[], object]) -> None:
        """Have the candidate asked what was just answered; never raises, never waits.

        Parameters
        ----------
        found : object
            The native result, read now: the application may change it afterwards.
        ask : callable
            Returns the native result of the candidate.
        """
        with guarded(self.comparison.dropped, "answer could not be read"):
            if not (self._closed or is_suppressed()):
                doc_ids, tags = self._read(found)
                self._queue.put(_Answer(doc_ids, tags, ask))

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until all queries so far were compared; False when ``timeout`` seconds passed."""
        return self._queue.flush(timeout)

    def close(self, timeout: float | None = 5.0) -> bool:
        """Compare no more, and wait for what is queued; what is left is dropped."""
        self._closed = True
        return self._queue.close(timeout)


class Shadowed:
    """What every shadowed object offers; a class that has it sets ``_shadow``."""

    _shadow: Shadow

    @property
    def comparison(self) -> ShadowComparison:
        """What was found so far; failures and drops are counted in its ``dropped``."""
        return self._shadow.comparison

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until all queries so far were compared; False when ``timeout`` seconds passed."""
        return self._shadow.flush(timeout)

    def close(self, timeout: float | None = 5.0) -> None:
        """Compare no more, and wait up to ``timeout`` seconds; the current one goes on."""
        self._shadow.close(timeout)
