"""Source audits: what is measured of one run, of finished runs, and of retrievers run on data."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import compress
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.codec import environment, timestamp
from rag_sourcebias.core.data import (
    BoolArray,
    Corpus,
    Dataset,
    FloatArray,
    IntArray,
    Qrels,
    Run,
    TagTable,
    places_of,
)
from rag_sourcebias.core.errors import DataError, InsufficientDataError, if_enough
from rag_sourcebias.core.finding import Evidence, EvidenceText, Finding, Interval, telling
from rag_sourcebias.core.protocols import ApproximateRetriever, RetrieverSpec
from rag_sourcebias.infer.findings import InferCode
from rag_sourcebias.infer.means import (
    MIN_CLUSTERS,
    BoundedRatio,
    ClusterFlips,
    Dependence,
    SkewCode,
    adjust_p_values,
    clustered_difference,
    clustered_mean,
    clustered_standardised_mean,
    difference_test,
    effective_number,
    expit,
    fewest_clusters,
    group_codes,
    means_of,
    published_delta,
    queries_for_verdict,
    require_clusters,
    require_even,
    shared_variance,
    skew_code,
    t_around,
    t_p_value,
    t_quantile,
    two_way_variance,
)
from rag_sourcebias.infer.texts import TextStatistic, text_statistics
from rag_sourcebias.infer.verified import (
    Slots,
    Verification,
    p_of,
    relevant_slots,
    side,
    tag_quality,
    verified_delta,
)
from rag_sourcebias.intake.belong import BelongCode, check_run
from rag_sourcebias.measure.relevance import (
    ChanceScores,
    Exposure,
    Hits,
    Retrieved,
    SourceScores,
    Ties,
    awrf,
    chance_scores,
    exposures,
    filled,
    join,
    matched,
    of_sources,
    rank_span,
    says_what_is_not_relevant,
    score_run,
    source_codes_for,
    source_scores,
    stays,
    trec_order,
    with_share,
)
from rag_sourcebias.measure.texts import (
    TEXT_STATISTICS,
    Copies,
    DataSummary,
    Design,
    copies_of,
    cut_texts,
    data_warnings,
    overlap,
    summarise,
    summarise_dataset,
    word_counts,
    words_kept,
)
from rag_sourcebias.retrieval.application import ApplicationRetriever, ApplicationSpec, FinishedRun
from rag_sourcebias.retrieval.rerank import RerankedSpec
from rag_sourcebias.retrieval.search import BM25Spec
from rag_sourcebias.source.findings import (
    AcrossSources,
    AuditConfig,
    CentredDelta,
    ChanceSkew,
    ExposureShare,
    Holes,
    SettingSkew,
    SkewCell,
    SkewVerdict,
    SoleCorpusCheck,
    SourceCode,
    SystemSkew,
    TwinSkew,
    Variant,
)
from rag_sourcebias.source.page import SkewReport

# Relative Δ cells: estimate, interval, test and verdict, per measure and source.


def chance_of(hits: Hits, qrels: Qrels, groups: IntArray, config: AuditConfig) -> ChanceScores:
    """Compare two sources (groups 0 and 1) with permuted labels, under a configuration."""
    return chance_scores(
        hits,
        qrels,
        groups,
        measures=config.measures,
        cutoffs=config.cutoffs,
        gain=config.gain,
    )


def _needed(interval: Interval | None, p_value: float | None, config: AuditConfig) -> int | None:
    """Return the queries that a verdict takes; None where there is one, or none is possible."""
    undecided = skew_code(interval, p_value, margin=config.margin) is SkewCode.CANNOT_TELL
    if interval is None or not undecided:
        return None
    return queries_for_verdict(interval, margin=config.margin)


def centred_delta(
    chance: ChanceScores, row: int, dependence: Dependence, config: AuditConfig
) -> tuple[CentredDelta, float | None]:
    """Return chance-centred Relative Δ of one measure, and the p-value of no skew."""
    both = chance.both
    n = int(both.sum())
    skew, base = chance.skew_terms[row], chance.base_terms[row]
    total = float(base.sum())
    found = CentredDelta(
        value=100 * float(skew.sum()) / total if total > 0 else None,
        interval=None,
        refusal=None,
        n_queries=n,
    )
    kept, unit_of = np.unique(dependence.units()[both], return_inverse=True)
    unit = np.zeros(len(both), dtype=np.int64)
    unit[both] = unit_of
    g, what, level = len(kept), dependence.what, config.confidence_level
    try:
        _require_comparable(n, g, total, what)
        least = MIN_CLUSTERS
        if dependence.clusters is not None:
            require_even(unit_of)
            least = fewest_clusters(level)
        _require_informative(len(np.unique(unit[chance.query[base > 0]])), least, g, what)
        terms = skew - skew.sum() / total * base
        spread = _spread(chance, base > 0, terms, unit, dependence)
        _require_informative(spread.degrees + 1, _LEAST_DOCUMENTS, g, what)
    except InsufficientDataError as error:
        return replace(found, refusal=error.finding), None
    # where nothing varies, nothing is known beyond the documents
    known = 1.0 if spread.variance > 0 else min((spread.degrees + 1) / g, 1.0)
    ratio = _weighted(chance, row, unit_of, known)
    alone = dependence.clusters is None
    deviation = 100 * math.sqrt(spread.variance) / total
    lower, upper, p_value = _widest(ratio, deviation, spread.degrees, config, alone=alone)
    interval = Interval(
        estimate=ratio.estimate,
        lower=lower,
        upper=upper,
        confidence_level=level,
        method=(InferCode.WEIGHTED_QUERIES if alone else InferCode.CLUSTER_FLIPS)(),
        n_labeled=g,
        assumptions=spread.assumptions,
    )
    measured = replace(
        found, value=ratio.estimate, interval=interval, information=spread.information
    )
    return measured, p_value


def _widest(
    ratio: BoundedRatio, deviation: float, degrees: float, config: AuditConfig, *, alone: bool
) -> tuple[float, float, float]:
    """Return the ends and the p-value that hold whatever queries share.

    Parameters
    ----------
    deviation, degrees : float
        Standard error of what documents cause, and its degrees of freedom.
    alone : bool
        Whether queries are units of their own, and not clusters.
    """
    level = config.confidence_level
    half = deviation * t_quantile(0.5 + level / 2, degrees)
    ends = [ratio.ends(level), (ratio.estimate - half, ratio.estimate + half)]
    p_values = [ratio.p_value()]
    if deviation > 0:
        p_values.append(t_p_value(ratio.estimate / deviation, degrees))
    if not alone:
        flips = ClusterFlips(
            numerator=ratio.numerator,
            denominator=ratio.denominator,
            resamples=config.resamples,
            seed=config.seed,
        )
        ends.append(flips.ends(level))
        p_values.append(flips.p_value())
    return min(lower for lower, _ in ends), max(upper for _, upper in ends), max(p_values)


class _Spread(NamedTuple):
    """What the sum of a skew varies by where queries share more than themselves."""

    variance: float
    degrees: float
    information: float
    assumptions: tuple[Finding, ...]


# Effects of documents are told from fewer: with 2 degrees of freedom an interval is 4.3 standard
# errors to either side, and says nothing below.
_LEAST_DOCUMENTS = 3


def _spread(
    chance: ChanceScores,
    found: BoolArray,
    terms: FloatArray,
    unit: IntArray,
    dependence: Dependence,
) -> _Spread:
    """Return the larger variance of those that documents and rewriters cause.

    Parameters
    ----------
    found : bool array of shape (h,)
        Hits that count for the measure.
    terms : float64 array of shape (h,)
        Influence of each hit.
    unit : int64 array of shape (nq,)
    """
    hits = np.stack((chance.query, group_codes(dependence.documents[chance.doc])))
    query, document = np.unique(hits[:, found], axis=1)  # versions count as one document
    sums = np.bincount(unit[chance.query], weights=terms, minlength=int(unit.max()) + 1)
    values = sums.astype(np.float64)
    variance, degrees = shared_variance(values, unit[query], document)
    assumptions = [InferCode.DOCUMENTS_SAMPLED(units=dependence.what)]
    if dependence.rewriters is not None:
        rewriters = dependence.rewriters[chance.doc]
        count = len(np.unique(rewriters[rewriters >= 0]))
        sampled = count >= MIN_CLUSTERS
        code = InferCode.REWRITERS_SAMPLED if sampled else InferCode.REWRITERS_FIXED
        assumptions.append(code(n=count))
        if sampled:
            of_rewriters = two_way_variance(terms, unit[chance.query], rewriters)
            variance, degrees = max(variance, of_rewriters), min(degrees, count - 1)
    alone = float(values @ values)
    information = float(min(alone / variance, 1.0)) if variance > 0 else 1.0
    return _Spread(variance, degrees, information, tuple(assumptions))


def _weighted(
    chance: ChanceScores, row: int, unit_of: IntArray, information: float
) -> BoundedRatio:
    """Return skew in percent of what is expected, over units; ``unit_of`` has queries with both."""
    skew, base = (
        np.bincount(chance.query, weights=terms[row], minlength=len(chance.both))[chance.both]
        for terms in (chance.skew_terms, chance.base_terms)
    )
    top = float(chance.largest[row])
    most = max(top, float(np.abs(skew).max()))
    sums = [np.bincount(unit_of, weights=terms).astype(np.float64) for terms in (skew, base)]
    return BoundedRatio(
        numerator=100 * sums[0],
        denominator=sums[1],
        lowest=(-100 * most, top / 2),
        highest=(100 * most, top / 2),
        information=information,
    )


def across_sources(
    chance: Sequence[ChanceSkew], row: int, config: AuditConfig
) -> AcrossSources | None:
    """Average the primary measure over the other sources, taken as a sample of rewriters.

    The variance is that between sources plus that of the mean over queries: sources share both
    queries and human documents, so the spread between them misses what these have in common.

    Parameters
    ----------
    chance : sequence of ChanceSkew
        One per other source; nothing is averaged of fewer than 2.
    row : int
        Of the primary measure.
    """
    if len(chance) < 2:
        return None
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
        interval = t_around(
            mean,
            math.sqrt(variance),
            k - 1,
            level=config.confidence_level,
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


def _require_informative(independent: float, least: int, n: int, what: str) -> None:
    """Refuse units of which too few say anything, as nothing was found or documents are shared."""
    if independent < least:
        needed = math.ceil(n * least / independent)
        raise InsufficientDataError(
            SourceCode.UNINFORMATIVE(
                n=n, units=what, independent=independent, n_least=least, n_needed=needed
            )
        )


def verdicts_of(
    cells: Sequence[SkewCell],
    config: AuditConfig,
    n_tests: int,
    holes: Sequence[Holes] = (),
) -> tuple[SkewVerdict, ...]:
    """Decide on the primary measure, per other source."""
    by_source = {one.other: one for one in holes}
    found = []
    for cell in cells:
        centred = cell.centred
        if cell.measure != config.primary_measure:
            continue
        code = skew_code(centred.interval, cell.p_adjusted, margin=config.margin)
        known = by_source.get(cell.other)
        turned = (
            known is not None
            and code is not SkewCode.REFUSED
            and code is not skew_code(known.interval, known.p_adjusted, margin=config.margin)
            # too few queries may decide one way of counting and not the other
            and (code is not SkewCode.CANNOT_TELL or known.apart)
        )
        if turned:
            code = SkewCode.CANNOT_TELL
        # a cell that is undecided before the correction has its number already
        needed = cell.n_needed or _needed(centred.interval, cell.p_adjusted, config)
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
                n_needed=None if turned else needed,
                refusal=centred.refusal,
                holes=turned,
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
        filled_values = iter(
            adjust_p_values(
                [one.p_value for i in index for one in systems[i].holes],
                correction=config.correction,
            )
        )
        for i in index:
            cells = tuple(replace(cell, p_adjusted=next(values)) for cell in systems[i].cells)
            holes = tuple(replace(one, p_adjusted=next(filled_values)) for one in systems[i].holes)
            result[i] = replace(
                systems[i],
                cells=cells,
                holes=holes,
                verdicts=verdicts_of(cells, config, family, holes),
            )
        if variant == "mixed":
            n_tests = family
    return tuple(result), n_tests


# Judgments with holes.


# Parts of the queries that draw from their own judgments, for what counting the others changes.
_PARTS = 10
# Of one drawing the chance is felt below a thousand queries; above, it is a thirtieth of theirs.
_DRAWINGS, _MANY_QUERIES = 5, 1_000
# Shares of the unjudged documents, for both sources alike, at which a verdict is looked at; it is
# taken to turn once.
_RELEVANT_SHARES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5)


def holes_of(
    run: Run,
    qrels: Qrels,
    tags: TagTable,
    cells: Sequence[SkewCell],
    config: AuditConfig,
    *,
    as_judged: Sequence[ChanceSkew],
    dependence: Dependence,
) -> Iterator[Holes]:
    """Yield per other source what was judged of what a reader sees, and what the rest may change.

    Nothing where judgments name relevant documents alone, or where all that was retrieved was
    judged.
    """
    if not says_what_is_not_relevant(qrels):
        return
    retrieved = Retrieved.of(run, qrels, tags, ties=config.ties)
    if retrieved.judged.all():
        return
    alone = config.of_primary()
    (cutoff,) = alone.cutoffs
    wider = _with_documents(dependence, Dependence.of(retrieved.qrels, tags, None))
    rng = np.random.default_rng((config.seed, len(qrels)))
    units = dependence.units()
    parts = rng.permutation(int(units.max()) + 1)[units] % _PARTS
    by_part = filled(retrieved, rng, parts)
    drawings = [by_part]
    if len(qrels.query_ids) < _MANY_QUERIES:
        drawings = [filled(retrieved, rng) for _ in range(_DRAWINGS)]
    known = [each for each in drawings if each is not None]

    primary = [cell for cell in cells if cell.measure == config.primary_measure]
    row = cells.index(primary[0])
    shares = {source: retrieved.share_judged(at, cutoff) for at, source in enumerate(tags.sources)}
    groups = dict(_groups(retrieved.sources, tags, config))
    for cell, judged in zip(primary, as_judged, strict=True):
        counted = partial(_counted, retrieved, group=groups[cell.other], config=alone)
        skew = p_value = difference = None
        if known:
            skew, p_value = centred_delta(counted(known), 0, wider, alone)
        if by_part is not None:
            after = counted([by_part])
            difference = _change(
                (judged.skew[row], judged.base[row]),
                (after.skew()[0], after.base()[0]),
                parts,
                config.confidence_level,
            )

        def decided(
            share: float, counted: Callable[[Sequence[IntArray]], ChanceScores] = counted
        ) -> SkewCode:
            found = counted([with_share(retrieved, share, rng)])
            again, p = centred_delta(found, 0, wider, alone)
            return skew_code(again.interval, p, margin=config.margin)

        yield Holes(
            other=cell.other,
            cutoff=cutoff,
            judged_baseline=shares[config.baseline_source],
            judged_other=shares[cell.other],
            value=None if skew is None else skew.value,
            interval=None if skew is None else skew.interval,
            p_value=p_value,
            p_adjusted=None,
            difference=difference,
            turns_at=_turning(
                skew_code(cell.centred.interval, cell.p_value, margin=config.margin), decided
            ),
        )


def _counted(
    retrieved: Retrieved, grades: Sequence[IntArray], *, group: IntArray, config: AuditConfig
) -> ChanceScores:
    """Return the chance of one measure with these grades, on average."""
    (cutoff,) = config.cutoffs
    return averaged(
        [
            chance_of(retrieved.hits(grade, cutoff), retrieved.judgments(grade), group, config)
            for grade in grades
        ]
    )


def _turning(code: SkewCode, decided: Callable[[float], SkewCode]) -> float | None:
    """Return the smallest share of relevant documents that gives another verdict."""
    if code in (SkewCode.REFUSED, SkewCode.CANNOT_TELL):
        return None
    at = bisect_left(_RELEVANT_SHARES, True, key=lambda share: decided(share) is not code)
    return _RELEVANT_SHARES[at] if at < len(_RELEVANT_SHARES) else None


def _change(
    before: tuple[FloatArray, FloatArray],
    after: tuple[FloatArray, FloatArray],
    units: IntArray,
    level: float,
) -> Interval | None:
    """Return by how much the ratio of skew to what is expected changes, in percent."""
    values = []
    for skew, base in (before, after):
        if not base.any():
            return None
        ratio = skew.sum() / base.sum()
        values.append(100 * (ratio + (skew - ratio * base) / base.mean()))
    return if_enough(clustered_mean, values[1] - values[0], units, confidence_level=level)


def averaged(chances: Sequence[ChanceScores]) -> ChanceScores:
    """Return what several drawings of the same judgments give on average."""
    n = len(chances)
    return ChanceScores(
        measures=chances[0].measures,
        both=np.any([chance.both for chance in chances], axis=0),
        largest=np.max([chance.largest for chance in chances], axis=0),
        query=np.concatenate([chance.query for chance in chances]),
        doc=np.concatenate([chance.doc for chance in chances]),
        skew_terms=np.concatenate([chance.skew_terms for chance in chances], axis=1) / n,
        base_terms=np.concatenate([chance.base_terms for chance in chances], axis=1) / n,
    )


def _with_documents(dependence: Dependence, wider: Dependence) -> Dependence:
    """Return what queries share, over the documents of a larger vocabulary."""
    rewriters = dependence.rewriters
    if rewriters is not None:  # who rewrote what was not judged is left open
        n_new = len(wider.documents) - len(rewriters)
        rewriters = np.concatenate([rewriters, np.full(n_new, -1, dtype=np.int64)])
    return replace(dependence, documents=wider.documents, rewriters=rewriters)


# Everything that can be said about one run.


_Centred = tuple[CentredDelta, float | None]
_NO_COPIES = Copies()
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
    copies: Copies = _NO_COPIES,
    asked: Mapping[str, str] | None = None,
) -> SystemSkew:
    """Measure one run on the mixed corpus.

    Parameters
    ----------
    dependence : Dependence, optional
        What queries and documents share; by default documents and their versions only.
    corpus : Corpus, optional
        Texts, for length and overlap; its tag table must be ``tags``.
    copies : Copies, optional
        Documents that count as one, as they do in ``qrels`` already. A reader sees all of them, so
        exposure is that of the run as it is.
    asked : mapping of str to str, optional
        Text of each query. Where it is missing, ids stand for texts in what is kept as evidence.
    """
    lacks = check_run(run, qrels, tags)
    *attention, by_rank = exposures(run, tags, [*config.browsing, "dcg"])
    shown, run = run, copies.ranked(run)
    counted = (run, *copies.draws(shown, config.seed))
    counts = {note.code: note.numbers["n"] for note in lacks}
    tags.require_sources(config.baseline_source)
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
    chance = {
        other: [
            chance_of(join(each, qrels, ties=config.ties), qrels, group, config) for each in counted
        ]
        for other, group in _groups(source_codes_for(qrels.doc_ids, tags), tags, config)
    }
    cells = tuple(
        cell
        for other, found in chance.items()
        for cell in _cells(scores, other, found, dependence, config)
    )
    per_query = tuple(
        ChanceSkew(other=other, skew=best.skew(), base=best.base(), both=best.both)
        for other, (best, *_) in chance.items()
    )
    holes = holes_of(run, qrels, tags, cells, config, as_judged=per_query, dependence=dependence)
    # rewrites by several models share a pair, which then has no one twin
    twins = [
        twins_of(run, qrels, tags, config, dependence=dependence, corpus=corpus, other=other)
        for other in (() if config.merge_llms else chance)
    ]
    cases = _cases(scores, run, qrels, tags, config, per_query, corpus, asked)
    return SystemSkew(
        name=run.name,
        settings=dict(settings or {}),
        variant=variant,
        scores=scores,
        cells=cells,
        twins=tuple(twin for twin in twins if twin is not None),
        exposure=tuple(_exposure(attention, shown, tags, config, dependence)),
        sole_corpus=sole_corpus,
        awrf=_awrf(by_rank, tags),
        n_untagged=counts.get(BelongCode.UNTAGGED, 0),
        n_duplicates=run.n_duplicates,
        n_empty=counts.get(BelongCode.LACKING, 0),
        notes=(*lacks, *notes, *run.notes, *_notes(run, qrels, tags, cells, config, dependence)),
        chance=per_query,
        holes=tuple(holes),
        across=across_sources(per_query, scores.measures.index(config.primary_measure), config),
        evidence=tuple(cases) if variant == "mixed" else (),
    )


def _cells(
    scores: SourceScores,
    other: str,
    chance: Sequence[ChanceScores],
    dependence: Dependence,
    config: AuditConfig,
) -> Iterator[SkewCell]:
    """Yield the cell of each measure; the first of ``chance`` is of the best copies."""
    best, *drawn = chance
    for i, measure in enumerate(scores.measures):
        centred, p_value = centred_delta(best, i, dependence, config)
        if drawn:
            of_any = centred_delta(averaged(drawn), i, dependence, config)
            centred, p_value = _hull((centred, p_value), of_any)
        h, low = scores.of(measure, config.baseline_source), scores.of(measure, other)
        delta, interval, refusal = published_delta(
            h,
            low,
            confidence_level=config.confidence_level,
            method=config.interval_method,
            resamples=config.resamples,
            rng=np.random.default_rng((config.seed, i)),
        )
        yield SkewCell(
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
            n_needed=_needed(centred.interval, p_value, config),
            centred=centred,
        )


def _hull(best: _Centred, drawn: _Centred) -> _Centred:
    """Return skew with ends and a p-value that hold for the best copy of a group and for any.

    The best rank of several copies is higher than that of one, though none is favoured.
    """
    (skew, p_value), (other, other_p) = best, drawn
    if skew.interval is None or other.interval is None or p_value is None or other_p is None:
        return replace(skew, interval=None, refusal=skew.refusal or other.refusal), None
    interval = replace(
        skew.interval,
        lower=min(skew.interval.lower, other.interval.lower),
        upper=max(skew.interval.upper, other.interval.upper),
    )
    return replace(skew, interval=interval), max(p_value, other_p)


def _notes(  # noqa: PLR0917 - one caller
    run: Run,
    qrels: Qrels,
    tags: TagTable,
    cells: Sequence[SkewCell],
    config: AuditConfig,
    dependence: Dependence,
) -> Iterator[Finding]:
    yield from _tie_notes(run, config)
    # versions of one document are judged together
    if not says_what_is_not_relevant(qrels) and not tags.pair_ids:
        yield SourceCode.ONLY_RELEVANT()
    yield from _shared_documents(cells, config)
    if dependence.clusters is not None:
        n = len(np.unique(dependence.clusters))
        yield InferCode.CLUSTERED(n=n, effective=effective_number(dependence.clusters))


def _shared_documents(cells: Sequence[SkewCell], config: AuditConfig) -> Iterator[Finding]:
    """Warn where documents judged for several queries widen the primary interval."""
    for cell in cells:
        information = cell.centred.information
        if cell.measure == config.primary_measure and information < _SHARED:
            yield SourceCode.SHARED(other=cell.other, factor=information**-0.5)


def _groups(codes: IntArray, tags: TagTable, config: AuditConfig) -> Iterator[tuple[str, IntArray]]:
    """Yield each other source with the group of each document: 0 baseline, 1 other, -1 neither.

    Parameters
    ----------
    codes : int64 array of shape (n,)
        Source of each document, -1 for none.
    """
    for code, other in enumerate(tags.sources):
        if other != config.baseline_source:
            group = np.where(codes == code, 1, -1)
            group[codes == tags.sources.index(config.baseline_source)] = 0
            yield other, group


def _tie_notes(run: Run, config: AuditConfig) -> Iterator[Finding]:
    top = max(config.cutoffs)
    start, stop = rank_span(run, np.arange(len(run)), ties="expected")
    n_tied = len(np.unique(run.query_codes[(stop > start + 1) & (start < top)]))
    if n_tied:
        averaged = config.ties == "expected"
        code = SourceCode.TIES_AVERAGED if averaged else SourceCode.TIES_BROKEN
        yield code(n=n_tied, n_queries=len(run.query_ids), rank=top + 1)


def _exposure(
    found: Sequence[Exposure], run: Run, tags: TagTable, config: AuditConfig, dependence: Dependence
) -> Iterator[ExposureShare]:
    corpus = {name: n / max(tags.n_documents, 1) for name, n in tags.counts().items()}
    unit = dependence.units(run.query_ids)
    for browsing, each in zip(config.browsing, found, strict=True):
        for source, shares in zip(each.sources, each.shares, strict=True):
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
                    unit[each.query_index],
                    confidence_level=config.confidence_level,
                    bounds=(-corpus_share, 1 - corpus_share),
                ),
            )


def _awrf(found: Exposure, tags: TagTable) -> float | None:
    if not len(found.query_index):
        return None
    target = {name: count / tags.n_documents for name, count in tags.counts().items()}
    return float(awrf(found, target).mean())


# The queries that a verdict rests on, with the texts that were ranked.


def _cases(  # noqa: PLR0917 - one caller
    scores: SourceScores,
    run: Run,
    qrels: Qrels,
    tags: TagTable,
    config: AuditConfig,
    chances: Sequence[ChanceSkew],
    corpus: Corpus | None,
    asked: Mapping[str, str] | None,
) -> Iterator[Evidence]:
    """Yield the queries that matter most for the primary measure, one pair of documents each."""
    row = scores.measures.index(config.primary_measure)
    for chance in chances:
        skew, sources = chance.skew[row], (config.baseline_source, chance.other)
        for at in telling(np.where(chance.both, skew, 0.0), scores.query_ids):
            query = scores.query_ids[at]
            pair = _relevant_pair(query, qrels, tags, sources, _ranks_of(run, query))
            if pair is None:
                continue
            first, second = (
                EvidenceText.of(
                    source,
                    "" if corpus is None or asked is None else corpus.texts[tags.row_of[name]],
                    doc_id=name,
                    value=rank,
                )
                for source, (name, rank) in zip(sources, pair, strict=True)
            )
            yield Evidence(
                item=query,
                asked=(asked or {}).get(query, ""),
                value=float(skew[at]),
                first=first,
                second=second,
            )


def _relevant_pair(
    query: str,
    qrels: Qrels,
    tags: TagTable,
    sources: tuple[str, str],
    rank: Mapping[str, float],
) -> tuple[tuple[str, float | None], tuple[str, float | None]] | None:
    """Choose one relevant document of each source, with its rank: two versions of one if there are.

    Of several, those of which one ranks highest.

    Parameters
    ----------
    rank : mapping of str to float
        Documents that were retrieved for the query.
    """
    judged = (qrels.query_codes == qrels.query_ids.index(query)) & (qrels.grades > 0)
    names = [qrels.doc_ids[code] for code in qrels.doc_codes[judged]]
    held = [(name, tags.get(name)) for name in names]
    first, second = (
        [(name, known.pair_id) for name, known in held if known.source == source]
        for source in sources
    )
    last = len(rank) + 1
    choices = [
        (pair is None or pair != twin, min(rank.get(one, last), rank.get(other, last)), one, other)
        for one, pair in first
        for other, twin in second
    ]
    if not choices:
        return None
    *_, one, other = min(choices)
    return (one, rank.get(one)), (other, rank.get(other))


def _ranks_of(run: Run, query: str) -> dict[str, float]:
    """Return the rank of each document that was retrieved for a query."""
    if query not in run.query_ids:
        return {}
    found = run.ranked_list(run.query_ids.index(query))
    return {name: float(rank) for rank, name in enumerate(found.doc_ids, start=1)}


# Two versions of one document: which is ranked higher.


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TwinRanks:
    """Places of both versions of each relevant pair; arrays have one entry per (query, pair).

    Parameters
    ----------
    query : int64 array
        Index into ``qrels.query_ids``.
    baseline_row, other_row : int64 arrays
        Rows of the two documents in the tag table.
    baseline_rank, other_rank : float64 arrays
        Expected rank (mean of the tie block); NaN when not retrieved.
    baseline_score, other_score : float64 arrays
        NaN when not retrieved or when the run has no scores.
    above : float64 array
        1 when the other version ranks above the baseline's, 0 below, 0.5 tied. A version that
        was not retrieved ranks below one that was.
    n_unseen : int
        Pairs of which neither version was retrieved; they are left out.
    """

    query: IntArray
    baseline_row: IntArray
    other_row: IntArray
    baseline_rank: FloatArray
    other_rank: FloatArray
    baseline_score: FloatArray
    other_score: FloatArray
    above: FloatArray
    n_unseen: int


def other_above(
    baseline: npt.NDArray[np.number[Any]], other: npt.NDArray[np.number[Any]]
) -> FloatArray:
    """Compare scores of twins: 1 where the other is higher, 0 where lower, 0.5 where equal.

    Parameters
    ----------
    baseline, other : array of shape (n,)
        Scores in any unit, higher is better; entry i of both is one pair of versions.

    Returns
    -------
    float64 array of shape (n,)
        Its mean is the win rate.
    """
    return np.where(other > baseline, 1.0, np.where(other < baseline, 0.0, 0.5))


def twin_ranks(
    run: Run, qrels: Qrels, tags: TagTable, *, baseline: str, other: str, ties: Ties = "expected"
) -> TwinRanks:
    """Find where both versions of each relevant document stand.

    Only pairs of which both versions are relevant to the query count, so that relevance cannot
    explain the difference.

    Raises
    ------
    DataError
        If one source holds two documents with the same ``pair_id``.
    """
    rows = tags.rows_for(qrels.doc_ids)
    left = _pair_keys(qrels, tags, rows, baseline)
    right = _pair_keys(qrels, tags, rows, other)
    keys, i, j = np.intersect1d(left[0], right[0], assume_unique=True, return_indices=True)
    b_doc, o_doc = left[1][i], right[1][j]
    ordered = trec_order(run) if ties == "trec" else run
    b_place = _places(ordered, qrels, keys // max(len(tags.pair_ids), 1), b_doc)
    o_place = _places(ordered, qrels, keys // max(len(tags.pair_ids), 1), o_doc)
    seen = (b_place >= 0) | (o_place >= 0)
    b_place, o_place = b_place[seen], o_place[seen]
    start, stop = rank_span(ordered, np.arange(len(run)), ties=ties)
    middle = (start + 1 + stop) / 2
    scores = np.full(len(run), np.nan) if ordered.scores is None else ordered.scores
    return TwinRanks(
        query=keys[seen] // max(len(tags.pair_ids), 1),
        baseline_row=rows[b_doc[seen]],
        other_row=rows[o_doc[seen]],
        baseline_rank=_retrieved(middle, b_place, math.nan),
        other_rank=_retrieved(middle, o_place, math.nan),
        baseline_score=_retrieved(scores, b_place, math.nan),
        other_score=_retrieved(scores, o_place, math.nan),
        above=other_above(
            -_retrieved(start, b_place, math.inf), -_retrieved(start, o_place, math.inf)
        ),
        n_unseen=int(np.count_nonzero(~seen)),
    )


def _pair_keys(
    qrels: Qrels, tags: TagTable, rows: IntArray, source: str
) -> tuple[IntArray, IntArray]:
    """Unique (query, pair) keys of the relevant documents of a source, and their qrels doc."""
    doc = qrels.doc_codes.astype(np.int64)
    row = rows[doc]
    wanted = np.flatnonzero(
        (qrels.grades > 0)
        & (row >= 0)
        & (tags.source_codes[row] == tags.sources.index(source))
        & (tags.pair_codes[row] >= 0)
    )
    key = (
        qrels.query_codes[wanted].astype(np.int64) * len(tags.pair_ids)
        + tags.pair_codes[row[wanted]]
    )
    unique, first = np.unique(key, return_index=True)
    if len(unique) < len(key):
        pair = tags.pair_ids[
            int(key[np.setdiff1d(np.arange(len(key)), first)[0]]) % len(tags.pair_ids)
        ]
        raise DataError(
            f"source {source!r} holds more than one document with pair_id {pair!r}; a pair has "
            "one version per source"
        )
    return unique, doc[wanted][first]


def _places(run: Run, qrels: Qrels, query: IntArray, doc: IntArray) -> IntArray:
    """Entry of the run that holds each (query, document) of the qrels, -1 when not retrieved."""
    q_map = places_of(qrels.query_ids, run.query_ids)
    d_map = places_of(qrels.doc_ids, run.doc_ids)
    place = np.full(len(query), -1, dtype=np.int64)
    found, at = matched(q_map[query], d_map[doc], run.query_codes, run.doc_codes)
    place[found] = at
    return place


def _retrieved(values: npt.NDArray[np.number[Any]], place: IntArray, missing: float) -> FloatArray:
    """Return the values of entries of a run, and another for what was not retrieved."""
    found = np.full(len(place), missing)
    found[place >= 0] = values[place[place >= 0]]
    return found


_MIN_EVENTS = 5  # with fewer the interval covered .90 (tests/statistics)
_CONSTANT = 1e-12
_MAX_COEFFICIENT = 15.0  # on standardised covariates: beyond it the classes are separated


def win_rate_at(
    wins: FloatArray,
    covariates: FloatArray,
    clusters: npt.NDArray[np.integer[Any]],
    *,
    at: FloatArray,
    confidence_level: float = 0.95,
) -> Interval:
    """P(win) at chosen covariate values, with a cluster-robust interval.

    Fits logit P(win) = b₀ + b · (covariates − at) and reports the intercept on the probability
    scale.

    Parameters
    ----------
    wins : float64 array of shape (n,)
        1 won, 0 lost, 0.5 tied (quasi-likelihood).
    covariates : float64 array of shape (n, p)
    clusters : integer array of shape (n,)
    at : float64 array of shape (p,)

    Raises
    ------
    InsufficientDataError
        If there are too few clusters for the covariates, too few pairs that went one way, the
        outcome is separated, the clusters do not vary, or a covariate is constant at another
        value than ``at``.
    """
    n, p = covariates.shape
    code = group_codes(clusters)
    g = int(code.max(initial=-1)) + 1
    _require_enough(wins, n_clusters=g, n_covariates=p)
    scale = covariates.std(axis=0)
    used = scale > _CONSTANT
    if np.any(stuck := ~used & (np.abs(covariates.mean(axis=0) - at) > _CONSTANT)):
        column = int(np.argmax(stuck))
        raise InsufficientDataError(
            SourceCode.CONSTANT_COVARIATE(
                column=column, value=float(covariates[0, column]), at=float(at[column])
            ),
            n=g,
        )
    design = np.column_stack((np.ones(n), (covariates[:, used] - at[used]) / scale[used]))
    beta, fitted, bread = _fit(wins, design)
    sums = np.zeros((g, design.shape[1]))
    np.add.at(sums, code, design * (wins - fitted)[:, None])
    variance = float((bread @ (sums.T @ sums) @ bread)[0, 0]) * g / (g - 1)
    if variance < _CONSTANT**2:
        raise InsufficientDataError(SourceCode.ALL_AGREE(n=g))
    width = t_quantile(0.5 + confidence_level / 2, g - 1) * math.sqrt(variance)
    assumptions = [InferCode.QUERIES_SAMPLED, InferCode.ODDS_LINEAR]
    if np.any((at < covariates.min(axis=0)) | (covariates.max(axis=0) < at)):
        assumptions.append(InferCode.EXTRAPOLATED)
    return Interval(
        estimate=expit(beta[0]),
        lower=expit(beta[0] - width),
        upper=expit(beta[0] + width),
        confidence_level=confidence_level,
        method=InferCode.LOGISTIC(),
        n_labeled=g,
        assumptions=tuple(code() for code in assumptions),
    )


def _require_enough(wins: FloatArray, *, n_clusters: int, n_covariates: int) -> None:
    """Refuse a fit that so few clusters, or so one-sided an outcome, cannot support."""
    needed = 10 * (n_covariates + 1)
    if n_clusters < needed:
        raise InsufficientDataError(
            SourceCode.FEW_FOR_COVARIATES(n_covariates=n_covariates, n_needed=needed, n=n_clusters)
        )
    events = min(float(wins.sum()), float(len(wins) - wins.sum()))
    if events < _MIN_EVENTS:
        raise InsufficientDataError(
            SourceCode.ONE_WAY(events=events, n_pairs=len(wins), n_least=_MIN_EVENTS),
            n=n_clusters,
        )


def _fit(wins: FloatArray, design: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Newton's method; returns coefficients, fitted probabilities and the inverse information."""
    beta: FloatArray = np.zeros(design.shape[1])
    for _ in range(50):
        fitted = 1 / (1 + np.exp(-np.clip(design @ beta, -40, 40)))
        weight = fitted * (1 - fitted)
        information = (design * weight[:, None]).T @ design
        if np.linalg.cond(information) > 1e12:
            break
        bread: FloatArray = np.linalg.inv(information).astype(np.float64)
        step = bread @ (design.T @ (wins - fitted))
        beta = beta + step
        if np.max(np.abs(beta)) > _MAX_COEFFICIENT:
            break
        if np.max(np.abs(step)) < 1e-10:
            return beta, fitted, bread
    raise InsufficientDataError(SourceCode.SEPARATED(), n=len(wins))


