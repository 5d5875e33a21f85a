"""The data of every view, in plain values; knows nothing of HTTP."""

import json
import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar
from urllib.parse import parse_qsl

import numpy as np
import numpy.typing as npt
from msgspec import Meta, Struct, convert

from rag_sourcebias._version import __version__
from rag_sourcebias.core.data import FloatArray
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.infer.means import normal_quantile
from rag_sourcebias.monitor.dashboard.stages import stages_of
from rag_sourcebias.monitor.data import Alarm, GroupShare, Measure, MonitorSnapshot
from rag_sourcebias.monitor.follow import LogFollower
from rag_sourcebias.observe.labels import OTHER
from rag_sourcebias.observe.log.reading import (
    LogSummary,
    NotCountedError,
    Rollups,
    iter_newest,
    log_summary,
    read_rollups,
    reading,
    rollup_extent,
)
from rag_sourcebias.observe.log.schema import WIDTHS, EventColumns

# What is asked for: read by a library, every mistake named.


_MOST_PARAMETERS = 40  # parameters of one request
_LONGEST = 200  # characters of a value, as of the names that a log keeps
_Time = Annotated[float, Meta(gt=-1e11, lt=1e11)]
_Text = Annotated[str, Meta(max_length=_LONGEST)]
_Pair = Annotated[str, Meta(pattern="^[^=]+=", max_length=2 * _LONGEST + 1)]
Q = TypeVar("Q", bound=Struct)


class ParameterError(DataError):
    """A parameter is not what it should be; the message names it and what is accepted."""


class Nothing(Struct, frozen=True, forbid_unknown_fields=True):
    """No parameter."""


class Page(Struct, frozen=True, forbid_unknown_fields=True):
    """The page, for a reader with a token in the address."""

    token: _Text | None = None


class Latest(Struct, frozen=True, forbid_unknown_fields=True):
    """So many of the latest alarms."""

    limit: Annotated[int, Meta(ge=1, le=1_000)] = 100


