"""One set of labels: retrievals in, observations tested, alarms out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rag_sourcebias.errors import DataError
from rag_sourcebias.monitor.alarms import Raised
from rag_sourcebias.monitor.baseline_tests import BaselineTests
from rag_sourcebias.monitor.baselines import PoolShare
from rag_sourcebias.monitor.exposure_rows import exposure_rows
from rag_sourcebias.monitor.label_totals import LabelTotals
from rag_sourcebias.monitor.sequential.aggregation import Aggregator, Observation
from rag_sourcebias.monitor.skew_settings import SkewSettings
from rag_sourcebias.types.arrays import FloatArray

__all__ = ["LabelWatch", "RaisedAt", "Retrieval"]


@dataclass(frozen=True, slots=True)
class Retrieval:
    """What is left of an event: columns of its documents, when it was, whom it belongs with."""

    codes: tuple[int, ...]
    at: float
    key: str | None


@dataclass(frozen=True, slots=True)
class RaisedAt:
    """An alarm, with observations and the sums of all columns and baselines at that moment."""

    raised: Raised
    at: float
    n: int
    total: FloatArray
    null: FloatArray | None


class LabelWatch:
    """Totals, aggregation, reference window and tests of one set of labels.

    Not thread-safe: the monitor sees to that.
    """

    def __init__(self, settings: SkewSettings) -> None:
        self.settings = settings
        self.last_at: float | None = None
        self.groups = settings.new_groups()
        values = self.groups.width * len(settings.measures)
        self.totals = LabelTotals(width=self.groups.width, values=values)
        self.tests = BaselineTests(settings, self.groups)
        self.aggregator: Aggregator | None = None
        if settings.aggregate is not None:
            self.aggregator = settings.aggregate.aggregator(values)

    def add(self, batch: Sequence[Retrieval]) -> list[RaisedAt]:
        """Take retrievals, at least one, in order."""
        self.last_at = max(batch[-1].at, self.last_at or batch[-1].at)
        rows = exposure_rows(
            [code for item in batch for code in item.codes],
            [len(item.codes) for item in batch],
            width=self.groups.width,
            attention=self.settings.attention,
            shown=self.settings.shown,
        )
        self.totals.count(rows)
        parts = {"exposure": rows.share, "first": rows.first}
        values = np.concatenate([parts[name] for name in self.settings.measures], axis=1)
        null: FloatArray | None = None
        if isinstance(self.settings.baseline, PoolShare):
            null = np.tile(rows.pool, (1, len(self.settings.measures)))
        kept = np.flatnonzero(rows.shown)
        if self.aggregator is None:
            at = [batch[i].at for i in kept.tolist()]
            return self._observe(values[kept], None if null is None else null[kept], at)
        raised = []
        for i in kept.tolist():
            raised += self._aggregated(batch[i], values[i], None if null is None else null[i])
        return raised

    def _aggregated(
        self, item: Retrieval, values: FloatArray, null: FloatArray | None
    ) -> list[RaisedAt]:
        if self.aggregator is None or item.key is None:
            return self._observe(values[None], None if null is None else null[None], [item.at])
        ends = None if null is None else null.tolist()
        return self._closed(
            self.aggregator.add(item.key, values.tolist(), now=item.at, null=ends), item.at
        )

    def close(self, now: float | None = None) -> list[RaisedAt]:
        """Test what is being aggregated if its time is over; all of it without a time."""
        if self.aggregator is None or self.last_at is None:
            return []
        if now is None:
            return self._closed(self.aggregator.flush(), self.last_at)
        self.last_at = max(self.last_at, now)
        return self._closed(self.aggregator.close(now=now), now)

    def _closed(self, done: list[Observation], at: float) -> list[RaisedAt]:
        if not done:
            return []
        nulls = [o.null for o in done if o.null is not None]
        return self._observe(
            np.array([o.values for o in done]), np.array(nulls) if nulls else None, [at] * len(done)
        )

    def _observe(
        self, values: FloatArray, null: FloatArray | None, at: Sequence[float]
    ) -> list[RaisedAt]:
        before = self.totals.n
        path, nulls = self.totals.observe(values, null)
        return [
            RaisedAt(
                found,
                at[found.row],
                before + found.row + 1,
                path[found.row],
                None if nulls is None else nulls[found.row],
            )
            for found in self.tests.observe(values, null)
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return the state as plain JSON values."""
        return {
            "last_at": self.last_at,
            "groups": list(self.groups.names),
            "totals": self.totals.to_dict(),
            "tests": self.tests.to_dict(),
            "aggregator": None if self.aggregator is None else self.aggregator.to_dict(),
        }

    def restore(self, data: Mapping[str, Any]) -> None:
        """Take a state that :meth:`to_dict` returned.

        Raises
        ------
        DataError
            If it does not fit the settings.
        UnsupportedVersionError
            If another release wrote it.
        """
        try:
            self.groups.restore(data["groups"])
            self.totals.restore(data["totals"])
            self.tests.restore(data["tests"])
            self.last_at = data["last_at"]
            if self.aggregator is not None:
                now = 0.0 if self.last_at is None else float(self.last_at)
                self.aggregator = Aggregator.from_dict(data["aggregator"], now=now)
        except (KeyError, TypeError) as error:
            raise DataError(f"stored state of a monitor: {error!r:.80}") from None
