"""What metric systems are told of a monitor: one table of names, read from its snapshots."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, NamedTuple

from rag_sourcebias.types.monitor import GroupShare, MonitorSnapshot

__all__ = [
    "METRICS",
    "UNTAGGED",
    "Labels",
    "Metric",
    "Readings",
    "Values",
    "label_values",
    "read_snapshots",
]

UNTAGGED = "untagged"
"""The group of documents without a tag: an empty label is none at all in Prometheus."""
_OWN_LABELS = frozenset({"by", "group", "measure", "rule", "reason", "le", "quantile"})

Labels = tuple[tuple[str, str], ...]
Values = Mapping[Labels, float]
"""Values of one metric by labels, these in alphabetical order."""
Readings = Mapping[str, Values]
"""Values by name of the metric."""


class Metric(NamedTuple):
    """One metric.

    Parameters
    ----------
    name : str
        Parts joined by full stops.
    kind : {"counter", "gauge"}
    unit : str
        As OpenTelemetry writes units; "1" for a share in [0, 1].
    about : str
        One sentence.
    """

    name: str
    kind: Literal["counter", "gauge"]
    unit: str
    about: str


_WITHIN = "holds at all times at once"
METRICS = (
    Metric("retrievals", "counter", "{retrieval}", "Retrievals observed."),
    Metric("empty_retrievals", "counter", "{retrieval}", "Retrievals without a document."),
    Metric("retrieved_documents", "counter", "{document}", "Documents retrieved."),
    Metric("exposure", "gauge", "1", "Mean rank-weighted share of the group in a retrieval."),
    Metric("exposure.lower", "gauge", "1", f"Lower end of the exposure; {_WITHIN}."),
    Metric("exposure.upper", "gauge", "1", f"Upper end of the exposure; {_WITHIN}."),
    Metric("exposure.baseline", "gauge", "1", "Exposure that the group is held against."),
    Metric("top1", "gauge", "1", "Share of first ranks that the group has."),
    Metric("top1.lower", "gauge", "1", f"Lower end of the share of first ranks; {_WITHIN}."),
    Metric("top1.upper", "gauge", "1", f"Upper end of the share of first ranks; {_WITHIN}."),
    Metric("top1.baseline", "gauge", "1", "Share of first ranks that is held against."),
    Metric("group_alarm.active", "gauge", "{alarm}", "1 where this group's share left baseline."),
    Metric("alarm.active", "gauge", "{alarm}", "1 where any group's share left its baseline."),
    Metric("alarms", "counter", "{alarm}", "Alarms raised, by rule."),
    Metric("dropped_events", "counter", "{event}", "Events that the monitor lost, by reason."),
)
"""Every metric; ``alarms`` is counted as alarms are told, all others are read from snapshots."""
_PREFIX = {"exposure": "exposure", "first": "top1"}


def read_snapshots(snapshots: Iterable[MonitorSnapshot]) -> Readings:
    """Return every value that snapshots hold, once.

    Labels of the monitor are kept, with names that Prometheus takes; those of the metric are
    ``by`` ("source" or "style") and ``group`` for shares, these and ``measure`` for alarms of a
    group, ``rule`` for other alarms, ``reason`` for lost events. All values of a metric have the
    same label names.

    A retrieval that is watched by source and by style counts once: where several snapshots have
    the same labels the highest count is taken. Lost events are counted by the monitor and not by
    label, so that the highest count of a reason is taken there too. Shares that are not known yet
    are left out.
    """
    given = tuple(snapshots)
    empty = {name: "" for snapshot in given for name in label_values(snapshot.labels)}
    found: dict[str, dict[Labels, float]] = {metric.name: {} for metric in METRICS}
    for snapshot in given:
        where = empty | label_values(snapshot.labels)
        for name, labels, value in _values(snapshot, where):
            at = tuple(sorted(labels.items()))
            # A share of another monitor with the same labels is no better than this one's.
            if name.partition(".")[0] in _PREFIX.values():
                found[name].setdefault(at, value)
            else:
                found[name][at] = max(value, found[name].get(at, 0.0))
    return found


_Value = tuple[str, Mapping[str, str], float]


def _values(snapshot: MonitorSnapshot, where: Mapping[str, str]) -> Iterator[_Value]:
    yield "retrievals", where, float(snapshot.n_retrievals)
    yield "empty_retrievals", where, float(snapshot.n_empty)
    yield "retrieved_documents", where, float(snapshot.n_documents)
    for group in snapshot.groups:
        own = {"by": snapshot.by, "group": group.group or UNTAGGED}
        yield from _shares(group, {**where, **own})
    if any(group.baseline is not None for group in snapshot.groups):
        alarm = any(group.alarm for group in snapshot.groups)
        yield "alarm.active", {**where, "rule": "baseline"}, float(alarm)
    for reason, lost in snapshot.dropped.items():
        yield "dropped_events", {"reason": reason}, float(lost)


def _shares(group: GroupShare, labels: Mapping[str, str]) -> Iterator[_Value]:
    name = _PREFIX[group.measure]
    if group.share == group.share:  # not NaN
        yield name, labels, group.share
        yield f"{name}.lower", labels, group.lower
        yield f"{name}.upper", labels, group.upper
    if group.baseline is not None:
        yield f"{name}.baseline", labels, group.baseline
        yield "group_alarm.active", {**labels, "measure": name}, float(group.alarm)


def label_values(labels: Mapping[str, str]) -> dict[str, str]:
    """Return a monitor's labels under names that Prometheus takes."""
    return {_label_name(key): str(value) for key, value in labels.items()}


def _label_name(key: str) -> str:
    """Return ``key`` as a label name that Prometheus takes and that no metric has of its own."""
    name = re.sub(r"[^a-zA-Z0-9_]", "_", key).lstrip("_")
    return f"label_{name}" if not name or name[0].isdigit() or name in _OWN_LABELS else name
