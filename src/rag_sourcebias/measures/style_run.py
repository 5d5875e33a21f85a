"""Ranks of the versions of a document taken from a run with tags."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError, MissingTagsError
from rag_sourcebias.measures.judged import rank_span
from rag_sourcebias.measures.style_checks import Missing
from rag_sourcebias.measures.style_ranks import StyleRanks, TieRank, style_ranks
from rag_sourcebias.types.arrays import IntArray
from rag_sourcebias.types.documents import TagTable
from rag_sourcebias.types.rankings import Run

__all__ = ["run_style_ranks"]


def run_style_ranks(
    run: Run,
    tags: TagTable,
    *,
    pair_of: Mapping[str, str] | None = None,
    unstyled: str | None = None,
    ties: TieRank = "average",
    missing: Missing = "refuse",
) -> StyleRanks:
    """Rank the versions of each query's document among themselves ([W] Eq. 1).

    Other documents between them do not count. The order of the run decides; equal neighbouring
    scores are ties. A version that is tagged but was not retrieved ranks below all that were,
    tied with others that were not: leaving such queries out would hide the styles that a
    retriever silences.

    Parameters
    ----------
    run : Run
    tags : TagTable
        Versions of one document share a ``pair_id``; each has a ``style``.
    pair_of : mapping of query id to pair id, optional
        The document of each query. Not needed when every query retrieved versions of one
        document only.
    unstyled : str, optional
        Style name of versions without a style tag, such as ``"human"`` where only rewrites are
        tagged.
    ties : {"average", "min", "max"}
    missing : {"refuse", "balanced"}
        What to do with queries whose document lacks a version altogether, see
        :func:`style_ranks`.

    Raises
    ------
    MissingTagsError
        If versions have no style tag and ``unstyled`` is not given, or nothing is paired.
    DataError
        If two versions of one document have the same style, the document of a query is unknown
        or ambiguous, or as :func:`style_ranks`.
    """
    names, column = _columns(tags, unstyled)
    version = _versions(tags, names, column)
    rows = tags.rows_for(run.doc_ids)[run.doc_codes]
    entry_pair = np.where(rows >= 0, tags.pair_codes[rows], -1)
    pair = _pairs(run, tags, entry_pair, pair_of)
    start, stop = rank_span(run, np.arange(len(run)), ties="expected")
    exists = version[pair]
    last = float(len(run) + 1)
    scores = np.where(exists, -last, np.nan)
    own = np.flatnonzero((entry_pair >= 0) & (entry_pair == pair[run.query_codes]))
    scores[run.query_codes[own], column[rows[own]]] = -(start[own] + 1 + stop[own]) / 2
    return style_ranks(scores, styles=names, query_ids=run.query_ids, ties=ties, missing=missing)


def _columns(tags: TagTable, unstyled: str | None) -> tuple[tuple[str, ...], IntArray]:
    """Style names of the versions, and the column of every tagged document (-1: not a version)."""
    paired = tags.pair_codes >= 0
    if not paired.any():
        raise MissingTagsError("no document has a pair_id, so no versions are known to compare")
    codes = tags.style_codes.astype(np.int64)
    bare = np.flatnonzero(paired & (codes < 0))
    names = list(tags.styles)
    if len(bare) and unstyled is None:
        raise MissingTagsError(
            f"{len(bare)} version(s) have no style tag, first {tags.doc_ids[bare[0]]!r}; tag them "
            'or name their style, as in unstyled="human"'
        )
    if len(bare) and unstyled is not None:
        names = names if unstyled in names else [unstyled, *names]
        codes = np.array([names.index(s) for s in tags.styles] + [names.index(unstyled)])[codes]
    used = np.unique(codes[paired])
    recode = np.full(len(names) + 1, -1)
    recode[used] = np.arange(len(used))
    return tuple(names[i] for i in used), np.where(paired, recode[codes], -1)


def _versions(tags: TagTable, names: tuple[str, ...], column: IntArray) -> npt.NDArray[np.bool_]:
    """Which versions exist; shape (pairs, k)."""
    rows = np.flatnonzero(column >= 0)
    key = tags.pair_codes[rows].astype(np.int64) * len(names) + column[rows]
    _, first, count = np.unique(key, return_index=True, return_counts=True)
    if np.any(count > 1):
        row = rows[first[count > 1][0]]
        same = [tags.doc_ids[r] for r in rows[key == key[first[count > 1][0]]]]
        raise DataError(
            f"document {tags.pair_ids[tags.pair_codes[row]]!r} has {len(same)} versions in style "
            f"{names[column[row]]!r} ({', '.join(same[:3])}); each style may come once"
        )
    exists = np.zeros(len(tags.pair_ids) * len(names), dtype=np.bool_)
    exists[key] = True
    return exists.reshape(-1, len(names))


def _pairs(
    run: Run, tags: TagTable, entry_pair: IntArray, pair_of: Mapping[str, str] | None
) -> IntArray:
    """Pair code of every query's document; shape (nq,)."""
    if pair_of is not None:
        code = {name: i for i, name in enumerate(tags.pair_ids)}
        for query in run.query_ids:
            if pair_of.get(query) not in code:
                raise DataError(
                    f"query {query!r}: document {pair_of.get(query)!r} is no pair_id of the tags; "
                    "pair_of must name one for every query of the run"
                )
        return np.array([code[pair_of[query]] for query in run.query_ids], dtype=np.int64)
    known = np.flatnonzero(entry_pair >= 0)
    lowest = np.full(len(run.query_ids), len(tags.pair_ids))
    highest = np.full(len(run.query_ids), -1)
    np.minimum.at(lowest, run.query_codes[known], entry_pair[known])
    np.maximum.at(highest, run.query_codes[known], entry_pair[known])
    unclear = np.flatnonzero(lowest != highest)
    if len(unclear):
        found = "no version of any document" if highest[unclear[0]] < 0 else "several documents"
        raise DataError(
            f"{len(unclear)} queries, first {run.query_ids[unclear[0]]!r}, retrieved {found}; say "
            "with pair_of whose versions to rank"
        )
    return lowest
