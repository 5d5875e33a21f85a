"""Tests of one set of labels against its baseline, and the window that a baseline may need."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from rag_sourcebias.errors import DataError
from rag_sourcebias.monitor.alarms import AlarmRules, Raised
from rag_sourcebias.monitor.baselines import CorpusShare, PoolShare, ReferenceWindow
from rag_sourcebias.monitor.group_codes import GroupCodes
from rag_sourcebias.monitor.label_sets import OTHER
from rag_sourcebias.monitor.sequential.null import NullRange
from rag_sourcebias.monitor.sequential.reference import reference_window
from rag_sourcebias.monitor.skew_settings import SkewSettings
from rag_sourcebias.types.arrays import FloatArray

__all__ = ["BaselineTests"]


class BaselineTests:
    """Hold observations against the baseline of the settings.

    Attributes
    ----------
    columns : int64 array of shape (T,)
        Columns of the observations that are tested.
    rules : AlarmRules or None
        None without a baseline, and until the reference window is full.
    window : list of float64 arrays of shape (T,)
        Observations of a reference window that is not full.
    reference : float64 array of shape (T,), or None
        Means of the frozen window.
    """

    def __init__(self, settings: SkewSettings, groups: GroupCodes) -> None:
        self._settings = settings
        self.columns = settings.tested(groups)
        self.reference: FloatArray | None = None
        self.window: list[FloatArray] = []
        self.rules: AlarmRules | None = None
        baseline = settings.baseline
        if isinstance(baseline, CorpusShare):
            shares = [baseline.shares.get(name, 0.0) for name in groups.names]
            other = baseline.shares.get(OTHER, 0.0)
            share = np.tile([*shares, other], len(settings.measures))[self.columns]
            self.rules = self._new_rules(NullRange(share, share), settings.confidence_level)
        elif isinstance(baseline, PoolShare):
            self.rules = self._new_rules(None, settings.confidence_level)

    def _new_rules(self, null: NullRange | None, level: float) -> AlarmRules:
        n = len(self.columns)
        return AlarmRules(
            columns=n,
            null=null,
            confidence_level=1 - (1 - level) / n,
            change_run_length=self._settings.change_run_length,
            change_window=self._settings.change_window,
        )

    def observe(self, values: FloatArray, null: FloatArray | None) -> list[Raised]:
        """Take observations of all columns, with their own baselines; return the alarms."""
        tested = values[:, self.columns]
        start = self._take_reference(tested)
        if self.rules is None or start >= len(tested):
            return []
        ends = None if null is None else null[start:, self.columns]
        raised = self.rules.update(tested[start:], ends)
        return [replace(found, row=start + found.row) for found in raised]

    def _take_reference(self, values: FloatArray) -> int:
        """Return how many observations still belonged to the reference window."""
        settings, baseline = self._settings, self._settings.baseline
        if not isinstance(baseline, ReferenceWindow) or self.rules is not None:
            return 0
        taken = values[: baseline.n - len(self.window)]
        self.window.extend(taken.copy())
        if len(self.window) == baseline.n:
            level = 1 - (1 - settings.confidence_level) / len(self.columns)
            found = reference_window(np.array(self.window), confidence_level=level)
            self.reference, self.window = found.mean, []
            error = (1 - found.stream_level) * len(self.columns)
            self.rules = self._new_rules(found.null, 1 - error)
        return len(taken)

    def to_dict(self) -> dict[str, Any]:
        """Return the state as plain JSON values."""
        return {
            "window": [row.tolist() for row in self.window],
            "reference": None if self.reference is None else self.reference.tolist(),
            "rules": None if self.rules is None else self.rules.to_dict(),
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
        self.window = [np.array(row, np.float64) for row in data["window"]]
        reference, rules = data["reference"], data["rules"]
        self.reference = None if reference is None else np.array(reference, np.float64)
        self.rules = None if rules is None else AlarmRules.from_dict(rules)
        rows = [*self.window, *([] if self.reference is None else [self.reference])]
        if any(row.shape != self.columns.shape for row in rows):
            raise DataError("the stored reference window does not fit the groups")
        if self.rules is not None and self.rules.test.groups != len(self.columns):
            raise DataError("the stored tests do not fit the groups")
