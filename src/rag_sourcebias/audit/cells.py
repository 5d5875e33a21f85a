"""Relative Δ cells: estimate, interval, test and queries needed, per measure and source."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from rag_sourcebias.errors import InsufficientDataError
from rag_sourcebias.inference import (
    adjust_p_values,
    clustered_difference,
    queries_needed,
    relative_delta_interval,
    sign_flip_test,
)
from rag_sourcebias.measures import relative_delta
from rag_sourcebias.types.intervals import Interval
from rag_sourcebias.types.reports import (
    AuditConfig,
    SkewCell,
    SoleCorpusCheck,
    SourceScores,
    SystemSkew,
)

__all__ = ["adjusted", "others", "skew_cells", "sole_corpus_checks"]


def others(scores: SourceScores, baseline: str) -> list[str]:
    """Sources compared with the baseline, in order."""
    return [name for name in scores.sources if name != baseline]


def skew_cells(scores: SourceScores, config: AuditConfig) -> tuple[SkewCell, ...]:
    """Compare the baseline with every other source, for every measure and cutoff."""
    baseline = config.baseline_source
    return tuple(
        _cell(scores, measure, other, config, seed=(config.seed, i, j))
        for j, other in enumerate(others(scores, baseline))
        for i, measure in enumerate(scores.measures)
    )


def _cell(
    scores: SourceScores, measure: str, other: str, config: AuditConfig, *, seed: tuple[int, ...]
) -> SkewCell:
    h = scores.of(measure, config.baseline_source)
    low = scores.of(measure, other)
    delta = relative_delta(float(h.mean()), float(low.mean()))
    rng = np.random.default_rng(seed)
    interval: Interval | None = None
    refusal: str | None = None
    needed: int | None = None
    if delta is None:
        refusal = "neither source scores on any query, so Relative Δ is undefined (0 / 0)"
    else:
        try:
            interval = relative_delta_interval(
                h,
                low,
                confidence_level=config.confidence_level,
                method=config.interval_method,
                resamples=config.resamples,
                rng=rng,
            )
        except InsufficientDataError as error:
            refusal, needed = str(error), error.n_needed
        else:
            needed = queries_needed(
                h,
                low,
                half_width=config.target_half_width,
                confidence_level=config.confidence_level,
            )
    return SkewCell(
        measure=measure,
        baseline=config.baseline_source,
        other=other,
        mean_baseline=float(h.mean()),
        mean_other=float(low.mean()),
        relative_delta=delta,
        interval=interval,
        refusal=refusal,
        p_value=None
        if delta is None
        else sign_flip_test(h, low, resamples=config.resamples, rng=rng),
        p_adjusted=None,
        n_queries=len(h),
        n_needed=needed,
    )


def sole_corpus_checks(
    alone: dict[str, SourceScores], config: AuditConfig
) -> tuple[SoleCorpusCheck, ...]:
    """Compare quality on the corpus of each source alone ([K] Table 2), paired per query."""
    return tuple(_sole_corpus_rows(alone, config))


def _sole_corpus_rows(
    alone: dict[str, SourceScores], config: AuditConfig
) -> Iterator[SoleCorpusCheck]:
    base = alone[config.baseline_source]
    for j, other in enumerate(name for name in alone if name != config.baseline_source):
        for i, measure in enumerate(base.measures):
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
                p_value=sign_flip_test(
                    h,
                    low,
                    resamples=config.resamples,
                    rng=np.random.default_rng((config.seed, i, j, 1)),
                ),
            )


def adjusted(
    systems: Sequence[SystemSkew], config: AuditConfig
) -> tuple[tuple[SystemSkew, ...], int]:
    """Adjust p-values over all systems × measures × cutoffs × sources of each variant.

    Returns
    -------
    systems : tuple of SystemSkew
    n_tests : int
        Tests in the family of the ``"mixed"`` variant. The other variants repeat the same
        questions as a check and are adjusted among themselves.
    """
    result = list(systems)
    n_tests = 0
    for variant in {system.variant for system in systems}:
        index = [i for i, system in enumerate(systems) if system.variant == variant]
        raw = [cell.p_value for i in index for cell in systems[i].cells]
        values = iter(adjust_p_values(raw, correction=config.correction))
        for i in index:
            cells = tuple(replace(cell, p_adjusted=next(values)) for cell in systems[i].cells)
            result[i] = replace(systems[i], cells=cells)
        if variant == "mixed":
            n_tests = sum(p is not None for p in raw)
    return tuple(result), n_tests