def twins_of(
    run: Run,
    qrels: Qrels,
    tags: TagTable,
    config: AuditConfig,
    *,
    dependence: Dependence,
    corpus: Corpus | None,
    other: str,
) -> TwinSkew | None:
    """Compare both versions of each relevant pair; None where nothing is paired."""
    if not tags.pair_ids:
        return None
    found = twin_ranks(
        run, qrels, tags, baseline=config.baseline_source, other=other, ties=config.ties
    )
    if not len(found.query) and not found.n_unseen:
        return None
    level = config.confidence_level
    unit = dependence.units()[found.query]
    log_ratio, kept = _pair_texts(found, corpus)
    both = ~np.isnan(found.baseline_score) & ~np.isnan(found.other_score)
    gap = (found.other_score - found.baseline_score)[both]
    computed: dict[str, Callable[[], Interval]] = {
        "win rate": lambda: _win_rate(found, tags, dependence, config),
        "score margin": lambda: clustered_standardised_mean(
            gap, unit[both], confidence_level=level
        ),
    }
    if corpus is not None:
        covariates = np.column_stack((log_ratio, kept))
        mean_overlap = float(kept.mean()) if len(kept) else 0.0
        at = np.array([0.0, mean_overlap])
        computed["equal-length win rate"] = lambda: win_rate_at(
            found.above, covariates, unit, at=at, confidence_level=level
        )
    intervals: dict[str, Interval] = {}
    notes = []
    for name, compute in computed.items():
        try:
            intervals[name] = compute()
        except InsufficientDataError as error:
            notes.append(SourceCode.NOT_COMPUTED(figure=name, refusal=error.finding))
    return TwinSkew(
        baseline=config.baseline_source,
        other=other,
        n_pairs=len(found.query),
        n_unseen=found.n_unseen,
        win_rate=intervals.get("win rate"),
        margin=intervals.get("score margin"),
        win_rate_equal_length=intervals.get("equal-length win rate"),
        query_index=found.query,
        other_above=found.above,
        baseline_rank=found.baseline_rank,
        other_rank=found.other_rank,
        log_length_ratio=log_ratio,
        overlap=kept,
        notes=tuple(notes),
    )


