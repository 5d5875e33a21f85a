"""Watch retrieval in production: an event log, a monitor with alarms, canary queries, a dashboard.

``EventLog`` keeps retrievals, ``SkewMonitor`` holds the shares of sources or styles against a
baseline, ``CanaryProbe`` asks queries with known twins; none takes part in retrieval. What they
know goes to sinks, to Prometheus and OpenTelemetry (:mod:`rag_sourcebias_integrations`), and to the
dashboard of ``rag-sourcebias monitor serve``.
"""

from rag_sourcebias.monitor.aggregate import Aggregation
from rag_sourcebias.monitor.baselines import CorpusShare, PoolShare, ReferenceWindow
from rag_sourcebias.monitor.canary.asking import ask_retriever
from rag_sourcebias.monitor.canary.points import read_points
from rag_sourcebias.monitor.canary.probe import CanaryProbe
from rag_sourcebias.monitor.canary.queries import CanaryQueries
from rag_sourcebias.monitor.corpus_share import corpus_share
from rag_sourcebias.monitor.follow import LogFollower
from rag_sourcebias.monitor.log.erasing import erase_events
from rag_sourcebias.monitor.log.event_log import EventLog
from rag_sourcebias.monitor.log.read_rollups import read_rollups
from rag_sourcebias.monitor.log.reading import iter_events, log_summary, read_events
from rag_sourcebias.monitor.replay import replay
from rag_sourcebias.monitor.rules import write_rules
from rag_sourcebias.monitor.sinks import LoggingSink, Sink, SinkGroup
from rag_sourcebias.monitor.skew_monitor import SkewMonitor
from rag_sourcebias.monitor.tag_errors import TagErrors
from rag_sourcebias.monitor.webhook import WebhookSink

__all__ = [
    "Aggregation",
    "CanaryProbe",
    "CanaryQueries",
    "CorpusShare",
    "EventLog",
    "LogFollower",
    "LoggingSink",
    "PoolShare",
    "ReferenceWindow",
    "Sink",
    "SinkGroup",
    "SkewMonitor",
    "TagErrors",
    "WebhookSink",
    "ask_retriever",
    "corpus_share",
    "erase_events",
    "iter_events",
    "log_summary",
    "read_events",
    "read_points",
    "read_rollups",
    "replay",
    "write_rules",
]
