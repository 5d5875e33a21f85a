"""Ask a second retriever in the background; what every ``ShadowedRetriever`` shares."""

from __future__ import annotations

import asyncio
import random
import time
import weakref
from collections.abc import Callable, Sequence
from typing import Any, Generic, Literal, NamedTuple, TypeVar

from rag_sourcebias.errors import DataError
from rag_sourcebias.instrument.dropped import DroppedEvents
from rag_sourcebias.instrument.events import hash_query
from rag_sourcebias.instrument.guard import guarded
from rag_sourcebias.instrument.queue import EventQueue
from rag_sourcebias.instrument.shadow import FAILED, ShadowComparison, ShadowRanking
from rag_sourcebias.instrument.suppression import is_suppressed
from rag_sourcebias.instrument.tag_lookup import TagLookup
from rag_sourcebias.tagging.store import TagStore
from rag_sourcebias.types.documents import DocTags

__all__ = ["ShadowRunner", "Side"]

Side = Literal["current", "candidate"]
RetrieverT = TypeVar("RetrieverT")
Reader = Callable[[Any], tuple[Sequence[str], Sequence[DocTags]]]
_UNTAGGED = DocTags()


class ShadowRunner(Generic[RetrieverT]):
    """Two retrievers, of which one answers and the other is asked afterwards, on a thread.

    The thread has a context of its own, under :class:`~rag_sourcebias.instrument.suppress`.

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
        self._active: Side = "current"
        self._read, self._share, self._query_key = read, share, query_key
        self._random = random.Random(rng)  # a generator of numpy is not safe with threads
        self._closed = False
        asker = _Asker(read, self.comparison, tag_store)
        self._queue: EventQueue[_Task] = EventQueue(asker, self.dropped, capacity=capacity)
        # ends the thread of a runner nobody holds any more
        weakref.finalize(self, self._queue.close, 0.0).atexit = False

    @property
    def active(self) -> Side:
        """Which of the two answers."""
        return self._active

    @property
    def dropped(self) -> DroppedEvents:
        """Queries that could not be compared, by reason."""
        return self.comparison.dropped

    def switch(self) -> None:
        """Let the candidate answer, from the next query on."""
        self._active = "candidate"

    def roll_back(self) -> None:
        """Let the current one answer again."""
        self._active = "current"

    def roles(self) -> tuple[Side, RetrieverT, RetrieverT]:
        """Return who answers, and the two retrievers: the one that answers, and the other."""
        side = self._active
        return side, self._retrievers[side], self._retrievers[_other(side)]

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
            query_id = "" if key is None else hash_query(query, key=key)
            self._queue.put(_Task(ask, shown, side, query_id))

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until all queries so far were compared; False when ``timeout`` passed."""
        return self._queue.flush(timeout)

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
        stored = self._lookup.get(ranking.doc_ids)
        inside = ranking.tags or (_UNTAGGED,) * len(stored)
        tags = tuple(b if a == _UNTAGGED else a for a, b in zip(stored, inside, strict=True))
        return ShadowRanking(doc_ids=ranking.doc_ids, tags=tags, seconds=ranking.seconds)


def _other(side: Side) -> Side:
    return "candidate" if side == "current" else "current"
