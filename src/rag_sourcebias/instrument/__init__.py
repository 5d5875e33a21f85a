"""The framework-free part of observing retrievals inside a running application.

An :class:`Adapter` hands what a framework shows to a :class:`Recorder`, which never raises, sees
to it that only the outermost retrieval counts and that nothing inside :class:`suppress` does, and
brings a :class:`RetrievalEvent` to the observer: on a thread of its own, unless the observer
promises to be quick (see :class:`~rag_sourcebias.instrument.delivery.Delivery`).
"""

from rag_sourcebias.instrument.adapter import Adapter, Attachment, Instrumentation
from rag_sourcebias.instrument.dropped import DroppedEvents
from rag_sourcebias.instrument.events import RetrievalEvent, hash_query, read_key
from rag_sourcebias.instrument.exposure import ExposureCounts, ExposureObserver, GroupExposure
from rag_sourcebias.instrument.guard import guarded
from rag_sourcebias.instrument.observer_group import ObserverGroup
from rag_sourcebias.instrument.observers import CollectingObserver, CountingObserver
from rag_sourcebias.instrument.queue import EventQueue
from rag_sourcebias.instrument.recorder import Recorder
from rag_sourcebias.instrument.scope import outermost
from rag_sourcebias.instrument.shadow import ShadowComparison, ShadowRanking, ShadowSummary
from rag_sourcebias.instrument.suppression import is_suppressed, suppress
from rag_sourcebias.instrument.tag_lookup import TagLookup, text_id

__all__ = [
    "Adapter",
    "Attachment",
    "CollectingObserver",
    "CountingObserver",
    "DroppedEvents",
    "EventQueue",
    "ExposureCounts",
    "ExposureObserver",
    "GroupExposure",
    "Instrumentation",
    "ObserverGroup",
    "Recorder",
    "RetrievalEvent",
    "ShadowComparison",
    "ShadowRanking",
    "ShadowSummary",
    "TagLookup",
    "guarded",
    "hash_query",
    "is_suppressed",
    "outermost",
    "read_key",
    "suppress",
    "text_id",
]
