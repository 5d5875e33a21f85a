"""One retriever, measured: Relative Δ, twins, exposure and verdicts from its run."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.data import Corpus, IntArray, Qrels, Query, Run, TagTable
from rag_sourcebias.core.errors import InsufficientDataError, if_enough
from rag_sourcebias.core.finding import Evidence, EvidenceText, Finding, Interval, telling
from rag_sourcebias.infer.decide import SkewCode, adjust_p_values, queries_for_verdict, skew_code
from rag_sourcebias.infer.dependence import (
    MIN_CLUSTERS,
    Dependence,
    design_effect,
    group_codes,
    independent_share,
    require_clusters,
)
from rag_sourcebias.infer.findings import InferCode
from rag_sourcebias.infer.means import (
    clustered_mean,
)
from rag_sourcebias.infer.quantiles import t_quantile
from rag_sourcebias.infer.ratios import (
    BoundedRatio,
    published_delta,
)
from rag_sourcebias.measure.relevance import (
    ChanceScores,
    SourceScores,
    awrf,
    chance_scores,
    exposure,
    source_codes_for,
    source_scores,
)
from rag_sourcebias.measure.texts import require_sources
from rag_sourcebias.source.data import (
    AcrossSources,
    AuditConfig,
    CentredDelta,
    ChanceSkew,
    ExposureShare,
    SettingSkew,
    SkewCell,
    SkewVerdict,
    SoleCorpusCheck,
    SystemSkew,
    Variant,
)
from rag_sourcebias.source.findings import SourceCode
from rag_sourcebias.source.twins import twins_of

# Relative Δ cells: estimate, interval, test and verdict, per measure and source.


def others(scores: SourceScores, baseline: str) -> list[str]:
    """Sources compared with the baseline, in order."""
    return [name for name in scores.sources if name != baseline]


def chance_of(run: Run, qrels: Qrels, groups: IntArray, config: AuditConfig) -> ChanceScores:
    """Compare two sources (groups 0 and 1) with permuted labels, under a configuration."""
    return chance_scores(
        run,
        qrels,
        groups,
        measures=config.measures,
        cutoffs=config.cutoffs,
        ties=config.ties,
        gain=config.gain,
    )


def _cell(
    scores: SourceScores,
    measure: str,
    other: str,
    found: tuple[CentredDelta, float | None],
    config: AuditConfig,
) -> SkewCell:
    h, low = scores.of(measure, config.baseline_source), scores.of(measure, other)
    delta, interval, refusal = published_delta(
        h,
        low,
        confidence_level=config.confidence_level,
        method=config.interval_method,
        resamples=config.resamples,
        rng=np.random.default_rng((config.seed, scores.measures.index(measure))),
    )
    centred, p_value = found
    undecided = skew_code(centred.interval, p_value, margin=config.margin) is SkewCode.CANNOT_TELL
    return SkewCell(
        measure=measure,
        baseline=config.baseline_source,
        other=other,
        mean_baseline=float(h.mean()),
        mean_other=float(low.mean()),
        relative_delta=delta,
        interval=interval,
        refusal=refusal,
        p_value=p_value,
        p_adjusted=None,
        n_queries=len(h),
        n_needed=queries_for_verdict(centred.interval, margin=config.margin)
        if undecided and centred.interval is not None
        else None,
        centred=centred,
    )


def centred_delta(
    chance: ChanceScores, row: int, dependence: Dependence, config: AuditConfig
) -> tuple[CentredDelta, float | None]:
    """Return chance-centred Relative Δ of one measure, and the p-value of no skew."""
    both = chance.both
    n = int(both.sum())
    skew, base = chance.skew_terms[row], chance.base_terms[row]
    total = float(base.sum())
    e = [float(part[both].mean()) if n else 0.0 for part in chance.expected[row]]
    found = CentredDelta(
        value=100 * float(skew.sum()) / total if total > 0 else None,
        expected_baseline=e[0],
        expected_other=e[1],
        interval=None,
        refusal=None,
        n_queries=n,
    )
    kept, unit_of = np.unique(dependence.units()[both], return_inverse=True)
    unit = np.zeros(len(both), dtype=np.int64)
    unit[both] = unit_of
    factors, assumptions = _factors(chance, dependence)
    try:
        _require_comparable(n, len(kept), total, dependence.what)
        units = unit[chance.query]
        information = independent_share(
            skew - skew.sum() / total * base,
            units,
            factors,
            confidence_level=config.confidence_level,
        )
        _require_informative(
            float(information * (np.bincount(units, weights=base, minlength=len(kept)) > 0).sum()),
            len(kept),
            dependence.what,
        )
    except InsufficientDataError as error:
        return replace(found, refusal=error.finding), None
    ratio = _weighted(chance, row, unit_of, information)
    lower, upper = ratio.ends(config.confidence_level)
    alone = dependence.clusters is None
    method = InferCode.WEIGHTED_QUERIES if alone else InferCode.WEIGHTED_CLUSTERS
    return (
        replace(
            found,
            value=ratio.estimate,
            interval=Interval(
                estimate=ratio.estimate,
                lower=lower,
                upper=upper,
                confidence_level=config.confidence_level,
                method=method(),
                n_labeled=len(kept),
                assumptions=assumptions,
            ),
            information=information,
        ),
        ratio.p_value(0.0),
    )


def _factors(
    chance: ChanceScores, dependence: Dependence
) -> tuple[list[IntArray], tuple[Finding, ...]]:
    """Return what hits share besides their query, and what is assumed of it."""
    document = group_codes(dependence.documents[chance.doc])
    random = InferCode.DOCUMENTS_SAMPLED(units=dependence.what)
    if dependence.rewriters is None:
        return [document], (random,)
    rewriters = dependence.rewriters[chance.doc]
    count = len(np.unique(rewriters[rewriters >= 0]))
    if count < MIN_CLUSTERS:
        return [document], (random, InferCode.REWRITERS_FIXED(n=count))
    return [document, rewriters], (random, InferCode.REWRITERS_SAMPLED(n=count))


def _weighted(
    chance: ChanceScores, row: int, unit_of: IntArray, information: float
) -> BoundedRatio:
    """Return skew in percent of what is expected, over units; ``unit_of`` has queries with both."""
    skew, base = (
        np.bincount(chance.query, weights=terms[row], minlength=len(chance.both))[chance.both]
        for terms in (chance.skew_terms, chance.base_terms)
    )
    # a cluster that was not seen is as extreme as its queries depend on one another
    size, certain = design_effect(skew - skew.sum() / base.sum() * base, unit_of)
    top = float(chance.largest[row])
    most = max(top, float(np.abs(skew).max()))
    sums = [np.bincount(unit_of, weights=terms).astype(np.float64) for terms in (skew, base)]
    return BoundedRatio(
        numerator=100 * sums[0],
        denominator=sums[1],
        lowest=(-100 * most * size, top / 2 * size),
        highest=(100 * most * size, top / 2 * size),
        information=information * certain,
    )


def across_sources(chance: Sequence[ChanceSkew], row: int, config: AuditConfig) -> AcrossSources:
    """Average the primary measure over the other sources, taken as a sample of rewriters.

    The variance is that between sources plus that of the mean over queries: sources share both
    queries and human documents, so the spread between them misses what these have in common.

    Parameters
    ----------
    chance : sequence of ChanceSkew
        One per other source, at least 2.
    row : int
        Of the primary measure.
    """
    values, influence = [], []
    for one in chance:
        skew, base = one.skew[row], one.base[row]
        total = float(base.sum())
        if total > 0:
            values.append(100 * float(skew.sum()) / total)
            influence.append(100 * skew / total - values[-1] * base / total)
    k, mean = len(values), float(np.mean(values)) if values else 0.0
    interval, refusal = None, None
    try:
        require_clusters(k, InferCode.FEW_REWRITERS)
    except InsufficientDataError as error:
        refusal = error.finding
    else:
        by_query = np.mean(influence, axis=0)
        n = int(np.count_nonzero(np.any(influence, axis=0)))
        variance = float(np.var(values, ddof=1)) / k + float(by_query @ by_query) * n / (n - 1)
        width = t_quantile(0.5 + config.confidence_level / 2, k - 1) * math.sqrt(variance)
        interval = Interval(
            estimate=mean,
            lower=mean - width,
            upper=mean + width,
            confidence_level=config.confidence_level,
            method=InferCode.RANDOM_EFFECTS(),
            n_labeled=k,
            assumptions=(InferCode.QUERIES_SAMPLED(), InferCode.REWRITERS_SAMPLED(n=k)),
        )
    return AcrossSources(
        measure=config.primary_measure,
        n_sources=k,
        value=mean,
        interval=interval,
        refusal=refusal,
    )


def _require_comparable(n: int, n_units: int, total: float, what: str) -> None:
    """Refuse data in which the two sources meet too rarely, or never."""
    if not n:
        raise InsufficientDataError(SourceCode.NEVER_TOGETHER(), n=0, n_needed=MIN_CLUSTERS)
    require_clusters(n_units, InferCode.FEW_COMMON, units=what)
    if not total > 0:
        raise InsufficientDataError(SourceCode.NOTHING_RELEVANT(), n=n)


def _require_informative(independent: float, n: int, what: str) -> None:
    """Refuse units of which too few say anything, as nothing was found or documents are shared."""
    if independent < MIN_CLUSTERS:
        needed = math.ceil(n * MIN_CLUSTERS / independent)
        raise InsufficientDataError(
            SourceCode.UNINFORMATIVE(
                n=n,
                units=what,
                independent=independent,
                n_least=MIN_CLUSTERS,
                n_needed=needed,
            ),
            n=n,
            n_needed=needed,
        )


def verdicts_of(
    cells: Sequence[SkewCell], config: AuditConfig, n_tests: int
) -> tuple[SkewVerdict, ...]:
    """Decide on the primary measure, per other source."""
    found = []
    for cell in cells:
        centred = cell.centred
        if cell.measure != config.primary_measure:
            continue
        code = skew_code(centred.interval, cell.p_adjusted, margin=config.margin)
        needed = None
        if code is SkewCode.CANNOT_TELL and centred.interval is not None:
            # a cell that is undecided before the correction has its number already
            needed = cell.n_needed or queries_for_verdict(centred.interval, margin=config.margin)
        found.append(
            SkewVerdict(
                code=code,
                measure=cell.measure,
                baseline=cell.baseline,
                other=cell.other,
                centred_delta=centred.value,
                interval=centred.interval,
                margin=config.margin,
                p_value=cell.p_value,
                p_adjusted=cell.p_adjusted,
                n_tests=n_tests,
                n_queries=centred.n_queries,
                n_needed=needed,
                refusal=centred.refusal,
            )
        )
    return tuple(found)


def adjusted(
    systems: Sequence[SystemSkew], config: AuditConfig
) -> tuple[tuple[SystemSkew, ...], int]:
    """Adjust the primary p-values over all systems and sources of each variant, and decide.

    Returns
    -------
    systems : tuple of SystemSkew
        With adjusted p-values of the primary measure, and verdicts.
    n_tests : int
        Tests in the family of the ``"mixed"`` variant. The other variants repeat the same
        questions as a check and are adjusted among themselves.
    """
    result = list(systems)
    n_tests = 0
    for variant in {system.variant for system in systems}:
        index = [i for i, system in enumerate(systems) if system.variant == variant]
        raw = [
            cell.p_value if cell.measure == config.primary_measure else None
            for i in index
            for cell in systems[i].cells
        ]
        family = sum(p is not None for p in raw)
        values = iter(adjust_p_values(raw, correction=config.correction))
        for i in index:
            cells = tuple(replace(cell, p_adjusted=next(values)) for cell in systems[i].cells)
            result[i] = replace(
                systems[i], cells=cells, verdicts=verdicts_of(cells, config, family)
            )
        if variant == "mixed":
            n_tests = family
    return tuple(result), n_tests


# Everything that can be said about one run.


_SHARED = 0.83  # of its information a query keeps: a standard error 1.1 times as large


def measure_system(
    run: Run,
    qrels: Qrels,
    tags: TagTable,
    config: AuditConfig,
    *,
    dependence: Dependence | None = None,
    corpus: Corpus | None = None,
    settings: Mapping[str, str] | None = None,
    variant: Variant = "mixed",
    sole_corpus: tuple[SoleCorpusCheck, ...] = (),
    notes: Sequence[Finding] = (),
) -> SystemSkew:
    """Measure one run on the mixed corpus.

    Parameters
    ----------
    dependence : Dependence, optional
        What queries and documents share; by default documents and their versions only.
    corpus : Corpus, optional
        Texts, for length and overlap; its tag table must be ``tags``.
    """
    require_sources(tags, config.baseline_source)
    dependence = dependence or Dependence.of(qrels, tags, None)
    scores = source_scores(
        run,
        qrels,
        tags,
        measures=config.measures,
        cutoffs=config.cutoffs,
        ties=config.ties,
        gain=config.gain,
    )
    compared = others(scores, config.baseline_source)
    chance = {
        other: chance_of(run, qrels, _pair_of(qrels, tags, config.baseline_source, other), config)
        for other in compared
    }
    cells = tuple(
        _cell(scores, measure, other, centred_delta(found, i, dependence, config), config)
        for other, found in chance.items()
        for i, measure in enumerate(scores.measures)
    )
    retrieved = dict(zip(run.query_ids, np.diff(run.offsets).tolist(), strict=True))
    per_query = tuple(
        ChanceSkew(other=other, skew=found.skew(), base=found.base(), both=found.both)
        for other, found in chance.items()
    )
    # rewrites by several models share a pair, which then has no one twin
    twins = [
        twins_of(run, qrels, tags, config, dependence=dependence, corpus=corpus, other=other)
        for other in (() if config.merge_llms else compared)
    ]
    return SystemSkew(
        name=run.name,
        settings=dict(settings or {}),
        variant=variant,
        scores=scores,
        cells=cells,
        twins=tuple(twin for twin in twins if twin is not None),
        exposure=tuple(_exposure(run, tags, config, dependence)),
        sole_corpus=sole_corpus,
        awrf=_awrf(run, tags),
        n_untagged=int(np.count_nonzero(source_codes_for(run.doc_ids, tags)[run.doc_codes] < 0)),
        n_duplicates=run.n_duplicates,
        n_empty=sum(retrieved.get(query, 0) == 0 for query in qrels.query_ids),
        notes=(*notes, *_run_notes(run, qrels, config), *_shared_documents(cells, config)),
        chance=per_query,
        across=across_sources(per_query, scores.measures.index(config.primary_measure), config)
        if len(per_query) > 1
        else None,
    )


def _shared_documents(cells: Sequence[SkewCell], config: AuditConfig) -> Iterator[Finding]:
    """Warn where documents judged for several queries widen the primary interval."""
    for cell in cells:
        information = cell.centred.information
        if cell.measure == config.primary_measure and information < _SHARED:
            yield SourceCode.SHARED(other=cell.other, factor=information**-0.5)


def _pair_of(qrels: Qrels, tags: TagTable, baseline: str, other: str) -> npt.NDArray[np.int64]:
    """Group of each judged document: 0 baseline, 1 other, -1 neither."""
    codes = source_codes_for(qrels.doc_ids, tags)
    group = np.full(len(codes), -1, dtype=np.int64)
    group[codes == tags.sources.index(baseline)] = 0
    group[codes == tags.sources.index(other)] = 1
    return group


def settings_row(
    run: Run,
    qrels: Qrels,
    tags: TagTable,
    config: AuditConfig,
    *,
    dependence: Dependence,
    name: str,
) -> tuple[SettingSkew, ...]:
    """Measure the primary measure alone, per other source, under another setting."""
    measure, _, k = config.primary_measure.partition("@")
    alone = replace(config, measures=(measure,), cutoffs=(int(k),))
    groups = {
        other: _pair_of(qrels, tags, config.baseline_source, other)
        for other in tags.sources
        if other != config.baseline_source
    }
    deltas = {
        other: centred_delta(chance_of(run, qrels, group, alone), 0, dependence, alone)[0]
        for other, group in groups.items()
    }
    return tuple(
        SettingSkew(other=other, setting=name, value=delta.value, interval=delta.interval)
        for other, delta in deltas.items()
    )


def _run_notes(run: Run, qrels: Qrels, config: AuditConfig) -> Iterator[Finding]:
    judged = set(qrels.query_ids)
    unjudged = sum(query not in judged for query in run.query_ids)
    if unjudged:
        yield SourceCode.UNJUDGED(n=unjudged)
    if run.scores is not None and len(run):
        top = max(config.cutoffs)
        tied = (run.scores[1:] == run.scores[:-1]) & (
            (run.ranks[1:] > 1) & (run.ranks[1:] <= top + 1)
        )
        n_tied = len(np.unique(run.query_codes[1:][tied]))
        if n_tied:
            averaged = config.ties == "expected"
            code = SourceCode.TIES_AVERAGED if averaged else SourceCode.TIES_BROKEN
            yield code(n=n_tied, n_queries=len(run.query_ids), rank=top + 1)


def _exposure(
    run: Run, tags: TagTable, config: AuditConfig, dependence: Dependence
) -> Iterator[ExposureShare]:
    corpus = {name: n / max(tags.n_documents, 1) for name, n in tags.counts().items()}
    unit = dependence.units(run.query_ids)
    for browsing in config.browsing:
        found = exposure(run, tags, browsing=browsing)
        for source, shares in zip(found.sources, found.shares, strict=True):
            corpus_share = corpus.get(source, 0.0)
            if not len(shares) or (source == "" and not shares.any() and not corpus_share):
                continue
            yield ExposureShare(
                source=source,
                browsing=browsing,
                share=float(shares.mean()),
                corpus_share=corpus_share,
                difference=if_enough(
                    clustered_mean,
                    shares - corpus_share,
                    unit[found.query_index],
                    confidence_level=config.confidence_level,
                    bounds=(-corpus_share, 1 - corpus_share),
                ),
            )


def _awrf(run: Run, tags: TagTable) -> float | None:
    found = exposure(run, tags, browsing="dcg")
    if not len(found.query_index):
        return None
    target = {name: count / tags.n_documents for name, count in tags.counts().items()}
    return float(awrf(found, target).mean())


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
        pair = _relevant_pair(query, qrels, tags, sources, _ranks_of(run, query))
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


_Ranked = tuple[str, float | None]


def _relevant_pair(
    query: str,
    qrels: Qrels,
    tags: TagTable,
    sources: tuple[str, str],
    rank: Mapping[str, int],
) -> tuple[_Ranked, _Ranked] | None:
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


def _ranks_of(run: Run, query: str) -> dict[str, int]:
    """Return the rank of each document that was retrieved for a query."""
    if query not in run.query_ids:
        return {}
    at = run.query_ids.index(query)
    codes = run.doc_codes[run.offsets[at] : run.offsets[at + 1]].tolist()
    return {run.doc_ids[code]: rank for rank, code in enumerate(codes, start=1)}