def _win_rate(
    found: TwinRanks, tags: TagTable, dependence: Dependence, config: AuditConfig
) -> Interval:
    """P(other above baseline), with pairs that several queries share as a factor."""
    level = config.confidence_level
    code = group_codes(dependence.units()[found.query])
    require_clusters(int(code.max(initial=-1)) + 1, InferCode.FEW_WITH_PAIRS)
    values = np.bincount(code, weights=found.above - found.above.mean()).astype(np.float64)
    pairs = tags.pair_codes[found.baseline_row].astype(np.int64)
    variance, degrees = shared_variance(values, code, pairs)
    if degrees + 1 < _LEAST_DOCUMENTS:
        raise InsufficientDataError(
            InferCode.FEW_OWN_PAIRS(n=int(degrees + 1), n_needed=_LEAST_DOCUMENTS)
        )
    interval = clustered_mean(found.above, code, confidence_level=level, bounds=(0.0, 1.0))
    if dependence.clusters is not None:
        interval = means_of(code, config)(found.above, bounds=(0.0, 1.0))
    if not variance > 0:
        return interval
    half = t_quantile(0.5 + level / 2, degrees) * math.sqrt(variance) / len(found.above)
    return replace(
        interval,
        lower=max(min(interval.lower, interval.estimate - half), 0.0),
        upper=min(max(interval.upper, interval.estimate + half), 1.0),
    )


