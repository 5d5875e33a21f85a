"""Relative Δ cells: estimate, interval, test and verdict, per measure and source."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from rag_sourcebias.audit.dependence import Dependence
from rag_sourcebias.errors import InsufficientDataError
from rag_sourcebias.inference import (
    BoundedRatio,
    adjust_p_values,
    clustered_difference,
    difference_test,
    independent_share,
    queries_for_verdict,
    relative_delta_interval,
    require_clusters,
    skew_code,
)
from rag_sourcebias.inference.multiway import MIN_CLUSTERS, design_effect
from rag_sourcebias.inference.quantiles import t_quantile
from rag_sourcebias.inference.ratio import IntervalMethod
from rag_sourcebias.measures import ChanceScores, chance_scores, relative_delta
from rag_sourcebias.types.arrays import FloatArray, IntArray
from rag_sourcebias.types.intervals import Interval
from rag_sourcebias.types.rankings import Run
from rag_sourcebias.types.relevance import Qrels
from rag_sourcebias.types.reports import (
    AcrossSources,
    AuditConfig,
    CentredDelta,
    ChanceSkew,
    SkewCell,
    SoleCorpusCheck,
    SourceScores,
    SystemSkew,
)
from rag_sourcebias.types.verdicts import SkewCode, SkewVerdict

__all__ = [
    "across_sources",
    "adjusted",
    "centred_delta",
    "chance_of",
    "others",
    "published_delta",
    "skew_cells",
    "sole_corpus_checks",
]


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


def skew_cells(
    scores: SourceScores,
    chance: Mapping[str, ChanceScores],
    dependence: Dependence,
    config: AuditConfig,
) -> tuple[SkewCell, ...]:
    """Compare the baseline with every other source, for every measure and cutoff.

    Parameters
    ----------
    chance : mapping of str to ChanceScores
        Per other source.
    """
    return tuple(
        _cell(scores, measure, other, centred_delta(chance[other], i, dependence, config), config)
        for other in others(scores, config.baseline_source)
        for i, measure in enumerate(scores.measures)
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
    needed = None
    if (
        centred.interval is not None
        and skew_code(centred.interval, p_value, margin=config.margin) is SkewCode.CANNOT_TELL
    ):
        needed = queries_for_verdict(centred.interval, margin=config.margin)
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
        n_needed=needed,
        centred=centred,
    )


def published_delta(
    baseline: FloatArray,
    other: FloatArray,
    *,
    confidence_level: float,
    method: IntervalMethod = "auto",
    resamples: int = 10_000,
    rng: np.random.Generator | int = 0,
) -> tuple[float | None, Interval | None, str | None]:
    """Return Relative Δ as published, its interval, and why there is none."""
    delta = relative_delta(float(baseline.mean()), float(other.mean()))
    if delta is None:
        return None, None, "neither source scores on any query, so Relative Δ is undefined (0 / 0)"
    try:
        interval = relative_delta_interval(
            baseline,
            other,
            confidence_level=confidence_level,
            method=method,
            resamples=resamples,
            rng=rng,
        )
    except InsufficientDataError as error:
        return delta, None, str(error)
    return delta, interval, None


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
        scoring = np.bincount(units, weights=base, minlength=len(kept)) > 0
        _require_informative(float(information * scoring.sum()), len(kept), dependence.what)
    except InsufficientDataError as error:
        return replace(found, refusal=str(error)), None
    ratio = _weighted(chance, row, unit_of, information)
    lower, upper = ratio.ends(config.confidence_level)
    interval = Interval(
        estimate=ratio.estimate,
        lower=lower,
        upper=upper,
        confidence_level=config.confidence_level,
        method="weighted " + dependence.what,
        n_labeled=len(kept),
        assumptions=assumptions,
    )
    return (
        replace(found, value=ratio.estimate, interval=interval, information=information),
        ratio.p_value(0.0),
    )


def _factors(
    chance: ChanceScores, dependence: Dependence
) -> tuple[list[IntArray], tuple[str, ...]]:
    """Return what hits share besides their query, and what is assumed of it."""
    document = np.unique(dependence.documents[chance.doc], return_inverse=True)[1]
    random = f"{dependence.what} and documents are random samples"
    if dependence.rewriters is None:
        return [document], (random,)
    rewriters = dependence.rewriters[chance.doc]
    count = len(np.unique(rewriters[rewriters >= 0]))
    if count < MIN_CLUSTERS:
        return [document], (random, f"the {count} rewriters are the only ones meant")
    return (
        [document, rewriters],
        (random, f"the {count} rewriters are a random sample of rewriters"),
    )


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
        require_clusters(k, "rewriters", "until then the figures hold for these rewriters only")
    except InsufficientDataError as error:
        refusal = str(error)
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
            method="random effects",
            n_labeled=k,
            assumptions=("rewriters and queries are random samples",),
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
        raise InsufficientDataError(
            "no query has relevant documents of both sources, so their ranks cannot be compared; "
            "judge documents of both for the same queries (copies take the grade of their "
            "original)",
            n=0,
            n_needed=MIN_CLUSTERS,
        )
    require_clusters(
        n_units,
        f"{what} with relevant documents of both sources",
        "judge documents of both sources for more of them",
    )
    if not total > 0:
        raise InsufficientDataError(
            "no relevant document of either source was retrieved within the cutoff, so "
            "Relative Δ is undefined (0 / 0)",
            n=n,
        )


def _require_informative(independent: float, n: int, what: str) -> None:
    """Refuse units of which too few say anything, as nothing was found or documents are shared."""
    if independent < MIN_CLUSTERS:
        needed = math.ceil(n * MIN_CLUSTERS / independent)
        raise InsufficientDataError(
            f"{n} {what} carry the information of only {independent:.1f}: for the others nothing "
            "relevant was found within the cutoff, or they share documents; at least "
            f"{MIN_CLUSTERS} are needed, about {needed} {what}, or a larger cutoff",
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
        if cell.measure != config.primary_measure or centred is None:
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


def sole_corpus_checks(
    alone: dict[str, SourceScores], config: AuditConfig
) -> tuple[SoleCorpusCheck, ...]:
    """Compare quality on the corpus of each source alone ([K] Table 2), paired per query."""
    return tuple(_sole_corpus_rows(alone, config))


def _sole_corpus_rows(
    alone: dict[str, SourceScores], config: AuditConfig
) -> Iterator[SoleCorpusCheck]:
    base = alone[config.baseline_source]
    for other in (name for name in alone if name != config.baseline_source):
        for measure in base.measures:
            h, low = base.of(measure, "all"), alone[other].of(measure, "all")
            try:
                interval: Interval | None = clustered_difference(
                    h - low, np.arange(len(h)), confidence_level=config.confidence_level
                )
            except InsufficientDataError:
                interval = None
            yield SoleCorpusCheck(
                measure=measure,
                baseline=config.baseline_source,
                other=other,
                mean_baseline=float(h.mean()),
                mean_other=float(low.mean()),
                difference=interval,
                p_value=difference_test(h - low, np.arange(len(h))),
            )


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
            verdicts = verdicts_of(cells, config, family)
            result[i] = replace(systems[i], cells=cells, verdicts=verdicts)
        if variant == "mixed":
            n_tests = family
    return tuple(result), n_tests
