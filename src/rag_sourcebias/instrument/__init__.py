"""The framework-free part of observing retrievals inside a running application.

An adapter turns a native result into a :class:`RetrievalEvent` inside :class:`guarded`, unless
:func:`is_suppressed`, and only for the outermost retrieval (:class:`OutermostTracker` where the
framework names runs, :class:`outermost` around direct calls); an :class:`EventQueue` in front of
the observer keeps the caller from waiting.
"""

from rag_sourcebias.instrument.dropped import DroppedEvents
from rag_sourcebias.instrument.events import RetrievalEvent, hash_query
from rag_sourcebias.instrument.guard import guarded
from rag_sourcebias.instrument.observers import CollectingObserver, CountingObserver
from rag_sourcebias.instrument.queue import EventQueue
from rag_sourcebias.instrument.scope import outermost
from rag_sourcebias.instrument.suppression import is_suppressed, suppress
from rag_sourcebias.instrument.tracker import OutermostTracker

__all__ = [
    "CollectingObserver",
    "CountingObserver",
    "DroppedEvents",
    "EventQueue",
    "OutermostTracker",
    "RetrievalEvent",
    "guarded",
    "hash_query",
    "is_suppressed",
    "outermost",
    "suppress",
]
