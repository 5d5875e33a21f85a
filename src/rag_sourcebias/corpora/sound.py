"""A paired corpus without the pairs that are no rewrites."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from rag_sourcebias.errors import InsufficientDataError
from rag_sourcebias.types import Dataset, Qrels
from rag_sourcebias.types.pair_checks import PairChecks

__all__ = ["sound_pairs"]


def sound_pairs(
    dataset: Dataset, checks: Mapping[str, PairChecks], *, baseline_source: str = "human"
) -> Dataset:
    """Keep both versions of the pairs that are not broken, with their queries and judgments.

    Queries without a relevant document left are left out. Where several sources were checked, a
    document stays if its pair is sound in all of them: so every source is judged on the same ones.

    Parameters
    ----------
    dataset : Dataset
    checks : mapping of str to PairChecks
        Of each source to keep, as :func:`~rag_sourcebias.corpora.check_pairs` returns them, by
        the pair ids of the corpus.
    baseline_source : str

    Raises
    ------
    InsufficientDataError
        If no pair is left.
    """
    kept: set[str] | None = None
    for found in checks.values():
        sound = {i for i, bad in zip(found.pair_ids, found.broken, strict=True) if not bad}
        kept = sound if kept is None else kept & sound
    if not kept:
        raise InsufficientDataError(
            f"{dataset.name}: no pair is sound in {', '.join(checks) or 'any source'}; there is "
            "nothing to audit with"
        )
    sources = {baseline_source, *checks}
    tags = dataset.corpus.tags
    rows = [
        row
        for row, doc_id in enumerate(dataset.corpus.doc_ids)
        if (tag := tags.get(doc_id)).pair_id in kept and tag.source in sources
    ]
    corpus = dataset.corpus.take(np.array(rows, dtype=np.intp))
    qrels = _of(dataset.qrels, frozenset(corpus.doc_ids))
    judged = frozenset(qrels.query_ids)
    queries = tuple(query for query in dataset.queries if query.query_id in judged)
    return replace(dataset, corpus=corpus, queries=queries, qrels=qrels)


def _of(qrels: Qrels, doc_ids: frozenset[str]) -> Qrels:
    columns = zip(qrels.query_codes, qrels.doc_codes, qrels.grades, strict=True)
    rows = [
        (qrels.query_ids[query], qrels.doc_ids[doc], int(grade))
        for query, doc, grade in columns
        if qrels.doc_ids[doc] in doc_ids
    ]
    answered = {query for query, _, grade in rows if grade > 0}
    return Qrels.from_rows(row for row in rows if row[0] in answered)
