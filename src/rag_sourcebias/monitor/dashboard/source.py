"""The data of every view, in plain values; knows nothing of HTTP."""

import json
import math
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, Literal
from urllib.parse import parse_qsl

import numpy as np
import numpy.typing as npt

from rag_sourcebias._version import __version__
from rag_sourcebias.core.data import FloatArray
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.infer.means import normal_quantile
from rag_sourcebias.monitor.data import OTHER, Alarm, GroupShare, Measure, MonitorSnapshot
from rag_sourcebias.monitor.follow import LogFollower
from rag_sourcebias.monitor.log.reading import (
    NotCountedError,
    Rollups,
    iter_newest,
    log_summary,
    read_rollups,
    rollup_extent,
)
from rag_sourcebias.monitor.log.schema import WIDTHS, EventColumns, reading

# Values that strict JSON can hold.


def finite(value: Any) -> Any:  # noqa: ANN401 - any plain value
    """Return plain values with None for numbers that are not finite."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): finite(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [finite(item) for item in value]
    return value


def finite_list(array: npt.NDArray[np.float64]) -> list[Any]:
    """Return an array as nested lists, with None for numbers that are not finite."""
    plain = array.astype(object)
    plain[~np.isfinite(array)] = None
    return list(plain.tolist())


# Parameters of a request: strictly read, every mistake named.


_MOST_PARAMETERS = 40  # parameters of one request
_LONGEST = 200  # characters of a value, as of the names that a log keeps
_TIME = re.compile(r"-?[0-9]{1,11}(\.[0-9]{1,9})?")
_WHOLE = re.compile(r"[0-9]{1,15}")


class ParameterError(DataError):
    """A parameter is not what it should be; the message names it and what is accepted."""


class Parameters:
    """The query of a request.

    Parameters
    ----------
    query : bytes
        As it was sent, behind the question mark.
    known : sequence of str
        Names that are accepted; only ``label`` may be repeated.

    Raises
    ------
    ParameterError
        If there are too many, one is unknown, repeated or too long.
    """

    def __init__(self, query: bytes, known: Sequence[str]) -> None:
        try:
            pairs = parse_qsl(
                query.decode("latin-1"), keep_blank_values=True, max_num_fields=_MOST_PARAMETERS
            )
        except ValueError:
            raise ParameterError(f"a request has at most {_MOST_PARAMETERS} parameters") from None
        self._values: dict[str, list[str]] = {}
        for name, value in pairs:
            if name not in known:
                accepted = ", ".join(known) or "none"
                raise ParameterError(f"parameter {name[:40]!a} is unknown; accepted: {accepted}")
            if len(value) > _LONGEST * (2 if name == "label" else 1) + 1:
                raise ParameterError(f"parameter {name} is longer than {_LONGEST} characters")
            self._values.setdefault(name, []).append(value)
        for name, values in self._values.items():
            if len(values) > 1 and name != "label":
                raise ParameterError(f"parameter {name} is given {len(values)} times; give it once")

    def text(self, name: str) -> str | None:
        """Return a value as it is, which may be empty; None without one."""
        values = self._values.get(name)
        return values[0] if values else None

    def choice(self, name: str, choices: Sequence[str]) -> Any:  # noqa: ANN401 - a literal
        """Return one of the choices, the first by default."""
        value = self.text(name)
        if value is None:
            return choices[0]
        if value not in choices:
            raise ParameterError(
                f"parameter {name}={value[:40]!a} must be one of {', '.join(choices)}"
            )
        return value

    def whole(self, name: str, *, low: int, high: int) -> int | None:
        """Return a whole number from low to high; None without one."""
        value = self.text(name)
        if value is None:
            return None
        if not _WHOLE.fullmatch(value) or not low <= int(value) <= high:
            raise ParameterError(
                f"parameter {name}={value[:40]!a} must be a whole number from {low} to {high}"
            )
        return int(value)

    def times(self) -> tuple[float | None, float | None]:
        """Return ``since`` and ``until``, in Unix seconds."""
        since = self._time("since")
        until = self._time("until")
        if since is not None and until is not None and since >= until:
            raise ParameterError("parameter since must be before until")
        return since, until

    def _time(self, name: str) -> float | None:
        value = self.text(name)
        if value is None:
            return None
        if not _TIME.fullmatch(value):
            raise ParameterError(
                f"parameter {name}={value[:40]!a} must be Unix seconds, such as 1767225600 or "
                "1767225600.5"
            )
        return min(float(value), 9.9e10)

    def labels(self) -> dict[str, str] | None:
        """Return the wanted labels, each given as ``label=key=value``; None without any."""
        found: dict[str, str] = {}
        for item in self._values.get("label", ()):
            key, equals, value = item.partition("=")
            if not (key and equals) or max(len(key), len(value)) > _LONGEST:
                raise ParameterError(
                    f"parameter label={item[:40]!a} must be key=value, such as "
                    "label=collection=docs, each of up to 200 characters"
                )
            if found.setdefault(key, value) != value:
                raise ParameterError(f"parameter label asks for two values of {key[:40]!a}")
        return found or None


# Which time steps show a stretch of a log.


NAMED = {"minute": 60, "hour": 3_600, "day": 86_400}
_AUTO, _FEWEST, _IN_A_STEP = 400, 28, 200.0
_MOST = 2_000
_HOUR = 3_600
_DAY = 86_400
_LENGTHS = (
    *(60, 120, 300, 600, 1_200, 1_800),
    *(hours * _HOUR for hours in (1, 2, 3, 6, 12)),
    *(days * _DAY for days in (1, 2, 7, 14, 28, 91, 364)),
)


def chosen_step(
    name: str,
    extent: Mapping[int, tuple[int, int]],
    *,
    since: float | None,
    until: float | None,
) -> int:
    """Return the seconds of a step.

    Parameters
    ----------
    name : str
        "auto" takes the shortest that makes at most 400 steps and is kept for that time (longer
        where few retrievals came), or one
        of :data:`NAMED`.
    extent : mapping of int to (int, int)
        Time that rollups cover, by width; not empty.
    since, until : float or None
        Seconds since 1970 that are asked for.

    Raises
    ------
    ParameterError
        If a named step makes more than 2,000 of them.
    """
    # The finest rollups know best when the log begins, where they go back as far.
    finest = extent[min(extent)][0]
    earlier = (first for width, (first, _) in extent.items() if first < finest // width * width)
    start: float = min(earlier, default=finest)
    end: float = min(last for _, last in extent.values())  # that of the finest width
    start = start if since is None else max(start, since)
    end = end if until is None else min(end, until)
    if name != "auto":
        step = NAMED[name]
        if _steps(start, end, step) > _MOST:
            raise ParameterError(
                f"parameter step={name} makes more than {_MOST:,} steps: ask for a longer step, "
                "or for less time between since and until"
            )
        return step
    for step in _LENGTHS:
        if _steps(start, end, step) <= _AUTO and _is_kept(step, start, extent):
            return step
    return math.ceil((end - start) / (_AUTO - 1) / _DAY) * _DAY


def _steps(start: float, end: float, step: int) -> int:
    return max(math.ceil(end / step) - math.floor(start / step), 0)


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
    n = float(rollups.retrievals.sum())
    if len(starts) <= _FEWEST:
        return step
    time = starts[-1] + step - starts[0]
    most = min(_IN_A_STEP * time / n, time / _FEWEST)
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
    column = [names.index(group if group in large else OTHER) for group in groups]
    merged = np.zeros((2, len(documents), len(names)))
    for table, values in zip(merged, (documents, weights), strict=True):
        np.add.at(table.T, column, values.T)
    return names, merged[0], merged[1]


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
_COUNTS = ("dropped", "overflowed", "event_labels", "odd_sources")
_LOOKED_AT = 20  # segments


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
    size = _size(path)
    if not size:
        nothing: dict[str, Any] = {"since": None, "until": None, "size_bytes": 0, "bad_tags": 0}
        counts: dict[str, Any] = {name: {} for name in _COUNTS}
        return {"name": path.name, "n_written": 0, "n_kept": 0, **nothing, **counts}, [], None
    found = log_summary(path)
    with reading(path) as database:
        latest = database.execute(
            "SELECT substr(documents, 1, 3), typeof(documents) FROM segments "
            "ORDER BY first DESC LIMIT ?",
            (_LOOKED_AT,),
        ).fetchall()
    about = {
        "name": path.name,
        "n_written": found.n_written,
        "n_kept": found.n_kept,
        "since": found.since,
        "until": found.until,
        "size_bytes": size,
        "bad_tags": found.bad_tags,
        **{name: dict(getattr(found, name)) for name in _COUNTS},
    }
    label_sets = sorted(map(dict, found.labels), key=json.dumps)[:_MOST_LABEL_SETS]
    return about, label_sets, _document_ids(latest)


def _size(path: Path) -> int:
    """Return bytes of a log and of the files beside it, 0 where there is no log."""
    total = 0
    for suffix in ("", "-wal"):
        try:
            total += path.with_name(path.name + suffix).stat().st_size
        except FileNotFoundError:
            if not suffix:
                return 0
    return total


def _document_ids(latest: list[tuple[object, str]]) -> str | None:
    """Return how the newest segments keep ids; None where they say nothing of it."""
    for start, kind in latest:
        if kind == "null":
            return "none"
        if kind == "blob":
            return "hashed"
        if start != "[]":  # no document in it, which either way looks like this
            return "plain"
    return None


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

    def overview(self, _: Parameters) -> dict[str, Any]:
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
                "snapshots": [finite(snapshot.to_dict()) for snapshot in snapshots],
            },
            "alarms_active": sum(g.alarm for snapshot in snapshots for g in snapshot.groups),
            "shifts": [finite(alarm.to_dict()) for alarm in self._shifts(snapshots)],
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

    def series(self, parameters: Parameters) -> dict[str, Any]:
        """Return shares of groups over time.

        The share of a step is that of all its rank weights (or first ranks). The 20 groups with
        the most documents are told apart.

        Raises
        ------
        ParameterError
            If the step is too short for the time, or the labels have no counts.
        """
        since, until = parameters.times()
        by: Literal["source", "style"] = parameters.choice("by", ("source", "style"))
        measure: Measure = parameters.choice("measure", ("exposure", "first"))
        step = parameters.choice("step", ("auto", *NAMED))
        labels = parameters.labels()
        extent = rollup_extent(self.log)
        seconds = chosen_step(step, extent, since=since, until=until) if extent else WIDTHS[0]
        read = partial(read_rollups, self.log, since=since, until=until, labels=labels, by=by)
        try:
            rollups = read(step=seconds)
            if step == "auto" and (longer := _readable_step(seconds, rollups)) != seconds:
                rollups = read(step=longer)
                seconds = longer
        except NotCountedError as error:
            raise ParameterError(str(error)) from None
        groups, documents, weights = _largest(
            rollups, rollups.first if measure == "first" else rollups.exposure
        )
        total = weights.sum(axis=1, keepdims=True)
        share = np.divide(weights, total, out=np.full_like(weights, np.nan), where=total > 0)
        wanted = (labels or {}).items()
        chosen = [
            (snapshot, {g.group: g for g in snapshot.groups if g.measure == measure})
            for snapshot in self.snapshots()
            if snapshot.by == by and all(snapshot.labels.get(k, v) == v for k, v in wanted)
        ]
        # baselines by group, where all label sets that are asked for have the same
        levels: dict[str, set[float]] = {}
        for _, known in chosen:
            for name, group in known.items():
                if group.baseline is not None:
                    levels.setdefault(name, set()).add(group.baseline)
        alike = {name: min(values) for name, values in levels.items() if len(values) == 1}
        halves = _half_widths(rollups, groups, chosen, self.confidence_level)
        return {
            "by": by,
            "measure": measure,
            "step_seconds": seconds,
            "starts": rollups.starts.tolist(),
            "groups": list(groups),
            "share": finite_list(share.T),
            "lower": finite_list(np.clip(share.T - halves, 0, 1)),
            "upper": finite_list(np.clip(share.T + halves, 0, 1)),
            "retrievals": rollups.retrievals.tolist(),
            "empty": rollups.empty.tolist(),
            "documents": documents.T.tolist(),
            "confidence_level": self.confidence_level,
            "baseline": alike or None,
        }

    def alarms(self, parameters: Parameters) -> dict[str, Any]:
        """Return the latest alarms, newest first."""
        limit = parameters.whole("limit", low=1, high=1_000) or 100
        alarms = () if self.follower is None else self.follower.monitor.alarms
        return {
            "alarms": [finite(alarm.to_dict()) for alarm in alarms[::-1][:limit]],
            "n": len(alarms),
        }

    def retrievals(self, parameters: Parameters) -> dict[str, Any]:
        """Return one page; ``next`` is the ``before`` of the following one, None after the last.

        The work of a page is bounded: where few retrievals match, a page may be short or empty
        and ``next`` goes on.
        """
        since, until = parameters.times()
        style = parameters.choice("by", ("source", "style")) == "style"
        group = parameters.text("group")
        first = parameters.choice("first", ("0", "1")) == "1"
        labels = parameters.labels() or {}
        before = parameters.whole("before", low=0, high=10**15 - 1)
        limit = parameters.whole("limit", low=1, high=200) or 50
        found: list[dict[str, Any]] = []
        scanned = documents = 0

        def matching(part: EventColumns) -> npt.NDArray[np.bool_]:
            keep = part.having(labels)
            keep &= part.times >= (-math.inf if since is None else since)
            keep &= part.times < (math.inf if until is None else until)
            if group is not None and keep.any():
                of_group = np.array([(tag[style] or "") == group for tag in part.tags])
                hits = of_group[part.tag_codes]
                if first:  # that document has to stand at rank 1
                    hits &= part.ranks == 1
                keep &= np.bincount(part.rows[hits], minlength=len(part)) > 0
            return keep

        with closing(iter_newest(self.log, before=before, until=until)) as parts:
            for n_parts, (start, part) in enumerate(parts, 1):
                if part is None:
                    continue
                for row in np.flatnonzero(matching(part))[::-1].tolist():
                    size = int(part.offsets[row + 1] - part.offsets[row])
                    if len(found) == limit or (found and documents + size > _MOST_DOCUMENTS):
                        return {"retrievals": found, "next": found[-1]["number"]}
                    documents += size
                    found.append(_plain(part, row))
                if since is not None and len(part) and part.times[0] < since:
                    break
                scanned += len(part)
                if scanned >= _MOST_SCANNED or n_parts >= _MOST_PARTS:
                    return {"retrievals": found, "next": start if start > 1 else None}
        return {"retrievals": found, "next": None}
