"""The metrics that a monitor has in Prometheus and OpenTelemetry: one table of names."""

from __future__ import annotations

from typing import Literal, NamedTuple

__all__ = ["METRICS", "Metric"]


class Metric(NamedTuple):
    """One metric.

    Parameters
    ----------
    name : str
        Parts joined by full stops.
    kind : {"counter", "gauge", "buckets"}
        Buckets are counters, one for each upper limit "le", cumulative, the last "+Inf".
    unit : str
        As OpenTelemetry writes units; "1" for a ratio.
    about : str
        One sentence.
    """

    name: str
    kind: Literal["counter", "gauge", "buckets"]
    unit: str
    about: str


_WITHIN = "holds at all times at once"
METRICS = (
    Metric("retrievals", "counter", "{retrieval}", "Retrievals observed."),
    Metric("empty_retrievals", "counter", "{retrieval}", "Retrievals without a document."),
    Metric("retrieved_documents", "counter", "{document}", "Documents retrieved."),
    Metric("group_documents", "counter", "{document}", "Documents of the group retrieved."),
    Metric("retrieved_rank", "buckets", "{document}", "Ranks of the group's documents."),
    Metric("exposure", "gauge", "1", "Mean rank-weighted share of the group in a retrieval."),
    Metric("exposure.lower", "gauge", "1", f"Lower end of the exposure; {_WITHIN}."),
    Metric("exposure.upper", "gauge", "1", f"Upper end of the exposure; {_WITHIN}."),
    Metric("exposure.baseline", "gauge", "1", "Exposure that the group is held against."),
    Metric("corrected_share", "gauge", "1", "Exposure, corrected for errors of the tags."),
    Metric("top1", "gauge", "1", "Share of first ranks that the group has."),
    Metric("top1.lower", "gauge", "1", f"Lower end of the share of first ranks; {_WITHIN}."),
    Metric("top1.upper", "gauge", "1", f"Upper end of the share of first ranks; {_WITHIN}."),
    Metric("top1.baseline", "gauge", "1", "Share of first ranks that is held against."),
    Metric(
        "relative_delta", "gauge", "1", "Relative Δ of canary queries, -2 to 2; above 0: human."
    ),
    Metric("relative_delta.lower", "gauge", "1", f"Lower end of the Relative Δ; {_WITHIN}."),
    Metric("relative_delta.upper", "gauge", "1", f"Upper end of the Relative Δ; {_WITHIN}."),
    Metric("relative_delta.baseline", "gauge", "1", "Relative Δ that is held against."),
    Metric(
        "canary_round.timestamp", "gauge", "s", "Unix time of the latest round of canary queries."
    ),
    Metric("canary_failed", "gauge", "{query}", "Canary queries that failed in that round."),
    Metric("group_alarm.active", "gauge", "{alarm}", "1 where this group's share left baseline."),
    Metric("alarm.active", "gauge", "{alarm}", "1 where anything left its baseline, by rule."),
    Metric("alarms", "counter", "{alarm}", "Alarms raised, by rule."),
    Metric("dropped_events", "counter", "{event}", "Events lost, by part and reason."),
    Metric(
        "label_overflow",
        "counter",
        "{retrieval}",
        "Retrievals whose value of the label is counted as other, by part.",
    ),
    Metric("bad_tags", "counter", "{tag}", "Tags that could not be read, by part."),
    Metric(
        "odd_source_documents",
        "counter",
        "{document}",
        "Documents whose source is neither human nor llm:<model>, by part.",
    ),
)
"""Every metric; ``alarms`` is counted as alarms are told, all others are read.

There is no ``unfairness_score`` among them: it compares the ranks of versions of one document
in every style, which live traffic does not have.
"""
