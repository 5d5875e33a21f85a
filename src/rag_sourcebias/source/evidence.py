"""The queries that a verdict on a source rests on, with the texts that were ranked."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from rag_sourcebias.core.data import Corpus, Qrels, Query, Run, TagTable
from rag_sourcebias.core.evidence import Evidence, EvidenceText, ranks_of, relevant_pair, telling
from rag_sourcebias.source.data import AuditConfig, ChanceSkew, SystemSkew


def evidence_of(
    system: SystemSkew,
    run: Run,
    qrels: Qrels,
    tags: TagTable,
    config: AuditConfig,
    *,
    corpus: Corpus | None = None,
    queries: Sequence[Query] = (),
) -> tuple[Evidence, ...]:
    """Return the queries that matter most for the primary measure, one pair of documents each.

    Parameters
    ----------
    corpus, queries
        Texts; where they are missing, ids stand for them.
    """
    asked = {query.query_id: query.text for query in queries}
    return tuple(
        case
        for chance in system.chance
        for case in _cases(system, chance, run, qrels, tags, config, corpus, asked)
    )


def _cases(  # noqa: PLR0917 - one caller
    system: SystemSkew,
    chance: ChanceSkew,
    run: Run,
    qrels: Qrels,
    tags: TagTable,
    config: AuditConfig,
    corpus: Corpus | None,
    asked: Mapping[str, str],
) -> Iterator[Evidence]:
    scores = system.scores
    skew = chance.skew[scores.measures.index(config.primary_measure)]
    for at in telling(np.where(chance.both, skew, 0.0), scores.query_ids):
        query = scores.query_ids[at]
        sources = (config.baseline_source, chance.other)
        pair = relevant_pair(query, qrels, tags, sources, ranks_of(run, query))
        if pair is None:
            continue
        sides = tuple(
            EvidenceText.of(
                source,
                corpus.texts[tags.row_of[name]] if corpus is not None else "",
                doc_id=name,
                value=rank,
            )
            for source, (name, rank) in zip(sources, pair, strict=True)
        )
        yield Evidence(
            item=query,
            asked=asked.get(query, "") if corpus is not None else "",
            value=float(skew[at]),
            first=sides[0],
            second=sides[1],
        )
