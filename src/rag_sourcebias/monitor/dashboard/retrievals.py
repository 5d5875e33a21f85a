"""Single retrievals of a log, newest first, page by page."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from rag_sourcebias.monitor.log.columns import EventColumns
from rag_sourcebias.monitor.log.tail import iter_newest

__all__ = ["RetrievalQuery", "read_retrievals"]

_MOST_SCANNED = 200_000  # retrievals looked at for one page
_MOST_PARTS = 3_000  # of the log, each written at once
_MOST_DOCUMENTS = 20_000  # of one page; a single retrieval may have more


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrievalQuery:
    """What is asked for; names as in the API.

    Parameters
    ----------
    group : str or None
        Only retrievals with a document of this source (or style), "" being unknown.
    first : bool
        That document has to stand at rank 1.
    before : int or None
        Only smaller numbers, for the next page.
    """

    by: Literal["source", "style"] = "source"
    group: str | None = None
    first: bool = False
    since: float | None = None
    until: float | None = None
    labels: Mapping[str, str] | None = None
    before: int | None = None
    limit: int = 50


def read_retrievals(path: Path, query: RetrievalQuery) -> dict[str, Any]:
    """Return one page; ``next`` is the ``before`` of the following one, None after the last.

    The work of a page is bounded: where few retrievals match, a page may be short or empty and
    ``next`` goes on.

    Raises
    ------
    DataError
        If the log cannot be read.
    UnsupportedVersionError
        If it has another version than this release writes.
    """
    found: list[dict[str, Any]] = []
    scanned = documents = 0
    following: int | None = None
    with closing(iter_newest(path, before=query.before, until=query.until)) as parts:
        for n_parts, (first, part) in enumerate(parts, 1):
            if part is None:
                continue
            for row in np.flatnonzero(_matching(part, query))[::-1].tolist():
                size = int(part.offsets[row + 1] - part.offsets[row])
                if len(found) == query.limit or (found and documents + size > _MOST_DOCUMENTS):
                    return {"retrievals": found, "next": found[-1]["number"]}
                documents += size
                found.append(_plain(part, row))
            if query.since is not None and len(part) and part.times[0] < query.since:
                break
            scanned += len(part)
            if scanned >= _MOST_SCANNED or n_parts >= _MOST_PARTS:
                following = first if first > 1 else None
                break
    return {"retrievals": found, "next": following}


def _matching(part: EventColumns, query: RetrievalQuery) -> npt.NDArray[np.bool_]:
    keep = np.ones(len(part), bool)
    if query.since is not None:
        keep &= part.times >= query.since
    if query.until is not None:
        keep &= part.times < query.until
    if query.labels is not None:
        keep &= part.having(query.labels)
    if query.group is not None and keep.any():
        of_group = np.array([(tag[query.by == "style"] or "") == query.group for tag in part.tags])
        hits = of_group[part.tag_codes]
        if query.first:
            hits &= part.ranks == 1
        keep &= np.bincount(part.rows[hits], minlength=len(part)) > 0
    return keep


def _plain(part: EventColumns, row: int) -> dict[str, Any]:
    start, stop = int(part.offsets[row]), int(part.offsets[row + 1])
    documents = []
    for rank, at in enumerate(range(start, stop), 1):
        source, style = part.tags[part.tag_codes[at]]
        doc_id = None if part.doc_ids is None else str(part.doc_ids[at])
        documents.append({"rank": rank, "source": source, "style": style, "doc_id": doc_id})
    return {
        "number": int(part.numbers[row]),
        "at": float(part.times[row]),
        "query_id": str(part.query_ids[row]),
        "labels": part.labels_at(row),
        "documents": documents,
    }
