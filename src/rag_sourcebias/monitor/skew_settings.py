"""What a monitor of skew was asked to watch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError
from rag_sourcebias.inference.quantiles import check_level
from rag_sourcebias.measures.exposure import attention_weights
from rag_sourcebias.monitor.aggregate import Aggregation
from rag_sourcebias.monitor.baselines import Baseline, CorpusShare, PoolShare, baseline_of
from rag_sourcebias.monitor.group_codes import GroupCodes
from rag_sourcebias.monitor.tag_errors import TagErrors, tag_errors_of
from rag_sourcebias.types.monitor import Measure

__all__ = ["SkewSettings"]


@dataclass(frozen=True, kw_only=True)
class SkewSettings:
    """Settings of a monitor, checked; parameters as of ``SkewMonitor``."""

    by: Literal["source", "style"] = "source"
    groups: tuple[str, ...] | None = None
    baseline: Baseline | None = None
    browsing: str = "dcg"
    measures: tuple[Measure, ...] = ("exposure", "first")
    confidence_level: float = 0.95
    labels: tuple[str, ...] = ("collection",)
    max_label_sets: int = 100
    max_groups: int = 20
    max_documents: int = 1_000
    aggregate: Aggregation | None = None
    change_run_length: float | None = None
    change_window: int = 1_000
    tag_errors: TagErrors | None = None

    def __post_init__(self) -> None:
        if self.by not in ("source", "style"):
            raise DataError(f"by={self.by!r} is neither 'source' nor 'style'")
        known = get_args(Measure)
        if not self.measures or not set(self.measures) <= set(known):
            raise DataError(f"measures {list(self.measures)} must be some of {list(known)}")
        if len(set(self.measures)) != len(self.measures):
            raise DataError(f"measures {list(self.measures)} name one twice")
        check_level(self.confidence_level)
        if self.max_documents < 1:
            raise DataError(f"max_documents must be at least 1, got {self.max_documents}")
        self._check_groups()
        self._check_optional()
        self.new_groups()
        _ = self.attention

    def _check_groups(self) -> None:
        if self.groups is not None and (isinstance(self.groups, str) or not self.groups):
            raise DataError(f"groups must be a sequence of names, got {self.groups!r}")
        if isinstance(self.baseline, CorpusShare):
            strange = sorted(set(self.groups or ()) - set(self.baseline.shares))
            if strange:
                raise DataError(f"groups {strange} have no share in the baseline")

    def _check_optional(self) -> None:
        if self.change_run_length is not None and self.baseline is None:
            raise DataError("change_run_length needs a baseline: a change is one away from it")
        if self.change_run_length is not None and not 1 < self.change_run_length < np.inf:
            raise DataError(f"change_run_length must be above 1, got {self.change_run_length}")
        if not 2 <= self.change_window <= 100_000:
            raise DataError(
                f"change_window must be 2 to 100000 observations, got {self.change_window}"
            )
        if self.aggregate is not None:
            self.aggregate.aggregator(1)  # says what is wrong with it
        if self.tag_errors is not None:
            self._check_tag_errors(self.tag_errors)

    def _check_tag_errors(self, errors: TagErrors) -> None:
        if "exposure" not in self.measures:
            raise DataError("tag_errors corrects shares of exposure: measures must have 'exposure'")
        known = self.told_apart
        lost = [] if known is None else sorted(set(errors.groups) - set(known))
        if lost:
            raise DataError(f"groups {lost} of tag_errors are not told apart: name them in groups")

    @cached_property
    def attention(self) -> npt.NDArray[np.float64]:
        """Weight of each rank."""
        return attention_weights(self.browsing, self.max_documents)

    @property
    def shown(self) -> int | None:
        """Documents of an event that were shown; None for all."""
        return self.baseline.shown if isinstance(self.baseline, PoolShare) else None

    @property
    def told_apart(self) -> tuple[str, ...] | None:
        """Groups with columns of their own; None for those that come first."""
        if self.groups is None and isinstance(self.baseline, CorpusShare):
            return tuple(self.baseline.shares)
        return self.groups

    def new_groups(self) -> GroupCodes:
        """Return the columns of a set of labels."""
        return GroupCodes(self.told_apart, most=self.max_groups)

    def tested(self, groups: GroupCodes) -> npt.NDArray[np.int64]:
        """Return the columns that are tested, measure after measure."""
        wanted = self.told_apart
        columns = range(groups.width) if wanted is None else [groups[name] for name in wanted]
        many = len(self.measures)
        return np.array([groups.width * m + c for m in range(many) for c in columns], np.int64)

    def to_plain(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        data: dict[str, Any] = {name: getattr(self, name) for name in self.__dataclass_fields__}
        if self.baseline is not None:
            data["baseline"] = self.baseline.to_plain()
        if self.tag_errors is not None:
            data["tag_errors"] = self.tag_errors.to_plain()
        if self.aggregate is not None:
            fields = self.aggregate.__dataclass_fields__
            data["aggregate"] = {name: getattr(self.aggregate, name) for name in fields}
        return {k: list(v) if isinstance(v, tuple) else v for k, v in data.items()}

    @classmethod
    def from_plain(cls, data: Mapping[str, Any]) -> SkewSettings:
        """Return the settings that :meth:`to_plain` described.

        Raises
        ------
        DataError
            If they are none.
        """
        values: dict[str, Any] = {}
        for name, value in data.items():
            values[name] = tuple(value) if isinstance(value, list) else value
        values["baseline"] = baseline_of(data.get("baseline"))
        values["tag_errors"] = tag_errors_of(data.get("tag_errors"))
        try:
            if data.get("aggregate") is not None:
                values["aggregate"] = Aggregation(**data["aggregate"])
            return cls(**values)
        except TypeError as error:
            raise DataError(f"stored settings of a monitor: {error!s:.80}") from None
