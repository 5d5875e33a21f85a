"""All sets of labels of a monitor: events in, alarms and snapshots out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import attrgetter, itemgetter
from typing import Any

from rag_sourcebias.errors import DataError
from rag_sourcebias.instrument.events import RetrievalEvent
from rag_sourcebias.instrument.exposure import ExposureCounts
from rag_sourcebias.monitor.label_sets import Key, LabelSets, short_text
from rag_sourcebias.monitor.label_watch import LabelWatch, Retrieval
from rag_sourcebias.monitor.losses import Losses
from rag_sourcebias.monitor.sequential.state import read_state, write_state
from rag_sourcebias.monitor.skew_settings import SkewSettings
from rag_sourcebias.monitor.skew_snapshot import alarm_of, snapshot_of
from rag_sourcebias.types.monitor import Alarm, MonitorSnapshot

__all__ = ["SkewState"]

_KIND = "skew-monitor"
_VERSION = 2  # 1 had no counts by rank, and changes that did not restart


class SkewState:
    """One :class:`LabelWatch` for each set of labels; not thread-safe.

    Parameters
    ----------
    settings : SkewSettings
    losses : Losses
        Counts events that cannot be read.
    """

    def __init__(self, settings: SkewSettings, losses: Losses) -> None:
        self.settings, self._losses = settings, losses
        self._sets = LabelSets(settings.labels, most=settings.max_label_sets)
        self._watches: dict[Key, LabelWatch] = {}
        self._name_of = attrgetter(settings.by)
        self._key = None if settings.aggregate is None else settings.aggregate.key
        self._bad_tags = 0

    def add(
        self, batch: Sequence[tuple[RetrievalEvent, float | None]], *, offset: float
    ) -> list[Alarm]:
        """Take events with their Unix times; ``offset`` turns monotonic times into such."""
        parts: dict[Key, list[Retrieval]] = {}
        for event, at in batch:
            try:
                key = self._sets.key(event.labels)
                self._bad_tags += event.bad_tags
                item = self._read(key, event, offset + event.monotonic if at is None else at)
                parts.setdefault(key, []).append(item)
            except Exception as error:  # noqa: BLE001 - a broken event costs itself only
                self._losses.note("monitor could not read the event", error=error)
        alarms: list[Alarm] = []
        for key, items in parts.items():
            try:
                watch = self._watches[key]
                alarms += [alarm_of(watch, dict(key), found) for found in watch.add(items)]
            except Exception as error:  # noqa: BLE001 - nothing may reach the application
                self._losses.note("monitor failed", n=len(items), error=error)
        return sorted(alarms, key=attrgetter("at"))  # wherever one batch ends and the next begins

    def _read(self, key: Key, event: RetrievalEvent, at: float) -> Retrieval:
        if not math.isfinite(at):
            raise DataError(f"the time of an event must be a finite number, got {at}")
        watch = self._watches.get(key)
        if watch is None:
            watch = self._watches[key] = LabelWatch(self.settings)
        tags = event.tags[: self.settings.max_documents]
        try:
            codes = tuple(map(watch.groups.__getitem__, map(self._name_of, tags)))
        except Exception:  # noqa: BLE001 - one of them is no tag, whatever it is instead
            codes = tuple(self._code(watch, tag) for tag in tags)
        together: str | None = None
        if self._key is not None:
            together = event.query_hash if self._key == "query" else event.labels.get(self._key)
        return Retrieval(codes, at, None if together is None else short_text(together))

    def _code(self, watch: LabelWatch, tag: object) -> int:
        try:
            return watch.groups[self._name_of(tag)]
        except Exception:  # noqa: BLE001 - as above
            self._bad_tags += 1
            return watch.groups[None]

    def close(self, now: float | None = None) -> list[Alarm]:
        """Test what is being aggregated if its time is over; all of it without a time."""
        return [
            alarm_of(watch, dict(key), found)
            for key, watch in self._watches.items()
            for found in watch.close(now)
        ]

    def snapshots(self) -> tuple[MonitorSnapshot, ...]:
        """Return one snapshot for each set of labels, in alphabetical order."""
        lost = self._losses.by_reason
        return tuple(
            replace(
                snapshot_of(w, dict(key), lost),
                overflowed=dict(self._sets.overflowed),
                bad_tags=self._bad_tags,
            )
            for key, w in sorted(self._watches.items(), key=itemgetter(0))
        )

    def counts(self, labels: Mapping[str, str]) -> ExposureCounts:
        """Return the counts of a set of labels; errors as of ``SkewMonitor.counts``."""
        watch = self._watches[self._found(labels)]
        return watch.totals.counts(watch.groups.names)

    def reset(self, labels: Mapping[str, str] | None) -> None:
        """Forget everything, or one set of labels."""
        if labels is None:
            for key in list(self._watches):
                self._sets.forget(key)
            self._watches.clear()
        else:
            key = self._found(labels)
            self._sets.forget(key)
            del self._watches[key]

    def _found(self, labels: Mapping[str, str]) -> Key:
        for key in self._watches:
            if dict(key) == dict(labels):
                return key
        known = [dict(key) for key in sorted(self._watches)]
        raise DataError(f"no retrieval with labels {dict(labels)}; there are {known!r:.200}")

    def to_dict(self) -> dict[str, Any]:
        """Return settings and state as plain JSON values."""
        data = write_state(_KIND, self.settings.to_plain(), {}, version=_VERSION)
        data["state"]["overflowed"] = dict(self._sets.overflowed)
        data["state"]["bad_tags"] = self._bad_tags
        data["state"]["watches"] = [[dict(k), w.to_dict()] for k, w in self._watches.items()]
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], losses: Losses) -> SkewState:
        """Go on from what :meth:`to_dict` returned; errors as of ``SkewMonitor.from_dict``."""
        settings, stored = read_state(data, _KIND, version=_VERSION)
        state = cls(SkewSettings.from_plain(settings), losses)
        try:
            for name, n in stored.get("overflowed", {}).items():  # 0.1 did not count them
                state._sets.count([str(name)], int(n))
            state._bad_tags = int(stored.get("bad_tags", 0))
            for labels, kept in stored["watches"]:
                key = tuple(labels.items())
                state._sets.add(key)
                state._watches[key] = watch = LabelWatch(state.settings)
                watch.restore(kept)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            if isinstance(error, DataError):
                raise
            raise DataError(f"stored state of a monitor: {error!r:.80}") from None
        return state
