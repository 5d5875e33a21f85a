"""Counts per time, labels, source and style, kept up to date as retrievals are written."""

from __future__ import annotations

import json
import sqlite3

import numpy as np

from rag_sourcebias.monitor.log.codes import MOST_TAGS
from rag_sourcebias.monitor.log.columns import Batch
from rag_sourcebias.monitor.log.schema import WIDTHS

__all__ = ["add_to_rollups"]

# One statement for all rows: see schema.py on what every call of SQLite costs.
_ROLLUPS = """
INSERT INTO rollups
SELECT ?1, json_extract(value, '$[0]') / ?1 * ?1,
    json_extract(value, '$[1]'), json_extract(value, '$[2]'),
    sum(json_extract(value, '$[3]')), sum(json_extract(value, '$[4]')),
    sum(json_extract(value, '$[5]'))
FROM json_each(?2) WHERE true GROUP BY 2, 3, 4
ON CONFLICT DO UPDATE SET documents = documents + excluded.documents,
    first = first + excluded.first, exposure = exposure + excluded.exposure
"""
_TRAFFIC = """
INSERT INTO traffic
SELECT ?1, json_extract(value, '$[0]') / ?1 * ?1, json_extract(value, '$[1]'),
    sum(json_extract(value, '$[2]')), sum(json_extract(value, '$[3]')),
    sum(json_extract(value, '$[4]'))
FROM json_each(?2) WHERE true GROUP BY 2, 3
ON CONFLICT DO UPDATE SET retrievals = retrievals + excluded.retrievals,
    empty = empty + excluded.empty, kept = kept + excluded.kept
"""


def add_to_rollups(database: sqlite3.Connection, batch: Batch, *, weight: float) -> None:
    """Add a batch to the rollups of every width, inside the caller's transaction.

    Exposure is the sum of 1/log2(rank + 1), as that of ``ExposureObserver``; every count is
    multiplied by ``weight``.
    """
    starts = batch.times // (WIDTHS[0] * 1_000_000) * WIDTHS[0]
    keys, group = np.unique(starts * 65_536 + batch.label_codes, return_inverse=True)
    lengths = np.fromiter(map(len, batch.tags), np.int64, count=len(batch))
    ends = np.cumsum(lengths)
    ranks = np.arange(1, int(ends[-1]) + 1) - np.repeat(ends - lengths, lengths)
    cells = np.repeat(group, lengths) * MOST_TAGS + np.frombuffer(b"".join(batch.tags), np.uint8)
    documents = np.bincount(cells)
    first = np.bincount(cells[ranks == 1], minlength=len(documents))
    exposure = np.bincount(cells, weights=1 / np.log2(ranks + 1))
    used = np.flatnonzero(documents)
    start, label = keys // 65_536, keys % 65_536
    rollups = [
        *(start[used // MOST_TAGS], label[used // MOST_TAGS], used % MOST_TAGS),
        *(documents[used] * weight, first[used] * weight, exposure[used] * weight),
    ]
    kept, empty = np.bincount(group), np.bincount(group, weights=lengths == 0)
    traffic = [start, label, kept * weight, empty * weight, kept]
    for statement, columns in ((_ROLLUPS, rollups), (_TRAFFIC, traffic)):
        rows = json.dumps(list(zip(*(column.tolist() for column in columns), strict=True)))
        for width in WIDTHS:
            database.execute(statement, (width, rows))
