"""Counts over time, read from the rollups of a log: fast however many retrievals there were."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError
from rag_sourcebias.io.damage import sound
from rag_sourcebias.monitor.log.schema import WIDTHS, reading
from rag_sourcebias.monitor.log.tables import labels_of, microseconds, noted_of, tags_of

__all__ = ["NotCountedError", "Rollups", "read_rollups", "rollup_extent"]


class NotCountedError(DataError):
    """A label is asked for by a value that is kept with retrievals, and not counted by."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Rollups:
    """Counts per time step and group: T steps, G groups.

    Each retrieval counts 1 over its sampling probability, so that sampled logs estimate the same
    totals without bias.

    Parameters
    ----------
    starts : float64 array of shape (T,)
        Start of each step in which something was retrieved, in seconds since 1970, rising.
    groups : tuple of str, length G
        Sources or styles, sorted; "" are the documents for which it is unknown.
    documents, first, exposure : float64 arrays of shape (T, G)
        Documents retrieved, those at rank 1, and the sum of 1/log2(rank + 1).
    retrievals, empty : float64 arrays of shape (T,)
        Retrievals, and those that returned nothing.
    kept : int64 array of shape (T,)
        Retrievals that were recorded: the number of independent choices behind a step.
    """

    starts: npt.NDArray[np.float64]
    groups: tuple[str, ...]
    documents: npt.NDArray[np.float64]
    first: npt.NDArray[np.float64]
    exposure: npt.NDArray[np.float64]
    retrievals: npt.NDArray[np.float64]
    empty: npt.NDArray[np.float64]
    kept: npt.NDArray[np.int64]

    def shares(self) -> npt.NDArray[np.float64]:
        """Share of the exposure of each group, shape (T, G); NaN where nothing was retrieved."""
        total = self.exposure.sum(axis=1, keepdims=True)
        with np.errstate(invalid="ignore"):
            return np.asarray(self.exposure / total)


def read_rollups(
    path: str | Path,
    *,
    since: float | None = None,
    until: float | None = None,
    labels: Mapping[str, str] | None = None,
    by: Literal["source", "style"] = "source",
    step: int = 60,
) -> Rollups:
    """Return counts per time step.

    Parameters
    ----------
    path : str or Path
    since, until : float or None
        Seconds since 1970. What is counted in minutes (10 minutes, hours, UTC days, where ``step``
        is a multiple of that: reading is faster) is taken as a whole when it ends after ``since``
        and begins before ``until``.
    labels : mapping of str to str, optional
        Only retrievals with all of these labels.
    by : {"source", "style"}
    step : int
        Seconds; a multiple of 60.

    Raises
    ------
    DataError
        If an option is not one of these, there is no such file, or it is not an event log or
        cannot be read.
    NotCountedError
        If a value of a label is kept with its retrievals only.
    UnsupportedVersionError
        If it has another version than this release writes.
    """
    if by not in ("source", "style"):
        raise DataError(f"by={by!r} is neither 'source' nor 'style'")
    if step < 1 or step % WIDTHS[0]:
        raise DataError(f"step must be a multiple of {WIDTHS[0]} seconds, got {step}")
    step = int(step)
    width = max(w for w in WIDTHS if step % w == 0)
    low = microseconds(since, 0) // 1_000_000 // width * width
    high = -(-microseconds(until, 2**62) // 1_000_000)
    with reading(path) as database, sound(path, "a sound event log"):
        database.execute("BEGIN")  # both tables at one moment
        chosen = ""
        if labels is not None:
            wanted, known = labels.items(), labels_of(database)
            codes = [str(i) for i, one in enumerate(known) if wanted <= one.items()]
            if not codes:
                _refuse_event_labels(database, labels)
            chosen = f"AND labels IN ({','.join(codes)})"
        where = f"WHERE width = {width} AND start >= ? AND start < ? {chosen}"
        cells, traffic = (
            database.execute(
                f"SELECT start / {step} * {step} AS s, {sums} {where} GROUP BY {keys}", (low, high)
            ).fetchall()
            for sums, keys in (
                ("tag, sum(documents), sum(first), sum(exposure) FROM rollups", "s, tag"),
                ("sum(retrievals), sum(empty), sum(kept) FROM traffic", "s ORDER BY s"),
            )
        )
        names = [tag[by == "style"] or "" for tag in tags_of(database)]
        return _table(cells, traffic, names)


def rollup_extent(path: str | Path) -> dict[int, tuple[int, int]]:
    """Return the time that rollups cover, by their width in seconds.

    Returns
    -------
    dict of int to (int, int)
        Start of the first, and end of the last, in seconds since 1970; empty for an empty log.

    Raises
    ------
    DataError, UnsupportedVersionError
        As :func:`read_rollups`.
    """
    found: dict[int, tuple[int, int]] = {}
    with reading(path) as database, sound(path, "a sound event log"):
        database.execute("BEGIN")
        for width in WIDTHS:
            ends = [
                database.execute(
                    f"SELECT {end}(start) FROM traffic WHERE width = ?", (width,)
                ).fetchone()[0]
                for end in ("min", "max")
            ]
            if None not in ends:
                found[width] = (ends[0], ends[1] + width)
    return found


def _refuse_event_labels(database: sqlite3.Connection, labels: Mapping[str, str]) -> None:
    for name in sorted(set(labels) & set(noted_of(database, "alone"))):
        raise NotCountedError(
            f"the value {labels[name]!r} of label {name!r} is kept with its retrievals and has no "
            "counts over time; read_events(labels=…) finds them"
        )


def _table(
    cells: list[tuple[float, ...]], traffic: list[tuple[float, ...]], names: list[str]
) -> Rollups:
    starts, retrievals, empty, kept = np.array(traffic, np.float64).reshape(-1, 4).T
    rows = np.array(cells, np.float64).reshape(-1, 5)
    groups = sorted({names[int(tag)] for tag in rows[:, 1]})
    column = np.array([groups.index(n) if n in groups else 0 for n in names], np.intp)
    at = (np.searchsorted(starts, rows[:, 0]), column[rows[:, 1].astype(np.intp)])
    tables = np.zeros((3, len(starts), len(groups)))
    for table, values in zip(tables, rows[:, 2:].T, strict=True):
        np.add.at(table, at, values)
    return Rollups(
        starts=starts,
        groups=tuple(groups),
        documents=tables[0],
        first=tables[1],
        exposure=tables[2],
        retrievals=retrievals,
        empty=empty,
        kept=kept.astype(np.int64),
    )
