"""Score every weight of a mitigation on one data set and choose one (METHODS §5.1)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rag_sourcebias.core.arrays import Float32Array, FloatArray
from rag_sourcebias.core.data import Corpus, Dataset, Query, Run
from rag_sourcebias.core.errors import DataError, InsufficientDataError
from rag_sourcebias.core.protocols import Encoder, Retriever, RetrieverSpec
from rag_sourcebias.core.twins import TwinTexts
from rag_sourcebias.debias.audit import other_sources, score_debias, unchanged_qualities
from rag_sourcebias.debias.data import (
    QUALITIES,
    DebiasCandidate,
    DebiasConfig,
    DebiasScores,
    DebiasSearch,
)
from rag_sourcebias.debias.fit import fit_source_projection
from rag_sourcebias.debias.parity import ParityCalibration, scaled_calibration
from rag_sourcebias.debias.projection import ProjectedEncoder, ProjectionMethod, Sides
from rag_sourcebias.debias.rescore import RescoredSpec
from rag_sourcebias.debias.search import MIN_SEEDS, search_debias_weight, split_queries
from rag_sourcebias.retrieval.search import DenseSpec
from rag_sourcebias.retrieval.vectors import Similarity

# What a search tries: systems by weight and training seed.


Seeds = dict[int | None, RetrieverSpec]


@dataclass(frozen=True, slots=True, kw_only=True)
class DebiasVariant:
    """One system to try.

    Parameters
    ----------
    weight : float
        Debias weight, strength, or share of an offset; 0 is the unchanged method.
    spec : RetrieverSpec
    seed : int or None
        Of its training; None for a method without seeds. At weight 0, None is the untrained
        system, which stands for every seed.
    """

    weight: float
    spec: RetrieverSpec
    seed: int | None = None


def group_variants(
    variants: Sequence[DebiasVariant], *, deterministic: bool
) -> tuple[dict[float, Seeds], tuple[int, ...]]:
    """Systems by weight and seed, and the seeds that every weight has.

    Returns
    -------
    groups : dict of float to dict of int or None to RetrieverSpec
        By weight, 0 first. Without seeds the key is None; so is that of the untrained system at
        weight 0, which stands for every seed.
    seeds : tuple of int
        Empty for a deterministic method.

    Raises
    ------
    DataError
        If weight 0 or a seed of a weight is missing, or a variant occurs twice.
    InsufficientDataError
        With fewer than 3 seeds of a trained method.
    """
    groups: dict[float, Seeds] = {}
    for variant in variants:
        of_weight = groups.setdefault(variant.weight, {})
        if variant.seed in of_weight:
            raise DataError(
                f"weight {variant.weight:g} occurs twice"
                + (" without a seed" if variant.seed is None else f" with seed {variant.seed}")
                + "; give every weight and seed once"
            )
        of_weight[variant.seed] = variant.spec
    if 0 not in groups or len(groups) < 2:
        raise DataError(
            f"weights {sorted(groups)} must hold 0, the unchanged system that the others are "
            "compared with, and at least one more"
        )
    seeds = sorted({v.seed for v in variants if v.seed is not None})
    if deterministic:
        if seeds:
            raise DataError(
                f"variants have the seeds {seeds}, but the method is said to be deterministic; "
                "leave seeds out, or say deterministic=False"
            )
        return dict(sorted(groups.items())), ()
    _check_seeds(groups, seeds)
    return dict(sorted(groups.items())), tuple(seeds)


def _check_seeds(groups: Mapping[float, Seeds], seeds: Sequence[int]) -> None:
    for weight, specs in sorted(groups.items()):
        if weight == 0 and list(specs) == [None]:
            continue
        if None in specs:
            raise DataError(
                f"weight {weight:g} has a system without a seed; only weight 0 may be the "
                "untrained system (a method without seeds: deterministic=True)"
            )
        missing = [seed for seed in seeds if seed not in specs]
        if missing:
            raise DataError(
                f"weight {weight:g} lacks the seeds {missing}; every weight needs the seeds "
                f"{list(seeds)}, as results are paired by seed"
            )
    if len(seeds) < MIN_SEEDS:
        raise InsufficientDataError(
            f"{len(seeds)} seed(s) do not show how much results vary between trainings; train "
            f"every weight with at least {MIN_SEEDS} seeds",
            n=len(seeds),
            n_needed=MIN_SEEDS,
        )


# Systems that encode, index and retrieve once, for searches that try many variants of one.


class RememberedEncoder:
    """An encoder that encodes every text once and keeps its vectors in memory.

    Parameters
    ----------
    encoder : Encoder
    """

    def __init__(self, encoder: Encoder) -> None:
        self.name = encoder.name
        self._encoder = encoder
        self._queries: dict[str, Float32Array] = {}
        self._documents: dict[str, Float32Array] = {}

    @property
    def fingerprint(self) -> str:
        """Fingerprint of the encoder."""
        return self._encoder.fingerprint

    @property
    def settings(self) -> Mapping[str, str]:
        """Settings of the encoder."""
        return self._encoder.settings

    def encode_queries(self, texts: Sequence[str]) -> Float32Array:
        """Encode the query side, what is new of it."""
        return _remembered(self._queries, self._encoder.encode_queries, texts)

    def encode_documents(self, texts: Sequence[str]) -> Float32Array:
        """Encode the document side, what is new of it."""
        return _remembered(self._documents, self._encoder.encode_documents, texts)


def _remembered(
    known: dict[str, Float32Array],
    encode: Callable[[Sequence[str]], Float32Array],
    texts: Sequence[str],
) -> Float32Array:
    missing = [text for text in dict.fromkeys(texts) if text not in known]
    if missing or not texts:
        vectors = encode(missing)
        if not texts:
            return vectors
        known.update(zip(missing, vectors, strict=True))
    return np.stack([known[text] for text in texts])


class RememberedSpec:
    """A recipe that indexes a corpus once, and retrieves once for the same queries.

    Parameters
    ----------
    spec : RetrieverSpec
    """

    def __init__(self, spec: RetrieverSpec) -> None:
        self.name = spec.name
        self._spec = spec
        # What a calibration is checked against.
        self.encoder = getattr(spec, "encoder", None)
        self.reranker = getattr(spec, "reranker", None)
        self._built: dict[tuple[tuple[str, ...], tuple[str, ...]], Retriever] = {}

    @property
    def settings(self) -> Mapping[str, str]:
        """Settings of the recipe."""
        return self._spec.settings

    def build(self, corpus: Corpus) -> Retriever:
        """Return the one retriever over a corpus."""
        key = corpus.doc_ids, corpus.texts
        if key not in self._built:
            self._built[key] = _RememberedRetriever(self._spec.build(corpus))
        return self._built[key]


class _RememberedRetriever:
    def __init__(self, retriever: Retriever) -> None:
        self.name = retriever.name
        self._retriever = retriever
        self._runs: dict[tuple[tuple[Query, ...], int], Run] = {}

    def retrieve(self, queries: Sequence[Query], depth: int) -> Run:
        key = tuple(queries), depth
        if key not in self._runs:
            self._runs[key] = self._retriever.retrieve(queries, depth)
        return self._runs[key]


# The systems a search over the strength of a projection, or the size of an offset, tries.


def projection_variants(
    encoder: Encoder,
    twins: TwinTexts,
    *,
    strengths: Sequence[float] = (0, 0.25, 0.5, 0.75, 1),
    method: ProjectionMethod = "pca",
    n_directions: int = 4,
    sides: Sides = "both",
    similarity: Similarity = "cosine",
) -> list[DebiasVariant]:
    """Fit a projection once and apply it at every strength; 0 is the encoder itself.

    Texts are encoded once: the vectors of every text that is searched stay in memory.

    Parameters
    ----------
    strengths : sequence of float in [0, 1]
    twins, method, n_directions, sides
        As in :func:`~rag_sourcebias.debias.fit_source_projection`.
    similarity : {"cosine", "dot"}
        Of the search.
    """
    remembered = RememberedEncoder(encoder)
    fitted = fit_source_projection(
        twins, remembered, method=method, n_directions=n_directions, sides=sides
    )
    return [
        DebiasVariant(
            weight=strength,
            spec=DenseSpec(
                ProjectedEncoder(
                    remembered,
                    replace(fitted, strength=strength),
                    name=f"{encoder.name}+projection×{strength:g}",
                )
                if strength
                else remembered,
                similarity=similarity,
            ),
        )
        for strength in strengths
    ]


def calibration_variants(
    spec: RetrieverSpec,
    calibration: ParityCalibration,
    *,
    shares: Sequence[float] = (0, 0.25, 0.5, 0.75, 1, 1.25),
) -> list[DebiasVariant]:
    """Rescore a retriever with shares of a calibration; 0 is the retriever itself.

    The first stage retrieves once for all of them.

    Parameters
    ----------
    spec : RetrieverSpec
        The first stage, with the encoder the calibration was fitted for.
    shares : sequence of float
        At least 0; above 1 corrects more than twins ask for.

    Raises
    ------
    DataError
        As :func:`~rag_sourcebias.debias.parity.scaled_calibration`.
    """
    first = RememberedSpec(spec)
    return [
        DebiasVariant(
            weight=share,
            spec=RescoredSpec(
                first,
                scaled_calibration(calibration, share),
                name=f"{spec.name}+parity×{share:g}",
            )
            if share
            else first,
        )
        for share in shares
    ]


# Score every weight of a mitigation on one data set and choose one (METHODS §5.1).


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
        :class:`~rag_sourcebias.debias.data.DebiasCandidate`. Those of calibrated scores are found
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
