"""Score every weight of a mitigation on one data set and choose one (METHODS §5.1)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from rag_sourcebias.audit.debias_changes import unchanged_qualities
from rag_sourcebias.audit.debias_groups import DebiasVariant, Seeds, group_variants
from rag_sourcebias.audit.debias_scores import other_sources, score_debias
from rag_sourcebias.errors import DataError
from rag_sourcebias.mitigate.search import search_debias_weight, split_queries
from rag_sourcebias.protocols import RetrieverSpec
from rag_sourcebias.retrieval import DenseSpec
from rag_sourcebias.types.arrays import FloatArray
from rag_sourcebias.types.dataset import Dataset
from rag_sourcebias.types.debias import QUALITIES, DebiasCandidate, DebiasSearch
from rag_sourcebias.types.debias_report import DebiasConfig
from rag_sourcebias.types.debias_scores import DebiasScores

__all__ = ["MIN_SPLIT_QUERIES", "DebiasVariant", "search_debias"]

_SAME = 1e-9
MIN_SPLIT_QUERIES = 2000
"""Queries from which half of them choose and the other half report. On ``nfcorpus`` half of 324
queries know Relative Δ only to ±14 points and chose another weight than all of them; 1,000 know it
to about ±5."""


def search_debias(
    dataset: Dataset,
    variants: Sequence[DebiasVariant],
    *,
    other: str | None = None,
    config: DebiasConfig | None = None,
    deterministic: bool,
    unchanged: tuple[str, ...] = (),
    split: bool | None = None,
    depth: int = 100,
    on_stage: Callable[[str], None] | None = None,
    rng: np.random.Generator | int = 0,
) -> DebiasSearch:
    """Measure the curves of [K] Fig. 8 and 9 and choose the weight that costs no quality.

    Relative Δ is that of NDCG at ``config.skew_cutoff``, quality is NDCG at
    ``config.quality_cutoff``.

    Parameters
    ----------
    dataset : Dataset
        Its queries must be others than those that the variants were fitted or trained on.
    variants : sequence of DebiasVariant
        Weight 0 included; the same seeds for every weight.
    other : str, optional
        Source compared with the baseline; may be left out where there is only one.
    config : DebiasConfig, optional
    deterministic : bool
        True for methods without training seeds: one variant per weight. Otherwise at least 3
        seeds.
    unchanged : tuple of str
        Qualities that the method cannot change, as in
        :class:`~rag_sourcebias.types.debias.DebiasCandidate`. Those of calibrated scores are found
        without it.
    split : bool, optional
        Whether one random half of the queries chooses and the other half reports. By default with
        2,000 queries or more; with fewer, all queries do both and the tests are Holm-adjusted
        instead.
    depth : int
        Documents retrieved per query.
    on_stage : callable, optional
        Told what begins, for progress display.
    rng : numpy.random.Generator or int
        Draws the halves.

    Returns
    -------
    DebiasSearch

    Raises
    ------
    DataError
        If weight 0 or a seed of a weight is missing, a variant occurs twice, or the source to
        compare is unknown or not clear.
    InsufficientDataError
        With fewer than 3 seeds of a trained method, or fewer than 20 queries.
    """
    config = config or DebiasConfig()
    groups, seeds = group_variants(variants, deterministic=deterministic)
    other = other or _only_other(dataset, config.baseline_source)
    stage = on_stage or (lambda _: None)
    known: dict[object, DebiasScores] = {}

    def score(spec: RetrieverSpec, what: str) -> DebiasScores:
        key = _identity(spec)
        if key not in known:
            stage(f"{what}: {spec.name}")
            known[key] = score_debias(spec, dataset, config, other=other, depth=depth)
        return known[key]

    candidates = [
        _candidate(
            weight,
            [
                score(of_weight.get(seed) or of_weight[None], _label(weight, seed))
                for seed in seeds or (None,)
            ],
            config,
            seeds,
        )
        for weight, of_weight in groups.items()
    ]
    candidates[1:] = [
        replace(found, unchanged=unchanged or _unchanged(groups, found, candidates[0]))
        for found in candidates[1:]
    ]
    halves = None
    n = candidates[0].shape[1]
    if n >= MIN_SPLIT_QUERIES if split is None else split:
        halves = split_queries(n, rng=rng)
    return search_debias_weight(
        candidates,
        target=config.target,
        relative_margin=config.relative_margin,
        level=config.level,
        confidence_level=config.confidence_level,
        deterministic=deterministic,
        select_on=halves[0] if halves else None,
        report_on=halves[1] if halves else None,
    )


def _label(weight: float, seed: int | None) -> str:
    return f"weight {weight:g}" if seed is None else f"weight {weight:g}, seed {seed}"


def _identity(spec: RetrieverSpec) -> object:
    """Equal for systems with the same vectors and the same comparison."""
    if type(spec) is DenseSpec:
        return spec.encoder.fingerprint, spec.similarity
    return id(spec)


def _only_other(dataset: Dataset, baseline: str) -> str:
    others = other_sources(dataset, baseline)
    if len(others) > 1:
        raise DataError(
            f"data set {dataset.name!r} has several sources beside {baseline!r}: {list(others)}; "
            "name the one to search over as other"
        )
    return others[0]


def _candidate(
    weight: float, scores: Sequence[DebiasScores], config: DebiasConfig, seeds: tuple[int, ...]
) -> DebiasCandidate:
    def rows(name: str, cutoff: int) -> FloatArray:
        return np.stack([found.of(name, cutoff) for found in scores])

    return DebiasCandidate(
        weight=weight,
        baseline=rows("baseline", config.skew_cutoff),
        other=rows("other", config.skew_cutoff),
        human_only=rows("human-only", config.quality_cutoff),
        llm_only=rows("llm-only", config.quality_cutoff),
        mixed=rows("mixed", config.quality_cutoff),
        seeds=seeds,
        query_ids=scores[0].query_ids,
    )


def _unchanged(
    groups: Mapping[float, Seeds], found: DebiasCandidate, reference: DebiasCandidate
) -> tuple[str, ...]:
    """Qualities that no system of one weight can change.

    Scores are kept in single precision, so that a shift can make or break a tie once in a while:
    where that shows, the quality is tested instead.
    """
    before = groups[0.0].get(None)
    if before is None:
        return ()
    kept = [set(unchanged_qualities(before, spec)) for spec in groups[found.weight].values()]
    return tuple(
        quality
        for quality in QUALITIES
        if all(quality in of_spec for of_spec in kept)
        and np.allclose(found.of(quality), reference.of(quality), rtol=0, atol=_SAME)
    )
