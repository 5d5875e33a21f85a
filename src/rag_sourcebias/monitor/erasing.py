"""Delete the retrievals of one person or session from everything that a log has written."""

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from rag_sourcebias.core.errors import DataError
from rag_sourcebias.core.private import create_file
from rag_sourcebias.intake.tables import pyarrow_modules
from rag_sourcebias.monitor.follow import read_position, write_position
from rag_sourcebias.observe.labels import OTHER, short_text
from rag_sourcebias.observe.log.journal import blank, journals_of, taking_turns
from rag_sourcebias.observe.log.reading import reading
from rag_sourcebias.observe.log.schema import (
    SEGMENT_COLUMNS,
    Batch,
    EventColumns,
    Row,
    decoder,
    insert_segments,
    labels_of,
    open_for_writing,
    segments_of,
)
from rag_sourcebias.observe.log.writing import decode_line

_ERASED_AT_ONCE = 64  # segments per transaction, so that other writers get their turn
_MERGED = {
    "rollups": ("tag, documents, first, exposure", ("documents", "first", "exposure")),
    "traffic": ("retrievals, empty", ("retrievals", "empty")),
}


def erase_events(
    path: str | Path,
    labels: Mapping[str, str],
    *,
    archive: str | Path | None = None,
    state: str | Path | None = None,
    busy_seconds: float = 60.0,
) -> int:
    """Delete the retrievals that have all of these labels; return how many there were.

    Their bytes are gone from the files afterwards: the log is rewritten, which needs as much room
    again. Where they lay their numbers stay free. Counts over time stay, under the labels that are
    left, as they do when old retrievals go. What an application or a dashboard holds in memory
    meanwhile is written later: stop the dashboard (``monitor serve``) first, and delete again when
    the person is no longer served.

    Parameters
    ----------
    path : str or Path
    labels : mapping of str to str
    archive : str, Path or None
        Folder of the log's Parquet files, from which they are deleted, too.
    state : str, Path or None
        State file of a follower, which loses what it tells apart by these labels.
    busy_seconds : float
        How long to wait for others who use the log.

    Raises
    ------
    DataError
        If no label is given, a value is "other", or a file cannot be read or written; the log,
        the archive and the state come in this order.
    MissingExtraError
        If there is an archive and no pyarrow.
    """
    wanted = {short_text(name): short_text(value) for name, value in labels.items()}
    if not wanted:
        raise DataError("say which retrievals: labels such as {'session': 's1'}")
    for name, value in wanted.items():
        if value == OTHER:
            raise DataError(
                f"label {name!r}: {OTHER!r} stands for all values beyond the cap; name one of them"
            )
    if archive is not None:
        pyarrow_modules("an archive of an event log")
    file = Path(path)
    with reading(file):
        pass  # says what is wrong with it
    try:
        with taking_turns(file, busy_seconds):
            n = _erase_from_log(file, wanted, busy_seconds)
            for journal in journals_of(file):  # what was taken in stays there for a while
                blank(journal, lambda line: _is_meant(line, wanted))
    except (sqlite3.Error, BlockingIOError) as error:
        raise DataError(
            f"event log {file} cannot be rewritten ({error}): stop what reads or writes it, see "
            "that the disk has room for it twice, and delete again"
        ) from error
    if archive is not None:
        n += sum(_erase_from_file(one, wanted) for one in sorted(Path(archive).rglob("*.parquet")))
    if state is not None and Path(state).exists():
        _erase_from_state(Path(state), wanted)
    return n


def _is_meant(line: bytes, wanted: Mapping[str, str]) -> bool:
    try:
        return wanted.items() <= decode_line(line).labels.items()
    except ValueError:  # the first line, or one that is damaged
        return False


def _erase_from_log(path: Path, wanted: Mapping[str, str], busy_seconds: float) -> int:
    n = 0
    after = 0
    with closing(open_for_writing(path, busy_seconds=busy_seconds)) as database:
        database.execute("PRAGMA secure_delete = ON")
        while True:
            database.execute("BEGIN IMMEDIATE")
            try:
                rows = database.execute(
                    f"SELECT {SEGMENT_COLUMNS} FROM segments WHERE first > ? "
                    "ORDER BY first LIMIT ?",
                    (after, _ERASED_AT_ONCE),
                ).fetchall()
                read = decoder(database)
                for row in rows:
                    part = read(row)
                    gone = part.having(wanted)
                    if gone.any():
                        n += int(gone.sum())
                        database.execute("DELETE FROM segments WHERE first = ?", (row[0],))
                        left = part.take(~gone)
                        # a segment cannot have a hole in its numbers
                        run = np.cumsum(np.diff(left.numbers, prepend=left.numbers[:1]) > 1)
                        for number in np.unique(run):
                            insert_segments(database, _rows_of(left.take(run == number), row))
                if not rows:
                    _forget_names(database, wanted)
                database.execute("COMMIT")
            except BaseException:
                database.execute("ROLLBACK")
                raise
            if not rows:
                break
            after = int(rows[-1][0])
        database.execute("VACUUM")  # rewrite the file: nothing of the old pages is left
    return n


