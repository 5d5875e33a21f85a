"""Which pairs of a data set an explanation looks at."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import numpy as np

from rag_sourcebias.mitigate.twin_rows import complete_pairs, relevant_pairs
from rag_sourcebias.types.arrays import IntArray
from rag_sourcebias.types.dataset import Dataset
from rag_sourcebias.types.explain_report import ExplainConfig

__all__ = ["DrawnPairs", "JudgedPairs", "draw_pairs", "judged_pairs_of"]

_WORD = re.compile(r"\w")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class JudgedPairs:
    """Queries that have text, and pairs of which a version is relevant to them.

    Parameters
    ----------
    texts : tuple of str
        Of the queries.
    query_rows : int64 array of shape (m,)
        Row of ``texts``.
    codes : int64 array of shape (m,)
        Code of the pair in the tag table.
    """

    texts: tuple[str, ...] = field(repr=False)
    query_rows: IntArray = field(repr=False)
    codes: IntArray = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DrawnPairs:
    """Pairs of the baseline and one other source, in the order of the draw.

    Parameters
    ----------
    source : str
    codes : int64 array of shape (n,)
        Code of each pair in the tag table.
    human, other : int64 arrays of shape (n,)
        Rows of both versions in the corpus.
    n_available : int
        Pairs to draw from.
    judged : int64 arrays of shape (m,)
        Query row and position in the draw of every relevant (query, pair).
    notes : tuple of str
    """

    source: str
    codes: IntArray = field(repr=False)
    human: IntArray = field(repr=False)
    other: IntArray = field(repr=False)
    n_available: int
    judged: tuple[IntArray, IntArray] = field(repr=False)
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.codes)


def judged_pairs_of(dataset: Dataset) -> JudgedPairs:
    """Collect relevant (query, pair), each once, of queries that have a text."""
    row_of = {query.query_id: row for row, query in enumerate(dataset.queries)}
    queries, codes = relevant_pairs(dataset.qrels, dataset.corpus.tags, min_grade=1)
    known = np.array([row_of.get(name, -1) for name in dataset.qrels.query_ids], dtype=np.int64)
    rows = known[queries] if len(queries) else queries
    both = np.unique(np.column_stack((rows, codes))[rows >= 0], axis=0)
    return JudgedPairs(
        texts=tuple(query.text for query in dataset.queries),
        query_rows=both[:, 0],
        codes=both[:, 1],
    )


def draw_pairs(
    dataset: Dataset, source: str, judged: JudgedPairs, config: ExplainConfig
) -> DrawnPairs:
    """Draw up to ``config.limit`` pairs at random, those relevant to a query before all others.

    Of a large corpus hardly any pair is relevant to a judged query; drawn from all alike, a few
    hundred would hold too few to say anything about scores.
    """
    corpus = dataset.corpus
    found = complete_pairs(corpus, config.baseline_source, source)
    worded = np.array(
        [
            all(_WORD.search(corpus.texts[row]) for row in pair)
            for pair in zip(found.baseline.tolist(), found.source.tolist(), strict=True)
        ],
        dtype=bool,
    )
    codes, human, other = (part[worded] for part in (found.codes, found.baseline, found.source))
    rng = np.random.default_rng(config.seed)
    order = rng.permutation(len(codes))
    relevant = np.isin(codes, judged.codes)
    order = order[np.argsort(~relevant[order], kind="stable")][: config.limit]
    place = np.full(len(corpus.tags.pair_ids), -1)
    place[codes[order]] = np.arange(len(order))
    at = place[judged.codes] if len(judged.codes) else judged.codes
    notes = []
    if len(order) < len(codes):
        notes.append(
            f"{len(order):,} of {len(codes):,} pairs were drawn at random, "
            f"{int(relevant[order].sum()):,} of them relevant to a judged query (of "
            f"{int(relevant.sum()):,}): those are drawn first"
        )
    for n, what in (
        (found.n_incomplete, "pair(s) with one version only, or a blank one"),
        (found.n_repeated, "further document(s) with the source and the pair id of another one"),
        (int(np.count_nonzero(~worded)), "pair(s) with a version without any word"),
    ):
        if n:
            notes.append(f"{n:,} {what}: left out")
    return DrawnPairs(
        source=source,
        codes=codes[order],
        human=human[order],
        other=other[order],
        n_available=len(codes),
        judged=(judged.query_rows[at >= 0], at[at >= 0]),
        notes=tuple(notes),
    )
