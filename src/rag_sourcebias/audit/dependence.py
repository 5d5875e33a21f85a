"""What makes observations depend on one another: queries, clusters, documents, rewriters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rag_sourcebias.errors import DataError
from rag_sourcebias.types.arrays import IntArray
from rag_sourcebias.types.documents import TagTable
from rag_sourcebias.types.relevance import Qrels

__all__ = ["MERGED", "Dependence", "merge_llms"]


MERGED = "llm"
"""Source of all documents by language models once they are merged."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Dependence:
    """Factors that observations share.

    Parameters
    ----------
    query_ids : tuple of str, length nq
    documents : int64 array of shape (len(qrels.doc_ids),)
        Number of each judged document; versions of one document share it.
    rewriters : int64 array of shape (len(qrels.doc_ids),), optional
        Source of each judged document before sources were merged, -1 for those that were not.
    clusters : int64 array of shape (nq,), optional
        Cluster of each query, such as its topic or user session.
    """

    query_ids: tuple[str, ...]
    documents: IntArray
    rewriters: IntArray | None = None
    clusters: IntArray | None = None

    @classmethod
    def of(
        cls,
        qrels: Qrels,
        tags: TagTable,
        clusters: Mapping[str, str] | None,
        *,
        merged_from: TagTable | None = None,
    ) -> Dependence:
        """Gather the factors of judged documents and queries.

        Raises
        ------
        DataError
            If the clusters name queries without judgments or lack some, or hold one query each.
        """
        rows = tags.rows_for(qrels.doc_ids)
        known = rows >= 0
        pair = np.full(len(rows), -1, dtype=np.int64)
        pair[known] = tags.pair_codes[rows[known]]
        alone = len(tags.pair_ids) + np.arange(len(rows))
        rewriters = None
        if merged_from is not None:
            rewriters = np.full(len(rows), -1, dtype=np.int64)
            rewriters[known] = merged_from.source_codes[rows[known]]
            kept = np.array([name in tags.sources for name in merged_from.sources])
            rewriters[(rewriters >= 0) & kept[rewriters]] = -1
        return cls(
            query_ids=qrels.query_ids,
            documents=np.where(pair >= 0, pair, alone),
            rewriters=rewriters,
            clusters=None if clusters is None else _codes(qrels.query_ids, clusters),
        )

    def units(self, query_ids: Sequence[str] | None = None) -> IntArray:
        """Return the unit of each query that is independent of others: itself, or its cluster.

        Queries without judgments are units of their own.
        """
        if query_ids is None:
            query_ids = self.query_ids
        if self.clusters is None:
            return np.arange(len(query_ids))
        code = dict(zip(self.query_ids, self.clusters.tolist(), strict=True))
        beyond = len(self.query_ids)
        return np.array([code.get(q, beyond + i) for i, q in enumerate(query_ids)], dtype=np.int64)

    @property
    def what(self) -> str:
        """The units in words."""
        return "queries" if self.clusters is None else "clusters of queries"


def _codes(query_ids: tuple[str, ...], clusters: Mapping[str, str]) -> IntArray:
    judged = set(query_ids)
    if unknown := [q for q in clusters if q not in judged]:
        raise DataError(
            f"clusters are given for queries without judgments ({len(unknown)}), such as "
            f"{unknown[0]!r}; name those of the qrels"
        )
    if missing := [q for q in query_ids if q not in clusters]:
        raise DataError(
            f"the clusters lack {len(missing)} of {len(query_ids)} judged queries, such as "
            f"{missing[0]!r}; give each query a cluster"
        )
    names = [clusters[q] for q in query_ids]
    unique, codes = np.unique(names, return_inverse=True)
    if len(unique) == len(names) > 1:
        raise DataError(
            f"each of {len(names)} queries has a cluster of its own, which is the same as none; "
            "leave the clusters out, or give related queries one name"
        )
    return codes.astype(np.int64)


def merge_llms(tags: TagTable) -> TagTable:
    """Merge all sources by language models into ``"llm"``.

    Raises
    ------
    DataError
        If there are fewer than two.
    """
    models = [name for name in tags.sources if name.startswith("llm:")]
    if len(models) < 2:
        raise DataError(
            f"merging needs at least two sources named 'llm:<model>'; sources are "
            f"{list(tags.sources)}"
        )
    return tags.merge_sources({MERGED: models})
