"""Put the shipped rule files where Prometheus and Grafana read them."""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Literal, NamedTuple

from rag_sourcebias.core.codec import PathLike, write_atomic
from rag_sourcebias.core.errors import DataError, is_source
from rag_sourcebias.monitor.data import RANK_LIMITS, Alarm, MonitorSnapshot
from rag_sourcebias.observe.events import DroppedEvents, Locked, guarded
from rag_sourcebias.observe.labels import OTHER, Key
from rag_sourcebias.observe.log.reading import LogSummary

# The metrics that a monitor has in Prometheus and OpenTelemetry: one table of names.


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


_WITHIN = "at the monitor's confidence level"
METRICS = (
    Metric("retrievals", "counter", "{retrieval}", "Retrievals observed."),
    Metric("empty_retrievals", "counter", "{retrieval}", "Retrievals without a document."),
    Metric("retrieved_documents", "counter", "{document}", "Documents retrieved."),
    Metric("group_documents", "counter", "{document}", "Documents of the group retrieved."),
    Metric("retrieved_rank", "buckets", "{document}", "Ranks of the group's documents."),
    Metric("exposure", "gauge", "1", "Mean rank-weighted share of the group in a retrieval."),
    Metric("exposure.lower", "gauge", "1", f"Lower end of the exposure, {_WITHIN}."),
    Metric("exposure.upper", "gauge", "1", f"Upper end of the exposure, {_WITHIN}."),
    Metric("exposure.baseline", "gauge", "1", "Exposure that the group is held against."),
    Metric("corrected_share", "gauge", "1", "Exposure, corrected for errors of the tags."),
    Metric("top1", "gauge", "1", "Share of first ranks that the group has."),
    Metric("top1.lower", "gauge", "1", f"Lower end of the share of first ranks, {_WITHIN}."),
    Metric("top1.upper", "gauge", "1", f"Upper end of the share of first ranks, {_WITHIN}."),
    Metric("top1.baseline", "gauge", "1", "Share of first ranks that is held against."),
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


# What metric systems are told of a monitor: its snapshots, as values.


UNTAGGED = "untagged"
"""The group of documents without a tag: an empty label is none at all in Prometheus."""
_OWN_LABELS = frozenset(
    {"by", "group", "label", "measure", "rule", "reason", "part", "le", "quantile"}
)

Values = Mapping[Key, float]
"""Values of one metric by labels, these in alphabetical order."""

_PREFIX = {"exposure": "exposure", "first": "top1"}
_SHARES = (*_PREFIX.values(), "corrected_share")


def read_snapshots(snapshots: Iterable[MonitorSnapshot]) -> dict[str, dict[Key, float]]:
    """Return every value that snapshots hold, once.

    Labels of the monitor are kept, with names that Prometheus takes; those of the metric are
    ``by`` ("source" or "style") and ``group`` for shares and counts of a group, these and ``le``
    for its ranks, these and ``measure`` for its alarms, ``rule`` for other alarms, ``part`` and
    ``reason`` for lost events, ``part`` and ``label`` for labels with too many values, ``part``
    for tags that are none. All values of a metric have the same label names.

    A retrieval that is watched by source and by style counts once: where several snapshots have
    the same labels the highest count is taken. Lost events are counted by the monitor and not by
    label, so that the highest count of a reason is taken there too. What is not known yet is left
    out.
    """
    given = tuple(snapshots)
    empty = {name: "" for one in given for name in label_values(one.labels)}
    found: dict[str, dict[Key, float]] = {metric.name: {} for metric in METRICS}
    for snapshot in given:
        _note(found, _values(snapshot, empty | label_values(snapshot.labels)))
    # Documents of sources that are none: those of several sets of labels add up.
    counts = [count for one in given if one.by == "source" for count in one.counts]
    odd = [c.documents for c in counts if c.group not in ("", OTHER) and not is_source(c.group)]
    if counts:
        _note(found, [("odd_source_documents", _MONITOR, sum(odd))])
    return found


_Value = tuple[str, Mapping[str, str], float | None]
_MONITOR = {"part": "monitor"}


def _note(
    found: Mapping[str, dict[Key, float]],
    values: Iterable[_Value],
) -> None:
    """Take values that are known; of two under the same labels the first share, the highest count.

    A share of another monitor with the same labels is no better than the first one's.
    """
    for name, labels, value in values:
        if value is not None and not math.isnan(value):
            known = found[name]
            at = tuple(sorted((str(key), str(text)) for key, text in labels.items()))
            if at not in known or name.partition(".")[0] not in _SHARES:
                known[at] = max(float(value), known.get(at, 0.0))


def _values(snapshot: MonitorSnapshot, where: Mapping[str, str]) -> Iterator[_Value]:
    yield "retrievals", where, snapshot.n_retrievals
    yield "empty_retrievals", where, snapshot.n_empty
    yield "retrieved_documents", where, snapshot.n_documents
    by = {**where, "by": snapshot.by}
    tested = [group for group in snapshot.groups if group.baseline is not None]
    for group in snapshot.groups:
        name = _PREFIX[group.measure]
        labels = {**by, "group": group.group or UNTAGGED}
        yield name, labels, group.share
        for end in ("lower", "upper", "baseline"):
            yield f"{name}.{end}", labels, getattr(group, end)
        if group in tested:
            yield "group_alarm.active", {**labels, "measure": name}, group.alarm
    if tested:
        active = any(group.alarm for group in snapshot.groups)
        yield "alarm.active", {**where, "rule": "baseline"}, active
    for count in snapshot.counts:
        labels = {**by, "group": count.group or UNTAGGED}
        yield "group_documents", labels, count.documents
        for limit, documents in zip(RANK_LIMITS, count.ranks, strict=True):
            yield "retrieved_rank", {**labels, "le": str(float(limit))}, documents
        yield "retrieved_rank", {**labels, "le": "+Inf"}, count.documents
    for source, share in snapshot.corrected.items():
        yield "corrected_share", {**by, "group": source or UNTAGGED}, share
    yield from _lost("monitor", snapshot.dropped, snapshot.overflowed, snapshot.bad_tags)


def _lost(
    part: str, dropped: Mapping[str, int], overflowed: Mapping[str, int], bad_tags: int
) -> Iterator[_Value]:
    """Yield what a part of an application lost, or could not tell apart or read."""
    for reason, n in dropped.items():
        yield "dropped_events", {"part": part, "reason": reason}, n
    for label, n in overflowed.items():
        yield "label_overflow", {"part": part, "label": label}, n
    yield "bad_tags", {"part": part}, bad_tags


def label_values(labels: Mapping[str, str]) -> dict[str, str]:
    """Return a monitor's labels under names that Prometheus takes."""
    found = {}
    for key, value in labels.items():
        name = re.sub(r"[^a-zA-Z0-9_]", "_", key).lstrip("_")
        taken = not name or name[0].isdigit() or name in _OWN_LABELS
        found[f"label_{name}" if taken else name] = str(value)
    return found


# Read a monitor for a metric system, whatever the monitor does.


_RULES = ("shift", "new", "gone", "composition", "untagged", "level", "resolved")
LostEvents = Mapping[str, Mapping[str, int]]
"""Events lost by reason, for each part of an application: ``{"log": log.dropped.by_reason}``."""


class MonitorReader(Locked):
    """Current values of every metric, and a count of the alarms it was told of.

    Parameters
    ----------
    snapshots : callable
        Returns the monitor's state for every set of labels; called once a reading.
    lost : callable or None
        Returns what other parts of the application lost.
    log : callable or None
        Returns the summary of an event log: what it lost, and what is not as it should be in its
        labels and tags.

    Attributes
    ----------
    dropped : DroppedEvents
        Readings that failed; they are read under ``dropped_events`` themselves.
    """

    def __init__(
        self,
        snapshots: Callable[[], Iterable[MonitorSnapshot]],
        *,
        lost: Callable[[], LostEvents] | None = None,
        log: Callable[[], LogSummary | None] | None = None,
    ) -> None:
        self._snapshots, self._lost, self._log = snapshots, lost, log
        self._alarms: dict[tuple[tuple[tuple[str, str], ...], str], int] = {}
        self.dropped = DroppedEvents()
        super().__init__()

    def alarm(self, alarm: Alarm) -> None:
        """Count one alarm."""
        key = (tuple(sorted(label_values(alarm.labels).items())), alarm.rule)
        with self._lock:
            self._alarms[key] = self._alarms.get(key, 0) + 1

    def read(self) -> Mapping[str, Values]:
        """Return all values by name of the metric; never raises.

        ``alarms`` is 0 for each rule before the first, so that the first is seen as a rise.
        """
        found = read_snapshots(())
        with guarded(self.dropped, "monitor could not be read"):
            found = read_snapshots(self._snapshots())
        with guarded(self.dropped, "lost events could not be read"):
            for part, reasons in ({} if self._lost is None else self._lost()).items():
                for reason, n in reasons.items():
                    _note(found, [("dropped_events", {"part": part, "reason": reason}, n)])
        with guarded(self.dropped, "lost events could not be read"):
            log = None if self._log is None else self._log()
            if log is not None:
                _note(found, _lost("log", log.dropped, log.overflowed, log.bad_tags))
                odd = sum(log.odd_sources.values())
                _note(found, [("odd_source_documents", {"part": "log"}, odd)])
        for reason, n in self.dropped.by_reason.items():
            _note(found, [("dropped_events", {**_MONITOR, "reason": reason}, n)])
        found["alarms"] = self._counted(found["retrievals"])
        return found

    def _counted(self, places: Iterable[Key]) -> dict[Key, float]:
        with self._lock:
            counts = dict(self._alarms)
        given = [((place, rule), 0) for place in places for rule in _RULES] + list(counts.items())
        empty = {name: "" for (place, _), _ in given for name, _ in place}
        found: dict[Key, float] = {}
        for (place, rule), count in given:
            at = tuple(sorted({**empty, **dict(place), "rule": rule}.items()))
            found[at] = found.get(at, 0.0) + count
        return found


# Put the shipped rule files where Prometheus and Grafana read them.


RULE_FILES = ("alerts.yml", "grafana-dashboard.json")
"""Alert rules for ``rule_files`` of Prometheus, and a dashboard to import into Grafana."""


def read_rules(name: str) -> str:
    """Return the text of one of :data:`RULE_FILES`."""
    return (files("rag_sourcebias.monitor.rules") / name).read_text(encoding="utf-8")


def write_rules(folder: PathLike, *, overwrite: bool = False) -> tuple[Path, ...]:
    """Write every rule file into a folder, which is created.

    The expressions ask for the metrics of
    :class:`rag_sourcebias_integrations.prometheus.SkewCollector` with its default prefix.

    Parameters
    ----------
    folder : path
    overwrite : bool
        Replace files that are there already, which may have been edited.

    Returns
    -------
    tuple of pathlib.Path
        ``alerts.yml`` and ``grafana-dashboard.json``.

    Raises
    ------
    DataError
        If a file is there already, or cannot be written. No file is written where one is there.
    """
    targets = tuple(Path(folder) / name for name in RULE_FILES)
    there = [path.name for path in targets if path.exists()]
    if there and not overwrite:
        raise DataError(f"{folder} has {' and '.join(there)} already; say overwrite=True")
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        for path in targets:
            write_atomic(path, [read_rules(path.name)])
    except OSError as error:
        raise DataError(f"rule files cannot be written to {folder}: {error}") from error
    return targets
