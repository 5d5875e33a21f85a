"""Items that a judge scored and people labelled in part."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError
from rag_sourcebias.types.arrays import BoolArray, FloatArray

__all__ = ["JudgedItems"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class JudgedItems:
    """Human and judge values of items, one row per item.

    Parameters
    ----------
    ids : tuple of str
        Unique.
    human : float64 array of shape (n,)
        NaN where nobody labelled the item; otherwise finite.
    judge : float64 array of shape (n,)
        NaN where the judge gave no usable answer; otherwise finite.
    groups : tuple of str or None
        What is compared, such as the system or the source each item comes from.
    clusters : tuple of str or None
        Items of one cluster (a question answered by several systems) may depend on each other.
    strata : tuple of str or None
        Strata within which the labelled items were drawn.

    Raises
    ------
    DataError
        If columns differ in length, an id is repeated, or a value is infinite.
    """

    ids: tuple[str, ...]
    human: FloatArray
    judge: FloatArray
    groups: tuple[str, ...] | None = None
    clusters: tuple[str, ...] | None = None
    strata: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        n = len(self.ids)
        for name in ("human", "judge"):
            values = np.asarray(getattr(self, name), dtype=np.float64)
            if values.shape != (n,):
                raise DataError(f"{name} values of shape {values.shape} for {n} ids")
            bad = np.flatnonzero(np.isinf(values))
            if len(bad):
                raise DataError(
                    f"{name} value of item {self.ids[bad[0]]!r} is infinite; use NaN for missing"
                )
            object.__setattr__(self, name, values)
        for name in ("groups", "clusters", "strata"):
            column = getattr(self, name)
            if column is not None and len(column) != n:
                raise DataError(f"{len(column)} {name} for {n} ids")
        if len(set(self.ids)) < n:
            seen: set[str] = set()
            again = next(i for i in self.ids if i in seen or seen.add(i))  # type: ignore[func-returns-value]
            raise DataError(f"item {again!r} occurs twice; keep one row per item")

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def labeled(self) -> BoolArray:
        """Which items have a human label."""
        return ~np.isnan(self.human)

    @property
    def judged(self) -> BoolArray:
        """Which items have a judge value."""
        return ~np.isnan(self.judge)

    @property
    def n_labeled(self) -> int:
        """Items with a human label, whether or not the judge answered."""
        return int(np.count_nonzero(self.labeled))

    @property
    def n_unlabeled(self) -> int:
        """Items without a human label."""
        return len(self) - self.n_labeled

    @property
    def n_judge_missing(self) -> int:
        """Items for which the judge gave no usable answer, labelled or not."""
        return int(np.count_nonzero(np.isnan(self.judge)))

    def take(self, rows: npt.NDArray[np.integer[Any]] | BoolArray) -> JudgedItems:
        """Return some of the items, chosen by index or by mask."""
        index = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows

        def pick(column: tuple[str, ...] | None) -> tuple[str, ...] | None:
            return None if column is None else tuple(column[i] for i in index)

        return replace(
            self,
            ids=tuple(self.ids[i] for i in index),
            human=self.human[index],
            judge=self.judge[index],
            groups=pick(self.groups),
            clusters=pick(self.clusters),
            strata=pick(self.strata),
        )