def _rows_of(part: EventColumns, row: Row) -> Iterator[Row]:
    """Return rows of ``segments`` with some of the retrievals of one."""
    assert part.stages is not None  # as every row of a log has them
    assert part.requests is not None
    doc_ids: Any = None if part.doc_ids is None else part.doc_ids.tolist()
    if isinstance(row[9], bytes):  # hashes
        doc_ids = list(map(bytes.fromhex, doc_ids))
    batch = Batch(
        times=np.rint(part.times * 1e6).astype(np.int64),
        label_codes=part.label_codes,
        lengths=np.diff(part.offsets),
        tags=part.tag_codes.tobytes(),
        query_ids=part.query_ids.tolist(),
        doc_ids=doc_ids,
        event_labels={
            name: {i: value for i, value in enumerate(values.tolist()) if value}
            for name, values in part.event_labels.items()
        },
        stages=part.stages,
        requests=part.requests.tolist(),
    )
    return segments_of(batch, first=int(part.numbers[0]))


def _forget_names(database: sqlite3.Connection, wanted: Mapping[str, str]) -> None:
    """Count what is counted under these labels under those that are left of their sets."""
    known = [dict(one) for one in labels_of(database)]
    code_of = {_text(one): code for code, one in reversed(list(enumerate(known)))}
    for code, one in enumerate(known):
        if not wanted.items() <= one.items():
            continue
        left = _text({name: value for name, value in one.items() if name not in wanted})
        target = code_of.setdefault(left, code)
        if target != code:
            for table, (columns, sums) in _MERGED.items():
                added = ", ".join(f"{name} = {name} + excluded.{name}" for name in sums)
                database.execute(
                    f"INSERT INTO {table} SELECT width, start, ?, {columns} FROM {table} "
                    f"WHERE labels = ? ON CONFLICT DO UPDATE SET {added}",
                    (target, code),
                )
                database.execute(f"DELETE FROM {table} WHERE labels = ?", (code,))
        database.execute("UPDATE labels SET labels = ? WHERE code = ?", (left, code))
    # those who write have the names in memory
    database.execute(
        "INSERT INTO state VALUES ('erased', 1) ON CONFLICT DO UPDATE SET value = value + 1"
    )


def _text(labels: Mapping[str, str]) -> str:
    return json.dumps(dict(sorted(labels.items())))


def _erase_from_file(path: Path, wanted: Mapping[str, str]) -> int:
    """Rewrite a Parquet file without these retrievals; return how many there were."""
    pa, pq = pyarrow_modules("an archive of an event log")
    try:
        table = pq.read_table(path)
        sets = [json.loads(text) for text in table.column("labels").to_pylist()]
        if "event_labels" in table.column_names:
            own = table.column("event_labels").to_pylist()
            sets = [s | json.loads(o) if o else s for s, o in zip(sets, own, strict=True)]
        keep = [not wanted.items() <= one.items() for one in sets]
        n = keep.count(False)
        if n == len(keep):
            path.unlink()
        elif n:
            part = path.with_suffix(".part")
            create_file(part, path.stat().st_mode & 0o777)
            left = table.filter(pa.array(keep))
            # the dictionary of label sets then holds those only that are used
            texts = pa.array(left.column("labels").to_pylist(), pa.string()).dictionary_encode()
            left = left.set_column(left.column_names.index("labels"), "labels", texts)
            pq.write_table(left, part, compression="zstd")
            part.replace(path)
    except (OSError, KeyError, TypeError, ValueError, pa.ArrowException) as error:
        raise DataError(f"{path} cannot be rewritten without the retrievals: {error}") from error
    return n


def _erase_from_state(path: Path, wanted: Mapping[str, str]) -> None:
    found = read_position(path)
    if found is None:
        return
    position, monitor = found
    for part in ("watches", "alarms"):
        rows = monitor.get(part, [])
        monitor[part] = [row for row in rows if not wanted.items() <= row["labels"].items()]
    write_position(path, position, monitor)
