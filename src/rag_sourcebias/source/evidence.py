"""The queries that a verdict on a source rests on, with the texts that were ranked."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from rag_sourcebias.core.data import Corpus, Qrels, Query, Run, TagTable
from rag_sourcebias.core.evidence import Evidence, EvidenceText, telling
from rag_sourcebias.core.skew import AuditConfig, ChanceSkew, SystemSkew


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
    places = {query: at for at, query in enumerate(run.query_ids)}
    codes = {query: code for code, query in enumerate(qrels.query_ids)}
    for at in telling(np.where(chance.both, skew, 0.0), scores.query_ids):
        query = scores.query_ids[at]
        ranked: list[int] = []
        if (place := places.get(query)) is not None:
            ranked = run.doc_codes[run.offsets[place] : run.offsets[place + 1]].tolist()
        judged = (qrels.query_codes == codes[query]) & (qrels.grades > 0)
        names = [qrels.doc_ids[code] for code in qrels.doc_codes[judged]]
        rank = {run.doc_ids[code]: at for at, code in enumerate(ranked, start=1)}
        pair = _pair(names, rank, tags, (config.baseline_source, chance.other))
        if pair is None:
            continue
        sides = tuple(
            EvidenceText.of(
                source,
                corpus.texts[tags.row_of[name]] if corpus is not None else "",
                doc_id=name,
                value=rank,
            )
            for source, (name, rank) in zip(
                (config.baseline_source, chance.other), pair, strict=True
            )
        )
        yield Evidence(
            item=query,
            asked=asked.get(query, "") if corpus is not None else "",
            value=float(skew[at]),
            first=sides[0],
            second=sides[1],
        )


Ranked = tuple[str, float | None]


def _pair(
    names: Sequence[str], rank: Mapping[str, int], tags: TagTable, sources: tuple[str, str]
) -> tuple[Ranked, Ranked] | None:
    """Choose one relevant document of each source: two versions of one if there are any."""
    rows = tags.rows_for(names)
    held: tuple[list[tuple[str, int]], ...] = tuple(
        [
            (name, int(tags.pair_codes[row]))
            for name, row in zip(names, rows, strict=True)
            if row >= 0 and tags.source_codes[row] == tags.sources.index(source)
        ]
        for source in sources
    )
    last = len(rank) + 1
    best: tuple[tuple[bool, int, str, str], Ranked, Ranked] | None = None
    for first, pair in held[0]:
        for second, twin in held[1]:
            places = rank.get(first), rank.get(second)
            top = min(place or last for place in places)
            key = (not (pair >= 0 and pair == twin), top, first, second)
            if best is None or key < best[0]:
                found = [None if place is None else float(place) for place in places]
                best = key, (first, found[0]), (second, found[1])
    return None if best is None else best[1:]
