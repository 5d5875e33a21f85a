"""Parquet files of retrievals that left the log, one folder per day, for DuckDB and others."""

from __future__ import annotations

import json
import os
import re
import sqlite3
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from rag_sourcebias.errors import DataError
from rag_sourcebias.io.private import PRIVATE, create_file, create_folder
from rag_sourcebias.io.pyarrow_modules import pyarrow_modules
from rag_sourcebias.monitor.log.columns import EventColumns
from rag_sourcebias.monitor.log.segments import Row, decoded
from rag_sourcebias.monitor.log.tables import labels_of, state_of, tags_of

__all__ = ["archive_segments", "check_archive", "write_parquet"]

_NAME = re.compile(r"events-\w+-\d+-(\d+)\.parquet")
_DAY = 86_400


def check_archive(folder: str | Path) -> Path:
    """Return the folder, after making sure that Parquet can be written at all.

    Raises
    ------
    MissingExtraError
        If pyarrow is not installed.
    """
    pyarrow_modules("an archive of an event log")
    return Path(folder)


def archive_segments(
    database: sqlite3.Connection, folder: Path, rows: list[Row], *, file_mode: int = PRIVATE
) -> None:
    """Write rows of ``segments`` as Parquet, inside the transaction that removes them.

    What an earlier attempt has written before it was interrupted is not written again.
    """
    log = f"{state_of(database).log:010x}"
    written = (path.name for path in folder.glob(f"date=*/events-{log}-*.parquet"))
    done = max((int(m[1]) for name in written if (m := _NAME.fullmatch(name))), default=0)
    labels, tags = labels_of(database), tags_of(database)
    parts = [decoded(row, labels, tags) for row in rows]
    columns = EventColumns.joined(parts)
    columns = columns.take(columns.numbers > done)
    days = columns.times // _DAY
    for day in np.unique(days):
        write_parquet(columns.take(days == day), folder, log=log, file_mode=file_mode)


def write_parquet(
    columns: EventColumns, folder: Path, *, log: str, file_mode: int = PRIVATE
) -> Path:
    """Write the retrievals of one UTC day to ``date=YYYY-MM-DD/events-….parquet``.

    The name tells log, first and last number, and is given when the file is complete.
    Columns: ``number``, ``time`` (UTC), ``weight``, ``labels`` (JSON), ``query_id``, the lists
    ``sources``, ``styles`` and ``doc_ids``, best document first, and ``event_labels`` (JSON):
    labels such as the session, which go before ``labels``. In DuckDB::

        SELECT source, count(*) FROM (SELECT unnest(sources) AS source
        FROM read_parquet('folder/*/*.parquet', hive_partitioning = true)) GROUP BY source

    Raises
    ------
    DataError
        If there is no retrieval.
    OSError
        If the file cannot be written.
    """
    if not len(columns):
        raise DataError("there is no retrieval to write")
    pa, pq = pyarrow_modules("an archive of an event log")
    sources, styles = (
        pa.array(names, pa.string()).take(pa.array(columns.tag_codes))
        for names in zip(*columns.tags, strict=True)
    )
    table = {
        "number": pa.array(columns.numbers),
        "time": pa.array(np.rint(columns.times * 1e6).astype(np.int64), pa.timestamp("us", "UTC")),
        "weight": pa.array(columns.weights),
        "labels": pa.DictionaryArray.from_arrays(
            columns.label_codes, pa.array([json.dumps(dict(known)) for known in columns.labels])
        ),
        "query_id": pa.array(columns.query_ids, pa.string()),
        "sources": pa.ListArray.from_arrays(pa.array(columns.offsets, pa.int32()), sources),
        "styles": pa.ListArray.from_arrays(pa.array(columns.offsets, pa.int32()), styles),
    }
    if columns.event_labels:
        rows = range(len(columns))
        own = [{k: str(v[i]) for k, v in columns.event_labels.items() if v[i]} for i in rows]
        table["event_labels"] = pa.array([json.dumps(one) if one else None for one in own])
    if columns.doc_ids is not None:
        ids = pa.array(columns.doc_ids, pa.string())
        table["doc_ids"] = pa.ListArray.from_arrays(pa.array(columns.offsets, pa.int32()), ids)
    day = datetime.fromtimestamp(float(columns.times[0]), UTC).date().isoformat()
    name = f"events-{log}-{columns.numbers[0]}-{columns.numbers[-1]}.parquet"
    target = folder / f"date={day}" / name
    create_folder(target.parent, file_mode)
    part = target.with_suffix(".part")
    create_file(part, file_mode)
    pq.write_table(pa.table(table), part, compression="zstd")
    with part.open("rb") as written:  # the log removes the retrievals next
        os.fsync(written.fileno())
    part.replace(target)
    return target
