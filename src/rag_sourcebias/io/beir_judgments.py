"""From judgments as a file gives them to judgments of the rows of a corpus."""

from __future__ import annotations

import logging
from collections.abc import Callable, Container, Mapping, Sequence
from typing import Literal

import numpy as np

from rag_sourcebias.errors import DataError
from rag_sourcebias.types import Qrels

__all__ = ["OnUnknown", "assemble_judged", "report_unknown", "rows_as_judged"]

_logger = logging.getLogger("rag_sourcebias.io")
OnUnknown = Literal["drop", "error"]
_KINDS = {
    "queries": "queries that queries.jsonl does not hold",
    "documents": "documents that the corpus does not hold",
}


def report_unknown(
    kind: Literal["queries", "documents"],
    ids: Sequence[str],
    known: Container[str],
    *,
    where: str,
    on_unknown: OnUnknown = "drop",
) -> None:
    """Warn about judged ids that a data set does not hold.

    Parameters
    ----------
    kind : {"queries", "documents"}
    ids : sequence of str
        As judged.
    known : container of str
    where : str
        Names the file of judgments.
    on_unknown : {"drop", "error"}
        ``"error"`` raises instead.

    Raises
    ------
    DataError
        If no id is known, or, with ``"error"``, one is not.
    """
    unknown = [i for i in ids if i not in known]
    text = f"{where}: {_KINDS[kind]}: {len(unknown)} of {len(ids)}, first {unknown[:3]}"
    if len(unknown) == len(ids):
        raise DataError(f"{text}; the ids must be those of the _id fields")
    if unknown and on_unknown == "error":
        raise DataError(f"{text}; use on_unknown='drop' to go on without them")
    if unknown:
        _logger.warning("%s; their judgments were dropped", text)


def rows_as_judged(doc_ids: Sequence[str], judged_as: Callable[[str], str]) -> dict[str, list[int]]:
    """Return the positions of the versions of each document, by the id that judgments use."""
    rows: dict[str, list[int]] = {}
    for row, doc_id in enumerate(doc_ids):
        rows.setdefault(judged_as(doc_id), []).append(row)
    return rows


def assemble_judged(
    judged: Qrels,
    *,
    query_ids: Sequence[str],
    doc_ids: Sequence[str],
    rows: Mapping[str, Sequence[int]],
    where: str,
    on_unknown: OnUnknown = "drop",
) -> Qrels:
    """Give every version of a document the grade of its judged id.

    With the documents of a whole corpus this is what :func:`read_beir` returns; an excerpt that
    holds every judged document has the same judgments in the same order, with other codes.

    Parameters
    ----------
    judged : Qrels
        As :func:`read_qrels` gives them.
    query_ids : sequence of str
        The queries to keep, in this order.
    doc_ids : sequence of str
        The documents, in row order: the vocabulary of the result.
    rows : mapping of str to sequence of int
        Positions in ``doc_ids`` of the versions of each document, by the id that judgments use;
        empty for one that exists and is left out.
    where : str
        Names the file of judgments, for messages.
    on_unknown : {"drop", "error"}
        What to do with judgments of documents that are not in ``rows``.

    Raises
    ------
    DataError
        If no judged document is in ``rows``, or, with ``"error"``, one is not.
    """
    report_unknown("documents", judged.doc_ids, rows, where=where, on_unknown=on_unknown)
    counts = np.array([len(rows.get(d, ())) for d in judged.doc_ids], dtype=np.int64)
    starts = np.concatenate([[0], np.cumsum(counts)])
    flat = np.array([r for d in judged.doc_ids for r in rows.get(d, ())], dtype=np.int32)
    code_of = {query_id: code for code, query_id in enumerate(query_ids)}
    query_codes = np.array([code_of.get(q, -1) for q in judged.query_ids], dtype=np.int32)
    known = query_codes[judged.query_codes] >= 0
    docs = judged.doc_codes[known]
    copies = counts[docs]
    # Position of each copy within its document's versions: 0, 1, … restarting at every judgment.
    ends = np.cumsum(copies)
    within = np.arange(int(copies.sum())) - np.repeat(ends - copies, copies)
    return Qrels(
        query_ids=tuple(query_ids),
        doc_ids=tuple(doc_ids),
        query_codes=np.repeat(query_codes[judged.query_codes[known]], copies),
        doc_codes=flat[np.repeat(starts[docs], copies) + within],
        grades=np.repeat(judged.grades[known], copies),
        n_negative=judged.n_negative,
    )