class Part(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of a log: times in Unix seconds, labels as ``key=value``."""

    by: Literal["source", "style"] = "source"
    since: _Time | None = None
    until: _Time | None = None
    label: tuple[_Pair, ...] = ()

    def __post_init__(self) -> None:
        if self.since is not None and self.until is not None and self.since >= self.until:
            raise ValueError("since must be before until")
        if len(self.labels) < len(set(self.label)):
            raise ValueError(f"label {list(self.label)!a:.80} asks for two values of one label")

    @property
    def labels(self) -> dict[str, str]:
        """Labels that are wanted."""
        return dict(pair.split("=", 1) for pair in self.label)


class OverTime(Part, frozen=True, kw_only=True):
    """Shares over time of a part of a log."""

    measure: Measure = "exposure"


class Newest(Part, frozen=True, kw_only=True):
    """Retrievals with a document of a group (``first``: at rank 1) and smaller numbers."""

    group: _Text | None = None
    first: bool = False
    before: Annotated[int, Meta(ge=0, lt=10**15)] | None = None
    limit: Annotated[int, Meta(ge=1, le=200)] = 50


VIEWS: Mapping[str, type[Struct]] = {
    "overview": Nothing,
    "series": OverTime,
    "alarms": Latest,
    "retrievals": Newest,
    "stages": Part,
}
"""Methods of a source that are views below ``/api/``, with what each is asked."""


def asked(query: bytes, kind: type[Q]) -> Q:
    """Read the query of a request, as it was sent behind the question mark.

    Raises
    ------
    ParameterError
        If there are too many parameters, or one is unknown, repeated or none that is accepted.
    """
    values: dict[str, Any] = {}
    try:
        for name, value in parse_qsl(
            query.decode("latin-1"), keep_blank_values=True, max_num_fields=_MOST_PARAMETERS
        ):
            if name == "label":
                values.setdefault(name, []).append(value)
            elif name in values:
                raise ValueError(f"{name!a:.40} is given twice; give it once")
            else:
                values[name] = value
        return convert(values, kind, strict=False)
    except ValueError as error:
        accepted = ", ".join(kind.__struct_fields__) or "none"
        raise ParameterError(f"parameter: {error!s:.200}; accepted: {accepted}") from None


# Which time steps show a stretch of a log.


_AUTO, _FEWEST, _IN_A_STEP = 400, 28, 200.0
_HOUR = 3_600
_DAY = 86_400
_LENGTHS = (
    *(minutes * 60 for minutes in (1, 2, 5, 10, 20, 30)),
    *(hours * _HOUR for hours in (1, 2, 3, 6, 12)),
    *(days * _DAY for days in (1, 2, 7, 14, 28, 91, 364)),
)


def chosen_step(
    extent: Mapping[int, tuple[int, int]], *, since: float | None, until: float | None
) -> int:
    """Return the seconds of the shortest step that makes at most 400 and is kept for that time.

    Parameters
    ----------
    extent : mapping of int to (int, int)
        Time that rollups cover, by width; not empty.
    since, until : float or None
        Seconds since 1970 that are asked for.
    """
    # The finest rollups know best when the log begins, where they go back as far.
    finest = extent[min(extent)][0]
    earlier = (first for width, (first, _) in extent.items() if first < finest // width * width)
    start: float = min(earlier, default=finest)
    end: float = min(last for _, last in extent.values())  # that of the finest width
    start = start if since is None else max(start, since)
    end = end if until is None else min(end, until)
    for step in _LENGTHS:
        steps = math.ceil(end / step) - math.floor(start / step)
        if steps <= _AUTO and _is_kept(step, start, extent):
            return step
    return math.ceil((end - start) / (_AUTO - 1) / _DAY) * _DAY


def _is_kept(step: int, start: float, extent: Mapping[int, tuple[int, int]]) -> bool:
    """Return whether rollups of this step go back to the start, as those of hours do."""
    first = min(start for start, _ in extent.values())
    width = max(w for w in WIDTHS if step % w == 0)
    kept = extent.get(width, (0, 0))[0] // _HOUR * _HOUR
    wanted = max(start, extent.get(_HOUR, (first, 0))[0])
    return width >= _HOUR or kept <= wanted


def _readable_step(step: int, rollups: Rollups) -> int:
    """Return a step with up to 200 retrievals, of which at least 28 cover the time."""
    starts = rollups.starts
    if len(starts) <= _FEWEST:
        return step
    time = starts[-1] + step - starts[0]
    most = min(_IN_A_STEP * time / float(rollups.retrievals.sum()), time / _FEWEST)
    return max([one for one in _LENGTHS if step < one <= most] or [step])


# Shares over time.


_MOST_GROUPS = 20


def _largest(
    rollups: Rollups, weights: FloatArray
) -> tuple[tuple[str, ...], FloatArray, FloatArray]:
    """Return groups, documents and weights, the smaller groups together as "other"."""
    groups = rollups.groups
    documents = rollups.documents
    if len(groups) <= _MOST_GROUPS:
        return groups, documents, weights
    order = np.argsort(-documents.sum(axis=0), kind="stable").tolist()
    large = {groups[column] for column in order[: _MOST_GROUPS - 1]}
    names = tuple(sorted(large | {OTHER}))
    merged = [group if group in large else OTHER for group in groups]
    into = np.array([[float(one == name) for name in names] for one in merged])
    return names, documents @ into, weights @ into


def _baselines(chosen: Sequence[Mapping[str, GroupShare]]) -> dict[str, float]:
    """Return baselines by group, where all sets of labels have the same."""
    levels = {
        (name, group.baseline)
        for known in chosen
        for name, group in known.items()
        if group.baseline is not None
    }
    named = Counter(name for name, _ in levels)
    return {name: level for name, level in sorted(levels) if named[name] == 1}


def _half_widths(
    rollups: Rollups,
    names: Sequence[str],
    chosen: Sequence[tuple[MonitorSnapshot, Mapping[str, GroupShare]]],
    level: float,
) -> FloatArray:
    """Return how far intervals reach, as means of half-days vary, shape (groups, steps).

    NaN where that is not known.
    """
    counts = rollups.retrievals - rollups.empty
    reach = normal_quantile(0.5 + level / 2) / np.sqrt(np.maximum(counts, 1))
    deviations = []
    for name in names:
        known = [
            (one.n_retrievals, spread**2)
            for one, groups in chosen
            if name in groups and (spread := groups[name].spread) is not None
        ]
        total = sum(n for n, _ in known)
        deviations.append(math.sqrt(sum(n * v for n, v in known) / total) if total else math.nan)
    return np.outer(deviations, reach)


# Single retrievals of a log, newest first, page by page.


_MOST_SCANNED = 200_000  # retrievals looked at for one page
_MOST_PARTS = 3_000  # of the log, each written at once
_MOST_DOCUMENTS = 20_000  # of one page; a single retrieval may have more


def _plain(part: EventColumns, row: int) -> dict[str, Any]:
    start = int(part.offsets[row])
    stop = int(part.offsets[row + 1])
    documents = []
    for rank, at in enumerate(range(start, stop), 1):
        source, style = part.tags[part.tag_codes[at]]
        doc_id = None if part.doc_ids is None else str(part.doc_ids[at])
        documents.append({"rank": rank, "source": source, "style": style, "doc_id": doc_id})
    return {
        "number": int(part.numbers[row]),
        "at": float(part.times[row]),
        "query_id": str(part.query_ids[row]),
        "labels": part.labels_at(row),
        "documents": documents,
    }


# What an overview says of a log.


_MOST_LABEL_SETS = 1_000
_TOLD = (
    "n_written", "n_kept", "n_later", "since", "until", "bad_tags",
    "dropped", "overflowed", "event_labels", "odd_sources",
)  # fmt: skip
_DOCUMENT_IDS = (
    "SELECT CASE typeof(documents) WHEN 'null' THEN 'none' WHEN 'blob' THEN 'hashed' ELSE 'plain' "
    "END FROM segments WHERE documents IS NOT '[]' ORDER BY first DESC LIMIT 1"
)
"""How the newest segment keeps ids; one without a document looks alike either way."""


def about_log(path: Path) -> tuple[dict[str, Any], list[dict[str, str]], str | None]:
    """Return a description of a log, the label sets in it, and how it keeps document ids.

    A log that is not there yet is an empty one.

    Raises
    ------
    DataError
        If the log cannot be read.
    UnsupportedVersionError
        If it has another version than this release writes.
    """
    found, size, latest = LogSummary(), 0, None
    if path.exists() and path.stat().st_size:
        found = log_summary(path)
        size = path.stat().st_size
        with reading(path) as database:
            latest = database.execute(_DOCUMENT_IDS).fetchone()
    about = {
        "name": path.name,
        "size_bytes": size,
        **{name: getattr(found, name) for name in _TOLD},
    }
    label_sets = sorted(map(dict, found.labels), key=json.dumps)[:_MOST_LABEL_SETS]
    return about, label_sets, latest and latest[0]


# The data of every view, in plain values; knows nothing of HTTP.


_FRESH_SECONDS = 1.0  # for which the state of the monitor is not asked for again
_LEVEL = 0.95


class DashboardSource:
    """What a dashboard shows: an event log, and what follows it.

    Every method may be called from several threads at once, reads and never writes, and raises
    ``DataError`` or ``UnsupportedVersionError`` where the log cannot be read now.

    Parameters
    ----------
    log : str or Path
        An event log, which need not exist yet.
    follower : LogFollower or None
        Whose monitor is shown; None shows the log alone.
    metrics : callable or None
        Returns Prometheus text, such as ``prometheus_client.generate_latest`` of a registry with
        a ``SkewCollector``; None where there is none.
    """

    def __init__(
        self,
        log: str | Path,
        *,
        follower: LogFollower | None = None,
        metrics: Callable[[], bytes] | None = None,
    ) -> None:
        self.log = Path(log)
        self.follower = follower
        self.metrics = metrics
        self._lock = threading.Lock()
        self._snapshots: tuple[MonitorSnapshot, ...] = ()
        self._fresh_until = -1.0

    def snapshots(self) -> tuple[MonitorSnapshot, ...]:
        """Return the state of the monitor, at most a second old."""
        if self.follower is None:
            return ()
        with self._lock:
            if time.monotonic() >= self._fresh_until:
                self._snapshots = self.follower.monitor.snapshot()
                self._fresh_until = time.monotonic() + _FRESH_SECONDS
            return self._snapshots

    @property
    def confidence_level(self) -> float:
        """That of the monitor, 0.95 without one."""
        return _LEVEL if self.follower is None else self.follower.settings["confidence_level"]

    def overview(self, _: Nothing) -> dict[str, Any]:
        """Return the state of log, follower and monitor."""
        snapshots = self.snapshots()
        follower = self.follower
        log, label_sets, document_ids = about_log(self.log)
        return {
            "version": __version__,
            "generated_at": time.time(),
            "log": log,
            "follower": self._about_follower(int(log["n_written"])),
            "monitor": {
                "by": "source" if follower is None else follower.settings["by"],
                "baseline": snapshots[0].baseline if snapshots else "",
                "confidence_level": self.confidence_level,
                "snapshots": snapshots,
            },
            "alarms_active": sum(g.alarm for snapshot in snapshots for g in snapshot.groups),
            "shifts": self._shifts(snapshots),
            "label_sets": label_sets,
            "text_recorded": False,
            "document_ids": document_ids,
        }

    def _shifts(self, snapshots: Sequence[MonitorSnapshot]) -> list[Alarm]:
        """Return the latest alarm of each set of labels whose shares are elsewhere now.

        Or of which it says that the store is.
        """
        if self.follower is None:
            return []
        latest = {tuple(sorted(a.labels.items())): a for a in self.follower.monitor.alarms}
        found = [
            (latest.get(tuple(sorted(one.labels.items()))), any(g.alarm for g in one.groups))
            for one in snapshots
        ]
        return [
            alarm
            for alarm, away in found
            if alarm is not None
            and alarm.since is not None
            and (away or alarm.rule == "composition")
        ]

    def _about_follower(self, n_written: int) -> dict[str, Any]:
        follower = self.follower
        if follower is None:
            return {
                "n_read": 0,
                "behind": n_written,
                "error": "this log is not followed: shares over time only, no alarms",
                "dropped": {},
            }
        dropped = Counter(follower.dropped.by_reason) + Counter(follower.monitor.dropped.by_reason)
        return {
            "n_read": follower.n_read,
            "behind": follower.behind_of(n_written),
            "error": follower.error,
            "dropped": dict(dropped),
        }

    def series(self, part: OverTime) -> dict[str, Any]:
        """Return shares of groups over time.

        The share of a step is that of all its rank weights (or first ranks). The 20 groups with
        the most documents are told apart.

        Raises
        ------
        ParameterError
            If the labels have no counts.
        """
        by, measure = part.by, part.measure
        extent = rollup_extent(self.log)
        seconds = WIDTHS[0]
        if extent:
            seconds = chosen_step(extent, since=part.since, until=part.until)

        def read(step: int) -> Rollups:
            return read_rollups(
                self.log,
                since=part.since,
                until=part.until,
                labels=part.labels or None,
                by=by,
                step=step,
            )

        try:
            rollups = read(seconds)
            longer = _readable_step(seconds, rollups)
            if longer != seconds:
                rollups = read(longer)
                seconds = longer
        except NotCountedError as error:
            raise ParameterError(str(error)) from None
        groups, documents, weights = _largest(
            rollups, rollups.first if measure == "first" else rollups.exposure
        )
        total = weights.sum(axis=1, keepdims=True)
        with np.errstate(invalid="ignore"):
            share = weights / total
        wanted = part.labels.items()
        chosen = [
            (snapshot, {g.group: g for g in snapshot.groups if g.measure == measure})
            for snapshot in self.snapshots()
            if snapshot.by == by and all(snapshot.labels.get(k, v) == v for k, v in wanted)
        ]
        halves = _half_widths(rollups, groups, chosen, self.confidence_level)
        return {
            "by": by,
            "measure": measure,
            "step_seconds": seconds,
            "starts": rollups.starts,
            "groups": groups,
            "share": share.T,
            "lower": np.clip(share.T - halves, 0, 1),
            "upper": np.clip(share.T + halves, 0, 1),
            "retrievals": rollups.retrievals,
            "empty": rollups.empty,
            "documents": documents.T,
            "confidence_level": self.confidence_level,
            "baseline": _baselines([known for _, known in chosen]) or None,
        }

    def alarms(self, latest: Latest) -> dict[str, Any]:
        """Return the latest alarms, newest first."""
        alarms = () if self.follower is None else self.follower.monitor.alarms
        return {"alarms": alarms[::-1][: latest.limit], "n": len(alarms)}

    def stages(self, wanted: Part) -> dict[str, Any]:
        """Return what was left of the latest requests from stage to stage.

        Nothing where no request has a second stage, or none was recorded.
        """
        found: list[EventColumns] = []
        if log_summary(self.log).n_later:
            with closing(iter_newest(self.log, until=wanted.until)) as parts:
                for _, part in parts:
                    if part is None or not len(part):
                        continue
                    since = wanted.since or 0.0
                    found.append(part.take(part.having(wanted.labels) & (part.times >= since)))
                    if part.times[0] < since or sum(map(len, found)) >= _MOST_SCANNED:
                        break
        if not found:
            return {"stages": [], "requests": 0}
        whole = EventColumns.joined(found[::-1])
        stages = stages_of(whole, by=wanted.by, level=self.confidence_level)
        return {"stages": stages, "requests": max((one["requests"] for one in stages), default=0)}

    def retrievals(self, wanted: Newest) -> dict[str, Any]:
        """Return one page; ``next`` is the ``before`` of the following one, None after the last.

        The work of a page is bounded: where few retrievals match, a page may be short or empty
        and ``next`` goes on.
        """
        since = -math.inf if wanted.since is None else wanted.since
        until = math.inf if wanted.until is None else wanted.until
        found: list[dict[str, Any]] = []
        scanned = documents = 0

        def matching(part: EventColumns) -> npt.NDArray[np.bool_]:
            keep = part.having(wanted.labels) & (part.times >= since) & (part.times < until)
            if wanted.group is not None and keep.any():
                tags = [tag[wanted.by == "style"] or "" for tag in part.tags]
                hits = np.array([tag == wanted.group for tag in tags])[part.tag_codes]
                if wanted.first:  # that document has to stand at rank 1
                    hits &= part.ranks == 1
                keep &= np.bincount(part.rows[hits], minlength=len(part)) > 0
            return keep

        with closing(iter_newest(self.log, before=wanted.before, until=wanted.until)) as parts:
            for n_parts, (start, part) in enumerate(parts, 1):
                if part is None:
                    continue
                for row in np.flatnonzero(matching(part))[::-1].tolist():
                    size = int(part.offsets[row + 1] - part.offsets[row])
                    if len(found) == wanted.limit or (found and documents + size > _MOST_DOCUMENTS):
                        return {"retrievals": found, "next": found[-1]["number"]}
                    documents += size
                    found.append(_plain(part, row))
                if len(part) and part.times[0] < since:
                    break
                scanned += len(part)
                if scanned >= _MOST_SCANNED or n_parts >= _MOST_PARTS:
                    return {"retrievals": found, "next": start if start > 1 else None}
        return {"retrievals": found, "next": None}
