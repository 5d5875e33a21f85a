"""The three criteria of a paired corpus ([K] §2): sources known, labels copied, one to one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from rag_sourcebias.types.arrays import IntArray
from rag_sourcebias.types.documents import Corpus, TagTable
from rag_sourcebias.types.pair_report import NamedIds, PairCriteria
from rag_sourcebias.types.relevance import Qrels

__all__ = ["PairRows", "criteria_of", "pair_rows", "writable"]

_FIRST = 5


@dataclass(frozen=True, kw_only=True, eq=False)
class PairRows:
    """Rows of a corpus that are versions of one another, and those that are not.

    Parameters
    ----------
    baseline, other : int64 arrays of shape (n,)
        In the order of the baseline's documents.
    baseline_alone, other_alone : int64 arrays
        Documents without a counterpart, including those without a pair id.
    repeated : int64 array
        Second and further documents of one source with the same pair id.
    """

    baseline: IntArray
    other: IntArray
    baseline_alone: IntArray = field(repr=False)
    other_alone: IntArray = field(repr=False)
    repeated: IntArray = field(repr=False)


def pair_rows(tags: TagTable, baseline: str, other: str) -> PairRows:
    """Find the pairs of two sources; of several versions in one source the first counts."""
    first: list[dict[int, int]] = []
    alone: list[list[int]] = []
    repeated: list[int] = []
    for source in (baseline, other):
        rows = np.flatnonzero(tags.source_codes == tags.sources.index(source)).tolist()
        found: dict[int, int] = {}
        unpaired = []
        for row, code in zip(rows, tags.pair_codes[rows].tolist(), strict=True):
            if code < 0:
                unpaired.append(row)
            elif code in found:
                repeated.append(row)
            else:
                found[code] = row
        first.append(found)
        alone.append(unpaired)
    both = [code for code in first[0] if code in first[1]]
    for side in (0, 1):
        alone[side] += [row for code, row in first[side].items() if code not in first[1 - side]]
    return PairRows(
        baseline=_rows(first[0][code] for code in both),
        other=_rows(first[1][code] for code in both),
        baseline_alone=_rows(sorted(alone[0])),
        other_alone=_rows(sorted(alone[1])),
        repeated=_rows(repeated),
    )


def criteria_of(corpus: Corpus, qrels: Qrels | None, rows: PairRows) -> PairCriteria:
    """Count what the criteria ask for; without judgments nothing is said about labels."""
    tags = corpus.tags
    missing, differ, added, n_labels = _labels(tags, qrels, rows)
    return PairCriteria(
        n_documents=len(corpus),
        untagged=_documents(tags, np.flatnonzero(tags.source_codes < 0)),
        n_pairs=len(rows.baseline),
        baseline_alone=_documents(tags, rows.baseline_alone),
        other_alone=_documents(tags, rows.other_alone),
        repeated=_documents(tags, rows.repeated),
        n_labels=n_labels,
        labels_missing=_named(missing),
        labels_differ=_named(differ),
        labels_added=_named(added),
    )


def _labels(
    tags: TagTable, qrels: Qrels | None, rows: PairRows
) -> tuple[list[str], list[str], list[str], int]:
    """Name judgments that the two versions of a pair do not share."""
    if qrels is None or not len(qrels):
        return [], [], [], 0
    # Judgments by (query, pair), one mapping per side.
    judged: list[dict[tuple[int, int], int]] = []
    doc_rows = tags.rows_for(qrels.doc_ids)[qrels.doc_codes]
    for side in (rows.baseline, rows.other):
        place = np.full(len(tags) + 1, -1, dtype=np.int64)  # the last one is that of row -1
        place[side] = np.arange(len(side))
        pairs = place[doc_rows]
        at = np.flatnonzero(pairs >= 0)
        columns = (qrels.query_codes[at], pairs[at], qrels.grades[at])
        judged.append({(q, p): g for q, p, g in zip(*(c.tolist() for c in columns), strict=True)})
    base, other = judged

    def name(key: tuple[int, int], side: IntArray) -> str:
        return f"{qrels.query_ids[key[0]]}: {tags.doc_ids[side[key[1]]]}"

    missing = [name(key, rows.other) for key in base if key not in other]
    differ = [name(k, rows.other) for k, g in base.items() if k in other and other[k] != g]
    added = [name(key, rows.other) for key in other if key not in base]
    return missing, differ, added, len(base)


def writable(text: str) -> str:
    """Replace halves of surrogate pairs, which JSON may hold and UTF-8 cannot."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _rows(rows: Iterable[int]) -> IntArray:
    return np.fromiter(rows, dtype=np.int64)


def _named(names: Sequence[str]) -> NamedIds:
    return NamedIds(n=len(names), first=tuple(map(writable, names[:_FIRST])))


def _documents(tags: TagTable, rows: npt.NDArray[np.intp]) -> NamedIds:
    return NamedIds(n=len(rows), first=tuple(writable(tags.doc_ids[row]) for row in rows[:_FIRST]))
