"""Explanations from simulated vectors: every number comes from the functions of the library."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping

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
ENCODER = "all-MiniLM-L6-v2"
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
    encoder: bool = True,
    notes: tuple[str, ...] = (),
    missing: Mapping[str, str] | None = None,
) -> SourceExplanation:
    """Return a source with everything, less what is turned off; at 0 nothing differs."""
    rng = np.random.default_rng(seed)
    human, other = vectors(n, shift=shift, squeeze=squeeze, seed=seed)
    absent = dict(missing or {})
    if models == ():
        absent.setdefault("perplexity", "no language model was given")
    if not queries:
        absent["decomposition"] = "there are no judged queries with text"
    if not encoder:
        absent |= dict.fromkeys(
            ("cosine", "spectrum", "map", "decomposition"), "no encoder was given"
        )
    found = SourceExplanation(
        source=source,
        n_pairs=n,
        n_available=n + 40,
        texts=texts(rng, n, length=length),
        perplexity=(perplexity(rng, n, gap=-0.3),) if models is None else models,
        notes=notes,
        missing=absent,
    )
    if not encoder:
        return found
    cosine = np.einsum("ij,ij->i", human, other) / (
        np.linalg.norm(human, axis=1) * np.linalg.norm(other, axis=1)
    )
    ratio, overlap = length + 0.2 * rng.normal(size=n), rng.beta(6, 3, size=n)
    gaps = score + 0.05 * ratio - 0.1 * (1 - overlap) + 0.03 + 0.03 * rng.normal(size=n)
    return dataclasses.replace(
        found,
        cosine=histogram(cosine, 0.5, 1),
        spectrum=spectrum(human, other, resamples=CONFIG.resamples, normalise=CONFIG.normalise),
        map=map_sources(human, other),
        decomposition=decompose_gap(
            gaps,
            {"log length ratio": ratio, "overlap": overlap - 1},
            queries=np.arange(n) // 2,
        )
        if queries
        else None,
    )


def explain_report(
    *sources: SourceExplanation, encoder: str = ENCODER, n_queries: int = 80, **changes: object
) -> ExplainReport:
    report = ExplainReport(
        config=CONFIG,
        data=DataSummary(
            name="simulated",
            design="rewrites",
            n_queries=n_queries,
            n_judgments=2 * n_queries,
            documents={"human": 160, LLM: 160},
            n_pairs=160,
            mean_words={"human": 118.2, LLM: 103.8},
            license="CC BY 4.0",
        ),
        encoder=encoder,
        sources=sources,
        environment={"python": "3.12", "numpy": "2.3"},
        created="2026-11-21T20:00:00+00:00",
    )
    return dataclasses.replace(report, **changes)


@functools.cache
def clear_report() -> ExplainReport:
    """Everything measured, everything different."""
    models = tuple(
        perplexity(np.random.default_rng(seed), 120, gap=gap, kind=kind, model=name)
        for seed, (kind, name, gap) in enumerate(
            (("causal", "smollm2", -0.3), ("masked", "bert-base-uncased", -0.6))
        )
    )
    return explain_report(explained(models=models))


@functools.cache
def nothing_report() -> ExplainReport:
    """Everything measured, nothing different."""
    models = (perplexity(np.random.default_rng(3), 120, gap=0.0),)
    found = explained(shift=0, squeeze=0, length=0, score=0.0035, models=models, seed=3)
    return explain_report(found)


@functools.cache
def no_perplexity_report() -> ExplainReport:
    return explain_report(explained(models=()))


@functools.cache
def no_queries_report() -> ExplainReport:
    return explain_report(explained(queries=False), n_queries=0)


@functools.cache
def texts_report() -> ExplainReport:
    """Neither an encoder, nor a language model, nor queries."""
    found = explained(models=(), queries=False, encoder=False)
    return explain_report(found, encoder="", n_queries=0)


@functools.cache
def several_report() -> ExplainReport:
    """Two sources, of which the second has little."""
    second = explained(
        "llm:gpt-4o",
        models=(),
        shift=0,
        squeeze=0,
        seed=5,
        notes=(unread := "perplexity: the model could not read the texts of this source",),
        missing={"perplexity": unread},
    )
    return explain_report(explained(), second, warnings=("the queries of this set are few",))
