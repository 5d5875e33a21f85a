"""What metric systems are told of a monitor: its snapshots and canary points, as values."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping

from rag_sourcebias.monitor.label_sets import OTHER
from rag_sourcebias.monitor.metrics import METRICS
from rag_sourcebias.types.canary import CanaryPoint
from rag_sourcebias.types.monitor import RANK_LIMITS, GroupCount, GroupShare, MonitorSnapshot
from rag_sourcebias.types.source_names import is_source

__all__ = ["UNTAGGED", "Labels", "Readings", "Values", "label_values", "read_snapshots"]

UNTAGGED = "untagged"
"""The group of documents without a tag: an empty label is none at all in Prometheus."""
_OWN_LABELS = frozenset(
    {"by", "group", "label", "measure", "rule", "reason", "part", "metric", "human", "llm", "le"}
    | {"quantile"}
)

Labels = tuple[tuple[str, str], ...]
Values = Mapping[Labels, float]
"""Values of one metric by labels, these in alphabetical order."""
Readings = Mapping[str, Values]
"""Values by name of the metric."""

_PREFIX = {"exposure": "exposure", "first": "top1"}
_SHARES = frozenset({*_PREFIX.values(), "corrected_share"})
_LIMITS = tuple(f"{limit:.1f}" for limit in RANK_LIMITS)


def read_snapshots(
    snapshots: Iterable[MonitorSnapshot], *, canary: Iterable[CanaryPoint] = ()
) -> Readings:
    """Return every value that snapshots and the latest canary points hold, once.

    Labels of the monitor are kept, with names that Prometheus takes; those of the metric are
    ``by`` ("source" or "style") and ``group`` for shares and counts of a group, these and ``le``
    for its ranks, these and ``measure`` for its alarms, ``rule`` for other alarms, ``metric``,
    ``human`` and ``llm`` for a Relative Δ, ``part`` and ``reason`` for lost events, ``part`` and
    ``label`` for labels with too many values, ``part`` for tags that are none. All values of a
    metric have the same label names.

    A retrieval that is watched by source and by style counts once: where several snapshots have
    the same labels the highest count is taken. Lost events are counted by the monitor and not by
    label, so that the highest count of a reason is taken there too. Of canary points that compare
    the same the latest is taken. What is not known yet is left out.
    """
    given, points = tuple(snapshots), _latest(canary)
    places = [one.labels for one in given] + [one.labels for one in points]
    empty = {name: "" for place in places for name in label_values(place)}
    found: dict[str, dict[Labels, float]] = {metric.name: {} for metric in METRICS}

    def note(name: str, labels: Mapping[str, str], value: float) -> None:
        at, values = tuple(sorted(labels.items())), found[name]
        if name.partition(".")[0] in _SHARES:
            # A share of another monitor with the same labels is no better than this one's.
            values.setdefault(at, value)
        else:
            values[at] = max(value, values.get(at, value))

    for snapshot in given:
        for one in _values(snapshot, empty | label_values(snapshot.labels)):
            note(*one)
    for point in points:
        for one in _canary_values(point, empty | label_values(point.labels)):
            note(*one)
    found["odd_source_documents"] |= _odd_sources(given)
    return found


def _odd_sources(snapshots: Iterable[MonitorSnapshot]) -> dict[Labels, float]:
    """Return documents of sources that are none; those of several sets of labels add up."""
    counts = [count for one in snapshots if one.by == "source" for count in one.counts]
    odd = [c.documents for c in counts if c.group not in ("", OTHER) and not is_source(c.group)]
    return {(("part", "monitor"),): float(sum(odd))} if counts else {}


_Value = tuple[str, Mapping[str, str], float]


def _values(snapshot: MonitorSnapshot, where: Mapping[str, str]) -> Iterator[_Value]:
    yield "retrievals", where, float(snapshot.n_retrievals)
    yield "empty_retrievals", where, float(snapshot.n_empty)
    yield "retrieved_documents", where, float(snapshot.n_documents)
    by = {**where, "by": snapshot.by}
    for group in snapshot.groups:
        yield from _shares(group, {**by, "group": group.group or UNTAGGED})
    for count in snapshot.counts:
        yield from _counts(count, {**by, "group": count.group or UNTAGGED})
    for name, share in snapshot.corrected.items():
        if not math.isnan(share):
            yield "corrected_share", {**by, "group": name or UNTAGGED}, share
    if any(group.baseline is not None for group in snapshot.groups):
        alarm = any(group.alarm for group in snapshot.groups)
        yield "alarm.active", {**where, "rule": "baseline"}, float(alarm)
    for reason, lost in snapshot.dropped.items():
        yield "dropped_events", {"part": "monitor", "reason": reason}, float(lost)
    for label, n in snapshot.overflowed.items():
        yield "label_overflow", {"part": "monitor", "label": label}, float(n)
    yield "bad_tags", {"part": "monitor"}, float(snapshot.bad_tags)


def _shares(group: GroupShare, labels: Mapping[str, str]) -> Iterator[_Value]:
    name = _PREFIX[group.measure]
    if not math.isnan(group.share):
        yield name, labels, group.share
        yield f"{name}.lower", labels, group.lower
        yield f"{name}.upper", labels, group.upper
    if group.baseline is not None:
        yield f"{name}.baseline", labels, group.baseline
        yield "group_alarm.active", {**labels, "measure": name}, float(group.alarm)


def _counts(count: GroupCount, labels: Mapping[str, str]) -> Iterator[_Value]:
    yield "group_documents", labels, float(count.documents)
    for limit, documents in zip(_LIMITS, count.ranks, strict=True):
        yield "retrieved_rank", {**labels, "le": limit}, float(documents)
    yield "retrieved_rank", {**labels, "le": "+Inf"}, float(count.documents)


def _latest(points: Iterable[CanaryPoint]) -> tuple[CanaryPoint, ...]:
    """Return the latest point of each comparison."""
    kept: dict[object, CanaryPoint] = {}
    for point in points:
        key = (tuple(sorted(point.labels.items())), point.measure, point.human, point.llm)
        if key not in kept or point.at >= kept[key].at:
            kept[key] = point
    return tuple(kept.values())


def _canary_values(point: CanaryPoint, where: Mapping[str, str]) -> Iterator[_Value]:
    labels = {**where, "metric": point.measure, "human": point.human, "llm": point.llm}
    if point.relative_delta is not None:
        yield "relative_delta", labels, point.relative_delta / 100
        yield "relative_delta.lower", labels, point.lower / 100
        yield "relative_delta.upper", labels, point.upper / 100
    yield "relative_delta.baseline", labels, point.reference / 100
    yield "canary_round.timestamp", labels, point.at
    yield "canary_failed", labels, float(point.failed)
    yield "alarm.active", {**where, "rule": "canary"}, float(point.alarm)


def label_values(labels: Mapping[str, str]) -> dict[str, str]:
    """Return a monitor's labels under names that Prometheus takes."""
    return {_label_name(key): str(value) for key, value in labels.items()}


def _label_name(key: str) -> str:
    """Return ``key`` as a label name that Prometheus takes and that no metric has of its own."""
    name = re.sub(r"[^a-zA-Z0-9_]", "_", key).lstrip("_")
    return f"label_{name}" if not name or name[0].isdigit() or name in _OWN_LABELS else name