def _pair_texts(
    found: TwinRanks, corpus: Corpus | None
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Ln length ratio and word overlap of each pair; empty without texts."""
    if corpus is None:
        return np.empty(0), np.empty(0)
    # A pair judged for many queries is compared once.
    pairs, where = np.unique(
        np.stack((found.baseline_row, found.other_row)), axis=1, return_inverse=True
    )
    base, other = ([corpus.texts[row] for row in rows] for rows in pairs)
    ratio = np.log(np.maximum(word_counts(other), 1) / np.maximum(word_counts(base), 1))
    kept = np.array([overlap(o, b) for o, b in zip(other, base, strict=True)], dtype=np.float64)
    return ratio[where.ravel()], kept[where.ravel()]


# The verb: measure source bias from runs and judgments.


#: Source of all documents by language models once they are merged.
MERGED = "llm"


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


def measure_source_bias(
    runs: Run | Sequence[Run],
    qrels: Qrels,
    tags: TagTable,
    *,
    config: AuditConfig | None = None,
    corpus: Corpus | None = None,
    name: str = "data",
    design: Design = "unknown",
    settings: Mapping[str, Mapping[str, str]] | None = None,
    clusters: Mapping[str, str] | None = None,
    verified: Verification | None = None,
    copies: Any = "words",  # noqa: ANN401 - whatever a user has
) -> SkewReport:
    """Measure whether rankings favour a source, from finished runs ([K] §3.1).

    Parameters
    ----------
    runs : Run or sequence of Run
        Retrieved from the mixed corpus; names must differ.
    qrels : Qrels
    tags : TagTable
        Sources of all documents of the corpus (their shares are the exposure baseline).
    config : AuditConfig, optional
    corpus : Corpus, optional
        Texts, for length and overlap. Its tags must be ``tags``.
    name : str
        Name of the data, for the report.
    design : {"rewrites", "independent", "unknown"}
        What documents of different sources have in common, see :class:`Dataset`.
    settings : mapping of str to mapping, optional
        Settings to state per run name.
    clusters : mapping of str to str, optional
        Topic, paraphrase group or user session of each judged query: queries of one cluster may
        depend on one another.
    verified : Verification, optional
        Where tags are guesses: documents that people verified (``tag verify``), by which
        Relative Δ is corrected for wrong tags. Measures must add up over documents (NDCG, P).
        Copies count one by one then, as they were drawn.
    copies : {"words", "no"}, ``{document: group}``, frame or path
        Near-duplicates of one source, which count as one document: those that share most of their
        words, where there are texts; or the group of each document that has copies.

    Returns
    -------
    SkewReport

    Raises
    ------
    InsufficientDataError
        If fewer than 50 documents were verified, or fewer than 5 of either kind.

    Examples
    --------
    >>> from rag_sourcebias import DocTags
    >>> run = Run.from_dict({f"q{i}": {"h": 2.0, "l": 1.0} for i in range(9)})
    >>> qrels = Qrels.from_dict({f"q{i}": {"h": 1, "l": 1} for i in range(9)})
    >>> tags = TagTable.from_tags(
    ...     [("h", DocTags(source="human")), ("l", DocTags(source="llm:x"))]
    ... )
    >>> report = measure_source_bias(run, qrels, tags)
    >>> report.system("run").cell("NDCG@1", "llm:x").relative_delta
    200.0
    """
    config = config or AuditConfig()
    many = [runs] if isinstance(runs, Run) else list(runs)
    if not many:
        raise DataError("no run was given; give at least one")
    names = [run.name for run in many]
    if len(set(names)) != len(names):
        raise DataError(f"run names must differ, got {names}")
    if verified is not None:
        tag_quality(verified)  # too few, or all of one kind: refused before there is a figure
        config, tags = corrected_config(config), of_two_sources(tags, config.baseline_source)
        copies = "no"
    known = copies_of(copies, tags, qrels, corpus)
    counted = known.judged(qrels)
    separate, tags = tags, merge_llms(tags) if config.merge_llms else tags
    if corpus is not None and config.merge_llms:
        corpus = replace(corpus, tags=tags)
    dependence = Dependence.of(counted, tags, clusters, merged_from=separate)
    several = verified is None and len(tags.sources) > 2
    shared: dict[str, Any] = {
        "dependence": dependence,
        "corpus": corpus,
        "copies": known,
        "asked": {},
    }
    systems: list[SystemSkew] = []
    for run in many:
        system = measure_system(
            run,
            counted,
            tags,
            config,
            settings=(settings or {}).get(run.name),
            variant="together" if several else "mixed",
            **shared,
        )
        if verified is not None:
            system = corrected(system, run, qrels, config, dependence=dependence, verified=verified)
        if several:
            systems += restricted(run, counted, tags, config, settings=system.settings, **shared)
        systems.append(system)
    dataset = summarise(name=name, design=design, qrels=qrels, tags=tags, corpus=corpus)
    findings = [] if verified is None else [_about_tags(verified)]
    findings += data_warnings(dataset, qrels, tags, config, guessed=verified is not None)
    findings += known.findings
    if several:
        findings.append(SourceCode.RESTRICTED(severity="warning"))
    return assemble(systems, dataset, config, findings=findings)


# Relative Δ from guessed tags, corrected by documents that people verified.


def corrected_config(config: AuditConfig) -> AuditConfig:
    """Return the settings with the measures that verified documents can correct.

    Raises
    ------
    DataError
        If the baseline is not human text, or no measure, or not the primary one, adds up over
        documents.
    """
    kept = tuple(measure for measure in config.measures if measure in ("NDCG", "P"))
    primary = (config.primary or "").partition("@")[0]
    if not kept or config.baseline_source != "human" or primary not in ("", *kept):
        raise DataError(
            "verified documents correct measures that add up over documents, NDCG and P, of human "
            f"against LLM text; asked for {config.primary or ', '.join(config.measures)} with "
            f"baseline {config.baseline_source!r}"
        )
    return replace(config, measures=kept, merge_llms=False)


def of_two_sources(tags: TagTable, baseline: str) -> TagTable:
    """Merge all sources but the baseline into ``"llm"``."""
    models = [name for name in tags.sources if name != baseline]
    return tags.merge_sources({MERGED: models}) if models else tags


def corrected(
    system: SystemSkew,
    run: Run,
    qrels: Qrels,
    config: AuditConfig,
    *,
    dependence: Dependence,
    verified: Verification,
) -> SystemSkew:
    """Replace figures by tags that may be wrong by those that verified documents correct."""
    cells = []
    for cell in system.cells:
        measure, _, cutoff = cell.measure.partition("@")
        slots = relevant_slots(run, qrels, measure, int(cutoff), ties=config.ties, gain=config.gain)
        intervals: list[Interval | None] = []
        refusal: Finding | None = None
        for centred in (False, True):
            try:
                intervals.append(
                    verified_delta(
                        slots,
                        qrels.doc_ids,
                        verified,
                        centred=centred,
                        units=dependence.units(),
                        what=dependence.what,
                        confidence_level=config.confidence_level,
                    )
                )
            except InsufficientDataError as error:
                intervals.append(None)
                refusal = error.finding
        cells.append(_corrected_cell(cell, slots, intervals, refusal, config))
    notes = (*system.notes, SourceCode.CORRECTED())
    return replace(system, cells=tuple(cells), notes=notes)


def _corrected_cell(
    cell: SkewCell,
    slots: Slots,
    intervals: Sequence[Interval | None],
    refusal: Finding | None,
    config: AuditConfig,
) -> SkewCell:
    plain, centred = intervals
    half = float(slots.plain.sum()) / cell.n_queries / 2
    lead = (plain.estimate if plain else 0.0) / 200
    several = np.unique(slots.query[np.bincount(slots.query)[slots.query] > 1])
    found = CentredDelta(
        value=centred.estimate if centred else None,
        interval=centred,
        refusal=None if centred else refusal,
        n_queries=len(several),
    )
    p_value = None if centred is None else p_of(centred)
    return replace(
        cell,
        mean_baseline=half * (1 + lead),
        mean_other=half * (1 - lead),
        relative_delta=plain.estimate if plain else None,
        interval=plain,
        refusal=None if plain else refusal,
        p_value=p_value,
        n_needed=_needed(centred, p_value, config),
        centred=found,
    )


def _about_tags(verified: Verification) -> Finding:
    truth = verified.truth
    return SourceCode.VERIFIED(
        severity="warning",
        n_declared=len(verified.tags) - len(verified.chance),
        n_detected=len(verified.chance) - len(truth),
        n_verified=len(truth),
        n_wrong=sum(side(source) != side(verified.tags[doc]) for doc, source in truth.items()),
    )


def assemble(
    systems: Sequence[SystemSkew],
    data: DataSummary,
    config: AuditConfig,
    *,
    findings: Sequence[Finding],
) -> SkewReport:
    """Adjust p-values over the report's family and put the report together."""
    done, n_tests = adjusted(systems, config)
    read = {
        (system.name, str(note)): SourceCode.AS_READ(
            severity="warning", system=system.name, note=note
        )
        for system in systems
        if system.variant == "mixed"
        for note in system.notes
        if note.severity == "warning"
    }
    return SkewReport(
        data=data,
        config=config,
        systems=done,
        n_tests=n_tests,
        environment=environment(),
        created=timestamp(),
        findings=(*findings, *read.values(), *_signs_differ(done)),
    )


# One generator at a time ([K] mixes human text with that of one model): several rewrites of one
# document in one index compete with one another, which can turn the sign of a skew.


class TwoSources(NamedTuple):
    """Data from which the documents of all sources but the baseline and another were taken out."""

    qrels: Qrels
    tags: TagTable
    rows: IntArray  # of the table of all
    dependence: Dependence


def one_by_one(
    baseline: str, qrels: Qrels, tags: TagTable, dependence: Dependence
) -> Iterator[TwoSources]:
    """Yield the data of the baseline with each other source; what has no source stays."""
    codes = source_codes_for(qrels.doc_ids, tags)
    for other in tags.sources:
        if other == baseline:
            continue
        two, rows = of_sources(tags, (baseline, other))
        kept = stays(codes, tags, two.sources)
        judged = qrels.take(kept[qrels.doc_codes])
        judged = replace(
            judged,
            doc_ids=tuple(compress(qrels.doc_ids, kept.tolist())),
            doc_codes=(np.cumsum(kept) - 1)[judged.doc_codes].astype(np.int32),
        )
        yield TwoSources(
            qrels=judged,
            tags=two,
            rows=rows,
            dependence=replace(Dependence.of(judged, two, None), clusters=dependence.clusters),
        )


def restricted(
    run: Run,
    qrels: Qrels,
    tags: TagTable,
    config: AuditConfig,
    *,
    dependence: Dependence,
    corpus: Corpus | None = None,
    **about: Any,  # noqa: ANN401 - what all have alike, see measure_system
) -> Iterator[SystemSkew]:
    """Measure a ranking of all sources without the documents of all but one of the others.

    It stands in for the index of two sources where none can be built.
    """
    codes = source_codes_for(run.doc_ids, tags)[run.doc_codes]
    for two in one_by_one(config.baseline_source, qrels, tags, dependence):
        left = np.flatnonzero(stays(codes, tags, two.tags.sources))
        sizes = np.bincount(run.query_codes[left], minlength=len(run.query_ids))
        ranking = replace(
            run,
            offsets=np.concatenate([[0], np.cumsum(sizes)]),
            doc_codes=run.doc_codes[left],
            scores=None if run.scores is None else run.scores[left],
        )
        yield measure_system(
            ranking,
            two.qrels,
            two.tags,
            config,
            dependence=two.dependence,
            corpus=None if corpus is None else replace(corpus.take(two.rows), tags=two.tags),
            **about,
        )


def _signs_differ(systems: Sequence[SystemSkew]) -> Iterator[Finding]:
    """Warn where a source alone beside the baseline and all in one index point apart."""
    together = {
        (system.name, verdict.other): verdict
        for system in systems
        if system.variant == "together"
        for verdict in system.verdicts
    }
    for system in systems:
        for one in system.verdicts if system.variant == "mixed" else ():
            every = together.get((system.name, one.other))
            if every is None or not (one.centred_delta or 0) * (every.centred_delta or 0) < 0:
                continue
            if any(v.interval is not None and v.interval.excludes(0.0) for v in (one, every)):
                yield SourceCode.SIGNS_DIFFER(
                    severity="warning",
                    system=system.name,
                    other=one.other,
                    measure=one.measure,
                    delta=one.figure,
                    together=every.figure,
                )


# What distinguishes the texts of each source before any retriever sees them ([K] Fig. 3).


def match_lengths(corpus: Corpus) -> Corpus:
    """Cut every version of a document to the length of its shortest version, in words.

    Documents without a pair stay as they are. Used to see how much of a skew is length.
    """
    kept = words_kept(corpus.tags.pair_codes, word_counts(corpus.texts))
    return replace(corpus, texts=cut_texts(corpus.texts, kept))


def source_text_statistics(
    corpus: Corpus,
    baseline: str,
    *,
    statistics: Sequence[str] = TEXT_STATISTICS,
    confidence_level: float = 0.95,
    rng: np.random.Generator | int = 0,
) -> tuple[TextStatistic, ...]:
    """Summarise the texts of each source, and what rewrites keep of the baseline's texts.

    Parameters
    ----------
    corpus : Corpus
        Untagged documents are left out.
    baseline : str
        The source whose documents are the originals. A document of another source is compared
        with its twins there (the most similar counts); without one it counts for words only.
    statistics, confidence_level, rng
        As for :func:`~rag_sourcebias.infer.texts.text_statistics`.

    Returns
    -------
    tuple of TextStatistic
        The baseline first, then by name of the source.

    Raises
    ------
    DataError
        If no document has the baseline source.
    MissingExtraError
        If documents are paired and the library of a statistic is not installed.
    """
    tags = corpus.tags
    held = {
        source: rows
        for code, source in enumerate(tags.sources)
        if len(rows := np.flatnonzero(tags.source_codes == code))
    }
    if baseline not in held:
        raise DataError(
            f"no document has source {baseline!r}; sources are {', '.join(held) or 'none'}"
        )
    originals: dict[int, list[str]] = defaultdict(list)
    for row in held[baseline]:
        originals[int(tags.pair_codes[row])].append(corpus.texts[row])
    originals[-1] = []  # documents without a pair
    every = sorted(held.items(), key=lambda one: one[0] != baseline)
    return text_statistics(
        {source: [corpus.texts[row] for row in rows] for source, rows in every},
        {source: [originals[int(tags.pair_codes[row])] for row in rows] for source, rows in every},
        original=baseline,
        statistics=statistics,
        confidence_level=confidence_level,
        rng=rng,
    )


# The verb: retrieve with given retrievers, then measure source bias.


def audit_source(
    dataset: Dataset,
    retrievers: Sequence[RetrieverSpec],
    *,
    config: AuditConfig | None = None,
    depth: int = 100,
    sole_corpus: bool = True,
    length_matched: bool | None = None,
    text_statistics: bool = False,
    settings_strip: bool = True,
    clusters: Mapping[str, str] | None = None,
    copies: Any = "words",  # noqa: ANN401 - whatever a user has
    on_stage: Callable[[str], None] | None = None,
) -> SkewReport:
    """Retrieve from the mixed corpus with every retriever and measure source bias.

    Parameters
    ----------
    retrievers : sequence of RetrieverSpec
        Names must differ.
    depth : int
        Documents retrieved per query; at least the largest cutoff.
    sole_corpus : bool
        Also retrieve from the corpus of each source alone ([K] Table 2).
    length_matched : bool, optional
        Also retrieve from a corpus whose pairs are cut to equal length; needs paired documents. By
        default with BM25, and with others up to 5,000 documents: half of all texts are encoded
        again.
    text_statistics : bool
        Also describe the texts of each source ([K] Fig. 3).
    settings_strip : bool
        Also retrieve with other usual settings of BM25: its verdict may turn with k1 and b.
    clusters : mapping of str to str, optional
        Topic, paraphrase group or user session of each judged query: queries of one cluster may
        depend on one another.
    copies : {"words", "no"}, ``{document: group}``, frame or path
        Near-duplicates of one source, see :func:`measure_source_bias`.
    on_stage : callable, optional
        Told what begins, for progress display.

    Returns
    -------
    SkewReport
        A retriever with an approximate index has a second entry, variant ``"exact"``, when exact
        search with the same vectors returns something else.
    """
    config = config or AuditConfig()
    require_plan([spec.name for spec in retrievers], depth, config)
    on_stage = on_stage or (lambda _: None)
    separate = dataset.corpus.tags
    if config.merge_llms:
        dataset = replace(dataset, corpus=replace(dataset.corpus, tags=merge_llms(separate)))
    dataset.corpus.tags.require_sources(config.baseline_source)
    on_stage("looking for near-duplicates")
    known = copies_of(copies, separate, dataset.qrels, dataset.corpus)
    counted = replace(dataset, qrels=known.judged(dataset.qrels))
    dependence = Dependence.of(
        counted.qrels,
        dataset.corpus.tags,
        clusters,
        merged_from=separate,
    )
    paired = bool(np.any(dataset.corpus.tags.pair_codes >= 0))
    work = _Work(counted, config, depth, dependence, on_stage, known)
    systems: list[SystemSkew] = []
    left_out = stand_in = False
    firsts = [spec.first if isinstance(spec, RerankedSpec) else spec for spec in retrievers]
    for spec, first in zip(retrievers, firsts, strict=True):
        held = isinstance(first, ApplicationSpec | FinishedRun)  # the documents that it holds
        controls = not held and first is spec  # of a reranker they cost a reranking of all
        stand_in |= held
        for part in work.parts(held=held):
            systems += part.mixed(
                spec, with_sole_corpus=sole_corpus and controls, with_strip=settings_strip
            )
            small = isinstance(spec, BM25Spec) or len(part.dataset.corpus) <= LENGTH_MATCHED_UP_TO
            if paired and controls and (small if length_matched is None else length_matched):
                systems.append(part.length_matched(spec))
            left_out |= paired and controls and length_matched is None and not small
        if len(dataset.corpus.tags.sources) > 2:
            systems += work.together(spec, alone=held)
    data = summarise_dataset(dataset)
    findings = list(data_warnings(data, dataset.qrels, dataset.corpus.tags, config))
    findings += known.findings
    findings += _languages(dataset.corpus, firsts)
    if left_out:
        findings.append(SourceCode.NOT_REPEATED(severity="warning"))
    if stand_in and len(dataset.corpus.tags.sources) > 2:
        findings.append(SourceCode.RESTRICTED(severity="warning"))
    report = assemble(systems, data, config, findings=findings)
    if not text_statistics:
        return report
    work.on_stage("describing texts")
    return replace(
        report,
        text_statistics=source_text_statistics(
            dataset.corpus,
            config.baseline_source,
            confidence_level=config.confidence_level,
            rng=config.seed,
        ),
    )


def _languages(corpus: Corpus, retrievers: Sequence[RetrieverSpec]) -> Iterator[Finding]:
    for spec in retrievers:
        foreign = spec.language_warning(corpus) if isinstance(spec, BM25Spec) else None
        if foreign is not None:
            yield foreign


def require_plan(names: Sequence[str], depth: int, config: AuditConfig) -> None:
    """Refuse too few documents per query, and retrievers that names do not tell apart."""
    if depth < max(config.cutoffs):
        raise DataError(
            f"depth {depth} is smaller than the largest cutoff {max(config.cutoffs)}; retrieve at "
            "least that many documents"
        )
    if not names or len(set(names)) != len(names):
        raise DataError(f"give one or more retrievers with different names, got {names}")


LENGTH_MATCHED_UP_TO = 5_000
"""Documents up to which encoding half of them again is a matter of a minute or two."""


def alone_checks(
    search: Callable[[str], Run], qrels: Qrels, tags: TagTable, config: AuditConfig
) -> tuple[SoleCorpusCheck, ...]:
    """Compare quality on the corpus of each source alone ([K] Table 2), paired per query."""
    codes = source_codes_for(qrels.doc_ids, tags)[qrels.doc_codes]
    alone = {
        source: score_run(
            search(source),
            qrels.take(codes == code),
            measures=config.measures,
            cutoffs=config.cutoffs,
            ties=config.ties,
            gain=config.gain,
        )
        for code, source in enumerate(tags.sources)
    }
    base = alone.pop(config.baseline_source)
    checks = []
    for other, scores in alone.items():
        for measure in base.measures:
            of_base, of_other = base.of(measure, "all"), scores.of(measure, "all")
            gaps = of_base - of_other
            checks.append(
                SoleCorpusCheck(
                    measure=measure,
                    baseline=config.baseline_source,
                    other=other,
                    mean_baseline=float(of_base.mean()),
                    mean_other=float(of_other.mean()),
                    difference=if_enough(
                        clustered_difference,
                        gaps,
                        confidence_level=config.confidence_level,
                    ),
                    p_value=difference_test(gaps),
                )
            )
    return tuple(checks)


BM25_SETTINGS = ((0.9, 0.4), (1.2, 0.75), (1.5, 0.0), (1.5, 0.75), (1.5, 1.0), (2.0, 0.75))
"""Values of k1 and b in use (Anserini, Lucene, this library, the paper) and the ends of b."""


@dataclass(frozen=True, slots=True)
class _Work:
    dataset: Dataset
    config: AuditConfig
    depth: int
    dependence: Dependence
    on_stage: Callable[[str], None]
    copies: Copies

    def parts(self, *, held: bool) -> list[_Work]:
        """Return the work for the baseline with each other source, in indices of their own."""
        tags = self.dataset.corpus.tags
        if len(tags.sources) == 2:
            return [self]
        if held:
            return []
        data, found = self.dataset, []
        for two in one_by_one(self.config.baseline_source, data.qrels, tags, self.dependence):
            corpus = replace(data.corpus.take(two.rows), tags=two.tags)
            dataset = replace(data, corpus=corpus, qrels=two.qrels)
            found.append(replace(self, dataset=dataset, dependence=two.dependence))
        return found

    def together(self, spec: RetrieverSpec, *, alone: bool) -> Iterator[SystemSkew]:
        """Measure the index of all sources, and each beside the baseline in its rankings."""
        data = self.dataset
        self.on_stage(f"{spec.name}: all sources in one index")
        run = replace(self._search(spec, data.corpus), name=spec.name)
        if alone:
            yield from restricted(
                run,
                data.qrels,
                data.corpus.tags,
                self.config,
                dependence=self.dependence,
                corpus=data.corpus,
                asked=self.asked,
                settings=spec.settings,
                copies=self.copies,
            )
        yield self._measure(run, spec, data.corpus, variant="together")

    def mixed(
        self, spec: RetrieverSpec, *, with_sole_corpus: bool, with_strip: bool
    ) -> list[SystemSkew]:
        corpus = self.dataset.corpus
        self.on_stage(f"{spec.name}: indexing {len(corpus):,} documents")
        retriever = spec.build(corpus)
        self.on_stage(f"{spec.name}: retrieving for {len(self.dataset.queries):,} queries")
        run = retriever.retrieve(self.dataset.queries, self.depth)
        checks = (
            alone_checks(partial(self._alone, spec), self.dataset.qrels, corpus.tags, self.config)
            if with_sole_corpus
            else ()
        )
        notes = [*retriever.notes] if isinstance(retriever, ApplicationRetriever) else []
        systems: list[SystemSkew] = []
        if isinstance(retriever, ApproximateRetriever):
            self.on_stage(f"{spec.name}: exact search for comparison")
            full = retriever.exact().retrieve(self.dataset.queries, self.depth)
            top = max(self.config.cutoffs)
            share = agreement(run, full, top)
            notes.append(SourceCode.APPROXIMATE(share=share, cutoff=top))
            if share < 1:
                systems.append(self._measure(full, spec, corpus, variant="exact"))
        self.on_stage(f"{spec.name}: measuring")
        deployed = self._measure(run, spec, corpus, sole_corpus=checks, notes=notes)
        if with_strip and isinstance(spec, BM25Spec):
            deployed = replace(deployed, strip=tuple(self._strip(spec)))
        return [deployed, *systems]

    def _strip(self, spec: BM25Spec) -> Iterator[SettingSkew]:
        """Yield what other usual settings of BM25 would have given, by the primary measure."""
        alone, qrels, tags = self.config.of_primary(), self.dataset.qrels, self.dataset.corpus.tags
        groups = dict(_groups(source_codes_for(qrels.doc_ids, tags), tags, alone))
        for k1, b in BM25_SETTINGS:
            if (k1, b) == (spec.k1, spec.b):
                continue
            name = f"k1={k1:g}, b={b:g}"
            self.on_stage(f"{spec.name}: with {name}")
            run = self._search(replace(spec, k1=k1, b=b), self.dataset.corpus)
            hits = join(self.copies.ranked(run), qrels, ties=alone.ties)
            for other, group in groups.items():
                chance = chance_of(hits, qrels, group, alone)
                delta, _ = centred_delta(chance, 0, self.dependence, alone)
                yield SettingSkew(
                    other=other, setting=name, value=delta.value, interval=delta.interval
                )

    def length_matched(self, spec: RetrieverSpec) -> SystemSkew:
        self.on_stage(f"{spec.name}: pairs cut to equal length")
        corpus = match_lengths(self.dataset.corpus)
        return self._measure(self._search(spec, corpus), spec, corpus, variant="length-matched")

    def _measure(
        self,
        run: Run,
        spec: RetrieverSpec,
        corpus: Corpus,
        **about: Any,  # noqa: ANN401 - of this run, see measure_system
    ) -> SystemSkew:
        return measure_system(
            replace(run, name=spec.name),
            self.dataset.qrels,
            corpus.tags,
            self.config,
            dependence=self.dependence,
            corpus=corpus,
            settings=spec.settings,
            copies=self.copies,
            asked=self.asked,
            **about,
        )

    @property
    def asked(self) -> Mapping[str, str]:
        """Text of each query."""
        return {query.query_id: query.text for query in self.dataset.queries}

    def _alone(self, spec: RetrieverSpec, source: str) -> Run:
        self.on_stage(f"{spec.name}: {source} documents alone")
        return self.copies.ranked(self._search(spec, self.dataset.corpus.of_source(source)))

    def _search(self, spec: RetrieverSpec, corpus: Corpus) -> Run:
        return spec.build(corpus).retrieve(self.dataset.queries, self.depth)


def agreement(run: Run, exact: Run, k: int) -> float:
    """Share of the exact top-k documents that the run's top k holds, over all queries."""
    found = {(r.query_id, d) for r in run.top(k) for d in r.doc_ids}
    wanted = [(r.query_id, d) for r in exact.top(k) for d in r.doc_ids]
    return sum(pair in found for pair in wanted) / max(len(wanted), 1)
