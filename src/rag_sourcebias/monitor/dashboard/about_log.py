"""What an overview says of a log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rag_sourcebias.monitor.log.reading import log_summary
from rag_sourcebias.monitor.log.schema import reading

__all__ = ["about_log"]

_MOST_LABEL_SETS = 1_000
_COUNTS = ("dropped", "overflowed", "event_labels", "odd_sources")
_LOOKED_AT = 20  # segments


def about_log(path: Path) -> tuple[dict[str, Any], list[dict[str, str]], str | None]:
    """Return a description of a log, the label sets in it, and how it keeps document ids.

    A log that is not there yet is an empty one.

    Raises
    ------
    DataError
        If the log cannot be read.
    UnsupportedVersionError
        If it has another version than this release writes.
    """
    size = _size(path)
    if not size:
        nothing: dict[str, Any] = {"since": None, "until": None, "size_bytes": 0, "bad_tags": 0}
        counts: dict[str, Any] = {name: {} for name in _COUNTS}
        return {"name": path.name, "n_written": 0, "n_kept": 0, **nothing, **counts}, [], None
    found = log_summary(path)
    with reading(path) as database:
        latest = database.execute(
            "SELECT substr(documents, 1, 3), typeof(documents) FROM segments "
            "ORDER BY first DESC LIMIT ?",
            (_LOOKED_AT,),
        ).fetchall()
    about = {
        "name": path.name,
        "n_written": found.n_written,
        "n_kept": found.n_kept,
        "since": found.since,
        "until": found.until,
        "size_bytes": size,
        "bad_tags": found.bad_tags,
        **{name: dict(getattr(found, name)) for name in _COUNTS},
    }
    label_sets = sorted(map(dict, found.labels), key=json.dumps)[:_MOST_LABEL_SETS]
    return about, label_sets, _document_ids(latest)


def _size(path: Path) -> int:
    """Return bytes of a log and of the files beside it, 0 where there is no log."""
    total = 0
    for suffix in ("", "-wal"):
        try:
            total += path.with_name(path.name + suffix).stat().st_size
        except FileNotFoundError:
            if not suffix:
                return 0
    return total


def _document_ids(latest: list[tuple[object, str]]) -> str | None:
    """Return how the newest segments keep ids; None where they say nothing of it."""
    for start, kind in latest:
        if kind == "null":
            return "none"
        if kind == "blob":
            return "hashed"
        if start != "[]":  # no document in it, which either way looks like this
            return "plain"
    return None
