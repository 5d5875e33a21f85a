"""Stages of a request: what was retrieved, what a reranker left, what was shown and cited."""

from __future__ import annotations

import itertools
import os
from collections import OrderedDict
from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import replace

from rag_sourcebias.core.data import DocTags
from rag_sourcebias.core.tags import UNKNOWN
from rag_sourcebias.observe.events import Locked, RetrievalEvent

# Requests of one observer whose latest stage is remembered: those in flight, and some that a
# reader still looks at. An event holds about a kilobyte.
_MOST_REMEMBERED = 1_000

_latest_here: ContextVar[str] = ContextVar("rag_sourcebias_request", default="")


class _Names(Locked):
    """Names of requests that no other process gives: a random half, and a running number."""

    def _after_fork(self) -> None:
        super()._after_fork()
        self._process = os.urandom(4).hex()
        self._number = itertools.count()

    def new(self) -> str:
        """Return 16 hex digits."""
        return f"{self._process}{next(self._number) & 0xFFFFFFFF:08x}"


_names = _Names()


class Requests(Locked):
    """The latest stage of each of the last requests that one observer was told of.

    A stage belongs to the request that its framework names; where it names none, to the one that
    was retrieved last in the same context (a thread, a task); where that is another's, as in a
    graph whose nodes have contexts of their own, to the one retrieved last that had all of its
    documents, or failing that, one of them.
    """

    def _after_fork(self) -> None:
        super()._after_fork()
        self._latest: OrderedDict[str, RetrievalEvent] = OrderedDict()

    def begin(self, name: str = "") -> str:
        """Return the name of a request that retrieves, now the one of this context."""
        name = name or _names.new()
        _latest_here.set(name)
        return name

    def keep(self, event: RetrievalEvent) -> None:
        """Remember an event as the latest stage of its request."""
        if event.earlier is not None:  # which would keep all the stages before it alive
            event = replace(event, earlier=None)
        with self._lock:
            self._latest[event.request] = event
            self._latest.move_to_end(event.request)
            if len(self._latest) > _MOST_REMEMBERED:
                self._latest.popitem(last=False)

    def before(self, doc_ids: Sequence[str], name: str = "") -> RetrievalEvent | None:
        """Return the stage that a list of documents came from; None where there is none."""
        with self._lock:
            if name:
                return self._latest.get(name)
            wanted = set(doc_ids)
            here = self._latest.get(_latest_here.get())
            if here is not None and (not wanted or wanted.intersection(here.ranked.doc_ids)):
                return here
            some = None
            for event in reversed(self._latest.values()):
                common = wanted.intersection(event.ranked.doc_ids)
                if common and len(common) == len(wanted):
                    return event
                if common and some is None:
                    some = event
            return some


def tags_of(earlier: RetrievalEvent, doc_ids: Sequence[str]) -> tuple[DocTags, ...]:
    """Return the tags that documents had in an earlier stage; unknown where they were not in it."""
    known = dict(zip(earlier.ranked.doc_ids, earlier.tags, strict=True))
    return tuple(known.get(doc_id, UNKNOWN) for doc_id in doc_ids)
