"""Feed what happened before through a monitor, to see when it would have raised an alarm."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from rag_sourcebias.errors import DataError
from rag_sourcebias.instrument.events import RetrievalEvent
from rag_sourcebias.monitor.log.columns import EventColumns
from rag_sourcebias.monitor.log.reading import iter_events
from rag_sourcebias.monitor.parquet_events import is_parquet, parquet_events
from rag_sourcebias.monitor.skew_monitor import SkewMonitor
from rag_sourcebias.types.documents import DocTags, TagTable
from rag_sourcebias.types.rankings import RankedList, Run

__all__ = ["events_of", "replay"]

Timed = tuple[RetrievalEvent, float | None]


def replay(
    events: str | Path | Run | Iterable[RetrievalEvent],
    monitor: SkewMonitor,
    *,
    tags: TagTable | None = None,
    labels: Mapping[str, str] | None = None,
    since: float | None = None,
    until: float | None = None,
) -> int:
    """Replay retrievals and test what was still being aggregated; return how many there were.

    Parameters
    ----------
    events : str, Path, Run or iterable of RetrievalEvent
        A path is that of an event log, of a folder of Parquet files that logs have archived, or
        of one of these files (of a sampled log each retrieval kept counts once). Alarms then
        have the time at which they would have come.
    monitor : SkewMonitor
    tags : TagTable or None
        What is known of the documents of a run; required for it, and for nothing else.
    labels : mapping of str to str, optional
        Labels of the retrievals of a run; of a log or files, only retrievals with all of these.
    since, until : float or None
        Of a log or files, in Unix time; ``until`` itself is left out.

    Raises
    ------
    DataError
        If tags are missing or superfluous, or log or files cannot be read.
    MissingExtraError
        If there are Parquet files to read, and pyarrow is not installed.
    UnsupportedVersionError
        If the log has another version than this release writes.
    """
    if isinstance(events, Run) != (tags is not None):
        raise DataError("tags= belongs to a run: a run needs it, logs and events have their own")
    if not isinstance(events, str | Path) and not (since is None and until is None):
        raise DataError("since= and until= are for event logs, whose retrievals have Unix times")
    timed: Iterable[Timed]
    if isinstance(events, Run):
        timed = _of_run(events, tags or TagTable.from_tags([]), labels or {})
    elif isinstance(events, str | Path) and is_parquet(events):
        timed = parquet_events(events, since=since, until=until, labels=labels)
    elif isinstance(events, str | Path):
        parts = iter_events(events, since=since, until=until, labels=labels)
        timed = (item for part in parts for item in events_of(part))
    elif labels is not None:
        raise DataError("labels= is for runs and logs; events have their own")
    else:
        timed = ((event, None) for event in events)
    n = monitor.record_many(timed)
    monitor.flush(finish=True)
    return n


def _of_run(run: Run, tags: TagTable, labels: Mapping[str, str]) -> Iterator[Timed]:
    known = {doc_id: tags.get(doc_id) for doc_id in run.doc_ids}
    for query_id, start, stop in zip(run.query_ids, run.offsets, run.offsets[1:], strict=False):
        ids = tuple(run.doc_ids[code] for code in run.doc_codes[start:stop])
        ranked = RankedList(query_id=query_id, doc_ids=ids)
        found = tuple(known[doc_id] for doc_id in ids)
        yield RetrievalEvent(ranked=ranked, tags=found, labels=labels), None


def events_of(part: EventColumns) -> Iterator[Timed]:
    """Yield the retrievals of a log, with their Unix times."""
    tags = [DocTags(source=source, style=style) for source, style in part.tags]
    codes = part.tag_codes.tolist()
    alone = bool(part.event_labels)
    for i, (start, stop) in enumerate(zip(part.offsets, part.offsets[1:], strict=False)):
        found = tuple(tags[code] for code in codes[start:stop])
        ids = ("",) * len(found) if part.doc_ids is None else part.doc_ids[start:stop].tolist()
        event = RetrievalEvent(
            ranked=RankedList(query_id=str(part.query_ids[i]), doc_ids=tuple(ids)),
            tags=found,
            labels=part.labels_at(i) if alone else part.labels[part.label_codes[i]],
        )
        yield event, float(part.times[i])
