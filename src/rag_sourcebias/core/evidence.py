"""What a figure rests on: the few queries, questions or pairs that matter most for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from rag_sourcebias.core.data import FloatArray, IntArray

if TYPE_CHECKING:
    from rag_sourcebias.core.data import Qrels, Run, TagTable

MOST, AGAINST = 8, 3
"""Cases that are kept with their texts: those that matter most, and those that point elsewhere."""
LONGEST = 1_500
"""Characters of a text that are kept."""


@dataclass(frozen=True, kw_only=True)
class EvidenceText:
    """One of two texts that are compared.

    Parameters
    ----------
    label : str
        Its source, style, system or role.
    doc_id : str
        "" where texts have no ids of their own.
    value : float or None
        What it got: a rank or a score; None where it was not retrieved.
    text : str
        Its beginning; "" where texts were not kept.
    length : int
        Characters of the whole text.
    """

    label: str
    doc_id: str = ""
    value: float | None = None
    text: str = ""
    length: int = 0

    @classmethod
    def of(
        cls,
        label: str,
        text: str,
        *,
        doc_id: str = "",
        value: float | None = None,
    ) -> EvidenceText:
        """Keep the beginning of a text."""
        return cls(
            label=label,
            doc_id=doc_id,
            value=value,
            text=text[:LONGEST],
            length=len(text),
        )


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """One case that a figure rests on.

    Parameters
    ----------
    item : str
        Id of the query, question, item or pair.
    asked : str
        Text of the query or question; "" where there is none, or texts were not kept.
    value : float
        What it adds to the figure; its sign says in which direction.
    first, second : EvidenceText
    """

    item: str
    value: float
    first: EvidenceText
    second: EvidenceText
    asked: str = ""

    def without_texts(self) -> Evidence:
        """Return the same case with ids and numbers only."""
        first, second = replace(self.first, text=""), replace(self.second, text="")
        return replace(self, asked="", first=first, second=second)


def telling(
    values: FloatArray, names: Sequence[str], *, weight: FloatArray | None = None
) -> IntArray:
    """Return the places of the values that matter most for their sum, and of a few against it.

    Parameters
    ----------
    values : float array of shape (n,)
        What each case adds; 0 adds nothing.
    names : sequence of str, length n
        Break ties, so that equal reports name equal cases.
    weight : float array of shape (n,), optional
        Which of two equal values matters more.
    """
    sign = 1.0 if np.nansum(values) >= 0 else -1.0
    second = np.zeros(len(values)) if weight is None else weight
    order = sorted(
        (i for i in range(len(values)) if np.isfinite(values[i]) and abs(values[i]) > 1e-12),
        key=lambda i: (-round(abs(float(values[i])), 9), -float(second[i]), names[i]),
    )
    with_it = [i for i in order if sign * values[i] > 0]
    against = [i for i in order if sign * values[i] < 0]
    return np.array([*with_it[:MOST], *against[:AGAINST]], dtype=np.int64)


Ranked = tuple[str, float | None]


def relevant_pair(
    query: str,
    qrels: Qrels,
    tags: TagTable,
    sources: tuple[str, str],
    rank: Mapping[str, int],
) -> tuple[Ranked, Ranked] | None:
    """Choose one relevant document of each source, with its rank: two versions of one if there are.

    Of several, those of which one ranks highest.

    Parameters
    ----------
    rank : mapping of str to int
        Documents that were retrieved for the query.
    """
    judged = (qrels.query_codes == qrels.query_ids.index(query)) & (qrels.grades > 0)
    names = [qrels.doc_ids[code] for code in qrels.doc_codes[judged]]
    rows = tags.rows_for(names)
    held = [
        [
            (name, int(tags.pair_codes[row]))
            for name, row in zip(names, rows, strict=True)
            if row >= 0 and tags.source_codes[row] == tags.sources.index(source)
        ]
        for source in sources
    ]
    last = len(rank) + 1
    choices = [
        (not pair == twin >= 0, min(rank.get(first, last), rank.get(second, last)), first, second)
        for first, pair in held[0]
        for second, twin in held[1]
    ]
    if not choices:
        return None
    *_, first, second = min(choices)
    return (first, _rank(rank, first)), (second, _rank(rank, second))


def _rank(rank: Mapping[str, int], name: str) -> float | None:
    return float(rank[name]) if name in rank else None


def ranks_of(run: Run, query: str) -> dict[str, int]:
    """Return the rank of each document that was retrieved for a query."""
    if query not in run.query_ids:
        return {}
    at = run.query_ids.index(query)
    codes = run.doc_codes[run.offsets[at] : run.offsets[at + 1]].tolist()
    return {run.doc_ids[code]: rank for rank, code in enumerate(codes, start=1)}
