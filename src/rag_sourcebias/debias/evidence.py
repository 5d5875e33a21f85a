"""The queries that a change moved most, with the texts whose ranks it changed."""

from collections.abc import Iterator

import numpy as np

from rag_sourcebias.core.data import Dataset, Run
from rag_sourcebias.core.evidence import Evidence, EvidenceText, ranks_of, relevant_pair, telling
from rag_sourcebias.debias.data import DebiasConfig, DebiasReport, DebiasScores
from rag_sourcebias.debias.words import DebiasVerdict, verdicts
from rag_sourcebias.report import blocks as b
from rag_sourcebias.report.evidence import evidence, section


def evidence_of(
    dataset: Dataset,
    other: str,
    config: DebiasConfig,
    before: tuple[DebiasScores, Run],
    after: tuple[DebiasScores, Run],
) -> tuple[Evidence, ...]:
    """Return the queries in which the skew changed most, one pair of documents each."""
    cutoff, sources = config.skew_cutoff, (config.baseline_source, other)
    base, rival = (
        after[0].of(row, cutoff) - before[0].of(row, cutoff) for row in ("baseline", "other")
    )
    moved = np.asarray(base - rival, dtype=np.float64)
    asked = {query.query_id: query.text for query in dataset.queries}
    tags, texts = dataset.corpus.tags, dataset.corpus.texts
    cases = []
    for at in telling(moved, after[0].query_ids).tolist():
        query = after[0].query_ids[at]
        was, now = ranks_of(before[1], query), ranks_of(after[1], query)
        pair = relevant_pair(query, dataset.qrels, tags, sources, now)
        if pair is None:
            continue
        first, second = (
            EvidenceText.of(
                source,
                texts[tags.row_of[name]],
                doc_id=name,
                value=rank,
                was=float(was[name]) if name in was else None,
            )
            for source, (name, rank) in zip(sources, pair, strict=True)
        )
        cases.append(
            Evidence(
                item=query,
                asked=asked.get(query, ""),
                value=float(moved[at]),
                first=first,
                second=second,
            )
        )
    return tuple(cases)


def evidence_section(report: DebiasReport) -> b.Section | None:
    """Return the queries that each change moved most."""
    base = b.short_names((report.config.baseline_source,))[report.config.baseline_source]
    return section(
        ((f"{v.system} on {v.on}", _cases(v, base)) for v in verdicts(report)),
        title="The queries that changed most",
        lead=f"How far the change moved each query towards {base} text (above 0) or away from it. "
        "One relevant document of each source is shown, with its rank before and after; words that "
        "the other text lacks are marked.",
    )


def _cases(verdict: DebiasVerdict, base: str) -> Iterator[b.Block]:
    rival = b.short_names((verdict.dataset.other,))[verdict.dataset.other]
    return evidence(
        verdict.outcome.evidence,
        of=f"change ×100, NDCG@{verdict.skew.cutoff}",
        noun="query",
        columns=(base, rival, "rank"),
        write=lambda rank: "not found" if rank is None else b.number(rank, digits=0),
        added=lambda value: b.number(100 * value, signed=True),
        caption=f"Queries that {verdict.system} on {verdict.on} changes most",
        changed=True,
    )
