"""Explanations from simulated vectors: every number comes from the functions of the library."""

from __future__ import annotations

import numpy as np

from rag_sourcebias.core.data import Histogram
from rag_sourcebias.core.finding import Interval
from rag_sourcebias.explain.causes import decompose_gap, perplexity_gap
from rag_sourcebias.explain.data import (
    BoundedPerplexity,
    ExplainConfig,
    ModelPerplexity,
    SourceExplanation,
    TextComparison,
)
from rag_sourcebias.explain.report import ExplainReport
from rag_sourcebias.explain.vectors import map_sources, spectrum
from rag_sourcebias.infer.means import clustered_mean
from rag_sourcebias.measure.texts import DataSummary

LLM = "llm:llama-2"
CONFIG = ExplainConfig(resamples=50, normalise=True)


def mean(values: np.ndarray) -> Interval:
    return clustered_mean(values, np.arange(len(values)))


def histogram(values: np.ndarray, low: float, high: float, bins: int = 20) -> Histogram:
    counts, edges = np.histogram(np.clip(values, low, high), bins, (low, high))
    return Histogram(
        edges=edges, counts=counts, mean=float(values.mean()), median=float(np.median(values))
    )


def vectors(n: int, *, shift: float, squeeze: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Versions ``shift`` apart; ``squeeze`` of the last directions of the other side is lost."""
    rng = np.random.default_rng(seed)
    scale = 1 / np.arange(1, 33) ** 0.6
    same = rng.normal(size=(n, 32)) * scale + 0.3
    human, other = (same + 0.25 * rng.normal(size=(n, 32)) * scale for _ in range(2))
    other *= np.linspace(1 + squeeze, 1 - squeeze, 32)
    other[:, 5] += shift
    return human, other


def texts(rng: np.random.Generator, n: int, *, length: float) -> TextComparison:
    jaccard = rng.beta(6, 8, size=n)
    return TextComparison(
        mean_words_human=118.2,
        mean_words_other=118.2 * float(np.exp(length)),
        log_length_ratio=mean(length + 0.2 * rng.normal(size=n)),
        jaccard=histogram(jaccard, 0, 1),
        overlap=histogram(np.sqrt(jaccard), 0, 1),
    )


def perplexity(
    rng: np.random.Generator, n: int, *, gap: float, kind: str = "causal", model: str = "smollm2"
) -> ModelPerplexity:
    human = rng.normal(3.1, 0.35, size=n)
    other = human + gap + 0.2 * rng.normal(size=n)
    return ModelPerplexity(
        model=f"{kind}:{model}",
        kind=kind,
        gap=perplexity_gap(human, other, log_length_ratio=0.2 * rng.normal(size=n)),
        human=histogram(human, 2, 4.2),
        other=histogram(other, 2, 4.2),
        bounded=BoundedPerplexity(mean=mean(0.6 + 0.2 * rng.normal(size=n)), upper=1.1, n=n)
        if kind == "causal"
        else None,
    )


def explained(
    source: str = LLM,
    *,
    n: int = 120,
    seed: int = 1,
    shift: float = 0.5,
    squeeze: float = 0.2,
    length: float = -0.13,
    score: float = 0.04,
    models: tuple[ModelPerplexity, ...] | None = None,
    queries: bool = True,
) -> SourceExplanation:
    """Return a source with everything, less what is turned off; at 0 nothing differs."""
    rng = np.random.default_rng(seed)
    human, other = vectors(n, shift=shift, squeeze=squeeze, seed=seed)
    absent = {}
    if models == ():
        absent["perplexity"] = "no language model was given"
    if not queries:
        absent["decomposition"] = "there are no judged queries with text"
    compared = texts(rng, n, length=length)
    if models is None:
        models = (perplexity(rng, n, gap=-0.3),)
    cosine = np.einsum("ij,ij->i", human, other) / (
        np.linalg.norm(human, axis=1) * np.linalg.norm(other, axis=1)
    )
    ratio, overlap = length + 0.2 * rng.normal(size=n), rng.beta(6, 3, size=n)
    gaps = score + 0.05 * ratio - 0.1 * (1 - overlap) + 0.03 + 0.03 * rng.normal(size=n)
    factors = {"log length ratio": ratio, "overlap": overlap - 1}
    queries_of_pairs = np.arange(n) // 2
    return SourceExplanation(
        source=source,
        n_pairs=n,
        n_available=n + 40,
        texts=compared,
        perplexity=models,
        cosine=histogram(cosine, 0.5, 1),
        spectrum=spectrum(human, other, resamples=CONFIG.resamples, normalise=CONFIG.normalise),
        map=map_sources(human, other),
        decomposition=decompose_gap(gaps, factors, queries=queries_of_pairs) if queries else None,
        missing=absent,
    )


def explain_report(*sources: SourceExplanation) -> ExplainReport:
    return ExplainReport(
        config=CONFIG,
        data=DataSummary(
            name="simulated",
            design="rewrites",
            n_queries=80,
            n_judgments=160,
            documents={"human": 160, LLM: 160},
            n_pairs=160,
            mean_words={"human": 118.2, LLM: 103.8},
            license="CC BY 4.0",
        ),
        encoder="all-MiniLM-L6-v2",
        sources=sources,
        environment={"python": "3.12", "numpy": "2.3"},
        created="2026-11-21T20:00:00+00:00",
    )
